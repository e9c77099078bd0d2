/* SPDX-License-Identifier: MIT */
/* Scenarios of once. What the functions do is told by plain variables. */
#include "vez/once.h"

#include <errno.h>

#include "scenario.h"
#include "src/futex/atomic.h"

static vez_once_t once;
static int value; /* what the function that succeeds writes */
static int tries;

static void make(void)
{
	vez_once_t fresh = VEZ_ONCE_INITIALIZER;
	x_alive(&once, sizeof once);
	X_NAME(once);
	once = fresh;
	value = 0;
	tries = 0;
}

static int succeed(void *arg)
{
	(void)arg;
	tries++;
	value = 42;
	return 0;
}

/* Fails so many times before. */
static int fail(void *arg)
{
	int times = *(int *)arg;
	if (++tries <= times)
		return tries;
	value = 42;
	return 0;
}

static int nest(void *arg)
{
	x_assert(vez_once(&once, succeed, arg) == EDEADLK);
	return succeed(arg);
}

static void use(void)
{
	x_assert(vez_once(&once, succeed, NULL) == 0);
	x_assert(value == 42);
}

static void use_again(void)
{
	use();
	use();
}

static void use_nested(void)
{
	x_assert(vez_once(&once, nest, NULL) == 0);
	x_assert(value == 42);
}

static void tried_once(void)
{
	x_assert(tries == 1 && value == 42);
	x_assert(once.core_.length_ == 0);
}

X_SCENARIO(once_two, .setup = make, .thread = { use_again, use_again }, .check = tried_once, .stale = 2);
X_SCENARIO(once_three, .setup = make, .thread = { use, use, use }, .check = tried_once);
X_SCENARIO(once_nested, .setup = make, .thread = { use_nested, use_nested }, .check = tried_once, .stale = 1);

static void fail_at_first(void)
{
	int times = 1;
	int rc = vez_once(&once, fail, &times);
	x_assert(rc == 0 ? value == 42 : rc == 1);
}

static void tried_twice(void)
{
	x_assert(tries == 2 && value == 42);
	x_assert(once.core_.length_ == 0);
}

X_SCENARIO(once_fails, .setup = make, .thread = { fail_at_first, fail_at_first }, .check = tried_twice, .stale = 1);
X_SCENARIO(once_fails_three, .setup = make, .thread = { fail_at_first, fail_at_first, fail_at_first },
	   .check = tried_twice);

static void fail_twice(void)
{
	int times = 2;
	int rc = vez_once(&once, fail, &times);
	x_assert(rc == 0 ? value == 42 : rc >= 1 && rc <= 2);
}

static void tried_three_times(void)
{
	x_assert(tries == 3 && value == 42);
}

X_SCENARIO(once_fails_twice, .setup = make, .thread = { fail_twice, fail_twice, fail_twice },
	   .check = tried_three_times);

/* Who sees it done, waiting or not, may unmap it when it knows that the other one was the first. */
static int first;

static int tell(void *arg)
{
	(void)arg;
	vez__store(&first, 1, relaxed);
	return 0;
}

static int never(void *arg)
{
	(void)arg;
	return 99;
}

static void make_untold(void)
{
	make();
	first = 0;
}

static void be_first(void)
{
	x_assert(vez_once(&once, tell, NULL) == 0);
}

static void be_second_and_unmap(void)
{
	x_await(vez__load(&first, relaxed) == 1);
	x_assert(vez_once(&once, never, NULL) == 0);
	x_dead(&once, sizeof once);
}

X_SCENARIO(once_unmap, .setup = make_untold, .thread = { be_first, be_second_and_unmap }, .stale = 1);
