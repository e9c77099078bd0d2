/* SPDX-License-Identifier: MIT */
/*
 * The buffer allocator (Hoare, "Monitors", 1974): streams take buffers one by one from a common pool, and when there is
 * none, a free one goes to the waiting stream that holds the fewest.
 *
 * A semaphore whose key is what the stream holds.
 * Seen to fail: with the key left out the greedy stream, which asked first, gets the next buffer.
 */
#include "classic.h"

#define STREAMS 4
#define BUFFERS 10

static vez_sem_t pool = VEZ_SEM_INITIALIZER(BUFFERS);
static int order[STREAMS];
static uint32_t served; /* by who was served: the pool serves one at a time below */

struct stream {
	int number;
	int64_t holds;
};

static void take_buffer(struct stream *s)
{
	check(vez_sem_acquire_key(&pool, 1, s->holds, VEZ_FOREVER, NULL) == 0);
	s->holds++;
}

static void *grow(void *arg)
{
	struct stream *s = arg;
	take_buffer(s);
	order[__atomic_fetch_add(&served, 1, __ATOMIC_ACQ_REL)] = s->number;
	return NULL;
}

int main(void)
{
	/* They hold 4, 3, 2 and 1 buffers, all there are, and ask for one more in this order. */
	struct stream streams[STREAMS];
	pthread_t threads[STREAMS];
	for (int i = 0; i < STREAMS; i++) {
		streams[i] = (struct stream){ i, 0 };
		for (int n = 0; n < STREAMS - i; n++)
			take_buffer(&streams[i]);
	}
	check(vez_sem_permits(&pool) == 0);
	for (int i = 0; i < STREAMS; i++) {
		threads[i] = start(grow, &streams[i]);
		await(vez_sem_waiters(&pool) == (size_t)i + 1);
	}
	for (uint32_t i = 0; i < STREAMS; i++) {
		check(vez_sem_release(&pool, 1) == 0);
		await(__atomic_load_n(&served, __ATOMIC_ACQUIRE) == i + 1);
	}
	for (int i = 0; i < STREAMS; i++) {
		finish(threads[i]);
		check(order[i] == STREAMS - 1 - i);
	}
	check(vez_sem_destroy(&pool) == 0);
	return 0;
}
