/* SPDX-License-Identifier: MIT */
/*
 * The delegated monitor: a desk (desk.c) at which calls are operations on the object's bytes.
 *
 * State: monitor: the operations; and room for what one needs, which only the thread that serves uses, one batch at a
 *  time.
 * Invariants
 *  O1 an operation's body runs if its guard is true of the state that it finds. One that returns something else than 0
 *     leaves the state as it was.
 *  O2 in a batch the calls that wait at their guards are asked again, first come first, after each body that ran:
 *     before the next call is looked at none of them could go.
 *  O3 all members have the same operations, by their names: the object's number is made of these.
 * Ordering, progress: of the desk. Lifetime: of the session.
 * Sources: monitors: C. A. R. Hoare (1974); guards that are asked again after each request: C. Martins (2009).
 */
#include "monitor.h"

#include <stdlib.h>
#include <string.h>

static const vez_cluster_operation_t *find(const struct vez_cluster_monitor *m, const struct vez__served *s)
{
	for (size_t i = 0; i < m->count; i++)
		if (vez__served_is(s, m->operations[i].name))
			return &m->operations[i];
	return NULL;
}

/* True: it has run, or cannot. */
static bool run(struct vez_cluster_monitor *m, struct vez__batch *b, struct vez__served *s)
{
	const vez_cluster_operation_t *o = find(m, s);
	if (!o) {
		vez__served_answer(b, s, ENOSYS, NULL, 0);
		return true;
	}
	vez_cluster_step_t step = { b->state, b->state_size, s->note.bytes, s->note.size, m->result, 0 };
	if (o->guard && !o->guard(&step, m->arg))
		return false;
	memcpy(m->saved, b->state, b->state_size);
	int rc = o->body(&step, m->arg);
	if (rc == 0 && (step.state_size > VEZ_CLUSTER_STATE_MAX || step.result_size > VEZ_CLUSTER_BYTES_MAX))
		rc = EMSGSIZE;
	if (rc == 0)
		b->state_size = step.state_size;
	else
		memcpy(b->state, m->saved, b->state_size);
	b->changed |= rc == 0;
	vez__served_answer(b, s, rc, m->result, rc == 0 ? step.result_size : 0);
	return true;
}

/* Those before end that wait, as long as one of them can go. */
static void run_waiting(struct vez_cluster_monitor *m, struct vez__batch *b, size_t end)
{
	for (size_t i = 0; i < end; i++) {
		struct vez__served *s = &b->calls[i];
		if (!s->value || s->answered)
			continue;
		if (vez__batch_full(b)) {
			b->more = true;
			return;
		}
		if (run(m, b, s))
			i = (size_t)-1;
	}
}

static size_t waiting(const struct vez__batch *b, size_t end)
{
	size_t count = 0;
	for (size_t i = 0; i < end; i++)
		count += b->calls[i].value && !b->calls[i].answered;
	return count;
}

void vez__monitor_serve(struct vez__desk *d, struct vez__batch *b)
{
	struct vez_cluster_monitor *m = (struct vez_cluster_monitor *)d;
	size_t next = 0;
	while (next < b->count && b->calls[next].blocked)
		next++;
	run_waiting(m, b, next);
	for (; next < b->count; next++) {
		struct vez__served *s = &b->calls[next];
		if (vez__batch_full(b)) {
			b->considered = next;
			return;
		}
		if (!s->value)
			continue;
		if (run(m, b, s))
			run_waiting(m, b, next);
		else if (waiting(b, next + 1) > VEZ__MOST_BLOCKED)
			vez__served_answer(b, s, EAGAIN, NULL, 0);
	}
}

/* ---- opening ---- */

static void free_monitor(struct vez__thing *t)
{
	struct vez_cluster_monitor *m = caa_container_of(t, struct vez_cluster_monitor, desk.thing);
	vez__desk_free(&m->desk);
	free(m->saved);
	free(m->result);
	free(m);
}

int vez__monitor_open(vez_cluster_monitor_t **made, vez_cluster_t *c, const struct vez__desk_rules *rules,
		      const char *kind, const char *name, uint32_t number, const vez_cluster_operation_t *operations,
		      size_t count, void *arg, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	struct vez_cluster_monitor *m = calloc(1, sizeof *m);
	if (!m)
		return ENOMEM;
	m->operations = operations;
	m->count = count;
	m->arg = arg;
	m->saved = malloc(VEZ_CLUSTER_STATE_MAX);
	m->result = malloc(VEZ_CLUSTER_BYTES_MAX);
	if (!m->saved || !m->result) {
		free_monitor(&m->desk.thing);
		return ENOMEM;
	}
	int rc = vez__desk_open(&m->desk, c, rules, kind, name, number, NULL, free_monitor, deadline, cancel);
	if (rc == 0)
		*made = m;
	return rc;
}

static const struct vez__desk_rules rules = {
	.slip = { .making = vez__desk_making, .left = vez__desk_left },
	.serve = vez__monitor_serve,
};

/* FNV-1a, of all names in their order. */
static uint32_t hash(const vez_cluster_operation_t *operations, size_t count)
{
	uint32_t h = UINT32_C(2166136261);
	for (size_t i = 0; i < count; i++)
		for (const char *at = operations[i].name;; at++) {
			h = (h ^ (unsigned char)*at) * UINT32_C(16777619);
			if (!*at)
				break;
		}
	return h;
}

int vez_cluster_monitor_open(vez_cluster_monitor_t **m, vez_cluster_t *c, const char *name,
			     const vez_cluster_operation_t *operations, size_t count, void *arg,
			     vez_deadline_t deadline, vez_cancel_t *cancel)
{
	if (count == 0)
		return EINVAL;
	for (size_t i = 0; i < count; i++) {
		int rc = operations[i].body ? vez__name_check(operations[i].name) : EINVAL;
		if (rc != 0)
			return rc;
	}
	return vez__monitor_open(m, c, &rules, "monitor", name, hash(operations, count), operations, count, arg,
				 deadline, cancel);
}

int vez_cluster_monitor_close(vez_cluster_monitor_t *m)
{
	return vez__desk_close(&m->desk);
}

/* ---- calling ---- */

static bool has(const vez_cluster_monitor_t *m, const char *operation)
{
	for (size_t i = 0; i < m->count; i++)
		if (strcmp(m->operations[i].name, operation) == 0)
			return true;
	return false;
}

int vez_cluster_monitor_call(vez_cluster_monitor_t *m, const char *operation, const void *argument, size_t size,
			     vez_cluster_bytes_t *result, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	struct vez__into into = { .bytes = result };
	return has(m, operation) ? vez__desk_call(&m->desk, operation, argument, size, into, deadline, cancel) : ENOSYS;
}

int vez_cluster_monitor_call_async(vez_cluster_monitor_t *m, const char *operation, const void *argument, size_t size,
				   vez_cluster_bytes_t *result, vez_request_t *r)
{
	struct vez__into into = { .bytes = result };
	return has(m, operation) ? vez__desk_call_async(&m->desk, operation, argument, size, into, r) : ENOSYS;
}
