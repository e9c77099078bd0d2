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

/* Where there are two generations of conditions, a lookup without a version may find the old one. */
#if defined(__x86_64__) || defined(__i386__)
#define CONDITIONS "GLIBC_2.3.2"
#else
#define CONDITIONS NULL
#endif

static const struct {
	const char *name, *version;
} names[REAL_COUNT] = {
	[REAL_COND_WAIT] = { "pthread_cond_wait", CONDITIONS },
	[REAL_COND_TIMEDWAIT] = { "pthread_cond_timedwait", CONDITIONS },
	[REAL_COND_CLOCKWAIT] = { "pthread_cond_clockwait", NULL },
	[REAL_COND_SIGNAL] = { "pthread_cond_signal", CONDITIONS },
	[REAL_COND_BROADCAST] = { "pthread_cond_broadcast", CONDITIONS },
	[REAL_MUTEX_UNLOCK] = { "pthread_mutex_unlock", NULL },
	[REAL_CND_WAIT] = { "cnd_wait", NULL },
	[REAL_CND_TIMEDWAIT] = { "cnd_timedwait", NULL },
	[REAL_CND_SIGNAL] = { "cnd_signal", NULL },
	[REAL_CND_BROADCAST] = { "cnd_broadcast", NULL },
	[REAL_MTX_UNLOCK] = { "mtx_unlock", NULL },
};

extern int __pthread_mutex_unlock(pthread_mutex_t *) __attribute__((weak));

static void *_Atomic found[REAL_COUNT];
static _Thread_local int looking __attribute__((tls_model("initial-exec")));

static void *look(enum real which)
{
	if (looking)
		return which == REAL_MUTEX_UNLOCK ? (void *)__pthread_mutex_unlock : NULL; /* R1 */
	looking = 1;
	void *f = NULL;
	if (names[which].version)
		f = dlvsym(RTLD_NEXT, names[which].name, names[which].version);
	if (!f)
		f = dlsym(RTLD_NEXT, names[which].name);
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
