/* SPDX-License-Identifier: MIT */
/* Scenarios of cancellation tokens (vez/cancel.h), on semaphores that nobody releases. */
#include "vez/cancel.h"

#include <errno.h>

#include "scenario.h"
#include "src/futex/atomic.h"
#include "vez/sem.h"

static vez_cancel_t token;
static vez_sem_t first, second;
static int told;
static int rc[X_THREADS];

static void make(void)
{
	x_alive(&token, sizeof token);
	x_alive(&first, sizeof first);
	X_NAME(token);
	X_NAME(first);
	X_NAME(second);
	vez_cancel_init(&token);
	vez_sem_init(&first, 0, 0, 0);
	vez_sem_init(&second, 0, 0, 0);
	told = 0;
}

static void check(void)
{
	x_assert(vez_sem_waiters(&first) == 0 && vez_sem_waiters(&second) == 0);
	x_assert(vez_sem_destroy(&first) == 0 && vez_sem_destroy(&second) == 0);
}

static int wait_on(vez_sem_t *s, vez_deadline_t deadline)
{
	return vez_sem_acquire_until(s, 1, deadline, &token);
}

static void wait_first(void)
{
	x_assert(wait_on(&first, VEZ_FOREVER) == ECANCELED);
	x_assert(told == 1);
}

static void wait_second(void)
{
	x_assert(wait_on(&second, VEZ_FOREVER) == ECANCELED);
	x_assert(told == 1);
}

static void tell_and_fire(void)
{
	told = 1;
	vez_cancel_fire(&token);
}

static void fire(void)
{
	vez_cancel_fire(&token);
	x_assert(vez_cancel_fired(&token));
}

/* The firing happens before the end of each wait that it ends, on whatever object; that includes a wait that is refused
 * because the token fires while it enters. */
X_SCENARIO(cancel_refused, .setup = make, .thread = { wait_first, tell_and_fire }, .check = check, .stale = 2);

static void tell_and_fire_both(void)
{
	x_await(vez_sem_waiters(&first) + vez_sem_waiters(&second) == 2);
	tell_and_fire();
}

X_SCENARIO(cancel_two_objects, .setup = make, .thread = { wait_first, wait_second, tell_and_fire_both },
	   .check = check);
X_SCENARIO(cancel_one_object, .setup = make, .thread = { wait_first, wait_first, tell_and_fire_both }, .check = check);

static void wait_quietly(void)
{
	x_assert(wait_on(&first, VEZ_FOREVER) == ECANCELED);
}

X_SCENARIO(cancel_any_moment, .setup = make, .thread = { wait_quietly, wait_quietly, fire }, .check = check);
X_SCENARIO(cancel_two_fires, .setup = make, .thread = { wait_quietly, fire, fire }, .check = check);

/* Armed anew after a fire, it ends the next wait too. */
static void wait_twice(void)
{
	x_assert(wait_on(&first, VEZ_FOREVER) == ECANCELED);
	x_assert(vez_cancel_clear(&token));
	x_assert(wait_on(&first, VEZ_FOREVER) == ECANCELED);
}

static void fire_twice(void)
{
	x_await(vez_sem_waiters(&first) == 1);
	vez_cancel_fire(&token);
	x_await(vez_sem_waiters(&first) == 1);
	vez_cancel_fire(&token);
}

X_SCENARIO(cancel_again, .setup = make, .thread = { wait_twice, fire_twice }, .check = check, .stale = 1);

/* Deadline and token at once; the wait leaves nothing behind on the token. */
static void wait_limited(void)
{
	rc[0] = wait_on(&first, x_soon());
	x_assert(rc[0] == ECANCELED || rc[0] == ETIMEDOUT);
}

static void wait_limited_second(void)
{
	rc[1] = wait_on(&second, x_soon());
	x_assert(rc[1] == ECANCELED || rc[1] == ETIMEDOUT);
}

/* A wait that meets a fire which is taken back at once is refused, or was not met by it. */
static void wait_or_be_refused(void)
{
	int result = wait_on(&first, VEZ_FOREVER);
	x_assert(result == ECANCELED || result == 0);
	if (result == ECANCELED)
		x_assert(vez_sem_acquire(&first, 1) == 0);
}

static void fire_and_clear(void)
{
	vez_cancel_fire(&token);
	vez_cancel_clear(&token);
	x_assert(vez_sem_release(&first, 1) == 0);
}

static void check_and_destroy(void)
{
	check();
	x_assert(vez_cancel_destroy(&token) == 0);
}

X_SCENARIO(cancel_cleared_meanwhile, .setup = make, .thread = { wait_or_be_refused, fire_and_clear },
	   .check = check_and_destroy, .stale = 1);

X_SCENARIO(cancel_or_deadline, .setup = make, .thread = { wait_limited, fire }, .check = check, .stale = 1);
X_SCENARIO(cancel_or_deadline_two, .setup = make, .thread = { wait_limited, wait_limited_second, fire },
	   .check = check);

/* The token may be discarded when the wait that a fire ended has returned, and so may the semaphore. */
static void wait_and_unmap(void)
{
	x_assert(wait_on(&first, VEZ_FOREVER) == ECANCELED);
	x_dead(&token, sizeof token);
	x_dead(&first, sizeof first);
}

static void fire_queued(void)
{
	x_await(vez_sem_waiters(&first) == 1);
	vez_cancel_fire(&token);
}

X_SCENARIO(cancel_unmap, .setup = make, .thread = { wait_and_unmap, fire_queued }, .stale = 2);

/* A wait that was granted leaves its token behind while another thread fires it. */
static void granted_in_time(void)
{
	rc[0] = wait_on(&first, VEZ_FOREVER);
	x_assert(rc[0] == 0 || rc[0] == ECANCELED);
	if (rc[0] == 0)
		x_dead(&first, sizeof first);
}

static void release_first(void)
{
	x_await(vez_sem_waiters(&first) == 1 || vez_cancel_fired(&token));
	if (!vez_cancel_fired(&token))
		x_assert(vez_sem_release(&first, 1) == 0);
}

/* The fire finds the request settled, or about to be, and must not enter a semaphore that is gone. */
X_SCENARIO(cancel_after_grant, .setup = make, .thread = { granted_in_time, release_first, fire });
