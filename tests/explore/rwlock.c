/* SPDX-License-Identifier: MIT */
/* Scenarios of the readers-writer lock. What it guards is a plain variable: the explorer checks it for data races. */
#include "vez/rwlock.h"

#include <errno.h>

#include "scenario.h"
#include "src/futex/atomic.h"

static vez_rwlock_t l;
static vez_cancel_t token;
static int told;
static unsigned have_read;
static int rc[X_THREADS];

static void make(unsigned policy)
{
	x_alive(&l, sizeof l);
	x_alive(&token, sizeof token);
	X_NAME(l);
	X_NAME(token);
	x_assert(vez_rwlock_init(&l, policy) == 0);
	vez_cancel_init(&token);
	told = 0;
	have_read = 0;
	for (int i = 0; i < X_THREADS; i++)
		rc[i] = -1;
}

static void make_hoare(void)
{
	make(VEZ_RW_HOARE);
}

static void make_fifo(void)
{
	make(VEZ_RW_FIFO);
}

static void make_readers(void)
{
	make(VEZ_RW_READERS);
}

static void hold_write(void)
{
	x_assert(vez_rwlock_wrlock(&l) == 0);
}

static void hold_read(void)
{
	x_assert(vez_rwlock_rdlock(&l) == 0);
}

static void make_written(void)
{
	make_hoare();
	hold_write();
}

static void make_written_fifo(void)
{
	make_fifo();
	hold_write();
}

static void make_written_readers(void)
{
	make_readers();
	hold_write();
}

static void make_read(void)
{
	make_hoare();
	hold_read();
}

static void make_read_fifo(void)
{
	make_fifo();
	hold_read();
}

static void make_read_readers(void)
{
	make_readers();
	hold_read();
}

static void make_read_twice(void)
{
	make_read();
	hold_read();
}

static void make_read_twice_fifo(void)
{
	make_read_fifo();
	hold_read();
}

static void make_read_thrice(void)
{
	make_read_twice();
	hold_read();
}

static void left_free(void)
{
	x_assert(vez_rwlock_waiters(&l) == 0);
	x_assert(vez_rwlock_trywrlock(&l) == 0);
	x_assert(vez_rwlock_wrunlock(&l) == 0);
	x_assert(vez_rwlock_destroy(&l) == 0);
}

static void write_one(void)
{
	hold_write();
	told++;
	x_assert(vez_rwlock_wrunlock(&l) == 0);
}

static void read_one(void)
{
	hold_read();
	x_assert(told >= 0);
	x_assert(vez_rwlock_rdunlock(&l) == 0);
}

static void read_told(void)
{
	hold_read();
	x_assert(told == 1);
	x_assert(vez_rwlock_rdunlock(&l) == 0);
}

static void tell_and_unlock(void)
{
	told = 1;
	x_assert(vez_rwlock_wrunlock(&l) == 0);
}

static void read_and_unlock(void)
{
	x_assert(told == 0);
	x_assert(vez_rwlock_rdunlock(&l) == 0);
}

/* ---- hand-off ---- */

X_SCENARIO(rw_write_to_read, .setup = make_written, .thread = { read_told, tell_and_unlock }, .check = left_free,
	   .stale = 2);
X_SCENARIO(rw_write_to_read_fifo, .setup = make_written_fifo, .thread = { read_told, tell_and_unlock },
	   .check = left_free);
X_SCENARIO(rw_read_to_write, .setup = make_read, .thread = { write_one, read_and_unlock }, .check = left_free,
	   .stale = 2);
X_SCENARIO(rw_write_to_write, .setup = make_written, .thread = { write_one, tell_and_unlock }, .check = left_free,
	   .stale = 1);
X_SCENARIO(rw_write_to_two_readers, .setup = make_written, .thread = { read_told, read_told, tell_and_unlock },
	   .check = left_free);
X_SCENARIO(rw_write_to_two_readers_fifo, .setup = make_written_fifo,
	   .thread = { read_told, read_told, tell_and_unlock }, .check = left_free);

/* Whichever way it is held. */
static void write_any(void)
{
	hold_write();
	told++;
	x_assert(vez_rwlock_unlock(&l) == 0);
}

static void read_any(void)
{
	hold_read();
	x_assert(told >= 0);
	x_assert(vez_rwlock_unlock(&l) == 0);
}

X_SCENARIO(rw_unlock_any, .setup = make_read, .thread = { write_any, read_any, read_and_unlock }, .check = left_free);

/* ---- all kinds meet ---- */

static void wrote(int times)
{
	x_assert(told == times);
	left_free();
}

static void wrote_one(void)
{
	wrote(1);
}

static void wrote_two(void)
{
	wrote(2);
}

X_SCENARIO(rw_two_writers, .setup = make_hoare, .thread = { write_one, write_one }, .check = wrote_two, .stale = 2);
X_SCENARIO(rw_reader_writer, .setup = make_hoare, .thread = { read_one, write_one }, .check = wrote_one, .stale = 1);
X_SCENARIO(rw_two_readers_writer, .setup = make_hoare, .thread = { read_one, write_one, read_one }, .check = wrote_one);
X_SCENARIO(rw_two_readers_writer_fifo, .setup = make_fifo, .thread = { read_one, write_one, read_one },
	   .check = wrote_one);
X_SCENARIO(rw_two_readers_writer_readers, .setup = make_readers, .thread = { read_one, write_one, read_one },
	   .check = wrote_one);
X_SCENARIO(rw_reader_two_writers, .setup = make_hoare, .thread = { write_one, read_one, write_one },
	   .check = wrote_two);
X_SCENARIO(rw_reader_two_writers_fifo, .setup = make_fifo, .thread = { write_one, read_one, write_one },
	   .check = wrote_two);

/* The same where the lock is held first, so that all of them queue. */
static void unlock_written(void)
{
	told++;
	x_assert(vez_rwlock_wrunlock(&l) == 0);
}

X_SCENARIO(rw_busy_hoare, .setup = make_written, .thread = { read_one, write_one, unlock_written }, .check = wrote_two);
X_SCENARIO(rw_busy_fifo, .setup = make_written_fifo, .thread = { read_one, write_one, unlock_written },
	   .check = wrote_two);
X_SCENARIO(rw_busy_readers, .setup = make_written_readers, .thread = { read_one, write_one, unlock_written },
	   .check = wrote_two);

/* ---- who is decided on is not overtaken ---- */

static void keep_write(void)
{
	hold_write();
}

static void unlock_write(void)
{
	x_assert(vez_rwlock_wrunlock(&l) == 0);
}

static void left_written(void)
{
	unlock_write();
	left_free();
}

/* The writer that waits has it; neither kind of newcomer does. */
static void unlock_read_then_try(void)
{
	x_await(vez_rwlock_waiters(&l) == 1);
	x_assert(vez_rwlock_rdunlock(&l) == 0);
	x_assert(vez_rwlock_trywrlock(&l) == EBUSY);
	x_assert(vez_rwlock_tryrdlock(&l) == EBUSY);
}

X_SCENARIO(rw_try_after_unlock, .setup = make_read, .thread = { keep_write, unlock_read_then_try },
	   .check = left_written);
X_SCENARIO(rw_try_after_unlock_readers, .setup = make_read_readers, .thread = { keep_write, unlock_read_then_try },
	   .check = left_written);

/* A leaving writer admits those who wait, and only those: the next one is a writer. */
static void keep_write_queued_second(void)
{
	x_await(vez_rwlock_waiters(&l) == 1);
	hold_write();
}

static void unlock_write_then_try(void)
{
	x_await(vez_rwlock_waiters(&l) == 2);
	told = 1;
	x_assert(vez_rwlock_wrunlock(&l) == 0);
	x_assert(vez_rwlock_rdlock_until(&l, VEZ_NOW, NULL) == ETIMEDOUT);
}

X_SCENARIO(rw_only_those, .setup = make_written,
	   .thread = { read_told, keep_write_queued_second, unlock_write_then_try },
	   .check = left_written);

/* Readers who waited when a writer left are due: no newcomer writes before they have read, whoever is to let them
 * in. */
static void read_and_tell(void)
{
	hold_read();
	vez__fetch_add(&have_read, 1, relaxed);
	x_assert(vez_rwlock_rdunlock(&l) == 0);
}

static void unlock_write_then_try_to_write(void)
{
	x_await(vez_rwlock_waiters(&l) >= 1);
	x_assert(vez_rwlock_wrunlock(&l) == 0);
	int got = vez_rwlock_trywrlock(&l);
	x_assert(got == EBUSY || vez__load(&have_read, relaxed) > 0);
	if (got == 0)
		unlock_write();
}

X_SCENARIO(rw_readers_are_due, .setup = make_written,
	   .thread = { read_and_tell, read_and_tell, unlock_write_then_try_to_write }, .check = left_free);
X_SCENARIO(rw_readers_are_due_fifo, .setup = make_written_fifo,
	   .thread = { read_and_tell, read_and_tell, unlock_write_then_try_to_write }, .check = left_free);

/* All of those: the writer that waits comes after both. */
static void read_untold(void)
{
	hold_read();
	x_assert(told == 0);
	x_assert(vez_rwlock_rdunlock(&l) == 0);
}

static void write_queued_third(void)
{
	x_await(vez_rwlock_waiters(&l) == 2);
	write_one();
}

static void unlock_when_three_wait(void)
{
	x_await(vez_rwlock_waiters(&l) == 3);
	x_assert(vez_rwlock_wrunlock(&l) == 0);
}

X_SCENARIO(rw_all_those, .setup = make_written,
	   .thread = { read_untold, read_untold, write_queued_third, unlock_when_three_wait }, .check = wrote_one,
	   .preemptions = 1, .random = 5000);

/* With readers first, a newcomer reads whoever waits. */
static void try_to_read_surely(void)
{
	x_assert(vez_rwlock_tryrdlock(&l) == 0);
	x_assert(vez_rwlock_rdunlock(&l) == 0);
}

static void unlock_read(void)
{
	x_assert(vez_rwlock_rdunlock(&l) == 0);
}

static void try_to_read_then_unlock(void)
{
	try_to_read_surely();
	unlock_read();
}

X_SCENARIO(rw_try_never_busy, .setup = make_read_readers, .thread = { write_one, try_to_read_then_unlock },
	   .check = wrote_one);
X_SCENARIO(rw_try_never_busy_among_readers, .setup = make_hoare, .thread = { read_one, try_to_read_surely },
	   .check = left_free);

/* ---- giving up ---- */

static void write_until(void)
{
	rc[0] = vez_rwlock_wrlock_until(&l, x_soon(), NULL);
	x_assert(rc[0] == 0 || rc[0] == ETIMEDOUT);
	if (rc[0] == 0)
		unlock_written();
}

static void read_until(void)
{
	rc[1] = vez_rwlock_rdlock_until(&l, x_soon(), NULL);
	x_assert(rc[1] == 0 || rc[1] == ETIMEDOUT);
	if (rc[1] == 0)
		read_and_unlock();
}

static void wrote_unless_late(void)
{
	wrote(rc[0] == 0 ? 1 : 0);
}

X_SCENARIO(rw_writer_deadline, .setup = make_read, .thread = { write_until, read_and_unlock },
	   .check = wrote_unless_late, .stale = 1);
X_SCENARIO(rw_reader_deadline, .setup = make_written, .thread = { read_until, unlock_write }, .check = left_free);

/* The reader behind a writer that gives up goes though nobody unlocks. */
static void write_in_vain(void)
{
	x_assert(vez_rwlock_wrlock_until(&l, x_soon(), NULL) == ETIMEDOUT);
}

static void left_read(void)
{
	unlock_read();
	left_free();
}

X_SCENARIO(rw_writer_gives_up, .setup = make_read, .thread = { write_in_vain, read_one }, .check = left_read);
X_SCENARIO(rw_writer_gives_up_fifo, .setup = make_read_fifo, .thread = { write_in_vain, read_one }, .check = left_read);
X_SCENARIO(rw_writer_gives_up_two, .setup = make_read, .thread = { write_in_vain, read_one, read_one },
	   .check = left_read);
X_SCENARIO(rw_writer_gives_up_unlock, .setup = make_read, .thread = { write_until, read_one, unlock_read },
	   .check = wrote_unless_late);
X_SCENARIO(rw_writer_gives_up_unlock_fifo, .setup = make_read_fifo, .thread = { write_until, read_one, unlock_read },
	   .check = wrote_unless_late);
X_SCENARIO(rw_readers_deadline, .setup = make_written, .thread = { read_until, read_one, unlock_write },
	   .check = left_free);

static void write_cancellable(void)
{
	rc[0] = vez_rwlock_wrlock_until(&l, VEZ_FOREVER, &token);
	x_assert(rc[0] == 0 || rc[0] == ECANCELED);
	if (rc[0] == 0)
		unlock_written();
}

static void read_cancellable(void)
{
	rc[1] = vez_rwlock_rdlock_until(&l, VEZ_FOREVER, &token);
	x_assert(rc[1] == 0 || rc[1] == ECANCELED);
	if (rc[1] == 0)
		unlock_read();
}

static void fire(void)
{
	vez_cancel_fire(&token);
}

X_SCENARIO(rw_writer_token, .setup = make_read, .thread = { write_cancellable, fire, unlock_read },
	   .check = wrote_unless_late);
X_SCENARIO(rw_writer_token_reader, .setup = make_read, .thread = { write_cancellable, fire, read_one },
	   .check = left_read);
X_SCENARIO(rw_reader_token, .setup = make_written, .thread = { read_cancellable, fire, unlock_write },
	   .check = left_free);

/* ---- downgrade ---- */

/* No writer comes in between. */
static void downgrade(void)
{
	told++;
	x_assert(vez_rwlock_downgrade(&l) == 0);
	int mine = told;
	x_assert(vez_rwlock_rdunlock(&l) == 0);
	x_assert(mine == 1);
}

X_SCENARIO(rw_downgrade, .setup = make_written, .thread = { downgrade, write_one }, .check = wrote_two, .stale = 1);
X_SCENARIO(rw_downgrade_reader, .setup = make_written, .thread = { downgrade, write_one, read_one },
	   .check = wrote_two);
X_SCENARIO(rw_downgrade_reader_fifo, .setup = make_written_fifo, .thread = { downgrade, write_one, read_one },
	   .check = wrote_two);

/* ---- upgrades ---- */

/* A reader that holds already: in, out, away. */
static void upgrade(void)
{
	x_assert(told >= 0);
	x_assert(vez_rwlock_upgrade_until(&l, VEZ_FOREVER, NULL) == 0);
	told++;
	x_assert(vez_rwlock_undo_upgrade(&l) == 0);
	x_assert(told >= 1);
	unlock_read();
}

static void wrote_three(void)
{
	wrote(3);
}

X_SCENARIO(rw_upgrade_alone, .setup = make_read, .thread = { upgrade, read_one }, .check = wrote_one);
X_SCENARIO(rw_upgrade_two, .setup = make_read_twice, .thread = { upgrade, upgrade }, .check = wrote_two);
X_SCENARIO(rw_upgrade_three, .setup = make_read_thrice, .thread = { upgrade, upgrade, upgrade },
	   .check = wrote_three);
X_SCENARIO(rw_upgrade_reader_leaves, .setup = make_read_twice, .thread = { upgrade, unlock_read, read_one },
	   .check = wrote_one);
X_SCENARIO(rw_upgrade_writer, .setup = make_read, .thread = { upgrade, write_one }, .check = wrote_two, .stale = 1);
X_SCENARIO(rw_upgrade_writer_reader, .setup = make_read, .thread = { upgrade, write_one, read_one },
	   .check = wrote_two);
X_SCENARIO(rw_upgrade_writer_reader_fifo, .setup = make_read_fifo, .thread = { upgrade, write_one, read_one },
	   .check = wrote_two);

/* It gives up, perhaps while the other one is upgraded: what it reads then must not be written at the time. */
static void upgrade_until_as(int i)
{
	rc[i] = vez_rwlock_upgrade_until(&l, x_soon(), NULL);
	x_assert(rc[i] == 0 || rc[i] == ETIMEDOUT);
	if (rc[i] == 0) {
		told++;
		x_assert(vez_rwlock_undo_upgrade(&l) == 0);
	}
	x_assert(told >= 0);
	unlock_read();
}

static void upgrade_until(void)
{
	upgrade_until_as(0);
}

static void upgrade_too_until(void)
{
	upgrade_until_as(1);
}

static void upgrade_cancellable(void)
{
	rc[0] = vez_rwlock_upgrade_until(&l, VEZ_FOREVER, &token);
	x_assert(rc[0] == 0 || rc[0] == ECANCELED);
	if (rc[0] == 0) {
		told++;
		x_assert(vez_rwlock_undo_upgrade(&l) == 0);
	}
	x_assert(told >= 0);
	unlock_read();
}

static void wrote_one_or_two(void)
{
	wrote(rc[0] == 0 ? 2 : 1);
}

static void wrote_two_or_three(void)
{
	wrote(rc[0] == 0 ? 3 : 2);
}

static void wrote_one_or_more(void)
{
	wrote(1 + (rc[0] == 0) + (rc[1] == 0));
}

X_SCENARIO(rw_upgrade_gives_up, .setup = make_read_twice, .thread = { upgrade_until, upgrade },
	   .check = wrote_one_or_two);
X_SCENARIO(rw_upgrade_gives_up_fifo, .setup = make_read_twice_fifo, .thread = { upgrade_until, upgrade },
	   .check = wrote_one_or_two);
X_SCENARIO(rw_upgrade_gives_up_reader, .setup = make_read_twice, .thread = { upgrade_until, upgrade, read_one },
	   .check = wrote_one_or_two);
X_SCENARIO(rw_upgrade_token, .setup = make_read_twice, .thread = { upgrade_cancellable, upgrade, fire },
	   .check = wrote_one_or_two);

/* It gives up while one is upgraded and another waits to be: it is let go first. */
X_SCENARIO(rw_upgrade_gives_up_three, .setup = make_read_thrice, .thread = { upgrade_until, upgrade, upgrade },
	   .check = wrote_two_or_three);

/* Two give up while one is upgraded. */
X_SCENARIO(rw_upgrade_two_give_up, .setup = make_read_thrice, .thread = { upgrade_until, upgrade_too_until, upgrade },
	   .check = wrote_one_or_more, .preemptions = 1, .random = 20000);

/* The readers whom a waiting upgrader held back go when it gives up, though nobody unlocks. */
static void upgrade_in_vain(void)
{
	x_assert(vez_rwlock_upgrade_until(&l, x_soon(), NULL) == ETIMEDOUT);
}

static void left_read_twice(void)
{
	unlock_read();
	left_read();
}

X_SCENARIO(rw_upgrade_in_vain, .setup = make_read_twice, .thread = { upgrade_in_vain, read_one },
	   .check = left_read_twice);

/* Newcomers do not read while an upgrader waits. */
static void try_then_unlock_read(void)
{
	x_await(vez_rwlock_waiters(&l) == 1);
	x_assert(vez_rwlock_tryrdlock(&l) == EBUSY);
	unlock_read();
}

X_SCENARIO(rw_upgrade_holds_back, .setup = make_read_twice, .thread = { upgrade, try_then_unlock_read },
	   .check = wrote_one);

/* In order of arrival, an undo with a writer first in the queue is for nobody: upgrading again needs no luck. */
static void make_upgraded_fifo(void)
{
	make_read_fifo();
	x_assert(vez_rwlock_try_upgrade(&l) == 0);
}

static void undo_and_upgrade_again(void)
{
	x_await(vez_rwlock_waiters(&l) == 2);
	x_assert(vez_rwlock_undo_upgrade(&l) == 0);
	x_assert(vez_rwlock_try_upgrade(&l) == 0);
	x_assert(vez_rwlock_undo_upgrade(&l) == 0);
	unlock_read();
}

static void read_queued_second(void)
{
	x_await(vez_rwlock_waiters(&l) == 1);
	read_told();
}

X_SCENARIO(rw_upgrade_again_fifo, .setup = make_upgraded_fifo,
	   .thread = { write_one, read_queued_second, undo_and_upgrade_again }, .check = wrote_one);

/* Who undoes and upgrades again at once does not overtake the reader that the undo admitted. */
static void make_upgraded(void)
{
	make_read();
	x_assert(vez_rwlock_try_upgrade(&l) == 0);
}

static void keep_read(void)
{
	hold_read();
}

static void undo_and_try_again(void)
{
	x_await(vez_rwlock_waiters(&l) == 1);
	x_assert(vez_rwlock_undo_upgrade(&l) == 0);
	x_assert(vez_rwlock_try_upgrade(&l) == EBUSY);
}

X_SCENARIO(rw_undo_admits, .setup = make_upgraded, .thread = { keep_read, undo_and_try_again },
	   .check = left_read_twice);
X_SCENARIO(rw_undo_admits_fifo, .setup = make_upgraded_fifo, .thread = { keep_read, undo_and_try_again },
	   .check = left_read_twice);

/* ---- destroyed as soon as that is allowed ---- */

static void write_and_destroy(void)
{
	hold_write();
	x_assert(vez_rwlock_wrunlock(&l) == 0);
	x_assert(vez_rwlock_destroy(&l) == 0);
	x_dead(&l, sizeof l);
}

static void read_and_unmap(void)
{
	hold_read();
	x_dead(&l, sizeof l);
}

static void write_and_unmap(void)
{
	hold_write();
	x_dead(&l, sizeof l);
}

X_SCENARIO(rw_destroy, .setup = make_read, .thread = { write_and_destroy, unlock_read });
X_SCENARIO(rw_unmap_reader, .setup = make_written, .thread = { read_and_unmap, unlock_written }, .stale = 1);
X_SCENARIO(rw_unmap_reader_fifo, .setup = make_written_fifo, .thread = { read_and_unmap, unlock_written });
X_SCENARIO(rw_unmap_writer, .setup = make_read, .thread = { write_and_unmap, unlock_read });

static void make_read_spinning(void)
{
	x_spin(2);
	make_read();
}

X_SCENARIO(rw_unmap_writer_spinning, .setup = make_read_spinning, .thread = { write_and_unmap, unlock_read },
	   .cpus = 2);

