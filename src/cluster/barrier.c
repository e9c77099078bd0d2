/* SPDX-License-Identifier: MIT */
/*
 * The cyclic barrier: a desk (desk.c) at which arrivals wait until there are as many as parties.
 *
 * State
 *  desk     its bytes: whether it is broken; and the members that are known to have gone, the last MOST_GONE
 *  members  a node, and below it one for each process that has the barrier open, which goes with it
 *  barrier  all inside the session's monitor
 *           known  the members, as they were listed last. lost: those that have gone from there, as many
 *           watched, listing  that node's children are watched; or being asked for
 * Invariants
 *  B1 a round passes in one commit, in which all its arrivals get their index; or it breaks in one, in which all that
 *     have come get VEZ_EBROKEN. The desk's commits are one sequence: all agree.
 *  B2 an arrival whose caller has gone stays until a call "left", made after it, has been served: that breaks the round
 *     if the arrival still waits then, and does nothing if it has been served.
 *  B3 whoever has the barrier open sees a member go, and says so: at once, if it waits, and with its next arrival
 *     otherwise. Each member goes once: what is told again does nothing, also after a reset.
 * Ordering: of the desk.
 * Progress: the event that the members' node has changed; each process asks once then.
 * Lifetime: of the session.
 * Sources: the CyclicBarrier of D. Lea's java.util.concurrent (2004), all or none; members: the failure detector that a
 *  session is.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "desk.h"

#define MOST_GONE 64
#define MEMBER 16 /* bytes */

struct vez_cluster_barrier {
	struct vez__desk desk; /* first */
	struct vez__job job;   /* asks for the members */
	struct cds_list_head own_member;
	uint64_t member;
	uint32_t parties;
	unsigned char (*known)[MEMBER];
	size_t known_count;
	unsigned char lost[MOST_GONE][MEMBER];
	size_t lost_count;
	bool listing;
	bool watched;
	bool left;
	char members[VEZ__PATH];
};

/* ---- what is served ---- */

struct round {
	bool broken;
	size_t gone_count;
	unsigned char gone[MOST_GONE][MEMBER];
};

static void read_round(struct round *x, const struct vez__batch *b)
{
	*x = (struct round){ .broken = b->state_size > 0 && b->state[0] };
	x->gone_count = b->state_size > 0 ? (b->state_size - 1) / MEMBER : 0;
	if (x->gone_count > MOST_GONE)
		x->gone_count = MOST_GONE;
	if (x->gone_count > 0)
		memcpy(x->gone, b->state + 1, x->gone_count * MEMBER);
}

static void write_round(const struct round *x, struct vez__batch *b)
{
	b->state[0] = x->broken;
	memcpy(b->state + 1, x->gone, x->gone_count * MEMBER);
	b->state_size = 1 + x->gone_count * MEMBER;
}

static bool is_among(unsigned char (*members)[MEMBER], size_t count, const unsigned char *member)
{
	for (size_t i = 0; i < count; i++)
		if (memcmp(members[i], member, MEMBER) == 0)
			return true;
	return false;
}

/* Appends; the oldest is forgotten. */
static void append(unsigned char (*members)[MEMBER], size_t *count, const unsigned char *member)
{
	if (*count == MOST_GONE) {
		memmove(members[0], members[1], (MOST_GONE - 1) * MEMBER);
		(*count)--;
	}
	memcpy(members[(*count)++], member, MEMBER);
}

/* Whether one of the members of which this call tells was not known to have gone. */
static bool tells_news(struct round *x, const struct vez__served *s)
{
	const unsigned char *at = s->note.bytes;
	bool news = false;
	for (size_t i = 0; i + MEMBER <= s->note.size; i += MEMBER) {
		if (is_among(x->gone, x->gone_count, at + i))
			continue;
		append(x->gone, &x->gone_count, at + i);
		news = true;
	}
	return news;
}

static bool waits(const struct vez__served *s)
{
	return s->value && !s->answered && vez__served_is(s, "arrive");
}

static size_t arrived(const struct vez__batch *b, size_t end)
{
	size_t count = 0;
	for (size_t i = 0; i < end; i++)
		count += waits(&b->calls[i]);
	return count;
}

static void end_arrivals(struct vez__batch *b, size_t end, int rc, size_t count)
{
	unsigned char index[4];
	for (size_t i = 0; i < end; i++) {
		if (!waits(&b->calls[i]))
			continue;
		vez__put_number(index, (uint32_t)--count);
		vez__served_answer(b, &b->calls[i], rc, index, rc ? 0 : sizeof index);
	}
}

static void break_round(struct round *x, struct vez__batch *b, size_t end)
{
	x->broken = true;
	end_arrivals(b, end, VEZ_EBROKEN, arrived(b, end));
}

static void serve_arrival(vez_cluster_barrier_t *barrier, struct round *x, struct vez__batch *b, size_t i)
{
	size_t count = arrived(b, i + 1);
	if (tells_news(x, &b->calls[i]) || x->broken)
		break_round(x, b, i + 1);
	else if (count == barrier->parties)
		end_arrivals(b, i + 1, 0, count);
}

/* Whether the arrival of which this call says that its caller has gone still waits. */
static bool left_in_vain(const struct vez__batch *b, size_t end)
{
	const struct vez__served *s = &b->calls[end];
	if (s->note.size != 8)
		return false;
	for (size_t i = 0; i < end; i++)
		if (waits(&b->calls[i]) && b->calls[i].entry.session == s->entry.session &&
		    b->calls[i].entry.id == vez__long_at(s->note.bytes))
			return true;
	return false;
}

static void serve_other(struct round *x, struct vez__batch *b, size_t i)
{
	struct vez__served *s = &b->calls[i];
	int rc = 0;
	if (vez__served_is(s, "gone")) {
		if (tells_news(x, s) && arrived(b, i) > 0)
			break_round(x, b, i);
	} else if (vez__served_is(s, "left")) {
		if (left_in_vain(b, i))
			break_round(x, b, i);
	} else if (vez__served_is(s, "reset")) {
		tells_news(x, s);
		break_round(x, b, i);
		x->broken = false;
	} else {
		rc = ENOSYS;
	}
	vez__served_answer(b, s, rc, NULL, 0);
}

static void serve(struct vez__desk *d, struct vez__batch *b)
{
	struct round x;
	read_round(&x, b);
	for (size_t i = 0; i < b->count; i++) {
		struct vez__served *s = &b->calls[i];
		if (!s->value || s->blocked)
			continue;
		if (vez__served_is(s, "arrive"))
			serve_arrival((vez_cluster_barrier_t *)d, &x, b, i);
		else
			serve_other(&x, b, i);
	}
	write_round(&x, b);
}

/* ---- arrivals whose callers go ---- */

static bool is_arrival(const struct vez__slip *s)
{
	return s->value[1] == 6 && memcmp(s->value + 2, "arrive", 6) == 0;
}

static void say_left(struct vez__slip *s)
{
	unsigned char argument[8];
	vez__put_long(argument, s->id);
	vez__desk_post(s->owner, "left", argument, sizeof argument);
}

/* B2. */
static bool gave_up(struct vez__slip *s)
{
	if (!is_arrival(s))
		return false;
	if (s->node == VEZ__SLIP_THERE && s->want == VEZ__SLIP_WAIT)
		say_left(s);
	return true;
}

static void there(struct vez__slip *s)
{
	if (is_arrival(s) && s->begun && !s->request)
		say_left(s);
}

static const struct vez__desk_rules rules = {
	.slip = { .making = vez__desk_making, .left = vez__desk_left, .gave_up = gave_up, .there = there },
	.serve = serve,
};

/* ---- members ---- */

static bool somebody_waits(const vez_cluster_barrier_t *b)
{
	const struct vez__slip *s;
	cds_list_for_each_entry(s, &b->desk.slips, place)
		if (s->request && is_arrival(s))
			return true;
	return false;
}

static void compare(vez_cluster_barrier_t *b, const struct String_vector *names)
{
	size_t count;
	bool news = false;
	struct vez__entry *e = vez__entries_read(names, &count, NULL, NULL);
	unsigned char(*now)[MEMBER] = calloc(count + 1, MEMBER);
	if (!now)
		abort();
	for (size_t i = 0; i < count; i++) {
		vez__put_long(now[i], e[i].session);
		vez__put_long(now[i] + 8, e[i].id);
	}
	for (size_t i = 0; i < b->known_count; i++) {
		if (is_among(now, count, b->known[i]))
			continue;
		append(b->lost, &b->lost_count, b->known[i]);
		news = true;
	}
	free(e);
	free(b->known);
	b->known = now;
	b->known_count = count;
	if (news && somebody_waits(b))
		vez__desk_post(&b->desk, "gone", b->lost, b->lost_count * MEMBER);
}

static void on_members(zhandle_t *zh, int type, int state, const char *path, void *ctx)
{
	vez_cluster_barrier_t *b = ctx;
	vez_cluster_t *c = vez__watch_enter(zh, type, state, path);
	if (!c)
		return;
	b->watched = false;
	if (!b->left && !c->over)
		vez__job_queue(c, &b->job);
	vez__session_leave(c);
}

static void members_listed(void *arg, const struct vez__answer *a)
{
	vez_cluster_barrier_t *b = arg;
	b->listing = false;
	b->watched = a->rc == ZOK;
	if (b->left)
		return;
	if (a->rc == ZOK)
		compare(b, a->names);
	else if (vez__unanswered(a->rc) && !b->desk.c->over)
		vez__job_queue(b->desk.c, &b->job);
}

static void list_members(struct vez__job *job)
{
	vez_cluster_barrier_t *b = caa_container_of(job, vez_cluster_barrier_t, job);
	if (b->listing || b->watched || b->left)
		return;
	b->listing = true;
	vez__call_list(b->desk.c, members_listed, b, b->members, on_members, b);
}

/* ---- opening ---- */

static void free_barrier(struct vez__thing *t)
{
	vez_cluster_barrier_t *b = caa_container_of(t, vez_cluster_barrier_t, desk.thing);
	vez__desk_free(&b->desk);
	free(b->known);
	free(b);
}

static const struct vez__slip_rules member_rules = { .silent = true };

static int join(vez_cluster_barrier_t *b)
{
	vez_cluster_t *c = b->desk.c;
	snprintf(b->members, sizeof b->members, "%s/members", b->desk.path);
	int rc = vez__session_begin(c);
	if (rc != 0)
		return rc;
	vez__slip_post(c, &member_rules, b, &b->own_member, b->members, "member", NULL, 0);
	b->member = cds_list_first_entry(&b->own_member, struct vez__slip, place)->id;
	vez__job_queue(c, &b->job);
	vez__session_leave(c);
	return 0;
}

int vez_cluster_barrier_open(vez_cluster_barrier_t **made, vez_cluster_t *c, const char *name, uint32_t parties,
			     vez_deadline_t deadline, vez_cancel_t *cancel)
{
	if (parties == 0 || parties > VEZ_CLUSTER_BARRIER_MAX)
		return EINVAL;
	vez_cluster_barrier_t *b = calloc(1, sizeof *b);
	if (!b)
		return ENOMEM;
	CDS_INIT_LIST_HEAD(&b->own_member);
	b->job.run = list_members;
	b->parties = parties;
	int rc = vez__desk_open(&b->desk, c, &rules, "barrier", name, parties, "members", free_barrier, deadline,
				cancel);
	if (rc != 0)
		return rc;
	rc = join(b);
	if (rc != 0)
		vez__desk_close(&b->desk);
	else
		*made = b;
	return rc;
}

int vez_cluster_barrier_close(vez_cluster_barrier_t *b)
{
	vez_cluster_t *c = b->desk.c;
	if (c->process != vez__process())
		return EPERM;
	if (vez__desk_used(&b->desk))
		return EBUSY;
	vez__session_enter(c);
	struct vez__slip *member = vez__slip_find(c, b->member);
	b->left = true;
	if (member)
		vez__slip_fail(member, 0);
	vez__session_leave(c);
	return vez__desk_close(&b->desk);
}

/* ---- waiting ---- */

/* What its process knows goes with each call. */
static size_t copy_lost(vez_cluster_barrier_t *b, unsigned char lost[MOST_GONE][MEMBER])
{
	vez__session_enter(b->desk.c);
	size_t count = b->lost_count;
	memcpy(lost, b->lost, count * MEMBER);
	vez__session_leave(b->desk.c);
	return count * MEMBER;
}

int vez_cluster_barrier_wait(vez_cluster_barrier_t *b, uint32_t *index, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	unsigned char lost[MOST_GONE][MEMBER];
	if (b->desk.c->process != vez__process())
		return EPERM;
	size_t size = copy_lost(b, lost);
	return vez__desk_call(&b->desk, "arrive", lost, size, (struct vez__into){ NULL, index }, deadline, cancel);
}

int vez_cluster_barrier_wait_async(vez_cluster_barrier_t *b, uint32_t *index, vez_request_t *r)
{
	unsigned char lost[MOST_GONE][MEMBER];
	if (b->desk.c->process != vez__process())
		return EPERM;
	size_t size = copy_lost(b, lost);
	return vez__desk_call_async(&b->desk, "arrive", lost, size, (struct vez__into){ NULL, index }, r);
}

int vez_cluster_barrier_reset(vez_cluster_barrier_t *b, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	unsigned char lost[MOST_GONE][MEMBER];
	if (b->desk.c->process != vez__process())
		return EPERM;
	size_t size = copy_lost(b, lost);
	return vez__desk_call(&b->desk, "reset", lost, size, (struct vez__into){ NULL, NULL }, deadline, cancel);
}
