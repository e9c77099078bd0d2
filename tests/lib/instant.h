/* SPDX-License-Identifier: MIT */
/*
 * A grant and an end of a wait (a deadline, a token) in the same instant, many times. Each round says what must hold,
 * whichever wins. That both win now and then cannot be asked of a busy machine, but is helped: where one has won for a
 * while it is made later, by more each time, as long as that is less than 10 ms. On a busy machine a round takes a
 * hundred times as long as on an idle one: there are fewer then.
 */
#ifndef TEST_INSTANT_H
#define TEST_INSTANT_H

#include <stdbool.h>
#include <stdint.h>

#include "thread.h"

#define INSTANT_ROUNDS_NS INT64_C(20000000000)
#define INSTANT_ROUNDS_LEAST 32

struct instant {
	int64_t began;
	int rounds;     /* that have begun */
	int64_t shift;  /* by how much the end is later than the grant */
	int64_t step;
	int in_a_row;
	bool granted;
};

/* How much later than meant each is. */
static inline int64_t instant_of_grant(const struct instant *i)
{
	return i->shift < 0 ? -i->shift : 0;
}

static inline int64_t instant_of_end(const struct instant *i)
{
	return i->shift > 0 ? i->shift : 0;
}

/* Whether there is another of so many rounds. */
static inline bool instant_again(struct instant *i, int most)
{
	if (i->rounds == 0)
		i->began = real_now();
	bool has_time = i->rounds < INSTANT_ROUNDS_LEAST || real_now() - i->began < INSTANT_ROUNDS_NS;
	return i->rounds++ < most && has_time;
}

static inline void instant_was(struct instant *i, bool granted)
{
	if (granted != i->granted || i->step == 0) {
		i->in_a_row = 0;
		i->step = 20000;
	}
	i->granted = granted;
	if (++i->in_a_row % 16 == 0 && i->step < 10000000) {
		i->shift += granted ? -i->step : i->step;
		i->step *= 2;
	}
}

#endif
