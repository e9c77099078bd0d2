/* SPDX-License-Identifier: MIT */
/*
 * Queues of requests: a ring of their links, of which the object has the first.
 *
 * Everything here is done inside the core.
 */
#ifndef VEZ__ROOM_H
#define VEZ__ROOM_H

#include "ring.h"
#include "vez/monitor.h"
#include "vez/request.h"

/* A request that has jumps: in its state_ (settle.h). */
#define VEZ__JUMPS 8192u

/* The one behind r; NULL: r is the last of the queue that begins with first. */
static inline vez_request_t *vez__queue_next(const vez_request_t *first, const vez_request_t *r)
{
	return r->next_ != first ? r->next_ : NULL;
}

/* The rare ways of the two functions below: by its key r is not the last; r jumps. */
void vez__queue_insert_before_last(vez_request_t **queue, vez_request_t *r);
void vez__queue_remove_jumping(vez_request_t **queue, vez_request_t *r);

/* Puts r in the queue by its key: behind those with the same key or a smaller one. */
static inline void vez__queue_insert(vez_request_t **queue, vez_request_t *r)
{
	if (*queue && (*queue)->at_.before_->key_ > r->key_)
		vez__queue_insert_before_last(queue, r);
	else
		vez__ring_append(queue, r);
}

/* Takes r out of it. */
static inline void vez__queue_remove(vez_request_t **queue, vez_request_t *r)
{
	if (r->state_ & VEZ__JUMPS)
		vez__queue_remove_jumping(queue, r);
	else
		vez__ring_remove(queue, r);
}

#endif
