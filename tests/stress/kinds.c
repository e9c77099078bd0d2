/* SPDX-License-Identifier: MIT */
/* What is stressed: vez/sem.h in both flavours, and a semaphore that a user builds on vez/monitor.h. */
#include "stress.h"

#include <string.h>

/* ---- vez/sem.h ---- */

static void fifo_init(void *obj, uint32_t permits)
{
	EXPECT(vez_sem_init(obj, permits, 0, 0) == 0, "init");
}

static void barging_init(void *obj, uint32_t permits)
{
	EXPECT(vez_sem_init(obj, permits, 0, VEZ_BARGING) == 0, "init");
}

static int sem_acquire(void *obj, uint32_t n, int64_t key, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	if (key == 0 && deadline == VEZ_FOREVER && !cancel)
		return vez_sem_acquire(obj, n);
	return vez_sem_acquire_key(obj, n, key, deadline, cancel);
}

static int sem_try_acquire(void *obj, uint32_t n)
{
	return vez_sem_try_acquire(obj, n);
}

static int sem_release(void *obj, uint32_t n)
{
	return vez_sem_release(obj, n);
}

static uint32_t sem_drain(void *obj)
{
	return vez_sem_drain(obj);
}

static int sem_close(void *obj)
{
	return vez_sem_close(obj);
}

static uint32_t sem_permits(void *obj)
{
	return vez_sem_permits(obj);
}

static size_t sem_waiters(void *obj)
{
	return vez_sem_waiters(obj);
}

static int sem_destroy(void *obj)
{
	return vez_sem_destroy(obj);
}

#define SEM_CALLS \
	sem_acquire, sem_try_acquire, sem_release, sem_drain, sem_close, sem_permits, sem_waiters, sem_destroy

const struct kind fifo = { "fifo", sizeof(vez_sem_t), fifo_init, SEM_CALLS };
const struct kind barging = { "barging", sizeof(vez_sem_t), barging_init, SEM_CALLS };

/* ---- on vez/monitor.h ---- */

struct user_sem {
	vez_monitor_t monitor;
	vez_room_t room;
	uint32_t permits;
	bool closed;
};

static void serve(struct user_sem *s)
{
	vez_request_t *r;
	while ((r = vez_room_first(&s->room)) && vez_request_value(r) <= s->permits) {
		s->permits -= (uint32_t)vez_request_value(r);
		vez_monitor_settle(&s->monitor, r, 0);
	}
}

static void gave_up(vez_monitor_t *m, vez_room_t *room, vez_request_t *r)
{
	(void)room;
	(void)r;
	serve((struct user_sem *)m);
}

static void user_init(void *obj, uint32_t permits)
{
	struct user_sem *s = obj;
	memset(s, 0, sizeof *s);
	vez_monitor_init(&s->monitor, gave_up);
	s->permits = permits;
}

static int user_acquire(void *obj, uint32_t n, int64_t key, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	struct user_sem *s = obj;
	vez_request_t r = VEZ_REQUEST_INITIALIZER;
	vez_request_set_key(&r, key);
	vez_request_set_value(&r, NULL, n);
	vez_monitor_enter(&s->monitor);
	bool free = !vez_room_first(&s->room) && s->permits >= n;
	if (!free && !s->closed)
		return vez_monitor_wait(&s->monitor, &s->room, &r, deadline, cancel);
	if (!s->closed)
		s->permits -= n;
	int rc = s->closed ? VEZ_ECLOSED : 0;
	vez_monitor_exit(&s->monitor);
	return rc;
}

static int user_try_acquire(void *obj, uint32_t n)
{
	struct user_sem *s = obj;
	int rc = EBUSY;
	vez_monitor_enter(&s->monitor);
	if (!vez_room_first(&s->room) && s->permits >= n) {
		s->permits -= n;
		rc = 0;
	}
	vez_monitor_exit(&s->monitor);
	return rc;
}

static int user_release(void *obj, uint32_t n)
{
	struct user_sem *s = obj;
	vez_monitor_enter(&s->monitor);
	s->permits += n;
	serve(s);
	vez_monitor_exit(&s->monitor);
	return 0;
}

static uint32_t user_drain(void *obj)
{
	struct user_sem *s = obj;
	vez_monitor_enter(&s->monitor);
	uint32_t drained = s->permits;
	s->permits = 0;
	vez_monitor_exit(&s->monitor);
	return drained;
}

static int user_close(void *obj)
{
	struct user_sem *s = obj;
	vez_monitor_enter(&s->monitor);
	s->closed = true;
	for (vez_request_t *r; (r = vez_room_first(&s->room));)
		vez_monitor_settle(&s->monitor, r, VEZ_ECLOSED);
	vez_monitor_exit(&s->monitor);
	return 0;
}

static uint32_t user_permits(void *obj)
{
	struct user_sem *s = obj;
	vez_monitor_enter(&s->monitor);
	uint32_t permits = s->permits;
	vez_monitor_exit(&s->monitor);
	return permits;
}

static size_t user_waiters(void *obj)
{
	return vez_room_length(&((struct user_sem *)obj)->room);
}

static int user_destroy(void *obj)
{
	return vez_monitor_destroy(&((struct user_sem *)obj)->monitor);
}

const struct kind user = { "user", sizeof(struct user_sem), user_init, user_acquire, user_try_acquire, user_release,
			   user_drain, user_close, user_permits, user_waiters, user_destroy };
