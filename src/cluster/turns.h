/* SPDX-License-Identifier: MIT */
/* Whose turn it is in a line of readers and writers that alternate. */
#ifndef VEZ__CLUSTER_TURNS_H
#define VEZ__CLUSTER_TURNS_H

#include "list.h"

#define VEZ__EPOCH 24 /* bytes of an epoch's name */
#define VEZ__EPOCH_PREFIX "epoch-"

/* What a list says. */
struct vez__turns {
	size_t writer;          /* where the first writer stands; if there is none, how many stand in line */
	size_t admitted;        /* readers among so many of the first have been admitted; the last one is a reader */
	int32_t number;         /* the epoch's */
	char epoch[VEZ__EPOCH]; /* its name; "": there is none */
};

/* A writer takes more than one permit. */
static inline bool vez__writes(uint32_t n)
{
	return n > 1;
}

/* e[0..count) are the requests among these names (vez__entries_read). */
void vez__turns_read(struct vez__turns *t, const struct String_vector *names, const struct vez__entry *e,
		     size_t count);

/* Whether the one at this place holds. */
bool vez__turns_holds(const struct vez__turns *t, const struct vez__entry *e, size_t at);

/* Of one that does not: what it waits for is among so many of the first. */
size_t vez__turns_bound(const struct vez__turns *t, const struct vez__entry *e, size_t at);

/* Whether one that takes n permits and has left its place, number, has to tell the one at this place. */
bool vez__turns_concerns(const struct vez__turns *t, const struct vez__entry *e, size_t at, uint32_t n, int32_t number);

/* Whether the epoch says nothing any more, and is so far behind this number that it would soon be before it. */
bool vez__turns_outlived(const struct vez__turns *t, int32_t number);

#endif
