/* SPDX-License-Identifier: MIT */
/* A thread asks the servers something and waits for the answer. */
#ifndef VEZ__CLUSTER_ASK_H
#define VEZ__CLUSTER_ASK_H

#include "call.h"

#define VEZ__VALUE 128 /* bytes of a value that are of interest */

struct vez__question {
	enum vez__kind { VEZ__ASK_EXISTS, VEZ__ASK_GET, VEZ__ASK_CREATE, VEZ__ASK_DELETE } kind;
	const char *path;
	const char *value;  /* of a create */
	int flags;          /* of a create */
	const char *second; /* nodes that are created in the same step, or NULL */
	const char *third;
};

struct vez__reply {
	int rc; /* the server's */
	char value[VEZ__VALUE];
};

/* Waits for a connection, asks, and asks again if that broke: what is asked must bear to be done twice. 0, and *reply
 * is what the server said; ETIMEDOUT, ECANCELED, VEZ_ELOST, VEZ_ECLOSED. */
int vez__ask(vez_cluster_t *c, const struct vez__question *q, struct vez__reply *reply, vez_deadline_t deadline,
	     vez_cancel_t *cancel);

/* Inside: what waits in the room asks gets this result; or only who waits for a connection. */
void vez__asks_end(vez_cluster_t *c, int result, bool connection_only);

/* Inside: the question that a request which has left was for; NULL: none. */
void vez__ask_gave_up(void *question);

#endif
