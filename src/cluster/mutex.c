/* SPDX-License-Identifier: MIT */
/* The mutex: a line of which the first holds and hands over to the next (line.c). */
#include "line.h"

static struct vez__line *line_of(vez_cluster_mutex_t *m)
{
	return (struct vez__line *)m;
}

int vez_cluster_mutex_open(vez_cluster_mutex_t **m, vez_cluster_t *c, const char *name, vez_deadline_t deadline,
			   vez_cancel_t *cancel)
{
	return vez__line_open((struct vez__line **)m, c, "mutex", name, VEZ__HANDED, 1, deadline, cancel);
}

int vez_cluster_mutex_close(vez_cluster_mutex_t *m)
{
	return vez__line_close(line_of(m));
}

int vez_cluster_mutex_lock(vez_cluster_mutex_t *m, vez_cluster_hold_t *h, vez_deadline_t deadline,
			   vez_cancel_t *cancel)
{
	return vez__line_take(line_of(m), 1, h, deadline, cancel);
}

int vez_cluster_mutex_lock_async(vez_cluster_mutex_t *m, vez_cluster_hold_t *h, vez_request_t *r)
{
	return vez__line_take_async(line_of(m), 1, h, r);
}
