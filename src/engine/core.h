/* SPDX-License-Identifier: MIT */
/*
 * A core: the short lock around a synchronizer's state, and how a thread stays inside.
 *
 * The synchronizers of vez keep their state in the upper bits of the core's word, so that a fast path is one exchange
 * on it; and others may change that state while somebody is inside (a release does not wait). So a thread that leaves
 * looks at the very word that its leaving exchange expects (serve), and one that gives up rolls back its reservation by
 * such a word, too (roll_back).
 */
#ifndef VEZ__CORE_H
#define VEZ__CORE_H

#include "../futex/atomic.h"
#include "../futex/lock.h"
#include "../futex/slot.h"
#include "../futex/word.h"
#include "record.h"
#include "room.h"

/* What a thread has settled inside a core, in order, to be published when it has left; those whom it has asked to
 * retry, and who sleep in their slots; and the shared word whose followers are let go then, or NULL. On its own stack;
 * a user's monitor, which it may leave by another call, has its own, and nobody in a slot, and no followers. */
struct vez__stay {
	struct vez__core *core;
	struct vez__pending *pending;
	struct vez__pending own;
	struct vez__neighbours asked;
	struct vez__shared *followed;
};

/* Where the threads sleep that wait in a queue. */
enum vez__sleeps {
	VEZ__APART,    /* each on its own word: they go on one by one */
	VEZ__BESIDE,   /* in their slots, as several may go on together; but who comes when nobody waits there sleeps
	                * on its own word, where it meets no strangers */
	VEZ__TOGETHER, /* in their slots: mostly all go on */
};

/* What differs from one queue of a synchronizer to the next. All functions but fast and attempt run inside; each may be
 * NULL where it says so. A request's rules_ are these in all of them but fast. */
struct vez__rules {
	/* What the object is; where in it the core lies. */
	enum vez__type type;
	size_t object;

	/* Where, seen from the core, the first request of the queue is kept; for rooms of users, VEZ__IN_ROOM. */
	size_t queue;
	/* Where the number of the requests in this queue alone is kept (uint32_t); 0: nowhere. */
	size_t length;
	/* Where what is pending is kept (struct vez__pending), if not on the stack of the thread inside; else 0. */
	size_t pending;
	enum vez__sleeps sleeps;
	/* Where the number of the shared word lies (uint16_t) on which followers sleep; 0: there are none. */
	size_t shared;
	/* How the word tells of those who are queued here, where mark and roll_back are NULL: these bits are set while
	 * there is one, and this is added for each. */
	uint64_t waiting;
	uint64_t each;

	/* Outside: takes what r wants, if nobody waits and nobody is inside. NULL: never. */
	bool (*fast)(struct vez__core *c, vez_request_t *r);
	/* Outside: one attempt without waiting, after those who wait: 0, EBUSY or an error. */
	int (*attempt)(struct vez__core *c, vez_request_t *r);

	/* By seen nothing is left to serve: takes what r wants, if it can be had now: 0. EBUSY: r must wait. EAGAIN:
	 * the word has changed. Or an error. */
	int (*take)(struct vez__stay *in, uint64_t seen, vez_request_t *r);
	/* By seen nothing is left to serve, and r is about to be queued: the word says so from now on. False: it has
	 * changed. NULL: waiting and each. */
	bool (*mark)(struct vez__stay *in, uint64_t seen, vez_request_t *r);

	/* The state reads seen: carries out one thing that can be done now (grants a request, corrects a mark). True:
	 * something was done, or the state has changed: look again. False: nothing is left to do. NULL: never. */
	bool (*serve)(struct vez__stay *in, uint64_t seen);
	/* r, which is queued, is to leave without being granted, and by seen nothing is left to serve: takes its
	 * reservation back. False: the state has changed, nothing was done; or r was found to be due, and is settled.
	 * NULL: waiting and each. */
	bool (*roll_back)(struct vez__stay *in, uint64_t seen, vez_request_t *r);
	/* A thread that was asked to retry, or whose limit has passed, has entered. May be NULL. */
	void (*entered)(struct vez__stay *in);
	/* The thread of r, which was asked to retry, has entered: settles r (vez__settle_own) if it can go now. May
	 * be NULL. */
	void (*retry)(struct vez__stay *in, vez_request_t *r);
	/* r has given up. May be NULL. */
	void (*gave_up)(struct vez__stay *in, vez_request_t *r);

	/* Serve queues what arrives from outside, and may set deadlines: the library's thread is told by whoever
	 * leaves. */
	bool gathers;
	/* Who waits here waits for its token: a fire grants it, and for inspection that token is the object. */
	bool fired_is_granted;
};

#define VEZ__IN_ROOM SIZE_MAX

/* The object of which m is the core. Each begins with its core, but for vez_object_t. */
static inline void *vez__object_of(const struct vez__core *c, const struct vez__rules *rules)
{
	return (char *)(uintptr_t)c - rules->object;
}

/* The number of the shared word on which followers sleep; 0: none yet. */
static inline uint16_t *vez__shared_of(const struct vez__core *c, const struct vez__rules *rules)
{
	return (uint16_t *)((char *)(uintptr_t)c + rules->shared);
}

/* The caller has entered by an exchange of its own. */
static inline void vez__entered(struct vez__stay *in, struct vez__core *c)
{
	*in = (struct vez__stay){ .core = c, .pending = &in->own };
}

/* Waits until nobody else is inside, and enters. */
static inline void vez__enter(struct vez__stay *in, struct vez__core *c)
{
	vez__lock_enter(&c->word_);
	vez__entered(in, c);
}

static inline uint64_t vez__word_of(const struct vez__stay *in)
{
	return vez__load(&in->core->word_, relaxed);
}

/* Exchanges the word for next, if it is still as seen. */
static inline bool vez__change(struct vez__stay *in, uint64_t seen, uint64_t next)
{
	return vez__cas(&in->core->word_, &seen, next, acq_rel);
}

/* Inside: serves until nothing is left. */
void vez__serve_all(struct vez__stay *in, const struct vez__rules *rules);

/* Serves until nothing is left, and leaves; what is pending is in in->own then, and nobody else's. */
void vez__leave_pending(struct vez__stay *in, const struct vez__rules *rules);

/* Has the leaver publish r. */
static inline void vez__pend(struct vez__pending *pending, vez_request_t *r)
{
	vez_request_t *last = pending->last_;
	r->next_ = last ? last->next_ : r;
	if (last)
		last->next_ = r;
	pending->last_ = r;
}

/* The requests that are pending, as a list linked by next_, the oldest first; none is pending any more. */
static inline vez_request_t *vez__pending_take(struct vez__pending *pending)
{
	vez_request_t *first = NULL;
	if (pending->last_) {
		first = pending->last_->next_;
		pending->last_->next_ = NULL;
		pending->last_ = NULL;
	}
	return first;
}

/* Outside: publishes the requests of such a list; those whose threads sleep on their own words, or in their slots. */
void vez__publish_list(vez_request_t *first);
void vez__publish_slots(vez_request_t *first);

/* Leaves a core on which only threads wait, each on its own word, and which serves nobody; then publishes. */
void vez__leave_threads(struct vez__stay *in);

/* Inside: one request more, or less, because of which a thread is still to enter though it is settled. */
void vez__expect(struct vez__stay *in);
void vez__came(struct vez__stay *in);

/* Inside: how many there are. Asks to be told when there are none, if there are some: vez__await_none then sleeps. */
uint32_t vez__expected(struct vez__stay *in);
void vez__await_none(struct vez__core *c);

#endif
