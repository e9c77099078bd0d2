/* SPDX-License-Identifier: MIT */
/*
 * The synchronizer: operations on several monitors at once. A desk (desk.c) with a line of its own, of which the
 * monitors are the parts.
 *
 * State: the monitors, and of each room for its bytes as they were; only the thread that serves uses it. The object has
 *  no bytes of its own.
 * Invariants
 *  Y1 an operation's body runs if its guard is true of the states that it finds. What comes of that is committed only
 *     if all of them are still those of the servers: so it is as if all had been of that moment. One that returns
 *     something else than 0 leaves all as they were.
 *  Y2 what it changes has those run that wait at these monitors and can go then, before anything else.
 *  Y3 all members have the same monitors and operations, by their names: the object's number is made of these.
 * Why versions, and not holds of the monitors in the order of their names: a hold takes a transaction for each monitor
 *  before the first body runs, keeps everybody else from the monitors meanwhile, and for the session time if its owner
 *  dies; versions cost a read of each state. Neither can deadlock. The price is that one which meets commits to its
 *  monitors begins again (desk.c, Progress).
 * Ordering, lifetime: of the desk.
 * Sources: S. Frolund, G. Agha, A Language Framework for Multi-Object Coordination (1993); optimistic transactions:
 *  H. T. Kung, J. T. Robinson (1981); a guard that waits for a change of what it has read: T. Harris et al., Composable
 *  Memory Transactions (2005); constraints between monitors: C. Martins (2009).
 */
#include <stdlib.h>
#include <string.h>

#include "monitor.h"

struct vez_cluster_synchronizer {
	struct vez_cluster_monitor m; /* first */
	const vez_cluster_joint_operation_t *operations;
	size_t count;
	struct vez_cluster_monitor *monitors[VEZ_CLUSTER_RELATED_MAX];
	unsigned char *saved[VEZ_CLUSTER_RELATED_MAX];
};

static const vez_cluster_joint_operation_t *find(const vez_cluster_synchronizer_t *y, const struct vez__served *s)
{
	for (size_t i = 0; i < y->count; i++)
		if (vez__served_is(s, y->operations[i].name))
			return &y->operations[i];
	return NULL;
}

/* Bytes of the states that are to be set. */
static size_t changed_bytes(const struct vez__desk *d)
{
	size_t sum = 0;
	for (size_t i = 0; i < d->part_count; i++)
		if (d->parts[i].batch.changed)
			sum += d->parts[i].batch.state_size;
	return sum;
}

static bool full(const struct vez_cluster_monitor *m, const struct vez__batch *b)
{
	struct vez__batch all = { .weight = b->weight, .state_size = changed_bytes(&m->desk) };
	return vez__batch_full(&all);
}

/* ---- one call ---- */

/* Y2. What they give is part of the same transaction. */
static void run_waiting_at(vez_cluster_synchronizer_t *y, struct vez__batch *b, size_t i)
{
	struct vez__desk *d = &y->m.desk;
	struct vez__batch *part = &d->parts[i].batch;
	size_t others = b->weight + changed_bytes(d) - part->state_size;
	part->weight = others;
	vez__monitor_run_waiting(y->monitors[i], part, part->count);
	b->weight += part->weight - others;
}

static void show(const struct vez__desk *d, vez_cluster_joint_step_t *step)
{
	for (size_t i = 0; i < d->part_count; i++) {
		const struct vez__batch *part = &d->parts[i].batch;
		step->states[i] = (vez_cluster_bytes_t){ part->state, part->state_size, VEZ_CLUSTER_STATE_MAX };
	}
}

static void save(vez_cluster_synchronizer_t *y)
{
	const struct vez__desk *d = &y->m.desk;
	for (size_t i = 0; i < d->part_count; i++)
		memcpy(y->saved[i], d->parts[i].batch.state, d->parts[i].batch.state_size);
}

static bool fits(const struct vez__desk *d, const vez_cluster_joint_step_t *step)
{
	for (size_t i = 0; i < d->part_count; i++)
		if (step->states[i].size > VEZ_CLUSTER_STATE_MAX)
			return false;
	return step->result_size <= VEZ_CLUSTER_BYTES_MAX;
}

static void restore(vez_cluster_synchronizer_t *y)
{
	struct vez__desk *d = &y->m.desk;
	for (size_t i = 0; i < d->part_count; i++)
		memcpy(d->parts[i].batch.state, y->saved[i], d->parts[i].batch.state_size);
}

static void keep(vez_cluster_synchronizer_t *y, struct vez__batch *b, const vez_cluster_joint_step_t *step)
{
	struct vez__desk *d = &y->m.desk;
	bool changed[VEZ_CLUSTER_RELATED_MAX];
	for (size_t i = 0; i < d->part_count; i++) {
		struct vez__batch *part = &d->parts[i].batch;
		changed[i] = part->state_size != step->states[i].size ||
			     memcmp(part->state, y->saved[i], part->state_size) != 0;
		part->changed |= changed[i];
		part->state_size = step->states[i].size;
	}
	for (size_t i = 0; i < d->part_count; i++)
		if (changed[i])
			run_waiting_at(y, b, i);
}

static bool run(struct vez_cluster_monitor *m, struct vez__batch *b, struct vez__served *s)
{
	vez_cluster_synchronizer_t *y = (vez_cluster_synchronizer_t *)m;
	const vez_cluster_joint_operation_t *o = find(y, s);
	if (!o) {
		vez__served_answer(b, s, ENOSYS, NULL, 0);
		return true;
	}
	vez_cluster_joint_step_t step = { .argument = s->note.bytes, .argument_size = s->note.size,
					  .result = m->result };
	show(&m->desk, &step);
	if (o->guard && !o->guard(&step, m->arg))
		return false;
	save(y);
	int rc = o->body(&step, m->arg);
	if (rc == 0 && !fits(&m->desk, &step))
		rc = EMSGSIZE;
	vez__served_answer(b, s, rc, m->result, rc == 0 ? step.result_size : 0);
	if (rc == 0)
		keep(y, b, &step);
	else
		restore(y);
	return true;
}

/* ---- opening ---- */

static void free_synchronizer(struct vez__thing *t)
{
	vez_cluster_synchronizer_t *y = caa_container_of(t, vez_cluster_synchronizer_t, m.desk.thing);
	for (size_t i = 0; i < VEZ_CLUSTER_RELATED_MAX; i++)
		free(y->saved[i]);
	vez__desk_free(&y->m.desk);
	free(y->m.result);
	free(y);
}

static const struct vez__desk_rules rules = {
	.slip = { .making = vez__desk_making, .left = vez__desk_left, .marked = vez__desk_marked },
	.serve = vez__monitor_serve,
};

static int check_monitors(const vez_cluster_t *c, vez_cluster_monitor_t *const *monitors, size_t count, uint32_t *hash)
{
	if (count == 0 || count > VEZ_CLUSTER_RELATED_MAX)
		return EINVAL;
	for (size_t i = 0; i < count; i++) {
		if (monitors[i]->desk.c != c)
			return EINVAL;
		for (size_t j = 0; j < i; j++)
			if (strcmp(monitors[i]->desk.path, monitors[j]->desk.path) == 0)
				return EINVAL;
		/* Its name, which those of other roots have, too. */
		*hash = vez__monitor_hash(*hash, strrchr(monitors[i]->desk.path, '/'));
	}
	return 0;
}

static int check_operations(const vez_cluster_joint_operation_t *operations, size_t count, uint32_t *hash)
{
	int rc = count ? 0 : EINVAL;
	for (size_t i = 0; rc == 0 && i < count; i++) {
		rc = operations[i].body ? vez__name_check(operations[i].name) : EINVAL;
		if (rc == 0)
			*hash = vez__monitor_hash(*hash, operations[i].name);
	}
	return rc;
}

static int prepare(vez_cluster_synchronizer_t *y, vez_cluster_monitor_t *const *monitors, size_t count)
{
	struct vez__desk *desks[VEZ_CLUSTER_RELATED_MAX];
	struct vez__desk *parts = calloc(count, sizeof *parts);
	if (!parts)
		return ENOMEM;
	for (size_t i = 0; i < count; i++) {
		desks[i] = &monitors[i]->desk;
		y->monitors[i] = monitors[i];
	}
	int rc = vez__desk_parts(&y->m.desk, parts, desks, count);
	y->m.result = malloc(VEZ_CLUSTER_BYTES_MAX);
	if (!y->m.result)
		rc = ENOMEM;
	for (size_t i = 0; i < count; i++) {
		y->saved[i] = malloc(VEZ_CLUSTER_STATE_MAX);
		if (!y->saved[i])
			rc = ENOMEM;
	}
	return rc;
}

int vez_cluster_synchronizer_open(vez_cluster_synchronizer_t **made, vez_cluster_t *c, const char *name,
				  vez_cluster_monitor_t *const *monitors, size_t monitor_count,
				  const vez_cluster_joint_operation_t *operations, size_t count, void *arg,
				  vez_deadline_t deadline, vez_cancel_t *cancel)
{
	uint32_t hash = 0;
	int rc = check_monitors(c, monitors, monitor_count, &hash);
	if (rc == 0)
		rc = check_operations(operations, count, &hash);
	if (rc != 0)
		return rc;
	vez_cluster_synchronizer_t *y = calloc(1, sizeof *y);
	if (!y)
		return ENOMEM;
	y->m.run = run;
	y->m.full = full;
	y->m.arg = arg;
	y->operations = operations;
	y->count = count;
	rc = prepare(y, monitors, monitor_count);
	if (rc != 0)
		free_synchronizer(&y->m.desk.thing);
	else
		rc = vez__desk_open(&y->m.desk, c, &rules, "synchronizer", name, hash, NULL, free_synchronizer,
				    deadline, cancel);
	if (rc == 0)
		*made = y;
	return rc;
}

int vez_cluster_synchronizer_close(vez_cluster_synchronizer_t *y)
{
	return vez__desk_close(&y->m.desk);
}

/* ---- calling ---- */

static bool has(const vez_cluster_synchronizer_t *y, const char *operation)
{
	for (size_t i = 0; i < y->count; i++)
		if (strcmp(y->operations[i].name, operation) == 0)
			return true;
	return false;
}

int vez_cluster_synchronizer_call(vez_cluster_synchronizer_t *y, const char *operation, const void *argument,
				  size_t size, vez_cluster_bytes_t *result, vez_deadline_t deadline,
				  vez_cancel_t *cancel)
{
	struct vez__into into = { .bytes = result };
	return has(y, operation) ? vez__desk_call(&y->m.desk, operation, argument, size, into, deadline, cancel) :
				   ENOSYS;
}

int vez_cluster_synchronizer_call_async(vez_cluster_synchronizer_t *y, const char *operation, const void *argument,
					size_t size, vez_cluster_bytes_t *result, vez_request_t *r)
{
	struct vez__into into = { .bytes = result };
	return has(y, operation) ? vez__desk_call_async(&y->m.desk, operation, argument, size, into, r) : ENOSYS;
}
