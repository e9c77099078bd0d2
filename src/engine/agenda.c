/* SPDX-License-Identifier: MIT */
/*
 * The agenda: a radix heap of timers.
 *
 * State
 *  past     the latest moment that was asked for
 *  buckets  a timer lies in bucket 0 if its moment is not after past; else in that of the highest bit in which its
 *           moment differs from past, counted from 1
 * Invariant: so all moments in one bucket come before all in the next. When past moves on, and b is the highest bit
 *  that changes, what lies in buckets below b is due, what lies in b is sorted anew into those below, and the
 *  rest stays.
 * Progress: a timer moves at most 64 times, from bucket to lower bucket; all else is constant.
 * Source: Ahuja, Mehlhorn, Orlin, Tarjan, "Faster Algorithms for the Shortest Path Problem" (1990).
 */
#include "agenda.h"

#include <stddef.h>
#include <urcu/list.h>

static struct cds_list_head *bucket(struct vez__agenda *a, unsigned index)
{
	struct cds_list_head *list = (struct cds_list_head *)a->buckets[index];
	if (!list->next)
		CDS_INIT_LIST_HEAD(list);
	return list;
}

static struct cds_list_head *link_of(struct vez__timer *t)
{
	return (struct cds_list_head *)t->link_;
}

static struct vez__timer *timer_at(struct cds_list_head *link)
{
	return (struct vez__timer *)((char *)link - offsetof(struct vez__timer, link_));
}

static unsigned highest_change(uint64_t a, uint64_t b)
{
	return a == b ? 0 : 64 - (unsigned)__builtin_clzll(a ^ b);
}

void vez__agenda_set(struct vez__agenda *a, struct vez__timer *t)
{
	vez_deadline_t at = vez__timer_at(t);
	bool due = at < 0 || (uint64_t)at <= a->past;
	cds_list_add_tail(link_of(t), bucket(a, due ? 0 : highest_change((uint64_t)at, a->past)));
}

void vez__agenda_unset(struct vez__timer *t)
{
	cds_list_del_init(link_of(t));
}

/* Sorts the timers of this bucket anew. */
static void scatter(struct vez__agenda *a, unsigned index)
{
	struct cds_list_head from;
	struct cds_list_head *link, *next;
	CDS_INIT_LIST_HEAD(&from);
	cds_list_splice(bucket(a, index), &from);
	CDS_INIT_LIST_HEAD(bucket(a, index));
	cds_list_for_each_safe(link, next, &from)
		vez__agenda_set(a, timer_at(link));
}

static void move_on(struct vez__agenda *a, uint64_t now)
{
	unsigned changed = highest_change(now, a->past);
	a->past = now;
	for (unsigned index = 1; index <= changed; index++)
		if (!cds_list_empty(bucket(a, index)))
			scatter(a, index);
}

struct vez__timer *vez__agenda_due(struct vez__agenda *a, int64_t now)
{
	if ((uint64_t)now > a->past)
		move_on(a, (uint64_t)now);
	struct cds_list_head *due = bucket(a, 0);
	if (cds_list_empty(due))
		return NULL;
	struct vez__timer *t = timer_at(due->next);
	vez__agenda_unset(t);
	return t;
}

/* The earliest moment that can lie in this bucket. */
static vez_deadline_t beginning_of(const struct vez__agenda *a, unsigned index)
{
	return index == 0 ? (vez_deadline_t)a->past : (vez_deadline_t)((a->past >> (index - 1) | 1) << (index - 1));
}

/* Of a few timers in the first bucket that has some, the earliest; of many, that bucket's beginning: then they move to
 * lower ones. */
vez_deadline_t vez__agenda_next(struct vez__agenda *a)
{
	vez_deadline_t next = VEZ_FOREVER;
	struct cds_list_head *link;
	unsigned index = 0, looked = 0;
	while (index < VEZ__AGENDA_BUCKETS && cds_list_empty(bucket(a, index)))
		index++;
	if (index == VEZ__AGENDA_BUCKETS)
		return VEZ_FOREVER;
	cds_list_for_each(link, bucket(a, index)) {
		vez_deadline_t at = vez__timer_at(timer_at(link));
		if (looked++ == VEZ__AGENDA_FEW)
			return beginning_of(a, index);
		next = at < next ? at : next;
	}
	return next;
}
