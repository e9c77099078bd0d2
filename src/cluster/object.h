/* SPDX-License-Identifier: MIT */
/* An object's node: found, or made. */
#ifndef VEZ__CLUSTER_OBJECT_H
#define VEZ__CLUSTER_OBJECT_H

#include <stdint.h>
#include <urcu/list.h>

#include "list.h"
#include "session.h"

#define VEZ__OBJECT_PATH (VEZ__PATH - VEZ__CALL_NODE - 1) /* leaves room for a node below */

/* Whether this may be a name: 0, EINVAL, ENAMETOOLONG. */
int vez__name_check(const char *name);

/* Has the object of this kind and name be there, with this number in its value, and says where. A new one is made
 * together with these nodes below it, unless they are NULL. */
int vez__object_open(vez_cluster_t *c, const char *kind, const char *name, uint32_t number, const char *below,
		     const char *other, char path[VEZ__OBJECT_PATH], vez_deadline_t deadline, vez_cancel_t *cancel);

/* What an object that is open has to do with its session; all inside. Its memory is the session's, since the client may
 * name it until then. */
struct vez__thing {
	struct cds_list_head place;
	void (*end)(struct vez__thing *t, int code); /* the session is over: who waits gets this code; or NULL */
	void (*look)(struct vez__thing *t);          /* another session has ended, or it is time; or NULL */
	void (*free)(struct vez__thing *t);
};

/* Enters; 0, and inside: the session has it. Otherwise why not. */
int vez__thing_add(vez_cluster_t *c, struct vez__thing *t);

void vez__things_end(vez_cluster_t *c, int code);
void vez__things_look(vez_cluster_t *c);
void vez__things_free(vez_cluster_t *c);

#endif
