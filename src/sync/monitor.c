/* SPDX-License-Identifier: MIT */
/*
 * Monitors of users.
 *
 * State
 *  core_      engine/core.c; its word, and calls_, owner_ and ran_: call.c
 *  pending_   what was settled since the monitor was entered; by the one inside
 *  gave_up_   constant
 *  room       first_, length_  its queue; monitor_: of which it is, known since a request was queued there first;
 *             inside, but for a thread that is entering because of a request
 * A thread that is inside holds (engine/hold.h): what it settles, or a handler of its, completes when it has left.
 */
#include "vez/monitor.h"

#include <string.h>

#include "../engine/clock.h"
#include "../futex/foreign.h"
#include "call.h"

static void gave_up(struct vez__stay *in, vez_request_t *r)
{
	vez_monitor_t *m = vez__monitor_of(in);
	if (!m->gave_up_)
		return;
	vez__monitor_own(m, true);
	VEZ__FOREIGN(m->gave_up_(m, (vez_room_t *)r->queue_, r));
	vez__monitor_own(m, false);
}

static const struct vez__rules room_rules = {
	.type = VEZ__MONITOR, .queue = VEZ__IN_ROOM, .pending = offsetof(vez_monitor_t, pending_),
	.serve = vez__calls_serve, .entered = vez__calls_entered, .gave_up = gave_up, .gathers = true,
};

void vez_monitor_init(vez_monitor_t *m, void (*rule)(vez_monitor_t *m, vez_room_t *room, vez_request_t *r))
{
	memset(m, 0, sizeof *m);
	m->gave_up_ = rule;
}

/* Where no user's code is inside, who is leaves soon: the library's thread, for one, may come when all that it was
 * asked to run has been run. */
int vez_monitor_destroy(vez_monitor_t *m)
{
	struct vez__stay in;
	if ((vez__load(&m->core_.word_, relaxed) & VEZ__LOCKED) && vez__load(&m->owner_, relaxed) != 0)
		return EBUSY;
	vez__hold();
	vez__lock_enter(&m->core_.word_);
	vez__monitor_stay(&in, m);
	m->ran_ = 0;
	vez__calls_ask_nobody(&in);
	vez__calls_gather(&in);
	int rc = vez__retire(&in, &room_rules, false);
	vez__let_go();
	return rc;
}

void vez_monitor_enter(vez_monitor_t *m)
{
	vez__inspect_ready();
	vez__hold();
	vez__lock_enter(&m->core_.word_);
	vez__monitor_own(m, true);
	m->ran_ = 0;
}

void vez_monitor_exit(vez_monitor_t *m)
{
	vez__monitor_own(m, false);
	vez__monitor_leave(m, &room_rules);
	vez__let_go();
}

/* Inside: r is about to be queued. False: its token is fired. */
static bool prepare(vez_monitor_t *m, vez_room_t *room, vez_request_t *r)
{
	if (room->monitor_ != m)
		room->monitor_ = m;
	return vez__prepare(&m->core_, &room_rules, &room->first_, r);
}

int vez_monitor_wait(vez_monitor_t *m, vez_room_t *room, vez_request_t *r, vez_deadline_t deadline,
		     vez_cancel_t *cancel)
{
	int refused = vez__limits_refuse(deadline, cancel);
	vez__request_init_local(r, r->key_, cancel);
	if (!refused && !prepare(m, room, r))
		refused = ECANCELED;
	if (!refused)
		vez__insert(&m->core_, r);
	vez_monitor_exit(m);
	return refused ? refused : vez__await(r, deadline);
}

/* Inside: EINPROGRESS, or what a member of a wait-for-any has got already. */
static int insert_async(vez_monitor_t *m, vez_request_t *r)
{
	struct vez__stay in;
	vez__monitor_stay(&in, m);
	if (vez__is_member(r))
		r->state_ |= VEZ__FILING;
	vez__insert(&m->core_, r);
	return vez__is_member(r) ? vez__member_filed(&in, r) : EINPROGRESS;
}

/* r was queued, with a deadline, and there is no thread that keeps it: makes that outside. Meanwhile the call that
 * files r counts as still inside, so that it can end r at once if none can be made. EINPROGRESS, or what r came to. */
static int leave_to_start_clock(vez_monitor_t *m, vez_request_t *r)
{
	struct vez__stay in;
	vez__monitor_stay(&in, m);
	r->state_ |= VEZ__FILING;
	vez__expect(&in);
	vez_monitor_exit(m);
	int failed = vez__clock_start();
	vez_monitor_enter(m);
	vez__monitor_stay(&in, m);
	vez__came(&in);
	if (failed && !vez__is_settled(r) && vez__word_announce_end(&r->word_))
		vez__end_inside(&in, r, failed);
	bool got = vez__is_settled(r) && !(r->state_ & VEZ__FILING);
	r->state_ &= ~VEZ__FILING;
	return got ? r->at_.result_ : EINPROGRESS;
}

int vez_monitor_wait_async(vez_monitor_t *m, vez_room_t *room, vez_request_t *r)
{
	int rc = vez__async_begin_inside(r);
	bool timed = vez__timer_is_set(&r->timer_); /* once r is queued, the timer is no longer the caller's */
	if (rc == 0 && vez__is_late(r))
		rc = ETIMEDOUT;
	if (rc == 0)
		rc = prepare(m, room, r) ? insert_async(m, r) : ECANCELED;
	if (VEZ__UNLIKELY(rc == EINPROGRESS && timed && !vez__clock_exists()))
		rc = leave_to_start_clock(m, r);
	vez_monitor_exit(m);
	return vez__async_end(r, rc);
}

bool vez_monitor_move(vez_monitor_t *m, vez_room_t *room, vez_request_t *r)
{
	if (vez__is_settled(r))
		return false;
	if (room->monitor_ != m)
		room->monitor_ = m;
	vez__move_to_room(&m->core_, &room->first_, r);
	return true;
}

/* A member that was kept could not be withdrawn if another one won. */
bool vez_monitor_keep(vez_monitor_t *m, vez_request_t *r)
{
	(void)m;
	if (vez__is_settled(r) || vez__is_member(r))
		return false;
	vez__keep(r);
	return true;
}

bool vez_monitor_settle(vez_monitor_t *m, vez_request_t *r, int result)
{
	struct vez__stay in;
	if (vez__is_settled(r)) /* unqueued, if it was never used */
		return vez__load(&r->word_, relaxed) == 0 && vez_monitor_settle_unqueued(m, r, result);
	vez__monitor_stay(&in, m);
	return vez__settle(&in, r, result);
}

/* Its result is known from here on, and its wait-for-any is told when the monitor has been left. */
bool vez_monitor_settle_unqueued(vez_monitor_t *m, vez_request_t *r, int result)
{
	uint32_t seen = vez__load(&r->word_, relaxed);
	bool complete = seen & VEZ__DONE;
	if ((r->state_ & VEZ__QUEUED) || (complete ? vez__is_member(r) : seen != 0))
		return false;
	int refused = vez__async_begin_inside(r);
	bool won = vez__decide(r, refused ? refused : result) && !refused;
	vez_request_set_limits(r, VEZ_FOREVER, NULL);
	vez__store(&r->word_, VEZ__DONE, release);
	if (vez__is_member(r))
		vez__pend(&m->pending_, r);
	return won;
}
