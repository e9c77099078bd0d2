/* SPDX-License-Identifier: MIT */
/*
 * What calls leave to the library's thread.
 *
 * State
 *  guard     a short lock
 *  functions requests whose functions are to be called, in order: a ring; inside guard
 *  taken     those that come before: a list; the library's thread's
 *  handed    how many there ever were; inside guard. returned: how many of them have been called, and have returned;
 *            written by the library's thread
 *  places    objects to be entered, and how; those up to most were ever used, turn is the one that was taken last;
 *            inside guard
 *  process   how many forks lie between this one and the first; a part of tickets, so that those of the parent are
 *            known
 *  asks      of each thread: it has taken a place, and has yet to see to it that there is a thread
 *  helps     of each thread: it does what the library's thread would do
 * Invariants
 *  H1 a request on functions is settled, and belongs to whoever takes it off; its owner has it when its run has begun
 *     (completion.c P2).
 *  H2 an object in a place is there: its core expects the thread that is to enter (core.c C3). It is taken off by that
 *     thread, which then enters, or inside the object, by who destroys it.
 *  H3 guard is innermost: nothing is entered, woken or called inside it, and whoever is inside it holds (hold.h).
 *  H4 what is left is seen: it is left before the bell is rung (alarm.c), and looked for after the bell was silenced.
 * Ordering
 *  guard orders what is left with who takes it. returned (release) pairs with vez__rest_returned (acquire): what a
 *  function did comes before whatever its leaver calls later.
 * Progress: functions are called in the order in which they were left, objects entered in turn.
 * fork: the child has nothing of it.
 */
#include "rest.h"

#include <string.h>

#include "../futex/fork.h"
#include "../futex/lock.h"
#include "alarm.h"
#include "clock.h"
#include "hold.h"

#define PLACE_BITS 9
#define PLACES 256

static uint64_t guard;
static struct vez__pending functions;
static vez_request_t *taken;
static uint64_t handed, returned;
static struct {
	void *object;
	void (*enter)(void *object);
} places[PLACES];
static uint32_t most, turn;
static uint32_t process;
static __thread struct {
	bool asks;
	bool helps;
} mine __attribute__((tls_model("initial-exec")));

/* ---- functions ---- */

uint64_t vez__rest_hand(struct vez__pending *more, uint32_t count)
{
	vez__lock_enter(&guard);
	if (functions.last_) {
		vez_request_t *first = functions.last_->next_;
		functions.last_->next_ = more->last_->next_;
		more->last_->next_ = first;
	}
	functions.last_ = more->last_;
	uint64_t number = handed += count;
	vez__lock_exit(&guard);
	more->last_ = NULL;
	return number;
}

uint64_t vez__rest_returned(void)
{
	return vez__load(&returned, acquire);
}

/* Takes over all that has been left. */
static void take_functions(void)
{
	vez__lock_holding(&guard);
	taken = vez__pending_take(&functions);
	vez__unlock_holding(&guard);
}

vez_request_t *vez__rest_next(void)
{
	if (!taken)
		take_functions();
	vez_request_t *r = taken;
	if (r)
		taken = r->next_;
	return r;
}

void vez__rest_note_returned(void)
{
	vez__store(&returned, returned + 1, release);
}

/* ---- objects ---- */

/* Inside guard: a place that nothing is in; 0: there is none. */
static uint32_t free_place(void)
{
	uint32_t place = 1;
	while (place <= PLACES && places[place - 1].object)
		place++;
	return place <= PLACES ? place : 0;
}

uint32_t vez__rest_ask(void *object, void (*enter)(void *object))
{
	if (vez__clock_stops())
		return 0;
	vez__lock_enter(&guard);
	uint32_t place = free_place();
	if (place) {
		places[place - 1].object = object;
		places[place - 1].enter = enter;
		most = place > most ? place : most;
	}
	vez__lock_exit(&guard);
	if (!place)
		return 0;
	mine.asks = true;
	vez__alarm_owe();
	return process << PLACE_BITS | place;
}

static bool is_parents(uint32_t ticket)
{
	return (ticket ^ process << PLACE_BITS) >> PLACE_BITS;
}

bool vez__rest_comes(uint32_t ticket)
{
	return !is_parents(ticket) && !vez__clock_stops();
}

bool vez__rest_withdraw(uint32_t ticket, const void *object)
{
	if (is_parents(ticket))
		return true;
	uint32_t place = ticket & ((1u << PLACE_BITS) - 1);
	vez__lock_enter(&guard);
	bool there = places[place - 1].object == object;
	if (there)
		places[place - 1].object = NULL;
	vez__lock_exit(&guard);
	return there;
}

/* Takes the next one off; NULL: there is none. */
static void *take_next(void (**enter)(void *object))
{
	void *object = NULL;
	vez__lock_holding(&guard);
	for (uint32_t looked = 0; looked < most && !object; looked++) {
		turn = (turn + 1) % most;
		object = places[turn].object;
		*enter = places[turn].enter;
		places[turn].object = NULL;
	}
	vez__unlock_holding(&guard);
	return object;
}

bool vez__rest_enter(void)
{
	void (*enter)(void *object);
	void *object = take_next(&enter);
	if (object)
		enter(object);
	return object;
}

void vez__rest_tell(void)
{
	if (!mine.asks || mine.helps)
		return;
	mine.asks = vez__clock_start() != 0;
	if (!mine.asks)
		return;
	if (vez__holding.count > 1) { /* it may be inside one of the objects */
		vez__alarm_owe();
		return;
	}
	mine.helps = true;
	while (vez__rest_enter())
		;
	mine.helps = false;
	mine.asks = false;
}

void vez__rest_forget(void)
{
	guard = 0;
	functions.last_ = NULL;
	taken = NULL;
	handed = returned = 0;
	memset(places, 0, sizeof places);
	most = turn = 0;
	process++;
	mine.asks = mine.helps = false;
}

VEZ__AT_FORK(NULL, NULL, vez__rest_forget)
