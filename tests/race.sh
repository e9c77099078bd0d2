#!/bin/sh
# SPDX-License-Identifier: MIT
# J07: the thread sanitizer understands every synchronizer: it reports nothing where one guards the data, and a race
# where none does.
#
# Seen to fail: an unlock, a count-down, a publication that are relaxed; a race that is guarded after all.
cd "$(dirname "$0")/.."
. tests/lib/prelude.sh

# The make that runs the tests must not lend this one its options.
unset MAKEFLAGS MAKELEVEL MFLAGS
quiet make -s BUILD="$build" SAN=thread "$build/san-thread/lib/libvez.a"

cat >"$tmp/program.c" <<'END'
#include <pthread.h>
#include <string.h>
#include <vez.h>

#define ROUNDS 300

static long data;
static vez_mutex_t mutex = VEZ_MUTEX_INITIALIZER;
static vez_cond_t cond = VEZ_COND_INITIALIZER;
static vez_sem_t sem = VEZ_SEM_INITIALIZER(1);
static vez_rwlock_t rwlock = VEZ_RWLOCK_INITIALIZER;
static vez_sched_t sched = VEZ_SCHED_INITIALIZER;
static vez_group_t group = VEZ_GROUP_INITIALIZER;
static vez_monitor_t monitor = VEZ_MONITOR_INITIALIZER(NULL);
static vez_barrier_t barrier;
static vez_latch_t latch;
static vez_event_t event, turn[2];
static vez_once_t once = VEZ_ONCE_INITIALIZER;
static vez_queue_t queue;

static void use_mutex(int me) { (void)me; vez_mutex_lock(&mutex); data++; vez_mutex_unlock(&mutex); }
static void use_sem(int me) { (void)me; vez_sem_acquire(&sem, 1); data++; vez_sem_release(&sem, 1); }
static void use_sched(int me) { (void)me; vez_sched_enter(&sched, NULL); data++; vez_sched_leave(&sched); }
static void use_monitor(int me) { (void)me; vez_monitor_enter(&monitor); data++; vez_monitor_exit(&monitor); }
static void use_group(int me) { vez_group_enter(&group, (uint32_t)me); data++; vez_group_leave(&group); }
static void use_nothing(int me) { (void)me; data++; }

static void use_rwlock(int me)
{
	static long seen[2];
	vez_rwlock_rdlock(&rwlock);
	seen[me] += data;
	vez_rwlock_rdunlock(&rwlock);
	vez_rwlock_wrlock(&rwlock);
	data++;
	vez_rwlock_wrunlock(&rwlock);
}

static bool is_my_turn(void *me)
{
	return data % 2 == (me != NULL);
}

static void use_when(int me)
{
	vez_mutex_lock_when(&mutex, is_my_turn, me ? &data : NULL, VEZ_FOREVER, NULL);
	data++;
	vez_mutex_unlock(&mutex);
}

static void use_told(int me)
{
	vez_mutex_lock(&mutex);
	vez_cond_wait_when(&cond, &mutex, is_my_turn, me ? &data : NULL, VEZ_FOREVER, NULL);
	data++;
	vez_cond_signal(&cond);
	vez_mutex_unlock(&mutex);
}

static void use_cond(int me)
{
	vez_mutex_lock(&mutex);
	while (data % 2 != me)
		vez_cond_wait(&cond, &mutex);
	data++;
	vez_cond_signal(&cond);
	vez_mutex_unlock(&mutex);
}

/* One writes in even phases, the other in odd ones. */
static void use_barrier(int me)
{
	for (int phase = 0; phase < 2; phase++) {
		if (phase == me)
			data++;
		vez_barrier_wait(&barrier, NULL);
	}
}

static void use_event(int me)
{
	vez_event_wait(&turn[me]);
	data++;
	vez_event_set(&turn[!me]);
}

static void use_manual_event(int me)
{
	if (me)
		vez_event_wait(&event);
	data++;
	if (!me)
		vez_event_set(&event);
}

static void use_latch(int me)
{
	if (me)
		vez_latch_wait(&latch);
	data++;
	if (!me)
		vez_latch_count_down(&latch, 1);
}

static int increment(void *unused)
{
	(void)unused;
	data++;
	return 0;
}

static void use_once(int me)
{
	static long seen[2];
	vez_once(&once, increment, NULL);
	seen[me] += data;
}

static void use_queue(int me)
{
	long *item = &data;
	if (me) {
		vez_queue_take(&queue, &item);
		++*item;
	} else {
		data++;
		vez_queue_put(&queue, &item);
	}
}

static const struct use {
	const char *name;
	void (*once)(int me);
	int rounds;
} uses[] = {
	{ "nothing", use_nothing, ROUNDS }, { "mutex", use_mutex, ROUNDS }, { "cond", use_cond, ROUNDS },
	{ "when", use_when, ROUNDS }, { "told", use_told, ROUNDS },
	{ "sem", use_sem, ROUNDS }, { "rwlock", use_rwlock, ROUNDS }, { "sched", use_sched, ROUNDS },
	{ "group", use_group, ROUNDS }, { "monitor", use_monitor, ROUNDS }, { "barrier", use_barrier, ROUNDS },
	{ "event", use_event, ROUNDS }, { "manual", use_manual_event, 1 }, { "latch", use_latch, 1 },
	{ "once", use_once, ROUNDS }, { "queue", use_queue, 1 }, { "handoff", use_queue, 1 },
};
static const struct use *use;

static void *run(void *me)
{
	for (int i = 0; i < use->rounds; i++)
		use->once(me != NULL);
	return NULL;
}

int main(int argc, char **argv)
{
	static long *places[4];
	static int other;
	pthread_t threads[2];
	vez_barrier_init(&barrier, 2, NULL, NULL);
	vez_latch_init(&latch, 1);
	vez_event_init(&event, 0);
	vez_event_init(&turn[0], VEZ_AUTO_RESET);
	vez_event_init(&turn[1], VEZ_AUTO_RESET);
	vez_event_set(&turn[0]);
	for (use = uses; argc < 2 || strcmp(use->name, argv[1]) != 0; use++)
		;
	vez_queue_init(&queue, places, sizeof places[0], strcmp(use->name, "handoff") == 0 ? 0 : 4);
	pthread_create(&threads[0], NULL, run, NULL);
	pthread_create(&threads[1], NULL, run, &other);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	return 0;
}
END
gcc -std=c11 -O1 -g -Wall -Wextra -Werror -Iinclude -pthread -fsanitize=thread -o "$tmp/program" "$tmp/program.c" \
	"$build/san-thread/lib/libvez.a"

# run NAME: 0, nothing was reported; 66, something was
run() {
	status=0
	TSAN_OPTIONS=exitcode=66 timeout 60 "$tmp/program" "$1" >"$tmp/log" 2>&1 || status=$?
}

run nothing
if [ "$status" != 66 ] || ! grep -q 'data race' "$tmp/log"; then
	fail "a race is not reported: exit status $status" "$tmp/log"
fi
for name in mutex when told cond sem rwlock sched group monitor barrier event manual latch once queue handoff; do
	run $name
	if [ "$status" != 0 ]; then
		fail "$name: exit status $status" "$tmp/log"
	fi
done

[ "$failures" = 0 ]
