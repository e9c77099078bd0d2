#include <stddef.h>
#include "test.h"
const struct test sem_tests[] = { { NULL, NULL } };
