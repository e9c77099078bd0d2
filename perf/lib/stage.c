/* SPDX-License-Identifier: MIT */
/* Guards and bodies on a vez monitor, and on pthread conditions. */
#include <pthread.h>
#include <stdlib.h>
#include <vez/monitor.h>

#include "perf.h"
#include "stage.h"

/* ---- vez ---- */

struct vez_stage {
	vez_monitor_t monitor;
	vez_room_t rooms[STAGE_KINDS];
};

struct waiting {
	bool (*guard)(void *arg);
	void (*body)(void *arg);
	void *arg;
};

static void *vez_create(void)
{
	struct vez_stage *s = calloc(1, sizeof *s);
	if (!s)
		perf_fail("no memory");
	return s;
}

static void vez_destroy(void *stage)
{
	struct vez_stage *s = stage;
	if (vez_monitor_destroy(&s->monitor) != 0)
		perf_fail("the monitor is still in use");
	free(s);
}

static void vez_await(void *stage, unsigned kind, bool (*guard)(void *arg), void (*body)(void *arg), void *arg)
{
	struct vez_stage *s = stage;
	vez_monitor_enter(&s->monitor);
	if (!vez_room_first(&s->rooms[kind]) && guard(arg)) {
		body(arg);
		vez_monitor_exit(&s->monitor);
		return;
	}
	struct waiting waiting = { guard, body, arg };
	vez_request_t r = VEZ_REQUEST_INITIALIZER;
	vez_request_set_value(&r, &waiting, 0);
	vez_monitor_wait(&s->monitor, &s->rooms[kind], &r, VEZ_FOREVER, NULL);
}

/* Inside: all of a kind wait for the same thing, so the first that cannot go ends it. */
static void serve(struct vez_stage *s, unsigned kind)
{
	for (vez_request_t *r; (r = vez_room_first(&s->rooms[kind]));) {
		struct waiting *w = vez_request_ptr(r);
		if (!w->guard(w->arg))
			return;
		w->body(w->arg);
		vez_monitor_settle(&s->monitor, r, 0);
	}
}

static void vez_change(void *stage, unsigned kind, void (*body)(void *arg), void *arg)
{
	struct vez_stage *s = stage;
	vez_monitor_enter(&s->monitor);
	body(arg);
	for (unsigned i = 0; i < STAGE_KINDS; i++)
		if (kind == i || kind == STAGE_KINDS)
			serve(s, i);
	vez_monitor_exit(&s->monitor);
}

const struct stage_impl stage_vez = { "vez", vez_create, vez_destroy, vez_await, vez_change };

/* ---- pthreads ---- */

struct cond_stage {
	pthread_mutex_t lock;
	pthread_cond_t conds[STAGE_KINDS];
};

static void *cond_create(void)
{
	struct cond_stage *s = calloc(1, sizeof *s);
	if (!s)
		perf_fail("no memory");
	pthread_mutex_init(&s->lock, NULL);
	for (unsigned i = 0; i < STAGE_KINDS; i++)
		pthread_cond_init(&s->conds[i], NULL);
	return s;
}

static void cond_destroy(void *stage)
{
	struct cond_stage *s = stage;
	for (unsigned i = 0; i < STAGE_KINDS; i++)
		pthread_cond_destroy(&s->conds[i]);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static void cond_await(void *stage, unsigned kind, bool (*guard)(void *arg), void (*body)(void *arg), void *arg)
{
	struct cond_stage *s = stage;
	pthread_mutex_lock(&s->lock);
	while (!guard(arg))
		pthread_cond_wait(&s->conds[kind], &s->lock);
	body(arg);
	pthread_mutex_unlock(&s->lock);
}

static void only_await(void *stage, unsigned kind, bool (*guard)(void *arg), void (*body)(void *arg), void *arg)
{
	(void)kind;
	cond_await(stage, 0, guard, body, arg);
}

static void locked(struct cond_stage *s, void (*body)(void *arg), void *arg)
{
	pthread_mutex_lock(&s->lock);
	body(arg);
	pthread_mutex_unlock(&s->lock);
}

static void only_change(void *stage, unsigned kind, void (*body)(void *arg), void *arg)
{
	struct cond_stage *s = stage;
	(void)kind;
	locked(s, body, arg);
	pthread_cond_broadcast(&s->conds[0]);
}

static void kinds_change(void *stage, unsigned kind, void (*body)(void *arg), void *arg)
{
	struct cond_stage *s = stage;
	locked(s, body, arg);
	for (unsigned i = 0; i < STAGE_KINDS; i++)
		if (kind == i || kind == STAGE_KINDS)
			pthread_cond_broadcast(&s->conds[i]);
}

static void signal_change(void *stage, unsigned kind, void (*body)(void *arg), void *arg)
{
	struct cond_stage *s = stage;
	if (kind == STAGE_KINDS) {
		kinds_change(s, kind, body, arg);
		return;
	}
	locked(s, body, arg);
	pthread_cond_signal(&s->conds[kind]);
}

const struct stage_impl stage_cond_broadcast = { "cond-broadcast", cond_create, cond_destroy, only_await, only_change };
const struct stage_impl stage_cond_kinds = { "cond-kinds", cond_create, cond_destroy, cond_await, kinds_change };
const struct stage_impl stage_cond_signal = { "cond-signal", cond_create, cond_destroy, cond_await, signal_change };
