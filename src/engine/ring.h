/* SPDX-License-Identifier: MIT */
/* Rings: lists of liburcu without a head of their own. Whoever keeps one has a pointer to its first link, NULL if it is
 * empty. */
#ifndef VEZ__RING_H
#define VEZ__RING_H

#include <stddef.h>
#include <urcu/list.h>

static inline void vez__ring_append(void *ring, void *link)
{
	struct cds_list_head **first = (struct cds_list_head **)ring;
	struct cds_list_head *node = (struct cds_list_head *)link;
	if (*first) {
		cds_list_add_tail(node, *first);
	} else {
		CDS_INIT_LIST_HEAD(node);
		*first = node;
	}
}

static inline void vez__ring_remove(void *ring, void *link)
{
	struct cds_list_head **first = (struct cds_list_head **)ring;
	struct cds_list_head *node = (struct cds_list_head *)link;
	if (*first == node)
		*first = node->next != node ? node->next : NULL;
	cds_list_del(node);
}

/* Takes the first one out; NULL: there is none. */
static inline void *vez__ring_take(void *ring)
{
	void *first = *(void **)ring;
	if (first)
		vez__ring_remove(ring, first);
	return first;
}

/* Appends all of another ring, which is empty then. */
static inline void vez__ring_append_all(void *ring, void *other)
{
	struct cds_list_head **first = (struct cds_list_head **)ring, **added = (struct cds_list_head **)other;
	if (!*first) {
		*first = *added;
	} else if (*added) {
		struct cds_list_head *last = (*added)->prev;
		(*first)->prev->next = *added;
		(*added)->prev = (*first)->prev;
		last->next = *first;
		(*first)->prev = last;
	}
	*added = NULL;
}

#endif
