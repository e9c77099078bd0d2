/* SPDX-License-Identifier: MIT */
/*
 * The short lock in two bits of a 64-bit state word.
 *
 *	bit 0      LOCKED     a thread is inside. Set by that thread, and cleared by it in one step with the state.
 *	bit 1      CONTENDED  threads may sleep until it is free. Set by one that is about to sleep; cleared by the
 *	                      leaver, which then wakes one of them. May be set though nobody sleeps, never the other
 *	                      way round.
 *	bits 2-63             the owner's state. Bits 0-31 are the futex: a change there only makes a sleeper look
 *	again.
 */
#ifndef VEZ__LOCK_H
#define VEZ__LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "atomic.h"

#define VEZ__LOCKED UINT64_C(1)
#define VEZ__CONTENDED UINT64_C(2)

/* Waits until nobody is inside, and enters. */
void vez__lock_enter(uint64_t *word);

/* Leaves with this new state if the word is still as seen: the last touch of the word's memory. False: it
 * has changed. */
bool vez__lock_leave(uint64_t *word, uint64_t seen, uint64_t next);

/* Leaves, whatever the state has become. */
void vez__lock_exit(uint64_t *word);

#endif
