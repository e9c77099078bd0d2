/* SPDX-License-Identifier: MIT */
/* Sleeping and waking on a 32-bit word. */
#ifndef VEZ__FUTEX_H
#define VEZ__FUTEX_H

#include <stdbool.h>
#include <stdint.h>

#include "vez/deadline.h"

/* Whether it has passed; reads the clock only if it must. */
bool vez__deadline_passed(vez_deadline_t deadline);

/* Which sleepers a wake is for: those that have a bit in common with it. */
#define VEZ__ANY_BIT UINT32_MAX

/* Sleeps while *word is expected. 0: look again (a wake with one of these bits, a change, a signal, or nothing at all);
 * ETIMEDOUT: the clock reads at least the deadline. */
int vez__futex_wait_bits(uint32_t *word, uint32_t expected, uint32_t bits, vez_deadline_t deadline);

static inline int vez__futex_wait(uint32_t *word, uint32_t expected, vez_deadline_t deadline)
{
	return vez__futex_wait_bits(word, expected, VEZ__ANY_BIT, deadline);
}

/* Wakes one thread that sleeps on the word. Only the address is used: what lies there may be gone. */
void vez__futex_wake(uint32_t *word);

/* Wakes all who sleep on the word. */
void vez__futex_wake_all(uint32_t *word);

/* Wakes so many of those who sleep on the word with one of these bits. */
void vez__futex_wake_bits(uint32_t *word, int count, uint32_t bits);

/* Sets *second to value (full barrier), and wakes one thread that sleeps on first and, if *second was at least
 * threshold, one that sleeps on second: two wakes in one system call. Of first only the address is used. */
void vez__futex_wake_and_set(uint32_t *first, uint32_t *second, uint32_t value, uint32_t threshold);

#endif
