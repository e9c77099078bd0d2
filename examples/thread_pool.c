/* SPDX-License-Identifier: MIT */
/*
 * A thread pool that shuts down in two ways.
 *
 * Tasks go through a vez_queue_t, which holds back submitters while it is full. pool_finish closes the queue: what is
 * in it is still done. pool_stop fires a token that every wait of the pool names: a worker that waits for a task ends,
 * and so does a task that waits with the same token; tasks that nobody has begun are dropped. Nobody polls a flag, and
 * no wait has to be woken up by hand. SIGTERM fires the same token.
 *
 * Exit status 0: the first pool did all tasks; the second ended at SIGTERM although its tasks would wait for ever.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <vez.h>

#define WORKERS 4
#define PLACES 16

struct task {
	void (*run)(void *arg, vez_cancel_t *stop);
	void *arg;
};

struct pool {
	vez_queue_t tasks;
	vez_cancel_t stop;
	struct task places[PLACES];
	pthread_t workers[WORKERS];
	int running;
};

static void *work(void *arg)
{
	struct pool *p = arg;
	struct task task;
	/* ECANCELED: stopped. VEZ_ECLOSED: finished, and nothing is left. */
	while (vez_queue_take_until(&p->tasks, &task, VEZ_FOREVER, &p->stop) == 0)
		task.run(task.arg, &p->stop);
	return NULL;
}

/* Waits for a place. ECANCELED, VEZ_ECLOSED: the pool is ending, and the task will not run. */
static int pool_submit(struct pool *p, void (*run)(void *arg, vez_cancel_t *stop), void *arg)
{
	return vez_queue_put_until(&p->tasks, &(struct task){ run, arg }, VEZ_FOREVER, &p->stop);
}

/* Waits until the workers have ended; returns how many tasks were dropped. */
static size_t pool_join(struct pool *p)
{
	for (int i = 0; i < p->running; i++)
		pthread_join(p->workers[i], NULL);
	size_t dropped = vez_queue_length(&p->tasks);
	vez_queue_destroy(&p->tasks);
	vez_cancel_destroy(&p->stop);
	return dropped;
}

/* No more tasks are taken; those that are there are done. */
static size_t pool_finish(struct pool *p)
{
	vez_queue_close(&p->tasks);
	return pool_join(p);
}

/* What has begun ends soon; the rest is dropped. */
static size_t pool_stop(struct pool *p)
{
	vez_cancel_fire(&p->stop);
	return pool_join(p);
}

/* 0, or the error of pthread_create: then there is no pool. */
static int pool_start(struct pool *p)
{
	vez_cancel_init(&p->stop);
	vez_queue_init(&p->tasks, p->places, sizeof p->places[0], PLACES);
	for (p->running = 0; p->running < WORKERS; p->running++) {
		int rc = pthread_create(&p->workers[p->running], NULL, work, p);
		if (rc != 0) {
			pool_stop(p);
			return rc;
		}
	}
	return 0;
}

/* ---- two pools ---- */

static unsigned done, interrupted;
static vez_event_t never = VEZ_EVENT_INITIALIZER;
static vez_latch_t all_busy = VEZ_LATCH_INITIALIZER(WORKERS);

static void count(void *arg, vez_cancel_t *stop)
{
	(void)stop;
	__atomic_fetch_add((unsigned *)arg, 1, __ATOMIC_RELAXED);
}

static void wait_for_ever(void *arg, vez_cancel_t *stop)
{
	vez_latch_count_down(&all_busy, 1);
	if (vez_event_wait_until(&never, VEZ_FOREVER, stop) == ECANCELED)
		__atomic_fetch_add((unsigned *)arg, 1, __ATOMIC_RELAXED);
}

int main(void)
{
	static struct pool patient, impatient;

	if (pool_start(&patient) != 0)
		return 1;
	for (int i = 0; i < 1000; i++)
		pool_submit(&patient, count, &done);
	size_t dropped = pool_finish(&patient);
	printf("finished: %u tasks done, %zu dropped\n", done, dropped);
	if (done != 1000 || dropped != 0)
		return 1;

	if (pool_start(&impatient) != 0 || vez_cancel_on_signal(&impatient.stop, SIGTERM) != 0)
		return 1;
	for (int i = 0; i < WORKERS + 3; i++)
		pool_submit(&impatient, wait_for_ever, &interrupted);
	vez_latch_wait(&all_busy);
	raise(SIGTERM); /* as somebody else would */
	if (vez_event_wait_until(&never, VEZ_FOREVER, &impatient.stop) != ECANCELED)
		return 1;
	dropped = pool_stop(&impatient); /* firing a fired token does no harm */
	printf("stopped: %u tasks interrupted, %zu dropped\n", interrupted, dropped);
	return interrupted != WORKERS || dropped != 3;
}
