/* SPDX-License-Identifier: MIT */
/* Monitors for objects that are made of one. */
#ifndef VEZ__CLUSTER_MONITOR_H
#define VEZ__CLUSTER_MONITOR_H

#include "desk.h"

struct vez_cluster_monitor {
	struct vez__desk desk; /* first */
	/* Has this call run, or answers it; false: it cannot yet. */
	bool (*run)(struct vez_cluster_monitor *m, struct vez__batch *b, struct vez__served *s);
	/* The transaction takes no more. */
	bool (*full)(const struct vez_cluster_monitor *m, const struct vez__batch *b);
	const vez_cluster_operation_t *operations;
	size_t count;
	void *arg;
	unsigned char *saved;  /* VEZ_CLUSTER_STATE_MAX */
	unsigned char *result; /* VEZ_CLUSTER_BYTES_MAX */
};

/* Has those in front of end that wait run, as long as one of them can go. */
void vez__monitor_run_waiting(struct vez_cluster_monitor *m, struct vez__batch *b, size_t end);

/* Of names, one after another: begin with 0. */
uint32_t vez__monitor_hash(uint32_t hash, const char *name);

/* The same as vez_cluster_monitor_open, of another kind. */
int vez__monitor_open(vez_cluster_monitor_t **made, vez_cluster_t *c, const struct vez__desk_rules *rules,
		      const char *kind, const char *name, uint32_t number, const vez_cluster_operation_t *operations,
		      size_t count, void *arg, vez_deadline_t deadline, vez_cancel_t *cancel);

/* What rules->serve is. */
void vez__monitor_serve(struct vez__desk *d, struct vez__batch *b);

#endif
