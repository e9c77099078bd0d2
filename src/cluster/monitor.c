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
 *  O3 all members have the same operations, by their names: the object's number is made of these. A call of no name is
 *     of a function that only its own process has (vez_cluster_guarded_t): others leave it, and what is behind it.
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

/* What runs for it; or there is no such thing. */
static struct vez__own function_of(const struct vez_cluster_monitor *m, const struct vez__served *s)
{
	const vez_cluster_operation_t *o = find(m, s);
	return o ? (struct vez__own){ o->guard, o->body, m->arg } : s->own;
}

/* Waits for its own process. */
static bool is_of_others(const struct vez__served *s)
{
	return vez__served_is_own(s) && !s->own.body;
}

static bool run(struct vez_cluster_monitor *m, struct vez__batch *b, struct vez__served *s)
{
	struct vez__own f = function_of(m, s);
	if (is_of_others(s))
		return false;
	if (!f.body) {
		vez__served_answer(b, s, ENOSYS, NULL, 0);
		return true;
	}
	vez_cluster_step_t step = { b->state, b->state_size, s->note.bytes, s->note.size, m->result, 0 };
	if (f.guard && !f.guard(&step, f.arg))
		return false;
	memcpy(m->saved, b->state, b->state_size);
	int rc = f.body(&step, f.arg);
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

static bool full(const struct vez_cluster_monitor *m, const struct vez__batch *b)
{
	(void)m;
	return vez__batch_full(b);
}

void vez__monitor_run_waiting(struct vez_cluster_monitor *m, struct vez__batch *b, size_t end)
{
	for (size_t i = 0; i < end; i++) {
		struct vez__served *s = &b->calls[i];
		if (!s->value || s->answered)
			continue;
		if (m->full(m, b)) {
			b->more = true;
			return;
		}
		if (m->run(m, b, s))
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
	vez__monitor_run_waiting(m, b, next);
	for (; next < b->count; next++) {
		struct vez__served *s = &b->calls[next];
		if (m->full(m, b) || is_of_others(s)) {
			b->turn = is_of_others(s) ? s : NULL;
			b->considered = next;
			return;
		}
		if (!s->value)
			continue;
		if (m->run(m, b, s))
			vez__monitor_run_waiting(m, b, next);
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
	m->run = run;
	m->full = full;
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
	.slip = { .making = vez__desk_making, .left = vez__desk_left, .marked = vez__desk_marked },
	.serve = vez__monitor_serve,
};

/* FNV-1a. */
uint32_t vez__monitor_hash(uint32_t hash, const char *name)
{
	if (hash == 0)
		hash = UINT32_C(2166136261);
	for (const char *at = name;; at++) {
		hash = (hash ^ (unsigned char)*at) * UINT32_C(16777619);
		if (!*at)
			return hash;
	}
}

int vez_cluster_monitor_open(vez_cluster_monitor_t **m, vez_cluster_t *c, const char *name,
			     const vez_cluster_operation_t *operations, size_t count, void *arg,
			     vez_deadline_t deadline, vez_cancel_t *cancel)
{
	uint32_t hash = 0;
	if (count == 0)
		return EINVAL;
	for (size_t i = 0; i < count; i++) {
		int rc = operations[i].body ? vez__name_check(operations[i].name) : EINVAL;
		if (rc != 0)
			return rc;
		hash = vez__monitor_hash(hash, operations[i].name);
	}
	return vez__monitor_open(m, c, &rules, "monitor", name, hash, operations, count, arg, deadline, cancel);
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

/* ---- functions that only this process has ---- */

int vez_cluster_guarded_call_async(vez_cluster_guarded_t f, const void *argument, size_t size,
				   vez_cluster_bytes_t *result, vez_request_t *r)
{
	struct vez__own own = { f.guard, f.body, f.arg };
	struct vez__into into = { .bytes = result };
	return f.body ? vez__desk_own_async(&f.monitor->desk, own, argument, size, into, r) : EINVAL;
}

int vez_cluster_guarded_call(vez_cluster_guarded_t f, const void *argument, size_t size, vez_cluster_bytes_t *result,
			     vez_deadline_t deadline, vez_cancel_t *cancel)
{
	vez_request_t r;
	vez_request_init(&r, NULL, NULL);
	vez_request_set_limits(&r, deadline, cancel);
	int rc = vez_cluster_guarded_call_async(f, argument, size, result, &r);
	if (rc != EINPROGRESS)
		return rc;
	vez_request_wait(&r, VEZ_FOREVER, NULL);
	return vez_request_result(&r);
}
