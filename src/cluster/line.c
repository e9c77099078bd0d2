/* SPDX-License-Identifier: MIT */
/*
 * Objects whose requests stand in line at the servers.
 *
 * State
 *  object   the node <root>/<kind>-<name>, persistent, whose value names kind and permits
 *  request  an ephemeral node below it; its place is the servers' count of creates (list.c). The mark that is set in a
 *           node: handed over (mutex), granted (counted; alternating, a reader's), look again (alternating, a writer's)
 *  epoch    alternating: a persistent node beside the requests, whose number is of the same count (turns.c)
 *  line     an object that is open, or has claims left. looking: a list is under way. refs: who is open, the claims,
 *           the list, the job. All inside
 *  claim    a request as its own process sees it; all inside
 *           node     ABSENT, not there; MAKING, being made; UNSURE, its making was not answered; THERE; LEFT, gone, but
 *                    those who hold now are still to be told (counted, alternating)
 *           want     WAIT, for its turn; HOLD, it is the caller's; LEAVE, its node is to go
 *           granted  its turn has come: kept when it leaves, for it then hands over
 *           look     NEVER mind; WANTED, in the next list; SENT, in the one under way
 *           aim      whether its watch is BLANK, LOADED (to be set), SET or being so
 *           number   its place; LEFT: of the last one that it has told. more, told: the same for a transaction that is
 *                    under way: whether more are to be told then, and the last one that is in it
 *           watch    number of its last watch; flying: its calls under way
 *           marks    alternating: how many marks it knows to be in its node. epoch: of a writer that holds, the name of
 *                    the one that is there; "": there is none
 *           request, hold  the caller's, while the request is undecided (hold: until then, or until the release)
 * Invariants
 *  N1 who holds is a function of the line alone: handed: the first; counted: the first ones whose permits together are
 *     no more than there are; alternating: turns.c. Requests join only behind, so nobody whose turn has come loses it.
 *  N2 handed: a claim that waits watches the node before it, or will. That node's mark is set only in the step that
 *     deletes it, and only by who held: the watch says "changed" then, and it is this claim's turn; nothing need be
 *     read. It says "deleted" if the node went otherwise: the claim looks.
 *  N3 counted: a claim that waits watches its own node, or will, and every session before it is watched (peer.c). Who
 *     leaves reads the line after its node has gone and marks whoever fits and may not know. Of several who leave
 *     at once the last one sees all of them gone. A session that ends, be it in the middle of this, has all who wait
 *     look. What was marked before the watch was set is seen in the node's version by the call that sets it.
 *  N4 a node is removed until a server has answered that it is gone, or the session is over. An unanswered making is
 *     looked for, by the session's and the claim's number in its name, behind all that the servers have agreed on; it
 *     is made again only if it is not there. So there is one node, or none.
 *  N5 the caller's request and hold are not touched once the request is decided, inside; the claim lives until its node
 *     is gone.
 *  N6 a fence is the number of the transaction that made the node. Turns come in the order of places, so they grow.
 *     Alternating, they do not come so: there a fence is the number of the transaction by which a claim has set its
 *     own node after it has learnt that it holds, and before its caller is told; that is done again if it was not
 *     answered. So the fence is made while the node is there and holds. Of two that exclude each other, the second
 *     holds only when the first one's node has gone: its fence is larger.
 *  N7 alternating: a writer that leaves after it has held makes a new epoch, removes the one before, and removes its
 *     own node, in one step: none of it is done twice, and those readers are admitted who stood in line at that
 *     moment. In this order, so that who should see only a part of it sees the readers admitted before it sees the
 *     writer gone. A step that is refused has been done before, or cannot be done (somebody else has removed the
 *     epoch): then the node is removed alone, and the line goes on in order. So it does where a writer dies, which
 *     moves no epoch, or gives up before it holds.
 *  N8 alternating: N3, but for this. A writer also waits for readers behind it, who have come after it had looked and
 *     have been admitted since: if one of them died, nobody would tell it. So a writer that leaves marks not only
 *     those who hold then but also the first writer, where such readers are there; it looks again, and watches their
 *     sessions. Should the one that is to mark it die, it looks all the same, as it stood behind that one. A reader
 *     that leaves can have let nobody go but the first writer.
 * Ordering: the session's monitor.
 * Progress and fairness: first come first served, by the servers' order of creates; alternating, a writer waits for
 *  the readers that hold and for one more party of readers for each writer before it, a reader for one writer, and for
 *  those before it that die or give up. Handed: one write and one event from one holder to the next. A claim whose
 *  caller has gone keeps its place until its removal has been answered.
 * Lifetime: N5; claims are freed outside, since their tokens are destroyed there.
 * Sources: the line and the watch on the one before: P. Hunt et al., ZooKeeper (2010); that the event says whose turn
 *  it is: C. Martins (2009), specific notification. Alternating: C. A. R. Hoare, "Monitors" (1974).
 */
#include "line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"
#include "list.h"
#include "object.h"
#include "peer.h"
#include "session.h"
#include "turns.h"

enum node { ABSENT, MAKING, UNSURE, THERE, LEFT };
enum want { WAIT, HOLD, LEAVE };
enum look { NEVER, WANTED, SENT };
enum aim { BLANK, LOADED, SETTING, SET };

struct vez__line {
	struct vez__job job; /* first: reads the line */
	struct cds_list_head place;
	struct cds_list_head claims;
	vez_cluster_t *c;
	enum vez__telling telling;
	uint32_t permits;
	size_t refs;
	bool looking;
	char path[VEZ__OBJECT_PATH];
};

struct vez__claim {
	struct vez__job job; /* first: does what is next */
	struct cds_list_head place;
	struct vez__claim *next;
	struct vez__line *line;
	vez_request_t *request;
	vez_cluster_hold_t *hold;
	vez_cancel_t token;
	uint64_t id;
	uint64_t fence;
	uint32_t n;
	int32_t number;
	int32_t told;
	int32_t marks;
	unsigned watch;
	unsigned flying;
	enum node node;
	enum want want;
	enum look look;
	enum aim aim;
	bool granted;
	bool more;
	bool ended;
	char target[VEZ__NODE];
	char name[VEZ__NODE];
	char epoch[VEZ__EPOCH];
};

/* The line as a list of it says. */
struct view {
	struct vez__entry *e;
	size_t count;
	struct vez__turns turns; /* alternating */
};

/* ---- lines ---- */

static bool alternates(const struct vez__line *l)
{
	return l->telling == VEZ__ALTERNATING;
}

static void put_line(struct vez__line *l)
{
	if (--l->refs > 0)
		return;
	cds_list_del(&l->place);
	if (l->job.queued)
		cds_list_del(&l->job.place);
	l->c->lines--;
	free(l);
}

static void path_of(const struct vez__line *l, const char *node, char *path)
{
	snprintf(path, VEZ__PATH, "%s/%s", l->path, node);
}

/* ---- claims: found, made, freed ---- */

static struct vez__claim **slot_of(vez_cluster_t *c, uint64_t id)
{
	return &c->by_id[id % VEZ__SLOTS];
}

static struct vez__claim *find(vez_cluster_t *c, uint64_t id)
{
	struct vez__claim *claim = *slot_of(c, id);
	while (claim && claim->id != id)
		claim = claim->next;
	return claim;
}

static void step(struct vez__job *job);

/* Outside. */
static struct vez__claim *new_claim(struct vez__line *l, uint32_t n, vez_cluster_hold_t *h)
{
	struct vez__claim *claim = calloc(1, sizeof *claim);
	if (!claim)
		return NULL;
	vez_cancel_init_child(&claim->token, &l->c->lost);
	claim->job.run = step;
	claim->line = l;
	claim->n = n;
	claim->hold = h;
	return claim;
}

/* Inside: it is part of its line from here on, and its node will be made. */
static void add_claim(struct vez__claim *claim, vez_request_t *r)
{
	struct vez__line *l = claim->line;
	vez_cluster_t *c = l->c;
	claim->id = ++c->claims_made;
	claim->next = *slot_of(c, claim->id);
	*slot_of(c, claim->id) = claim;
	cds_list_add_tail(&claim->place, &l->claims);
	l->refs++;
	claim->request = r;
	claim->hold->claim_ = claim;
	claim->hold->fence_ = 0;
	vez_request_set_key(r, 0);
	vez_request_set_value(r, claim, 0);
	vez__job_queue(c, &claim->job);
}

/* Inside: nothing of it is left but its memory. */
static void end_claim(struct vez__claim *claim)
{
	vez_cluster_t *c = claim->line->c;
	struct vez__claim **link = slot_of(c, claim->id);
	while (*link != claim)
		link = &(*link)->next;
	*link = claim->next;
	if (claim->job.queued)
		cds_list_del(&claim->job.place);
	claim->ended = true;
	cds_list_del(&claim->place);
	cds_list_add_tail(&claim->place, &c->ended);
	put_line(claim->line);
}

void vez__claims_free(vez_cluster_t *c, struct cds_list_head *ended)
{
	struct vez__claim *claim, *next;
	cds_list_for_each_entry_safe(claim, next, ended, place) {
		if (vez_cancel_destroy(&claim->token) == 0) {
			free(claim);
			continue;
		}
		/* A wait that names the token is just returning. */
		vez__session_enter(c);
		cds_list_add_tail(&claim->place, &c->ended);
		vez_monitor_exit(&c->monitor);
	}
}

/* Something has changed. */
static void again(struct vez__claim *claim)
{
	vez_cluster_t *c = claim->line->c;
	if (claim->ended)
		return;
	if (!c->over)
		vez__job_queue(c, &claim->job);
	else if (claim->want == LEAVE && claim->flying == 0)
		end_claim(claim);
}

/* ---- decided ---- */

/* The caller's request ends with this code, and the node goes. */
static void fail(struct vez__claim *claim, int code)
{
	vez_request_t *r = claim->request;
	claim->want = LEAVE;
	claim->request = NULL;
	if (r) {
		claim->hold->claim_ = NULL;
		vez_monitor_settle(&claim->line->c->monitor, r, code);
	}
	again(claim);
}

/* Its turn has come. */
static void grant(struct vez__claim *claim)
{
	vez_cluster_t *c = claim->line->c;
	vez_request_t *r = claim->request;
	claim->granted = true;
	claim->aim = BLANK;
	if (claim->want != WAIT || c->over)
		return;
	if (claim->fence == 0) {
		again(claim);
		return;
	}
	if (vez__session_lapsed(c)) {
		vez__bell_ring(&c->bell);
		return;
	}
	claim->request = NULL;
	claim->hold->fence_ = claim->fence;
	claim->want = HOLD;
	if (vez_monitor_settle(&c->monitor, r, 0))
		return;
	claim->hold->claim_ = NULL;
	claim->want = LEAVE;
	again(claim);
}

void vez__claim_gave_up(struct vez__claim *claim)
{
	claim->request = NULL;
	claim->hold->claim_ = NULL;
	claim->want = LEAVE;
	again(claim);
}

void vez__lines_end(vez_cluster_t *c, int code)
{
	struct vez__line *l, *next_line;
	struct vez__claim *claim, *next;
	cds_list_for_each_entry_safe(l, next_line, &c->all_lines, place) {
		l->refs++;
		cds_list_for_each_entry_safe(claim, next, &l->claims, place) {
			if (claim->want == WAIT)
				fail(claim, code);
			else
				again(claim);
		}
		put_line(l);
	}
}

/* ---- looking ---- */

static void want_look(struct vez__claim *claim)
{
	claim->look = WANTED;
	if (!claim->line->looking)
		vez__job_queue(claim->line->c, &claim->line->job);
}

/* The caller frees e. Handed: no session matters but by its nodes. */
static struct view view_of(const struct vez__line *l, const struct vez__answer *a)
{
	struct view v = { 0 };
	v.e = vez__entries_read(a->names, &v.count, l->telling == VEZ__HANDED ? NULL : vez__peer_gone, l->c);
	if (alternates(l))
		vez__turns_read(&v.turns, a->names, v.e, v.count);
	return v;
}

static bool holds(const struct vez__line *l, const struct view *v, size_t at)
{
	if (l->telling == VEZ__HANDED)
		return at == 0;
	return alternates(l) ? vez__turns_holds(&v->turns, v->e, at) : v->e[at].sum <= l->permits;
}

static void grant_by(struct vez__claim *claim, const struct view *v)
{
	memcpy(claim->epoch, v->turns.epoch, sizeof claim->epoch);
	grant(claim);
}

/* Handed: it waits for the one before it. */
static void aim_at_previous(struct vez__claim *claim, const struct view *v, size_t at)
{
	snprintf(claim->target, sizeof claim->target, "%s", v->e[at - 1].name);
	claim->aim = LOADED;
	again(claim);
}

/* It waits to be marked, or for the end of a session. */
static void aim_at_itself(struct vez__claim *claim, const struct view *v, size_t at)
{
	struct vez__line *l = claim->line;
	size_t bound = alternates(l) ? vez__turns_bound(&v->turns, v->e, at) : at;
	for (size_t i = 0; i < bound; i++)
		if (i == 0 || v->e[i].session != v->e[i - 1].session)
			vez__peer_watch(l->c, v->e[i].session);
	if (claim->aim != BLANK)
		return;
	memcpy(claim->target, claim->name, sizeof claim->target);
	claim->aim = LOADED;
	again(claim);
}

static void look(struct vez__claim *claim, const struct view *v)
{
	size_t at = vez__entries_find(v->e, v->count, claim->number);
	claim->look = NEVER;
	if (claim->node != THERE || claim->want != WAIT || claim->granted)
		return;
	if (at == v->count) /* somebody has removed it */
		fail(claim, VEZ_ELOST);
	else if (holds(claim->line, v, at))
		grant_by(claim, v);
	else if (claim->line->telling == VEZ__HANDED)
		aim_at_previous(claim, v, at);
	else
		aim_at_itself(claim, v, at);
}

static void line_read(void *arg, const struct vez__answer *a)
{
	struct vez__line *l = arg;
	struct vez__claim *claim, *next;
	struct view v = { 0 };
	bool wanted = false;
	l->looking = false;
	if (a->rc == ZOK)
		v = view_of(l, a);
	cds_list_for_each_entry_safe(claim, next, &l->claims, place) {
		wanted |= claim->look == WANTED || (claim->look == SENT && vez__unanswered(a->rc));
		if (claim->look != SENT)
			continue;
		if (a->rc == ZOK)
			look(claim, &v);
		else if (vez__unanswered(a->rc))
			claim->look = WANTED;
		else
			fail(claim, vez__errno_of(a->rc));
	}
	free(v.e);
	if (wanted && !l->c->over)
		vez__job_queue(l->c, &l->job);
	put_line(l);
}

static void read_for_claims(struct vez__job *job)
{
	struct vez__line *l = (struct vez__line *)job;
	struct vez__claim *claim;
	bool wanted = false;
	if (l->looking)
		return;
	cds_list_for_each_entry(claim, &l->claims, place) {
		if (claim->look != WANTED)
			continue;
		claim->look = SENT;
		wanted = true;
	}
	if (!wanted)
		return;
	l->looking = true;
	l->refs++;
	vez__call_list(l->c, line_read, l, l->path, NULL, NULL);
}

void vez__lines_look(vez_cluster_t *c)
{
	struct vez__line *l;
	struct vez__claim *claim;
	cds_list_for_each_entry(l, &c->all_lines, place) {
		if (l->telling == VEZ__HANDED)
			continue;
		cds_list_for_each_entry(claim, &l->claims, place)
			if (claim->node == THERE && claim->want == WAIT && !claim->granted)
				want_look(claim);
	}
}

/* ---- the node is made ---- */

/* The name that the servers gave it. */
static bool note_name(struct vez__claim *claim, const char *name)
{
	struct vez__entry e;
	if (!vez__entry_parse(&e, name))
		return false;
	snprintf(claim->name, sizeof claim->name, "%s", name);
	claim->number = e.number;
	claim->node = THERE;
	return true;
}

static void made(void *arg, const struct vez__answer *a)
{
	struct vez__claim *claim = arg;
	claim->flying--;
	if (a->rc == ZOK && note_name(claim, strrchr(a->name, '/') + 1)) {
		if (!alternates(claim->line))
			claim->fence = (uint64_t)a->stat->czxid;
	} else if (vez__unanswered(a->rc)) {
		claim->node = UNSURE;
		claim->look = NEVER;
	} else {
		claim->node = ABSENT;
		claim->look = NEVER;
		fail(claim, vez__errno_of(a->rc));
		return;
	}
	again(claim);
}

static void make(struct vez__claim *claim)
{
	char name[VEZ__NODE], path[VEZ__PATH];
	struct vez__line *l = claim->line;
	vez__entry_name(name, claim->n, l->c->id, claim->id);
	path_of(l, name, path);
	claim->node = MAKING;
	claim->flying++;
	want_look(claim);
	vez__call_create(l->c, made, claim, path, "", ZOO_EPHEMERAL | ZOO_SEQUENCE);
}

static void searched(void *arg, const struct vez__answer *a)
{
	struct vez__claim *claim = arg;
	struct vez__entry e;
	claim->flying--;
	if (a->rc == ZOK || a->rc == ZNONODE)
		claim->node = ABSENT;
	for (int32_t i = 0; a->rc == ZOK && i < a->names->count; i++)
		if (vez__entry_parse(&e, a->names->data[i]) && e.session == claim->line->c->id && e.id == claim->id)
			note_name(claim, a->names->data[i]);
	again(claim);
}

static void search(struct vez__claim *claim)
{
	struct vez__line *l = claim->line;
	claim->flying++;
	vez__call_sync(l->c, NULL, NULL, l->path);
	vez__call_list(l->c, searched, claim, l->path, NULL, NULL);
}

static void dated(void *arg, const struct vez__answer *a)
{
	struct vez__claim *claim = arg;
	claim->flying--;
	if (a->rc == ZOK)
		claim->fence = (uint64_t)(alternates(claim->line) ? a->stat->mzxid : a->stat->czxid);
	else if (!vez__unanswered(a->rc))
		fail(claim, VEZ_ELOST);
	again(claim);
}

/* N6: the fence of a node that is there. Alternating: of one that holds. */
static void ask_for_fence(struct vez__claim *claim)
{
	char path[VEZ__PATH];
	path_of(claim->line, claim->name, path);
	claim->flying++;
	if (alternates(claim->line))
		vez__call_set(claim->line->c, dated, claim, path);
	else
		vez__call_exists(claim->line->c, dated, claim, path);
}

/* ---- it waits ---- */

/* Its node has been marked, or that of the one before it. */
static void marked(struct vez__claim *claim)
{
	if (!alternates(claim->line) || !vez__writes(claim->n))
		grant(claim);
	else if (claim->want == WAIT)
		want_look(claim);
}

static void *ctx_of(const struct vez__claim *claim)
{
	return (void *)(uintptr_t)(claim->id << 16 | (claim->watch & 0xffff));
}

static void on_change(zhandle_t *zh, int type, int state, const char *path, void *ctx)
{
	vez_cluster_t *c = vez__watch_enter(zh, type, state, path);
	if (!c)
		return;
	struct vez__claim *claim = find(c, (uintptr_t)ctx >> 16);
	if (claim && ctx_of(claim) == ctx && claim->want == WAIT && !claim->granted && !c->over) {
		claim->aim = BLANK;
		claim->marks += type == ZOO_CHANGED_EVENT;
		if (type == ZOO_CHANGED_EVENT)
			marked(claim);
		else
			want_look(claim);
	}
	vez__session_leave(c);
}

static void watching(void *arg, const struct vez__answer *a)
{
	struct vez__claim *claim = arg;
	claim->flying--;
	if (claim->aim == SETTING) {
		bool own = claim->line->telling != VEZ__HANDED;
		claim->aim = a->rc == ZOK ? SET : vez__unanswered(a->rc) ? LOADED : BLANK;
		if (a->rc == ZOK && own && a->stat->version > claim->marks) {
			claim->marks = a->stat->version;
			marked(claim);
		} else if (claim->aim == BLANK && claim->want == WAIT) {
			want_look(claim);
		}
	}
	again(claim);
}

static void set_watch(struct vez__claim *claim)
{
	char path[VEZ__PATH];
	path_of(claim->line, claim->target, path);
	claim->watch++;
	claim->aim = SETTING;
	claim->flying++;
	vez__call_get(claim->line->c, watching, claim, path, on_change, ctx_of(claim));
}

/* ---- it leaves ---- */

static void told(void *arg, const struct vez__answer *a)
{
	struct vez__claim *claim = arg;
	claim->flying--;
	if (a->rc == ZOK)
		claim->number = claim->told;
	if (a->rc == ZOK && !claim->more)
		end_claim(claim);
	else
		again(claim);
}

/* Whether the one at this place may not know what this claim's leaving has done for it. */
static bool concerns(const struct vez__claim *claim, const struct view *v, size_t at)
{
	if (alternates(claim->line))
		return vez__turns_concerns(&v->turns, v->e, at, claim->n, claim->number);
	return v->e[at].sum <= claim->line->permits && vez__before(claim->number, v->e[at].number);
}

/* One of this session learns it here. */
static void tell_own(const struct vez__line *l, const struct view *v, size_t at)
{
	struct vez__claim *own = find(l->c, v->e[at].id);
	if (!own || own->node != THERE || own->want != WAIT || own->granted)
		return;
	if (holds(l, v, at))
		grant_by(own, v);
	else
		want_look(own);
}

/* Marks who holds now and may not know. */
static void tell(struct vez__claim *claim, const struct view *v)
{
	char buffer[VEZ__MOST_MARKED][VEZ__PATH];
	const char *paths[VEZ__MOST_MARKED];
	struct vez__line *l = claim->line;
	int32_t last = claim->number;
	int count = 0;
	bool more = false;
	for (size_t i = 0; i < v->count; i++) {
		if (!concerns(claim, v, i))
			continue;
		if (v->e[i].session == l->c->id) {
			tell_own(l, v, i);
			continue;
		}
		more = count == VEZ__MOST_MARKED;
		if (more)
			break;
		last = v->e[i].number;
		path_of(l, v->e[i].name, buffer[count]);
		paths[count] = buffer[count];
		count++;
	}
	claim->more = more;
	claim->told = last;
	if (count == 0) {
		end_claim(claim);
		return;
	}
	claim->flying++;
	vez__call_mark(l->c, told, claim, paths, count, false);
}

/* An epoch that says nothing goes, before its number comes again. */
static void drop_outlived(const struct vez__claim *claim, const struct view *v)
{
	char path[VEZ__PATH];
	if (!alternates(claim->line) || !vez__turns_outlived(&v->turns, claim->number))
		return;
	path_of(claim->line, v->turns.epoch, path);
	vez__call_delete(claim->line->c, NULL, NULL, path);
}

static void left_line_read(void *arg, const struct vez__answer *a)
{
	struct vez__claim *claim = arg;
	claim->flying--;
	if (a->rc != ZOK || claim->node != LEFT || claim->line->c->over) {
		if (a->rc == ZNONODE)
			end_claim(claim);
		else
			again(claim);
		return;
	}
	struct view v = view_of(claim->line, a);
	drop_outlived(claim, &v);
	tell(claim, &v);
	free(v.e);
}

static void read_line_left(struct vez__claim *claim)
{
	claim->flying++;
	vez__call_list(claim->line->c, left_line_read, claim, claim->line->path, NULL, NULL);
}

static void removed(void *arg, const struct vez__answer *a)
{
	struct vez__claim *claim = arg;
	claim->flying--;
	if (!vez__unanswered(a->rc))
		claim->node = claim->line->telling == VEZ__HANDED ? ABSENT : LEFT;
	again(claim);
}

/* Refused: see N7. */
static void replaced(void *arg, const struct vez__answer *a)
{
	struct vez__claim *claim = arg;
	if (a->rc == ZOK || vez__unanswered(a->rc)) {
		removed(claim, a);
		return;
	}
	claim->flying--;
	claim->granted = false;
	again(claim);
}

/* Its node goes, and a new epoch takes the place of the one that is there. */
static void remove_with_epoch(struct vez__claim *claim, const char *path)
{
	struct vez__edit *edits = calloc(3, sizeof *edits);
	int count = 0;
	if (!edits)
		abort();
	for (int i = 0; i < 3; i++)
		edits[i].version = -1;
	path_of(claim->line, VEZ__EPOCH_PREFIX, edits[count].path);
	edits[count].creates = true;
	edits[count++].flags = ZOO_SEQUENCE;
	if (claim->epoch[0])
		path_of(claim->line, claim->epoch, edits[count++].path);
	strcpy(edits[count++].path, path);
	vez__call_edit(claim->line->c, replaced, claim, edits, count);
}

static void remove_node(struct vez__claim *claim)
{
	struct vez__line *l = claim->line;
	char path[VEZ__PATH];
	const char *paths[] = { path };
	path_of(l, claim->name, path);
	claim->flying++;
	if (l->telling == VEZ__HANDED && claim->granted)
		vez__call_mark(l->c, removed, claim, paths, 1, true);
	else if (alternates(l) && claim->granted && vez__writes(claim->n))
		remove_with_epoch(claim, path);
	else
		vez__call_delete(l->c, removed, claim, path);
	if (l->telling != VEZ__HANDED)
		read_line_left(claim);
}

/* ---- what is next ---- */

static void step_there(struct vez__claim *claim)
{
	if (claim->want == LEAVE) {
		remove_node(claim);
	} else if (claim->fence == 0 && (claim->granted || !alternates(claim->line))) {
		ask_for_fence(claim);
	} else if (claim->want == WAIT && claim->granted) {
		grant(claim);
	} else if (claim->want == WAIT && claim->aim == LOADED) {
		set_watch(claim);
	} else if (claim->want == WAIT && claim->aim == BLANK && claim->look == NEVER) {
		want_look(claim);
	}
}

static void step(struct vez__job *job)
{
	struct vez__claim *claim = (struct vez__claim *)job;
	if (claim->flying > 0)
		return;
	switch (claim->node) {
	case ABSENT:
		if (claim->want == LEAVE)
			end_claim(claim);
		else
			make(claim);
		break;
	case MAKING:
		break;
	case UNSURE:
		search(claim);
		break;
	case THERE:
		step_there(claim);
		break;
	case LEFT:
		read_line_left(claim);
		break;
	}
}

/* ---- taking and giving back ---- */

/* 0: inside, and the claim is part of its line. */
static int begin(struct vez__line *l, uint32_t n, vez_cluster_hold_t *h, vez_request_t *r)
{
	int rc = vez__session_begin(l->c);
	if (rc != 0)
		return rc;
	vez__session_leave(l->c);
	struct vez__claim *claim = new_claim(l, n, h);
	if (!claim)
		return ENOMEM;
	rc = vez__session_begin(l->c);
	if (rc == 0) {
		add_claim(claim, r);
	} else {
		vez_cancel_destroy(&claim->token);
		free(claim);
	}
	return rc;
}

/* The request of h was refused before it was queued. */
static void take_back(struct vez__line *l, vez_cluster_hold_t *h)
{
	vez__session_enter(l->c);
	if (h->claim_)
		vez__claim_gave_up(h->claim_);
	vez__session_leave(l->c);
}

int vez__line_take(struct vez__line *l, uint32_t n, vez_cluster_hold_t *h, vez_deadline_t deadline,
		   vez_cancel_t *cancel)
{
	vez_request_t r = VEZ_REQUEST_INITIALIZER;
	vez_cluster_t *c = l->c;
	if (cancel && vez_cancel_fired(cancel))
		return ECANCELED;
	if (vez_deadline_remaining_ns(deadline) == 0)
		return ETIMEDOUT;
	int rc = begin(l, n, h, &r);
	if (rc != 0)
		return rc;
	vez__pump(c);
	rc = vez_monitor_wait(&c->monitor, &c->waits, &r, deadline, cancel);
	if (rc != 0)
		take_back(l, h);
	return rc;
}

int vez__line_take_async(struct vez__line *l, uint32_t n, vez_cluster_hold_t *h, vez_request_t *r)
{
	vez_cluster_t *c = l->c;
	int rc = begin(l, n, h, r);
	if (rc != 0)
		return rc;
	rc = vez_monitor_wait_async(&c->monitor, &c->waits, r);
	if (rc != EINPROGRESS) {
		take_back(l, h);
		return rc;
	}
	vez__session_enter(c);
	vez__session_leave(c);
	return rc;
}

int vez_cluster_release(vez_cluster_hold_t *h)
{
	struct vez__claim *claim = h->claim_;
	if (!claim)
		return EINVAL;
	vez_cluster_t *c = claim->line->c;
	if (c->process != vez__process())
		return EPERM;
	int rc = vez_cluster_check(c);
	vez_cancel_fire(&claim->token);
	vez__session_enter(c);
	h->claim_ = NULL;
	claim->want = LEAVE;
	claim->hold = NULL;
	again(claim);
	vez__session_leave(c);
	return rc;
}

uint64_t vez_cluster_hold_fence(const vez_cluster_hold_t *h)
{
	return h->fence_;
}

vez_cancel_t *vez_cluster_hold_token(vez_cluster_hold_t *h)
{
	return &((struct vez__claim *)h->claim_)->token;
}

int vez_cluster_hold_check(const vez_cluster_hold_t *h)
{
	return vez_cluster_check(((struct vez__claim *)h->claim_)->line->c);
}

/* ---- opening ---- */

int vez__line_open(struct vez__line **made_line, vez_cluster_t *c, const char *kind, const char *name,
		   enum vez__telling telling, uint32_t permits, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	struct vez__line *l = calloc(1, sizeof *l);
	if (!l)
		return ENOMEM;
	CDS_INIT_LIST_HEAD(&l->claims);
	l->job.run = read_for_claims;
	l->c = c;
	l->telling = telling;
	l->permits = permits;
	l->refs = 1;
	int rc = vez__object_open(c, kind, name, permits, NULL, NULL, l->path, deadline, cancel);
	if (rc == 0)
		rc = vez__session_begin(c);
	if (rc != 0) {
		free(l);
		return rc;
	}
	cds_list_add_tail(&l->place, &c->all_lines);
	c->lines++;
	vez__session_leave(c);
	*made_line = l;
	return 0;
}

int vez__line_close(struct vez__line *l)
{
	vez_cluster_t *c = l->c;
	struct vez__claim *claim;
	bool used = false;
	if (c->process != vez__process())
		return EPERM;
	vez__session_enter(c);
	cds_list_for_each_entry(claim, &l->claims, place)
		used |= claim->want != LEAVE;
	if (!used)
		put_line(l);
	vez__session_leave_last(c);
	return used ? EBUSY : 0;
}

uint32_t vez__line_permits(const struct vez__line *l)
{
	return l->permits;
}
