/* SPDX-License-Identifier: MIT */
/* Calls to the servers, and the jobs that make them. */
#ifndef VEZ__CLUSTER_CALL_H
#define VEZ__CLUSTER_CALL_H

#include <stdbool.h>
#include <stdint.h>
#include <urcu/list.h>
#include <zookeeper/zookeeper.h>

#include "vez/cluster.h"

#define VEZ__MOST_MARKED 64 /* in one transaction */

/* Something that wants to make calls, once the session is connected and not too many are under way. */
struct vez__job {
	struct cds_list_head place;
	bool queued;
	void (*run)(struct vez__job *job);
};

/* What a server has answered, or that it has not (vez__unanswered). What is pointed at is there during the call. */
struct vez__answer {
	int rc;
	const char *name;
	const struct Stat *stat;
	const char *value;
	int length;
	const struct String_vector *names;
};

/* One that is under way. */
struct vez__call {
	struct cds_list_head place;
	vez_cluster_t *c;
	void (*answered)(void *arg, const struct vez__answer *a);
	void *arg;
	int64_t sent;
	struct vez__marks *marks;
};

/* Whether nobody knows if it was done: the connection broke, or the session is over. */
bool vez__unanswered(int rc);

/* What a server's refusal is called here. */
int vez__errno_of(int rc);

/* All of these inside. answered(arg, a) is called inside, once, later, on whatever thread; if the call could not even
 * be handed to the client, before this returns. answered may be NULL. */
void vez__call_create(vez_cluster_t *c, void (*answered)(void *, const struct vez__answer *), void *arg,
		      const char *path, const char *value, int flags);
void vez__call_delete(vez_cluster_t *c, void (*answered)(void *, const struct vez__answer *), void *arg,
		      const char *path);
void vez__call_exists(vez_cluster_t *c, void (*answered)(void *, const struct vez__answer *), void *arg,
		      const char *path);
/* watch(zh, type, state, path, ctx), if it is not NULL, is called when the node changes or goes. */
void vez__call_get(vez_cluster_t *c, void (*answered)(void *, const struct vez__answer *), void *arg,
		   const char *path, watcher_fn watch, void *ctx);
void vez__call_list(vez_cluster_t *c, void (*answered)(void *, const struct vez__answer *), void *arg,
		    const char *path);
/* Answered when the server has caught up with what the others have agreed on. */
void vez__call_sync(vez_cluster_t *c, void (*answered)(void *, const struct vez__answer *), void *arg,
		    const char *path);
/* Sets a mark in each of these nodes, and then deletes the last one if said so: all of it, or nothing. */
void vez__call_mark(vez_cluster_t *c, void (*answered)(void *, const struct vez__answer *), void *arg,
		    const char *const *paths, int count, bool and_delete);

/* Creates both, or none. */
void vez__call_create_two(vez_cluster_t *c, void (*answered)(void *, const struct vez__answer *), void *arg,
			  const char *path, const char *value, const char *second);

/* Inside: the session is over and its client gone: what was under way is unanswered. */
void vez__calls_end(vez_cluster_t *c);

/* Inside: this job is to run, after those that are queued. */
void vez__job_queue(vez_cluster_t *c, struct vez__job *job);

/* Inside: runs jobs while that is possible. */
void vez__pump(vez_cluster_t *c);

#endif
