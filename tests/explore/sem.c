/* SPDX-License-Identifier: MIT */
/* Scenarios of the counting semaphore. */
#include "vez/sem.h"

#include <errno.h>

#include "scenario.h"
#include "src/futex/atomic.h"
#include "vez/request.h"

static vez_sem_t s;
static int told;
static int rc[X_THREADS];

static void make(uint32_t permits, uint32_t max, unsigned flags)
{
	x_alive(&s, sizeof s);
	X_NAME(s);
	x_assert(vez_sem_init(&s, permits, max, flags) == 0);
	told = 0;
	for (int i = 0; i < X_THREADS; i++)
		rc[i] = -1;
}

static void make_0(void)
{
	make(0, 0, 0);
}

/* Nobody is queued and this many permits are free: who tries has them. */
static void left(uint32_t permits)
{
	x_assert(vez_sem_waiters(&s) == 0);
	x_assert(vez_sem_permits(&s) == permits);
	if (permits == 0)
		x_assert(vez_sem_release(&s, ++permits) == 0);
	int tried = vez_sem_try_acquire(&s, permits);
	x_assert(tried == 0 || tried == VEZ_ECLOSED);
	x_assert(vez_sem_destroy(&s) == 0);
}

static void left_0(void)
{
	left(0);
}

/* ---- hand-off: one waits, one releases ---- */

static void acquire_1(void)
{
	x_assert(vez_sem_acquire(&s, 1) == 0);
	x_assert(told == 1);
}

static void release_1(void)
{
	told = 1;
	x_assert(vez_sem_release(&s, 1) == 0);
}

X_SCENARIO(sem_handoff, .setup = make_0, .thread = { acquire_1, release_1 }, .check = left_0, .stale = 2);

static void make_barging_0(void)
{
	make(0, 0, VEZ_BARGING);
}

X_SCENARIO(sem_handoff_barging, .setup = make_barging_0, .thread = { acquire_1, release_1 }, .check = left_0,
	   .stale = 2);

/* With two processors it spins before it sleeps. */
static void make_spinning_0(void)
{
	x_spin(2);
	make(0, 0, 0);
}

X_SCENARIO(sem_handoff_spinning, .setup = make_spinning_0, .thread = { acquire_1, release_1 }, .check = left_0,
	   .cpus = 2);

/* ---- several waiters, several releases ---- */

static void acquire_one(void)
{
	x_assert(vez_sem_acquire(&s, 1) == 0);
}

static void acquire_two(void)
{
	x_assert(vez_sem_acquire(&s, 2) == 0);
}

static void release_one(void)
{
	x_assert(vez_sem_release(&s, 1) == 0);
}

static void release_two(void)
{
	x_assert(vez_sem_release(&s, 2) == 0);
}

static void release_three(void)
{
	x_assert(vez_sem_release(&s, 3) == 0);
}

X_SCENARIO(sem_one_release_two_waiters, .setup = make_0, .thread = { acquire_one, acquire_one, release_two },
	   .check = left_0);
X_SCENARIO(sem_two_releases_one_waiter, .setup = make_0, .thread = { acquire_two, release_one, release_one },
	   .check = left_0, .stale = 1);
X_SCENARIO(sem_mixed_permits, .setup = make_0, .thread = { acquire_two, acquire_one, release_three }, .check = left_0);
X_SCENARIO(sem_one_release_three_waiters, .setup = make_0,
	   .thread = { acquire_one, acquire_one, acquire_one, release_three }, .check = left_0, .preemptions = 2,
	   .random = 20000);
X_SCENARIO(sem_barging_two_waiters, .setup = make_barging_0, .thread = { acquire_one, acquire_one, release_two },
	   .check = left_0);
X_SCENARIO(sem_barging_two_releases, .setup = make_barging_0, .thread = { acquire_two, release_one, release_one },
	   .check = left_0);

/* All are queued, then one release lets all go: the wakes of two share a system call. */
static void release_to_two(void)
{
	x_await(vez_sem_waiters(&s) == 2);
	release_two();
}

X_SCENARIO(sem_two_wakes, .setup = make_0, .thread = { acquire_one, acquire_one, release_to_two }, .check = left_0);

static void release_to_three(void)
{
	x_await(vez_sem_waiters(&s) == 3);
	release_three();
}

X_SCENARIO(sem_three_wakes, .setup = make_0, .thread = { acquire_one, acquire_one, acquire_one, release_to_three },
	   .check = left_0, .preemptions = 1, .random = 20000);

/* ---- as a lock: what is inside is a plain variable ---- */

static void make_1(void)
{
	make(1, 1, 0);
}

static void make_barging_1(void)
{
	make(1, 1, VEZ_BARGING);
}

static void lock_and_count(void)
{
	x_assert(vez_sem_acquire(&s, 1) == 0);
	told++;
	x_assert(vez_sem_release(&s, 1) == 0);
}

static void counted_two(void)
{
	x_assert(told == 2);
	left(1);
}

static void counted_three(void)
{
	x_assert(told == 3);
	left(1);
}

X_SCENARIO(sem_lock_2, .setup = make_1, .thread = { lock_and_count, lock_and_count }, .check = counted_two, .stale = 1);
X_SCENARIO(sem_lock_3, .setup = make_1, .thread = { lock_and_count, lock_and_count, lock_and_count },
	   .check = counted_three);
X_SCENARIO(sem_lock_2_barging, .setup = make_barging_1, .thread = { lock_and_count, lock_and_count },
	   .check = counted_two, .stale = 1);
X_SCENARIO(sem_lock_3_barging, .setup = make_barging_1, .thread = { lock_and_count, lock_and_count, lock_and_count },
	   .check = counted_three);

static void lock_and_count_twice(void)
{
	lock_and_count();
	lock_and_count();
}

X_SCENARIO(sem_lock_twice_barging, .setup = make_barging_1, .thread = { lock_and_count_twice, lock_and_count },
	   .check = counted_three, .stale = 1);

/* ---- first come, first served ---- */

/* With a waiter queued, nobody else takes the permit that comes, by try or otherwise. */
static void release_then_try(void)
{
	x_await(vez_sem_waiters(&s) == 1);
	x_assert(vez_sem_release(&s, 1) == 0);
	x_assert(vez_sem_try_acquire(&s, 1) == EBUSY);
}

X_SCENARIO(sem_try_after_release, .setup = make_0, .thread = { acquire_one, release_then_try }, .check = left_0);

static void try_one(void)
{
	rc[1] = vez_sem_try_acquire(&s, 1);
	x_assert(rc[1] == 0 || rc[1] == EBUSY);
}

static void left_unless_tried(void)
{
	left(rc[1] == 0 ? 0 : 1);
}

X_SCENARIO(sem_try, .setup = make_0, .thread = { acquire_one, try_one, release_two }, .check = left_unless_tried);
X_SCENARIO(sem_try_barging, .setup = make_barging_0, .thread = { acquire_one, try_one, release_two },
	   .check = left_unless_tried);

/* EBUSY means that it could not be had, not that somebody was inside. */
static void make_2(void)
{
	make(2, 2, 0);
}

static void try_one_surely(void)
{
	x_assert(vez_sem_try_acquire(&s, 1) == 0);
	x_assert(vez_sem_release(&s, 1) == 0);
}

static void left_2(void)
{
	left(2);
}

X_SCENARIO(sem_try_never_busy, .setup = make_2, .thread = { lock_and_count, try_one_surely }, .check = left_2);

/* ---- deadlines ---- */

static void acquire_until_0(void)
{
	vez_deadline_t soon = x_soon();
	rc[0] = vez_sem_acquire_until(&s, 1, soon, NULL);
	x_assert(rc[0] == 0 || (rc[0] == ETIMEDOUT && vez_deadline_remaining_ns(soon) == 0));
}

static void acquire_until_1(void)
{
	rc[1] = vez_sem_acquire_until(&s, 1, x_soon(), NULL);
	x_assert(rc[1] == 0 || rc[1] == ETIMEDOUT);
}

static void left_what_expired(void)
{
	left((rc[0] == ETIMEDOUT ? 1 : 0) + (rc[1] == ETIMEDOUT ? 1 : 0));
}

static void left_what_two_left(void)
{
	x_assert(rc[0] == 0 || rc[1] == 0 || vez_sem_permits(&s) == 1);
	left(rc[0] == 0 || rc[1] == 0 ? 0 : 1);
}

X_SCENARIO(sem_deadline, .setup = make_0, .thread = { acquire_until_0, release_one }, .check = left_what_expired,
	   .stale = 1);
X_SCENARIO(sem_deadline_barging, .setup = make_barging_0, .thread = { acquire_until_0, release_one },
	   .check = left_what_expired);
X_SCENARIO(sem_deadline_two, .setup = make_0, .thread = { acquire_until_0, acquire_one, release_two },
	   .check = left_what_expired);
X_SCENARIO(sem_deadlines_one_permit, .setup = make_0, .thread = { acquire_until_0, acquire_until_1, release_one },
	   .check = left_what_two_left);
X_SCENARIO(sem_deadlines_one_permit_barging, .setup = make_barging_0,
	   .thread = { acquire_until_0, acquire_until_1, release_one }, .check = left_what_two_left);
X_SCENARIO(sem_deadline_two_barging, .setup = make_barging_0, .thread = { acquire_until_0, acquire_one, release_two },
	   .check = left_what_expired);

/* A big request at the head holds back a small one; when it gives up, the small one goes. */
static void make_one_free(void)
{
	make(1, 0, 0);
}

static void make_one_free_barging(void)
{
	make(1, 0, VEZ_BARGING);
}

static void acquire_two_until(void)
{
	rc[0] = vez_sem_acquire_until(&s, 2, x_soon(), NULL);
	x_assert(rc[0] == ETIMEDOUT);
}

X_SCENARIO(sem_big_head, .setup = make_one_free, .thread = { acquire_two_until, acquire_one }, .check = left_0);
X_SCENARIO(sem_big_head_barging, .setup = make_one_free_barging, .thread = { acquire_two_until, acquire_one },
	   .check = left_0);

static void acquire_two_maybe(void)
{
	rc[0] = vez_sem_acquire_until(&s, 2, x_soon(), NULL);
	x_assert(rc[0] == 0 || rc[0] == ETIMEDOUT);
	if (rc[0] == 0)
		x_assert(vez_sem_release(&s, 2) == 0);
}

/* Either went first; all that was held is back but the one that is kept. */
static void left_one_free(void)
{
	left(1);
}

X_SCENARIO(sem_big_head_release, .setup = make_one_free, .thread = { acquire_two_maybe, acquire_one, release_one },
	   .check = left_one_free);

/* ---- keys ---- */

static void acquire_late_key(void)
{
	x_assert(vez_sem_acquire_key(&s, 1, 5, VEZ_FOREVER, NULL) == 0);
	x_assert(told == 1);
}

static void acquire_early_key(void)
{
	x_assert(vez_sem_acquire_key(&s, 1, -5, VEZ_FOREVER, NULL) == 0);
	told = 1;
	x_assert(vez_sem_release(&s, 1) == 0);
}

static void release_to_both(void)
{
	x_await(vez_sem_waiters(&s) == 2);
	x_assert(vez_sem_release(&s, 1) == 0);
}

X_SCENARIO(sem_keys, .setup = make_0, .thread = { acquire_late_key, acquire_early_key, release_to_both },
	   .check = left_0);

/* A plain acquire (key 0) comes before a queued one with a later key, if it can go. */
static void acquire_two_late_key(void)
{
	x_assert(vez_sem_acquire_key(&s, 2, 5, VEZ_FOREVER, NULL) == 0);
}

static void pass_late_key(void)
{
	x_await(vez_sem_waiters(&s) == 1);
	x_assert(vez_sem_try_acquire(&s, 1) == 0);
	x_assert(vez_sem_release(&s, 2) == 0);
}

X_SCENARIO(sem_key_passes, .setup = make_one_free, .thread = { acquire_two_late_key, pass_late_key }, .check = left_0);

/* ---- close and drain ---- */

static void acquire_or_closed(void)
{
	rc[0] = vez_sem_acquire(&s, 1);
	x_assert(rc[0] == 0 || rc[0] == VEZ_ECLOSED);
}

static void acquire_until_or_closed(void)
{
	rc[0] = vez_sem_acquire_until(&s, 1, x_soon(), NULL);
	x_assert(rc[0] == VEZ_ECLOSED || rc[0] == ETIMEDOUT);
}

static void close_it(void)
{
	x_assert(vez_sem_close(&s) == 0);
	x_assert(vez_sem_acquire(&s, 1) == VEZ_ECLOSED);
}

static void left_if_closed(void)
{
	left(rc[0] == 0 ? 0 : 1);
}

X_SCENARIO(sem_close, .setup = make_0, .thread = { acquire_until_or_closed, close_it }, .check = left_0);

/* What was released before the close goes to who was first in the queue. */
static void release_then_close(void)
{
	x_await(vez_sem_waiters(&s) == 1);
	x_assert(vez_sem_release(&s, 1) == 0);
	close_it();
}

static void was_granted(void)
{
	x_assert(rc[0] == 0);
	left(0);
}

X_SCENARIO(sem_close_after_release_barging, .setup = make_barging_0,
	   .thread = { acquire_or_closed, release_then_close }, .check = was_granted);
X_SCENARIO(sem_close_release, .setup = make_0, .thread = { acquire_or_closed, close_it, release_one },
	   .check = left_if_closed);

static void drain(void)
{
	rc[1] = (int)vez_sem_drain(&s);
}

static void drain_and_give_back(void)
{
	uint32_t n = vez_sem_drain(&s);
	x_assert(n <= 1);
	if (n > 0)
		x_assert(vez_sem_release(&s, n) == 0);
}

static void left_undrained(void)
{
	x_assert(rc[1] >= 0 && rc[1] <= (rc[0] == 0 ? 1 : 2));
	left((rc[0] == 0 ? 1 : 2) - (uint32_t)rc[1]);
}

X_SCENARIO(sem_drain, .setup = make_0, .thread = { acquire_until_0, drain, release_two }, .check = left_undrained,
	   .stale = 1);
X_SCENARIO(sem_drain_gives_back, .setup = make_0, .thread = { acquire_one, drain_and_give_back, release_one },
	   .check = left_0);

/* What is released while the drain is inside, and suffices for who waits, is that one's. */
static vez_request_t waits;

static void make_waited_for(void)
{
	make_0();
	vez_request_init(&waits, NULL, NULL);
	x_assert(vez_sem_acquire_async(&s, 1, &waits) == EINPROGRESS);
}

static void drain_nothing(void)
{
	x_assert(vez_sem_drain(&s) == 0);
}

static void granted(void)
{
	x_assert(vez_request_result(&waits) == 0);
	left_0();
}

X_SCENARIO(sem_drain_of_what_is_due, .setup = make_waited_for, .thread = { drain_nothing, release_one },
	   .check = granted);

/* ---- the maximum ---- */

static void release_or_overflow(void)
{
	rc[1] = vez_sem_release(&s, 1);
	x_assert(rc[1] == 0 || rc[1] == EOVERFLOW);
}

static void left_within_max(void)
{
	left(rc[1] == 0 ? 1 : 0);
}

X_SCENARIO(sem_overflow, .setup = make_1, .thread = { acquire_one, release_or_overflow }, .check = left_within_max);

/* ---- destroyed as soon as that is allowed ---- */

static void acquire_and_destroy(void)
{
	x_assert(vez_sem_acquire(&s, 1) == 0);
	x_assert(vez_sem_destroy(&s) == 0);
	x_dead(&s, sizeof s);
}

static void acquire_and_unmap(void)
{
	x_assert(vez_sem_acquire(&s, 1) == 0);
	x_dead(&s, sizeof s);
}

X_SCENARIO(sem_destroy, .setup = make_0, .thread = { acquire_and_destroy, release_one }, .stale = 1);
X_SCENARIO(sem_unmap, .setup = make_0, .thread = { acquire_and_unmap, release_one });
X_SCENARIO(sem_destroy_barging, .setup = make_barging_0, .thread = { acquire_and_destroy, release_one });
X_SCENARIO(sem_unmap_barging, .setup = make_barging_0, .thread = { acquire_and_unmap, release_one });
X_SCENARIO(sem_unmap_spinning, .setup = make_spinning_0, .thread = { acquire_and_unmap, release_one }, .cpus = 2);

/* The last of two to return unmaps it. */
static uint32_t returned;

static void acquire_and_unmap_last(void)
{
	x_assert(vez_sem_acquire(&s, 1) == 0);
	if (vez__fetch_add(&returned, 1, acq_rel) == 1)
		x_dead(&s, sizeof s);
}

static void make_unmapped_last(void)
{
	returned = 0;
	make(0, 0, 0);
}

X_SCENARIO(sem_unmap_last, .setup = make_unmapped_last,
	   .thread = { acquire_and_unmap_last, acquire_and_unmap_last, release_two }, .stale = 1);

/* A try may hold a permit while who released it has not left: destroy waits for that one. */
static void try_and_destroy(void)
{
	x_await(vez_sem_permits(&s) == 1);
	x_assert(vez_sem_try_acquire(&s, 1) == 0);
	x_assert(vez_sem_destroy(&s) == 0);
	x_dead(&s, sizeof s);
}

X_SCENARIO(sem_destroy_after_try, .setup = make_0, .thread = { try_and_destroy, release_one });

/* Who was held back by the head may unmap it once the head has given up. */
static uint32_t head_returned;

static void make_one_free_head(void)
{
	head_returned = 0;
	make(1, 0, 0);
}

static void head_gives_up(void)
{
	x_assert(vez_sem_acquire_until(&s, 2, x_soon(), NULL) == ETIMEDOUT);
	vez__exchange(&head_returned, 1, seq_cst);
}

static void follow_and_unmap(void)
{
	x_await(vez__load(&head_returned, acquire) == 1 || vez_sem_waiters(&s) == 1);
	if (vez__load(&head_returned, acquire) == 0) {
		x_assert(vez_sem_acquire(&s, 1) == 0);
		x_dead(&s, sizeof s);
	}
}

X_SCENARIO(sem_unmap_after_give_up, .setup = make_one_free_head, .thread = { head_gives_up, follow_and_unmap });

/* Who is let go by close may unmap it. */
static void closed_and_unmap(void)
{
	x_assert(vez_sem_acquire(&s, 1) == VEZ_ECLOSED);
	x_dead(&s, sizeof s);
}

static void close_queued(void)
{
	x_await(vez_sem_waiters(&s) == 1);
	x_assert(vez_sem_close(&s) == 0);
}

X_SCENARIO(sem_unmap_after_close, .setup = make_0, .thread = { closed_and_unmap, close_queued });

/* ---- tokens ---- */

static vez_cancel_t token;

static void make_token(uint32_t permits, unsigned flags)
{
	x_alive(&token, sizeof token);
	X_NAME(token);
	vez_cancel_init(&token);
	make(permits, 0, flags);
}

static void make_token_0(void)
{
	make_token(0, 0);
}

static void make_token_barging_0(void)
{
	make_token(0, VEZ_BARGING);
}

static void make_token_1(void)
{
	make_token(1, 0);
}

static void acquire_cancelled(void)
{
	x_assert(vez_sem_acquire_until(&s, 1, VEZ_FOREVER, &token) == ECANCELED);
}

static void acquire_token(void)
{
	rc[0] = vez_sem_acquire_until(&s, 1, VEZ_FOREVER, &token);
	x_assert(rc[0] == 0 || rc[0] == ECANCELED);
}

static void acquire_token_until(void)
{
	rc[0] = vez_sem_acquire_until(&s, 1, x_soon(), &token);
	x_assert(rc[0] == 0 || rc[0] == ECANCELED || rc[0] == ETIMEDOUT);
}

static void fire(void)
{
	vez_cancel_fire(&token);
	x_assert(vez_cancel_fired(&token));
}

static void left_if_ended(void)
{
	left(rc[0] == 0 ? 0 : 1);
}

X_SCENARIO(sem_token, .setup = make_token_0, .thread = { acquire_cancelled, fire }, .check = left_0, .stale = 1);
X_SCENARIO(sem_token_barging, .setup = make_token_barging_0, .thread = { acquire_cancelled, fire }, .check = left_0);
X_SCENARIO(sem_token_release, .setup = make_token_0, .thread = { acquire_token, fire, release_one },
	   .check = left_if_ended);
X_SCENARIO(sem_token_release_barging, .setup = make_token_barging_0, .thread = { acquire_token, fire, release_one },
	   .check = left_if_ended);
X_SCENARIO(sem_token_deadline, .setup = make_token_0, .thread = { acquire_token_until, fire, release_one },
	   .check = left_if_ended);

/* The head is called off, the one behind it goes. */
static void acquire_two_cancelled(void)
{
	x_assert(vez_sem_acquire_until(&s, 2, VEZ_FOREVER, &token) == ECANCELED);
}

X_SCENARIO(sem_token_big_head, .setup = make_token_1, .thread = { acquire_two_cancelled, acquire_one, fire },
	   .check = left_0);

/* What was queued at the fire is ended, though the token is armed anew before it runs. */
static void fire_and_clear(void)
{
	x_await(vez_sem_waiters(&s) == 1);
	vez_cancel_fire(&token);
	x_assert(vez_cancel_clear(&token));
}

X_SCENARIO(sem_token_cleared, .setup = make_token_0, .thread = { acquire_cancelled, fire_and_clear },
	   .check = left_0);

/* When the fire has returned, what was queued is decided: no release that begins later grants it, wherever its
 * thread is. */
static void acquire_ended(void)
{
	rc[0] = vez_sem_acquire_until(&s, 1, x_soon(), &token);
	x_assert(rc[0] == ECANCELED || rc[0] == ETIMEDOUT);
	vez__store(&told, 1, release);
}

static void fire_then_release(void)
{
	x_await(vez_sem_waiters(&s) == 1 || vez__load(&told, acquire));
	vez_cancel_fire(&token);
	x_assert(vez_sem_release(&s, 1) == 0);
}

X_SCENARIO(sem_fire_then_release, .setup = make_token_0, .thread = { acquire_ended, fire_then_release },
	   .check = left_if_ended);

/* The same where the thread was asked to retry: its permit was taken by the thread that asked. */
static void ask_fire_then_release(void)
{
	x_await(vez_sem_waiters(&s) == 1);
	x_assert(vez_sem_release(&s, 1) == 0);
	rc[1] = vez_sem_try_acquire(&s, 1);
	vez_cancel_fire(&token);
	if (rc[1] == 0)
		x_assert(vez_sem_release(&s, 1) == 0);
}

static void acquire_asked(void)
{
	rc[0] = vez_sem_acquire_until(&s, 1, VEZ_FOREVER, &token);
	x_assert(rc[0] == 0 || rc[0] == ECANCELED);
}

static void ended_if_taken(void)
{
	x_assert(rc[1] != 0 || rc[0] == ECANCELED);
	left_if_ended();
}

X_SCENARIO(sem_fire_then_release_barging, .setup = make_token_barging_0,
	   .thread = { acquire_asked, ask_fire_then_release }, .check = ended_if_taken);

/* ---- a release in a signal handler, at any point of what it interrupts ---- */

X_SCENARIO(sem_signal_in_acquire, .setup = make_0, .thread = { acquire_one }, .signal = release_one, .check = left_0,
	   .stale = 1);
X_SCENARIO(sem_signal_in_release, .setup = make_0, .thread = { release_one, acquire_two }, .signal = release_one,
	   .check = left_0);
X_SCENARIO(sem_signal_in_lock, .setup = make_0, .thread = { acquire_one, acquire_one, release_one },
	   .signal = release_one, .check = left_0);
X_SCENARIO(sem_signal_in_acquire_barging, .setup = make_barging_0, .thread = { acquire_one }, .signal = release_one,
	   .check = left_0);
X_SCENARIO(sem_signal_in_deadline, .setup = make_0, .thread = { acquire_until_0 }, .signal = release_one,
	   .check = left_what_expired);
X_SCENARIO(sem_signal_in_close, .setup = make_0, .thread = { close_it, acquire_or_closed }, .signal = release_one,
	   .check = left_if_closed);
