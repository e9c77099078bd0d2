/* SPDX-License-Identifier: MIT */
/*
 * The disk head (Hoare, "Monitors", 1974): requests for a disk are served by the elevator: the head sweeps up as long
 * as somebody wants a cylinder above it, then down.
 *
 * Two rooms, each ordered by the distance in its direction. Who releases the head decides who is next and settles
 * that one.
 * Seen to fail: with one room, or with the same key in both, the order of service is another.
 */
#include "classic.h"

#define REQUESTS 8

static void gave_up(vez_monitor_t *m, vez_room_t *room, vez_request_t *r)
{
	(void)m, (void)room, (void)r; /* whoever leaves held nobody back: the head is busy */
}

static vez_monitor_t disk = VEZ_MONITOR_INITIALIZER(gave_up);
static vez_room_t upward = VEZ_ROOM_INITIALIZER, downward = VEZ_ROOM_INITIALIZER;
static int64_t position;
static bool busy, going_up = true; /* inside */

static void request(int64_t cylinder)
{
	vez_request_t r = VEZ_REQUEST_INITIALIZER;
	vez_monitor_enter(&disk);
	if (!busy) {
		busy = true;
		position = cylinder;
		vez_monitor_exit(&disk);
		return;
	}
	bool up = position < cylinder || (position == cylinder && going_up);
	vez_request_set_key(&r, up ? cylinder : -cylinder);
	vez_request_set_value(&r, NULL, (uint64_t)cylinder);
	check(vez_monitor_wait(&disk, up ? &upward : &downward, &r, VEZ_FOREVER, NULL) == 0);
}

static void release(void)
{
	vez_monitor_enter(&disk);
	if (!vez_room_first(going_up ? &upward : &downward))
		going_up = !going_up;
	vez_request_t *next = vez_room_first(going_up ? &upward : &downward);
	busy = next != NULL;
	if (next) {
		position = (int64_t)vez_request_value(next);
		vez_monitor_settle(&disk, next, 0);
	}
	vez_monitor_exit(&disk);
}

static int64_t served[REQUESTS]; /* by who has the head */
static size_t count;

static void *reader(void *arg)
{
	request((int64_t)(intptr_t)arg);
	served[count++] = position;
	release();
	return NULL;
}

int main(void)
{
	static const intptr_t asked[REQUESTS] = { 80, 20, 60, 95, 10, 55, 40, 70 };
	static const int64_t elevator[REQUESTS] = { 55, 60, 70, 80, 95, 40, 20, 10 };
	pthread_t threads[REQUESTS];
	request(50);
	for (size_t i = 0; i < REQUESTS; i++) {
		threads[i] = start(reader, (void *)asked[i]);
		await(vez_room_length(&upward) + vez_room_length(&downward) == i + 1);
	}
	release();
	for (size_t i = 0; i < REQUESTS; i++)
		finish(threads[i]);
	for (size_t i = 0; i < REQUESTS; i++)
		check(served[i] == elevator[i]);
	check(!busy && vez_monitor_destroy(&disk) == 0);
	return 0;
}
