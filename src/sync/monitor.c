/* SPDX-License-Identifier: MIT */
/*
 * The engine: monitors, rooms, and the life of a request.
 *
 * State
 *  monitor  word_     bits 0-1 the lock (futex/lock.h), the rest its synchronizer's
 *           settled_  first and last of the requests settled since the monitor was entered; by the one inside
 *           poked_    the word of a request poked since then, if its thread slept; by the one inside
 *           calls_, owner_, ran_  of a user's: call.c
 *           cohort_   the same as settled_ for requests that sleep as a cohort: a list in no order
 *           async_    the same for requests that no thread waits for: a stack, the latest first
 *           queued_   requests in its rooms; inside
 *           pins_     requests that are queued, or settled but still to be collected by a thread that is coming in;
 *                     inside
 *           retiring_ the request of a thread that destroys the monitor and waits until pins_ is 0; inside
 *  room     queue_    the queued requests, smallest key first, FIFO among equals; inside
 *           length_   how many; written inside, read anywhere
 *           monitor_, ops_  whose it is; written inside when a request is queued there first, constant from then on
 *  request  word_     futex/word.h
 *           place_    links in the room's queue, later (first only) in the monitor's settled list; inside, then the
 *                     leaver
 *           state_    QUEUED from its insertion until it is settled, and KEPT besides from the moment when its limits
 *                     ceased to apply though somebody was coming in because of one. Once settled: FIRE_COMES, who fired
 *                     is coming for it; FIRE_CAME, and has been here. Inside
 *                     ASYNC: no thread waits for it; MEMBER: it belongs to a wait-for-any; both constant while it
 *                     waits. FILING: the call that files this MEMBER is still inside; CLAIMED: it has won; LATE: its
 *                     deadline had passed when it was filed; inside. ARRIVING: it comes to its room from outside, and
 *                     is not yet there; set by who pushes it, cleared inside
 *           kind_     COHORT, if it sleeps with its monitor's cohort, whose word is arg_; how an asynchronous one
 *                     completes (completion.h); constant while it waits
 *           timer_    with a thread: when that is to look again by itself; by that thread. ASYNC: its deadline
 *                     (alarm.c)
 *           result_   written when it is settled, inside; read by its thread after DONE, or after coming in
 * Invariants
 *  M1 a request is in a room's queue exactly while its state is QUEUED; it leaves the queue before its word says DONE.
 *  M2 a settled request is completed by exactly one: by the leaver through the settled list, if neither COMING nor
 *     FIRED was set before SETTLED; else by the last of those who come, its own thread or who ends an asynchronous one
 *     (COMING) and the one that fired (FIRED). A fire that meets a request before SETTLED comes for it whatever else
 *     happens: when it returns, the request is decided.
 *  M3 the monitor is not destroyed while pins_ counts a request, and every thread that will enter it because of a
 *     request is counted by it: who sets COMING or FIRED first does so before SETTLED, so before the settler could
 *     count it out.
 *  M4 the lock is never held while sleeping, waking or calling the kernel (but to enter it, and where two members of
 *     waits-for-any meet: select.c).
 *  M5 a MEMBER is granted only when it is CLAIMED: the first of its wait-for-any to be so (select.c). What is claimed
 *     is granted before the monitor is left.
 * Ordering
 *  vez__monitor_leave (release) pairs with vez__monitor_enter (acquire): all that is "by the one inside".
 *  vez__word_publish (release) pairs with vez__word_wait in vez__request_await (acquire): result_, and what came
 *  before. SETTLED, COMING and FIRED need only their order on one word, which all exchanges have.
 *  A room's monitor_ (release, acquire): its ops_, where a request comes from outside.
 * Progress and fairness
 *  Served by key, then by arrival. Every departure re-evaluates: who gives up serves before it leaves (serve, gave_up).
 *  A thread is woken once, when its call returns; but one that was poked may look in vain (VEZ_BARGING).
 * Lifetime
 *  vez__lock_leave is the last touch of the monitor; then the settled list is private to the leaver, and every request
 *  on it is alive until its own word is published. A thread whose wait ends touches the monitor no more: it enters it
 *  only while M3 holds it.
 * Sources: Hoare, "Monitors" (1974); execution delegation and specific notification: C. Martins (2009).
 */
#include "vez/monitor.h"

#include <string.h>
#include <urcu/list.h>

#include "../futex/futex.h"
#include "../futex/probe.h"
#include "alarm.h"
#include "call.h"
#include "completion.h"
#include "engine.h"
#include "inspect.h"
#include "select.h"

#define QUEUED 1u /* state_ */
#define KEPT 2u
#define FIRE_COMES 4u
#define FIRE_CAME 8u
#define ASYNC 32u
#define MEMBER 64u
#define FILING 128u
#define CLAIMED 256u
#define LATE 512u
#define ARRIVING 1024u
#define PATIENCE_NS 1000000

static struct cds_list_head *queue_of(const vez_room_t *room)
{
	return (struct cds_list_head *)room->queue_;
}

static struct cds_list_head *place_of(const vez_request_t *r)
{
	return (struct cds_list_head *)r->place_;
}

static vez_request_t *request_at(struct cds_list_head *place)
{
	return (vez_request_t *)((char *)place - offsetof(vez_request_t, place_));
}

void vez_room_init(vez_room_t *room)
{
	memset(room, 0, sizeof *room);
}

vez_request_t *vez_room_first(const vez_room_t *room)
{
	struct cds_list_head *queue = queue_of(room);
	return queue->next && queue->next != queue ? request_at(queue->next) : NULL;
}

vez_request_t *vez_room_next(const vez_room_t *room, const vez_request_t *r)
{
	struct cds_list_head *next = place_of(r)->next;
	return next != queue_of(room) ? request_at(next) : NULL;
}

size_t vez_room_length(const vez_room_t *room)
{
	return (size_t)vez__load(&room->length_, relaxed);
}

/* The place after which a request with this key belongs. */
static struct cds_list_head *place_before(vez_room_t *room, int64_t key)
{
	struct cds_list_head *queue = queue_of(room);
	struct cds_list_head *place = queue->prev;
	while (place != queue && request_at(place)->key_ > key)
		place = place->prev;
	return place;
}

static vez_monitor_t *monitor_of(const vez_request_t *r)
{
	return vez__load(&r->room_->monitor_, relaxed);
}

static const struct vez__ops *ops_of(const vez_request_t *r)
{
	return vez__load(&r->room_->ops_, relaxed);
}

/* What who is in this room waits for. */
static const void *object_of(const vez_monitor_t *m, const struct vez__ops *ops)
{
	return (const char *)m - (ops ? ops->offset : 0);
}

static enum vez__type type_of(const vez_monitor_t *m, const vez_room_t *room, const struct vez__ops *ops)
{
	if (room == &m->calls_)
		return VEZ__CALL;
	return ops ? ops->type : VEZ__MONITOR;
}

static void enter_room(vez_monitor_t *m, vez_room_t *room, vez_request_t *r, const struct vez__ops *ops)
{
	r->room_ = room;
	if (VEZ__LIKELY(vez__load(&room->monitor_, acquire) == m))
		return;
	vez__store(&room->ops_, ops, relaxed);
	vez__store(&room->monitor_, m, release);
}

static bool is_late(const vez_request_t *r)
{
	return vez__timer_is_set(&r->timer_) && vez__deadline_passed(vez__timer_at(&r->timer_));
}

/* From here on its token's fire ends it. False: it is fired. */
static bool enlist(vez_request_t *r)
{
	return !r->cancel_ || vez__cancel_enlist(r);
}

/* An asynchronous one: from here on its deadline ends it. */
static void set_alarm(vez_request_t *r)
{
	if (vez__timer_is_set(&r->timer_))
		vez__alarm_set(r);
}

/* A member that is filed all the same: vez__request_filed ends it. */
static void note_late(vez_request_t *r)
{
	r->state_ |= LATE;
	vez__timer_to(&r->timer_, VEZ_FOREVER);
}

bool vez__request_prepare(vez_monitor_t *m, vez_room_t *room, vez_request_t *r, const struct vez__ops *ops)
{
	const vez_cancel_t *token = r->cancel_;
	enter_room(m, room, r, ops);
	vez__inspect_place(r, object_of(m, ops), type_of(m, room, ops));
	if (!enlist(r))
		return false;
	if (r->state_ & ASYNC) {
		vez__fetch_or(&r->word_, VEZ__ASYNC, release);
		if (vez__inspecting())
			vez__inspect_file(r, object_of(m, ops), type_of(m, room, ops), token);
		if ((r->state_ & MEMBER) && is_late(r))
			note_late(r);
		else
			set_alarm(r);
	}
	return true;
}

void vez__request_arrive(vez_monitor_t *m, vez_room_t *room, vez_request_t *r, const struct vez__ops *ops)
{
	enter_room(m, room, r, ops);
	r->state_ |= ARRIVING;
	vez__inspect_place(r, object_of(m, ops), type_of(m, room, ops));
	if (!(r->state_ & ASYNC))
		return;
	vez__fetch_or(&r->word_, VEZ__ASYNC, release);
	if (vez__inspecting())
		vez__inspect_file(r, object_of(m, ops), type_of(m, room, ops), r->cancel_);
}

void vez__request_in_cohort(vez_monitor_t *m, vez_request_t *r)
{
	if (r->cancel_ || (r->state_ & ASYNC))
		return;
	r->kind_ = VEZ__COHORT;
	r->arg_ = vez__word_cohort(m);
}

bool vez__request_is_async(const vez_request_t *r)
{
	return r->state_ & ASYNC;
}

bool vez__request_must_queue(const vez_request_t *r)
{
	return r->state_ & MEMBER;
}

void vez__request_look_again(vez_request_t *r, vez_deadline_t at)
{
	vez__timer_to(&r->timer_, at);
}

/* For probes, if they are there: the word on which the thread of r sleeps. */
__attribute__((unused)) static const void *futex_of(const vez_request_t *r)
{
	if (r->state_ & ASYNC)
		return NULL;
	return r->kind_ == VEZ__COHORT ? r->arg_ : &r->word_;
}

#define PROBE(name, r, value) VEZ__PROBE4(name, object_of(monitor_of(r), ops_of(r)), r, futex_of(r), value)

static struct cds_list_head *queue_made(vez_room_t *room)
{
	if (!queue_of(room)->next)
		CDS_INIT_LIST_HEAD(queue_of(room));
	return queue_of(room);
}

/* Queues r behind this place. */
static void insert_behind(struct cds_list_head *place, vez_request_t *r)
{
	vez_monitor_t *m = monitor_of(r);
	cds_list_add(place_of(r), place);
	r->state_ |= QUEUED;
	m->queued_++;
	m->pins_++;
	vez__store(&r->room_->length_, r->room_->length_ + 1, relaxed);
	PROBE(queue, r, r->key_);
}

/* The same for the call that files it. */
static void file_behind(struct cds_list_head *place, vez_request_t *r)
{
	insert_behind(place, r);
	if (r->state_ & MEMBER)
		r->state_ |= FILING;
}

void vez__request_insert(vez_request_t *r)
{
	queue_made(r->room_);
	file_behind(place_before(r->room_, r->key_), r);
}

void vez__request_insert_last(vez_request_t *r)
{
	file_behind(queue_made(r->room_)->prev, r);
}

void vez__request_gather(vez_monitor_t *m, vez_request_t *r)
{
	bool live = enlist(r);
	if (!live)
		r->cancel_ = NULL;
	if (r->state_ & ASYNC) {
		if (live)
			set_alarm(r);
		else
			vez__timer_to(&r->timer_, VEZ_FOREVER);
	}
	r->state_ &= ~ARRIVING;
	insert_behind(queue_made(r->room_)->prev, r);
	if (!live)
		vez_monitor_settle(m, r, ECANCELED);
}

bool vez__request_settled(const vez_request_t *r)
{
	return !(r->state_ & QUEUED);
}

bool vez__request_lost_patience(vez_request_t *r)
{
	bool waits = vez__timer_is_set(&r->timer_);
	bool lost = waits && vez__deadline_passed(vez__timer_at(&r->timer_));
	if (lost)
		vez__request_look_again(r, VEZ_FOREVER);
	else if (!waits)
		vez__request_look_again(r, vez_after_ns(PATIENCE_NS));
	return lost;
}

static void leave_room(vez_request_t *r)
{
	cds_list_del(place_of(r));
	monitor_of(r)->queued_--;
	r->state_ &= ~(QUEUED | KEPT);
	vez__store(&r->room_->length_, r->room_->length_ - 1, relaxed);
}

bool vez__request_claim(vez_request_t *r)
{
	if (VEZ__LIKELY(!(r->state_ & MEMBER)) || (r->state_ & CLAIMED))
		return true;
	if (!vez__select_claim(r))
		return false;
	r->state_ |= CLAIMED;
	return true;
}

enum vez__lost vez__request_claim_both(vez_request_t *first, vez_request_t *second)
{
	if (!(second->state_ & MEMBER) || (second->state_ & CLAIMED))
		return vez__request_claim(first) ? VEZ__NEITHER : VEZ__FIRST;
	if (!(first->state_ & MEMBER) || (first->state_ & CLAIMED))
		return vez__request_claim(second) ? VEZ__NEITHER : VEZ__SECOND;
	enum vez__lost lost = vez__select_claim_both(first, second);
	if (lost == VEZ__NEITHER) {
		first->state_ |= CLAIMED;
		second->state_ |= CLAIMED;
	}
	return lost;
}

/* Decides the result. False: it is lost, to another member of its wait-for-any. Who is cancelled claims nothing. */
static bool decide(vez_request_t *r, int result)
{
	bool won = (result == ECANCELED && !(r->state_ & CLAIMED)) || vez__request_claim(r);
	r->result_ = won ? result : ECANCELED;
	return won;
}

static int begin_async(vez_request_t *r)
{
	vez__store(&r->word_, 0, relaxed);
	r->state_ = ASYNC;
	if (r->kind_ == VEZ__MEMBER) {
		r->state_ |= MEMBER;
		if (vez__select_file(r))
			return ECANCELED;
	}
	if (r->cancel_ && vez_cancel_fired(r->cancel_))
		return ECANCELED;
	return vez__timer_is_set(&r->timer_) ? vez__alarm_start() : 0;
}

int vez__async_begin(vez_request_t *r)
{
	vez__inspect_ready();
	return begin_async(r);
}

bool vez__async_waits(const vez_request_t *r)
{
	return (r->state_ & MEMBER) || !is_late(r);
}

int vez__async_end(vez_request_t *r, int rc)
{
	vez__alarm_tell(); /* also for a member that was prepared, and then not queued */
	if (rc == EINPROGRESS)
		return rc;
	decide(r, rc);
	rc = r->result_;
	bool member = r->state_ & MEMBER;
	if (vez__load(&r->word_, relaxed) & VEZ__ASYNC)
		vez__forget_limits(r);
	vez__store(&r->word_, VEZ__DONE, release);
	if (member)
		vez__select_decided(r);
	return rc;
}

static void settle_own(vez_request_t *r, int result)
{
	leave_room(r);
	decide(r, result);
}

void vez__request_settle_own(vez_request_t *r, int result)
{
	settle_own(r, result);
	PROBE(grant, r, r->result_);
}

bool vez__request_take_out(vez_request_t *r)
{
	if (!vez__word_deafen(&r->word_))
		return false;
	leave_room(r);
	monitor_of(r)->pins_--;
	return true;
}

void vez__request_move_in(vez_monitor_t *m, vez_room_t *room, vez_request_t *r, const struct vez__ops *ops)
{
	enter_room(m, room, r, ops);
	vez__inspect_moved(r, object_of(m, ops));
	r->key_ = 0;
	vez__request_insert(r);
}

void vez__request_keep(vez_request_t *r)
{
	if (!vez__word_deafen(&r->word_))
		r->state_ |= KEPT;
}

/* Has the leaver publish r. */
static void append_settled(vez_monitor_t *m, vez_request_t *r)
{
	r->place_[0] = NULL;
	if (m->settled_[0])
		m->settled_[1]->place_[0] = r;
	else
		m->settled_[0] = r;
	m->settled_[1] = r;
}

/* One request less that may bring a thread in. */
static void unpin(vez_monitor_t *m)
{
	if (--m->pins_ == 0 && VEZ__UNLIKELY(m->retiring_ != NULL)) {
		append_settled(m, m->retiring_);
		m->retiring_ = NULL;
	}
}

/* Counts a settled request out and has the leaver publish it. */
static void complete(vez_monitor_t *m, vez_request_t *r)
{
	if (r->kind_ == VEZ__COHORT) {
		r->place_[0] = m->cohort_;
		m->cohort_ = r;
	} else if (r->state_ & FILING) {
		r->state_ &= ~FILING;
	} else if (r->state_ & ASYNC) {
		r->place_[0] = m->async_;
		m->async_ = r;
	} else {
		append_settled(m, r);
	}
	unpin(m);
}

/* Tells in the word that r is settled, and remembers whether who fired is coming for it. Returns the word before. */
static uint32_t note_settled(vez_request_t *r)
{
	uint32_t before = vez__fetch_or(&r->word_, VEZ__SETTLED, relaxed);
	if ((before & (VEZ__SETTLED | VEZ__FIRED | VEZ__DEAF)) == VEZ__FIRED)
		r->state_ |= FIRE_COMES;
	return before;
}

/* A request that is queued nowhere: its result is known from here on, and its wait-for-any is told when the monitor has
 * been left. */
static bool settle_unfiled(vez_monitor_t *m, vez_request_t *r, int result)
{
	int refused = begin_async(r);
	bool won = decide(r, refused ? refused : result) && !refused;
	vez_request_set_limits(r, VEZ_FOREVER, NULL);
	vez__store(&r->word_, VEZ__DONE, release);
	if (r->state_ & MEMBER) {
		m->pins_++;
		complete(m, r);
	}
	return won;
}

bool vez_monitor_settle(vez_monitor_t *m, vez_request_t *r, int result)
{
	if (VEZ__UNLIKELY(!(r->state_ & QUEUED)))
		return settle_unfiled(m, r, result);
	leave_room(r);
	bool won = decide(r, result);
	PROBE(grant, r, r->result_);
	if (vez__word_is_free(note_settled(r)))
		complete(m, r);
	return won;
}

/* Whether r, which is queued, has taken back what it claims; false: it was settled first. */
static bool withdraw(vez_monitor_t *m, vez_request_t *r)
{
	const struct vez__ops *ops = ops_of(r);
	while (ops) {
		uint64_t seen = vez__load(&m->word_, relaxed);
		if (ops->serve && ops->serve(m, seen)) {
			if (vez__request_settled(r))
				return false;
		} else if (!ops->take_back || ops->take_back(m, seen, r)) {
			break;
		}
	}
	return true;
}

/* Ends a queued request with this cause, unless it turns out to be granted. */
static void give_up(vez_monitor_t *m, vez_request_t *r, int cause)
{
	if (!withdraw(m, r))
		return;
	settle_own(r, cause);
	PROBE(giveup, r, cause);
	if (!m->gave_up_ || r->room_ == &m->calls_)
		return;
	vez__monitor_own(m, true);
	m->gave_up_(m, r->room_, r);
	vez__monitor_own(m, false);
}

/* Inside, who claimed r: ends it with this cause, unless it is settled. True: so it ended, and nobody else has
 * to come. */
static bool end_inside(vez_monitor_t *m, vez_request_t *r, int cause)
{
	bool ended = false;
	if (!vez__request_settled(r)) {
		give_up(m, r, cause);
		ended = r->result_ == cause;
		note_settled(r);
	}
	bool last = (r->state_ & (FIRE_COMES | FIRE_CAME)) != FIRE_COMES;
	if (last)
		complete(m, r);
	else
		vez__word_go_back(&r->word_);
	return ended && last;
}

bool vez__request_drop(vez_monitor_t *m, uint64_t seen, vez_request_t *r)
{
	if (ops_of(r)->take_back(m, seen, r))
		vez_monitor_settle(m, r, ECANCELED);
	return true;
}

bool vez__room_claim(vez_monitor_t *m, uint64_t seen, vez_room_t *room, size_t count)
{
	vez_request_t *r = count > 0 ? vez_room_first(room) : NULL;
	for (; count > 0; count--) {
		if (!vez__request_claim(r))
			return !vez__request_drop(m, seen, r);
		r = vez_room_next(room, r);
	}
	return true;
}

int vez__request_filed(vez_monitor_t *m, vez_request_t *r)
{
	if (VEZ__LIKELY(!(r->state_ & MEMBER)))
		return EINPROGRESS;
	const struct vez__ops *ops = ops_of(r);
	while (ops && ops->serve && ops->serve(m, vez__load(&m->word_, relaxed)))
		;
	if (!vez__request_settled(r) && (r->state_ & LATE) && vez__word_claim(&r->word_))
		end_inside(m, r, ETIMEDOUT);
	bool got = vez__request_settled(r) && !(r->state_ & FILING);
	r->state_ &= ~FILING;
	return got ? r->result_ : EINPROGRESS;
}

bool vez__request_poke(vez_monitor_t *m, vez_request_t *r)
{
	bool asleep;
	if (!vez__word_poke(&r->word_, &asleep))
		return false;
	if (asleep)
		m->poked_ = &r->word_;
	return true;
}

static uint32_t *next_settled(uint32_t *word)
{
	vez_request_t *r = (vez_request_t *)((char *)word - offsetof(vez_request_t, word_));
	vez_request_t *next = r->place_[0];
	return next ? &next->word_ : NULL;
}

/* What the one inside has to do when it has left. */
struct owed {
	vez_request_t *settled;
	vez_request_t *cohort;
	vez_request_t *async;
	uint32_t *poked;
};

static struct owed take_owed(vez_monitor_t *m, struct owed kept)
{
	struct owed owed = { m->settled_[0], m->cohort_, m->async_, m->poked_ };
	m->settled_[0] = kept.settled;
	m->cohort_ = kept.cohort;
	m->async_ = kept.async;
	m->poked_ = kept.poked;
	return owed;
}

static void pay(vez_monitor_t *m, struct owed owed)
{
	if (owed.poked)
		vez__futex_wake(owed.poked);
	if (owed.settled)
		vez__word_publish(&owed.settled->word_, next_settled);
	if (owed.cohort)
		vez__word_publish_in(&owed.cohort->word_, next_settled, vez__word_cohort(m));
	if (owed.async)
		vez__complete(owed.async);
}

void vez__monitor_leave(vez_monitor_t *m, const struct vez__ops *ops)
{
	for (;;) {
		uint64_t seen = vez__load(&m->word_, relaxed);
		if (ops && ops->serve && ops->serve(m, seen))
			continue;
		if (VEZ__LIKELY(vez__monitor_owes_nothing(m))) {
			if (vez__lock_leave(&m->word_, seen, seen))
				break;
			continue;
		}
		struct owed owed = take_owed(m, (struct owed){ NULL, NULL, NULL, NULL });
		if (vez__lock_leave(&m->word_, seen, seen)) {
			pay(m, owed);
			break;
		}
		take_owed(m, owed);
	}
	if (ops && ops->gathers)
		vez__alarm_tell();
}

void vez__monitor_leave_owing(vez_monitor_t *m, struct vez__owed *owed)
{
	vez_request_t *async = m->async_;
	if (m->settled_[0]) {
		if (owed->settled[0])
			owed->settled[1]->place_[0] = m->settled_[0];
		else
			owed->settled[0] = m->settled_[0];
		owed->settled[1] = m->settled_[1];
	}
	if (async) {
		vez_request_t *oldest = async;
		while (oldest->place_[0])
			oldest = oldest->place_[0];
		oldest->place_[0] = owed->async;
		owed->async = async;
	}
	m->settled_[0] = m->async_ = NULL;
	vez__lock_exit(&m->word_);
}

void vez__pay(const struct vez__owed *owed)
{
	pay(NULL, (struct owed){ .settled = owed->settled[0], .async = owed->async });
}

bool vez__request_take(vez_monitor_t *m, vez_request_t *r, bool *granted)
{
	if (!vez__word_deafen(&r->word_))
		return false;
	*granted = vez_monitor_settle(m, r, 0);
	return true;
}

bool vez__request_is_leaving(const vez_request_t *r)
{
	return !vez__word_is_free(vez__load(&r->word_, relaxed));
}

/* Inside: the request's thread looks whether it can go, and gives up if its limit has passed. */
static void look_or_give_up(vez_monitor_t *m, vez_request_t *r, bool expired)
{
	const struct vez__ops *ops = ops_of(r);
	if (ops && ops->look)
		ops->look(m, r);
	uint32_t word = vez__load(&r->word_, relaxed);
	/* DEAF: its deadline may have passed just before it was moved here and poked. */
	if (!vez__request_settled(r) && expired && !(word & VEZ__DEAF))
		give_up(m, r, word & VEZ__FIRED ? ECANCELED : ETIMEDOUT);
}

/* Inside: the request's thread has come. True: the request is settled, and its result is this thread's to take. False:
 * it stays, or who fired its token is still to come. */
static bool has_come(vez_monitor_t *m, vez_request_t *r, bool expired)
{
	if (r->state_ & KEPT) {
		vez__word_keep(&r->word_, true);
		return false;
	}
	if (!vez__request_settled(r)) {
		look_or_give_up(m, r, expired);
		if (vez__request_settled(r))
			note_settled(r);
	}
	bool takes = vez__request_settled(r) && (r->state_ & (FIRE_COMES | FIRE_CAME)) != FIRE_COMES;
	if (!takes)
		vez__word_go_back(&r->word_);
	return takes;
}

/* The request's thread, which is COMING, comes in. Whether it takes the result. It holds, as whoever comes because of a
 * request does: what a handler of the thread settles meanwhile is completed after. */
static bool come_in(vez_request_t *r, bool expired)
{
	vez_monitor_t *m = monitor_of(r);
	const struct vez__ops *ops = ops_of(r);
	vez__enter_holding(m);
	if (ops && ops->came)
		ops->came(m);
	bool takes = has_come(m, r, expired);
	if (takes)
		unpin(m);
	vez__monitor_leave(m, ops);
	vez__let_go();
	return takes;
}

void vez__request_cancel_fired(vez_request_t *r)
{
	vez_monitor_t *m = monitor_of(r);
	const struct vez__ops *ops = ops_of(r);
	vez__enter_holding(m);
	if (r->state_ & KEPT) {
		vez__word_keep(&r->word_, false);
	} else {
		if (!vez__request_settled(r))
			give_up(m, r, ECANCELED);
		r->state_ |= FIRE_CAME;
		if (!(vez__load(&r->word_, relaxed) & VEZ__COMING))
			complete(m, r);
	}
	vez__monitor_leave(m, ops);
	vez__let_go();
}

bool vez__request_end_claimed(vez_request_t *r, int cause)
{
	vez_monitor_t *m = monitor_of(r);
	const struct vez__ops *ops = ops_of(r);
	vez__enter_holding(m);
	bool here = !(r->state_ & ARRIVING);
	bool ended = here && end_inside(m, r, cause);
	if (!here)
		vez__word_go_back(&r->word_);
	vez__monitor_leave(m, ops);
	vez__let_go();
	return ended;
}

/* Sleeps until there is something to do: true, and the thread is COMING; false, the request is DONE. */
static bool sleep_until_called(vez_request_t *r, uint32_t *cohort, vez_deadline_t *deadline, bool *expired)
{
	for (;;) {
		vez_deadline_t again = vez__timer_at(&r->timer_);
		vez_deadline_t limit = *deadline < again ? *deadline : again;
		uint32_t seen = vez__word_wait_in(&r->word_, cohort, VEZ__DONE | VEZ__COMING, limit);
		if (seen & VEZ__DONE)
			return false;
		*expired = !(seen & VEZ__COMING) && limit == *deadline;
		if (*expired ? vez__word_come(&r->word_) : vez__word_look(&r->word_))
			return true;
		/* Settled, or about to be cancelled, and whoever sees to that is on its way; or moved, to wait without
		 * limit, but still to look again. */
		*deadline = VEZ_FOREVER;
		if (!*expired)
			vez__request_look_again(r, VEZ_FOREVER);
	}
}

/* The same where inspection finds it. */
static inline bool sleep_shown(const struct vez__shown *shown, vez_request_t *r, uint32_t *cohort,
			       vez_deadline_t *deadline, bool *expired)
{
	vez__inspect_show(shown);
	bool called = sleep_until_called(r, cohort, deadline, expired);
	vez__inspect_hide(shown);
	return called;
}

int vez__request_await(vez_request_t *r, vez_deadline_t deadline)
{
	uint32_t *cohort = r->kind_ == VEZ__COHORT ? r->arg_ : NULL;
	struct vez__shown shown;
	bool expired;
	vez__inspect_begin(&shown, r, deadline);
	while (sleep_shown(&shown, r, cohort, &deadline, &expired) && !come_in(r, expired)) {
	}
	vez__cancel_delist(r);
	return r->result_;
}

void vez_monitor_init(vez_monitor_t *m, void (*gave_up)(vez_monitor_t *m, vez_room_t *room, vez_request_t *r))
{
	memset(m, 0, sizeof *m);
	m->gave_up_ = gave_up;
}

int vez_monitor_destroy(vez_monitor_t *m)
{
	uint64_t seen = vez__load(&m->word_, relaxed);
	int rc = EBUSY;
	vez__hold();
	if (!(seen & VEZ__LOCKED) && vez__cas(&m->word_, &seen, seen | VEZ__LOCKED, acquire)) {
		m->ran_ = 0;
		vez__calls_gather(m);
		rc = vez__monitor_retire(m, &vez__user_ops, false);
	}
	vez__let_go();
	return rc;
}

int vez__monitor_retire(vez_monitor_t *m, const struct vez__ops *ops, bool held)
{
	vez_request_t last;
	bool used = held || m->queued_ > 0;
	bool waits = !used && m->pins_ > 0;
	last.word_ = 0;
	if (waits)
		m->retiring_ = &last;
	vez__monitor_leave(m, used ? ops : NULL);
	if (waits)
		vez__word_wait(&last.word_, VEZ__DONE, VEZ_FOREVER);
	return used ? EBUSY : 0;
}

void vez_monitor_enter(vez_monitor_t *m)
{
	vez__inspect_ready();
	vez__enter_holding(m);
	vez__monitor_own(m, true);
	m->ran_ = 0;
}

void vez_monitor_exit(vez_monitor_t *m)
{
	vez__monitor_own(m, false);
	vez__monitor_leave(m, &vez__user_ops);
	vez__let_go();
}

int vez_monitor_wait(vez_monitor_t *m, vez_room_t *room, vez_request_t *r, vez_deadline_t deadline,
		     vez_cancel_t *cancel)
{
	int refused = vez__limits_refuse(deadline, cancel);
	vez__request_mine(r, r->key_, cancel);
	if (!refused && !vez__request_prepare(m, room, r, &vez__user_ops))
		refused = ECANCELED;
	if (!refused)
		vez__request_insert(r);
	vez_monitor_exit(m);
	return refused ? refused : vez__request_await(r, deadline);
}

int vez_monitor_wait_async(vez_monitor_t *m, vez_room_t *room, vez_request_t *r)
{
	int rc = begin_async(r);
	if (rc == 0 && is_late(r))
		rc = ETIMEDOUT;
	if (rc == 0 && !vez__request_prepare(m, room, r, &vez__user_ops))
		rc = ECANCELED;
	if (rc == 0) {
		vez__request_insert(r);
		rc = vez__request_filed(m, r);
	}
	vez_monitor_exit(m);
	return vez__async_end(r, rc);
}
