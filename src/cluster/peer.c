/* SPDX-License-Identifier: MIT */
/*
 * The other sessions, and whether they live.
 *
 * State
 *  a node <root>/live/<session> for each session, which goes with it
 *  peer     one that this session has met in front of a request of its own; inside
 *           watched   its node has been asked for, and its end will be told
 *           gone      it has ended
 * Invariants
 *  P1 a session's end takes its node and all its requests in one step: from the moment when its node is known to have
 *     gone, its requests have, too, even if a list that is read in the middle of that step still shows some.
 *  P2 a request waits only when every session before it is watched, or will be before anything else is sent.
 * Ordering: inside the session's monitor.
 * Progress: one watch for each session that was met, whatever the number of objects and requests.
 * Lifetime: of the session.
 */
#include "peer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "call.h"
#include "line.h"
#include "object.h"
#include "session.h"

struct peer {
	struct vez__job job; /* first */
	struct cds_list_head place;
	vez_cluster_t *c;
	uint64_t id;
	bool watched;
	bool gone;
};

void vez__peers_path(const vez_cluster_t *c, char *path)
{
	snprintf(path, VEZ__PATH, "%s/live", c->root);
}

void vez__peer_path(const vez_cluster_t *c, uint64_t id, char *path)
{
	snprintf(path, VEZ__PATH, "%s/live/%" PRIx64, c->root, id);
}

static struct peer *find(vez_cluster_t *c, uint64_t id)
{
	struct peer *p;
	cds_list_for_each_entry(p, &c->peers, place)
		if (p->id == id)
			return p;
	return NULL;
}

bool vez__peer_gone(void *c, uint64_t id)
{
	const struct peer *p = find(c, id);
	return p && p->gone;
}

static void note_gone(struct peer *p)
{
	if (p->gone)
		return;
	p->gone = true;
	vez__lines_look(p->c);
	vez__things_look(p->c);
}

static void on_end(zhandle_t *zh, int type, int state, const char *path, void *ctx)
{
	struct peer *p = ctx;
	vez_cluster_t *c = vez__watch_enter(zh, type, state, path);
	if (!c)
		return;
	p->watched = false;
	if (type == ZOO_DELETED_EVENT)
		note_gone(p);
	else
		vez__job_queue(c, &p->job);
	vez__session_leave(c);
}

static void watched(void *arg, const struct vez__answer *a)
{
	struct peer *p = arg;
	p->watched = a->rc == ZOK;
	if (a->rc == ZNONODE)
		note_gone(p);
	else if (vez__unanswered(a->rc))
		vez__job_queue(p->c, &p->job);
}

static void watch(struct vez__job *job)
{
	struct peer *p = (struct peer *)job;
	char path[VEZ__PATH];
	if (p->watched || p->gone)
		return;
	p->watched = true;
	vez__peer_path(p->c, p->id, path);
	vez__call_get(p->c, watched, p, path, on_end, p);
}

void vez__peer_watch(vez_cluster_t *c, uint64_t id)
{
	if (id == c->id || find(c, id))
		return;
	struct peer *p = calloc(1, sizeof *p);
	if (!p)
		abort();
	p->job.run = watch;
	p->c = c;
	p->id = id;
	cds_list_add_tail(&p->place, &c->peers);
	vez__job_queue(c, &p->job);
}

void vez__peers_free(vez_cluster_t *c)
{
	struct peer *p, *next;
	cds_list_for_each_entry_safe(p, next, &c->peers, place)
		free(p);
}
