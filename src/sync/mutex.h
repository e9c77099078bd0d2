/* SPDX-License-Identifier: MIT */
/* What conditions need of a mutex. */
#ifndef VEZ__MUTEX_H
#define VEZ__MUTEX_H

#include "../engine/core.h"
#include "vez/mutex.h"

/* Whether the calling thread may unlock it, as far as that is known. */
bool vez__mutex_is_mine(const vez_mutex_t *m);

/* Gives up all the caller's holds at once, and says how many they were. */
uint32_t vez__mutex_release_all(vez_mutex_t *m);

/* Takes it back with as many holds, whatever it takes. */
void vez__mutex_retake(vez_mutex_t *m, uint32_t holds);

/* Queues requests that were taken out of a condition's queue (linked by with_.ptr_, NULL at the end; value_: the number of
 * each request's thread; it will own the mutex once when its wait ends). */
void vez__mutex_queue(vez_mutex_t *m, vez_request_t *first);

/* Whether r, which has waited, was granted a mutex so. */
bool vez__mutex_was_queued(const vez_request_t *r);

/* The caller was granted the mutex by vez__mutex_queue: it has this many holds. */
void vez__mutex_restore(vez_mutex_t *m, uint32_t holds);

#endif
