/* SPDX-License-Identifier: MIT */
/*
 * How a request is settled.
 *
 * State of a request
 *  word_     futex/word.h
 *  next_, at_.before_  links in its queue; when it is settled, next_ links what is pending (core.c), and the result
 *            lies where before_ was. Inside, then the leaver
 *  queue_, rules_  where it is queued; constant while it is, but for a request that a condition moves, and queue_ of
 *            one that is moved from room to room; that is read outside by who enters because of it
 *  state_    QUEUED from its insertion until it is settled, and KEPT besides from the moment when its limits ceased to
 *            apply though a thread was entering because of one. Once settled: FIRE_COMES, the thread that fired is
 *            entering because of it; FIRE_CAME, and has; EXPECTED, coming_ of its core counts it. Inside.
 *            FILING: the call that files this member of a wait-for-any is still inside; WON: it has won; LATE: its
 *            deadline had passed when it was filed; inside. ARRIVING: it comes to its queue from outside, and is not
 *            yet there; set by the pusher, cleared inside. OWN: who completes it has cancelled it, and calls its
 *            function itself. SPENT, TIRELESS, ATTEMPT: calls' (sync/call.c).
 *            JUMPS: room.c
 *  how_      winner.h; constant while it waits
 *  timer_    with a thread: when that is to retry by itself; by that thread. IS_ASYNC: its deadline (alarm.c)
 *  at_.result_  written when it is settled, inside; read by its thread after DONE, or after entering
 * Invariants
 *  M1 a request is in a queue exactly while its state is QUEUED; it leaves the queue before its word says DONE.
 *  M2 a settled request is completed by exactly one thread: by the leaver, as pending, if neither ENTERING nor FIRED
 *     was set before SETTLED; else by the last of those that enter because of it: its own thread or the one that ends
 *     an asynchronous one (ENTERING), and the one that fired (FIRED). A fire that meets a request before SETTLED enters
 *     whatever else happens: when it returns, the request is decided.
 *  M3 the lock is never held while sleeping, waking or calling the kernel (but to enter it).
 *  M4 a member of a wait-for-any is granted only when it has WON: the first to do so (winner.c). What has won is
 *     granted before the core is left.
 * Ordering: SETTLED, ENTERING and FIRED need only their order on one word, which all exchanges have. queue_ (release,
 *  in vez__move_to_room) pairs with vez__core_of (acquire): the monitor of the room.
 * Sources: Hoare, "Monitors" (1974); execution delegation and specific notification: C. Martins (2009).
 */
#include "settle.h"

#include <errno.h>

#include "../futex/probe.h"
#include "ring.h"

/* ---- queues ---- */

/* The count of this queue alone, or NULL. */
static uint32_t *count_of(struct vez__core *c, const vez_request_t *r)
{
	const struct vez__rules *rules = vez__rules_of(r);
	if (rules->queue == VEZ__IN_ROOM)
		return &((vez_room_t *)r->queue_)->length_;
	return rules->length ? (uint32_t *)((char *)c + rules->length) : NULL;
}

static void count(struct vez__core *c, const vez_request_t *r, uint32_t more)
{
	uint32_t *length = count_of(c, r);
	vez__store(&c->length_, c->length_ + more, relaxed);
	if (length)
		vez__store(length, *length + more, relaxed);
}

static VEZ__HOT void queued(struct vez__core *c, vez_request_t *r)
{
	r->state_ |= VEZ__QUEUED;
	count(c, r, 1);
	VEZ__PROBE_REQUEST(queue, r, r->key_);
}

VEZ__HOT void vez__insert(struct vez__core *c, vez_request_t *r)
{
	vez__queue_insert(r->queue_, r);
	queued(c, r);
}

void vez__append(struct vez__core *c, vez_request_t *r)
{
	vez__ring_append(r->queue_, r);
	queued(c, r);
}

static VEZ__HOT void leave_queue(vez_request_t *r)
{
	struct vez__core *c = vez__core_of(r);
	vez__queue_remove(r->queue_, r);
	r->state_ &= ~(VEZ__QUEUED | VEZ__KEPT);
	count(c, r, UINT32_MAX);
}

bool vez__take_out(vez_request_t *r)
{
	if (!vez__word_make_uncancellable(&r->word_))
		return false;
	leave_queue(r);
	return true;
}

void vez__set_aside(vez_request_t *r)
{
	if (r->state_ & VEZ__QUEUED)
		leave_queue(r);
	r->state_ |= VEZ__QUEUED;
}

void vez__move_in(struct vez__stay *in, const struct vez__rules *rules, vez_request_t *r)
{
	r->queue_ = (vez_request_t **)((char *)in->core + rules->queue);
	r->rules_ = rules;
	r->key_ = 0;
	vez__inspect_moved(r, vez__object_of(in->core, rules));
	vez__insert(in->core, r);
}

/* Its limits stay, so a thread may be entering because of one, which finds the monitor by way of either room. */
void vez__move_to_room(struct vez__core *c, vez_request_t **queue, vez_request_t *r)
{
	vez__queue_remove(r->queue_, r);
	count(c, r, UINT32_MAX);
	vez__store(&r->queue_, queue, release);
	vez__insert(c, r);
}

void vez__keep(vez_request_t *r)
{
	if (!vez__word_make_uncancellable(&r->word_))
		r->state_ |= VEZ__KEPT;
}

bool vez__ask_to_retry(struct vez__stay *in, vez_request_t *r)
{
	bool asleep;
	if (!vez__word_ask_to_retry(&r->word_, &asleep))
		return false;
	if (asleep && (r->how_ & VEZ__IN_SLOT)) {
		VEZ__PROBE2(wake, &r->word_, 1);
		in->asked.turn = vez__slot_turn(vez__slot_of(r));
		in->asked.bits |= vez__slot_bit(vez__slot_of(r));
	} else if (asleep) {
		in->pending->wake_ = &r->word_;
	}
	return true;
}

bool vez__roll_back(struct vez__stay *in, uint64_t seen, vez_request_t *r)
{
	const struct vez__rules *rules = vez__rules_of(r);
	if (rules->roll_back)
		return rules->roll_back(in, seen, r);
	uint64_t left = vez__queue_next(r, r) ? seen : seen & ~rules->waiting;
	return !vez__is_marked(rules) || vez__change(in, seen, left - rules->each);
}

/* ---- wait-for-any ---- */

static bool has_yet_to_win(const vez_request_t *r)
{
	return vez__is_member(r) && !(r->state_ & VEZ__WON);
}

bool vez__win(vez_request_t *r)
{
	if (VEZ__LIKELY(!has_yet_to_win(r)))
		return true;
	if (!vez__winner_take(r))
		return false;
	r->state_ |= VEZ__WON;
	return true;
}

enum vez__lost vez__win_both(vez_request_t *first, vez_request_t *second)
{
	if (!has_yet_to_win(second))
		return vez__win(first) ? VEZ__NEITHER : VEZ__FIRST;
	if (!has_yet_to_win(first))
		return vez__win(second) ? VEZ__NEITHER : VEZ__SECOND;
	enum vez__lost lost = vez__winner_take_both(first, second);
	if (lost == VEZ__NEITHER) {
		first->state_ |= VEZ__WON;
		second->state_ |= VEZ__WON;
	}
	return lost;
}

bool vez__drop(struct vez__stay *in, uint64_t seen, vez_request_t *r)
{
	if (vez__roll_back(in, seen, r))
		vez__settle(in, r, ECANCELED);
	return true;
}

bool vez__win_all(struct vez__stay *in, uint64_t seen, vez_request_t *const *queue, size_t count_left)
{
	vez_request_t *r = *queue;
	for (; count_left > 0; count_left--) {
		if (!vez__win(r))
			return !vez__drop(in, seen, r);
		r = vez__queue_next(*queue, r);
	}
	return true;
}

/* ---- settling ---- */

/* One that is cancelled need not win. */
bool vez__decide(vez_request_t *r, int result)
{
	bool won = (result == ECANCELED && !(r->state_ & VEZ__WON)) || vez__win(r);
	r->at_.result_ = won ? result : ECANCELED;
	return won;
}

VEZ__HOT bool vez__settle_own(vez_request_t *r, int result)
{
	leave_queue(r);
	bool won = vez__decide(r, result);
	VEZ__PROBE_REQUEST(grant, r, r->at_.result_);
	return won;
}

/* Remembers also whether the thread that fired is entering because of it. */
VEZ__HOT uint32_t vez__note_settled(vez_request_t *r)
{
	uint32_t before = vez__fetch_or(&r->word_, VEZ__SETTLED, relaxed);
	if ((before & (VEZ__SETTLED | VEZ__FIRED | VEZ__UNCANCELLABLE)) == VEZ__FIRED)
		r->state_ |= VEZ__FIRE_COMES;
	return before;
}

void vez__complete_pending(struct vez__stay *in, vez_request_t *r)
{
	if (r->state_ & VEZ__FILING)
		r->state_ &= ~VEZ__FILING;
	else
		vez__pend(in->pending, r);
}

void vez__expect_for(struct vez__stay *in, vez_request_t *r)
{
	if (r->state_ & VEZ__EXPECTED)
		return;
	r->state_ |= VEZ__EXPECTED;
	vez__expect(in);
}

VEZ__HOT bool vez__settle(struct vez__stay *in, vez_request_t *r, int result)
{
	bool won = vez__settle_own(r, result);
	if (vez__word_is_free(vez__note_settled(r)))
		vez__complete_pending(in, r);
	else
		vez__expect_for(in, r);
	return won;
}

void vez__settle_all(struct vez__stay *in, vez_request_t *const *queue, int result)
{
	while (*queue)
		vez__settle(in, *queue, result);
}

bool vez__settle_unless_leaving(struct vez__stay *in, vez_request_t *r, bool *granted)
{
	if (!vez__word_make_uncancellable(&r->word_))
		return false;
	*granted = vez__settle(in, r, 0);
	return true;
}
