/* SPDX-License-Identifier: MIT */
/* What is written down for inspection: by the engine, and by those synchronizers that are owned. The schedule
 * explorer's build leaves it out: there it is always off. */
#ifndef VEZ__RECORD_H
#define VEZ__RECORD_H

#include "../futex/atomic.h"
#include "vez/request.h"

/* What a request waits for, by the name of its header. */
enum vez__type {
	VEZ__MONITOR, VEZ__CALL, VEZ__SEM, VEZ__MUTEX, VEZ__RWLOCK, VEZ__COND, VEZ__EVENT, VEZ__LATCH, VEZ__BARRIER,
	VEZ__GROUP, VEZ__QUEUE, VEZ__SCHED, VEZ__ONCE, VEZ__SELECT, VEZ__COMPLETIONS, VEZ__REQUEST, VEZ__CANCEL,
	VEZ__CONSTRAINT, VEZ__SLEEP,
};

struct vez__record;

/* A wait of a thread: on its stack. record is NULL if it is not to be shown. */
struct vez__shown {
	struct vez__record *record;
	const vez_request_t *request;
	int64_t since;
	vez_deadline_t deadline;
};

#ifdef VEZ_EXPLORE
#define vez__inspecting() false
#define vez__inspect_ready() ((void)0)
#define vez__inspect_place(r, object, type) ((void)(object), (void)(type))
#define vez__inspect_place_at(r, object) ((void)(object))
#define vez__inspect_file(r, object, type, token) ((void)(object), (void)(token))
#define vez__inspect_decided(r) ((void)0)
#define vez__inspect_begin(shown, r, deadline) ((void)(shown))
#define vez__inspect_show(shown) ((void)(shown))
#define vez__inspect_hide(shown) ((void)(shown))
#define vez__inspect_may_move(r) ((void)0)
#define vez__inspect_moved(r, object) ((void)0)
#define vez__inspect_moves_no_more(r) ((void)0)
#define vez__inspect_owns(object) ((void)(object), false)
#define vez__inspect_disowns(object) ((void)(object))
#define vez__inspect_left(object) ((void)(object))
#else


/* Whether what happens is to be written down. */
static inline bool vez__inspecting(void)
{
	return vez__watches(VEZ__INSPECTED);
}

/* ---- asynchronous requests ---- */

/* Outside every monitor: for what will be written down inside there is memory. */
void vez__inspect_prepare(void);

static inline void vez__inspect_ready(void)
{
	if (vez__inspecting())
		vez__inspect_prepare();
}

/* Inside, before r is queued or its deadline set: it waits for this object, with this token. */
void vez__inspect_file(const vez_request_t *r, const void *object, enum vez__type type, const void *token);

/* r, which was filed, is settled, and still its completer's. Holding or not; signal handlers, too. */
void vez__inspect_decided(const vez_request_t *r);

/* ---- a thread's own request ---- */

/* Before r is queued: what it waits for. A thread's own request has no other use for these links, and later its token
 * is read by who fires, its key and room by who moves it. The low bits of both addresses make the type's number. */
static inline void vez__inspect_place(vez_request_t *r, const void *object, enum vez__type type)
{
	r->timer_.link_[0] = (char *)(uintptr_t)object + (type & 7);
	r->timer_.link_[1] = (char *)r->cancel_ + (type >> 3);
}

/* The same request waits for this object. */
static inline void vez__inspect_place_at(vez_request_t *r, const void *object)
{
	r->timer_.link_[0] = (char *)(uintptr_t)object + ((uintptr_t)r->timer_.link_[0] & 7);
}

void vez__inspect_begin_wait(struct vez__shown *shown, const vez_request_t *r, vez_deadline_t deadline);
void vez__inspect_show_wait(const struct vez__shown *shown);
void vez__inspect_hide_wait(const struct vez__shown *shown);

/* The thread of r begins to wait; is about to sleep; has woken. */
static inline void vez__inspect_begin(struct vez__shown *shown, const vez_request_t *r, vez_deadline_t deadline)
{
	shown->record = NULL;
	if (vez__inspecting())
		vez__inspect_begin_wait(shown, r, deadline);
}

static inline void vez__inspect_show(const struct vez__shown *shown)
{
	if (VEZ__UNLIKELY(shown->record != NULL))
		vez__inspect_show_wait(shown);
}

static inline void vez__inspect_hide(const struct vez__shown *shown)
{
	if (VEZ__UNLIKELY(shown->record != NULL))
		vez__inspect_hide_wait(shown);
}

/* ---- a request that is moved: a condition's ---- */

/* Outside: the record of the calling thread, if it is to be told that r moves. */
struct vez__record *vez__inspect_own_record(void);

/* Before r is queued: it may be moved. */
static inline void vez__inspect_may_move(vez_request_t *r)
{
	r->then_.record_ = vez__inspecting() ? vez__inspect_own_record() : NULL;
}

void vez__inspect_move(const vez_request_t *r, const void *object);
void vez__inspect_forget_move(struct vez__record *record);

/* Who moves r, to this mutex, inside that. */
static inline void vez__inspect_moved(const vez_request_t *r, const void *object)
{
	if (VEZ__UNLIKELY(r->then_.record_ != NULL))
		vez__inspect_move(r, object);
}

/* r has waited. */
static inline void vez__inspect_moves_no_more(const vez_request_t *r)
{
	if (VEZ__UNLIKELY(r->then_.record_ != NULL))
		vez__inspect_forget_move(r->then_.record_);
}

/* ---- owners ---- */

/* The calling thread has taken this object. True: it is known as its owner, until somebody says that it is not, which
 * is to be said before the object is given up. */
bool vez__inspect_owns(const void *object);
void vez__inspect_disowns(const void *object);

/* The calling thread, which may be known as the owner, is about to give the object up. Whether it was. */
bool vez__inspect_leaves(const void *object);

static inline void vez__inspect_left(const void *object)
{
	if (vez__watches(VEZ__RECORDED))
		vez__inspect_leaves(object);
}

#endif

#endif
