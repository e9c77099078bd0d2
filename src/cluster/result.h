/* SPDX-License-Identifier: MIT */
/* Where results come to: nodes of a session, each used for one call after another. */
#ifndef VEZ__CLUSTER_RESULT_H
#define VEZ__CLUSTER_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "call.h"
#include "list.h"
#include "slip.h"

/* All inside but where it says so. */
struct vez__result {
	struct vez__job job; /* first: removes its node */
	struct cds_list_head of_session;
	struct vez__result *next_free;
	vez_cluster_t *c;
	struct vez__slip *slip;
	uint32_t number;
	enum { VEZ__RESULT_ABSENT, VEZ__RESULT_MAKING, VEZ__RESULT_THERE } node;
	enum { VEZ__RESULT_BLANK, VEZ__RESULT_SETTING, VEZ__RESULT_SET } aim;
};

/* Outside: the path of all of them. */
void vez__results_path(const vez_cluster_t *c, char *path);

/* One for this call. */
struct vez__result *vez__result_take(vez_cluster_t *c, struct vez__slip *s);

/* Whether its node is there. If not, that is asked for; the slip is asked again what is next, or fails. */
bool vez__result_is_there(struct vez__result *r);

/* From here on the slip is told what its node says, and what it will say. */
void vez__result_listen(struct vez__result *r);

/* The slip is told what its node says now: that, or that there is no result. */
void vez__result_read(struct vez__result *r);

/* The call needs it no more. So many bytes have been in it. */
void vez__result_give_back(struct vez__result *r, size_t size);

/* What sets the node of the call that this entry stands for: to this note. */
void vez__result_edit(const vez_cluster_t *c, const struct vez__entry *e, const void *note, int size,
		      struct vez__edit *edit);

/* Outside: the session's memory goes. */
void vez__results_free(vez_cluster_t *c);

#endif
