#include "stress.h"
const struct test signal_tests[] = { { 0 } };
