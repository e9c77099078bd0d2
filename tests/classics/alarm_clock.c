/* SPDX-License-Identifier: MIT */
/*
 * The alarm clock (Hoare, "Monitors", 1974): a thread asks to be woken n ticks from now.
 *
 * The room is ordered by the tick at which each sleeper is due, and each tick settles those who are due and nobody
 * else. With a condition variable every tick would wake every sleeper to look at the clock.
 * Seen to fail: a sleeper queued without its key wakes too late, behind longer sleepers.
 */
#include "classic.h"

#define SLEEPERS 8
#define TICKS 40

static vez_monitor_t clock_monitor = VEZ_MONITOR_INITIALIZER(NULL);
static vez_room_t sleepers = VEZ_ROOM_INITIALIZER;
static int64_t now; /* inside */

/* The tick at which the caller woke. */
static uint64_t wake_me(int64_t ticks)
{
	vez_request_t r = VEZ_REQUEST_INITIALIZER;
	vez_monitor_enter(&clock_monitor);
	vez_request_set_key(&r, now + ticks);
	vez_request_set_value(&r, NULL, (uint64_t)(now + ticks));
	check(vez_monitor_wait(&clock_monitor, &sleepers, &r, VEZ_FOREVER, NULL) == 0);
	return vez_request_value(&r);
}

/* Settles all who are due; their value becomes the time at which they woke. */
static void tick(void)
{
	vez_monitor_enter(&clock_monitor);
	now++;
	for (vez_request_t *r; (r = vez_room_first(&sleepers)) && vez_request_value(r) <= (uint64_t)now;) {
		vez_request_set_value(r, NULL, (uint64_t)now);
		vez_monitor_settle(&clock_monitor, r, 0);
	}
	vez_monitor_exit(&clock_monitor);
}

static uint64_t woke_at[SLEEPERS];

static void *sleeper(void *arg)
{
	size_t i = (size_t)arg;
	woke_at[i] = wake_me((int64_t)(i * 7 % SLEEPERS) * 5 + 1); /* asks for long and short ones in turn */
	return NULL;
}

int main(void)
{
	pthread_t threads[SLEEPERS];
	for (size_t i = 0; i < SLEEPERS; i++) {
		threads[i] = start(sleeper, (void *)i);
		await(vez_room_length(&sleepers) == i + 1);
	}
	for (int i = 0; i < TICKS; i++)
		tick();
	for (size_t i = 0; i < SLEEPERS; i++) {
		finish(threads[i]);
		check(woke_at[i] == i * 7 % SLEEPERS * 5 + 1);
	}
	check(vez_room_length(&sleepers) == 0);
	check(vez_monitor_destroy(&clock_monitor) == 0);
	return 0;
}
