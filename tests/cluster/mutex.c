#include <stddef.h>
#include "test.h"
const struct test mutex_tests[] = { { NULL, NULL } };
