/* SPDX-License-Identifier: MIT */
/*
 * A call's node, as its own process sees it.
 *
 * State
 *  node     an ephemeral one, in line with the others of its object; its name says whose it is, and where its result
 *           comes to (list.c). That, or its value, says what is called. Who serves removes it, and sets the result in
 *           one step
 *  result   a node of the session for that (result.c). Before there is a result it may be set to a mark, by which who
 *           serves tells the call's own process to look
 *  slip     all inside the session's monitor
 *           node     ABSENT, MAKING, UNSURE whether it was made, THERE, GONE; MISSED: it is not there, and whether it
 *                    has a result is being read
 *           want     WAIT for a result; RECALL, its node is to go if there is none; LEAVE, the node is to go
 *           request, into  the caller's, while the request is undecided
 *           flying   its calls to the servers that are under way, but those of its result
 *           waits, in_hand, listed  desk.c. own: what only this process can run; of a call of no name
 *           is_unmade  it is among the session's unmade_slips: those whose node is not known to be there, or gone, in
 *                    the order in which they were called
 * Invariants
 *  T1 there is one node for it, or none: an unanswered making is looked for behind all that the servers have agreed on.
 *     One that is not found then was never made, or has a result.
 *  T2 a result is told by no other than its node, or by the step that sets it; it stays until its own process has read
 *     it, or its session has ended. So whatever breaks, it is told once.
 *  T3 of those who remove a call's node, who serves and its own process, one comes first. So a call whose caller has
 *     gone, and that its own process removes, has no result, and is known not to have run; and one that was not there
 *     any more has one, or had been removed by an unanswered step: what came of it is told to the owner (wasted).
 *  T4 the caller's request is not touched once it is decided; the slip lives until its node is gone.
 *  T5 the nodes of a session's calls are made in the order in which they were called: that of one is asked for when the
 *     one before it among those that are unmade is being made, or there is none. So a call whose result has a node
 *     already does not overtake one for whose result that is being made.
 * Ordering: the session's monitor.
 * Progress: one watch, on its result, and one event.
 * Lifetime: T4. The owner is there as long as the session.
 */
#include "slip.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "result.h"
#include "session.h"

/* ---- what nodes say ---- */

uint32_t vez__number_at(const void *bytes)
{
	const unsigned char *p = bytes;
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

uint64_t vez__long_at(const void *bytes)
{
	return (uint64_t)vez__number_at(bytes) << 32 | vez__number_at((const char *)bytes + 4);
}

void vez__put_number(void *bytes, uint32_t n)
{
	unsigned char *p = bytes;
	for (int i = 0; i < 4; i++)
		p[i] = (unsigned char)(n >> (24 - 8 * i));
}

void vez__put_long(void *bytes, uint64_t n)
{
	vez__put_number(bytes, (uint32_t)(n >> 32));
	vez__put_number((char *)bytes + 4, (uint32_t)n);
}

void *vez__copy(const void *bytes, size_t size)
{
	void *copy = malloc(size + 1);
	if (!copy)
		abort();
	memcpy(copy, bytes, size);
	return copy;
}

enum vez__note_kind vez__note_read(struct vez__note *n, const char *value, int length)
{
	const unsigned char *v = (const unsigned char *)value;
	*n = (struct vez__note){ .kind = VEZ__NOTE_NONE };
	if (v && length >= 2 && v[0] == 'c' && length >= 2 + v[1]) {
		n->kind = VEZ__NOTE_CALL;
		n->operation = value + 2;
		n->operation_length = v[1];
		n->bytes = value + 2 + v[1];
		n->size = (size_t)(length - 2 - v[1]);
	} else if (v && length >= 5 && v[0] == 'r') {
		n->kind = VEZ__NOTE_RESULT;
		n->rc = (int)vez__number_at(v + 1);
		n->bytes = value + 5;
		n->size = (size_t)length - 5;
	} else if (v && length > 0 && v[0] == VEZ__MARK[0]) {
		n->kind = VEZ__NOTE_MARK;
	}
	return n->kind;
}

void *vez__note_called(const struct vez__entry *e, const char *name, int *length)
{
	char *value = malloc(e->called_size + 1);
	if (!value)
		abort();
	value[0] = 'c';
	vez__entry_called(e, name, value + 1);
	*length = (int)e->called_size + 1;
	return value;
}

void *vez__note_result(int rc, const void *bytes, size_t size, int *length)
{
	unsigned char *v = malloc(size + 5);
	if (!v)
		abort();
	v[0] = 'r';
	vez__put_number(v + 1, (uint32_t)rc);
	if (size > 0)
		memcpy(v + 5, bytes, size);
	*length = (int)size + 5;
	return v;
}

/* ---- found, made, freed ---- */

static struct vez__slip **slot_of(vez_cluster_t *c, uint64_t id)
{
	return &c->slip_by_id[id % VEZ__SLOTS];
}

struct vez__slip *vez__slip_find(vez_cluster_t *c, uint64_t id)
{
	struct vez__slip *s = *slot_of(c, id);
	while (s && s->id != id)
		s = s->next;
	return s;
}

static void step(struct vez__job *job);

static struct vez__slip *new_slip(vez_cluster_t *c, const struct vez__slip_rules *rules, void *owner,
				  const char *parent, const char *operation, const void *argument, size_t size)
{
	size_t length = strlen(operation);
	struct vez__slip *s = calloc(1, sizeof *s + 2 + length + size);
	if (!s)
		return NULL;
	s->job.run = step;
	s->c = c;
	s->rules = rules;
	s->owner = owner;
	s->parent = parent;
	s->size = (int)(2 + length + size);
	s->value[0] = 'c';
	s->value[1] = (unsigned char)length;
	memcpy(s->value + 2, operation, length);
	if (size > 0)
		memcpy(s->value + 2 + length, argument, size);
	return s;
}

/* Inside. */
static void add_slip(struct vez__slip *s, struct cds_list_head *owned)
{
	vez_cluster_t *c = s->c;
	s->id = ++c->claims_made;
	if (!s->rules->silent)
		s->result = vez__result_take(c, s);
	s->next = *slot_of(c, s->id);
	*slot_of(c, s->id) = s;
	cds_list_add_tail(&s->place, owned);
	cds_list_add_tail(&s->of_session, &c->all_slips);
	cds_list_add_tail(&s->unmade, &c->unmade_slips);
	s->is_unmade = true;
	c->lines++;
}

/* T5: whether its turn to be made has come. */
static bool is_next(const struct vez__slip *s)
{
	if (!s->is_unmade || s->unmade.prev == &s->c->unmade_slips)
		return true;
	return cds_list_entry(s->unmade.prev, struct vez__slip, unmade)->node == VEZ__SLIP_MAKING;
}

/* The turn of the one behind it may have come. */
static void tell_next(const struct vez__slip *s)
{
	if (s->is_unmade && s->unmade.next != &s->c->unmade_slips && !s->c->over)
		vez__job_queue(s->c, &cds_list_entry(s->unmade.next, struct vez__slip, unmade)->job);
}

/* Its node is known to be there, or gone. */
static void leave_unmade(struct vez__slip *s)
{
	tell_next(s);
	if (s->is_unmade)
		cds_list_del(&s->unmade);
	s->is_unmade = false;
}

/* Inside: nothing is left of it. */
static void end_slip(struct vez__slip *s)
{
	leave_unmade(s);
	vez_cluster_t *c = s->c;
	struct vez__slip **link = slot_of(c, s->id);
	while (*link != s)
		link = &(*link)->next;
	*link = s->next;
	if (s->job.queued)
		cds_list_del(&s->job.place);
	cds_list_del(&s->place);
	cds_list_del(&s->of_session);
	if (s->result)
		vez__result_give_back(s->result, s->result_size);
	c->lines--;
	free(s);
}

/* Something has changed; it may be gone afterwards. */
static void again(struct vez__slip *s)
{
	if (!s->c->over)
		vez__job_queue(s->c, &s->job);
	else if (s->want != VEZ__SLIP_WAIT && s->flying == 0)
		end_slip(s);
}

/* ---- decided ---- */

void vez__slip_fail(struct vez__slip *s, int code)
{
	vez_request_t *r = s->request;
	s->want = VEZ__SLIP_LEAVE;
	s->request = NULL;
	if (r)
		vez_monitor_settle(&s->c->monitor, r, code);
	again(s);
}

/* Whether somebody has it now. */
static bool give(struct vez__slip *s, int rc, const void *bytes, size_t size)
{
	vez_cluster_bytes_t *result = s->into.bytes;
	vez_request_t *r = s->request;
	bool fits = true;
	s->request = NULL;
	if (!r)
		return false;
	if (result && rc == 0) {
		fits = size <= result->room;
		if (size > 0 && fits)
			memcpy(result->data, bytes, size);
		result->size = size;
	}
	if (s->into.number && rc == 0 && size == 4)
		*s->into.number = vez__number_at(bytes);
	if (vez_monitor_settle(&s->c->monitor, r, fits ? rc : ENOBUFS))
		return fits;
	if (result)
		result->size = 0;
	return false;
}

void vez__slip_answered(struct vez__slip *s, int rc, const void *bytes, size_t size)
{
	if (vez__session_lapsed(s->c)) {
		vez__session_expired(s->c);
		return;
	}
	s->node = VEZ__SLIP_GONE;
	s->result_size = size;
	if (s->want == VEZ__SLIP_LEAVE) {
		again(s);
		return;
	}
	s->want = VEZ__SLIP_LEAVE;
	if (!give(s, rc, bytes, size) && s->rules->wasted)
		s->rules->wasted(s, rc, bytes, size);
	again(s);
}

void vez__slip_gave_up(struct vez__slip *s)
{
	s->request = NULL;
	if (s->rules->gave_up && !s->c->over && s->rules->gave_up(s))
		return;
	if (s->want == VEZ__SLIP_WAIT)
		s->want = VEZ__SLIP_RECALL;
	again(s);
}

void vez__slip_recall(struct vez__slip *s)
{
	if (s->want != VEZ__SLIP_WAIT)
		return;
	s->want = VEZ__SLIP_RECALL;
	again(s);
}

void vez__slip_again(struct vez__slip *s)
{
	again(s);
}

void vez__slips_end(vez_cluster_t *c, int code)
{
	struct vez__slip *s, *next;
	cds_list_for_each_entry_safe(s, next, &c->all_slips, of_session)
		if (s->begun)
			vez__slip_fail(s, code);
}

/* ---- its node is made ---- */

static void path_of(const struct vez__slip *s, char *path)
{
	snprintf(path, VEZ__PATH, "%s/%s", s->parent, s->name);
}

static bool note_name(struct vez__slip *s, const char *name)
{
	struct vez__entry e;
	if (!vez__entry_parse(&e, name))
		return false;
	snprintf(s->name, sizeof s->name, "%s", name);
	s->number = e.number;
	s->placed = true;
	s->node = VEZ__SLIP_THERE;
	leave_unmade(s);
	if (s->rules->there)
		s->rules->there(s);
	return true;
}

static void made(void *arg, const struct vez__answer *a)
{
	struct vez__slip *s = arg;
	s->flying--;
	if (a->rc == ZOK && note_name(s, strrchr(a->name, '/') + 1)) {
	} else if (vez__unanswered(a->rc)) {
		s->node = VEZ__SLIP_UNSURE;
	} else {
		s->node = VEZ__SLIP_GONE;
		vez__slip_fail(s, vez__errno_of(a->rc));
		return;
	}
	again(s);
}

/* Whether the name says what is called. That of a call of no name does not, so that its node can be set to say it. */
static bool name_it(struct vez__slip *s)
{
	uint32_t number = s->result ? s->result->number : 0;
	size_t size = (size_t)s->size - 1;
	bool inside = s->value[1] > 0 && size <= VEZ__INSIDE;
	if (inside)
		vez__entry_name_call(s->name, number, s->c->id, s->id, s->value + 1, size);
	else
		vez__entry_name(s->name, number, s->c->id, s->id);
	return inside;
}

static void make(struct vez__slip *s)
{
	char path[VEZ__PATH];
	bool has_result = !s->result || vez__result_is_there(s->result);
	if (!has_result || !is_next(s))
		return;
	bool inside = name_it(s);
	path_of(s, path);
	s->node = VEZ__SLIP_MAKING;
	tell_next(s);
	s->flying++;
	vez__call_create_bytes(s->c, made, s, path, s->value, inside ? 0 : s->size, ZOO_EPHEMERAL | ZOO_SEQUENCE);
	if (s->rules->making)
		s->rules->making(s);
}

static void searched(void *arg, const struct vez__answer *a)
{
	struct vez__slip *s = arg;
	struct vez__entry e;
	s->flying--;
	if (s->node == VEZ__SLIP_GONE) {
		again(s);
		return;
	}
	if (a->rc == ZOK || a->rc == ZNONODE)
		s->node = VEZ__SLIP_MISSED;
	for (int32_t i = 0; a->rc == ZOK && i < a->names->count; i++)
		if (vez__entry_parse(&e, a->names->data[i]) && e.session == s->c->id && e.id == s->id)
			note_name(s, a->names->data[i]);
	if (s->node == VEZ__SLIP_THERE && s->rules->making)
		s->rules->making(s);
	again(s);
}

static void search(struct vez__slip *s)
{
	s->flying++;
	vez__call_sync(s->c, NULL, NULL, s->parent);
	vez__call_list(s->c, searched, s, s->parent, NULL, NULL);
}

/* ---- it listens ---- */

void vez__slip_listen(struct vez__slip *s)
{
	if (s->listens)
		return;
	s->listens = true;
	if (!s->c->over)
		again(s);
}

void vez__slip_told(struct vez__slip *s, const struct vez__note *n)
{
	if (n->kind == VEZ__NOTE_RESULT) {
		vez__slip_answered(s, n->rc, n->bytes, n->size);
		return;
	}
	if (s->node == VEZ__SLIP_MISSED)
		s->node = s->placed ? VEZ__SLIP_GONE : VEZ__SLIP_ABSENT;
	if (n->kind == VEZ__NOTE_MARK && !s->marked && s->want == VEZ__SLIP_WAIT && s->rules->marked) {
		s->marked = true;
		s->rules->marked(s);
	}
	again(s);
}

/* ---- it leaves ---- */

static void removed(void *arg, const struct vez__answer *a)
{
	struct vez__slip *s = arg;
	s->flying--;
	if (a->rc == ZNONODE && s->node == VEZ__SLIP_THERE)
		s->node = VEZ__SLIP_MISSED;
	else if (!vez__unanswered(a->rc))
		s->node = VEZ__SLIP_GONE;
	again(s);
}

static void remove_node(struct vez__slip *s)
{
	char path[VEZ__PATH];
	path_of(s, path);
	s->flying++;
	vez__call_delete(s->c, removed, s, path);
}

/* ---- what is next ---- */

/* Its node is gone, or never was. */
static void step_gone(struct vez__slip *s)
{
	leave_unmade(s);
	if (s->want == VEZ__SLIP_RECALL) {
		s->want = VEZ__SLIP_LEAVE;
		if (s->rules->left)
			s->rules->left(s);
	}
	if (!s->request)
		end_slip(s);
	else if (s->rules->recalled)
		s->rules->recalled(s);
}

/* Of one whose end is decided, or that is silent, nothing is read: what is in its result may be long. */
static void step_missed(struct vez__slip *s)
{
	if (s->result && s->want != VEZ__SLIP_LEAVE) {
		vez__result_read(s->result);
		return;
	}
	s->node = s->placed || s->want == VEZ__SLIP_LEAVE ? VEZ__SLIP_GONE : VEZ__SLIP_ABSENT;
	s->result_size = VEZ_CLUSTER_BYTES_MAX;
	again(s);
}

static void step(struct vez__job *job)
{
	struct vez__slip *s = (struct vez__slip *)job;
	if (s->flying > 0 || !s->begun)
		return;
	switch (s->node) {
	case VEZ__SLIP_ABSENT:
		if (s->want == VEZ__SLIP_WAIT)
			make(s);
		else
			step_gone(s);
		break;
	case VEZ__SLIP_MAKING:
		break;
	case VEZ__SLIP_UNSURE:
		search(s);
		break;
	case VEZ__SLIP_THERE:
		if (s->want != VEZ__SLIP_WAIT)
			remove_node(s);
		else if (s->listens && !s->in_hand)
			vez__result_listen(s->result);
		break;
	case VEZ__SLIP_MISSED:
		step_missed(s);
		break;
	case VEZ__SLIP_GONE:
		step_gone(s);
		break;
	}
}

/* ---- calling ---- */

/* Its request has been queued, or refused with this code. Nobody but it could end the slip until here. */
static void begin(struct vez__slip *s, int rc)
{
	s->begun = true;
	if (rc != EINPROGRESS) {
		s->request = NULL;
		s->want = VEZ__SLIP_LEAVE;
	}
	if (s->c->over)
		vez__slip_fail(s, s->c->over);
	else
		again(s);
}

static int call_async(vez_cluster_t *c, const struct vez__slip_rules *rules, void *owner, struct cds_list_head *owned,
		      const char *parent, const char *operation, struct vez__own own, const void *argument,
		      size_t size, struct vez__into into, vez_request_t *r)
{
	if (size > VEZ_CLUSTER_BYTES_MAX)
		return EMSGSIZE;
	if (c->process != vez__process())
		return EPERM;
	struct vez__slip *s = new_slip(c, rules, owner, parent, operation, argument, size);
	if (!s)
		return ENOMEM;
	int rc = vez__session_begin(c);
	if (rc != 0) {
		free(s);
		return rc;
	}
	if (into.bytes)
		into.bytes->size = 0;
	s->into = into;
	s->own = own;
	s->request = r;
	add_slip(s, owned);
	uint64_t id = s->id;
	vez_request_set_key(r, 0);
	vez_request_set_value(r, s, 0);
	rc = vez_monitor_wait_async(&c->monitor, &c->slips, r);
	vez__session_enter(c);
	s = vez__slip_find(c, id);
	if (s)
		begin(s, rc);
	vez__session_leave(c);
	return rc;
}

int vez__slip_call_async(vez_cluster_t *c, const struct vez__slip_rules *rules, void *owner,
			 struct cds_list_head *owned, const char *parent, const char *operation,
			 const void *argument, size_t size, struct vez__into into, vez_request_t *r)
{
	return call_async(c, rules, owner, owned, parent, operation, (struct vez__own){ .body = NULL }, argument, size,
			  into, r);
}

int vez__slip_own_async(vez_cluster_t *c, const struct vez__slip_rules *rules, void *owner, struct cds_list_head *owned,
			const char *parent, struct vez__own own, const void *argument, size_t size,
			struct vez__into into, vez_request_t *r)
{
	return call_async(c, rules, owner, owned, parent, "", own, argument, size, into, r);
}

int vez__slip_call(vez_cluster_t *c, const struct vez__slip_rules *rules, void *owner, struct cds_list_head *owned,
		   const char *parent, const char *operation, const void *argument, size_t size,
		   struct vez__into into, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	vez_request_t r;
	vez_request_init(&r, NULL, NULL);
	vez_request_set_limits(&r, deadline, cancel);
	int rc = vez__slip_call_async(c, rules, owner, owned, parent, operation, argument, size, into, &r);
	if (rc != EINPROGRESS)
		return rc;
	vez_request_wait(&r, VEZ_FOREVER, NULL);
	return vez_request_result(&r);
}

void vez__slip_post(vez_cluster_t *c, const struct vez__slip_rules *rules, void *owner, struct cds_list_head *owned,
		    const char *parent, const char *operation, const void *argument, size_t size)
{
	struct vez__slip *s = new_slip(c, rules, owner, parent, operation, argument, size);
	if (!s)
		abort();
	add_slip(s, owned);
	begin(s, EINPROGRESS);
}
