/* SPDX-License-Identifier: MIT */
/*
 * Readers, writers and upgraders of every policy that lock, try, wait, give up and are cancelled as they come.
 *
 * What the lock guards is two plain variables that readers compare, so that the thread sanitizer sees a hole in it. In
 * the lifetime test whoever is let in destroys the lock and overwrites its memory, which is looked at when the unlock
 * that let it in has returned, too. Seen to fail: with an upgrader that does not wait for the undo after it gave up,
 * with an upgrader that stays counted, and with an unlock that reads the word once more when it has left.
 */
#include "stress.h"

#include <string.h>

#define THREADS 6

static struct {
	vez_rwlock_t lock;
	vez_cancel_t tokens[THREADS];
	unsigned long first, second; /* guarded by the lock */
	atomic_ulong writes, given_up;
} s;

static void compare(void)
{
	EXPECT(s.first == s.second, "a reader and a writer at the same time");
}

static void write_both(void)
{
	compare();
	s.first++;
	if (rnd(8) == 0)
		dawdle();
	s.second++;
	atomic_fetch_add(&s.writes, 1);
}

/* Whether the wait was granted; if not, it had a limit. */
static bool granted(int rc, vez_deadline_t deadline, const vez_cancel_t *token)
{
	EXPECT(rc == 0 || (rc == ETIMEDOUT && deadline != VEZ_FOREVER) || (rc == ECANCELED && token), "result %d", rc);
	EXPECT(rc != ETIMEDOUT || now_ns() >= deadline, "ETIMEDOUT before the deadline");
	if (rc != 0)
		atomic_fetch_add(&s.given_up, 1);
	return rc == 0;
}

static void done(int rc)
{
	EXPECT(rc == 0, "result %d", rc);
}

static void read_while_held(vez_deadline_t deadline, vez_cancel_t *token)
{
	compare();
	for (unsigned upgrades = (unsigned)rnd(3); upgrades > 0; upgrades--) {
		bool tries = rnd(3) == 0;
		int rc = tries ? vez_rwlock_try_upgrade(&s.lock) :
				 vez_rwlock_upgrade_until(&s.lock, deadline, token);
		if (tries ? rc == 0 : granted(rc, deadline, token)) {
			write_both();
			EXPECT(vez_rwlock_rdunlock(&s.lock) == EPERM, "unlocked while upgraded");
			done(vez_rwlock_undo_upgrade(&s.lock));
		}
		compare();
	}
	done(vez_rwlock_rdunlock(&s.lock));
}

static void write_while_held(void)
{
	write_both();
	if (rnd(3) == 0) {
		done(vez_rwlock_downgrade(&s.lock));
		read_while_held(VEZ_FOREVER, NULL);
	} else {
		done(vez_rwlock_wrunlock(&s.lock));
	}
}

static void one_of_many(void *arg)
{
	vez_cancel_t *own = arg;
	vez_deadline_t deadline = rnd(2) ? VEZ_FOREVER : vez_after_ns((int64_t)rnd(30000));
	vez_cancel_t *token = rnd(2) ? own : NULL;
	if (rnd(4) == 0)
		vez_cancel_fire(&s.tokens[rnd(THREADS)]);
	switch (rnd(8)) {
	case 0:
		if (vez_rwlock_tryrdlock(&s.lock) == 0)
			read_while_held(deadline, token);
		break;
	case 1:
		if (vez_rwlock_trywrlock(&s.lock) == 0)
			write_while_held();
		break;
	case 2:
	case 3:
		if (granted(vez_rwlock_wrlock_until(&s.lock, deadline, token), deadline, token))
			write_while_held();
		break;
	default:
		if (granted(vez_rwlock_rdlock_until(&s.lock, deadline, token), deadline, token))
			read_while_held(deadline, token);
	}
	vez_cancel_clear(own);
}

/* RW-41 too: the writers' short deadlines against readers. */
static void several(void *arg)
{
	for (int i = 0; i < 20; i++)
		one_of_many(arg);
}

static void mix_test(const struct test *t)
{
	struct crew crew = { 0 };
	unsigned long rounds = rounds_of(t);
	done(vez_rwlock_init(&s.lock, t->flags));
	for (unsigned i = 0; i < THREADS; i++) {
		vez_cancel_init(&s.tokens[i]);
		crew_add(&crew, "member", several, &s.tokens[i]);
	}
	for (unsigned long i = 0; i < rounds; i++) {
		crew_begin(&crew);
		crew_end(&crew);
		EXPECT(vez_rwlock_waiters(&s.lock) == 0, "%zu queued", vez_rwlock_waiters(&s.lock));
		done(vez_rwlock_trywrlock(&s.lock));
		EXPECT(s.second == atomic_load(&s.writes), "writes were lost");
		done(vez_rwlock_wrunlock(&s.lock));
	}
	crew_dismiss(&crew);
	done(vez_rwlock_destroy(&s.lock));
	remark("%lu writes, %lu waits given up", atomic_load(&s.writes), atomic_load(&s.given_up));
}

/* ---- lifetime ---- */

static void enter_and_destroy(void *arg)
{
	(void)arg;
	if (rnd(2)) {
		done(vez_rwlock_rdlock(&s.lock));
		done(vez_rwlock_rdunlock(&s.lock));
	} else {
		done(vez_rwlock_wrlock(&s.lock));
		done(vez_rwlock_wrunlock(&s.lock));
	}
	done(vez_rwlock_destroy(&s.lock));
	memset(&s.lock, FILL, sizeof s.lock);
}

static void destroy_test(const struct test *t)
{
	struct crew crew = { 0 };
	unsigned long rounds = rounds_of(t);
	crew_add(&crew, "destroyer", enter_and_destroy, NULL);
	for (unsigned long i = 0; i < rounds; i++) {
		done(vez_rwlock_init(&s.lock, t->flags));
		done(vez_rwlock_wrlock(&s.lock));
		crew_begin(&crew);
		WAIT_UNTIL(vez_rwlock_waiters(&s.lock) == 1);
		dawdle();
		done(vez_rwlock_wrunlock(&s.lock));
		crew_end(&crew);
		for (size_t k = 0; k < sizeof s.lock; k++)
			EXPECT(((unsigned char *)&s.lock)[k] == FILL, "byte %zu was written after destroy", k);
	}
	crew_dismiss(&crew);
}

const struct test rwlock_tests[] = {
	{ "rwlock-hoare", mix_test, NULL, 0, VEZ_RW_HOARE, 100 },
	{ "rwlock-fifo", mix_test, NULL, 0, VEZ_RW_FIFO, 100 },
	{ "rwlock-readers", mix_test, NULL, 0, VEZ_RW_READERS, 100 },
	{ "rwlock-destroy-hoare", destroy_test, NULL, 0, VEZ_RW_HOARE, 2 },
	{ "rwlock-destroy-fifo", destroy_test, NULL, 0, VEZ_RW_FIFO, 2 },
	{ 0 },
};
