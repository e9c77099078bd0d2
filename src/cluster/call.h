/* SPDX-License-Identifier: MIT */
/* Calls to the servers, and the jobs that make them. */
#ifndef VEZ__CLUSTER_CALL_H
#define VEZ__CLUSTER_CALL_H

#include <stdbool.h>
#include <stdint.h>
#include <urcu/list.h>
#include <zookeeper/zookeeper.h>

#include "session.h"

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
	struct vez__edit *edits;
	int edit_count;
	zoo_op_t *ops;
	zoo_op_result_t *results;
	struct Stat *stats;
};

/* Whether nobody knows if it was done: the connection broke, or the session is over. */
bool vez__unanswered(int rc);

/* What a server's refusal is called here. */
int vez__errno_of(int rc);

/* All of these inside. answered(arg, a) is called inside, once, later, on whatever thread; if the call could not even
 * be handed to the client, before this returns. answered may be NULL. */
void vez__call_create(vez_cluster_t *c, void (*answered)(void *, const struct vez__answer *), void *arg,
		      const char *path, const char *value, int flags);
void vez__call_create_bytes(vez_cluster_t *c, void (*answered)(void *, const struct vez__answer *), void *arg,
			    const char *path, const void *value, int size, int flags);
void vez__call_delete(vez_cluster_t *c, void (*answered)(void *, const struct vez__answer *), void *arg,
		      const char *path);
/* Sets the node's value; the answer has its stat. */
void vez__call_set(vez_cluster_t *c, void (*answered)(void *, const struct vez__answer *), void *arg,
		   const char *path);
void vez__call_exists(vez_cluster_t *c, void (*answered)(void *, const struct vez__answer *), void *arg,
		      const char *path);
/* watch(zh, type, state, path, ctx), if it is not NULL, is called when the node changes or goes. */
void vez__call_get(vez_cluster_t *c, void (*answered)(void *, const struct vez__answer *), void *arg,
		   const char *path, watcher_fn watch, void *ctx);
void vez__call_list(vez_cluster_t *c, void (*answered)(void *, const struct vez__answer *), void *arg,
		    const char *path, watcher_fn watch, void *ctx);
/* Answered when the server has caught up with what the others have agreed on. */
void vez__call_sync(vez_cluster_t *c, void (*answered)(void *, const struct vez__answer *), void *arg,
		    const char *path);
/* Sets a mark in each of these nodes, and then deletes the last one if said so: all of it, or nothing. */
void vez__call_mark(vez_cluster_t *c, void (*answered)(void *, const struct vez__answer *), void *arg,
		    const char *const *paths, int count, bool and_delete);

/* What a transaction does to one node, if that is of this version (-1: in any case). */
struct vez__edit {
	char path[VEZ__PATH];
	void *data; /* allocated: the node is set; NULL: it is deleted, unless the following says otherwise */
	int size;
	int version;
	bool only_check; /* it has to be there */
	bool creates;    /* the node is made, empty */
	int flags;       /* of one that is made: ZOO_EPHEMERAL, ZOO_SEQUENCE */
};

/* Does all of it, or nothing. Takes over the edits, which are allocated. */
void vez__call_edit(vez_cluster_t *c, void (*answered)(void *, const struct vez__answer *), void *arg,
		    struct vez__edit *edits, int count);

/* Creates all of them, or none. third may be NULL. */
void vez__call_create_several(vez_cluster_t *c, void (*answered)(void *, const struct vez__answer *), void *arg,
			      const char *path, const char *value, const char *second, const char *third);

/* Inside: the session is over and its client gone: what was under way is unanswered. */
void vez__calls_end(vez_cluster_t *c);

/* Inside: this job is to run, after those that are queued. */
void vez__job_queue(vez_cluster_t *c, struct vez__job *job);

/* What is to be done outside, on the thread of the session that runs functions. */
struct vez__work {
	struct cds_list_head place;
	void (*run)(struct vez__work *work);
};

/* Inside, while an answer is being dealt with: it will be run by this thread when it has left. */
void vez__work_queue(vez_cluster_t *c, struct vez__work *work);

/* Inside: runs jobs while that is possible. */
void vez__pump(vez_cluster_t *c);

#endif
