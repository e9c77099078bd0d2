/* SPDX-License-Identifier: MIT */
/*
 * Wait-for-any and asynchronous requests over all kinds of objects, from several threads, with random deadlines,
 * tokens, cancels, and functions that give back what was granted: what goes in comes out, and every function is called
 * once for each request that was queued. A timer's signal handler releases, too.
 */
#include "stress.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#define THREADS 3
#define MEMBERS 4
#define CAPACITY 4

static struct {
	vez_sem_t sem, barging;
	vez_rwlock_t lock;
	vez_queue_t queue;
	uint64_t places[CAPACITY];
	vez_event_t event; /* AUTO_RESET: one set is out, or kept */
	vez_cancel_t token;
	atomic_ulong put, taken, queued, called, owed;
	atomic_long inside; /* of the lock: readers, or -1 */
} s;

/* ---- what was granted is given back ---- */

enum wanted { SEM, BARGING, READ, WRITE, EVENT, PUT, TAKE, KINDS };

struct member_of {
	vez_request_t r;
	enum wanted kind;
	uint64_t item;
};

static int file(struct member_of *m)
{
	switch (m->kind) {
	case SEM:
		return vez_sem_acquire_async(&s.sem, 1, &m->r);
	case BARGING:
		return vez_sem_acquire_async(&s.barging, 1, &m->r);
	case READ:
		return vez_rwlock_rdlock_async(&s.lock, &m->r);
	case WRITE:
		return vez_rwlock_wrlock_async(&s.lock, &m->r);
	case EVENT:
		return vez_event_wait_async(&s.event, &m->r);
	case PUT:
		m->item = 1 + rnd(1000);
		return vez_queue_put_async(&s.queue, &m->item, &m->r);
	default:
		return vez_queue_take_async(&s.queue, &m->item, &m->r);
	}
}

static void give_back(struct member_of *m)
{
	long others;
	switch (m->kind) {
	case SEM:
		EXPECT(vez_sem_release(&s.sem, 1) == 0, "release");
		break;
	case BARGING:
		EXPECT(vez_sem_release(&s.barging, 1) == 0, "release");
		break;
	case READ:
		others = atomic_fetch_add(&s.inside, 1);
		EXPECT(others >= 0, "a reader beside a writer");
		atomic_fetch_sub(&s.inside, 1);
		EXPECT(vez_rwlock_rdunlock(&s.lock) == 0, "unlock");
		break;
	case WRITE:
		others = atomic_fetch_sub(&s.inside, 1);
		EXPECT(others == 0, "a writer is not alone");
		atomic_fetch_add(&s.inside, 1);
		EXPECT(vez_rwlock_wrunlock(&s.lock) == 0, "unlock");
		break;
	case EVENT:
		EXPECT(vez_event_set(&s.event) == 0, "set");
		break;
	case PUT:
		atomic_fetch_add(&s.put, m->item);
		break;
	default:
		atomic_fetch_add(&s.taken, m->item);
	}
}

/* ---- a wait for any of some ---- */

static void choose(void)
{
	struct member_of m[MEMBERS];
	vez_select_t any;
	vez_request_t *winner = NULL;
	unsigned count = 1 + (unsigned)rnd(MEMBERS);
	vez_select_init(&any);
	for (unsigned i = 0; i < count; i++) {
		m[i].kind = (enum wanted)rnd(KINDS);
		vez_select_case(&any, &m[i].r);
		if (rnd(8) == 0)
			vez_request_set_limits(&m[i].r, vez_after_ns((int64_t)rnd(50000)), rnd(2) ? &s.token : NULL);
		file(&m[i]);
	}
	vez_deadline_t at = rnd(4) ? vez_after_ns((int64_t)rnd(60000)) : VEZ_NOW;
	int rc = vez_select_wait(&any, at, rnd(2) ? &s.token : NULL, &winner);
	EXPECT(rc == 0 || rc == ETIMEDOUT || rc == ECANCELED, "result %d", rc);
	for (unsigned i = 0; i < count; i++) {
		int result = vez_request_result(&m[i].r);
		EXPECT(&m[i].r == winner ? result == rc : result == ECANCELED, "member %u of %u has %d", i, count,
		       result);
		if (rc == 0 && &m[i].r == winner)
			give_back(&m[i]);
	}
}

/* ---- a request whose function gives back and frees it ---- */

static void done(vez_request_t *r, int result, void *arg)
{
	struct member_of *m = arg;
	EXPECT(r == &m->r, "another request");
	if (result == 0)
		give_back(m);
	free(m);
	atomic_fetch_add(&s.called, 1);
}

static void leave_to_a_function(void)
{
	struct member_of *m = malloc(sizeof *m);
	m->kind = (enum wanted)rnd(KINDS);
	vez_request_init(&m->r, done, m);
	/* Ends by itself, so that all end. */
	vez_request_set_limits(&m->r, vez_after_ns((int64_t)rnd(100000)), rnd(2) ? &s.token : NULL);
	atomic_fetch_add(&s.queued, 1);
	int rc = file(m);
	if (rc == EINPROGRESS)
		return;
	atomic_fetch_sub(&s.queued, 1);
	if (rc == 0)
		give_back(m);
	free(m);
}

static void work(void *arg)
{
	(void)arg;
	if (rnd(3))
		choose();
	else
		leave_to_a_function();
	if (rnd(64) == 0) {
		vez_cancel_fire(&s.token);
		vez_cancel_clear(&s.token);
	}
}

/* ---- the handler ---- */

/* A permit that the main thread took is given back here, whatever was interrupted. */
static void on_alarm(int signo)
{
	unsigned long owed = atomic_load(&s.owed);
	(void)signo;
	while (owed > 0)
		if (atomic_compare_exchange_weak(&s.owed, &owed, owed - 1)) {
			vez_sem_release(&s.sem, 1);
			return;
		}
}

static void take_for_the_handler(void *arg)
{
	(void)arg;
	if (vez_sem_try_acquire(&s.sem, 1) == 0)
		atomic_fetch_add(&s.owed, 1);
	choose(); /* no function: one would run in the handler, and free is not for that */
}

static void start_timer(bool on)
{
	struct sigaction action = { .sa_flags = SA_RESTART };
	struct itimerval every = { { 0, on ? 300 : 0 }, { 0, on ? 300 : 0 } };
	action.sa_handler = on ? on_alarm : SIG_IGN;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
}

/* Seen to fail: with a lost member that is granted all the same, and (they hang) with members of one wait that meet and
 * with a wait that leaves some of them queued. */
static void load_test(const struct test *t)
{
	struct crew crew = { 0 };
	memset(&s, 0, sizeof s);
	vez_sem_init(&s.sem, 2, 0, 0);
	vez_sem_init(&s.barging, 2, 0, VEZ_BARGING);
	vez_queue_init(&s.queue, t->n ? s.places : NULL, sizeof s.places[0], t->n);
	vez_event_init(&s.event, VEZ_AUTO_RESET);
	vez_event_set(&s.event);
	for (unsigned i = 0; i < THREADS; i++)
		crew_add(&crew, "chooser", t->flags ? take_for_the_handler : work, NULL);
	if (t->flags)
		start_timer(true);
	for (unsigned long round = 0; round < rounds_of(t); round++) {
		crew_begin(&crew);
		crew_end(&crew);
		progress();
	}
	crew_dismiss(&crew);
	if (t->flags)
		start_timer(false);
	WAIT_UNTIL(atomic_load(&s.called) == atomic_load(&s.queued));
	for (uint64_t item; vez_queue_try_take(&s.queue, &item) == 0;)
		atomic_fetch_add(&s.taken, item);
	EXPECT(atomic_load(&s.put) == atomic_load(&s.taken), "put %lu, taken %lu", atomic_load(&s.put),
	       atomic_load(&s.taken));
	EXPECT(vez_sem_permits(&s.sem) + atomic_load(&s.owed) == 2, "%u permits", vez_sem_permits(&s.sem));
	EXPECT(vez_sem_permits(&s.barging) == 2, "%u barging permits", vez_sem_permits(&s.barging));
	EXPECT(vez_event_is_set(&s.event), "the set is lost");
	EXPECT(vez_rwlock_trywrlock(&s.lock) == 0, "the lock is held");
	EXPECT(vez_sem_destroy(&s.sem) == 0 && vez_sem_destroy(&s.barging) == 0 && vez_queue_destroy(&s.queue) == 0 &&
	       vez_event_destroy(&s.event) == 0, "destroy");
	EXPECT(vez_cancel_destroy(&s.token) == 0, "destroy");
}

const struct test select_tests[] = {
	{ "select-load-0", load_test, NULL, 0, 0, 2 },
	{ "select-load-4", load_test, NULL, CAPACITY, 0, 2 },
	{ "select-signal-0", load_test, NULL, 0, 1, 6 },
	{ "select-signal-4", load_test, NULL, CAPACITY, 1, 6 },
	{ NULL, NULL, NULL, 0, 0, 0 },
};
