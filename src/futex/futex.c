/* SPDX-License-Identifier: MIT */
/*
 * Sleeping and waking: the kernel's answers, reduced to what a caller can act on.
 *
 * EINTR, EAGAIN, spurious returns and stray wakes all mean "look again": every caller loops on its own condition. A
 * deadline is judged by the clock, not by the kernel's word for it, so that ETIMEDOUT is never early.
 * A sandbox may refuse a call (EPERM, ENOSYS, whatever it likes to say). A thread that may not sleep on a word naps,
 * and looks again: nothing is lost, as it needs no wake. A wake that is refused is lost to a thread that sleeps: where
 * sleeping on a word is not refused as well, the program ends and says why, as it would stand still for ever.
 */
#include "futex.h"

#include <errno.h>
#include <limits.h>

#include "atomic.h"
#include "probe.h"
#include "sys.h"

#define NAP_NS 1000000

static bool is_refusal(int rc)
{
	return rc != 0 && rc != EAGAIN && rc != EINTR && rc != ETIMEDOUT;
}

static VEZ__COLD int nap(vez_deadline_t deadline)
{
	int64_t end = vez__sys_now() + NAP_NS;
	vez__sys_nap(deadline < end ? deadline : end);
	return ETIMEDOUT;
}

VEZ__HOT int vez__futex_wait_bits(uint32_t *word, uint32_t expected, uint32_t bits, vez_deadline_t deadline)
{
	/* The kernel takes a negative time for an error. */
	int rc = deadline < 0 ? ETIMEDOUT : vez__sys_futex_wait(word, expected, deadline, bits, false);
	if (VEZ__UNLIKELY(is_refusal(rc)))
		rc = nap(deadline);
	if (rc == ETIMEDOUT && deadline != VEZ_FOREVER && vez__sys_now() >= deadline)
		return ETIMEDOUT;
	return 0;
}

/* A word that does not read as expected: the kernel says EAGAIN, unless it is not asked. */
static VEZ__COLD void wake_refused(void)
{
	uint32_t word = 0;
	if (!is_refusal(vez__sys_futex_wait(&word, 1, VEZ_FOREVER, VEZ__ANY_BIT, false)))
		vez__sys_die("vez: the kernel lets threads sleep (futex) but refuses to wake them\n");
}

/* A sandbox may let only wakes without bits pass: then those whose bits do not count wake, too, and sleep again. */
static VEZ__HOT void wake(uint32_t *word, int count, uint32_t bits)
{
	if (VEZ__LIKELY(vez__sys_futex_wake(word, count, bits, false) >= 0))
		return;
	if (bits == VEZ__ANY_BIT || vez__sys_futex_wake(word, INT_MAX, VEZ__ANY_BIT, false) < 0)
		wake_refused();
}

VEZ__HOT void vez__futex_wake(uint32_t *word)
{
	VEZ__PROBE2(wake, word, 1);
	wake(word, 1, VEZ__ANY_BIT);
}

VEZ__HOT void vez__futex_wake_all(uint32_t *word)
{
	VEZ__PROBE2(wake, word, INT_MAX);
	vez__futex_wake_bits(word, INT_MAX, VEZ__ANY_BIT);
}

VEZ__HOT void vez__futex_wake_bits(uint32_t *word, int count, uint32_t bits)
{
	wake(word, count, bits);
}

VEZ__HOT void vez__futex_wake_and_set(uint32_t *first, uint32_t *second, uint32_t value, uint32_t threshold)
{
	VEZ__PROBE2(wake, first, 1);
#ifndef VEZ__TSAN
	if (vez__checked())
		vez__told_release(second);
	int error = vez__sys_futex_wake_op(first, second, value, threshold, false);
	if (VEZ__LIKELY(error == 0)) {
		VEZ__PROBE2(wake, second, 1);
		return;
	}
	if (error == EINVAL) { /* its thread may have seen the value: only the address is used */
		wake(second, 1, VEZ__ANY_BIT);
		return;
	}
#endif
	/* No such call on this machine. */
	wake(first, 1, VEZ__ANY_BIT);
	if (vez__exchange(second, value, release) >= threshold)
		vez__futex_wake(second);
}
