/* SPDX-License-Identifier: MIT */
/*
 * Queues of requests: a ring of their links, of which the object has the first.
 *
 * Everything here is done inside the core.
 */
#ifndef VEZ__ROOM_H
#define VEZ__ROOM_H

#include "vez/monitor.h"
#include "vez/request.h"

/* The one behind r; NULL: r is the last of the queue that begins with first. */
static inline vez_request_t *vez__queue_next(const vez_request_t *first, const vez_request_t *r)
{
	return r->next_ != first ? r->next_ : NULL;
}

/* Puts r in the queue by its key: behind those with the same key or a smaller one. */
void vez__queue_insert(vez_request_t **queue, vez_request_t *r);

/* Takes r out of it. */
void vez__queue_remove(vez_request_t **queue, vez_request_t *r);

#endif
