/* SPDX-License-Identifier: MIT */
/*
 * The single resource (Hoare, "Monitors", 1974): acquire and release, one user at a time, first come first served.
 *
 * A semaphore of one: unlike a mutex it may be released by another thread than the one that acquired it.
 * Seen to fail: with two permits two users meet inside.
 */
#include "classic.h"

#define USERS 6
#define ROUNDS 2000

static vez_sem_t resource = VEZ_SEM_INITIALIZER(1);
static int inside, most;
static long uses; /* by who has the resource */

static void *user(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		check(vez_sem_acquire(&resource, 1) == 0);
		int users = __atomic_add_fetch(&inside, 1, __ATOMIC_RELAXED);
		if (users > most)
			most = users;
		uses++;
		if (i % 100 == 0)
			sched_yield();
		__atomic_sub_fetch(&inside, 1, __ATOMIC_RELAXED);
		check(vez_sem_release(&resource, 1) == 0);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[USERS];
	for (int i = 0; i < USERS; i++)
		threads[i] = start(user, NULL);
	for (int i = 0; i < USERS; i++)
		finish(threads[i]);
	check(most == 1 && uses == USERS * ROUNDS);
	check(vez_sem_permits(&resource) == 1 && vez_sem_destroy(&resource) == 0);
	return 0;
}
