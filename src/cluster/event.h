/* SPDX-License-Identifier: MIT */
/* Events, for the session. */
#ifndef VEZ__CLUSTER_EVENT_H
#define VEZ__CLUSTER_EVENT_H

#include "vez/cluster.h"

/* Inside: the session is over: who waits gets this code. */
void vez__events_end(vez_cluster_t *c, int code);

void vez__events_free(vez_cluster_t *c);

#endif
