/* SPDX-License-Identifier: MIT */
/* A fixed number of places in static memory, taken and given back without a lock. Signal handlers, too. */
#ifndef VEZ__POOL_H
#define VEZ__POOL_H

#include <stdint.h>

struct vez__pool {
	uint64_t free;   /* bits 0-31 the place given back last, 0: none; bits 32-63 count how often one was taken */
	uint32_t unused; /* so many places were never taken */
	uint32_t *next;  /* of each place: the one given back before it */
};

/* A pool with places 1 to the size of this array less 1. */
#define VEZ__POOL(links) { 0, sizeof(links) / sizeof(links)[0] - 1, links }

/* A place that is the caller's until it is given back; 0: all are taken. */
uint32_t vez__pool_take(struct vez__pool *p);
void vez__pool_give(struct vez__pool *p, uint32_t place);

#endif
