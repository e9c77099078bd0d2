/* SPDX-License-Identifier: MIT */
/*
 * The traffic counter (M. Grand, Patterns in Java: Single Threaded Execution): sensors in several lanes report vehicles
 * while a console reads the count and starts it again at zero. No vehicle may be lost or counted twice.
 *
 * A mutex around the count.
 * Seen to fail: without the mutex around the sensors' part, or with a console that clears after it unlocks, the
 * totals differ.
 */
#include "classic.h"

#define LANES 4
#define VEHICLES 20000

static vez_mutex_t mutex = VEZ_MUTEX_INITIALIZER;
static int count; /* under the mutex */
static int lanes_left = LANES;

static void vehicle_passed(void)
{
	check(vez_mutex_lock(&mutex) == 0);
	int seen = count;
	if (seen % 64 == 0)
		sched_yield();
	count = seen + 1;
	check(vez_mutex_unlock(&mutex) == 0);
}

static int read_and_clear(void)
{
	check(vez_mutex_lock(&mutex) == 0);
	int seen = count;
	count = 0;
	check(vez_mutex_unlock(&mutex) == 0);
	return seen;
}

static void *sensor(void *arg)
{
	(void)arg;
	for (int i = 0; i < VEHICLES; i++)
		vehicle_passed();
	__atomic_sub_fetch(&lanes_left, 1, __ATOMIC_RELEASE);
	return NULL;
}

int main(void)
{
	pthread_t lanes[LANES];
	int total = 0;
	for (int i = 0; i < LANES; i++)
		lanes[i] = start(sensor, NULL);
	while (__atomic_load_n(&lanes_left, __ATOMIC_ACQUIRE) > 0)
		total += read_and_clear();
	for (int i = 0; i < LANES; i++)
		finish(lanes[i]);
	check(total + read_and_clear() == LANES * VEHICLES);
	check(vez_mutex_destroy(&mutex) == 0);
	return 0;
}
