/* SPDX-License-Identifier: MIT */
/*
 * The event: while it is not set, who waits for it waits.
 *
 * State
 *  object   the node <root>/event-<name>, and below it the node "closed" while the event is not set
 *  event    all inside the session's monitor
 *           room     who waits. A request's pointer is the turn in which it came
 *           turn     counts the questions whether "closed" is there
 *           asking   one is under way. watched: "closed" was there, and its end will be told
 * Invariants
 *  V1 who waits is let go by an answer to a question that was asked after it came, or by an event that came after it:
 *     what is told was so while it waited.
 *  V2 while somebody waits, the event is watched, or asking, or has its job queued. One watch for each process.
 *  V3 a change of "closed" that is told, or its end, means that the event was set meanwhile, also where the connection
 *     had broken: it is made anew only after it was removed.
 * Ordering: the session's monitor.
 * Progress: all who wait are let go by one event for each process.
 * Lifetime: the memory is the session's, since the client may name it until then; closing it marks it.
 * Sources: the manual-reset event of Win32 (1993).
 */
#include "event.h"

#include <stdio.h>
#include <stdlib.h>

#include "ask.h"
#include "call.h"
#include "object.h"
#include "session.h"

struct vez_cluster_event {
	struct vez__job job; /* first: asks */
	struct vez__thing thing;
	vez_cluster_t *c;
	vez_room_t room;
	uintptr_t turn;
	bool asking;
	bool watched;
	char path[VEZ__PATH];
};

/* Those who came in this turn or before. */
static void let_go(vez_cluster_event_t *e, uintptr_t turn, int result)
{
	vez_request_t *next;
	for (vez_request_t *r = vez_room_first(&e->room); r; r = next) {
		next = vez_room_next(&e->room, r);
		if ((uintptr_t)vez_request_ptr(r) <= turn)
			vez_monitor_settle(&e->c->monitor, r, result);
	}
}

static void ask_if_needed(vez_cluster_event_t *e)
{
	if (vez_room_first(&e->room) && !e->watched && !e->asking && !e->c->over)
		vez__job_queue(e->c, &e->job);
}

static void answered(void *arg, const struct vez__answer *a)
{
	vez_cluster_event_t *e = arg;
	e->asking = false;
	e->watched = a->rc == ZOK;
	if (a->rc == ZNONODE)
		let_go(e, e->turn - 1, 0);
	else if (a->rc != ZOK && !vez__unanswered(a->rc))
		let_go(e, e->turn, vez__errno_of(a->rc));
	ask_if_needed(e);
}

static void on_change(zhandle_t *zh, int type, int state, const char *path, void *ctx)
{
	vez_cluster_event_t *e = ctx;
	vez_cluster_t *c = vez__watch_enter(zh, type, state, path);
	if (!c)
		return;
	e->watched = false;
	if ((type == ZOO_DELETED_EVENT || type == ZOO_CHANGED_EVENT) && !c->over)
		let_go(e, e->turn, 0);
	ask_if_needed(e);
	vez__session_leave(c);
}

static void ask(struct vez__job *job)
{
	vez_cluster_event_t *e = (vez_cluster_event_t *)job;
	if (e->watched || e->asking || !vez_room_first(&e->room))
		return;
	e->asking = true;
	e->turn++;
	vez__call_get(e->c, answered, e, e->path, on_change, e);
}

static vez_cluster_event_t *event_of(struct vez__thing *t)
{
	return caa_container_of(t, vez_cluster_event_t, thing);
}

static void end(struct vez__thing *t, int code)
{
	let_go(event_of(t), UINTPTR_MAX, code);
}

static void free_event(struct vez__thing *t)
{
	free(event_of(t));
}

/* ---- waiting ---- */

/* 0: inside, and the request may be queued. */
static int begin(vez_cluster_event_t *e, vez_request_t *r)
{
	int rc = vez__session_begin(e->c);
	if (rc != 0)
		return rc;
	vez_request_set_key(r, 0);
	vez_request_set_value(r, (void *)e->turn, 0);
	if (!e->watched && !e->asking)
		vez__job_queue(e->c, &e->job);
	return 0;
}

/* Asks, if what has been queued has to be asked for. */
static void ask_now(vez_cluster_event_t *e)
{
	vez__session_enter(e->c);
	ask_if_needed(e);
	vez__session_leave(e->c);
}

int vez_cluster_event_wait_async(vez_cluster_event_t *e, vez_request_t *r)
{
	int rc = begin(e, r);
	if (rc != 0)
		return rc;
	rc = vez_monitor_wait_async(&e->c->monitor, &e->room, r);
	if (rc == EINPROGRESS)
		ask_now(e);
	return rc;
}

int vez_cluster_event_wait(vez_cluster_event_t *e, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	vez_request_t r;
	vez_request_init(&r, NULL, NULL);
	vez_request_set_limits(&r, deadline, cancel);
	int rc = vez_cluster_event_wait_async(e, &r);
	if (rc != EINPROGRESS)
		return rc;
	vez_request_wait(&r, VEZ_FOREVER, NULL);
	return vez_request_result(&r);
}

/* ---- setting ---- */

static int ask_to(vez_cluster_event_t *e, enum vez__kind kind, int harmless, vez_deadline_t deadline,
		  vez_cancel_t *cancel)
{
	struct vez__question q = { .kind = kind, .path = e->path, .value = "" };
	struct vez__reply reply;
	int rc = vez__ask(e->c, &q, &reply, deadline, cancel);
	return rc || reply.rc == harmless ? rc : vez__errno_of(reply.rc);
}

int vez_cluster_event_set(vez_cluster_event_t *e, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	return ask_to(e, VEZ__ASK_DELETE, ZNONODE, deadline, cancel);
}

int vez_cluster_event_reset(vez_cluster_event_t *e, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	return ask_to(e, VEZ__ASK_CREATE, ZNODEEXISTS, deadline, cancel);
}

/* ---- opening ---- */

int vez_cluster_event_open(vez_cluster_event_t **made, vez_cluster_t *c, const char *name, vez_deadline_t deadline,
			   vez_cancel_t *cancel)
{
	char path[VEZ__OBJECT_PATH];
	int rc = vez__object_open(c, "event", name, 0, "closed", NULL, path, deadline, cancel);
	return rc ? rc : vez__event_below(made, c, path);
}

int vez__event_below(vez_cluster_event_t **made, vez_cluster_t *c, const char *path)
{
	vez_cluster_event_t *e = calloc(1, sizeof *e);
	if (!e)
		return ENOMEM;
	e->job.run = ask;
	e->thing.end = end;
	e->thing.free = free_event;
	e->c = c;
	e->turn = 1;
	snprintf(e->path, sizeof e->path, "%s/closed", path);
	int rc = vez__thing_add(c, &e->thing);
	if (rc != 0) {
		free(e);
		return rc;
	}
	vez__session_leave(c);
	*made = e;
	return 0;
}

int vez_cluster_event_close(vez_cluster_event_t *e)
{
	vez_cluster_t *c = e->c;
	if (c->process != vez__process())
		return EPERM;
	vez__session_enter(c);
	bool used = vez_room_first(&e->room);
	if (!used)
		c->lines--;
	vez__session_leave_last(c);
	return used ? EBUSY : 0;
}
