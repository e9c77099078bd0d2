/* SPDX-License-Identifier: MIT */
/* An object's node: found, or made. */
#ifndef VEZ__CLUSTER_OBJECT_H
#define VEZ__CLUSTER_OBJECT_H

#include <stdint.h>

#include "session.h"

#define VEZ__OBJECT_PATH (VEZ__PATH - 81) /* leaves room for a node below */

/* Has the object of this kind and name be there, with this number in its value, and says where. A new one is made
 * together with this node below it, unless that is NULL. */
int vez__object_open(vez_cluster_t *c, const char *kind, const char *name, uint32_t number, const char *below,
		     char path[VEZ__OBJECT_PATH], vez_deadline_t deadline, vez_cancel_t *cancel);

#endif
