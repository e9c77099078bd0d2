/* SPDX-License-Identifier: MIT */
/* Another who stands before the C library, as a sanitizer does, and says how often it was called. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static int calls;

int pthread_cond_broadcast(pthread_cond_t *cond)
{
	int (*real)(pthread_cond_t *);
	*(void **)&real = dlvsym(RTLD_NEXT, "pthread_cond_broadcast", "GLIBC_2.3.2");
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_cond_broadcast");
	calls++;
	return real(cond);
}

static __attribute__((destructor)) void say(void)
{
	printf("%d broadcasts\n", calls);
}
