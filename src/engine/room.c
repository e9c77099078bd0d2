/* SPDX-License-Identifier: MIT */
/* Queues of requests, smallest key first, first come first served among equals. */
#include "room.h"

#include <string.h>

#include "../futex/atomic.h"
#include "ring.h"

/* The last one with this key or a smaller one; NULL: all have greater ones. */
static vez_request_t *last_not_after(vez_request_t *first, int64_t key)
{
	vez_request_t *r = first->at_.before_;
	for (; r->key_ > key; r = r->at_.before_)
		if (r == first)
			return NULL;
	return r;
}

void vez__queue_insert(vez_request_t **queue, vez_request_t *r)
{
	vez_request_t *before = *queue ? last_not_after(*queue, r->key_) : NULL;
	if (before) {
		cds_list_add((struct cds_list_head *)r, (struct cds_list_head *)before);
		return;
	}
	vez__ring_append(queue, r);
	*queue = r;
}

/* ---- rooms of users' monitors ---- */

void vez_room_init(vez_room_t *room)
{
	memset(room, 0, sizeof *room);
}

vez_request_t *vez_room_first(const vez_room_t *room)
{
	return room->first_;
}

vez_request_t *vez_room_next(const vez_room_t *room, const vez_request_t *r)
{
	return vez__queue_next(room->first_, r);
}

size_t vez_room_length(const vez_room_t *room)
{
	return vez__load(&room->length_, relaxed);
}
