/* SPDX-License-Identifier: MIT */
/* The requests of an object as the servers list them. */
#ifndef VEZ__CLUSTER_LIST_H
#define VEZ__CLUSTER_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zookeeper/zookeeper.h>

#define VEZ__NODE 80       /* bytes of a request's name */
#define VEZ__INSIDE 40     /* bytes of a call that fit in its name */
#define VEZ__CALL_NODE 160 /* bytes of a call's name */

/* What a request's name says: how many permits it takes, or where its result goes; whose it is; and its place. */
struct vez__entry {
	uint64_t session;
	uint64_t id;
	uint64_t sum; /* in a list: of the permits of all up to this one */
	uint32_t n;
	int32_t number;
	const char *name;
	size_t called_at;   /* where its name says what is called; 0: it does not */
	size_t called_size; /* bytes of that */
};

/* Whether the place a is before b: numbers wrap. */
static inline bool vez__before(int32_t a, int32_t b)
{
	return (int32_t)((uint32_t)a - (uint32_t)b) < 0;
}

/* The name that a request is made with; the servers append its place. */
void vez__entry_name(char name[VEZ__NODE], uint32_t n, uint64_t session, uint64_t id);

/* The same of a call; what is called has VEZ__INSIDE bytes at the most. */
void vez__entry_name_call(char name[VEZ__CALL_NODE], uint32_t n, uint64_t session, uint64_t id, const void *called,
			  size_t size);

/* What is called, of one whose name says it: called_size bytes. */
void vez__entry_called(const struct vez__entry *e, const char *name, void *called);

/* False: it is no request's name. */
bool vez__entry_parse(struct vez__entry *e, const char *name);

/* The requests among these names, in the order of their places; the caller frees it. Entries point into names. Those of
 * sessions of which gone(arg, session) is true are left out; gone may be NULL. */
struct vez__entry *vez__entries_read(const struct String_vector *names, size_t *count,
				     bool (*gone)(void *arg, uint64_t session), void *arg);

/* The one at this place, or count. */
size_t vez__entries_find(const struct vez__entry *e, size_t count, int32_t number);

#endif
