/* SPDX-License-Identifier: MIT */
/* The other sessions, and whether they live. */
#ifndef VEZ__CLUSTER_PEER_H
#define VEZ__CLUSTER_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "vez/cluster.h"

void vez__peers_path(const vez_cluster_t *c, char *path);
void vez__peer_path(const vez_cluster_t *c, uint64_t id, char *path);

/* Inside: from here on the end of that session has every line look (vez__lines_look). */
void vez__peer_watch(vez_cluster_t *c, uint64_t id);

/* Inside: whether that session is known to have ended. */
bool vez__peer_gone(void *c, uint64_t id);

void vez__peers_free(vez_cluster_t *c);

#endif
