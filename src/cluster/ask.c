/* SPDX-License-Identifier: MIT */
/*
 * A thread asks the servers something and waits for the answer.
 *
 * State
 *  asked    one question that is under way; its owners are the call and the thread that waits: the last one frees it
 *           request   the waiting thread's, while it is queued in the room asks; inside
 * Invariants
 *  A1 the thread looks at reply only if answered is set, and the call writes it before; both inside.
 *  A2 a thread that has stopped waiting leaves the question to its call, which is answered in any case (C1 of call.c).
 * Ordering: everything is inside the session's monitor.
 * Progress: a broken connection has the thread wait for the next, and ask again.
 * Lifetime: see A2.
 */
#include "ask.h"

#include <stdlib.h>
#include <string.h>

#include "session.h"

struct asked {
	vez_cluster_t *c;
	vez_request_t *request;
	bool answered;
	bool left;
	struct vez__reply reply;
};

/* ECANCELED, ETIMEDOUT or 0: before anything is asked. */
static int refuse(vez_deadline_t deadline, vez_cancel_t *cancel)
{
	if (cancel && vez_cancel_fired(cancel))
		return ECANCELED;
	return vez_deadline_remaining_ns(deadline) == 0 ? ETIMEDOUT : 0;
}

static void answered(void *arg, const struct vez__answer *a)
{
	struct asked *asked = arg;
	if (asked->left) {
		free(asked);
		return;
	}
	asked->answered = true;
	asked->reply.rc = a->rc;
	if (a->rc == ZOK && a->value && a->length >= 0) {
		size_t length = (size_t)a->length < VEZ__VALUE - 1 ? (size_t)a->length : VEZ__VALUE - 1;
		memcpy(asked->reply.value, a->value, length);
	}
	if (asked->request)
		vez_monitor_settle(&asked->c->monitor, asked->request, 0);
	asked->request = NULL;
}

static void send_question(vez_cluster_t *c, const struct vez__question *q, struct asked *asked)
{
	if (q->kind == VEZ__ASK_EXISTS)
		vez__call_exists(c, answered, asked, q->path);
	else if (q->kind == VEZ__ASK_GET)
		vez__call_get(c, answered, asked, q->path, NULL, NULL);
	else if (q->kind == VEZ__ASK_DELETE)
		vez__call_delete(c, answered, asked, q->path);
	else if (q->second)
		vez__call_create_several(c, answered, asked, q->path, q->value, q->second, q->third);
	else
		vez__call_create(c, answered, asked, q->path, q->value, q->flags);
}

void vez__asks_end(vez_cluster_t *c, int result, bool connection_only)
{
	vez_request_t *next;
	for (vez_request_t *r = vez_room_first(&c->asks); r; r = next) {
		struct asked *asked = vez_request_ptr(r);
		next = vez_room_next(&c->asks, r);
		if (asked && connection_only)
			continue;
		if (asked)
			asked->request = NULL;
		vez_monitor_settle(&c->monitor, r, result);
	}
}

void vez__ask_gave_up(void *question)
{
	if (question)
		((struct asked *)question)->request = NULL;
}

/* Inside, and leaves. */
static int wait_in_asks(vez_cluster_t *c, struct asked *asked, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	vez_request_t r = VEZ_REQUEST_INITIALIZER;
	int rc = refuse(deadline, cancel);
	if (rc != 0) {
		vez__session_leave(c);
		return rc;
	}
	vez_request_set_value(&r, asked, 0);
	if (asked)
		asked->request = &r;
	rc = vez_monitor_wait(&c->monitor, &c->asks, &r, deadline, cancel);
	if (asked) {
		vez__session_enter(c);
		asked->request = NULL;
		vez__session_leave(c);
	}
	return rc;
}

/* Inside, and leaves: until there is a connection. */
static int wait_for_connection(vez_cluster_t *c, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	if (c->refused) {
		vez__session_leave(c);
		return EACCES;
	}
	return wait_in_asks(c, NULL, deadline, cancel);
}

/* Inside, and leaves: asks once. */
static int ask_once(vez_cluster_t *c, const struct vez__question *q, struct vez__reply *reply,
		    vez_deadline_t deadline, vez_cancel_t *cancel)
{
	struct asked *asked = calloc(1, sizeof *asked);
	if (!asked) {
		vez__session_leave(c);
		return ENOMEM;
	}
	asked->c = c;
	send_question(c, q, asked);
	int rc = 0;
	if (asked->answered)
		vez__session_leave(c);
	else
		rc = wait_in_asks(c, asked, deadline, cancel);
	vez__session_enter(c);
	bool done = asked->answered;
	*reply = asked->reply;
	asked->left = true;
	if (done)
		free(asked);
	vez__session_leave(c);
	return done ? 0 : rc;
}

int vez__ask(vez_cluster_t *c, const struct vez__question *q, struct vez__reply *reply, vez_deadline_t deadline,
	     vez_cancel_t *cancel)
{
	for (;;) {
		int rc = refuse(deadline, cancel);
		if (rc == 0)
			rc = vez__session_begin(c);
		if (rc != 0)
			return rc;
		if (!c->connected) {
			rc = wait_for_connection(c, deadline, cancel);
		} else {
			rc = ask_once(c, q, reply, deadline, cancel);
			if (rc == 0 && !vez__unanswered(reply->rc))
				return 0;
		}
		if (rc != 0)
			return rc;
	}
}
