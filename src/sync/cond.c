/* SPDX-License-Identifier: MIT */
/*
 * Conditions on a mutex.
 *
 * State
 *  monitor_, room_  the condition's own monitor; the requests that were not notified yet, by key
 *  mutex_           the mutex of those who wait; means nothing while nobody does. Inside
 *  a request's value is the number of its thread; its ptr_ links those that move together, after they left the room.
 * Invariants
 *  C1 a waiter is in the room before it lets the mutex go: a signal under the mutex misses nobody.
 *  C2 a request leaves the room once: notified (moved to the mutex's queue with its limits off, or settled with 0 if
 *     its thread, or one that fired its token, is coming for it already), or given up.
 *  C3 between the two monitors a request belongs to the notifier alone. Its thread is inside its call, and so holds the
 *     mutex object in being.
 * Ordering
 *  signal -> wait: the monitors in turn; word.c's publication by who grants the mutex.
 * Progress and fairness
 *  Notified in key order, then arrival; the mutex is granted in the order of notification, behind who queued before.
 *  Who was coming for a notified request wakes it, and its thread then locks the mutex as a newcomer.
 * Lifetime
 *  The notifier's last touch of the condition is leaving its monitor. A notified thread does not touch the condition.
 * Sources: cond.h in include/vez.
 */
#include "vez/cond.h"

#include <errno.h>
#include <string.h>

#include "../futex/self.h"
#include "mutex.h"

static const struct vez__ops cond_ops = { .type = VEZ__COND };

/* Inside: queues r. 0, or why it may not wait. */
static int join(vez_cond_t *c, vez_mutex_t *m, vez_request_t *r, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	if (vez_room_first(&c->room_) && c->mutex_ != m)
		return EINVAL;
	int refused = vez__limits_refuse(deadline, cancel);
	if (refused)
		return refused;
	if (!vez__request_prepare(&c->monitor_, &c->room_, r, &cond_ops))
		return ECANCELED;
	c->mutex_ = m;
	vez__request_insert(r);
	return 0;
}

int vez_cond_wait_key(vez_cond_t *c, vez_mutex_t *m, int64_t key, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	vez_request_t r;
	if (!vez__mutex_is_mine(m))
		return EPERM;
	vez__request_mine(&r, key, cancel);
	r.value_ = vez__self();
	vez__inspect_follow(&r);
	vez__monitor_enter(&c->monitor_);
	int rc = join(c, m, &r, deadline, cancel);
	vez__monitor_exit(&c->monitor_);
	if (rc != 0)
		return rc;
	uint64_t holds = vez__mutex_release_all(m);
	rc = vez__request_await(&r, deadline);
	vez__inspect_followed(&r);
	if (r.room_ == &m->room_)
		vez__mutex_restore(m, holds);
	else
		vez__mutex_retake(m, holds);
	return rc;
}

int vez_cond_wait(vez_cond_t *c, vez_mutex_t *m)
{
	return vez_cond_wait_key(c, m, 0, VEZ_FOREVER, NULL);
}

int vez_cond_wait_until(vez_cond_t *c, vez_mutex_t *m, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	return vez_cond_wait_key(c, m, 0, deadline, cancel);
}

static size_t notify(vez_cond_t *c, size_t most)
{
	vez_request_t *moved = NULL, *last = NULL, *r;
	size_t count = 0;
	if (vez_room_length(&c->room_) == 0)
		return 0;
	vez__monitor_enter(&c->monitor_);
	vez_mutex_t *m = c->mutex_;
	for (; count < most && (r = vez_room_first(&c->room_)); count++) {
		if (!vez__request_take_out(r)) {
			vez_monitor_settle(&c->monitor_, r, 0);
			continue;
		}
		r->ptr_ = NULL;
		if (last)
			last->ptr_ = r;
		else
			moved = r;
		last = r;
	}
	vez__monitor_exit(&c->monitor_);
	if (moved)
		vez__mutex_queue(m, moved);
	return count;
}

size_t vez_cond_signal(vez_cond_t *c)
{
	return notify(c, 1);
}

size_t vez_cond_broadcast(vez_cond_t *c)
{
	return notify(c, SIZE_MAX);
}

int vez_cond_init(vez_cond_t *c)
{
	memset(c, 0, sizeof *c);
	return 0;
}

int vez_cond_destroy(vez_cond_t *c)
{
	vez__monitor_enter(&c->monitor_);
	return vez__monitor_retire(&c->monitor_, NULL, false);
}

size_t vez_cond_waiters(const vez_cond_t *c)
{
	return vez_room_length(&c->room_);
}
