/* SPDX-License-Identifier: MIT */
/* A core is left for good: what was settled there is published, and what is asynchronous tells its owner. */
#ifndef VEZ__COMPLETION_H
#define VEZ__COMPLETION_H

#include "core.h"
#include "hold.h"

/* How many functions of others a call runs, and the library's thread between two looks at what is due. Tests set it. */
extern unsigned vez__calls_batch;

/* Between these, which may nest, all that this thread completes counts as one call's: it runs a batch of functions of
 * others, and leaves the rest to the library's thread. Outside every core. */
void vez__calls_begin(void);
void vez__calls_end(void);

/* Whether this thread runs a function of a request. */
bool vez__calls_now(void);

/* From here on this is the library's thread: it calls nothing but by vez__calls_do_rest, which runs a batch. False:
 * nothing was left to it. */
void vez__calls_by_library(void);
bool vez__calls_do_rest(void);
bool vez__calls_is_library(void);

/* Enters, and holds; leaves a core on which only threads wait, and lets go. */
static inline void vez__enter_holding(struct vez__stay *in, struct vez__core *c)
{
	vez__hold();
	vez__enter(in, c);
}

static inline void vez__leave_holding(struct vez__stay *in)
{
	vez__leave_threads(in);
	vez__let_go();
}

/* Leaves when there is nothing left to serve; then publishes all that was settled inside. */
void vez__leave(struct vez__stay *in, const struct vez__rules *rules);

/* The same for a caller that has entered by an exchange of its own, and settled nothing. */
void vez__leave_entered(struct vez__core *c, const struct vez__rules *rules);

/* Between 1 and -1, which may nest, this call may be in a signal handler: it makes no thread, unless it knows that it
 * is not in one. */
void vez__calls_in_handler(int more);

/* The same for a call that may be in a signal handler. */
void vez__leave_in_handler(struct vez__core *c, const struct vez__rules *rules);

/* Outside: publishes what was settled in cores that have been left. */
void vez__publish(struct vez__pending *pending);

/* The same for a stay of the caller's that has been left; and wakes those whom it has asked to retry. */
void vez__publish_stay(struct vez__stay *in);

/* Inside, for destroy: leaves with EBUSY if a request is queued or held says so. Otherwise leaves, and returns 0 when
 * everyone who was still to enter because of a settled request has: from then on nobody touches the core. */
int vez__retire(struct vez__stay *in, const struct vez__rules *rules, bool held);

/* The whole of destroy: the object is in use while its word has one of these bits. */
int vez__destroy(struct vez__core *c, const struct vez__rules *rules, uint64_t bits);

/* Takes r off its token's list and off the alarm clock. Holding. */
void vez__forget_limits(vez_request_t *r);

/* Outside every core: r, which was filed, is complete, and calls nothing: the call that filed it says so. Those who
 * wait for it are told. */
void vez__complete_at_once(vez_request_t *r);

/* Outside every core: a member of a wait-for-any is complete. From here on it is its owner's. */
void vez__member_decided(vez_request_t *r);

/* Inside the shard of r (completion.c): 0: it is complete; EINPROGRESS: it will be, when what is (*on: the request or
 * its run) ends; EINVAL: never; EDEADLK: not while this thread waits. The caller is inside the shard
 * and holds, until it leaves both or calls vez__wait_holding. */
int vez__completion_status(struct vez__stay *in, vez_request_t *r, void **on);
extern const struct vez__rules vez__completion_rules;

#endif
