/* SPDX-License-Identifier: MIT */
/*
 * Calls to the servers, and the jobs that make them.
 *
 * State
 *  call     one that the client has: in the session's list calls, with the moment when it was sent; inside
 *  session  jobs     what waits to make calls, in order; inside
 *           flying   how many calls are under way, heartbeats included; inside
 * Invariants
 *  C1 a call is answered once: by the client's completion, or by vez__calls_end when the client is gone (the client
 *     may forget completions when it is closed). Then it is freed.
 *  C2 no more than LIMIT calls are under way. The client tells its thread of each by a byte in a pipe; one that does
 *     not fit has it break the connection, and say nothing.
 *  C3 jobs run only while the session is connected and not over. What is unanswered has its job queued again, so that
 *     it is asked again once there is a connection.
 *  C4 calls are sent in the order in which they are made, and answered in that order.
 * Ordering: everything here is inside the session's monitor.
 * Progress: a job makes one call or two and returns.
 * Memory: a call that finds none aborts the program, as the client does when it finds none.
 * Lifetime: a call belongs to the client from the moment it is made until it is answered.
 * Sources: ZooKeeper's C client 3.8 (zookeeper.c, zk_adaptor.c).
 */
#include "call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"
#include "sys.h"

#define LIMIT 1000

/* A transaction: the client needs all of it until it is answered. */
struct vez__marks {
	zoo_op_t ops[VEZ__MOST_MARKED + 1];
	zoo_op_result_t results[VEZ__MOST_MARKED + 1];
	struct Stat stats[VEZ__MOST_MARKED];
	char paths[][VEZ__PATH];
};

typedef void answered_fn(void *, const struct vez__answer *);

static struct vez__call *new_call(vez_cluster_t *c, answered_fn *answered, void *arg)
{
	struct vez__call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->c = c;
	call->answered = answered;
	call->arg = arg;
	call->sent = vez__boottime();
	cds_list_add_tail(&call->place, &c->calls);
	c->flying++;
	return call;
}

static void free_call(struct vez__call *call)
{
	for (int i = 0; i < call->edit_count; i++)
		free(call->edits[i].data);
	free(call->edits);
	free(call->ops);
	free(call->results);
	free(call->stats);
	free(call->marks);
	free(call);
}

/* Inside. */
static void end_call(struct vez__call *call, const struct vez__answer *a)
{
	cds_list_del(&call->place);
	call->c->flying--;
	if (!vez__unanswered(a->rc))
		vez__session_heard(call->c, call->sent);
	if (call->answered)
		call->answered(call->arg, a);
	if (a->rc == ZSESSIONEXPIRED)
		vez__session_expired(call->c);
	free_call(call);
}

/* The client did not take it: so it does not know of a connection. */
static void sent(struct vez__call *call, int rc)
{
	if (rc == ZOK)
		return;
	call->c->connected = false;
	end_call(call, &(struct vez__answer){ .rc = ZINVALIDSTATE });
}

/* ---- on the client's thread ---- */

/* Outside. What is queued was queued by answers, so by this thread. */
static void run_works(vez_cluster_t *c)
{
	for (;;) {
		vez__session_enter(c);
		struct vez__work *work = cds_list_empty(&c->works) ? NULL :
			cds_list_first_entry(&c->works, struct vez__work, place);
		if (work)
			cds_list_del(&work->place);
		vez__session_leave(c);
		if (!work)
			return;
		work->run(work);
	}
}

void vez__work_queue(vez_cluster_t *c, struct vez__work *work)
{
	cds_list_add_tail(&work->place, &c->works);
}

static void answer(const void *data, const struct vez__answer *a)
{
	struct vez__call *call = (struct vez__call *)data;
	vez_cluster_t *c = call->c;
	vez__session_enter(c);
	c->event_thread = pthread_self();
	c->has_event_thread = true;
	end_call(call, a);
	bool works = !cds_list_empty(&c->works);
	vez__session_leave(c);
	if (works)
		run_works(c);
}

static void void_answer(int rc, const void *data)
{
	answer(data, &(struct vez__answer){ .rc = rc });
}

static void stat_answer(int rc, const struct Stat *stat, const void *data)
{
	answer(data, &(struct vez__answer){ .rc = rc, .stat = stat });
}

static void data_answer(int rc, const char *value, int length, const struct Stat *stat, const void *data)
{
	answer(data, &(struct vez__answer){ .rc = rc, .value = value, .length = length, .stat = stat });
}

static void names_answer(int rc, const struct String_vector *names, const void *data)
{
	answer(data, &(struct vez__answer){ .rc = rc, .names = names });
}

static void name_answer(int rc, const char *name, const void *data)
{
	answer(data, &(struct vez__answer){ .rc = rc, .name = name });
}

static void created_answer(int rc, const char *name, const struct Stat *stat, const void *data)
{
	answer(data, &(struct vez__answer){ .rc = rc, .name = name, .stat = stat });
}

/* ---- calls ---- */

void vez__call_create(vez_cluster_t *c, answered_fn *answered, void *arg, const char *path, const char *value,
		      int flags)
{
	vez__call_create_bytes(c, answered, arg, path, value, (int)strlen(value), flags);
}

void vez__call_create_bytes(vez_cluster_t *c, answered_fn *answered, void *arg, const char *path, const void *value,
			    int size, int flags)
{
	const struct ACL_vector *acl = c->authenticated ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
	struct vez__call *call = new_call(c, answered, arg);
	sent(call, zoo_acreate2(c->zh, path, value, size, acl, flags, created_answer, call));
}

void vez__call_delete(vez_cluster_t *c, answered_fn *answered, void *arg, const char *path)
{
	struct vez__call *call = new_call(c, answered, arg);
	sent(call, zoo_adelete(c->zh, path, -1, void_answer, call));
}

void vez__call_set(vez_cluster_t *c, answered_fn *answered, void *arg, const char *path)
{
	struct vez__call *call = new_call(c, answered, arg);
	sent(call, zoo_aset(c->zh, path, "1", 1, -1, stat_answer, call));
}

void vez__call_exists(vez_cluster_t *c, answered_fn *answered, void *arg, const char *path)
{
	struct vez__call *call = new_call(c, answered, arg);
	sent(call, zoo_aexists(c->zh, path, 0, stat_answer, call));
}

void vez__call_get(vez_cluster_t *c, answered_fn *answered, void *arg, const char *path, watcher_fn watch, void *ctx)
{
	struct vez__call *call = new_call(c, answered, arg);
	sent(call, zoo_awget(c->zh, path, watch, ctx, data_answer, call));
}

void vez__call_list(vez_cluster_t *c, answered_fn *answered, void *arg, const char *path, watcher_fn watch, void *ctx)
{
	struct vez__call *call = new_call(c, answered, arg);
	sent(call, zoo_awget_children(c->zh, path, watch, ctx, names_answer, call));
}

void vez__call_sync(vez_cluster_t *c, answered_fn *answered, void *arg, const char *path)
{
	struct vez__call *call = new_call(c, answered, arg);
	sent(call, zoo_async(c->zh, path, name_answer, call));
}

void vez__call_mark(vez_cluster_t *c, answered_fn *answered, void *arg, const char *const *paths, int count,
		    bool and_delete)
{
	struct vez__call *call = new_call(c, answered, arg);
	struct vez__marks *m = calloc(1, sizeof *m + (size_t)count * sizeof m->paths[0]);
	if (!m)
		abort();
	call->marks = m;
	for (int i = 0; i < count; i++) {
		strcpy(m->paths[i], paths[i]);
		zoo_set_op_init(&m->ops[i], m->paths[i], "1", 1, -1, &m->stats[i]);
	}
	if (and_delete)
		zoo_delete_op_init(&m->ops[count], m->paths[count - 1], -1);
	sent(call, zoo_amulti(c->zh, count + and_delete, m->ops, m->results, void_answer, call));
}

void vez__call_edit(vez_cluster_t *c, answered_fn *answered, void *arg, struct vez__edit *edits, int count)
{
	const struct ACL_vector *acl = c->authenticated ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
	struct vez__call *call = new_call(c, answered, arg);
	call->edits = edits;
	call->edit_count = count;
	call->ops = calloc((size_t)count, sizeof *call->ops);
	call->results = calloc((size_t)count, sizeof *call->results);
	call->stats = calloc((size_t)count, sizeof *call->stats);
	if (!call->ops || !call->results || !call->stats)
		abort();
	for (int i = 0; i < count; i++) {
		struct vez__edit *e = &edits[i];
		if (e->creates)
			zoo_create_op_init(&call->ops[i], e->path, "", 0, acl, e->flags, NULL, 0);
		else if (e->only_check)
			zoo_check_op_init(&call->ops[i], e->path, e->version);
		else if (e->data)
			zoo_set_op_init(&call->ops[i], e->path, e->data, e->size, e->version, &call->stats[i]);
		else
			zoo_delete_op_init(&call->ops[i], e->path, e->version);
	}
	sent(call, zoo_amulti(c->zh, count, call->ops, call->results, void_answer, call));
}

void vez__call_create_several(vez_cluster_t *c, answered_fn *answered, void *arg, const char *path, const char *value,
			      const char *second, const char *third)
{
	const struct ACL_vector *acl = c->authenticated ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
	struct vez__call *call = new_call(c, answered, arg);
	struct vez__marks *m = calloc(1, sizeof *m + 4 * sizeof m->paths[0]);
	if (!m)
		abort();
	call->marks = m;
	snprintf(m->paths[0], VEZ__PATH, "%s", path);
	snprintf(m->paths[1], VEZ__PATH, "%s", second);
	snprintf(m->paths[2], VEZ__PATH, "%s", value);
	snprintf(m->paths[3], VEZ__PATH, "%s", third ? third : "");
	zoo_create_op_init(&m->ops[0], m->paths[0], m->paths[2], (int)strlen(value), acl, 0, NULL, 0);
	zoo_create_op_init(&m->ops[1], m->paths[1], "", 0, acl, 0, NULL, 0);
	zoo_create_op_init(&m->ops[2], m->paths[3], "", 0, acl, 0, NULL, 0);
	sent(call, zoo_amulti(c->zh, third ? 3 : 2, m->ops, m->results, void_answer, call));
}

void vez__calls_end(vez_cluster_t *c)
{
	while (!cds_list_empty(&c->calls))
		end_call(cds_list_first_entry(&c->calls, struct vez__call, place),
			 &(struct vez__answer){ .rc = ZCLOSING });
}

/* ---- jobs ---- */

void vez__job_queue(vez_cluster_t *c, struct vez__job *job)
{
	if (job->queued)
		return;
	job->queued = true;
	cds_list_add_tail(&job->place, &c->jobs);
}

void vez__pump(vez_cluster_t *c)
{
	while (c->connected && !c->resting && !c->over && c->flying < LIMIT && !cds_list_empty(&c->jobs)) {
		struct vez__job *job = cds_list_first_entry(&c->jobs, struct vez__job, place);
		cds_list_del(&job->place);
		job->queued = false;
		job->run(job);
	}
}
