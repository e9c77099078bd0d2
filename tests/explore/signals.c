/* SPDX-License-Identifier: MIT */
/* Scenarios of tokens that a signal fires (src/engine/signals.c): no signal that the library's handler saw is lost, and
 * it fires the token that it had. Seen to fail with the faults mutants/signals-*. */
#include <signal.h>

#include "scenario.h"
#include "src/futex/atomic.h"
#include "vez/cancel.h"

static vez_cancel_t first, second;
static uint32_t came; /* SEEN: the handler has run; MISSED: there was none */

enum { SEEN = 1, MISSED = 2 };

static void make(void)
{
	x_alive(&first, sizeof first);
	X_NAME(first);
	X_NAME(second);
	X_NAME(came);
	x_make_alarm();
	vez_cancel_init(&first);
	vez_cancel_init(&second);
	came = 0;
}

static void make_bound(void)
{
	make();
	x_assert(vez_cancel_on_signal(&first, SIGUSR2) == 0);
}

static void raise_it(void)
{
	vez__store(&came, x_raise(SIGUSR2) ? SEEN : MISSED, release);
}

/* ---- one binds, and the signal comes meanwhile ---- */

static void bind_first(void)
{
	x_assert(vez_cancel_on_signal(&first, SIGUSR2) == 0);
}

static void see_it_fire(void)
{
	x_await(vez__load(&came, acquire) != 0);
	if (vez__load(&came, acquire) == SEEN)
		x_await(vez_cancel_fired(&first));
}

static void give_back(void)
{
	x_assert(vez_cancel_on_signal(NULL, SIGUSR2) == 0);
	x_assert(vez_cancel_destroy(&first) == 0);
	x_assert(vez_cancel_destroy(&second) == 0);
}

X_SCENARIO(signals_bind, .setup = make, .thread = { bind_first, see_it_fire, x_alarm }, .signal = raise_it,
	   .check = give_back, .preemptions = 1, .stale = 1);

/* ---- one takes the signal away from the token that it has fired, or is about to ---- */

static void unbind_and_destroy(void)
{
	x_assert(vez_cancel_on_signal(NULL, SIGUSR2) == 0);
	x_assert(vez__load(&came, relaxed) != SEEN || vez_cancel_fired(&first));
	x_assert(vez_cancel_destroy(&first) == 0);
	x_dead(&first, sizeof first);
}

static void destroy_bound(void)
{
	x_assert(vez_cancel_destroy(&first) == 0);
	x_dead(&first, sizeof first);
}

X_SCENARIO(signals_unbind, .setup = make_bound, .thread = { unbind_and_destroy, x_alarm }, .signal = raise_it,
	   .preemptions = 2);
X_SCENARIO(signals_destroy, .setup = make_bound, .thread = { destroy_bound, x_alarm }, .signal = raise_it,
	   .preemptions = 2);

/* ---- another token takes its place ---- */

static void bind_second(void)
{
	bool before = vez__load(&came, relaxed) == SEEN;
	x_assert(vez_cancel_on_signal(&second, SIGUSR2) == 0);
	x_assert(!before || vez_cancel_fired(&first));
}

static void see_either_fire(void)
{
	x_await(vez_cancel_fired(&first) || vez_cancel_fired(&second));
	x_await(vez__load(&came, acquire) == SEEN);
}

X_SCENARIO(signals_rebind, .setup = make_bound, .thread = { bind_second, see_either_fire, x_alarm }, .signal = raise_it,
	   .check = give_back, .preemptions = 1);
