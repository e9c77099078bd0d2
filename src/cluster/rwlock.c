/* SPDX-License-Identifier: MIT */
/* Readers and writers: a line in which a reader takes one permit and a writer all of them, in order or alternating
 * (line.c). */
#include "vez/rwlock.h"

#include "line.h"

static struct vez__line *line_of(vez_cluster_rwlock_t *l)
{
	return (struct vez__line *)l;
}

int vez_cluster_rwlock_open(vez_cluster_rwlock_t **l, vez_cluster_t *c, const char *name, vez_deadline_t deadline,
			    vez_cancel_t *cancel)
{
	return vez_cluster_rwlock_open_with(l, c, name, VEZ_RW_FIFO, deadline, cancel);
}

int vez_cluster_rwlock_open_with(vez_cluster_rwlock_t **l, vez_cluster_t *c, const char *name, unsigned policy,
				 vez_deadline_t deadline, vez_cancel_t *cancel)
{
	struct vez__line **line = (struct vez__line **)l;
	if (policy == VEZ_RW_FIFO)
		return vez__line_open(line, c, "rwlock", name, VEZ__COUNTED, VEZ_CLUSTER_SEM_MAX, deadline, cancel);
	if (policy == VEZ_RW_HOARE)
		return vez__line_open(line, c, "rwlock", name, VEZ__ALTERNATING, 0, deadline, cancel);
	return EINVAL;
}

int vez_cluster_rwlock_close(vez_cluster_rwlock_t *l)
{
	return vez__line_close(line_of(l));
}

int vez_cluster_rwlock_read(vez_cluster_rwlock_t *l, vez_cluster_hold_t *h, vez_deadline_t deadline,
			    vez_cancel_t *cancel)
{
	return vez__line_take(line_of(l), 1, h, deadline, cancel);
}

int vez_cluster_rwlock_read_async(vez_cluster_rwlock_t *l, vez_cluster_hold_t *h, vez_request_t *r)
{
	return vez__line_take_async(line_of(l), 1, h, r);
}

int vez_cluster_rwlock_write(vez_cluster_rwlock_t *l, vez_cluster_hold_t *h, vez_deadline_t deadline,
			     vez_cancel_t *cancel)
{
	return vez__line_take(line_of(l), VEZ_CLUSTER_SEM_MAX, h, deadline, cancel);
}

int vez_cluster_rwlock_write_async(vez_cluster_rwlock_t *l, vez_cluster_hold_t *h, vez_request_t *r)
{
	return vez__line_take_async(line_of(l), VEZ_CLUSTER_SEM_MAX, h, r);
}
