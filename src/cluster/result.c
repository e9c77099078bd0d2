/* SPDX-License-Identifier: MIT */
/*
 * Where results come to.
 *
 * State
 *  node     <root>/results/<session>-<number>, ephemeral. Its value: which of the session's calls it is about, in eight
 *           bytes, and what came of that, or a mark (slip.h); empty: nothing yet
 *  result   all inside the session's monitor
 *           slip   the call whose result it is for; NULL: free, or its node is going
 *           node   ABSENT, MAKING, THERE
 *           aim    whether its watch is BLANK, being SET, or SET
 *  session  results, all of them. free_results, those that have a node and no call, free_result_count; bare_results,
 *           those that have neither. results_made: the last number
 * Invariants
 *  U1 a call is made after its result's node is known to be there: so that node is there as long as the call's, for
 *     both go with the session. Its number is part of the call's name (list.h).
 *  U2 who serves removes a call's node in the step that sets its result, and gives a mark only if that node is there.
 *     So nothing sets it for a call whose node is gone, and it can serve the next: what it still says of the last one
 *     has the other's number.
 *  U3 its watch is set by what reads it, and stays for the next call. A result that comes is one event and one read.
 * Ordering: the session's monitor.
 * Progress: a call that uses one again makes neither node nor watch.
 * Lifetime: the memory is the session's, since the client may name it until then. A node goes with the session; or as
 *  soon as it is not used any more, if a long result was in it, or KEPT others wait to be used.
 */
#include "result.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"

#define KEPT 64
#define KEPT_BYTES 1024
#define ID 8

void vez__results_path(const vez_cluster_t *c, char *path)
{
	snprintf(path, VEZ__PATH, "%s/results", c->root);
}

static void path_of(const vez_cluster_t *c, uint64_t session, uint32_t number, char *path)
{
	snprintf(path, VEZ__PATH, "%s/results/%" PRIx64 "-%" PRIu32, c->root, session, number);
}

/* ---- used, and used again ---- */

static void free_it(struct vez__result *r)
{
	vez_cluster_t *c = r->c;
	struct vez__result **list = r->node == VEZ__RESULT_ABSENT ? &c->bare_results : &c->free_results;
	r->next_free = *list;
	*list = r;
	c->free_result_count += list == &c->free_results;
}

static void removed(void *arg, const struct vez__answer *a)
{
	struct vez__result *r = arg;
	if (vez__unanswered(a->rc)) {
		vez__job_queue(r->c, &r->job);
		return;
	}
	r->node = VEZ__RESULT_ABSENT;
	r->number = ++r->c->results_made;
	free_it(r);
}

static void remove_node(struct vez__job *job)
{
	struct vez__result *r = (struct vez__result *)job;
	char path[VEZ__PATH];
	path_of(r->c, r->c->id, r->number, path);
	vez__call_delete(r->c, removed, r, path);
}

static struct vez__result *new_result(vez_cluster_t *c)
{
	struct vez__result *r = calloc(1, sizeof *r);
	if (!r)
		abort();
	r->job.run = remove_node;
	r->c = c;
	r->number = ++c->results_made;
	cds_list_add_tail(&r->of_session, &c->results);
	return r;
}

struct vez__result *vez__result_take(vez_cluster_t *c, struct vez__slip *s)
{
	struct vez__result **list = c->free_results ? &c->free_results : &c->bare_results;
	struct vez__result *r = *list;
	if (r) {
		*list = r->next_free;
		c->free_result_count -= list == &c->free_results;
	} else {
		r = new_result(c);
	}
	r->slip = s;
	return r;
}

void vez__result_give_back(struct vez__result *r, size_t size)
{
	bool kept = size <= KEPT_BYTES && r->c->free_result_count < KEPT;
	r->slip = NULL;
	if (kept || r->node != VEZ__RESULT_THERE || r->c->over)
		free_it(r);
	else
		vez__job_queue(r->c, &r->job);
}

void vez__results_free(vez_cluster_t *c)
{
	struct vez__result *r, *next;
	cds_list_for_each_entry_safe(r, next, &c->results, of_session)
		free(r);
}

/* ---- its node ---- */

static void made(void *arg, const struct vez__answer *a)
{
	struct vez__result *r = arg;
	bool there = a->rc == ZOK || a->rc == ZNODEEXISTS;
	r->node = there ? VEZ__RESULT_THERE : VEZ__RESULT_ABSENT;
	if (r->slip && (there || vez__unanswered(a->rc)))
		vez__slip_again(r->slip);
	else if (r->slip)
		vez__slip_fail(r->slip, vez__errno_of(a->rc));
}

bool vez__result_is_there(struct vez__result *r)
{
	char path[VEZ__PATH];
	if (r->node == VEZ__RESULT_ABSENT) {
		r->node = VEZ__RESULT_MAKING;
		r->aim = VEZ__RESULT_BLANK;
		path_of(r->c, r->c->id, r->number, path);
		vez__call_create(r->c, made, r, path, "", ZOO_EPHEMERAL);
	}
	return r->node == VEZ__RESULT_THERE;
}

/* ---- what it says ---- */

static void on_change(zhandle_t *zh, int type, int state, const char *path, void *ctx)
{
	struct vez__result *r = ctx;
	vez_cluster_t *c = vez__watch_enter(zh, type, state, path);
	if (!c)
		return;
	r->aim = VEZ__RESULT_BLANK;
	if (r->slip && !c->over)
		vez__slip_again(r->slip);
	vez__session_leave(c);
}

static void heard(void *arg, const struct vez__answer *a)
{
	struct vez__result *r = arg;
	struct vez__note n = { .kind = VEZ__NOTE_NONE };
	if (r->aim == VEZ__RESULT_SETTING)
		r->aim = a->rc == ZOK ? VEZ__RESULT_SET : VEZ__RESULT_BLANK;
	if (a->rc == ZNONODE)
		r->node = VEZ__RESULT_ABSENT;
	if (!r->slip)
		return;
	if (a->rc != ZOK && !vez__unanswered(a->rc)) {
		vez__slip_fail(r->slip, a->rc == ZNONODE ? VEZ_ELOST : vez__errno_of(a->rc));
		return;
	}
	if (a->rc != ZOK) {
		vez__slip_again(r->slip);
		return;
	}
	if (a->length > ID && vez__long_at(a->value) == r->slip->id)
		vez__note_read(&n, a->value + ID, a->length - ID);
	vez__slip_told(r->slip, &n);
}

void vez__result_read(struct vez__result *r)
{
	char path[VEZ__PATH];
	if (r->aim == VEZ__RESULT_SETTING)
		return;
	path_of(r->c, r->c->id, r->number, path);
	r->aim = VEZ__RESULT_SETTING;
	vez__call_get(r->c, heard, r, path, on_change, r);
}

void vez__result_listen(struct vez__result *r)
{
	if (r->aim == VEZ__RESULT_BLANK)
		vez__result_read(r);
}

void vez__result_edit(const vez_cluster_t *c, const struct vez__entry *e, const void *note, int size,
		      struct vez__edit *edit)
{
	path_of(c, e->session, e->n, edit->path);
	edit->version = -1;
	edit->size = ID + size;
	edit->data = malloc((size_t)edit->size);
	if (!edit->data)
		abort();
	vez__put_long(edit->data, e->id);
	memcpy((char *)edit->data + ID, note, (size_t)size);
}
