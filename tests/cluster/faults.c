#include <stddef.h>
#include "test.h"
const struct test fault_tests[] = { { NULL, NULL } };
