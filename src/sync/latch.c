/* SPDX-License-Identifier: MIT */
/*
 * The latch: lets all go when a count has reached 0.
 *
 * State
 *  monitor_.word_
 *	bits 0-1    the lock   futex/lock.h
 *	bit 2       AWAITED    requests may be queued. Set inside by who joins, cleared inside when the last one gives
 *	                       up; means nothing once the latch is open
 *	bits 32-63  count      only falls. Anybody
 * Invariants
 *  C1 the exchange that takes the count to 0 opens the latch, for good. Who finds AWAITED and nobody inside enters with
 *     that same exchange; else the one inside sees the 0 in the word that its leaving exchange expects.
 *  C2 while nobody is inside, an open latch has nobody queued: who leaves made it so.
 *  C3 a wait that finds it open waits until nobody is inside, so that the one who opened it has left. One whose
 *     deadline has passed does not; vez_latch_destroy waits for that one.
 * Ordering
 *  every exchange that counts down releases, and all changes are read-modify-write, so they form one release sequence.
 *  It pairs with is_open and vez_latch_count (acquire): what came before every count_down. For those who are queued:
 *  the opening exchange, or the leaving one of who was inside (acq_rel), then the publication (word.c).
 * Progress and fairness
 *  count_down is lock-free and waits for nobody. All waiters are released by one leaver, and sleep as a cohort, woken
 *  by one system call.
 * Lifetime: see C3 and monitor.c. The last touch of a count_down is its exchange, or the leaving one.
 * Sources: D. Lea, java.util.concurrent (2004).
 */
#include "vez/latch.h"

#include <errno.h>
#include <string.h>

#include "engine.h"

#define AWAITED UINT64_C(4)

static uint64_t count_in(uint64_t word)
{
	return word >> 32;
}

static vez_latch_t *latch_of(vez_monitor_t *m)
{
	return (vez_latch_t *)((char *)m - offsetof(vez_latch_t, monitor_));
}

static bool serve(vez_monitor_t *m, uint64_t seen)
{
	vez_request_t *r = NULL;
	if (count_in(seen) == 0)
		r = vez_room_first(&latch_of(m)->room_);
	if (!r)
		return false;
	for (; r; r = vez_room_first(&latch_of(m)->room_))
		vez_monitor_settle(m, r, 0);
	return true;
}

/* r leaves. */
static bool take_back(vez_monitor_t *m, uint64_t seen, vez_request_t *r)
{
	uint64_t keeps = vez_room_length(r->room_) > 1 ? ~UINT64_C(0) : ~AWAITED;
	return vez__cas(&m->word_, &seen, seen & keeps, relaxed);
}

static const struct vez__ops latch_ops = { .type = VEZ__LATCH, .serve = serve, .take_back = take_back };

static inline bool is_open(const vez_latch_t *l, uint64_t barring)
{
	uint64_t seen = vez__load(&l->monitor_.word_, acquire);
	return count_in(seen) == 0 && !(seen & barring);
}

/* 0 or ECANCELED; EINPROGRESS: r is queued. What is open stays open: nothing is taken from anybody. */
static VEZ__COLD int file(vez_latch_t *l, vez_request_t *r)
{
	vez__request_in_cohort(&l->monitor_, r);
	vez__monitor_enter(&l->monitor_);
	int rc = EINPROGRESS;
	if (is_open(l, 0))
		rc = 0;
	else if (!vez__request_prepare(&l->monitor_, &l->room_, r, &latch_ops))
		rc = ECANCELED;
	if (rc == EINPROGRESS) {
		vez__fetch_or(&l->monitor_.word_, AWAITED, relaxed);
		vez__request_insert(r);
		rc = vez__request_filed(&l->monitor_, r);
	}
	vez__monitor_leave(&l->monitor_, &latch_ops);
	return rc;
}

static int attempt(const vez_latch_t *l)
{
	return is_open(l, 0) ? 0 : EBUSY;
}

static VEZ__COLD int wait_slow(vez_latch_t *l, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	vez_request_t r;
	if (vez__deadline_passed(deadline))
		return vez__no_time_left(attempt(l));
	vez__request_mine(&r, 0, cancel);
	int rc = file(l, &r);
	return rc == EINPROGRESS ? vez__request_await(&r, deadline) : rc;
}

int vez_latch_wait(vez_latch_t *l)
{
	return VEZ__LIKELY(is_open(l, VEZ__LOCKED)) ? 0 : wait_slow(l, VEZ_FOREVER, NULL);
}

int vez_latch_wait_until(vez_latch_t *l, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	if (cancel && vez_cancel_fired(cancel))
		return ECANCELED;
	return VEZ__LIKELY(is_open(l, VEZ__LOCKED)) ? 0 : wait_slow(l, deadline, cancel);
}

int vez_latch_wait_async(vez_latch_t *l, vez_request_t *r)
{
	int rc = vez__async_begin(r);
	if (rc == 0 && !is_open(l, VEZ__LOCKED))
		rc = vez__async_waits(r) ? file(l, r) : vez__no_time_left(attempt(l));
	return vez__async_end(r, rc);
}

int vez_latch_count_down(vez_latch_t *l, uint32_t n)
{
	uint64_t seen = vez__load(&l->monitor_.word_, relaxed);
	uint64_t taken, enters;
	do {
		uint64_t count = count_in(seen);
		if (count == 0)
			return 0;
		taken = n < count ? n : count;
		enters = taken == count && (seen & AWAITED) && !(seen & VEZ__LOCKED) ? VEZ__LOCKED : 0;
	} while (!vez__cas(&l->monitor_.word_, &seen, (seen | enters) - (taken << 32), acq_rel));
	if (enters)
		vez__monitor_leave(&l->monitor_, &latch_ops);
	return 0;
}

uint32_t vez_latch_count(const vez_latch_t *l)
{
	return (uint32_t)count_in(vez__load(&l->monitor_.word_, acquire));
}

size_t vez_latch_waiters(const vez_latch_t *l)
{
	return count_in(vez__load(&l->monitor_.word_, acquire)) ? vez_room_length(&l->room_) : 0;
}

int vez_latch_init(vez_latch_t *l, uint32_t count)
{
	memset(l, 0, sizeof *l);
	l->monitor_.word_ = (uint64_t)count << 32;
	return 0;
}

int vez_latch_destroy(vez_latch_t *l)
{
	vez__monitor_enter(&l->monitor_);
	serve(&l->monitor_, vez__load(&l->monitor_.word_, relaxed));
	return vez__monitor_retire(&l->monitor_, &latch_ops, false);
}
