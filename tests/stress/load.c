#include "stress.h"
const struct test load_tests[] = { { 0 } };
