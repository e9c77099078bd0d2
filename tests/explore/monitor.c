/* SPDX-License-Identifier: MIT */
/* Scenarios of the engine (vez/monitor.h): a semaphore built on it, as a user would, and a buffer with two rooms. */
#include "vez/monitor.h"

#include <errno.h>

#include "scenario.h"
#include "src/futex/atomic.h"

static vez_monitor_t m;
static vez_room_t room, other_room;
static uint64_t permits;
static int told;
static int rc[X_THREADS];

static void serve(void)
{
	vez_request_t *r;
	while ((r = vez_room_first(&room)) && vez_request_value(r) <= permits) {
		permits -= vez_request_value(r);
		vez_monitor_settle(&m, r, 0);
	}
}

static void gave_up(vez_monitor_t *monitor, vez_room_t *left, vez_request_t *r)
{
	(void)monitor;
	(void)left;
	(void)r;
	serve();
}

static int acquire(uint64_t n, int64_t key, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	vez_request_t r = VEZ_REQUEST_INITIALIZER;
	vez_request_set_key(&r, key);
	vez_request_set_value(&r, NULL, n);
	vez_monitor_enter(&m);
	if (!vez_room_first(&room) && permits >= n) {
		permits -= n;
		vez_monitor_exit(&m);
		return 0;
	}
	return vez_monitor_wait(&m, &room, &r, deadline, cancel);
}

static void release(uint64_t n)
{
	vez_monitor_enter(&m);
	permits += n;
	serve();
	vez_monitor_exit(&m);
}

static void make(uint64_t free_permits)
{
	x_alive(&m, sizeof m);
	X_NAME(m);
	X_NAME(room);
	vez_monitor_init(&m, gave_up);
	vez_room_init(&room);
	vez_room_init(&other_room);
	permits = free_permits;
	told = 0;
	for (int i = 0; i < X_THREADS; i++)
		rc[i] = -1;
}

static void make_0(void)
{
	make(0);
}

static void make_1(void)
{
	make(1);
}

static void left(uint64_t free_permits)
{
	x_assert(vez_room_length(&room) == 0);
	x_assert(permits == free_permits);
	x_assert(vez_monitor_destroy(&m) == 0);
}

static void left_0(void)
{
	left(0);
}

static void acquire_told(void)
{
	x_assert(acquire(1, 0, VEZ_FOREVER, NULL) == 0);
	x_assert(told == 1);
}

static void tell_and_release(void)
{
	told = 1;
	release(1);
}

static void acquire_one(void)
{
	x_assert(acquire(1, 0, VEZ_FOREVER, NULL) == 0);
}

static void release_one(void)
{
	release(1);
}

static void release_two(void)
{
	release(2);
}

X_SCENARIO(monitor_handoff, .setup = make_0, .thread = { acquire_told, tell_and_release }, .check = left_0, .stale = 2);
X_SCENARIO(monitor_two_waiters, .setup = make_0, .thread = { acquire_one, acquire_one, release_two },
	   .check = left_0);
X_SCENARIO(monitor_two_releases, .setup = make_0, .thread = { acquire_one, release_one, acquire_one, release_one },
	   .check = left_0, .preemptions = 2, .random = 20000);

/* ---- giving up ---- */

static void acquire_until(void)
{
	rc[0] = acquire(1, 0, x_soon(), NULL);
	x_assert(rc[0] == 0 || rc[0] == ETIMEDOUT);
}

static void left_if_expired(void)
{
	left(rc[0] == 0 ? 0 : 1);
}

static void big_head(void)
{
	x_assert(acquire(2, 0, x_soon(), NULL) == ETIMEDOUT);
}

X_SCENARIO(monitor_deadline, .setup = make_0, .thread = { acquire_until, release_one }, .check = left_if_expired);
X_SCENARIO(monitor_deadline_two, .setup = make_0, .thread = { acquire_until, acquire_one, release_two },
	   .check = left_if_expired);
X_SCENARIO(monitor_big_head, .setup = make_1, .thread = { big_head, acquire_one }, .check = left_0);

static vez_cancel_t token;

static void make_token(void)
{
	X_NAME(token);
	vez_cancel_init(&token);
	make(0);
}

static void make_token_1(void)
{
	X_NAME(token);
	vez_cancel_init(&token);
	make(1);
}

static void acquire_cancelled(void)
{
	x_assert(acquire(1, 0, VEZ_FOREVER, &token) == ECANCELED);
}

static void big_head_cancelled(void)
{
	x_assert(acquire(2, 0, VEZ_FOREVER, &token) == ECANCELED);
}

static void acquire_or_cancelled(void)
{
	rc[0] = acquire(1, 0, VEZ_FOREVER, &token);
	x_assert(rc[0] == 0 || rc[0] == ECANCELED);
}

static void acquire_limited(void)
{
	rc[0] = acquire(1, 0, x_soon(), &token);
	x_assert(rc[0] == 0 || rc[0] == ECANCELED || rc[0] == ETIMEDOUT);
}

static void fire(void)
{
	vez_cancel_fire(&token);
}

X_SCENARIO(monitor_token, .setup = make_token, .thread = { acquire_cancelled, fire }, .check = left_0, .stale = 1);
X_SCENARIO(monitor_token_release, .setup = make_token, .thread = { acquire_or_cancelled, fire, release_one },
	   .check = left_if_expired);
X_SCENARIO(monitor_token_deadline, .setup = make_token, .thread = { acquire_limited, fire, release_one },
	   .check = left_if_expired);
X_SCENARIO(monitor_token_big_head, .setup = make_token_1, .thread = { big_head_cancelled, acquire_one, fire },
	   .check = left_0);

/* ---- lifetime: the exit's last touch ---- */

static void acquire_and_destroy(void)
{
	x_assert(acquire(1, 0, VEZ_FOREVER, NULL) == 0);
	x_dead(&m, sizeof m);
	x_dead(&room, sizeof room);
}

static void make_unmapped(void)
{
	x_alive(&room, sizeof room);
	make(0);
}

X_SCENARIO(monitor_unmap, .setup = make_unmapped, .thread = { acquire_and_destroy, release_one }, .stale = 1);

/* Destroyed by who is let go: EBUSY at most while the other is still inside. */
static void acquire_and_try_destroy(void)
{
	x_assert(acquire(1, 0, VEZ_FOREVER, NULL) == 0);
	if (vez_monitor_destroy(&m) == 0)
		x_dead(&m, sizeof m);
}

X_SCENARIO(monitor_destroy, .setup = make_0, .thread = { acquire_and_try_destroy, release_one }, .stale = 1);

/* ---- keys ---- */

static void acquire_late(void)
{
	x_assert(acquire(1, 5, VEZ_FOREVER, NULL) == 0);
	x_assert(told == 1);
}

static void acquire_early(void)
{
	x_assert(acquire(1, -5, VEZ_FOREVER, NULL) == 0);
	told = 1;
	release(1);
}

static void release_to_two(void)
{
	x_await(vez_room_length(&room) == 2);
	release(1);
}

X_SCENARIO(monitor_keys, .setup = make_0, .thread = { acquire_late, acquire_early, release_to_two },
	   .check = left_0);

/* ---- two rooms: a buffer of one ---- */

static int item, full;

static void put(int value)
{
	vez_request_t r = VEZ_REQUEST_INITIALIZER;
	vez_request_t *taker;
	vez_monitor_enter(&m);
	if ((taker = vez_room_first(&other_room))) {
		vez_request_set_value(taker, NULL, (uint64_t)value);
		vez_monitor_settle(&m, taker, 0);
	} else if (!full) {
		item = value;
		full = 1;
	} else {
		vez_request_set_value(&r, NULL, (uint64_t)value);
		x_assert(vez_monitor_wait(&m, &room, &r, VEZ_FOREVER, NULL) == 0);
		return;
	}
	vez_monitor_exit(&m);
}

static int take(void)
{
	vez_request_t r = VEZ_REQUEST_INITIALIZER;
	vez_request_t *putter;
	vez_monitor_enter(&m);
	if (!full) {
		x_assert(vez_monitor_wait(&m, &other_room, &r, VEZ_FOREVER, NULL) == 0);
		return (int)vez_request_value(&r);
	}
	int value = item;
	full = 0;
	if ((putter = vez_room_first(&room))) {
		item = (int)vez_request_value(putter);
		full = 1;
		vez_monitor_settle(&m, putter, 0);
	}
	vez_monitor_exit(&m);
	return value;
}

static void make_buffer(void)
{
	full = 0;
	make(0);
}

static void put_two(void)
{
	put(1);
	put(2);
}

static void take_two(void)
{
	x_assert(take() == 1);
	x_assert(take() == 2);
}

static void left_empty(void)
{
	x_assert(!full && vez_room_length(&other_room) == 0);
	left(0);
}

X_SCENARIO(monitor_buffer, .setup = make_buffer, .thread = { put_two, take_two }, .check = left_empty);

/* ---- moved, and kept ---- */

static bool moved;
static int settled;
static vez_room_t *left_room;

static void note_left(vez_monitor_t *monitor, vez_room_t *where, vez_request_t *r)
{
	(void)monitor;
	(void)r;
	left_room = where;
}

static void make_rooms(void)
{
	X_NAME(token);
	X_NAME(other_room);
	vez_cancel_init(&token);
	make(0);
	vez_monitor_init(&m, note_left);
	moved = false;
	settled = 0;
	left_room = NULL;
}

static void wait_limited(void)
{
	vez_request_t r = VEZ_REQUEST_INITIALIZER;
	vez_monitor_enter(&m);
	rc[0] = vez_monitor_wait(&m, &room, &r, x_soon(), &token);
	x_assert(rc[0] == 0 || rc[0] == ECANCELED || rc[0] == ETIMEDOUT);
}

static void move_first(bool keep)
{
	vez_monitor_enter(&m);
	vez_request_t *r = vez_room_first(&room);
	moved = r != NULL;
	if (r)
		x_assert(vez_monitor_move(&m, &other_room, r));
	if (r && keep)
		x_assert(vez_monitor_keep(&m, r));
	vez_monitor_exit(&m);
}

static void settle_moved(void)
{
	vez_monitor_enter(&m);
	vez_request_t *r = vez_room_first(&other_room);
	settled = r && vez_monitor_settle(&m, r, 0);
	vez_monitor_exit(&m);
}

/* A limit that is reached while the request is moved finds its monitor, and the rule for giving up its room. */
static void move_and_settle(void)
{
	move_first(false);
	settle_moved();
}

static void left_moved(void)
{
	x_assert((rc[0] == 0) == settled);
	x_assert(rc[0] == 0 || left_room == NULL || left_room == (moved ? &other_room : &room));
	x_assert(!moved || rc[0] == 0 || left_room == &other_room);
	x_assert(vez_room_length(&room) == 0 && vez_room_length(&other_room) == 0);
	x_assert(vez_monitor_destroy(&m) == 0 && vez_cancel_destroy(&token) == 0);
}

X_SCENARIO(monitor_moved, .setup = make_rooms, .thread = { wait_limited, move_and_settle, fire }, .check = left_moved);

/* Nothing ends what was kept, whatever was on its way. */
static void keep_and_settle(void)
{
	move_first(true);
	settle_moved();
	x_assert(settled == moved);
}

X_SCENARIO(monitor_kept, .setup = make_rooms, .thread = { wait_limited, keep_and_settle, fire }, .check = left_moved);

static vez_request_t request;

static void make_async(void)
{
	x_alive(&request, sizeof request);
	X_NAME(request);
	make_rooms();
	x_make_alarm();
}

static void wait_without_thread(void)
{
	vez_request_init(&request, NULL, NULL);
	vez_request_set_limits(&request, x_soon(), NULL);
	vez_monitor_enter(&m);
	rc[0] = vez_monitor_wait_async(&m, &room, &request);
	if (rc[0] == EINPROGRESS) {
		x_assert(vez_request_wait(&request, VEZ_FOREVER, NULL) == 0);
		rc[0] = vez_request_result(&request);
		x_dead(&request, sizeof request);
	}
	x_assert(rc[0] == 0 || rc[0] == ETIMEDOUT);
}

X_SCENARIO(monitor_kept_async, .setup = make_async, .thread = { wait_without_thread, keep_and_settle, x_alarm },
	   .check = left_moved);
X_SCENARIO(monitor_moved_async, .setup = make_async, .thread = { wait_without_thread, move_and_settle, x_alarm },
	   .check = left_moved);
