/* SPDX-License-Identifier: MIT */
/* The herd of herd.h in C11's threads, 4 threads and 25 rounds; 10 waits whose time is over; 7 signals to nobody. */
#include <stdatomic.h>
#include <threads.h>
#include <time.h>

#define SIZE 4
#define ROUNDS 25

static mtx_t mutex;
static cnd_t cond;
static int waiting, turn, begun;

static int member(void *arg)
{
	(void)arg;
	mtx_lock(&mutex);
	int me = begun++;
	for (;;) {
		do {
			waiting++;
			cnd_wait(&cond, &mutex);
		} while (turn != me && turn >= 0);
		if (turn < 0)
			break;
		mtx_unlock(&mutex);
		mtx_lock(&mutex);
	}
	mtx_unlock(&mutex);
	return 0;
}

static void wake(int next)
{
	for (;;) {
		mtx_lock(&mutex);
		if (waiting == SIZE)
			break;
		mtx_unlock(&mutex);
		thrd_yield();
	}
	waiting = 0;
	turn = next;
	cnd_broadcast(&cond);
	mtx_unlock(&mutex);
}

int main(void)
{
	thrd_t thread[SIZE];
	struct timespec past = { 1, 0 };
	if (mtx_init(&mutex, mtx_timed) != thrd_success || cnd_init(&cond) != thrd_success)
		return 1;
	for (int i = 0; i < SIZE; i++)
		if (thrd_create(&thread[i], member, NULL) != thrd_success)
			return 1;
	for (int i = 0; i < ROUNDS; i++)
		wake(i % SIZE);
	wake(-1);
	for (int i = 0; i < SIZE; i++)
		thrd_join(thread[i], NULL);
	mtx_lock(&mutex);
	for (int i = 0; i < 10; i++)
		if (cnd_timedwait(&cond, &mutex, &past) != thrd_timedout)
			return 1;
	mtx_unlock(&mutex);
	for (int i = 0; i < 7; i++)
		cnd_signal(&cond);
	return 0;
}
