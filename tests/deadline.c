/* SPDX-License-Identifier: MIT */
/* Deadlines: saturating arithmetic on a monotonic clock. */
#include <errno.h>
#include <vez.h>

#include "thread.h"
#include "variant.h"

TestSuite(deadline, .timeout = 60);

#define S INT64_C(1000000000)

/* Seen to fail: vez_after_us that multiplies by 100. */
Test(deadline, H03_so_far_from_now)
{
	inject_clock(NOON);
	EXPECT_EQ(vez_after_ns(0), NOON);
	EXPECT_EQ(vez_after_ns(7), NOON + 7);
	EXPECT_EQ(vez_after_us(7), NOON + 7000);
	EXPECT_EQ(vez_after_ms(7), NOON + 7000000);
	EXPECT_EQ(vez_after_s(7), NOON + 7 * S);
	EXPECT_EQ(vez_after_ns(-7), NOON - 7);
	EXPECT_EQ(vez_after_us(-7), NOON - 7000);
	EXPECT_EQ(vez_after_ms(-7), NOON - 7000000);
	EXPECT_EQ(vez_after_s(-7), NOON - 7 * S);
}

/* Seen to fail: a sum or a product that wraps (under UBSan, too). */
Test(deadline, H03_sums_and_products_saturate)
{
	inject_clock(NOON);
	EXPECT_EQ(vez_after_ns(INT64_MAX), VEZ_FOREVER);
	EXPECT_EQ(vez_after_ns(INT64_MAX - NOON), VEZ_FOREVER);
	EXPECT_EQ(vez_after_ns(INT64_MAX - NOON - 1), VEZ_FOREVER - 1);
	EXPECT_EQ(vez_after_ns(INT64_MAX - NOON + 1), VEZ_FOREVER);
	EXPECT_EQ(vez_after_us(INT64_MAX), VEZ_FOREVER);
	EXPECT_EQ(vez_after_us(INT64_MAX / 1000 + 1), VEZ_FOREVER);
	EXPECT_EQ(vez_after_ms(INT64_MAX), VEZ_FOREVER);
	EXPECT_EQ(vez_after_ms(INT64_MAX / 1000000), VEZ_FOREVER);
	EXPECT_EQ(vez_after_s(INT64_MAX), VEZ_FOREVER);
	EXPECT_EQ(vez_after_s(INT64_MAX / S + 1), VEZ_FOREVER);
	EXPECT_EQ(vez_after_ns(INT64_MIN), INT64_MIN + NOON);
	EXPECT_EQ(vez_after_s(INT64_MIN), INT64_MIN + NOON);
	EXPECT_EQ(vez_after_us(INT64_MIN), INT64_MIN + NOON);
	EXPECT_EQ(vez_after_ms(INT64_MIN), INT64_MIN + NOON);
}

/* Seen to fail: tv_nsec that is added as it stands, without saturation. */
Test(deadline, H03_from_timespec)
{
	EXPECT_EQ(vez_deadline_from_timespec(&(struct timespec){ 3, 4 }), 3 * S + 4);
	EXPECT_EQ(vez_deadline_from_timespec(&(struct timespec){ 3, 2000000005 }), 5 * S + 5);
	EXPECT_EQ(vez_deadline_from_timespec(&(struct timespec){ 3, -1 }), 3 * S - 1);
	EXPECT_EQ(vez_deadline_from_timespec(&(struct timespec){ -1, 0 }), -S);
	EXPECT_EQ(vez_deadline_from_timespec(&(struct timespec){ (time_t)1 << 31, 0 }), (INT64_C(1) << 31) * S);
	if (sizeof(time_t) > 4) {
		EXPECT_EQ(vez_deadline_from_timespec(&(struct timespec){ (time_t)INT64_MAX, 0 }), VEZ_FOREVER);
		EXPECT_EQ(vez_deadline_from_timespec(&(struct timespec){ (time_t)(INT64_MAX / S), 999999999 }),
			  VEZ_FOREVER);
		EXPECT_EQ(vez_deadline_from_timespec(&(struct timespec){ (time_t)INT64_MIN, -1 }), INT64_MIN);
	}
}

/* A tv_nsec of the other sign takes back what tv_sec alone would overflow by, and no more. Seen to fail: a product that
 * saturates before the rest is added, at each end; a rest that is not normalized. */
Test(deadline, H03_from_timespec_at_the_ends)
{
	static const struct {
		struct timespec ts;
		vez_deadline_t is;
	} of[] = {
		{ { INT64_MAX, -1 }, VEZ_FOREVER },
		{ { INT64_MAX, INT64_MIN }, VEZ_FOREVER },
		{ { INT64_MIN, 1 }, VEZ_NOW },
		{ { INT64_MIN, INT64_MAX }, VEZ_NOW },
		{ { 9223372037, -999999999 }, 9223372036000000001 },
		{ { 9223372037, -145224192 }, VEZ_FOREVER },
		{ { 9223372037, -145224194 }, VEZ_FOREVER - 1 },
		{ { -9223372037, 145224193 }, INT64_MIN + 1 },
		{ { -9223372037, 999999999 }, -9223372036000000001 },
		{ { 0, INT64_MAX }, VEZ_FOREVER },
		{ { 0, INT64_MIN }, VEZ_NOW },
		{ { 1, -S }, 0 },
		{ { -1, S + 1 }, 1 },
	};
	for (unsigned i = 0; i < sizeof of / sizeof of[0]; i++)
		EXPECT_EQ(vez_deadline_from_timespec(&of[i].ts), of[i].is);
}

/* Seen to fail: a difference that wraps for VEZ_NOW, or is negative. */
Test(deadline, H02_what_remains)
{
	inject_clock(NOON);
	EXPECT_EQ(vez_deadline_remaining_ns(VEZ_FOREVER), INT64_MAX);
	EXPECT_EQ(vez_deadline_remaining_ns(VEZ_FOREVER - 1), INT64_MAX - 1 - NOON);
	EXPECT_EQ(vez_deadline_remaining_ns(NOON + 5), 5);
	EXPECT_EQ(vez_deadline_remaining_ns(NOON), 0);
	EXPECT_EQ(vez_deadline_remaining_ns(NOON - 1), 0);
	EXPECT_EQ(vez_deadline_remaining_ns(0), 0);
	EXPECT_EQ(vez_deadline_remaining_ns(-1), 0);
	EXPECT_EQ(vez_deadline_remaining_ns(VEZ_NOW), 0);
}

/* Seen to fail: sys_now on CLOCK_REALTIME. */
Test(deadline, H04_the_clock_is_monotonic)
{
	errno = 77;
	int64_t before = real_now();
	int64_t now = vez_after_ns(0);
	EXPECT(before <= now && now <= real_now());
	EXPECT_EQ(errno, 77);
}
