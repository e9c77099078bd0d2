/* SPDX-License-Identifier: MIT */
/*
 * handovers [NAME...]: plain data is handed from thread to thread by each synchronizer of vez, in a correct program
 * that uses everything. Race checkers have nothing to report about any of them; without a name, all are run but exits
 * (the program ends while the library's thread is inside a function), and the faults.
 *
 * Three are faults: race (data that nothing guards), inversion (two mutexes taken in both orders), unlock (of a mutex
 * that is free).
 *
 * After each wait the thread writes over the stack where its request lay: whoever let it go has done so before.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vez.h>

#define ROUNDS 100
#define THREADS 3

static long data;
static long wrong;

static vez_mutex_t mutex = VEZ_MUTEX_INITIALIZER;
static vez_cond_t cond = VEZ_COND_INITIALIZER;
static vez_sem_t sem = VEZ_SEM_INITIALIZER(1);
static vez_sem_t to_producer = VEZ_SEM_INITIALIZER(1), to_consumer = VEZ_SEM_INITIALIZER(0);
static vez_rwlock_t rwlock = VEZ_RWLOCK_INITIALIZER;
static vez_sched_t sched = VEZ_SCHED_INITIALIZER;
static vez_group_t group = VEZ_GROUP_INITIALIZER;
static vez_monitor_t monitor = VEZ_MONITOR_INITIALIZER(NULL);
static vez_room_t room = VEZ_ROOM_INITIALIZER;
static vez_barrier_t barrier;
static vez_latch_t latch;
static vez_event_t event, turn[2];
static vez_once_t once = VEZ_ONCE_INITIALIZER;
static vez_queue_t queue, handoff;
static vez_cancel_t token;
static vez_object_t object;
static vez_mutex_t fair, recursive;
static long *places[4];

static void check(bool right)
{
	if (!right)
		__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
}

static __attribute__((noinline)) void scrub(void)
{
	char over[2048];
	memset(over, 1, sizeof over);
	__asm__ __volatile__("" : : "r"(over) : "memory");
}

static void use_mutex(int me)
{
	(void)me;
	vez_mutex_lock(&mutex);
	data++;
	vez_mutex_unlock(&mutex);
	scrub();
}

static void use_fair(int me)
{
	if (me == 0 || vez_mutex_lock_until(&fair, vez_after_ms(10000), NULL) != 0)
		vez_mutex_lock(&fair);
	data++;
	vez_mutex_unlock(&fair);
	scrub();
}

static void use_recursive(int me)
{
	while (me == 0 && vez_mutex_trylock(&recursive) != 0)
		usleep(10);
	if (me != 0)
		vez_mutex_lock(&recursive);
	vez_mutex_lock(&recursive);
	data++;
	vez_mutex_unlock(&recursive);
	data++;
	vez_mutex_unlock(&recursive);
	scrub();
}

static void use_sem(int me)
{
	while (me == 0 && vez_sem_try_acquire(&sem, 1) != 0)
		usleep(10);
	if (me != 0)
		vez_sem_acquire(&sem, 1);
	data++;
	vez_sem_release(&sem, 1);
	scrub();
}

static void use_producer(int me)
{
	if (me == 0) {
		vez_sem_acquire(&to_producer, 1);
		data++;
		vez_sem_release(&to_consumer, 1);
	} else if (me == 1) {
		vez_sem_acquire_until(&to_consumer, 1, VEZ_FOREVER, &token);
		check(data > 0);
		data++;
		vez_sem_release(&to_producer, 1);
	}
	scrub();
}

static void use_rwlock(int me)
{
	static long seen[THREADS];
	vez_rwlock_rdlock(&rwlock);
	seen[me] += data;
	if (me == 0 && vez_rwlock_upgrade_until(&rwlock, VEZ_FOREVER, NULL) == 0) {
		data++;
		vez_rwlock_undo_upgrade(&rwlock);
	}
	vez_rwlock_rdunlock(&rwlock);
	scrub();
	vez_rwlock_wrlock(&rwlock);
	data++;
	if (me == 1) {
		vez_rwlock_downgrade(&rwlock);
		seen[me] += data;
		vez_rwlock_rdunlock(&rwlock);
	} else {
		vez_rwlock_wrunlock(&rwlock);
	}
	scrub();
}

static void use_cond(int me)
{
	vez_mutex_lock(&mutex);
	while (data % THREADS != me)
		vez_cond_wait(&cond, &mutex);
	data++;
	vez_cond_broadcast(&cond);
	vez_mutex_unlock(&mutex);
	scrub();
}

static void use_event(int me)
{
	if (me > 1)
		return;
	vez_event_wait(&turn[me]);
	data++;
	vez_event_set(&turn[!me]);
	scrub();
}

static void use_manual(int me)
{
	static long seen[THREADS];
	if (me == 0) {
		data++;
		vez_event_set(&event);
	} else {
		vez_event_wait(&event);
		seen[me] += data;
	}
	scrub();
}

static void use_latch(int me)
{
	static long seen[THREADS];
	if (me == 0) {
		data++;
		vez_latch_count_down(&latch, 1);
	} else {
		vez_latch_wait(&latch);
		seen[me] += data;
	}
	scrub();
}

/* Each writes in a phase of its own. */
static void use_barrier(int me)
{
	for (int phase = 0; phase < THREADS; phase++) {
		if (phase == me)
			data++;
		vez_barrier_wait(&barrier, NULL);
		scrub();
	}
}

static int increment(void *unused)
{
	(void)unused;
	data++;
	return 0;
}

static void use_once(int me)
{
	static long seen[THREADS];
	vez_once(&once, increment, NULL);
	seen[me] += data;
	scrub();
}

static void use_monitor(int me)
{
	vez_monitor_enter(&monitor);
	if (data % THREADS == me) {
		data++;
		for (vez_request_t *r; (r = vez_room_first(&room));)
			vez_monitor_settle(&monitor, r, 0);
		vez_monitor_exit(&monitor);
	} else {
		vez_request_t r = VEZ_REQUEST_INITIALIZER;
		vez_monitor_wait(&monitor, &room, &r, vez_after_us(100), NULL);
	}
	scrub();
}

static void body(void *arg)
{
	data += *(long *)arg;
	*(long *)arg = data;
}

static bool is_odd(void *arg)
{
	(void)arg;
	return data % 2;
}

static bool is_even(void *arg)
{
	return !is_odd(arg);
}

static void use_call(int me)
{
	long change = 1;
	(void)me;
	vez_monitor_call(&monitor, body, &change);
	check(change != 0);
	scrub();
}

static void use_guarded(int me)
{
	long change = 1;
	if (me < 2)
		vez_monitor_call_when(&monitor, me ? is_odd : is_even, body, &change, VEZ_FOREVER, NULL);
	scrub();
}

static void use_group(int me)
{
	static long by[THREADS];
	vez_group_enter(&group, (uint32_t)me);
	data++;
	by[me] += data;
	vez_group_leave(&group);
	scrub();
}

static void use_sched(int me)
{
	(void)me;
	vez_sched_enter(&sched, NULL);
	data++;
	vez_sched_leave(&sched);
	scrub();
}

static void add(void *self, void *arg)
{
	*(long *)self += *(long *)arg;
	*(long *)arg = *(long *)self;
}

static const vez_operation_t add_operation = { "add", add };

static void use_object(int me)
{
	long change = 1;
	(void)me;
	vez_object_call(&object, &add_operation, &change);
	check(change != 0);
	scrub();
}

static void use_queues(int me, vez_queue_t *q)
{
	if (me == 0) {
		long *item = malloc(sizeof *item);
		*item = 1;
		vez_queue_put(q, &item);
	} else if (me == 1) {
		long *item = NULL;
		vez_queue_take(q, &item);
		check(++*item == 2);
		free(item);
	}
	scrub();
}

static void use_queue(int me) { use_queues(me, &queue); }
static void use_handoff(int me) { use_queues(me, &handoff); }

/* Who fires has written before; hooks run before the fire returns. */
static void run_hook(void *arg)
{
	*(long *)arg = data;
}

static void use_token(int me)
{
	static long told;
	static vez_cancel_hook_t hook;
	static vez_sem_t never = VEZ_SEM_INITIALIZER(0);
	static long seen[THREADS];
	if (me == 0) {
		vez_cancel_attach(&token, &hook, run_hook, &told);
		data++;
		vez_cancel_fire(&token);
		seen[me] += told;
	} else if (me == 1) {
		check(vez_sem_acquire_until(&never, 1, VEZ_FOREVER, &token) == ECANCELED);
		seen[me] += data;
	} else {
		while (!vez_cancel_fired(&token))
			usleep(10);
		seen[me] += data;
	}
	scrub();
}

/* The function of a request runs on the thread that granted it, or on the library's. */
static void granted(vez_request_t *r, int result, void *arg)
{
	(void)r;
	*(long *)arg += result == 0;
	data++;
	vez_sem_release(&sem, 1);
}

static void use_callback(int me)
{
	long count = 0;
	vez_request_t r;
	(void)me;
	vez_request_init(&r, granted, &count);
	if (vez_sem_acquire_async(&sem, 1, &r) == 0)
		granted(&r, 0, &count);
	else
		vez_request_wait(&r, VEZ_FOREVER, NULL);
	check(count == 1);
	scrub();
}

static void use_timed_callback(int me)
{
	static vez_sem_t never = VEZ_SEM_INITIALIZER(0);
	vez_request_t r;
	(void)me;
	vez_request_init(&r, NULL, NULL);
	vez_request_set_limits(&r, vez_after_us(100), NULL);
	int rc = vez_sem_acquire_async(&never, 1, &r);
	if (rc == EINPROGRESS && vez_request_wait(&r, VEZ_FOREVER, NULL) == 0)
		rc = vez_request_result(&r);
	check(rc == ETIMEDOUT);
	memset(&r, 0, sizeof r);
	scrub();
}

static void use_list(int me)
{
	static vez_completions_t list;
	struct job {
		vez_request_t r;
		long value;
	};
	if (me == 0) {
		struct job *j = malloc(sizeof *j);
		j->value = 1;
		vez_sem_acquire(&sem, 1);
		vez_completions_init(&list, -1);
		vez_request_init_completions(&j->r, &list);
		vez_sem_acquire_async(&sem, 1, &j->r);
		vez_sem_release(&sem, 1);
		for (vez_request_t *r; !(r = vez_completions_next(&list));)
			usleep(10);
		check(j->value == 1);
		vez_sem_release(&sem, 1);
		free(j);
	} else {
		use_sem(1);
	}
	scrub();
}

static void use_select(int me)
{
	if (me == 0) {
		vez_request_t first, second, *winner;
		vez_select_t any;
		static vez_sem_t never = VEZ_SEM_INITIALIZER(0);
		vez_select_init(&any);
		vez_sem_acquire_async(&never, 1, vez_select_case(&any, &first));
		vez_sem_acquire_async(&to_consumer, 1, vez_select_case(&any, &second));
		check(vez_select_wait(&any, VEZ_FOREVER, NULL, &winner) == 0 && winner == &second);
		data++;
		vez_sem_release(&to_producer, 1);
	} else if (me == 1) {
		vez_sem_acquire(&to_producer, 1);
		data++;
		vez_sem_release(&to_consumer, 1);
	}
	scrub();
}

/* The last one to have it frees it. */
static struct shared {
	vez_mutex_t mutex;
	vez_sem_t sem;
	long uses;
} *shared;

static void use_memory(int me)
{
	(void)me;
	vez_mutex_lock(&shared->mutex);
	bool last = ++shared->uses == THREADS;
	vez_mutex_unlock(&shared->mutex);
	if (!last) {
		vez_sem_acquire(&shared->sem, 1);
		scrub();
		return;
	}
	vez_mutex_destroy(&shared->mutex);
	for (int i = 1; i < THREADS; i++)
		vez_sem_release(&shared->sem, 1);
}

/* A signal's token ends a wait, though all threads wait in vez: there is only the main one. */
static void use_signal(int me)
{
	(void)me;
	vez_cancel_t stop = VEZ_CANCEL_INITIALIZER;
	vez_sem_t never = VEZ_SEM_INITIALIZER(0);
	char command[64];
	vez_cancel_on_signal(&stop, SIGUSR1);
	snprintf(command, sizeof command, "(sleep 0.3; kill -USR1 %d) &", (int)getpid());
	check(system(command) == 0);
	check(vez_sem_acquire_until(&never, 1, vez_after_ms(30000), &stop) == ECANCELED);
	vez_cancel_destroy(&stop);
}

/* ---- the end ---- */

/* The program ends while the library's thread is inside a function, which returns when the library has begun to end: it
 * makes no thread then, and refuses what needs one. */
static vez_event_t inside = VEZ_EVENT_INITIALIZER, never = VEZ_EVENT_INITIALIZER;

static void stays(vez_request_t *r, int result, void *arg)
{
	vez_request_t looks;
	int rc = EINPROGRESS;
	(void)r;
	(void)arg;
	check(result == ETIMEDOUT);
	vez_event_set(&inside);
	while (rc == EINPROGRESS) {
		vez_request_init(&looks, NULL, NULL);
		vez_request_set_limits(&looks, vez_after_ms(100000), NULL);
		rc = vez_event_wait_async(&never, &looks);
		vez_request_cancel(&looks);
		vez_request_wait(&looks, VEZ_FOREVER, NULL);
	}
	if (rc != EAGAIN)
		_exit(1);
}

static void exits(int me)
{
	static vez_request_t r;
	int rc = me == 0 ? ETIMEDOUT : 0;
	for (int64_t ms = 1; rc == ETIMEDOUT; ms *= 2) { /* making the thread may take longer */
		vez_request_init(&r, stays, NULL);
		vez_request_set_limits(&r, vez_after_ms(ms), NULL);
		rc = vez_event_wait_async(&never, &r);
	}
	check(me != 0 || rc == EINPROGRESS);
	if (rc == EINPROGRESS)
		vez_event_wait(&inside);
}

/* ---- faults ---- */

static void race(int me)
{
	(void)me;
	data++;
}

static void inversion(int me)
{
	static vez_mutex_t a = VEZ_MUTEX_INITIALIZER, b = VEZ_MUTEX_INITIALIZER;
	if (me > 1)
		return;
	if (me == 1)
		vez_event_wait(&event);
	vez_mutex_lock(me ? &a : &b);
	vez_mutex_lock(me ? &b : &a);
	vez_mutex_unlock(me ? &b : &a);
	vez_mutex_unlock(me ? &a : &b);
	if (me == 0)
		vez_event_set(&event);
}

static void unlock(int me)
{
	vez_mutex_t m = VEZ_MUTEX_INITIALIZER;
	(void)me;
	check(vez_mutex_unlock(&m) == EPERM);
}

static const struct use {
	const char *name;
	void (*once)(int me);
	int rounds;
} uses[] = {
	{ "mutex", use_mutex, ROUNDS }, { "fair", use_fair, ROUNDS }, { "recursive", use_recursive, ROUNDS },
	{ "sem", use_sem, ROUNDS }, { "producer", use_producer, ROUNDS }, { "rwlock", use_rwlock, ROUNDS },
	{ "cond", use_cond, ROUNDS }, { "event", use_event, ROUNDS }, { "manual", use_manual, 1 },
	{ "latch", use_latch, 1 }, { "barrier", use_barrier, ROUNDS }, { "once", use_once, ROUNDS },
	{ "monitor", use_monitor, ROUNDS }, { "call", use_call, ROUNDS }, { "guarded", use_guarded, ROUNDS },
	{ "group", use_group, 1 }, { "sched", use_sched, ROUNDS }, { "object", use_object, ROUNDS },
	{ "queue", use_queue, ROUNDS }, { "handoff", use_handoff, ROUNDS }, { "token", use_token, 1 },
	{ "callback", use_callback, ROUNDS }, { "timed", use_timed_callback, 10 }, { "list", use_list, 10 },
	{ "select", use_select, ROUNDS }, { "memory", use_memory, 1 }, { "signal", use_signal, 1 },
	{ "exits", exits, 1 }, { "race", race, ROUNDS }, { "inversion", inversion, 1 }, { "unlock", unlock, 1 },
};
static const struct use *use;

static void *run(void *arg)
{
	for (int i = 0; i < use->rounds; i++)
		use->once((int)(long)arg);
	return NULL;
}

static void try(const struct use *u)
{
	pthread_t threads[THREADS];
	use = u;
	data = 0;
	shared = calloc(1, sizeof *shared);
	vez_event_init(&event, 0);
	vez_event_init(&turn[0], VEZ_AUTO_RESET);
	vez_event_init(&turn[1], VEZ_AUTO_RESET);
	vez_event_set(&turn[0]);
	vez_cancel_init(&token);
	for (long i = 0; i < THREADS && u->once != use_signal; i++)
		pthread_create(&threads[i], NULL, run, (void *)i);
	if (u->once == use_signal)
		use_signal(0);
	for (int i = 0; i < THREADS && u->once != use_signal; i++)
		pthread_join(threads[i], NULL);
	vez_cancel_destroy(&token);
	free(shared);
}

int main(int argc, char **argv)
{
	vez_barrier_init(&barrier, THREADS, NULL, NULL);
	vez_latch_init(&latch, 1);
	vez_queue_init(&queue, places, sizeof places[0], 4);
	vez_queue_init(&handoff, NULL, sizeof places[0], 0);
	vez_mutex_init(&fair, VEZ_FAIR);
	vez_mutex_init(&recursive, VEZ_RECURSIVE);
	vez_object_init(&object, &data, 0);
	const size_t count = sizeof uses / sizeof uses[0];
	for (size_t i = 0; argc < 2 && i < count - 4; i++)
		try(&uses[i]);
	for (int arg = 1; arg < argc; arg++)
		for (size_t i = 0; i < count; i++)
			if (strcmp(uses[i].name, argv[arg]) == 0)
				try(&uses[i]);
	if (wrong)
		fprintf(stderr, "%ld values are wrong\n", wrong);
	return wrong != 0;
}
