/* SPDX-License-Identifier: MIT */
/* Objects whose requests stand in line: what mutex, semaphore and readers-writers have in common. */
#ifndef VEZ__CLUSTER_LINE_H
#define VEZ__CLUSTER_LINE_H

#include <stdbool.h>
#include <stdint.h>
#include <urcu/list.h>

#include "vez/cluster.h"

struct vez__claim;
struct vez__line;

/* How requests are told that it is their turn. */
enum vez__telling {
	VEZ__HANDED, /* of those in line one holds: it hands over to the next */
	VEZ__COUNTED, /* as many of the first as fit hold: who leaves tells those who fit then */
	VEZ__ALTERNATING /* readers (one permit) and writers (more): who leaves tells those who hold then (turns.c) */
};

/* Opens the object of this kind and name, with this number of permits; alternating: 0. */
int vez__line_open(struct vez__line **line, vez_cluster_t *c, const char *kind, const char *name,
		   enum vez__telling telling, uint32_t permits, vez_deadline_t deadline, vez_cancel_t *cancel);
int vez__line_close(struct vez__line *line);
uint32_t vez__line_permits(const struct vez__line *line);

/* Takes n permits of it. */
int vez__line_take(struct vez__line *line, uint32_t n, vez_cluster_hold_t *h, vez_deadline_t deadline,
		   vez_cancel_t *cancel);
int vez__line_take_async(struct vez__line *line, uint32_t n, vez_cluster_hold_t *h, vez_request_t *r);

/* ---- for the session; inside but where it says so ---- */

/* The session is over: what waits gets this code. */
void vez__lines_end(vez_cluster_t *c, int code);

/* A session has ended: what waits for permits is looked at again. */
void vez__lines_look(vez_cluster_t *c);

/* The request of this claim has left by its limits. */
void vez__claim_gave_up(struct vez__claim *claim);

/* Outside: frees claims that have ended. */
void vez__claims_free(vez_cluster_t *c, struct cds_list_head *ended);

#endif
