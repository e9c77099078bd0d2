/* SPDX-License-Identifier: MIT */
/*
 * Remote procedures, on the side of who serves.
 *
 * State
 *  object   remote.c. "server" is ephemeral; its value says of which session it is. "s": four bytes, the
 *           place of the last call that has begun; empty: none has
 *  service  all inside the session's monitor, but the calls while they run
 *           phase  REST; LOOK, the line and "s" are being read, then the calls; BEGIN, "s" is being set; UNSURE whether
 *                  it was; RUN, outside; SEND, results that have not been answered are set again
 *           office once it is closed: whether "server" is to go, IN_OFFICE; going; or its going was not answered
 *           wanted a look is to follow. watched: a change of the line will tell
 *           fresh  calls that have begun under another service are to be ended
 *           calls  those that are served together; seen, version: what "s" said
 * Invariants
 *  P1 at most one process serves: "server" is its session's, and goes with it; what an ended session has asked for is
 *     not done.
 *  P2 a call begins once: "s" is set, if nobody has set it meanwhile, to the place of the last of those that begin, and
 *     each has to be there then. An unanswered step is looked at: nobody else sets "s" while "server" is there.
 *  P3 each call that began gets a result, in the step that removes its node, which is asked for until it is answered;
 *     or its service dies: then those who call know (remote.c), and the next service says VEZ_EDIED to those that do
 *     not look.
 * Ordering: the session's monitor.
 * Progress: a change of the line is told by one event, in which any number of calls can have come.
 * Lifetime: of the session.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "object.h"
#include "result.h"
#include "slip.h"

#define MOST_AT_ONCE 16

struct taken {
	struct vez_cluster_service *service;
	struct vez__entry entry;
	struct vez__note note;
	char *value;
	void *result;
	int result_length;
	bool begun_before; /* under another service */
	bool sent;
	char name[VEZ__CALL_NODE];
};

struct vez_cluster_service {
	struct vez__job job; /* first: does what is next */
	struct vez__work work;
	struct vez__thing thing;
	vez_cluster_t *c;
	const vez_cluster_function_t *functions;
	size_t function_count;
	void *arg;
	struct taken *calls;
	size_t count;
	unsigned flying;
	int32_t seen;
	int32_t last;
	int version;
	bool any_seen;
	bool wanted;
	bool watched;
	bool fresh;
	bool failed;
	bool closed;
	enum { IN_OFFICE, LEAVING, MAYBE_LEFT, LEFT } office;
	enum { REST, LOOK, BEGIN, UNSURE, RUN, SEND } phase;
	unsigned char *room; /* for a result */
	char path[VEZ__OBJECT_PATH];
	char server_path[VEZ__PATH];
	char state_path[VEZ__PATH];
};

static void free_service(struct vez__thing *t);

static void again(vez_cluster_service_t *s)
{
	if (!s->c->over)
		vez__job_queue(s->c, &s->job);
}

static void clear(vez_cluster_service_t *s)
{
	for (size_t i = 0; i < s->count; i++) {
		free(s->calls[i].value);
		free(s->calls[i].result);
	}
	free(s->calls);
	s->calls = NULL;
	s->count = 0;
}

static void rest(vez_cluster_service_t *s)
{
	clear(s);
	s->phase = REST;
	again(s);
}

/* ---- results ---- */

static bool all_sent(const vez_cluster_service_t *s)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->calls[i].result && !s->calls[i].sent)
			return false;
	return true;
}

static void result_sent(void *arg, const struct vez__answer *a)
{
	struct taken *t = arg;
	vez_cluster_service_t *s = t->service;
	s->flying--;
	t->sent = !vez__unanswered(a->rc);
	if (s->phase != SEND || s->flying > 0)
		return;
	if (all_sent(s))
		rest(s);
	else
		again(s);
}

/* Inside. */
static void send_result(struct taken *t)
{
	vez_cluster_service_t *s = t->service;
	struct vez__edit *e = calloc(2, sizeof *e);
	if (!e)
		abort();
	snprintf(e[0].path, sizeof e[0].path, "%s/%s", s->path, t->name);
	e[0].version = -1;
	vez__result_edit(s->c, &t->entry, t->result, t->result_length, &e[1]);
	s->flying++;
	vez__call_edit(s->c, result_sent, t, e, 2);
}

static void send_results(vez_cluster_service_t *s)
{
	if (s->flying > 0)
		return;
	s->flying = 1;
	for (size_t i = 0; i < s->count; i++)
		if (s->calls[i].result && !s->calls[i].sent)
			send_result(&s->calls[i]);
	if (--s->flying == 0 && all_sent(s))
		rest(s);
}

/* ---- running ---- */

static int run_one(vez_cluster_service_t *s, const struct taken *t, size_t *size)
{
	for (size_t i = 0; i < s->function_count; i++) {
		const vez_cluster_function_t *f = &s->functions[i];
		if (strlen(f->name) != t->note.operation_length ||
		    memcmp(f->name, t->note.operation, t->note.operation_length) != 0)
			continue;
		vez_cluster_invocation_t it = { t->note.bytes, t->note.size, s->room, 0 };
		int rc = f->run(&it, s->arg);
		*size = rc ? 0 : it.result_size;
		return rc || *size <= VEZ_CLUSTER_BYTES_MAX ? rc : EMSGSIZE;
	}
	return ENOSYS;
}

/* Outside. */
static void run(struct vez__work *work)
{
	vez_cluster_service_t *s = caa_container_of(work, vez_cluster_service_t, work);
	for (size_t i = 0; i < s->count; i++) {
		struct taken *t = &s->calls[i];
		size_t size = 0;
		if (!t->value)
			continue;
		int rc = run_one(s, t, &size);
		t->result = vez__note_result(rc, s->room, rc ? 0 : size, &t->result_length);
		vez__session_enter(s->c);
		if (!s->c->over)
			send_result(t);
		vez__session_leave(s->c);
	}
	vez__session_enter(s->c);
	s->phase = SEND;
	if (s->flying == 0 && all_sent(s))
		rest(s);
	else
		again(s);
	vez__session_leave(s->c);
}

static void begun(vez_cluster_service_t *s)
{
	s->phase = RUN;
	vez__work_queue(s->c, &s->work);
}

static void begin_answered(void *arg, const struct vez__answer *a)
{
	vez_cluster_service_t *s = arg;
	if (a->rc == ZOK) {
		begun(s);
	} else if (vez__unanswered(a->rc)) {
		s->phase = UNSURE;
		again(s);
	} else {
		s->wanted = true;
		rest(s);
	}
}

static void state_asked(void *arg, const struct vez__answer *a)
{
	vez_cluster_service_t *s = arg;
	if (vez__unanswered(a->rc)) {
		s->phase = UNSURE;
		again(s);
	} else if (a->rc == ZOK && a->length >= 4 && (int32_t)vez__number_at(a->value) == s->last) {
		begun(s);
	} else {
		s->wanted = true;
		rest(s);
	}
}

/* Whether they have begun. Behind all that was asked for before. */
static void ask_state(vez_cluster_service_t *s)
{
	s->phase = BEGIN;
	vez__call_sync(s->c, NULL, NULL, s->state_path);
	vez__call_get(s->c, state_asked, s, s->state_path, NULL, NULL);
}

static void begin_calls(vez_cluster_service_t *s)
{
	struct vez__edit *edits = calloc(s->count + 1, sizeof *edits);
	int count = 1;
	if (!edits)
		abort();
	s->last = s->seen;
	for (size_t i = 0; i < s->count; i++) {
		if (!s->calls[i].value)
			continue;
		snprintf(edits[count].path, sizeof edits[count].path, "%s/%s", s->path, s->calls[i].name);
		edits[count].version = -1;
		edits[count++].only_check = true;
		s->last = s->calls[i].entry.number;
	}
	if (count == 1) {
		free(edits);
		s->phase = SEND;
		send_results(s);
		return;
	}
	strcpy(edits[0].path, s->state_path);
	edits[0].version = s->version;
	edits[0].size = 4;
	edits[0].data = malloc(4);
	if (!edits[0].data)
		abort();
	vez__put_number(edits[0].data, (uint32_t)s->last);
	s->phase = BEGIN;
	vez__call_edit(s->c, begin_answered, s, edits, count);
}

/* ---- the calls are read ---- */

static void read_one(vez_cluster_service_t *s)
{
	if (--s->flying > 0)
		return;
	if (!s->failed && !s->closed) {
		begin_calls(s);
		return;
	}
	s->wanted = true;
	rest(s);
}

/* Allocated. */
static void keep_value(struct taken *t, char *value, int length)
{
	if (vez__note_read(&t->note, value, length) == VEZ__NOTE_CALL)
		t->value = value;
	else
		free(value);
}

static void call_read(void *arg, const struct vez__answer *a)
{
	struct taken *t = arg;
	if (vez__unanswered(a->rc)) {
		t->service->failed = true;
	} else if (a->rc == ZOK && a->length > 0) {
		keep_value(t, vez__copy(a->value, (size_t)a->length), a->length);
	}
	read_one(t->service);
}

static void read_calls(vez_cluster_service_t *s)
{
	char path[VEZ__PATH];
	s->flying = 1;
	for (size_t i = 0; i < s->count; i++) {
		struct taken *t = &s->calls[i];
		if (t->begun_before)
			continue;
		if (t->entry.called_at) {
			int length;
			char *value = vez__note_called(&t->entry, t->name, &length);
			keep_value(t, value, length);
			continue;
		}
		s->flying++;
		snprintf(path, sizeof path, "%s/%s", s->path, t->name);
		vez__call_get(s->c, call_read, t, path, NULL, NULL);
	}
	read_one(s);
}

/* ---- looking ---- */

/* Leaves of the line what is to be served now, and what begun under another service. */
static void choose(vez_cluster_service_t *s)
{
	size_t kept = 0, unseen = 0;
	for (size_t i = 0; i < s->count; i++) {
		struct taken *t = &s->calls[i];
		t->begun_before = s->any_seen && !vez__before(s->seen, t->entry.number);
		if (t->begun_before ? !s->fresh : unseen == MOST_AT_ONCE) {
			s->wanted |= !t->begun_before;
			continue;
		}
		unseen += !t->begun_before;
		if (t->begun_before)
			t->result = vez__note_result(VEZ_EDIED, NULL, 0, &t->result_length);
		s->calls[kept++] = *t;
	}
	s->count = kept;
	s->fresh = false;
}

static void looked(vez_cluster_service_t *s)
{
	if (--s->flying > 0)
		return;
	if (s->failed || s->closed || s->c->over) {
		rest(s);
		return;
	}
	choose(s);
	read_calls(s);
}

static void note_failure(vez_cluster_service_t *s, int rc)
{
	s->failed = true;
	s->wanted |= vez__unanswered(rc);
}

static void line_read(void *arg, const struct vez__answer *a)
{
	vez_cluster_service_t *s = arg;
	s->watched = a->rc == ZOK;
	if (a->rc != ZOK) {
		note_failure(s, a->rc);
		looked(s);
		return;
	}
	size_t count;
	struct vez__entry *e = vez__entries_read(a->names, &count, NULL, NULL);
	s->calls = calloc(count + 1, sizeof *s->calls);
	if (!s->calls)
		abort();
	for (size_t i = 0; i < count; i++) {
		s->calls[i].service = s;
		s->calls[i].entry = e[i];
		snprintf(s->calls[i].name, sizeof s->calls[i].name, "%s", e[i].name);
	}
	s->count = count;
	free(e);
	looked(s);
}

static void state_read(void *arg, const struct vez__answer *a)
{
	vez_cluster_service_t *s = arg;
	if (a->rc == ZOK) {
		s->version = a->stat->version;
		s->any_seen = a->length >= 4;
		s->seen = s->any_seen ? (int32_t)vez__number_at(a->value) : 0;
	} else {
		note_failure(s, a->rc);
	}
	looked(s);
}

static void on_line(zhandle_t *zh, int type, int state, const char *path, void *ctx)
{
	vez_cluster_service_t *s = ctx;
	vez_cluster_t *c = vez__watch_enter(zh, type, state, path);
	if (!c)
		return;
	s->watched = false;
	s->wanted = true;
	again(s);
	vez__session_leave(c);
}

static void look(vez_cluster_service_t *s)
{
	s->phase = LOOK;
	s->wanted = false;
	s->failed = false;
	s->flying = 2;
	vez__call_list(s->c, line_read, s, s->path, s->watched ? NULL : on_line, s);
	vez__call_get(s->c, state_read, s, s->state_path, NULL, NULL);
}

/* ---- what is next ---- */

static void left_office(void *arg, const struct vez__answer *a)
{
	vez_cluster_service_t *s = arg;
	s->office = vez__unanswered(a->rc) ? MAYBE_LEFT : LEFT;
	again(s);
}

/* One that is still there is this session's, or that of who came after. */
static void office_asked(void *arg, const struct vez__answer *a)
{
	vez_cluster_service_t *s = arg;
	if (vez__unanswered(a->rc))
		s->office = MAYBE_LEFT;
	else if (a->rc == ZOK && (uint64_t)a->stat->ephemeralOwner == s->c->id)
		s->office = IN_OFFICE;
	else
		s->office = LEFT;
	again(s);
}

static bool is_served_here(const vez_cluster_t *c, const char *path)
{
	const struct vez__thing *t;
	cds_list_for_each_entry(t, &c->things, place) {
		const vez_cluster_service_t *s = caa_container_of(t, vez_cluster_service_t, thing);
		if (t->free == free_service && !s->closed && strcmp(s->path, path) == 0)
			return true;
	}
	return false;
}

static void leave_office(vez_cluster_service_t *s)
{
	if (s->office == MAYBE_LEFT && is_served_here(s->c, s->path)) {
		s->office = LEFT;
	} else if (s->office == MAYBE_LEFT) {
		s->office = LEAVING;
		vez__call_sync(s->c, NULL, NULL, s->server_path);
		vez__call_get(s->c, office_asked, s, s->server_path, NULL, NULL);
	} else if (s->office == IN_OFFICE) {
		s->office = LEAVING;
		vez__call_delete(s->c, left_office, s, s->server_path);
	}
}

static void step(struct vez__job *job)
{
	vez_cluster_service_t *s = (vez_cluster_service_t *)job;
	if (s->closed)
		leave_office(s);
	else if (s->phase == REST && s->wanted)
		look(s);
	else if (s->phase == UNSURE)
		ask_state(s);
	else if (s->phase == SEND)
		send_results(s);
}

/* ---- opening ---- */

static void free_service(struct vez__thing *t)
{
	vez_cluster_service_t *s = caa_container_of(t, vez_cluster_service_t, thing);
	clear(s);
	free(s->room);
	free(s);
}

/* Has "server" be there, and be this session's. */
static int take_office(vez_cluster_service_t *s, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	char value[VEZ__VALUE];
	int rc = vez__session_begin(s->c);
	if (rc != 0)
		return rc;
	snprintf(value, sizeof value, "%" PRIx64, s->c->id);
	bool here = is_served_here(s->c, s->path);
	vez__session_leave(s->c);
	if (here)
		return EBUSY;
	struct vez__question q = { .kind = VEZ__ASK_CREATE, .path = s->server_path, .value = value,
				   .flags = ZOO_EPHEMERAL };
	struct vez__reply reply = { 0, "" };
	rc = vez__ask(s->c, &q, &reply, deadline, cancel);
	if (rc != 0 || reply.rc != ZNODEEXISTS)
		return rc ? rc : vez__errno_of(reply.rc);
	q.kind = VEZ__ASK_GET;
	memset(&reply, 0, sizeof reply);
	rc = vez__ask(s->c, &q, &reply, deadline, cancel);
	if (rc != 0)
		return rc;
	return reply.rc == ZOK && strcmp(reply.value, value) == 0 ? 0 : EBUSY;
}

static int check_functions(const vez_cluster_function_t *functions, size_t count)
{
	int rc = count ? 0 : EINVAL;
	for (size_t i = 0; rc == 0 && i < count; i++)
		rc = functions[i].run ? vez__name_check(functions[i].name) : EINVAL;
	return rc;
}

int vez_cluster_service_open(vez_cluster_service_t **made, vez_cluster_t *c, const char *name,
			     const vez_cluster_function_t *functions, size_t count, void *arg, vez_deadline_t deadline,
			     vez_cancel_t *cancel)
{
	int rc = check_functions(functions, count);
	if (rc != 0)
		return rc;
	vez_cluster_service_t *s = calloc(1, sizeof *s);
	if (!s)
		return ENOMEM;
	s->job.run = step;
	s->work.run = run;
	s->thing.free = free_service;
	s->c = c;
	s->functions = functions;
	s->function_count = count;
	s->arg = arg;
	s->wanted = s->fresh = true;
	s->room = malloc(VEZ_CLUSTER_BYTES_MAX);
	rc = s->room ? vez__object_open(c, "service", name, 0, "s", NULL, s->path, deadline, cancel) : ENOMEM;
	if (rc == 0) {
		snprintf(s->server_path, sizeof s->server_path, "%s/server", s->path);
		snprintf(s->state_path, sizeof s->state_path, "%s/s", s->path);
		rc = take_office(s, deadline, cancel);
	}
	if (rc == 0)
		rc = vez__thing_add(c, &s->thing);
	if (rc != 0) {
		free_service(&s->thing);
		return rc;
	}
	again(s);
	vez__session_leave(c);
	*made = s;
	return 0;
}

int vez_cluster_service_close(vez_cluster_service_t *s)
{
	vez_cluster_t *c = s->c;
	if (c->process != vez__process())
		return EPERM;
	vez__session_enter(c);
	bool used = s->phase >= BEGIN && !c->over;
	if (!used) {
		s->closed = true;
		c->lines--;
		again(s);
	}
	vez__session_leave_last(c);
	return used ? EBUSY : 0;
}
