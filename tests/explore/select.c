/* SPDX-License-Identifier: MIT */
/* Scenarios of wait-for-any (vez/request.h): one member wins, and for the others nothing was taken. Seen to fail with
 * the faults mutants/select-* and async-*. */
#include "vez/request.h"

#include <errno.h>

#include "scenario.h"
#include "src/futex/atomic.h"
#include "vez/cancel.h"
#include "vez/event.h"
#include "vez/group.h"
#include "vez/latch.h"
#include "vez/queue.h"
#include "vez/rwlock.h"
#include "vez/sem.h"

/* What one thread selects. */
struct choice {
	vez_select_t select;
	vez_request_t member[4];
	vez_request_t *winner;
	int result;
};

static struct choice choice[X_THREADS];
static vez_sem_t a, b;
static vez_queue_t q, q2;
static vez_event_t e;
static vez_group_t g;
static vez_rwlock_t l;
static vez_cancel_t token;
static int storage[1];
static int sent[X_THREADS], got[X_THREADS];
static int told;
static int rc[X_THREADS];

static void make_with(size_t capacity, unsigned flags, unsigned event_flags)
{
	X_NAME(choice);
	X_NAME(a);
	X_NAME(b);
	X_NAME(q);
	X_NAME(q2);
	X_NAME(e);
	X_NAME(g);
	X_NAME(l);
	X_NAME(token);
	x_alive(choice, sizeof choice);
	x_assert(vez_sem_init(&a, 0, 0, flags) == 0);
	x_assert(vez_sem_init(&b, 0, 0, 0) == 0);
	x_assert(vez_queue_init(&q, storage, sizeof(int), capacity) == 0);
	x_assert(vez_queue_init(&q2, storage, sizeof(int), 0) == 0);
	x_assert(vez_event_init(&e, event_flags) == 0);
	x_assert(vez_group_init(&g, 0) == 0);
	x_assert(vez_rwlock_init(&l, VEZ_RW_HOARE) == 0);
	vez_cancel_init(&token);
	told = 0;
	for (int i = 0; i < X_THREADS; i++) {
		vez_select_init(&choice[i].select);
		choice[i].winner = NULL;
		choice[i].result = -1;
		rc[i] = -1;
		sent[i] = 10 + i;
		got[i] = 0;
	}
}

static void make(void)
{
	make_with(1, 0, VEZ_AUTO_RESET);
}

static void make_barging(void)
{
	make_with(1, VEZ_BARGING, VEZ_AUTO_RESET);
}

static void make_rendezvous(void)
{
	make_with(0, 0, VEZ_AUTO_RESET);
}

static void make_manual(void)
{
	make_with(1, 0, 0);
}

/* ---- what is selected ---- */

static vez_request_t *member(int i, int k)
{
	return vez_select_case(&choice[i].select, &choice[i].member[k]);
}

static void on_sem(int i, int k, vez_sem_t *s)
{
	int ended = vez_sem_acquire_async(s, 1, member(i, k));
	x_assert(ended == 0 || ended == EINPROGRESS || ended == ECANCELED);
}

static void on_put(int i, int k, vez_queue_t *to)
{
	int ended = vez_queue_put_async(to, &sent[i], member(i, k));
	x_assert(ended == 0 || ended == EINPROGRESS || ended == ECANCELED);
}

static void on_take(int i, int k, vez_queue_t *from)
{
	int ended = vez_queue_take_async(from, &got[i], member(i, k));
	x_assert(ended == 0 || ended == EINPROGRESS || ended == ECANCELED);
}

static void on_event(int i, int k)
{
	int ended = vez_event_wait_async(&e, member(i, k));
	x_assert(ended == 0 || ended == EINPROGRESS || ended == ECANCELED);
}

static int wait_until(int i, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	struct choice *c = &choice[i];
	c->result = vez_select_wait(&c->select, deadline, cancel, &c->winner);
	x_assert((c->winner != NULL) == (c->result == 0));
	for (vez_request_t *r = c->select.members_; r; r = r->then_.member_)
		x_assert(vez_request_result(r) == (r == c->winner ? 0 : ECANCELED));
	return c->result;
}

/* Which member won; nobody touches the select any more. */
static int wait(int i)
{
	x_assert(wait_until(i, VEZ_FOREVER, NULL) == 0);
	int won = (int)(choice[i].winner - choice[i].member);
	x_dead(&choice[i].select, sizeof choice[i].select);
	x_dead(choice[i].member, sizeof choice[i].member);
	return won;
}

/* Whether member k of thread i won, for the check. */
static int won(int i, int k)
{
	return choice[i].winner == &choice[i].member[k];
}

static void left(int permits_a, int permits_b)
{
	x_assert(vez_sem_waiters(&a) == 0 && (int)vez_sem_permits(&a) == permits_a);
	x_assert(vez_sem_waiters(&b) == 0 && (int)vez_sem_permits(&b) == permits_b);
	x_assert(vez_sem_destroy(&a) == 0 && vez_sem_destroy(&b) == 0);
	x_assert(vez_queue_waiters(&q) == 0 && vez_queue_waiters(&q2) == 0);
	x_assert(vez_queue_destroy(&q) == 0 && vez_queue_destroy(&q2) == 0);
	x_assert(vez_event_waiters(&e) == 0 && vez_event_destroy(&e) == 0);
	x_assert(vez_group_waiters(&g) == 0 && vez_group_destroy(&g) == 0);
	x_assert(vez_rwlock_waiters(&l) == 0 && vez_rwlock_destroy(&l) == 0);
	x_assert(vez_cancel_destroy(&token) == 0);
}

static void release_a(void)
{
	x_assert(vez_sem_release(&a, 1) == 0);
}

static void release_b(void)
{
	x_assert(vez_sem_release(&b, 1) == 0);
}

static void release_both(void)
{
	release_a();
	release_b();
}

static void tell_and_release_a(void)
{
	told = 1;
	release_a();
}

static void fire(void)
{
	vez_cancel_fire(&token);
}

/* ---- two members are granted at the same time ---- */

static void choose_a_or_b(void)
{
	on_sem(0, 0, &a);
	on_sem(0, 1, &b);
	rc[0] = wait(0);
}

static void left_the_other(void)
{
	x_assert(won(0, 0) + won(0, 1) == 1);
	left(!won(0, 0), !won(0, 1));
}

static void choose_a_told(void)
{
	on_sem(0, 0, &a);
	on_sem(0, 1, &b);
	x_assert(wait(0) == 0);
	x_assert(told == 1);
}

static void told_left(void)
{
	left(0, 0);
}

X_SCENARIO(select_told, .setup = make, .thread = { choose_a_told, tell_and_release_a }, .check = told_left, .stale = 1);
X_SCENARIO(select_two, .setup = make, .thread = { choose_a_or_b, release_a, release_b }, .check = left_the_other);
X_SCENARIO(select_two_barging, .setup = make_barging, .thread = { choose_a_or_b, release_a, release_b },
	   .check = left_the_other);

/* Two members on one object; both are granted by one release. */
static void choose_a_twice(void)
{
	on_sem(0, 0, &a);
	on_sem(0, 1, &a);
	rc[0] = wait(0);
}

static void release_two(void)
{
	x_assert(vez_sem_release(&a, 2) == 0);
}

static void left_one_of_a(void)
{
	x_assert(won(0, 0) + won(0, 1) == 1);
	left(1, 0);
}

X_SCENARIO(select_same_object, .setup = make, .thread = { choose_a_twice, release_two }, .check = left_one_of_a,
	   .stale = 1);

/* ---- two semaphores, a queue and an event, and a token ---- */

static void choose_any(void)
{
	on_sem(0, 0, &a);
	on_take(0, 1, &q);
	on_event(0, 2);
	rc[0] = wait_until(0, VEZ_FOREVER, &token);
	x_assert(rc[0] == 0 || rc[0] == ECANCELED);
}

static void put_and_set(void)
{
	x_assert(vez_queue_put(&q, &sent[1]) == 0);
	x_assert(vez_event_set(&e) == 0);
}

static void left_of_any(void)
{
	x_assert(won(0, 0) + won(0, 1) + won(0, 2) == (rc[0] == 0));
	x_assert((int)vez_queue_length(&q) == !won(0, 1));
	x_assert(got[0] == (won(0, 1) ? sent[1] : 0));
	x_assert(vez_event_is_set(&e) == !won(0, 2));
	left(!won(0, 0), 0);
}

static void put_one(void)
{
	x_assert(vez_queue_put(&q, &sent[1]) == 0);
}

static void left_of_any_unset(void)
{
	x_assert(won(0, 0) + won(0, 1) == (rc[0] == 0));
	x_assert((int)vez_queue_length(&q) == !won(0, 1));
	left(0, 0);
}

X_SCENARIO(select_any, .setup = make, .thread = { choose_any, put_and_set, release_a }, .check = left_of_any,
	   .preemptions = 1, .random = 20000);
X_SCENARIO(select_any_token, .setup = make, .thread = { choose_any, put_one, fire }, .check = left_of_any_unset);

/* The token is a member's own: that one ends, the wait goes on. */
static void choose_a_cancellable(void)
{
	vez_request_t *r = member(0, 0);
	vez_request_set_limits(r, VEZ_FOREVER, &token);
	(void)vez_sem_acquire_async(&a, 1, r);
	on_sem(0, 1, &b);
	rc[0] = wait(0);
}

X_SCENARIO(select_member_token, .setup = make, .thread = { choose_a_cancellable, release_both, fire },
	   .check = left_the_other);

/* All its members are cancelled. */
static void choose_only_a(void)
{
	vez_request_t *r = member(0, 0);
	vez_request_set_limits(r, VEZ_FOREVER, &token);
	(void)vez_sem_acquire_async(&a, 1, r);
	rc[0] = wait_until(0, VEZ_FOREVER, NULL);
	x_assert(rc[0] == 0 || rc[0] == ECANCELED);
}

static void left_if_cancelled(void)
{
	x_assert(won(0, 0) == (rc[0] == 0));
	left(!won(0, 0), 0);
}

X_SCENARIO(select_all_cancelled, .setup = make, .thread = { choose_only_a, release_a, fire },
	   .check = left_if_cancelled);

/* A member's own deadline ends the wait, unless another is granted before. */
static void make_alarm(void)
{
	x_make_alarm();
	make();
}

static void choose_a_until_or_b(void)
{
	vez_request_t *r = member(0, 0);
	vez_request_set_limits(r, x_soon(), NULL);
	int ended = vez_sem_acquire_async(&a, 1, r);
	x_assert(ended == EINPROGRESS || ended == ETIMEDOUT);
	on_sem(0, 1, &b);
	rc[0] = vez_select_wait(&choice[0].select, VEZ_FOREVER, NULL, &choice[0].winner);
	x_assert(choice[0].winner == (rc[0] == 0 ? &choice[0].member[1] : &choice[0].member[0]));
	x_assert(rc[0] == 0 || rc[0] == ETIMEDOUT);
	x_dead(&choice[0], sizeof choice[0]);
}

static void left_if_expired(void)
{
	left(0, rc[0] != 0);
}

X_SCENARIO(select_member_deadline, .setup = make_alarm, .thread = { choose_a_until_or_b, release_b, x_alarm },
	   .check = left_if_expired, .preemptions = 1, .random = 5000);

/* ---- the wait's own limits meet a grant ---- */

static void choose_until(void)
{
	on_sem(0, 0, &a);
	on_sem(0, 1, &b);
	rc[0] = wait_until(0, x_soon(), NULL);
	x_assert(rc[0] == 0 || rc[0] == ETIMEDOUT);
}

static void choose_now(void)
{
	on_sem(0, 0, &a);
	on_sem(0, 1, &b);
	rc[0] = wait_until(0, VEZ_NOW, NULL);
	x_assert(rc[0] == 0 || rc[0] == ETIMEDOUT);
}

static void left_of_until(void)
{
	x_assert(won(0, 0) + won(0, 1) == (rc[0] == 0));
	left(!won(0, 0), !won(0, 1));
}

static void left_of_a_until(void)
{
	x_assert(won(0, 0) == (rc[0] == 0));
	left(!won(0, 0), 0);
}

X_SCENARIO(select_deadline, .setup = make, .thread = { choose_until, release_a }, .check = left_of_a_until);
X_SCENARIO(select_deadline_two, .setup = make, .thread = { choose_until, release_a, release_b },
	   .check = left_of_until, .preemptions = 1, .random = 20000);
X_SCENARIO(select_now, .setup = make, .thread = { choose_now, release_a, release_b }, .check = left_of_until);

/* ---- who is lost passes on what was meant for it ---- */

/* Behind a member that is lost. */
static void acquire_b(void)
{
	x_assert(vez_sem_acquire(&b, 1) == 0);
}

static void choose_then_return_b(void)
{
	choose_a_or_b();
	if (rc[0] == 1)
		release_b();
}

static void left_a_or_not(void)
{
	left(!won(0, 0), 0);
}

X_SCENARIO(select_lost_sem, .setup = make, .thread = { choose_then_return_b, acquire_b, release_both },
	   .check = left_a_or_not);

/* A lost one that wants more than there is does not hold back the one behind it. */
static void choose_big_or_b(void)
{
	(void)vez_sem_acquire_async(&a, 2, member(0, 0));
	on_sem(0, 1, &b);
	rc[0] = wait(0);
	x_assert(rc[0] == 1);
}

static void acquire_a(void)
{
	x_assert(vez_sem_acquire(&a, 1) == 0);
}

static void left_nothing(void)
{
	left(0, 0);
}

X_SCENARIO(select_lost_big, .setup = make, .thread = { choose_big_or_b, acquire_a, release_both },
	   .check = left_nothing);

/* Barging: what a lost one was offered goes to the one behind it, which looks by itself. */
static void choose_then_return_a(void)
{
	choose_a_or_b();
	if (rc[0] == 0)
		release_a();
}

static void left_b_or_not(void)
{
	left(0, !won(0, 1));
}

X_SCENARIO(select_lost_barging, .setup = make_barging, .thread = { choose_then_return_a, acquire_a, release_both },
	   .check = left_b_or_not);

/* AUTO: a set that met a lost one is carried out for the next, or kept until it is reset. */
static void choose_event_or_a(void)
{
	on_event(0, 0);
	on_sem(0, 1, &a);
	rc[0] = wait(0);
}

static void set(void)
{
	x_assert(vez_event_set(&e) == 0);
}

static void pulse(void)
{
	set();
	x_assert(vez_event_reset(&e) == 0);
}

/* Whatever the set met: after the reset nothing is left of it. */
static void left_reset(void)
{
	x_assert(won(0, 0) + won(0, 1) == 1);
	x_assert(!vez_event_is_set(&e));
	left(!won(0, 1), 0);
}

static void left_set_or_taken(void)
{
	x_assert(won(0, 0) + won(0, 1) == 1);
	x_assert(vez_event_is_set(&e) == !won(0, 0));
	left(!won(0, 1), 0);
}

static void choose_event_then_set(void)
{
	choose_event_or_a();
	if (rc[0] == 0)
		set();
}

static void wait_event(void)
{
	x_assert(vez_event_wait(&e) == 0);
}

static void left_unset(void)
{
	x_assert(!vez_event_is_set(&e));
	left(!won(0, 1), 0);
}

X_SCENARIO(select_lost_event, .setup = make, .thread = { choose_event_or_a, set, release_a },
	   .check = left_set_or_taken);
X_SCENARIO(select_lost_event_next, .setup = make, .thread = { choose_event_then_set, wait_event, set, release_a },
	   .check = left_unset, .preemptions = 1, .random = 20000);

/* The member lost to a's permit in any case: a set and a reset, in order, leave nothing. */
static void release_a_then_pulse(void)
{
	release_a();
	set();
	x_assert(vez_event_reset(&e) == 0);
}

X_SCENARIO(select_lost_event_reset, .setup = make, .thread = { choose_event_or_a, release_a_then_pulse },
	   .check = left_reset);
X_SCENARIO(select_event_pulse, .setup = make, .thread = { choose_event_or_a, pulse, release_a },
	   .check = left_reset);

static void left_manual(void)
{
	x_assert(won(0, 0) + won(0, 1) == 1);
	x_assert(vez_event_is_set(&e));
	left(!won(0, 1), 0);
}

X_SCENARIO(select_lost_manual, .setup = make_manual, .thread = { choose_event_or_a, set, release_a },
	   .check = left_manual);

/* A queue: an item that met a lost taker stays, or goes to the next; a lost putter's item goes nowhere. */
static void choose_take_or_a(void)
{
	on_take(0, 0, &q);
	on_sem(0, 1, &a);
	rc[0] = wait(0);
}

static void put(void)
{
	x_assert(vez_queue_put(&q, &sent[1]) == 0);
}

static void left_item(void)
{
	x_assert(won(0, 0) + won(0, 1) == 1);
	x_assert((int)vez_queue_length(&q) == !won(0, 0));
	x_assert(got[0] == (won(0, 0) ? sent[1] : 0));
	left(!won(0, 1), 0);
}

static void make_full(void)
{
	make();
	x_assert(vez_queue_put(&q, &sent[2]) == 0);
}

static void choose_put_or_a(void)
{
	on_put(0, 0, &q);
	on_sem(0, 1, &a);
	rc[0] = wait(0);
}

static void take(void)
{
	x_assert(vez_queue_take(&q, &got[1]) == 0);
	x_assert(got[1] == sent[2]);
}

static void left_putter(void)
{
	x_assert(won(0, 0) + won(0, 1) == 1);
	x_assert((int)vez_queue_length(&q) == won(0, 0));
	if (won(0, 0))
		x_assert(vez_queue_try_take(&q, &got[2]) == 0 && got[2] == sent[0]);
	left(!won(0, 1), 0);
}

X_SCENARIO(select_lost_taker, .setup = make, .thread = { choose_take_or_a, put, release_a }, .check = left_item);
X_SCENARIO(select_lost_putter, .setup = make_full, .thread = { choose_put_or_a, take, release_a },
	   .check = left_putter);

/* A group: the lost one is not counted in, and those of its group behind it enter. */
static void make_group(void)
{
	make();
	x_assert(vez_group_enter(&g, 7) == 0);
}

static void choose_group_or_a(void)
{
	(void)vez_group_enter_async(&g, 1, member(0, 0));
	on_sem(0, 1, &a);
	rc[0] = wait(0);
	if (rc[0] == 0)
		x_assert(vez_group_leave(&g) == 0);
}

static void leave_group(void)
{
	x_assert(vez_group_leave(&g) == 0);
}

static void enter_group(void)
{
	x_assert(vez_group_enter(&g, 1) == 0);
	leave_group();
}

static void leave_and_release(void)
{
	leave_group();
	release_a();
}

static void left_without_one(void)
{
	x_assert(won(0, 0) + won(0, 1) == 1);
	left(!won(0, 1), 0);
}

X_SCENARIO(select_lost_group, .setup = make_group, .thread = { choose_group_or_a, leave_group, release_a },
	   .check = left_without_one);
X_SCENARIO(select_lost_group_two, .setup = make_group, .thread = { choose_group_or_a, enter_group, leave_and_release },
	   .check = left_without_one);

/* A readers-writer lock. */
static void make_written(void)
{
	make();
	x_assert(vez_rwlock_wrlock(&l) == 0);
}

static void choose_read_or_a(void)
{
	(void)vez_rwlock_rdlock_async(&l, member(0, 0));
	on_sem(0, 1, &a);
	rc[0] = wait(0);
	if (rc[0] == 0)
		x_assert(vez_rwlock_rdunlock(&l) == 0);
}

static void choose_write_or_a(void)
{
	(void)vez_rwlock_wrlock_async(&l, member(0, 0));
	on_sem(0, 1, &a);
	rc[0] = wait(0);
	if (rc[0] == 0)
		x_assert(vez_rwlock_wrunlock(&l) == 0);
}

static void wrote(void)
{
	x_assert(vez_rwlock_wrunlock(&l) == 0);
}

static void read(void)
{
	x_assert(vez_rwlock_rdlock(&l) == 0);
	x_assert(vez_rwlock_rdunlock(&l) == 0);
}

static void wrote_and_release(void)
{
	wrote();
	release_a();
}

X_SCENARIO(select_lost_reader, .setup = make_written, .thread = { choose_read_or_a, wrote, release_a },
	   .check = left_without_one);
X_SCENARIO(select_lost_writer, .setup = make_written, .thread = { choose_write_or_a, wrote, release_a },
	   .check = left_without_one);
X_SCENARIO(select_lost_reader_two, .setup = make_written, .thread = { choose_read_or_a, read, wrote_and_release },
	   .check = left_without_one);
X_SCENARIO(select_lost_writer_two, .setup = make_written, .thread = { choose_write_or_a, read, wrote_and_release },
	   .check = left_without_one);

/* A reader of a wait-for-any has won once the writer before it is gone; one that upgrades at once may not come between
 * its winning and its entry: the wait would then outlast its deadline, until that one has written. */
static vez_request_t writer;

static void make_read_before_writer(void)
{
	make();
	X_NAME(writer);
	vez_request_init(&writer, NULL, NULL);
	x_assert(vez_rwlock_rdlock(&l) == 0);
	x_assert(vez_rwlock_wrlock_async(&l, &writer) == EINPROGRESS);
	x_assert(vez_rwlock_rdlock_async(&l, member(0, 0)) == EINPROGRESS);
}

static void withdraw_writer(void)
{
	if (vez_request_cancel(&writer) == EALREADY)
		x_assert(vez_rwlock_wrunlock(&l) == 0);
}

static void upgrade_at_once(void)
{
	if (vez_rwlock_try_upgrade(&l) == 0) {
		x_assert(wait_until(0, VEZ_NOW, NULL) == ETIMEDOUT);
		x_assert(vez_rwlock_undo_upgrade(&l) == 0);
	}
	x_assert(vez_rwlock_rdunlock(&l) == 0);
}

static void left_unlocked(void)
{
	if (choice[0].result < 0 && wait_until(0, VEZ_FOREVER, NULL) == 0)
		x_assert(vez_rwlock_rdunlock(&l) == 0);
	x_assert(vez_rwlock_trywrlock(&l) == 0);
}

X_SCENARIO(select_reader_or_upgrade, .setup = make_read_before_writer, .thread = { withdraw_writer, upgrade_at_once },
	   .check = left_unlocked);

/* ---- two selects meet on a queue without capacity: both win, or neither ---- */

static void choose_put(void)
{
	on_put(0, 0, &q);
	x_assert(wait(0) == 0);
}

static void choose_take(void)
{
	on_take(1, 0, &q);
	x_assert(wait(1) == 0);
	x_assert(got[1] == sent[0]);
}

X_SCENARIO(select_meet, .setup = make_rendezvous, .thread = { choose_put, choose_take }, .check = left_nothing,
	   .stale = 1);

/* Members of one select never meet each other. */
static void choose_put_or_take_same(void)
{
	on_put(0, 0, &q);
	on_take(0, 1, &q);
	rc[0] = wait(0);
}

static void take_alone(void)
{
	x_assert(vez_queue_take(&q, &got[1]) == 0);
}

static void met_another(void)
{
	x_assert(rc[0] == 0 && got[1] == sent[0] && got[0] == 0);
	left(0, 0);
}

X_SCENARIO(select_meet_self, .setup = make_rendezvous, .thread = { choose_put_or_take_same, take_alone },
	   .check = met_another, .stale = 1);

/* Crosswise on two: exactly one meeting. */
static void choose_put_or_take(void)
{
	on_put(0, 0, &q);
	on_take(0, 1, &q2);
	rc[0] = wait(0);
}

static void choose_take_or_put(void)
{
	on_take(1, 1, &q);
	on_put(1, 0, &q2);
	rc[1] = wait(1);
}

static void choose_put2_or_take(void)
{
	on_put(1, 0, &q2);
	on_take(1, 1, &q);
	rc[1] = wait(1);
}

static void met(void)
{
	x_assert(rc[0] + rc[1] == 1);
	x_assert(got[0] == (rc[0] == 1 ? sent[1] : 0));
	x_assert(got[1] == (rc[0] == 0 ? sent[0] : 0));
	left(0, 0);
}

X_SCENARIO(select_meet_crosswise, .setup = make_rendezvous, .thread = { choose_put_or_take, choose_take_or_put },
	   .check = met);
X_SCENARIO(select_meet_crosswise_2, .setup = make_rendezvous, .thread = { choose_put_or_take, choose_put2_or_take },
	   .check = met);

/* One of the two may be granted otherwise meanwhile: then the other has not met it. */
static void choose_put_or_a_meeting(void)
{
	on_put(0, 0, &q);
	on_sem(0, 1, &a);
	rc[0] = wait(0);
}

static void choose_take_or_b(void)
{
	on_take(1, 0, &q);
	on_sem(1, 1, &b);
	rc[1] = wait(1);
}

static void met_or_not(void)
{
	bool both = rc[0] == 0;
	x_assert(rc[0] == rc[1]);
	x_assert(got[1] == (both ? sent[0] : 0));
	left(both, both);
}

static void release_a_then_b(void)
{
	release_a();
	release_b();
}

X_SCENARIO(select_meet_or_not, .setup = make_rendezvous,
	   .thread = { choose_put_or_a_meeting, choose_take_or_b, release_a_then_b }, .check = met_or_not);

/* A lone taker and two putters that select: one of them is met. */
static void choose_put_2(void)
{
	on_put(2, 0, &q);
	on_sem(2, 1, &b);
	rc[2] = wait(2);
}

static void take_then_release_both(void)
{
	x_assert(vez_queue_take(&q, &got[1]) == 0);
	release_both();
}

static void met_one(void)
{
	x_assert(got[1] == sent[0] || got[1] == sent[2]);
	x_assert((got[1] == sent[0]) == (rc[0] == 0) && (got[1] == sent[2]) == (rc[2] == 0));
	left(rc[0] == 0, rc[2] == 0);
}

X_SCENARIO(select_meet_one, .setup = make_rendezvous,
	   .thread = { choose_put_or_a_meeting, choose_put_2, take_then_release_both }, .check = met_one);

/* Three selects that all could meet two others: nobody waits for ever. */
static void choose_take_then_b(void)
{
	on_take(1, 0, &q);
	on_sem(1, 1, &b);
	rc[1] = wait(1);
	if (rc[1] == 0)
		release_b();
}

static void choose_take_2_then_b(void)
{
	on_take(2, 0, &q);
	on_sem(2, 1, &b);
	rc[2] = wait(2);
	if (rc[2] == 0)
		release_b();
}

static void met_either(void)
{
	x_assert((rc[1] == 0) + (rc[2] == 0) == 1);
	x_assert(got[rc[1] == 0 ? 1 : 2] == sent[0]);
	left(0, 0);
}

static void choose_put_only(void)
{
	on_put(0, 0, &q);
	rc[0] = wait(0);
}

X_SCENARIO(select_meet_three, .setup = make_rendezvous,
	   .thread = { choose_put_only, choose_take_then_b, choose_take_2_then_b }, .check = met_either);

/* ---- a signal handler releases what is being selected ---- */

static void release_a_in_handler(void)
{
	x_assert(vez_sem_release(&a, 1) == 0);
}

X_SCENARIO(select_signal, .setup = make, .thread = { choose_a_or_b, release_b }, .signal = release_a_in_handler,
	   .check = left_the_other, .preemptions = 2);
