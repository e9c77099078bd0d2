/* SPDX-License-Identifier: MIT */
/* The gate that an event is, for objects that have one. */
#ifndef VEZ__CLUSTER_EVENT_H
#define VEZ__CLUSTER_EVENT_H

#include "vez/cluster.h"

/* The event whose node is "closed" below this one. */
int vez__event_below(vez_cluster_event_t **made, vez_cluster_t *c, const char *path);

#endif
