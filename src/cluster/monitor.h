/* SPDX-License-Identifier: MIT */
/* Monitors for objects that are made of one. */
#ifndef VEZ__CLUSTER_MONITOR_H
#define VEZ__CLUSTER_MONITOR_H

#include "desk.h"

struct vez_cluster_monitor {
	struct vez__desk desk; /* first */
	const vez_cluster_operation_t *operations;
	size_t count;
	void *arg;
	unsigned char *saved;  /* VEZ_CLUSTER_STATE_MAX */
	unsigned char *result; /* VEZ_CLUSTER_BYTES_MAX */
};

/* The same as vez_cluster_monitor_open, of another kind. */
int vez__monitor_open(vez_cluster_monitor_t **made, vez_cluster_t *c, const struct vez__desk_rules *rules,
		      const char *kind, const char *name, uint32_t number, const vez_cluster_operation_t *operations,
		      size_t count, void *arg, vez_deadline_t deadline, vez_cancel_t *cancel);

/* What rules->serve is. */
void vez__monitor_serve(struct vez__desk *d, struct vez__batch *b);

#endif
