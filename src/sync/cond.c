/* SPDX-License-Identifier: MIT */
/*
 * Conditions on a mutex.
 *
 * State
 *  core_, queue_  the condition's own core; the requests that were not notified yet, by key
 *  mutex_           the mutex of those who wait; means nothing while nobody does. Inside
 *  a request's value is the number of its thread; its with_.ptr_ links those that move together, after they left the queue.
 * Invariants
 *  K1 a waiter is queued before it lets the mutex go: a signal under the mutex misses nobody.
 *  K2 a request leaves the queue once: notified (moved to the mutex's queue with its limits off, or settled with 0 if
 *     its thread, or one that fired its token, is entering because of it already), or given up.
 *  K3 between the two cores a request belongs to the notifier alone. Its thread is inside its call, and so holds the
 *     mutex object in being.
 * Ordering
 *  signal -> wait: the cores in turn; word.c's publication by the thread that grants the mutex.
 * Progress and fairness
 *  Notified in key order, then arrival; the mutex is granted in the order of notification, behind those queued before.
 *  A thread that was entering because of a notified request wakes it, and its thread then locks the mutex as a newcomer.
 * Lifetime
 *  The notifier's last touch of the condition is leaving its core. A notified thread does not touch the condition.
 * Sources: cond.h in include/vez.
 */
#include "vez/cond.h"

#include <string.h>

#include "../engine/filing.h"
#include "../futex/self.h"
#include "mutex.h"

static const struct vez__rules cond_rules = { .type = VEZ__COND, .queue = offsetof(vez_cond_t, queue_) };

/* Inside: queues r. EINPROGRESS, or why it may not wait. */
static int join(struct vez__stay *in, vez_cond_t *c, vez_mutex_t *m, vez_request_t *r, vez_deadline_t deadline)
{
	if (c->queue_ && c->mutex_ != m)
		return EINVAL;
	int rc = vez__limits_refuse(deadline, r->cancel_);
	if (rc == 0)
		rc = vez__queue_inside(in, &cond_rules, r);
	if (rc == EINPROGRESS)
		c->mutex_ = m;
	return rc;
}

int vez_cond_wait_key(vez_cond_t *c, vez_mutex_t *m, int64_t key, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	vez_request_t r;
	struct vez__stay in;
	if (!vez__mutex_is_mine(m))
		return EPERM;
	vez__request_init_local(&r, key, cancel);
	r.value_ = vez__self();
	vez__inspect_follow(&r);
	vez__enter(&in, &c->core_);
	int rc = join(&in, c, m, &r, deadline);
	vez__leave_threads(&in);
	if (rc != EINPROGRESS)
		return rc;
	uint32_t holds = vez__mutex_release_all(m);
	rc = vez__await(&r, deadline);
	vez__inspect_followed(&r);
	if (vez__mutex_was_queued(&r))
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
	struct vez__stay in;
	vez_request_t *moved = NULL, *r;
	void **link = (void **)&moved;
	size_t count = 0;
	if (vez__load(&c->core_.length_, relaxed) == 0)
		return 0;
	vez__enter(&in, &c->core_);
	vez_mutex_t *m = c->mutex_;
	for (; count < most && (r = c->queue_); count++) {
		if (!vez__take_out(r)) {
			vez__settle(&in, r, 0);
			continue;
		}
		*link = r;
		link = &r->with_.ptr_;
		*link = NULL;
	}
	vez__leave_threads(&in);
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
	return vez__destroy(&c->core_, &cond_rules, 0);
}

size_t vez_cond_waiters(const vez_cond_t *c)
{
	return vez__load(&c->core_.length_, relaxed);
}
