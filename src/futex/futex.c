/* SPDX-License-Identifier: MIT */
/*
 * Sleeping and waking: the kernel's answers, reduced to what a caller can act on.
 *
 * EINTR, EAGAIN, spurious returns and stray wakes all mean "look again": every caller loops on its own condition. A
 * deadline is judged by the clock, not by the kernel's word for it, so that ETIMEDOUT is never early.
 */
#include "futex.h"

#include <errno.h>
#include <limits.h>

#include "atomic.h"
#include "probe.h"
#include "sys.h"

int vez__futex_wait(uint32_t *word, uint32_t expected, vez_deadline_t deadline)
{
	/* The kernel takes a negative time for an error. */
	int rc = deadline < 0 ? ETIMEDOUT : vez__sys_futex_wait(word, expected, deadline, false);
	if (rc == ETIMEDOUT && deadline != VEZ_FOREVER && vez__sys_now() >= deadline)
		return ETIMEDOUT;
	return 0;
}

void vez__futex_wake(uint32_t *word)
{
	VEZ__PROBE2(wake, word, 1);
	vez__sys_futex_wake(word, 1, false);
}

void vez__futex_wake_all(uint32_t *word)
{
	VEZ__PROBE2(wake, word, INT_MAX);
	vez__sys_futex_wake(word, INT_MAX, false);
}

void vez__futex_wake_and_set(uint32_t *first, uint32_t *second, uint32_t value, uint32_t threshold)
{
	VEZ__PROBE2(wake, first, 1);
#ifndef VEZ__TSAN
	if (vez__checked())
		vez__told_release(second);
	if (vez__sys_futex_wake_op(first, second, value, threshold, false) == 0) {
		VEZ__PROBE2(wake, second, 1);
		return;
	}
#endif
	/* No such call on this machine. */
	vez__sys_futex_wake(first, 1, false);
	if (vez__exchange(second, value, release) >= threshold)
		vez__futex_wake(second);
}
