/* SPDX-License-Identifier: MIT */
/*
 * The calls that only look (how many wait, what is free, whether it is set), of every synchronizer: any thread may make
 * them at any moment, whoever waits, gives up or is inside, and they wait for nobody.
 *
 * What makes them so is that they write nothing: the object lies on a page that cannot be written while they look. Each
 * object is held by the test's first thread, so that a wait on it blocks until that one lets go. A failure names
 * the kind.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vez.h>

#include "guard.h"
#include "engine/filing.h"
#include "thread.h"
#include "variant.h"

static const char *kind_name = "";

/* Somebody wrote: says to what, and crashes. */
static void tell_kind(int signo)
{
	static const char what[] = "it was written to: ";
	(void)signo;
	if (write(STDERR_FILENO, what, sizeof what - 1) < 0 || write(STDERR_FILENO, kind_name, strlen(kind_name)) < 0)
		abort();
}

static void prepare(void)
{
	struct sigaction action = { .sa_handler = tell_kind, .sa_flags = (int)SA_RESETHAND };
	sigaction(SIGSEGV, &action, NULL);
}

TestSuite(looks, .timeout = 120, .init = prepare);

#define WAITERS 2
#define MS INT64_C(1000000)
#define OTHERS 3

/* What is seen of an object: the requests that are queued; and what else it tells. */
struct view {
	size_t waiters;
	uint64_t others[OTHERS];
};

struct kind {
	const char *name;
	size_t size;
	/* Held: a wait blocks. */
	void (*make)(void *o);
	/* Waits for what is held and, if it gets it, gives it back. */
	int (*wait)(void *o, vez_deadline_t deadline, vez_cancel_t *cancel);
	/* What let those who wait go, and lets pass who comes later, too. */
	void (*let_go)(void *o);
	int (*destroy)(void *o);
	size_t (*waiters)(const void *o);
	/* NULL: it tells nothing else. */
	void (*others)(const void *o, uint64_t others[OTHERS]);
	/* What it tells while it is held; the most it may ever tell. */
	uint64_t held[OTHERS], most[OTHERS];
	size_t core; /* where in it its core is */
};

/* ---- the kinds ---- */

static void make_sem(void *o)
{
	vez_sem_init(o, 0, 1, 0);
}

static int wait_sem(void *o, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	int rc = vez_sem_acquire_until(o, 1, deadline, cancel);
	return rc == 0 ? vez_sem_release(o, 1) : rc;
}

static void let_go_sem(void *o)
{
	vez_sem_release(o, 1);
}

static int destroy_sem(void *o)
{
	return vez_sem_destroy(o);
}

static size_t sem_waiters(const void *o)
{
	return vez_sem_waiters(o);
}

static void sem_others(const void *o, uint64_t others[OTHERS])
{
	others[0] = vez_sem_permits(o);
}

static void make_mutex_held(void *o)
{
	vez_mutex_init(o, 0);
	vez_mutex_lock(o);
}

static void make_owned(void *o)
{
	vez_mutex_init(o, VEZ_RECURSIVE | VEZ_FAIR);
	vez_mutex_lock(o);
}

static int wait_mutex(void *o, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	int rc = vez_mutex_lock_until(o, deadline, cancel);
	return rc == 0 ? vez_mutex_unlock(o) : rc;
}

static void let_go_mutex(void *o)
{
	vez_mutex_unlock(o);
}

static int destroy_mutex(void *o)
{
	return vez_mutex_destroy(o);
}

static size_t mutex_waiters(const void *o)
{
	return vez_mutex_waiters(o);
}

/* The caller's own holds: of the one who looks from another thread, none. */
static void mutex_others(const void *o, uint64_t others[OTHERS])
{
	others[0] = vez_mutex_holds(o);
}

static bool is_open;

static bool open_now(void *arg)
{
	(void)arg;
	return is_open;
}

static void make_gated(void *o)
{
	vez_mutex_init(o, 0);
	is_open = false;
}

static int wait_gated(void *o, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	int rc = vez_mutex_lock_when(o, open_now, NULL, deadline, cancel);
	return rc == 0 ? vez_mutex_unlock(o) : rc;
}

static void let_go_gated(void *o)
{
	vez_mutex_lock(o);
	is_open = true;
	vez_mutex_unlock(o);
}

static vez_mutex_t mutex_of_cond;
static bool notified;

static bool was_notified(void *arg)
{
	(void)arg;
	return notified;
}

static int wait_told(void *o, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	vez_mutex_lock(&mutex_of_cond);
	int rc = vez_cond_wait_when(o, &mutex_of_cond, was_notified, NULL, deadline, cancel);
	vez_mutex_unlock(&mutex_of_cond);
	return rc;
}

static void make_cond(void *o)
{
	vez_mutex_init(&mutex_of_cond, 0);
	vez_cond_init(o);
	notified = false;
}

static int wait_cond(void *o, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	vez_mutex_lock(&mutex_of_cond);
	int rc = notified ? 0 : vez_cond_wait_until(o, &mutex_of_cond, deadline, cancel);
	vez_mutex_unlock(&mutex_of_cond);
	return rc;
}

static void let_go_cond(void *o)
{
	vez_mutex_lock(&mutex_of_cond);
	notified = true;
	vez_cond_broadcast(o);
	vez_mutex_unlock(&mutex_of_cond);
}

static int destroy_cond(void *o)
{
	return vez_cond_destroy(o);
}

static size_t cond_waiters(const void *o)
{
	return vez_cond_waiters(o);
}

static void make_rwlock(void *o)
{
	vez_rwlock_init(o, VEZ_RW_HOARE);
	vez_rwlock_wrlock(o);
}

static int wait_rwlock(void *o, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	int rc = vez_rwlock_rdlock_until(o, deadline, cancel);
	return rc == 0 ? vez_rwlock_rdunlock(o) : rc;
}

static void let_go_rwlock(void *o)
{
	vez_rwlock_wrunlock(o);
}

static int destroy_rwlock(void *o)
{
	return vez_rwlock_destroy(o);
}

static size_t rwlock_waiters(const void *o)
{
	return vez_rwlock_waiters(o);
}

/* A wait that fails breaks it; who comes then is told so. */
static void make_barrier(void *o)
{
	vez_barrier_init(o, WAITERS + 1, NULL, NULL);
}

static int wait_barrier(void *o, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	return vez_barrier_wait_until(o, NULL, deadline, cancel);
}

static void let_go_barrier(void *o)
{
	vez_barrier_wait_until(o, NULL, VEZ_NOW, NULL);
}

static int destroy_barrier(void *o)
{
	return vez_barrier_destroy(o);
}

static size_t barrier_waiters(const void *o)
{
	return vez_barrier_waiters(o);
}

static void barrier_others(const void *o, uint64_t others[OTHERS])
{
	others[0] = vez_barrier_broken(o);
}

static void make_latch(void *o)
{
	vez_latch_init(o, 1);
}

static int wait_latch(void *o, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	return vez_latch_wait_until(o, deadline, cancel);
}

static void let_go_latch(void *o)
{
	vez_latch_count_down(o, 1);
}

static int destroy_latch(void *o)
{
	return vez_latch_destroy(o);
}

static size_t latch_waiters(const void *o)
{
	return vez_latch_waiters(o);
}

static void latch_others(const void *o, uint64_t others[OTHERS])
{
	others[0] = vez_latch_count(o);
}

static void make_manual(void *o)
{
	vez_event_init(o, 0);
}

static void make_automatic(void *o)
{
	vez_event_init(o, VEZ_AUTO_RESET);
}

static int wait_event(void *o, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	return vez_event_wait_until(o, deadline, cancel);
}

/* Who was let through lets the next one through. */
static int wait_automatic(void *o, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	int rc = vez_event_wait_until(o, deadline, cancel);
	return rc == 0 ? vez_event_set(o) : rc;
}

static void let_go_event(void *o)
{
	vez_event_set(o);
}

static int destroy_event(void *o)
{
	return vez_event_destroy(o);
}

static size_t event_waiters(const void *o)
{
	return vez_event_waiters(o);
}

static void event_others(const void *o, uint64_t others[OTHERS])
{
	others[0] = vez_event_is_set(o);
}

static int ring[2];

static void make_full(void *o)
{
	int item = 0;
	vez_queue_init(o, ring, sizeof(int), 2);
	vez_queue_put(o, &item);
	vez_queue_put(o, &item);
}

static int wait_put(void *o, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	int item = 1;
	int rc = vez_queue_put_until(o, &item, deadline, cancel);
	return rc == 0 ? vez_queue_take(o, &item) : rc;
}

static void let_go_full(void *o)
{
	int item;
	vez_queue_take(o, &item);
	vez_queue_take(o, &item);
}

static void make_empty(void *o)
{
	vez_queue_init(o, ring, sizeof(int), 2);
}

static int wait_take(void *o, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	int item;
	int rc = vez_queue_take_until(o, &item, deadline, cancel);
	return rc == 0 ? vez_queue_put(o, &item) : rc;
}

static void let_go_empty(void *o)
{
	int item = 0;
	vez_queue_put(o, &item);
}

static int destroy_queue(void *o)
{
	return vez_queue_destroy(o);
}

static size_t queue_waiters(const void *o)
{
	return vez_queue_waiters(o);
}

static void queue_others(const void *o, uint64_t others[OTHERS])
{
	others[0] = vez_queue_length(o);
	others[1] = vez_queue_putters(o);
	others[2] = vez_queue_takers(o);
}

static void make_group(void *o)
{
	vez_group_init(o, 0);
	vez_group_enter(o, 1);
}

static int wait_group(void *o, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	int rc = vez_group_enter_until(o, 2, deadline, cancel);
	return rc == 0 ? vez_group_leave(o) : rc;
}

static void let_go_group(void *o)
{
	vez_group_leave(o);
}

static int destroy_group(void *o)
{
	return vez_group_destroy(o);
}

static size_t group_waiters(const void *o)
{
	return vez_group_waiters(o);
}

static void make_sched(void *o)
{
	vez_sched_init(o, NULL, 0);
	vez_sched_enter(o, NULL);
}

static int wait_sched(void *o, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	int rc = vez_sched_enter_until(o, NULL, deadline, cancel);
	return rc == 0 ? vez_sched_leave(o) : rc;
}

static void let_go_sched(void *o)
{
	vez_sched_leave(o);
}

static int destroy_sched(void *o)
{
	return vez_sched_destroy(o);
}

static size_t sched_waiters(const void *o)
{
	return vez_sched_waiters(o);
}

/* A once tells nobody how many wait: that is read from its room, which is private. Its waits have no limits. */
static struct thread runner;
static struct gate inside_once;

static int stop_inside(void *arg)
{
	(void)arg;
	gate_pass(&inside_once);
	return 0;
}

static void run_once(void *o)
{
	vez_once(o, stop_inside, NULL);
}

static void make_once(void *o)
{
	memset(o, 0, sizeof(vez_once_t));
	gate_init(&inside_once);
	thread_start(&runner, run_once, o);
	gate_await(&inside_once, 1);
}

static int wait_once(void *o, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	(void)deadline, (void)cancel;
	return vez_once(o, stop_inside, NULL);
}

static void let_go_once(void *o)
{
	(void)o;
	gate_open(&inside_once);
	thread_join(&runner);
}

static int destroy_once(void *o)
{
	(void)o;
	return 0;
}

static size_t once_waiters(const void *o)
{
	return __atomic_load_n(&((const vez_once_t *)o)->core_.length_, __ATOMIC_RELAXED);
}

/* A user's own: an event in a monitor. */
struct own {
	vez_monitor_t monitor;
	vez_room_t room;
	bool open;
};

static void make_own(void *object)
{
	struct own *o = object;
	memset(o, 0, sizeof *o);
	vez_monitor_init(&o->monitor, NULL);
	vez_room_init(&o->room);
}

static int wait_own(void *object, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	struct own *o = object;
	vez_request_t r = VEZ_REQUEST_INITIALIZER;
	vez_monitor_enter(&o->monitor);
	if (!o->open)
		return vez_monitor_wait(&o->monitor, &o->room, &r, deadline, cancel);
	vez_monitor_exit(&o->monitor);
	return 0;
}

static void let_go_own(void *object)
{
	struct own *o = object;
	vez_monitor_enter(&o->monitor);
	o->open = true;
	while (vez_room_first(&o->room))
		vez_monitor_settle(&o->monitor, vez_room_first(&o->room), 0);
	vez_monitor_exit(&o->monitor);
}

static int destroy_own(void *object)
{
	return vez_monitor_destroy(&((struct own *)object)->monitor);
}

static size_t own_waiters(const void *object)
{
	return vez_room_length(&((const struct own *)object)->room);
}

/* An object whose operation is constrained. */
static bool may_run;
static vez_constraint_t constraint;

static bool is_permitted(void *arg, void *call)
{
	(void)arg, (void)call;
	return may_run;
}

static void do_nothing(void *self, void *arg)
{
	(void)self, (void)arg;
}

static void permit(void *self, void *arg)
{
	(void)self, (void)arg;
	may_run = true;
}

static const vez_operation_t constrained = { "constrained", do_nothing }, permitting = { "permitting", permit };

static void make_object(void *o)
{
	may_run = false;
	vez_object_init(o, NULL, 0);
	vez_constraint_add(o, &constrained, is_permitted, NULL, &constraint);
}

static int wait_object(void *o, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	return vez_object_call_until(o, &constrained, NULL, deadline, cancel);
}

static void let_go_object(void *o)
{
	vez_object_call(o, &permitting, NULL);
}

static int destroy_object(void *o)
{
	return vez_object_destroy(o);
}

static size_t object_waiters(const void *o)
{
	return vez_object_waiters(o);
}

static const struct kind kinds[] = {
	{ "sem", sizeof(vez_sem_t), make_sem, wait_sem, let_go_sem, destroy_sem, sem_waiters, sem_others, { 0 }, { 1 },
	  0 },
	{ "mutex", sizeof(vez_mutex_t), make_mutex_held, wait_mutex, let_go_mutex, destroy_mutex, mutex_waiters,
	  mutex_others, { 0 }, { 0 }, 0 },
	{ "owned mutex", sizeof(vez_mutex_t), make_owned, wait_mutex, let_go_mutex, destroy_mutex, mutex_waiters,
	  mutex_others, { 0 }, { 0 }, 0 },
	{ "guarded mutex", sizeof(vez_mutex_t), make_gated, wait_gated, let_go_gated, destroy_mutex, mutex_waiters,
	  mutex_others, { 0 }, { 0 }, 0 },
	{ "cond with guards", sizeof(vez_cond_t), make_cond, wait_told, let_go_cond, destroy_cond, cond_waiters, NULL,
	  { 0 }, { 0 }, 0 },
	{ "cond", sizeof(vez_cond_t), make_cond, wait_cond, let_go_cond, destroy_cond, cond_waiters, NULL, { 0 }, { 0 },
	  0 },
	{ "rwlock", sizeof(vez_rwlock_t), make_rwlock, wait_rwlock, let_go_rwlock, destroy_rwlock, rwlock_waiters, NULL,
	  { 0 }, { 0 }, 0 },
	{ "barrier", sizeof(vez_barrier_t), make_barrier, wait_barrier, let_go_barrier, destroy_barrier,
	  barrier_waiters, barrier_others, { 0 }, { 1 }, 0 },
	{ "latch", sizeof(vez_latch_t), make_latch, wait_latch, let_go_latch, destroy_latch, latch_waiters,
	  latch_others, { 1 }, { 1 }, 0 },
	{ "manual event", sizeof(vez_event_t), make_manual, wait_event, let_go_event, destroy_event, event_waiters,
	  event_others, { 0 }, { 1 }, 0 },
	{ "automatic event", sizeof(vez_event_t), make_automatic, wait_automatic, let_go_event, destroy_event,
	  event_waiters, event_others, { 0 }, { 1 }, 0 },
	{ "full queue", sizeof(vez_queue_t), make_full, wait_put, let_go_full, destroy_queue, queue_waiters,
	  queue_others, { 2, WAITERS, 0 }, { 2, WAITERS, WAITERS }, 0 },
	{ "empty queue", sizeof(vez_queue_t), make_empty, wait_take, let_go_empty, destroy_queue, queue_waiters,
	  queue_others, { 0, 0, WAITERS }, { 2, WAITERS, WAITERS }, 0 },
	{ "once", sizeof(vez_once_t), make_once, wait_once, let_go_once, destroy_once, once_waiters, NULL, { 0 }, { 0 },
	  0 },
	{ "group", sizeof(vez_group_t), make_group, wait_group, let_go_group, destroy_group, group_waiters, NULL,
	  { 0 }, { 0 }, 0 },
	{ "sched", sizeof(vez_sched_t), make_sched, wait_sched, let_go_sched, destroy_sched, sched_waiters, NULL,
	  { 0 }, { 0 }, 0 },
	{ "monitor", sizeof(struct own), make_own, wait_own, let_go_own, destroy_own, own_waiters, NULL, { 0 }, { 0 },
	  0 },
	{ "object", sizeof(vez_object_t), make_object, wait_object, let_go_object, destroy_object, object_waiters, NULL,
	  { 0 }, { 0 }, offsetof(vez_object_t, core_) },
};

static const struct kind *kind_at(const struct kind *k)
{
	if (k == kinds + sizeof kinds / sizeof kinds[0])
		return NULL;
	kind_name = k->name;
	return k;
}

static uint64_t *core_of(const struct kind *k, void *o)
{
	return (uint64_t *)((char *)o + k->core);
}

#define EACH_KIND(k) for (const struct kind *k = kinds; kind_at(k); k++)

#define CHECK(k, condition) cr_assert((condition), "%s: %s [%s]", (k)->name, #condition, variant_text())

/* ---- threads that wait, and one that looks ---- */

struct waiter {
	struct thread thread;
	const struct kind *kind;
	void *object;
	vez_cancel_t token;
	bool stop; /* of the one that waits again and again */
	int rc;
};

static void wait_long(void *arg)
{
	struct waiter *w = arg;
	w->rc = w->kind->wait(w->object, VEZ_FOREVER, &w->token);
}

/* Sleeps, and not on the object's own lock. */
static void await_parked(const struct waiter *w)
{
	UNTIL(thread_futex(&w->thread) != 0 && thread_futex(&w->thread) - (uintptr_t)w->object >= w->kind->size)
		;
}

static void all_wait(struct waiter w[WAITERS], const struct kind *k, void *o)
{
	for (size_t i = 0; i < WAITERS; i++) {
		w[i] = (struct waiter){ .kind = k, .object = o, .rc = -1 };
		thread_start(&w[i].thread, wait_long, &w[i]);
		UNTIL(k->waiters(o) == i + 1)
			;
	}
	for (size_t i = 0; i < WAITERS; i++)
		await_parked(&w[i]);
}

static void all_go(struct waiter w[WAITERS])
{
	w->kind->let_go(w->object);
	for (size_t i = 0; i < WAITERS; i++) {
		thread_join(&w[i].thread);
		CHECK(w->kind, w[i].rc == 0);
	}
	CHECK(w->kind, w->kind->waiters(w->object) == 0);
}

struct looker {
	struct thread thread;
	const struct kind *kind;
	const void *object;
	struct view view;
};

static void look(void *arg)
{
	struct looker *l = arg;
	l->view.waiters = l->kind->waiters(l->object);
	if (l->kind->others)
		l->kind->others(l->object, l->view.others);
}

/* Another thread looks: it returns whoever waits or is inside, and has seen this many requests. */
static void expect_seen(const struct kind *k, const void *o, size_t waiters)
{
	struct looker l = { .kind = k, .object = o };
	thread_start(&l.thread, look, &l);
	thread_join(&l.thread);
	CHECK(k, l.view.waiters == waiters);
	for (int i = 0; i < OTHERS && waiters == WAITERS; i++)
		CHECK(k, l.view.others[i] == k->held[i]);
}

/* ---- at any time ---- */

/* Seen to fail: waiters of each, permits, broken, count, is_set and length that enter the monitor for it. */
Test(looks, ALL_07_nothing_is_written)
{
	EACH_VARIANT(v, ONE_FORM | FIFO_ONLY) EACH_KIND(k) {
		struct waiter w[WAITERS];
		void *o = guard_new(k->size);
		k->make(o);
		guard_read_only(o);
		expect_seen(k, o, 0);
		guard_writable(o);
		all_wait(w, k, o);
		guard_read_only(o);
		expect_seen(k, o, WAITERS);
		guard_writable(o);
		all_go(w);
		guard_read_only(o);
		expect_seen(k, o, 0);
		guard_writable(o);
		CHECK(k, k->destroy(o) == 0);
		guard_free(o);
	}
}

/* Seen to fail: waiters that waits until nobody is inside. */
Test(looks, ALL_07_nobody_is_waited_for)
{
	EACH_VARIANT(v, ONE_FORM | FIFO_ONLY) EACH_KIND(k) {
		struct waiter w[WAITERS];
		void *o = guard_new(k->size);
		k->make(o);
		all_wait(w, k, o);
		vez__lock_enter(core_of(k, o));
		unsigned waits = inject_waits();
		guard_read_only(o);
		expect_seen(k, o, WAITERS);
		CHECK(k, inject_waits() == waits);
		guard_writable(o);
		vez__lock_exit(core_of(k, o));
		all_go(w);
		CHECK(k, k->destroy(o) == 0);
		guard_free(o);
	}
}

/* What a handler looks at, and what it has seen. */
static const struct kind *seen_kind;
static const void *seen_object;
static size_t seen_waiters;

static void look_in_handler(int signo)
{
	(void)signo;
	seen_waiters = seen_kind->waiters(seen_object);
}

/* In a handler that interrupts the very thread which is inside. Seen to fail: waiters that enters the monitor. */
Test(looks, ALL_07_in_a_handler_of_who_is_inside)
{
	struct sigaction action = { .sa_handler = look_in_handler };
	sigaction(SIGUSR1, &action, NULL);
	EACH_KIND(k) {
		struct waiter w[WAITERS];
		void *o = guard_new(k->size);
		k->make(o);
		all_wait(w, k, o);
		seen_kind = k;
		seen_object = o;
		seen_waiters = 0;
		vez__lock_enter(core_of(k, o));
		raise(SIGUSR1);
		vez__lock_exit(core_of(k, o));
		CHECK(k, seen_waiters == WAITERS);
		all_go(w);
		CHECK(k, k->destroy(o) == 0);
		guard_free(o);
	}
}

/* Waits, for a moment, again and again; a token ends every third wait. */
static void wait_often(void *arg)
{
	struct waiter *w = arg;
	for (unsigned i = 0; !LOAD(&w->stop); i++) {
		vez_cancel_clear(&w->token);
		vez_cancel_fire_at(&w->token, i % 3 ? VEZ_FOREVER : vez_after_us(15));
		int rc = w->kind->wait(w->object, vez_after_us(i % 3 ? 20 : 1000), &w->token);
		if (rc != 0 && rc != ETIMEDOUT && rc != ECANCELED && rc != VEZ_EBROKEN)
			w->rc = rc;
	}
	vez_cancel_fire_at(&w->token, VEZ_FOREVER);
}

static void look_for(const struct kind *k, const void *o, int64_t ns)
{
	for (int64_t end = real_now() + ns; real_now() < end;) {
		struct looker l = { .kind = k, .object = o };
		look(&l);
		CHECK(k, l.view.waiters <= WAITERS);
		for (int i = 0; i < OTHERS; i++)
			/* Of a mutex, the holds of who looks, which holds it. */
			CHECK(k, l.view.others[i] <= k->most[i] || k->make == make_owned);
	}
}

/* While others come, give up, are let go and pass: what is seen is never more than there can be. Seen to fail: a length
 * that is lowered before it is raised. */
Test(looks, ALL_07_while_others_come_and_go)
{
	EACH_KIND(k) {
		if (k->make == make_once) /* no limits */
			continue;
		struct waiter w[WAITERS];
		void *o = guard_new(k->size);
		k->make(o);
		for (int i = 0; i < WAITERS; i++) {
			w[i] = (struct waiter){ .kind = k, .object = o };
			thread_start(&w[i].thread, wait_often, &w[i]);
		}
		look_for(k, o, 20 * MS);
		k->let_go(o);
		look_for(k, o, 10 * MS);
		for (int i = 0; i < WAITERS; i++)
			STORE(&w[i].stop, true);
		for (int i = 0; i < WAITERS; i++) {
			thread_join(&w[i].thread);
			CHECK(k, w[i].rc == 0);
		}
		CHECK(k, k->waiters(o) == 0);
		CHECK(k, k->destroy(o) == 0);
		guard_free(o);
	}
}

/* ---- what is decided for good ---- */

static int must_not_run(void *arg)
{
	(void)arg;
	return 1;
}

/* Who finds a once done, a latch open or a manual event set only looks, too. Seen to fail: a vez_once that enters, to
 * see; a wait that counts who passes. */
Test(looks, ALL_07_what_is_over_is_only_looked_at)
{
	vez_once_t *once = guard_new(sizeof *once);
	vez_latch_t *latch = guard_new(sizeof *latch);
	vez_event_t *event = guard_new(sizeof *event);
	struct thread t = { 0 };
	make_once(once);
	thread_start(&t, run_once, once);
	let_go_once(once);
	thread_join(&t);
	EXPECT_EQ(vez_latch_init(latch, 0), 0);
	EXPECT_EQ(vez_event_init(event, 0), 0);
	EXPECT_EQ(vez_event_set(event), 0);
	guard_read_only(once);
	guard_read_only(latch);
	guard_read_only(event);
	EXPECT_EQ(vez_once(once, must_not_run, NULL), 0);
	EXPECT_EQ(vez_latch_wait(latch), 0);
	EXPECT_EQ(vez_latch_wait_until(latch, VEZ_NOW, NULL), 0);
	EXPECT_EQ(vez_event_wait(event), 0);
	EXPECT_EQ(vez_event_wait_until(event, VEZ_NOW, NULL), 0);
	guard_free(once);
	guard_free(latch);
	guard_free(event);
}

/* ---- tokens and requests ---- */

/* Seen to fail: vez_cancel_fired that enters the token's lock; vez_request_result that marks the request. */
Test(looks, ALL_07_tokens_and_requests)
{
	vez_cancel_t *token = guard_new(sizeof *token);
	vez_request_t *request = guard_new(sizeof *request);
	vez_sem_t sem = VEZ_SEM_INITIALIZER(0);
	kind_name = "token or request";
	vez_cancel_init(token);
	vez_request_init(request, NULL, NULL);
	vez_request_set_limits(request, VEZ_FOREVER, token);
	EXPECT_EQ(vez_sem_acquire_async(&sem, 1, request), EINPROGRESS);
	vez__lock_enter(&sem.core_.word_);
	guard_read_only(token);
	guard_read_only(request);
	EXPECT(!vez_cancel_fired(token));
	EXPECT_EQ(vez_request_result(request), EINPROGRESS);
	guard_writable(token);
	guard_writable(request);
	vez__lock_exit(&sem.core_.word_);
	vez_cancel_fire(token);
	guard_read_only(token);
	guard_read_only(request);
	EXPECT(vez_cancel_fired(token));
	EXPECT_EQ(vez_request_result(request), ECANCELED);
	guard_writable(token);
	EXPECT_EQ(vez_cancel_destroy(token), 0);
	EXPECT_EQ(vez_sem_destroy(&sem), 0);
	guard_free(token);
	guard_free(request);
}
