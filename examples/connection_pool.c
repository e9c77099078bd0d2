/* SPDX-License-Identifier: MIT */
/*
 * A pool of connections that lets no more than so many requests run at a time, and no more than so many begin in a
 * second.
 *
 * A vez_sem_t counts the connections that are free, in the order of arrival; a vez_sched_t with a gap between one leave
 * and the next enter is the rate limit. One deadline and one token bound the whole of pool_get, whichever of the two it
 * waits for; if it fails at the second it gives back what it had of the first. No thread keeps the rate.
 *
 * Exit status 0: neither limit was exceeded, a request without a connection was told so at its deadline, and one that
 * waited when the program was to stop at once.
 */
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <vez.h>

#define CONNECTIONS 3
#define GAP_US 500 /* 2,000 requests in a second */
#define CLIENTS 8
#define REQUESTS 25 /* of each client */

struct connection {
	struct connection *next; /* that is free */
	unsigned used;
};

struct pool {
	vez_sem_t free_count;
	vez_sched_t pace;
	vez_mutex_t lock; /* guards the list */
	struct connection *free;
};

static void pool_init(struct pool *p, struct connection *connections, uint32_t count, int64_t gap_ns)
{
	vez_sem_init(&p->free_count, count, count, 0);
	vez_sched_init(&p->pace, NULL, 0);
	vez_sched_min_gap(&p->pace, gap_ns);
	vez_mutex_init(&p->lock, 0);
	p->free = NULL;
	for (uint32_t i = 0; i < count; i++) {
		connections[i] = (struct connection){ .next = p->free };
		p->free = &connections[i];
	}
}

/* 0, and *c is the caller's until pool_put; ETIMEDOUT, ECANCELED. */
static int pool_get(struct pool *p, struct connection **c, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	int rc = vez_sem_acquire_until(&p->free_count, 1, deadline, cancel);
	if (rc != 0)
		return rc;
	rc = vez_sched_enter_until(&p->pace, NULL, deadline, cancel);
	if (rc != 0) {
		vez_sem_release(&p->free_count, 1);
		return rc;
	}
	vez_sched_leave(&p->pace);
	vez_mutex_lock(&p->lock);
	*c = p->free; /* there is one: the semaphore says so */
	p->free = (*c)->next;
	vez_mutex_unlock(&p->lock);
	return 0;
}

static void pool_put(struct pool *p, struct connection *c)
{
	vez_mutex_lock(&p->lock);
	c->next = p->free;
	p->free = c;
	vez_mutex_unlock(&p->lock);
	vez_sem_release(&p->free_count, 1);
}

/* EBUSY while somebody waits. */
static int pool_destroy(struct pool *p)
{
	int rc = vez_sem_destroy(&p->free_count);
	rc = rc ? rc : vez_sched_destroy(&p->pace);
	return rc ? rc : vez_mutex_destroy(&p->lock);
}

/* ---- clients ---- */

static struct pool pool;
static vez_cancel_t stop = VEZ_CANCEL_INITIALIZER;
static unsigned at_once, too_many;

static void *client(void *arg)
{
	for (int i = 0; i < REQUESTS; i++) {
		struct connection *c;
		if (pool_get(&pool, &c, vez_after_ms(60000), &stop) != 0)
			return arg;
		if (__atomic_add_fetch(&at_once, 1, __ATOMIC_RELAXED) > CONNECTIONS)
			__atomic_store_n(&too_many, 1, __ATOMIC_RELAXED);
		c->used++; /* nobody else has it */
		nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
		__atomic_sub_fetch(&at_once, 1, __ATOMIC_RELAXED);
		pool_put(&pool, c);
	}
	return NULL;
}

static void *wait_until_stopped(void *result)
{
	struct connection *c;
	*(int *)result = pool_get(&pool, &c, VEZ_FOREVER, &stop);
	return NULL;
}

int main(void)
{
	struct connection connections[CONNECTIONS], *held[CONNECTIONS], *none;
	pthread_t clients[CLIENTS], waiter;
	unsigned used = 0;
	int stopped = 0;

	pool_init(&pool, connections, CONNECTIONS, GAP_US * INT64_C(1000));
	vez_deadline_t soonest = vez_after_us((int64_t)GAP_US * (CLIENTS * REQUESTS - 1));
	for (int i = 0; i < CLIENTS; i++)
		pthread_create(&clients[i], NULL, client, NULL);
	for (int i = 0; i < CLIENTS; i++)
		pthread_join(clients[i], NULL);
	bool too_fast = vez_deadline_remaining_ns(soonest) > 0;
	for (int i = 0; i < CONNECTIONS; i++)
		used += connections[i].used;
	printf("%u requests; more at once than connections: %s; faster than the rate: %s\n", used,
	       too_many ? "yes" : "no", too_fast ? "yes" : "no");
	if (used != CLIENTS * REQUESTS || too_many || too_fast)
		return 1;

	/* One that has a connection but comes too soon after another gives it back. */
	if (pool_get(&pool, &none, VEZ_FOREVER, NULL) == 0)
		pool_put(&pool, none);
	if (pool_get(&pool, &none, VEZ_NOW, NULL) == 0)
		pool_put(&pool, none);
	for (int i = 0; i < CONNECTIONS; i++)
		pool_get(&pool, &held[i], VEZ_FOREVER, NULL);
	int late = pool_get(&pool, &none, vez_after_ms(5), &stop);
	pthread_create(&waiter, NULL, wait_until_stopped, &stopped);
	while (vez_sem_waiters(&pool.free_count) == 0)
		nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
	vez_cancel_fire(&stop);
	pthread_join(waiter, NULL);
	for (int i = 0; i < CONNECTIONS; i++)
		pool_put(&pool, held[i]);
	return late != ETIMEDOUT || stopped != ECANCELED || pool_destroy(&pool) || vez_cancel_destroy(&stop);
}
