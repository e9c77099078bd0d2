/* SPDX-License-Identifier: MIT */
/*
 * stuck: two threads wait for each other's mutex, one for a semaphore, two at a barrier (which make no request, unless
 * inspection is on), and a request without a thread for an event. When all do, the program aborts: what is left is a
 * core dump to be looked at.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#include <vez.h>

vez_mutex_t accounts = VEZ_MUTEX_INITIALIZER, journal = VEZ_MUTEX_INITIALIZER;
vez_sem_t connections = VEZ_SEM_INITIALIZER(3);
vez_rwlock_t table = VEZ_RWLOCK_INITIALIZER;
vez_event_t opened = VEZ_EVENT_INITIALIZER;
vez_latch_t latch;
vez_barrier_t barrier;
vez_cond_t cond = VEZ_COND_INITIALIZER;
vez_group_t group = VEZ_GROUP_INITIALIZER;
vez_sched_t sched = VEZ_SCHED_INITIALIZER;
vez_once_t once = VEZ_ONCE_INITIALIZER;
vez_queue_t queue;
vez_monitor_t monitor = VEZ_MONITOR_INITIALIZER(NULL);
vez_room_t room = VEZ_ROOM_INITIALIZER;
vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
vez_completions_t list;
vez_select_t any;
vez_object_t object;
vez_synchronizer_t both;
vez_request_t request;
vez_cancel_t unfired = VEZ_CANCEL_INITIALIZER;
vez_cancel_hook_t hook;
vez_constraint_t constraint, unused;
vez_trigger_t trigger;

static void act(void *self, void *arg)
{
	(void)self;
	(void)arg;
}

static bool may(void *arg, void *call)
{
	(void)call;
	return !arg;
}

static void run(void *arg)
{
	(void)arg;
}

vez_operation_t operation = { "act", act };
vez_guarded_t guarded = { &monitor, NULL, run };

static vez_barrier_t begin;

static void *takes(void *first)
{
	vez_mutex_lock(first);
	vez_barrier_wait(&begin, NULL);
	vez_mutex_lock(first == &accounts ? &journal : &accounts);
	return NULL;
}

static void *waits(void *arg)
{
	vez_sem_acquire(&connections, 4);
	return arg;
}

static void *meets(void *arg)
{
	vez_barrier_wait(&barrier, NULL);
	return arg;
}

static int nothing(void *arg)
{
	(void)arg;
	return 0;
}

static void fill(void)
{
	static int places[4], item = 7;
	static vez_object_t *const objects[] = { &object };
	vez_barrier_init(&begin, 2, NULL, NULL);
	vez_latch_init(&latch, 5);
	vez_barrier_init(&barrier, 9, NULL, NULL);
	vez_queue_init(&queue, places, sizeof places[0], 4);
	vez_queue_put(&queue, &item);
	vez_rwlock_rdlock(&table);
	vez_group_enter(&group, 6);
	vez_sched_enter(&sched, NULL);
	vez_once(&once, nothing, NULL);
	vez_cancel_fire(&token);
	vez_completions_init(&list, -1);
	vez_select_init(&any);
	vez_object_init(&object, places, 0);
	vez_synchronizer_init(&both, objects, 1);
	vez_constraint_add(&object, &operation, may, NULL, &constraint);
	vez_trigger_add(&object, NULL, act, NULL, &trigger);
	vez_cancel_attach(&unfired, &hook, run, NULL);
	vez_inspect_name(&accounts, "accounts");
	vez_request_init(&request, NULL, NULL);
	vez_event_wait_async(&opened, &request);
}

int main(void)
{
	pthread_t thread;
	fill();
	pthread_create(&thread, NULL, meets, NULL);
	pthread_create(&thread, NULL, meets, NULL);
	while (vez_barrier_waiters(&barrier) < 2)
		usleep(1000);
	pthread_create(&thread, NULL, takes, &accounts);
	pthread_create(&thread, NULL, takes, &journal);
	pthread_create(&thread, NULL, waits, NULL);
	while (vez_mutex_waiters(&accounts) + vez_mutex_waiters(&journal) + vez_sem_waiters(&connections) < 3)
		usleep(1000);
	while (getenv("VEZ_INSPECT") && vez_inspect(NULL) != -1)
		usleep(1000);
	abort();
}
