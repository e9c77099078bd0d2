/* SPDX-License-Identifier: MIT */
/*
 * The bounded queue of byte strings: a monitor (monitor.c) with operations of its own.
 *
 * State: the monitor's bytes are the items, each after its length in four bytes. The object's number is the capacity.
 * Invariants
 *  Q1 an item is in the queue, or in the result of one call that took it, which stays at the servers until its process
 *     has read it. If nobody waits for that any more, the item is put back, in front.
 *  Q2 put leaves room for one item that is put back. More of them wait until there is room.
 * Ordering, progress, lifetime: of the monitor.
 * Sources: the bounded buffer: E. W. Dijkstra (1965), C. A. R. Hoare (1974).
 */
#include <string.h>

#include "monitor.h"

#define MOST_IN_USE (VEZ_CLUSTER_STATE_MAX - VEZ_CLUSTER_BYTES_MAX - 4)

static size_t items(const vez_cluster_step_t *s)
{
	const unsigned char *p = s->state;
	size_t count = 0;
	for (size_t at = 0; at < s->state_size; at += 4 + (size_t)vez__number_at(p + at))
		count++;
	return count;
}

static uint32_t capacity(void *arg)
{
	return (uint32_t)(uintptr_t)arg;
}

static bool can_put(const vez_cluster_step_t *s, void *arg)
{
	return s->state_size + 4 + s->argument_size <= MOST_IN_USE && items(s) < capacity(arg);
}

static int put(vez_cluster_step_t *s, void *arg)
{
	unsigned char *end = (unsigned char *)s->state + s->state_size;
	(void)arg;
	vez__put_number(end, (uint32_t)s->argument_size);
	memcpy(end + 4, s->argument, s->argument_size);
	s->state_size += 4 + s->argument_size;
	return 0;
}

static bool can_take(const vez_cluster_step_t *s, void *arg)
{
	(void)arg;
	return s->state_size > 0;
}

static int take(vez_cluster_step_t *s, void *arg)
{
	unsigned char *p = s->state;
	(void)arg;
	s->result_size = (size_t)vez__number_at(p);
	memcpy(s->result, p + 4, s->result_size);
	s->state_size -= 4 + s->result_size;
	memmove(p, p + 4 + s->result_size, s->state_size);
	return 0;
}

static bool can_put_back(const vez_cluster_step_t *s, void *arg)
{
	(void)arg;
	return s->state_size + 4 + s->argument_size <= VEZ_CLUSTER_STATE_MAX;
}

static int put_back(vez_cluster_step_t *s, void *arg)
{
	unsigned char *p = s->state;
	(void)arg;
	memmove(p + 4 + s->argument_size, p, s->state_size);
	vez__put_number(p, (uint32_t)s->argument_size);
	memcpy(p + 4, s->argument, s->argument_size);
	s->state_size += 4 + s->argument_size;
	return 0;
}

static const vez_cluster_operation_t operations[] = {
	{ "put", can_put, put },
	{ "take", can_take, take },
	{ "back", can_put_back, put_back },
};

/* Q1. */
static void wasted(struct vez__slip *s, int rc, const void *result, size_t size)
{
	if (rc == 0 && s->value[2] == 't')
		vez__desk_post(s->owner, "back", result, size);
}

static const struct vez__desk_rules rules = {
	.slip = { .making = vez__desk_making, .left = vez__desk_left, .wasted = wasted },
	.serve = vez__monitor_serve,
};

static struct vez__desk *desk_of(vez_cluster_queue_t *q)
{
	return (struct vez__desk *)q;
}

int vez_cluster_queue_open(vez_cluster_queue_t **q, vez_cluster_t *c, const char *name, uint32_t most,
			   vez_deadline_t deadline, vez_cancel_t *cancel)
{
	if (most == 0 || most > VEZ_CLUSTER_QUEUE_MAX)
		return EINVAL;
	return vez__monitor_open((vez_cluster_monitor_t **)q, c, &rules, "queue", name, most, operations, 3,
				 (void *)(uintptr_t)most, deadline, cancel);
}

int vez_cluster_queue_close(vez_cluster_queue_t *q)
{
	return vez__desk_close(desk_of(q));
}

int vez_cluster_queue_put(vez_cluster_queue_t *q, const void *item, size_t size, vez_deadline_t deadline,
			  vez_cancel_t *cancel)
{
	return vez__desk_call(desk_of(q), "put", item, size, (struct vez__into){ NULL, NULL }, deadline, cancel);
}

int vez_cluster_queue_put_async(vez_cluster_queue_t *q, const void *item, size_t size, vez_request_t *r)
{
	return vez__desk_call_async(desk_of(q), "put", item, size, (struct vez__into){ NULL, NULL }, r);
}

int vez_cluster_queue_take(vez_cluster_queue_t *q, vez_cluster_bytes_t *item, vez_deadline_t deadline,
			   vez_cancel_t *cancel)
{
	return vez__desk_call(desk_of(q), "take", NULL, 0, (struct vez__into){ item, NULL }, deadline, cancel);
}

int vez_cluster_queue_take_async(vez_cluster_queue_t *q, vez_cluster_bytes_t *item, vez_request_t *r)
{
	return vez__desk_call_async(desk_of(q), "take", NULL, 0, (struct vez__into){ item, NULL }, r);
}
