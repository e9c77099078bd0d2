/* SPDX-License-Identifier: MIT */
/* Deadlines: saturating arithmetic on absolute nanoseconds. */
#include "vez/deadline.h"

#include "futex.h"
#include "sys.h"

#define NS_PER_S INT64_C(1000000000)

static int64_t add(int64_t a, int64_t b)
{
	int64_t sum;
	if (!__builtin_add_overflow(a, b, &sum))
		return sum;
	return b > 0 ? INT64_MAX : INT64_MIN;
}

static int64_t scale(int64_t a, int64_t by)
{
	int64_t product;
	if (!__builtin_mul_overflow(a, by, &product))
		return product;
	return a > 0 ? INT64_MAX : INT64_MIN;
}

vez_deadline_t vez_after_ns(int64_t ns)
{
	return add(vez__sys_now(), ns);
}

vez_deadline_t vez_after_us(int64_t us)
{
	return vez_after_ns(scale(us, 1000));
}

vez_deadline_t vez_after_ms(int64_t ms)
{
	return vez_after_ns(scale(ms, 1000000));
}

vez_deadline_t vez_after_s(int64_t s)
{
	return vez_after_ns(scale(s, NS_PER_S));
}

/* Normalized first, to seconds and a rest of the same sign: only then does a product that saturates mean that the sum
 * does. */
vez_deadline_t vez_deadline_from_timespec(const struct timespec *monotonic)
{
	int64_t seconds = add(monotonic->tv_sec, monotonic->tv_nsec / NS_PER_S);
	int64_t rest = monotonic->tv_nsec % NS_PER_S;
	if (seconds > 0 && rest < 0) {
		seconds--;
		rest += NS_PER_S;
	} else if (seconds < 0 && rest > 0) {
		seconds++;
		rest -= NS_PER_S;
	}
	return add(scale(seconds, NS_PER_S), rest);
}

int64_t vez_deadline_remaining_ns(vez_deadline_t deadline)
{
	if (deadline == VEZ_FOREVER)
		return INT64_MAX;
	int64_t now = vez__sys_now();
	return deadline > now ? deadline - now : 0;
}

bool vez__deadline_passed(vez_deadline_t deadline)
{
	return deadline != VEZ_FOREVER && (deadline <= 0 || vez__sys_now() >= deadline);
}
