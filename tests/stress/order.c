#include "stress.h"
const struct test order_tests[] = { { 0 } };
