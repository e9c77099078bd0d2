/* SPDX-License-Identifier: MIT */
/*
 * The latch: a count at a desk (desk.c), and a gate in front of those who wait (event.c).
 *
 * State: the desk's bytes are what is left of the count, in four bytes; none: all of it. The node "closed" is the gate.
 * Invariants: the call that takes the last off the count removes the gate in the same transaction; it is never made
 *  anew.
 * Ordering, progress: of desk and event. Lifetime: of the session.
 * Sources: the CountDownLatch of D. Lea's java.util.concurrent (2004).
 */
#include <stdlib.h>

#include "desk.h"
#include "event.h"

struct vez_cluster_latch {
	struct vez__desk desk; /* first */
	vez_cluster_event_t *gate;
	uint32_t count;
};

static void serve(struct vez__desk *d, struct vez__batch *b)
{
	uint32_t left = b->state_size == 4 ? vez__number_at(b->state) : ((vez_cluster_latch_t *)d)->count;
	bool open = left == 0;
	for (size_t i = 0; i < b->count; i++) {
		const struct vez__served *s = &b->calls[i];
		if (!s->value)
			continue;
		bool good = vez__served_is(s, "down") && s->note.size == 4;
		if (good) {
			uint32_t n = vez__number_at(s->note.bytes);
			left -= n < left ? n : left;
		}
		vez__served_answer(b, &b->calls[i], good ? 0 : ENOSYS, NULL, 0);
	}
	vez__put_number(b->state, left);
	b->state_size = 4;
	b->opens = left == 0 && !open;
}

static const struct vez__desk_rules rules = {
	.slip = { .making = vez__desk_making, .left = vez__desk_left },
	.serve = serve,
};

static void free_latch(struct vez__thing *t)
{
	vez_cluster_latch_t *l = caa_container_of(t, vez_cluster_latch_t, desk.thing);
	vez__desk_free(&l->desk);
	free(l);
}

int vez_cluster_latch_open(vez_cluster_latch_t **made, vez_cluster_t *c, const char *name, uint32_t count,
			   vez_deadline_t deadline, vez_cancel_t *cancel)
{
	if (count == 0)
		return EINVAL;
	vez_cluster_latch_t *l = calloc(1, sizeof *l);
	if (!l)
		return ENOMEM;
	l->count = count;
	int rc = vez__desk_open(&l->desk, c, &rules, "latch", name, count, "closed", free_latch, deadline, cancel);
	if (rc != 0)
		return rc;
	rc = vez__event_below(&l->gate, c, l->desk.path);
	if (rc != 0)
		vez__desk_close(&l->desk);
	else
		*made = l;
	return rc;
}

int vez_cluster_latch_close(vez_cluster_latch_t *l)
{
	if (l->desk.c->process != vez__process())
		return EPERM;
	if (vez__desk_used(&l->desk))
		return EBUSY;
	int rc = vez_cluster_event_close(l->gate);
	return rc ? rc : vez__desk_close(&l->desk);
}

int vez_cluster_latch_count_down(vez_cluster_latch_t *l, uint32_t n, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	unsigned char argument[4];
	vez__put_number(argument, n);
	return vez__desk_call(&l->desk, "down", argument, 4, (struct vez__into){ NULL, NULL }, deadline, cancel);
}

int vez_cluster_latch_count_down_async(vez_cluster_latch_t *l, uint32_t n, vez_request_t *r)
{
	unsigned char argument[4];
	vez__put_number(argument, n);
	return vez__desk_call_async(&l->desk, "down", argument, 4, (struct vez__into){ NULL, NULL }, r);
}

int vez_cluster_latch_wait(vez_cluster_latch_t *l, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	return vez_cluster_event_wait(l->gate, deadline, cancel);
}

int vez_cluster_latch_wait_async(vez_cluster_latch_t *l, vez_request_t *r)
{
	return vez_cluster_event_wait_async(l->gate, r);
}
