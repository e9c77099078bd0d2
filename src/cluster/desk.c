/* SPDX-License-Identifier: MIT */
/*
 * Objects whose calls one of the callers serves for all, on their behalf.
 *
 * State
 *  object   the node <root>/<kind>-<name>; below it the node "s", the state, a node for each call (slip.c), and at
 *           times "duty"
 *  "duty"   ephemeral: its process goes on looking, and serves what is there, until it removes it
 *  "s"      how far calls have been seen, which of those wait, and the object's bytes; empty: none, and no bytes
 *  desk     an object that is open; all inside the session's monitor, but the batch while it is served
 *           wanted    a look is to follow. busy: one is under way: line and state are read; then, if this process is
 *                     the one that serves, the calls; they are served, outside; and committed
 *           goes_on   its last commit was made, and what came meanwhile is to be served, too. summoned: so is what the
 *                     next look finds, whatever comes of the one that is under way
 *           outrun    its last commit was refused; last_seen, had_seen: what "s" had said of calls before
 *           batch     the calls of the line; its state is what "s" of that version says
 *           parts     other desks, as this one (whole) sees them while it serves: of each the state, and those that
 *                     wait there. looks_on: the process's own desk for the same object
 *           watched   a change of "s" will tell. arming: that is being asked for
 *           duty      UNKNOWN; ASKED, it is being asked for; OTHERS, another process has it, and its end will be told;
 *                     OWN; LEAVING, it is being removed. duty_listed: "duty" was in the line that was read last.
 *                     duty_made: it is part of the commit that is under way
 *           relies    the last look left everything to who has duty. owes: it was to serve what it finds, and will be
 *                     when that duty ends. duty_rests: so many commits take no duty
 *           said      what its own last commit has left in "s", if it has duty: the next look takes it, or drops it.
 *                     by_said: the look that is under way has taken it
 * Invariants
 *  K1 a commit is one transaction: "s", if nobody has set it meanwhile; and for each call that was served its result,
 *     and the end of its node; nothing of it, if one of these nodes is not there. So the commits form one sequence, and
 *     each call is part of it once, or never.
 *  K2 who serves: the process that has "duty"; without that, the one whose call is the first that is unseen. It does
 *     not ask for that office: two that serve at once meet in K1, and one of them looks again.
 *  K3 for each call that is unseen some process that lives looks at the line after it was made, and serves, or relies
 *     on an unseen call in front of it, whose session it watches. Who relied on that is freed by its owner: it is
 *     served, and the owner, after its commit, reads the line again and serves what is there, unless another has duty
 *     (a list from before the commit would not have those who came meanwhile); or it is removed, and the owner looks
 *     after the removal; or its session ends, and who relied on it looks. Where others serve it, and end before they
 *     read the line again, its owner knows nothing of those behind it: so who has a call in line looks once in a
 *     session time, too.
 *  K4 a call that waits at its guard is asked again in each commit, for only commits change the state. So nobody has to
 *     look for its sake. Each of them is told by a watch on its own result.
 *     Two kinds of calls are not: those of a desk with parts, since others commit to the parts; and calls of no name,
 *     which only their own process can run. So a process with such a call that waits (slip: waits) watches those
 *     states, and looks after each change. It knows that the call waits: it has committed that itself, or has got a
 *     mark in the commit. Of a desk with parts the process of the first that waits serves; the others watch its
 *     session. A watch is set by what reads the state: what changes afterwards is told.
 *  K5 where the state is read, the line is read before it: what the state says of calls is true of a line that is not
 *     newer. A call that was made and is not in the list has its result. So has one that is in the list, not after
 *     "seen" and not among those who wait: it went between the two.
 *     In the look after its own commit, who has duty reads the line alone, and goes by what that commit has left in "s"
 *     (unless a call waits that only its own process asks, K4: the watch is set by reading). If another has committed
 *     since, that is not true any more. So such a look either commits, and then it was (K1), or is followed by one that
 *     reads "s".
 *  K6 a commit of a desk with parts sets or checks the state of each, and asks those that wait there before it: to who
 *     waits at a part it is a commit as any other. Of optimistic commits one at least succeeds, so that no order of
 *     desks can deadlock and nothing is held by a process that dies.
 *  K7 a call of no name that is unseen stops all processes but its own: who comes to it marks it, and does no more. It
 *     is the first that is unseen then, so its process serves (K2), and goes on with the others.
 *  K8 who commits results of MANY_CALLS others makes "duty" in the same step, if it is not there. Who finds it there
 *     watches it, and from then on does not look when it makes a call. Who has it removes it only when a look has found
 *     nothing to serve, or the turn of another process's own call (K7); whatever was made before that look has been
 *     served then. Of what is made later the watch tells, whenever that is: who does not look for its call has that
 *     watch, and the call is among its own before its making is sent. So it looks after it is told, and that look is
 *     sent after the making. Who had left to "duty" what it was to look at does the same. A broken connection is taken
 *     for such a word.
 *     A call that waits, and that only its own process asks (K4), is not left to who has "duty": its process serves
 *     besides. Who meets the turn of another process's own call takes no duty for MANY_COMMITS commits: each end of one
 *     has all look who wait.
 * Ordering: the session's monitor; commits by the version of "s".
 * Progress: first come first served, but for those that wait at guards. A process serves others as long as they come.
 *  What has parts is tried again while others commit to these between its look and its commit: some call goes on, but
 *  not always that one.
 * Lifetime: the memory is the session's, since the client may name it until then.
 * Sources: delegated execution, combined: C. Martins (2009); flat combining: D. Hendler et al. (2010).
 */
#include "desk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer.h"
#include "result.h"

#define MOST_AT_ONCE 256
#define MOST_BYTES (192 * 1024) /* in a transaction: far below what a server takes */
#define DUTY "duty"
#define MANY_CALLS 2            /* of others, served at once: it is worth while to take duty */
#define MANY_COMMITS 16         /* so many take none, after the turn of another process's own call */
#define HEAD 10                 /* bytes of "s": a letter, flags, seen, how many wait */

static void want_look(struct vez__desk *d)
{
	d->wanted = true;
	if (!d->busy && !d->c->over)
		vez__job_queue(d->c, &d->job);
}

/* K8: who has duty looks, or nobody has it. */
void vez__desk_making(struct vez__slip *s)
{
	struct vez__desk *d = s->owner;
	if (d->duty == VEZ__DUTY_OTHERS)
		vez__slip_listen(s);
	else
		want_look(d);
}

/* At the states that it waits for, or its turn. */
void vez__desk_marked(struct vez__slip *s)
{
	struct vez__desk *d = s->owner;
	s->waits |= d->part_count > 0;
	want_look(d);
}

void vez__desk_left(struct vez__slip *s)
{
	struct vez__desk *d = s->owner;
	d->summoned = true;
	want_look(d);
}

static struct vez__desk *desk_of(struct vez__thing *t)
{
	return caa_container_of(t, struct vez__desk, thing);
}

/* Another session has ended, or a session time has passed. */
static void look_again(struct vez__thing *t)
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

/* Whether a call of this process's waits that others do not ask whenever its guard may have become true. */
static bool has_waiting(const struct vez__desk *d)
{
	const struct vez__slip *s;
	cds_list_for_each_entry(s, &d->slips, place)
		if (s->waits && s->want == VEZ__SLIP_WAIT)
			return true;
	return false;
}

static void listen_all(struct vez__desk *d)
{
	struct vez__slip *s, *next;
	cds_list_for_each_entry_safe(s, next, &d->slips, place)
		if (s->node == VEZ__SLIP_THERE)
			vez__slip_listen(s);
}

static struct vez__desk *whole_of(struct vez__desk *d)
{
	return d->whole ? d->whole : d;
}

static void clear_batch(struct vez__desk *d)
{
	for (size_t i = 0; i < d->part_count; i++)
		clear_batch(&d->parts[i]);
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

/* ---- duty ---- */

static void duty_left(void *arg, const struct vez__answer *a)
{
	struct vez__desk *d = arg;
	d->duty = VEZ__DUTY_UNKNOWN;
	d->wanted |= vez__unanswered(a->rc);
	finish(d);
}

static void leave_duty(struct vez__desk *d)
{
	d->goes_on = false;
	d->duty = VEZ__DUTY_LEAVING;
	listen_all(d);
	vez__call_delete(d->c, duty_left, d, d->duty_path);
}

/* K8: whether to take it on in this commit. */
static bool takes_duty(struct vez__desk *d)
{
	const struct vez__batch *b = &d->batch;
	size_t others = 0;
	if (d->duty_rests > 0)
		d->duty_rests--;
	if (b->turn)
		d->duty_rests = MANY_COMMITS;
	if (d->part_count > 0 || d->duty_rests > 0 || d->duty_listed || d->duty != VEZ__DUTY_UNKNOWN)
		return false;
	for (size_t i = 0; i < b->considered; i++)
		others += b->calls[i].answered && b->calls[i].entry.session != d->c->id;
	return others >= MANY_CALLS;
}

/* ---- what "s" says ---- */

static bool read_state(struct vez__desk *d, const struct vez__answer *a)
{
	const unsigned char *v = (const unsigned char *)a->value;
	size_t length = a->length > 0 ? (size_t)a->length : 0;
	d->version = a->stat->version;
	d->any_seen = length > 0;
	d->seen = -1; /* before the first place */
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

/* The last that is seen when this commit is made. */
static int32_t seen_after(const struct vez__desk *d)
{
	const struct vez__batch *b = &d->batch;
	const struct vez__served *last = b->considered > 0 ? &b->calls[b->considered - 1] : NULL;
	return last && !last->blocked ? last->entry.number : d->seen;
}

static void *new_state(const struct vez__desk *d, int *length)
{
	const struct vez__batch *b = &d->batch;
	size_t waiting = 0, at = HEAD;
	for (size_t i = 0; i < b->considered; i++)
		waiting += b->calls[i].value && !b->calls[i].answered;
	unsigned char *v = malloc(HEAD + 4 * waiting + b->state_size);
	if (!v)
		abort();
	v[0] = '1';
	v[1] = b->more;
	vez__put_number(v + 2, (uint32_t)seen_after(d));
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
		if (call->answered && vez__note_read(&n, call->result, call->result_length) == VEZ__NOTE_RESULT) {
			vez__slip_answered(s, n.rc, n.bytes, n.size);
		} else if (!call->answered) {
			s->waits |= d->part_count > 0 || call->own.body;
			vez__slip_listen(s);
		}
	}
	for (size_t i = 0; i < d->part_count; i++)
		tell_own(&d->parts[i]);
}

/* What is in hand does not listen meanwhile; if its commit was not made, or nobody knows, it does. */
static void hand_own(struct vez__desk *d, bool in_hand)
{
	for (size_t i = 0; i < d->batch.considered; i++) {
		struct vez__slip *s = own_slip(&d->batch.calls[i]);
		if (!s)
			continue;
		s->in_hand = in_hand && d->batch.calls[i].answered;
		s->listens |= d->batch.calls[i].answered;
		if (!in_hand)
			vez__slip_again(s);
	}
	for (size_t i = 0; i < d->part_count; i++)
		hand_own(&d->parts[i], in_hand);
}

/* Those of parts that would have made the transaction too long are asked in another one. */
static void look_at_parts(struct vez__desk *d)
{
	for (size_t i = 0; i < d->part_count; i++)
		if (d->parts[i].batch.more)
			want_look(d->parts[i].looks_on);
}

static void committed(void *arg, const struct vez__answer *a)
{
	struct vez__desk *d = arg;
	hand_own(d, false);
	if (a->rc == ZOK) {
		tell_own(d);
		look_at_parts(d);
	}
	if (a->rc == ZOK || vez__unanswered(a->rc))
		d->goes_on = true;
	if (a->rc == ZOK && d->duty_made)
		d->duty = VEZ__DUTY_OWN;
	/* The servers' versions begin anew some day: then "s" is read. */
	if (a->rc == ZOK && d->duty == VEZ__DUTY_OWN && d->version >= 0 && d->version < INT32_MAX) {
		d->said = new_state(d, &d->said_length);
		d->version++;
	}
	d->outrun = a->rc == ZBADVERSION;
	d->had_seen = d->any_seen;
	d->last_seen = d->seen;
	d->wanted = true;
	finish(d);
}

/* Whether there is anything to commit. */
static bool has_news(const struct vez__desk *d)
{
	const struct vez__batch *b = &d->batch;
	if (b->changed || b->opens || b->more != d->more || b->vanished > 0 || (b->turn && b->turn->version == 0))
		return true;
	for (size_t i = 0; i < b->considered; i++)
		if (b->calls[i].answered || !b->calls[i].blocked)
			return true;
	return false;
}

/* Its node goes, unless more is said. */
static void edit_node(const struct vez__served *call, struct vez__edit *e)
{
	snprintf(e->path, sizeof e->path, "%s/%s", call->desk->path, call->name);
	e->version = -1;
}

/* K4, K7: its process is to know. */
static bool is_marked(const struct vez__desk *d, const struct vez__served *call)
{
	if (call == d->batch.turn)
		return call->version == 0;
	return d->part_count > 0 && call->value && !call->answered && !call->blocked;
}

static int edit_result(const struct vez__served *call, struct vez__edit *edits)
{
	edit_node(call, &edits[0]);
	vez__result_edit(call->desk->c, &call->entry, call->result, call->result_length, &edits[1]);
	return 2;
}

/* It is there still. Where it is its turn, it is set to what it is: its version tells others that it has its mark. */
static int edit_mark(const struct vez__served *call, struct vez__edit *edits)
{
	edit_node(call, &edits[0]);
	if (call == call->desk->batch.turn) {
		edits[0].size = call->value_length;
		edits[0].data = vez__copy(call->value, (size_t)call->value_length);
	} else {
		edits[0].only_check = true;
	}
	vez__result_edit(call->desk->c, &call->entry, VEZ__MARK, 1, &edits[1]);
	return 2;
}

static int edit_calls(const struct vez__desk *d, struct vez__edit *edits)
{
	const struct vez__batch *b = &d->batch;
	int count = 0;
	for (size_t i = 0; i < b->considered; i++) {
		const struct vez__served *call = &b->calls[i];
		if (call->value && call->answered)
			count += edit_result(call, &edits[count]);
		else if (is_marked(d, call))
			count += edit_mark(call, &edits[count]);
	}
	if (b->turn && is_marked(d, b->turn))
		count += edit_mark(b->turn, &edits[count]);
	return count;
}

static void edit_state(const struct vez__desk *d, struct vez__edit *e)
{
	const struct vez__batch *b = &d->batch;
	strcpy(e->path, d->state_path);
	e->version = d->version;
	if (d->whole && !b->changed)
		e->only_check = true;
	else
		e->data = new_state(d, &e->size);
}

/* Has nothing to serve, by what it had said itself. */
static void look_better(struct vez__desk *d)
{
	d->wanted = true;
	finish(d);
}

/* Those that were not considered are another process's to go on with: the next look relies on it. */
static void nothing_to_commit(struct vez__desk *d)
{
	if (d->by_said) {
		look_better(d);
		return;
	}
	d->goes_on = false;
	d->wanted |= d->batch.considered < d->batch.count;
	tell_own(d);
	if (d->duty == VEZ__DUTY_OWN)
		leave_duty(d);
	else
		finish(d);
}

/* Inside. */
static void commit(struct vez__desk *d)
{
	struct vez__batch *b = &d->batch;
	if (!has_news(d)) {
		nothing_to_commit(d);
		return;
	}
	d->duty_made = takes_duty(d);
	size_t most = 2 * b->considered + 5;
	for (size_t i = 0; i < d->part_count; i++)
		most += 2 * d->parts[i].batch.considered + 1;
	struct vez__edit *edits = calloc(most, sizeof *edits);
	int count = 1;
	if (!edits)
		abort();
	edit_state(d, &edits[0]);
	count += edit_calls(d, &edits[count]);
	for (size_t i = 0; i < d->part_count; i++) {
		edit_state(&d->parts[i], &edits[count++]);
		count += edit_calls(&d->parts[i], &edits[count]);
	}
	if (b->opens) {
		snprintf(edits[count].path, sizeof edits[count].path, "%s/closed", d->path);
		edits[count++].version = -1;
	}
	if (d->duty_made) {
		strcpy(edits[count].path, d->duty_path);
		edits[count].flags = ZOO_EPHEMERAL;
		edits[count++].creates = true;
	}
	hand_own(d, true);
	vez__call_edit(d->c, committed, d, edits, count);
}

/* Outside. */
static void serve(struct vez__work *work)
{
	struct vez__desk *d = caa_container_of(work, struct vez__desk, work);
	d->batch.considered = d->batch.count;
	for (size_t i = 0; i < d->part_count; i++)
		d->parts[i].batch.considered = d->parts[i].batch.count;
	d->rules->serve(d, &d->batch);
	vez__session_enter(d->c);
	if (d->c->over)
		finish(d);
	else
		commit(d);
	vez__session_leave(d->c);
}

/* ---- the calls are read ---- */

static void read_one(struct vez__desk *part)
{
	struct vez__desk *d = whole_of(part);
	if (--d->flying > 0)
		return;
	if (d->failed) {
		d->wanted = true;
		finish(d);
	} else {
		vez__work_queue(d->c, &d->work);
	}
}

/* Allocated. */
static void keep_value(struct vez__served *call, char *value, int length)
{
	call->value = value;
	call->value_length = length;
	if (vez__note_read(&call->note, call->value, length) == VEZ__NOTE_CALL)
		return;
	free(call->value);
	call->value = NULL;
}

static void call_read(void *arg, const struct vez__answer *a)
{
	struct vez__served *call = arg;
	if (a->rc == ZOK && a->value && a->length > 0) {
		keep_value(call, vez__copy(a->value, (size_t)a->length), a->length);
		call->version = a->stat->version;
	} else if (vez__unanswered(a->rc)) {
		whole_of(call->desk)->failed = true;
	}
	read_one(call->desk);
}

/* Of this desk, or of that part. */
static void ask_calls(struct vez__desk *d)
{
	char path[VEZ__PATH];
	for (size_t i = 0; i < d->batch.count; i++) {
		struct vez__served *call = &d->batch.calls[i];
		struct vez__slip *own = own_slip(call);
		if (own && own->want == VEZ__SLIP_WAIT) {
			keep_value(call, vez__copy(own->value, (size_t)own->size), own->size);
			call->own = own->own;
		}
		if (call->entry.session == d->c->id)
			continue;
		if (call->entry.called_at) {
			int length;
			char *value = vez__note_called(&call->entry, call->name, &length);
			keep_value(call, value, length);
			continue;
		}
		whole_of(d)->flying++;
		snprintf(path, sizeof path, "%s/%s", d->path, call->name);
		vez__call_get(d->c, call_read, call, path, NULL, NULL);
	}
}

static void read_calls(struct vez__desk *d)
{
	d->flying = 1;
	ask_calls(d);
	for (size_t i = 0; i < d->part_count; i++)
		ask_calls(&d->parts[i]);
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

/* Own calls that have a result, or will have it before this look has ended: it is read (K5). Those of which a commit of
 * which nobody knew has made such that wait, and that others do not ask (K4): that is known now. */
static void hear_own(struct vez__desk *d)
{
	struct vez__slip *s, *next;
	cds_list_for_each_entry(s, &d->slips, place)
		s->listed = false;
	for (size_t i = 0; i < d->batch.count; i++) {
		const struct vez__served *call = &d->batch.calls[i];
		s = own_slip(call);
		if (!s)
			continue;
		bool blocked = is_blocked(d, call->entry.number);
		s->listed = blocked || is_unseen(d, call->entry.number);
		if (blocked && !s->waits && (s->own.body || d->part_count > 0))
			s->waits = d->summoned = d->wanted = true;
	}
	cds_list_for_each_entry_safe(s, next, &d->slips, place)
		if (s->node == VEZ__SLIP_THERE && !s->listed)
			vez__slip_listen(s);
}

/* Leaves of the line those that have no result; of that of a part, those that wait. */
static void keep_candidates(struct vez__desk *d)
{
	struct vez__batch *b = &d->batch;
	size_t kept = 0, waiting = 0;
	for (size_t i = 0; i < b->count; i++) {
		struct vez__served *call = &b->calls[i];
		call->blocked = is_blocked(d, call->entry.number);
		bool unseen = is_unseen(d, call->entry.number);
		if (!call->blocked && (!unseen || d->whole))
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
			return d->goes_on || b->calls[i].entry.session == d->c->id;
	if (d->part_count > 0)
		return b->count > 0 && (d->goes_on || b->calls[0].entry.session == d->c->id);
	return d->goes_on && has_waiting(d);
}

/* Others serve: who has calls here is told by watches; and looks again if one it relies on dies. */
static void rely(struct vez__desk *d)
{
	bool own_behind = false;
	d->goes_on = false;
	for (size_t i = d->batch.count; i-- > 0;) {
		const struct vez__served *call = &d->batch.calls[i];
		struct vez__slip *s = own_slip(call);
		if (s)
			vez__slip_listen(s);
		if ((!call->blocked || d->part_count > 0) && own_behind)
			vez__peer_watch(d->c, call->entry.session);
		own_behind |= s != NULL;
	}
	finish(d);
}

/* What has been read says who serves. */
static void choose(struct vez__desk *d)
{
	d->goes_on |= d->duty == VEZ__DUTY_OWN;
	if (d->duty == VEZ__DUTY_OTHERS && !has_waiting(d)) {
		d->owes |= d->goes_on;
		d->goes_on = false;
		d->relies = true;
		listen_all(d);
		finish(d);
	} else if (serves(d)) {
		keep_first(d);
		read_calls(d);
	} else if (d->by_said) {
		look_better(d);
	} else if (d->duty == VEZ__DUTY_OWN) {
		leave_duty(d);
	} else {
		rely(d);
	}
}

static void duty_ended(zhandle_t *zh, int type, int state, const char *path, void *ctx)
{
	vez_cluster_t *c = (vez_cluster_t *)zoo_get_context(zh);
	struct vez__desk *d = ctx;
	(void)path;
	if (type == ZOO_SESSION_EVENT && state == ZOO_CONNECTED_STATE)
		return;
	vez__session_enter(c);
	if (d->duty == VEZ__DUTY_OTHERS || d->duty == VEZ__DUTY_ASKED) {
		d->duty = VEZ__DUTY_UNKNOWN;
		d->summoned |= d->owes;
		d->owes = false;
		if (d->relies || !cds_list_empty(&d->slips))
			want_look(d);
	}
	vez__session_leave(c);
}

static void duty_asked(void *arg, const struct vez__answer *a)
{
	struct vez__desk *d = arg;
	if (a->rc == ZOK && d->duty == VEZ__DUTY_ASKED && !d->c->over) {
		d->duty = (uint64_t)a->stat->ephemeralOwner == d->c->id ? VEZ__DUTY_OWN : VEZ__DUTY_OTHERS;
		choose(d);
		return;
	}
	d->duty = VEZ__DUTY_UNKNOWN;
	d->wanted = true;
	finish(d);
}

static void ask_for_duty(struct vez__desk *d)
{
	d->duty = VEZ__DUTY_ASKED;
	vez__call_get(d->c, duty_asked, d, d->duty_path, duty_ended, d);
}

/* Who has come first goes on, unless that was somebody who serves elsewhere (K6). */
static void note_who_was_first(struct vez__desk *d)
{
	if (d->outrun && d->any_seen && (!d->had_seen || vez__before(d->last_seen, d->seen)))
		d->goes_on = false;
	d->outrun = false;
}

static void looked(struct vez__desk *part)
{
	struct vez__desk *d = whole_of(part);
	if (--d->flying > 0)
		return;
	if (d->failed || d->c->over) {
		finish(d);
		return;
	}
	note_who_was_first(d);
	hear_own(d);
	keep_candidates(d);
	for (size_t i = 0; i < d->part_count; i++)
		keep_candidates(&d->parts[i]);
	if (d->part_count == 0 && d->duty_listed && d->duty == VEZ__DUTY_UNKNOWN)
		ask_for_duty(d);
	else
		choose(d);
}

/* It is gone, or not ours. */
static void fail_all(struct vez__desk *d, int code)
{
	struct vez__slip *s, *next;
	cds_list_for_each_entry_safe(s, next, &d->slips, place)
		vez__slip_fail(s, code);
}

static void look_failed(struct vez__desk *part, int rc)
{
	struct vez__desk *d = whole_of(part);
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
	d->duty_listed = false;
	for (int32_t i = 0; i < a->names->count; i++)
		d->duty_listed |= strcmp(a->names->data[i], DUTY) == 0;
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
	if (d->arming)
		d->watched = a->rc == ZOK;
	d->arming = false;
	if (a->rc != ZOK) {
		look_failed(d, a->rc);
	} else if (!read_state(d, a)) {
		whole_of(d)->failed = true;
		fail_all(whole_of(d), EIO);
	}
	looked(d);
}

static void on_state(zhandle_t *zh, int type, int state, const char *path, void *ctx)
{
	struct vez__desk *part = ctx, *d = whole_of(part);
	vez_cluster_t *c = vez__watch_enter(zh, type, state, path);
	if (!c)
		return;
	part->watched = false;
	if (has_waiting(d)) {
		d->summoned |= d->part_count == 0;
		want_look(d);
	}
	vez__session_leave(c);
}

static void read_said(struct vez__desk *d)
{
	struct Stat stat = { .version = d->version };
	state_read(d, &(struct vez__answer){ .rc = ZOK, .value = d->said, .length = d->said_length, .stat = &stat });
}

/* K5 */
static void ask_line(struct vez__desk *d, bool watch)
{
	d->arming = watch && !d->watched;
	vez__call_list(d->c, line_read, d, d->path, NULL, NULL);
	d->by_said = d->said && !watch;
	if (d->by_said)
		read_said(d);
	else
		vez__call_get(d->c, state_read, d, d->state_path, d->arming ? on_state : NULL, d);
	free(d->said);
	d->said = NULL;
}

static void look(struct vez__job *job)
{
	struct vez__desk *d = (struct vez__desk *)job;
	if (d->busy || !d->wanted)
		return;
	d->wanted = false;
	if (d->summoned) {
		d->goes_on = true;
		d->outrun = false;
	}
	d->summoned = false;
	d->busy = true;
	d->relies = false;
	d->failed = false;
	d->flying = 2 + 2 * (unsigned)d->part_count;
	bool waits = has_waiting(d);
	ask_line(d, waits && d->part_count == 0);
	for (size_t i = 0; i < d->part_count; i++)
		ask_line(&d->parts[i], waits);
}

/* ---- serving ---- */

bool vez__served_is(const struct vez__served *s, const char *operation)
{
	return s->value && s->note.operation_length == strlen(operation) &&
	       memcmp(s->note.operation, operation, s->note.operation_length) == 0;
}

bool vez__served_is_own(const struct vez__served *s)
{
	return s->value && s->note.operation_length == 0;
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

int vez__desk_own_async(struct vez__desk *d, struct vez__own own, const void *argument, size_t size,
			struct vez__into into, vez_request_t *r)
{
	return vez__slip_own_async(d->c, &d->rules->slip, d, &d->slips, d->path, own, argument, size, into, r);
}

void vez__desk_post(struct vez__desk *d, const char *operation, const void *argument, size_t size)
{
	vez__slip_post(d->c, &d->rules->slip, d, &d->slips, d->path, operation, argument, size);
}

/* ---- opening ---- */

int vez__desk_parts(struct vez__desk *d, struct vez__desk *parts, struct vez__desk *const *desks, size_t count)
{
	int rc = 0;
	d->parts = parts;
	d->part_count = count;
	for (size_t i = 0; i < count; i++) {
		struct vez__desk *part = &parts[i];
		CDS_INIT_LIST_HEAD(&part->slips);
		part->c = desks[i]->c;
		part->whole = d;
		part->looks_on = desks[i];
		strcpy(part->path, desks[i]->path);
		strcpy(part->state_path, desks[i]->state_path);
		part->batch.state = malloc(VEZ_CLUSTER_STATE_MAX);
		if (!part->batch.state)
			rc = ENOMEM;
	}
	return rc;
}

int vez__desk_open(struct vez__desk *d, vez_cluster_t *c, const struct vez__desk_rules *rules, const char *kind,
		   const char *name, uint32_t number, const char *third, void (*free_thing)(struct vez__thing *t),
		   vez_deadline_t deadline, vez_cancel_t *cancel)
{
	CDS_INIT_LIST_HEAD(&d->slips);
	d->job.run = look;
	d->work.run = serve;
	d->c = c;
	d->rules = rules;
	d->thing.look = look_again;
	d->thing.free = free_thing;
	d->batch.state = malloc(VEZ_CLUSTER_STATE_MAX);
	int rc = ENOMEM;
	if (d->batch.state)
		rc = vez__object_open(c, kind, name, number, "s", third, d->path, deadline, cancel);
	if (rc == 0) {
		snprintf(d->state_path, sizeof d->state_path, "%s/s", d->path);
		snprintf(d->duty_path, sizeof d->duty_path, "%s/" DUTY, d->path);
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
	free(d->said);
	free(d->batch.state);
	for (size_t i = 0; i < d->part_count; i++)
		free(d->parts[i].batch.state);
	free(d->parts);
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
