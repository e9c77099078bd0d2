/* SPDX-License-Identifier: MIT */
/*
 * Who waits without a request: a thread whose wait ends only with a round of its object, together with all others of
 * that round. It sleeps on the round's shared word (futex/shared.h) and is counted; it stands in no queue.
 */
#ifndef VEZ__FOLLOW_H
#define VEZ__FOLLOW_H

#include "core.h"

/* Inside: one follower more, which vez__follow makes of the caller. False: it needs a request, as inspection is on, or
 * there is no shared word. */
bool vez__follow_begin(struct vez__stay *in, uint32_t *followers, uint16_t *shared);

/* Inside, where it has begun: leaves, and waits for the end of the round. Its result. */
int vez__follow(struct vez__stay *in, const struct vez__rules *rules);

/* Inside: the round of all followers ends with this result. They are let go when the core has been left. */
void vez__followers_end(struct vez__stay *in, uint32_t *followers, uint16_t *shared, int result);

#endif
