/* SPDX-License-Identifier: MIT */
/*
 * vez/once.h - initialization that happens once, by whoever comes first, and may fail
 *
 *	static vez_once_t once = VEZ_ONCE_INITIALIZER;
 *	int rc = vez_once(&once, open_the_file, path);
 *
 * The first caller runs its function; those who come meanwhile wait. When the function returns 0, all of them return 0,
 * and so does every later call, at the cost of one load. When it returns anything else, that caller gets the value, and
 * the one that has waited longest tries with its own function; the others go on waiting, and sleep on. So nobody
 * returns 0 before some function has, and no two functions run at the same time.
 *
 * The function runs outside the monitor and may do anything, other once objects included (if two functions need each
 * other's object, they wait for each other for ever). It must return: if it jumps out, the others wait for
 * ever; an exception that leaves it, and pthread_exit in it, end the program.
 *
 * Ordering: everything in the function that returned 0 happens before every return of 0; everything in one that failed
 * happens before the next one's start.
 * Destroy: there is nothing to destroy. A thread whose call has returned may unmap the object, if no other thread will
 * call it again and nobody is queued; the call whose function returned 0 no longer touches it.
 * Signal handlers: no. fork: in the child, a once that another thread was running, or waited for, is to be initialized
 * anew. One that the forking thread itself is running goes on; but if the function fails there, though others had
 * waited, it is to be initialized anew, too. Not a pthread cancellation point, but the function may contain some: to be
 * cancelled in it ends the program, too.
 * Sources: pthread_once, made to report failure; execution delegation: C. Martins (2009).
 */
#ifndef VEZ_ONCE_H
#define VEZ_ONCE_H

#include "base.h"
#include "monitor.h"

VEZ_BEGIN_DECLS_

/* Without a tag: in C++ the function of that name would hide its constructor. */
typedef struct {
	struct vez__core core_;
	vez_request_t *queue_;
	uint64_t reserved_;
} vez_once_t;

VEZ_ASSERT_SIZE_(vez_once_t, 32);

/* A once whose function has not run. All-zero bytes are one, too. */
#define VEZ_ONCE_INITIALIZER { VEZ_CORE_INITIALIZER_(0), 0, 0 }

/* 0 once a function has returned 0; the code of the caller's own function if that was run and failed. EDEADLK from
 * inside a function that this object is running. */
int vez_once(vez_once_t *o, int (*fn)(void *), void *arg);

VEZ_END_DECLS_

#endif
