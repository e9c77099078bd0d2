/* SPDX-License-Identifier: MIT */
/*
 * Finding the functions behind the preloaded ones.
 *
 * State: one pointer per function, NULL until it was looked for. Looking twice finds the same.
 * Invariants: R1 a lookup that comes round to this object again, as where the program's malloc has a mutex and dlsym
 *  allocates, is answered by the alias that the C library has for its own use.
 */
#include "real.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Where there are two generations of conditions, a lookup without a version finds the old one in some C libraries. */
#if defined(__x86_64__)
#define OLD "GLIBC_2.2.5"
#elif defined(__i386__)
#define OLD "GLIBC_2.0"
#endif

static const char *const names[REAL_COUNT] = {
	[REAL_COND_WAIT] = "pthread_cond_wait",
	[REAL_COND_TIMEDWAIT] = "pthread_cond_timedwait",
	[REAL_COND_SIGNAL] = "pthread_cond_signal",
	[REAL_COND_BROADCAST] = "pthread_cond_broadcast",
	[REAL_COND_CLOCKWAIT] = "pthread_cond_clockwait",
	[REAL_MUTEX_UNLOCK] = "pthread_mutex_unlock",
	[REAL_CND_WAIT] = "cnd_wait",
	[REAL_CND_TIMEDWAIT] = "cnd_timedwait",
	[REAL_CND_SIGNAL] = "cnd_signal",
	[REAL_CND_BROADCAST] = "cnd_broadcast",
	[REAL_MTX_UNLOCK] = "mtx_unlock",
};

extern int __pthread_mutex_unlock(pthread_mutex_t *) __attribute__((weak));

static void *_Atomic found[REAL_COUNT];
static _Thread_local int looking __attribute__((tls_model("initial-exec")));

/* The next one after this object's: the C library's, or that of another who stands before it. */
static void *next(enum real which)
{
	void *f = dlsym(RTLD_NEXT, names[which]);
#ifdef OLD
	if (which <= REAL_COND_LAST_OLD && f == dlvsym(RTLD_NEXT, names[which], OLD))
		f = dlvsym(RTLD_NEXT, names[which], "GLIBC_2.3.2");
#endif
	return f;
}

static void *look(enum real which)
{
	if (looking)
		return which == REAL_MUTEX_UNLOCK ? (void *)__pthread_mutex_unlock : NULL; /* R1 */
	looking = 1;
	void *f = next(which);
	looking = 0;
	if (f)
		atomic_store_explicit(&found[which], f, memory_order_relaxed);
	return f;
}

union real_function wakes__real(enum real which)
{
	/* Relaxed: what it points to is code that was there before this object was. */
	union real_function f = { .found = atomic_load_explicit(&found[which], memory_order_relaxed) };
	if (__builtin_expect(!f.found, 0))
		f.found = look(which);
	if (__builtin_expect(!f.found, 0))
		abort(); /* the program calls what its C library does not have */
	return f;
}
