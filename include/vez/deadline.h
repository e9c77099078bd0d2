/* SPDX-License-Identifier: MIT */
/*
 * vez/deadline.h - when a wait ends by itself
 *
 * A deadline is a moment: absolute nanoseconds on CLOCK_MONOTONIC, which no clock step moves and which does not run
 * while the machine is suspended. A moment, unlike a duration, can be handed down through any number of waits without
 * growing. A deadline that has passed (0 and negative ones have) means one attempt.
 *
 * All of these may be called anywhere, in signal handlers and after fork too.
 */
#ifndef VEZ_DEADLINE_H
#define VEZ_DEADLINE_H

#include <time.h>

#include "base.h"

VEZ_BEGIN_DECLS_

/* A moment, not a distance: 5000 has passed long ago; vez_after_us(5) is meant. */
typedef int64_t vez_deadline_t;

/* Never passes. */
#define VEZ_FOREVER INT64_MAX
/* Has always passed. */
#define VEZ_NOW INT64_MIN

/* Private: that something is to happen at a moment. All-zero bytes: never. */
struct vez__timer {
	void *link_[2];
	int64_t at_;
};

/* The moment that lies this far from now. Saturating: a sum too large is VEZ_FOREVER; a negative distance lies in
 * the past. */
vez_deadline_t vez_after_ns(int64_t ns);
vez_deadline_t vez_after_us(int64_t us);
vez_deadline_t vez_after_ms(int64_t ms);
vez_deadline_t vez_after_s(int64_t s);

/* The moment of a CLOCK_MONOTONIC timespec; saturating, and tv_nsec need not be normalized. One of CLOCK_REALTIME
 * names a moment that lies decades ahead: in effect, never. */
vez_deadline_t vez_deadline_from_timespec(const struct timespec *monotonic);

/* Nanoseconds until then: never negative, 0 once it has passed, INT64_MAX for VEZ_FOREVER. */
int64_t vez_deadline_remaining_ns(vez_deadline_t deadline);

VEZ_END_DECLS_

#endif
