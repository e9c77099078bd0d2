/* SPDX-License-Identifier: MIT */
/* The counting semaphore: a line of which as many of the first hold as its permits suffice for (line.c). */
#include "line.h"

static struct vez__line *line_of(vez_cluster_sem_t *s)
{
	return (struct vez__line *)s;
}

static bool can_be_had(vez_cluster_sem_t *s, uint32_t n)
{
	return n > 0 && n <= vez__line_permits(line_of(s));
}

int vez_cluster_sem_open(vez_cluster_sem_t **s, vez_cluster_t *c, const char *name, uint32_t permits,
			 vez_deadline_t deadline, vez_cancel_t *cancel)
{
	if (permits == 0 || permits > VEZ_CLUSTER_SEM_MAX)
		return EINVAL;
	return vez__line_open((struct vez__line **)s, c, "sem", name, VEZ__COUNTED, permits, deadline, cancel);
}

int vez_cluster_sem_close(vez_cluster_sem_t *s)
{
	return vez__line_close(line_of(s));
}

int vez_cluster_sem_acquire(vez_cluster_sem_t *s, uint32_t n, vez_cluster_hold_t *h, vez_deadline_t deadline,
			    vez_cancel_t *cancel)
{
	return can_be_had(s, n) ? vez__line_take(line_of(s), n, h, deadline, cancel) : EINVAL;
}

int vez_cluster_sem_acquire_async(vez_cluster_sem_t *s, uint32_t n, vez_cluster_hold_t *h, vez_request_t *r)
{
	return can_be_had(s, n) ? vez__line_take_async(line_of(s), n, h, r) : EINVAL;
}
