/* SPDX-License-Identifier: MIT */
/*
 * Objects whose calls one of the callers serves for all, on their behalf.
 *
 * State
 *  object   the node <root>/<kind>-<name>; below it the node "s", the state, and a node for each call (slip.c)
 *  "s"      how far calls have been seen, which of those wait, and the object's bytes; empty: none, and no bytes
 *  desk     an object that is open; all inside the session's monitor, but the batch while it is served
 *           wanted    a look is to follow. busy: one is under way: line and state are read; then, if this process is
 *                     the one that serves, the calls; they are served, outside; and committed
 *           on_duty   its last commit was made, and what came meanwhile is to be served, too
 *           batch     the calls of the line; its state is what "s" of that version says
 * Invariants
 *  K1 a commit is one transaction: "s", if nobody has set it meanwhile; and the result of each call that was served, if
 *     it has none and is there. So the commits form one sequence, and each call is part of it once, or never.
 *  K2 who serves: the process whose call is the first that is unseen. It does not ask for that office: two that serve
 *     at once meet in K1, and one of them looks again.
 *  K3 for each call that is unseen some process that lives looks at the line after it was made, and serves, or relies
 *     on an unseen call in front of it, whose session it watches. Who relied on that is freed by its owner: it is
 *     served, and the owner, after its commit, reads the line again and serves what is there (a list from before the
 *     commit would not have those who came meanwhile); or it is removed, and the owner looks after the removal; or its
 *     session ends, and who relied on it looks.
 *  K4 a call that waits at its guard is asked again in each commit, for only commits change the state. So nobody has to
 *     look for its sake. Each of them is told by a watch on its own node.
 *  K5 the line is read before the state: what the state says of calls is true of a line that is not newer. A call that
 *     is in the list, not after "seen" and not among those who wait has its result.
 * Ordering: the session's monitor; commits by the version of "s".
 * Progress: first come first served, but for those that wait at guards. A process serves others as long as they come.
 * Lifetime: the memory is the session's, since the client may name it until then.
 * Sources: delegated execution, combined: C. Martins (2009); flat combining: D. Hendler et al. (2010).
 */
#include "desk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer.h"

#define MOST_AT_ONCE 256
#define MOST_BYTES (192 * 1024) /* in a transaction: far below what a server takes */
#define HEAD 10                 /* bytes of "s": a letter, flags, seen, how many wait */

static void want_look(struct vez__desk *d)
{
	d->wanted = true;
	if (!d->busy && !d->c->over)
		vez__job_queue(d->c, &d->job);
}

void vez__desk_making(struct vez__slip *s)
{
	want_look(s->owner);
}

void vez__desk_left(struct vez__slip *s)
{
	struct vez__desk *d = s->owner;
	d->on_duty = true;
	want_look(d);
}

static struct vez__desk *desk_of(struct vez__thing *t)
{
	return caa_container_of(t, struct vez__desk, thing);
}

static void session_ended(struct vez__thing *t)
{
	struct vez__desk *d = desk_of(t);
	if (!cds_list_empty(&d->slips))
		want_look(d);
}

static struct vez__slip *own_slip(const struct vez__served *call)
{
	vez_cluster_t *c = call->desk->c;
	return call->entry.session == c->id ? vez__slip_find(c, call->entry.id) : NULL;
}

static void clear_batch(struct vez__desk *d)
{
	for (size_t i = 0; i < d->batch.count; i++) {
		free(d->batch.calls[i].value);
		free(d->batch.calls[i].result);
	}
	free(d->batch.calls);
	free(d->blocked);
	d->blocked = NULL;
	d->blocked_count = 0;
	unsigned char *state = d->batch.state;
	d->batch = (struct vez__batch){ .state = state };
}

static void finish(struct vez__desk *d)
{
	clear_batch(d);
	d->busy = false;
	if (d->wanted)
		want_look(d);
}

/* ---- what "s" says ---- */

static bool read_state(struct vez__desk *d, const struct vez__answer *a)
{
	const unsigned char *v = (const unsigned char *)a->value;
	size_t length = a->length > 0 ? (size_t)a->length : 0;
	d->version = a->stat->version;
	d->any_seen = length > 0;
	d->more = false;
	d->batch.state_size = 0;
	if (length == 0)
		return true;
	if (length < HEAD || v[0] != '1')
		return false;
	size_t waiting = vez__number_at(v + 6);
	if (waiting > VEZ__MOST_BLOCKED || length < HEAD + 4 * waiting ||
	    length - HEAD - 4 * waiting > VEZ_CLUSTER_STATE_MAX)
		return false;
	d->more = v[1] & 1;
	d->seen = (int32_t)vez__number_at(v + 2);
	d->blocked = calloc(waiting + 1, sizeof *d->blocked);
	if (!d->blocked)
		abort();
	d->blocked_count = waiting;
	for (size_t i = 0; i < waiting; i++)
		d->blocked[i] = vez__number_at(v + HEAD + 4 * i);
	d->batch.state_size = length - HEAD - 4 * waiting;
	memcpy(d->batch.state, v + HEAD + 4 * waiting, d->batch.state_size);
	return true;
}

static void *new_state(const struct vez__batch *b, int32_t seen, int *length)
{
	size_t waiting = 0, at = HEAD;
	for (size_t i = 0; i < b->considered; i++)
		waiting += b->calls[i].value && !b->calls[i].answered;
	unsigned char *v = malloc(HEAD + 4 * waiting + b->state_size);
	if (!v)
		abort();
	v[0] = '1';
	v[1] = b->more;
	vez__put_number(v + 2, (uint32_t)seen);
	vez__put_number(v + 6, (uint32_t)waiting);
	for (size_t i = 0; i < b->considered; i++) {
		if (!b->calls[i].value || b->calls[i].answered)
			continue;
		vez__put_number(v + at, (uint32_t)b->calls[i].entry.number);
		at += 4;
	}
	memcpy(v + at, b->state, b->state_size);
	*length = (int)(at + b->state_size);
	return v;
}

/* ---- committed ---- */

static void tell_own(struct vez__desk *d)
{
	for (size_t i = 0; i < d->batch.count; i++) {
		const struct vez__served *call = &d->batch.calls[i];
		struct vez__slip *s = own_slip(call);
		struct vez__note n;
		if (!s || i >= d->batch.considered)
			continue;
		if (call->answered && vez__note_read(&n, call->result, call->result_length))
			vez__slip_answered(s, n.rc, n.bytes, n.size);
		else if (!call->answered)
			vez__slip_listen(s);
	}
}

static void committed(void *arg, const struct vez__answer *a)
{
	struct vez__desk *d = arg;
	if (a->rc == ZOK)
		tell_own(d);
	if (a->rc == ZOK || vez__unanswered(a->rc))
		d->on_duty = true;
	else if (a->rc == ZBADVERSION)
		d->on_duty = false;
	d->wanted = true;
	finish(d);
}

/* Whether there is anything to commit. */
static bool has_news(const struct vez__desk *d)
{
	const struct vez__batch *b = &d->batch;
	if (b->changed || b->opens || b->more != d->more || b->vanished > 0)
		return true;
	for (size_t i = 0; i < b->considered; i++)
		if (b->calls[i].answered || !b->calls[i].blocked)
			return true;
	return false;
}

/* Inside. */
static void commit(struct vez__desk *d)
{
	struct vez__batch *b = &d->batch;
	if (!has_news(d)) {
		d->on_duty = false;
		tell_own(d);
		finish(d);
		return;
	}
	struct vez__edit *edits = calloc(b->considered + 2, sizeof *edits);
	int count = 0;
	if (!edits)
		abort();
	int32_t seen = d->seen;
	if (b->considered > 0 && !b->calls[b->considered - 1].blocked)
		seen = b->calls[b->considered - 1].entry.number;
	strcpy(edits[0].path, d->state_path);
	edits[0].version = d->version;
	edits[0].data = new_state(b, seen, &edits[0].size);
	count++;
	for (size_t i = 0; i < b->considered; i++) {
		if (!b->calls[i].value || !b->calls[i].answered)
			continue;
		struct vez__edit *e = &edits[count++];
		snprintf(e->path, sizeof e->path, "%s/%s", d->path, b->calls[i].name);
		e->size = b->calls[i].result_length;
		e->data = malloc((size_t)e->size);
		if (!e->data)
			abort();
		memcpy(e->data, b->calls[i].result, (size_t)e->size);
	}
	if (b->opens) {
		snprintf(edits[count].path, sizeof edits[count].path, "%s/closed", d->path);
		edits[count++].version = -1;
	}
	vez__call_edit(d->c, committed, d, edits, count);
}

/* Outside. */
static void serve(struct vez__work *work)
{
	struct vez__desk *d = caa_container_of(work, struct vez__desk, work);
	d->batch.considered = d->batch.count;
	d->rules->serve(d, &d->batch);
	vez__session_enter(d->c);
	if (d->c->over)
		finish(d);
	else
		commit(d);
	vez__session_leave(d->c);
}

/* ---- the calls are read ---- */

static void read_one(struct vez__desk *d)
{
	if (--d->flying > 0)
		return;
	if (d->failed) {
		d->wanted = true;
		finish(d);
	} else {
		vez__work_queue(d->c, &d->work);
	}
}

static void keep_value(struct vez__served *call, const void *value, int length)
{
	call->value = malloc((size_t)length + 1);
	if (!call->value)
		abort();
	memcpy(call->value, value, (size_t)length);
	if (vez__note_read(&call->note, call->value, length) && !call->note.answered)
		return;
	free(call->value);
	call->value = NULL;
}

static void call_read(void *arg, const struct vez__answer *a)
{
	struct vez__served *call = arg;
	if (a->rc == ZOK && a->value && a->length > 0)
		keep_value(call, a->value, a->length);
	else if (vez__unanswered(a->rc))
		call->desk->failed = true;
	read_one(call->desk);
}

static void read_calls(struct vez__desk *d)
{
	char path[VEZ__PATH];
	d->flying = 1;
	for (size_t i = 0; i < d->batch.count; i++) {
		struct vez__served *call = &d->batch.calls[i];
		struct vez__slip *own = own_slip(call);
		if (own && own->want == VEZ__SLIP_WAIT)
			keep_value(call, own->value, own->size);
		if (call->entry.session == d->c->id)
			continue;
		d->flying++;
		snprintf(path, sizeof path, "%s/%s", d->path, call->name);
		vez__call_get(d->c, call_read, call, path, NULL, NULL);
	}
	read_one(d);
}

/* ---- looking ---- */

static bool is_blocked(const struct vez__desk *d, int32_t number)
{
	for (size_t i = 0; i < d->blocked_count; i++)
		if ((int32_t)d->blocked[i] == number)
			return true;
	return false;
}

static bool is_unseen(const struct vez__desk *d, int32_t number)
{
	return !d->any_seen || vez__before(d->seen, number);
}

/* Own calls that have a result: it is read. */
static void hear_own(struct vez__desk *d)
{
	for (size_t i = 0; i < d->batch.count; i++) {
		const struct vez__served *call = &d->batch.calls[i];
		struct vez__slip *s = own_slip(call);
		if (s && !is_unseen(d, call->entry.number) && !is_blocked(d, call->entry.number))
			vez__slip_listen(s);
	}
}

/* Leaves of the line those that have no result. */
static void keep_candidates(struct vez__desk *d)
{
	struct vez__batch *b = &d->batch;
	size_t kept = 0, waiting = 0;
	for (size_t i = 0; i < b->count; i++) {
		struct vez__served *call = &b->calls[i];
		call->blocked = is_blocked(d, call->entry.number);
		bool unseen = is_unseen(d, call->entry.number);
		if (!call->blocked && !unseen)
			continue;
		waiting += call->blocked;
		b->calls[kept++] = *call;
	}
	b->count = kept;
	b->vanished = d->blocked_count - waiting;
}

/* Of those that are unseen no more than are served at once. */
static void keep_first(struct vez__desk *d)
{
	size_t unseen = 0, i = 0;
	while (i < d->batch.count && unseen < MOST_AT_ONCE)
		unseen += !d->batch.calls[i++].blocked;
	d->batch.count = i;
}

static bool serves(const struct vez__desk *d)
{
	const struct vez__batch *b = &d->batch;
	if (d->more)
		return true;
	for (size_t i = 0; i < b->count; i++)
		if (!b->calls[i].blocked)
			return d->on_duty || b->calls[i].entry.session == d->c->id;
	return false;
}

/* Others serve: who has calls here is told by watches; and looks again if one it relies on dies. */
static void rely(struct vez__desk *d)
{
	bool own_behind = false;
	d->on_duty = false;
	for (size_t i = d->batch.count; i-- > 0;) {
		const struct vez__served *call = &d->batch.calls[i];
		struct vez__slip *s = own_slip(call);
		if (s)
			vez__slip_listen(s);
		if (!call->blocked && own_behind)
			vez__peer_watch(d->c, call->entry.session);
		own_behind |= s != NULL;
	}
	finish(d);
}

static void looked(struct vez__desk *d)
{
	if (--d->flying > 0)
		return;
	if (d->failed || d->c->over) {
		finish(d);
		return;
	}
	hear_own(d);
	keep_candidates(d);
	if (!serves(d)) {
		rely(d);
		return;
	}
	keep_first(d);
	read_calls(d);
}

/* It is gone, or not ours. */
static void fail_all(struct vez__desk *d, int code)
{
	struct vez__slip *s, *next;
	cds_list_for_each_entry_safe(s, next, &d->slips, place)
		vez__slip_fail(s, code);
}

static void look_failed(struct vez__desk *d, int rc)
{
	d->failed = true;
	if (vez__unanswered(rc))
		d->wanted = true;
	else
		fail_all(d, vez__errno_of(rc));
}

static void line_read(void *arg, const struct vez__answer *a)
{
	struct vez__desk *d = arg;
	if (a->rc != ZOK) {
		look_failed(d, a->rc);
		looked(d);
		return;
	}
	size_t count;
	struct vez__entry *e = vez__entries_read(a->names, &count, vez__peer_gone, d->c);
	d->batch.calls = calloc(count + 1, sizeof *d->batch.calls);
	if (!d->batch.calls)
		abort();
	for (size_t i = 0; i < count; i++) {
		struct vez__served *call = &d->batch.calls[i];
		call->desk = d;
		call->entry = e[i];
		snprintf(call->name, sizeof call->name, "%s", e[i].name);
	}
	d->batch.count = count;
	free(e);
	looked(d);
}

static void state_read(void *arg, const struct vez__answer *a)
{
	struct vez__desk *d = arg;
	if (a->rc != ZOK) {
		look_failed(d, a->rc);
	} else if (!read_state(d, a)) {
		d->failed = true;
		fail_all(d, EIO);
	}
	looked(d);
}

static void look(struct vez__job *job)
{
	struct vez__desk *d = (struct vez__desk *)job;
	if (d->busy || !d->wanted)
		return;
	d->wanted = false;
	d->busy = true;
	d->failed = false;
	d->flying = 2;
	vez__call_list(d->c, line_read, d, d->path, NULL, NULL);
	vez__call_get(d->c, state_read, d, d->state_path, NULL, NULL);
}

/* ---- serving ---- */

bool vez__served_is(const struct vez__served *s, const char *operation)
{
	return s->value && s->note.operation_length == strlen(operation) &&
	       memcmp(s->note.operation, operation, s->note.operation_length) == 0;
}

void vez__served_answer(struct vez__batch *b, struct vez__served *s, int rc, const void *bytes, size_t size)
{
	s->answered = true;
	s->rc = rc;
	s->result = vez__note_result(rc, bytes, size, &s->result_length);
	b->weight += size;
}

bool vez__batch_full(const struct vez__batch *b)
{
	return b->weight + b->state_size > MOST_BYTES;
}

/* ---- calling ---- */

int vez__desk_call(struct vez__desk *d, const char *operation, const void *argument, size_t size,
		   struct vez__into into, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	return vez__slip_call(d->c, &d->rules->slip, d, &d->slips, d->path, operation, argument, size, into,
			      deadline, cancel);
}

int vez__desk_call_async(struct vez__desk *d, const char *operation, const void *argument, size_t size,
			 struct vez__into into, vez_request_t *r)
{
	return vez__slip_call_async(d->c, &d->rules->slip, d, &d->slips, d->path, operation, argument, size, into, r);
}

void vez__desk_post(struct vez__desk *d, const char *operation, const void *argument, size_t size)
{
	vez__slip_post(d->c, &d->rules->slip, d, &d->slips, d->path, operation, argument, size);
}

/* ---- opening ---- */

int vez__desk_open(struct vez__desk *d, vez_cluster_t *c, const struct vez__desk_rules *rules, const char *kind,
		   const char *name, uint32_t number, const char *third, void (*free_thing)(struct vez__thing *t),
		   vez_deadline_t deadline, vez_cancel_t *cancel)
{
	CDS_INIT_LIST_HEAD(&d->slips);
	d->job.run = look;
	d->work.run = serve;
	d->c = c;
	d->rules = rules;
	d->thing.look = session_ended;
	d->thing.free = free_thing;
	d->batch.state = malloc(VEZ_CLUSTER_STATE_MAX);
	int rc = ENOMEM;
	if (d->batch.state)
		rc = vez__object_open(c, kind, name, number, "s", third, d->path, deadline, cancel);
	if (rc == 0) {
		snprintf(d->state_path, sizeof d->state_path, "%s/s", d->path);
		rc = vez__thing_add(c, &d->thing);
	}
	if (rc != 0)
		free_thing(&d->thing);
	else
		vez__session_leave(c);
	return rc;
}

void vez__desk_free(struct vez__desk *d)
{
	clear_batch(d);
	free(d->batch.state);
}

static bool is_used(const struct vez__desk *d)
{
	const struct vez__slip *s;
	cds_list_for_each_entry(s, &d->slips, place)
		if (s->request)
			return true;
	return false;
}

bool vez__desk_used(struct vez__desk *d)
{
	vez__session_enter(d->c);
	bool used = is_used(d);
	vez__session_leave(d->c);
	return used;
}

int vez__desk_close(struct vez__desk *d)
{
	vez_cluster_t *c = d->c;
	bool used;
	if (c->process != vez__process())
		return EPERM;
	vez__session_enter(c);
	used = is_used(d);
	if (!used)
		c->lines--;
	vez__session_leave_last(c);
	return used ? EBUSY : 0;
}
