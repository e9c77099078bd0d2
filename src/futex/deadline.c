/* SPDX-License-Identifier: MIT */
/* Deadlines: saturating arithmetic on absolute nanoseconds. */
#include "vez/deadline.h"

#include "futex.h"
#include "sys.h"

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
	return vez_after_ns(scale(s, 1000000000));
}

vez_deadline_t vez_deadline_from_timespec(const struct timespec *monotonic)
{
	return add(scale(monotonic->tv_sec, 1000000000), monotonic->tv_nsec);
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
