/* SPDX-License-Identifier: MIT */
/*
 * The functions that the preloaded ones stand before, found when one of them is first called: that may be before any
 * constructor of this object has run.
 */
#ifndef WAKES_REAL_H
#define WAKES_REAL_H

#include <pthread.h>
#include <threads.h>
#include <time.h>

enum real {
	REAL_COND_WAIT,
	REAL_COND_TIMEDWAIT,
	REAL_COND_SIGNAL,
	REAL_COND_BROADCAST,
	REAL_COND_LAST_OLD = REAL_COND_BROADCAST, /* so far there are two generations */
	REAL_COND_CLOCKWAIT,
	REAL_MUTEX_UNLOCK,
	REAL_CND_WAIT,
	REAL_CND_TIMEDWAIT,
	REAL_CND_SIGNAL,
	REAL_CND_BROADCAST,
	REAL_MTX_UNLOCK,
	REAL_COUNT
};

union real_function {
	void *found;
	int (*cond_wait)(pthread_cond_t *, pthread_mutex_t *);
	int (*cond_timedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
	int (*cond_clockwait)(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);
	int (*cond)(pthread_cond_t *);
	int (*mutex)(pthread_mutex_t *);
	int (*cnd_wait)(cnd_t *, mtx_t *);
	int (*cnd_timedwait)(cnd_t *, mtx_t *, const struct timespec *);
	int (*cnd)(cnd_t *);
	int (*mtx)(mtx_t *);
};

union real_function wakes__real(enum real which);

#endif
