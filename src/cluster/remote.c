/* SPDX-License-Identifier: MIT */
/*
 * Remote procedures, on the side of who calls.
 *
 * State
 *  object   the node <root>/service-<name>; below it a node for each call (slip.c), "s", and "server" while somebody
 *           serves (service.c)
 *  remote   all inside the session's monitor
 *           aim  whether the watch on "server" is BLANK, SETTING or SET
 * Invariants
 *  R1 while a call waits, "server" is watched, or being asked for, or will be. When it goes, or is not there, each call
 *     is recalled: it is removed if it has no result.
 *  R2 "s" says up to which call the calls have begun, and is set before they run, in a transaction in which each has
 *     to be there. So of a call that was removed without a result "s", if it is read afterwards, says whether it may
 *     have run.
 * Ordering: the session's monitor.
 * Progress: one event tells of a result; one of the server's end, for all calls of a process.
 * Lifetime: of the session.
 * Sources: A. D. Birrell, B. J. Nelson, Implementing Remote Procedure Calls (1984); rpc.async and rpc.sync: C. Martins
 *  (2009).
 */
#include <stdio.h>
#include <stdlib.h>

#include "object.h"
#include "slip.h"

struct vez_cluster_remote {
	struct vez__job job; /* first: asks for the server */
	struct vez__thing thing;
	vez_cluster_t *c;
	struct cds_list_head slips;
	enum { BLANK, SETTING, SET } aim;
	char path[VEZ__OBJECT_PATH];
	char server_path[VEZ__PATH];
	char state_path[VEZ__PATH];
};

/* ---- the server ---- */

static void ask_if_needed(vez_cluster_remote_t *r)
{
	if (r->aim == BLANK && !cds_list_empty(&r->slips) && !r->c->over)
		vez__job_queue(r->c, &r->job);
}

static void recall_all(vez_cluster_remote_t *r)
{
	struct vez__slip *s, *next;
	cds_list_for_each_entry_safe(s, next, &r->slips, place)
		vez__slip_recall(s);
}

static void on_server(zhandle_t *zh, int type, int state, const char *path, void *ctx)
{
	vez_cluster_remote_t *r = ctx;
	vez_cluster_t *c = vez__watch_enter(zh, type, state, path);
	if (!c)
		return;
	r->aim = BLANK;
	if (!c->over)
		recall_all(r);
	vez__session_leave(c);
}

static void server_asked(void *arg, const struct vez__answer *a)
{
	vez_cluster_remote_t *r = arg;
	if (r->aim == SETTING)
		r->aim = a->rc == ZOK ? SET : BLANK;
	if (a->rc == ZOK)
		return;
	if (vez__unanswered(a->rc))
		ask_if_needed(r);
	else
		recall_all(r);
}

static void ask_for_server(struct vez__job *job)
{
	vez_cluster_remote_t *r = (vez_cluster_remote_t *)job;
	if (r->aim != BLANK || cds_list_empty(&r->slips))
		return;
	r->aim = SETTING;
	vez__call_get(r->c, server_asked, r, r->server_path, on_server, r);
}

/* ---- calls ---- */

static void making(struct vez__slip *s)
{
	ask_if_needed(s->owner);
}

/* R2. */
static void state_read(void *arg, const struct vez__answer *a)
{
	struct vez__slip *s = arg;
	s->flying--;
	if (vez__unanswered(a->rc))
		vez__slip_again(s);
	else if (a->rc != ZOK)
		vez__slip_fail(s, vez__errno_of(a->rc));
	else if (a->length < 4 || vez__before((int32_t)vez__number_at(a->value), s->number))
		vez__slip_fail(s, VEZ_ENOSERVER);
	else
		vez__slip_fail(s, VEZ_EDIED);
}

static void recalled(struct vez__slip *s)
{
	const vez_cluster_remote_t *r = s->owner;
	if (s->node == VEZ__SLIP_ABSENT) {
		vez__slip_fail(s, VEZ_ENOSERVER);
		return;
	}
	s->flying++;
	vez__call_get(s->c, state_read, s, r->state_path, NULL, NULL);
}

static const struct vez__slip_rules rules = {
	.making = making,
	.there = vez__slip_listen,
	.recalled = recalled,
};

int vez_cluster_remote_call(vez_cluster_remote_t *r, const char *function, const void *argument, size_t size,
			    vez_cluster_bytes_t *result, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	int rc = vez__name_check(function);
	return rc ? rc : vez__slip_call(r->c, &rules, r, &r->slips, r->path, function, argument, size,
					(struct vez__into){ result, NULL }, deadline, cancel);
}

int vez_cluster_remote_call_async(vez_cluster_remote_t *r, const char *function, const void *argument, size_t size,
				  vez_cluster_bytes_t *result, vez_request_t *q)
{
	int rc = vez__name_check(function);
	return rc ? rc : vez__slip_call_async(r->c, &rules, r, &r->slips, r->path, function, argument, size,
					      (struct vez__into){ result, NULL }, q);
}

/* ---- opening ---- */

static void free_remote(struct vez__thing *t)
{
	free(caa_container_of(t, vez_cluster_remote_t, thing));
}

int vez_cluster_remote_open(vez_cluster_remote_t **made, vez_cluster_t *c, const char *name, vez_deadline_t deadline,
			    vez_cancel_t *cancel)
{
	vez_cluster_remote_t *r = calloc(1, sizeof *r);
	if (!r)
		return ENOMEM;
	CDS_INIT_LIST_HEAD(&r->slips);
	r->job.run = ask_for_server;
	r->thing.free = free_remote;
	r->c = c;
	int rc = vez__object_open(c, "service", name, 0, "s", NULL, r->path, deadline, cancel);
	if (rc == 0)
		rc = vez__thing_add(c, &r->thing);
	if (rc != 0) {
		free(r);
		return rc;
	}
	snprintf(r->server_path, sizeof r->server_path, "%s/server", r->path);
	snprintf(r->state_path, sizeof r->state_path, "%s/s", r->path);
	vez__session_leave(c);
	*made = r;
	return 0;
}

int vez_cluster_remote_close(vez_cluster_remote_t *r)
{
	vez_cluster_t *c = r->c;
	const struct vez__slip *s;
	bool used = false;
	if (c->process != vez__process())
		return EPERM;
	vez__session_enter(c);
	cds_list_for_each_entry(s, &r->slips, place)
		used |= s->request != NULL;
	if (!used)
		c->lines--;
	vez__session_leave_last(c);
	return used ? EBUSY : 0;
}
