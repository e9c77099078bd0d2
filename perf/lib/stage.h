/* SPDX-License-Identifier: MIT */
/*
 * One interface to every way of coordinating the threads of a program: a state, guards that say who may go, and bodies
 * that change it. The program is the same; what differs is who evaluates a guard, and who is woken.
 */
#ifndef STAGE_H
#define STAGE_H

#include <stdbool.h>
#include <stddef.h>

/* Threads of one kind wait for the same thing, for as long as they wait; up to this many kinds. */
#define STAGE_KINDS 3

struct stage_impl {
	const char *name;
	void *(*create)(void);
	void (*destroy)(void *stage);
	/* Waits until guard(arg), then runs body(arg), as one step. A body that lets others go belongs to change. */
	void (*await)(void *stage, unsigned kind, bool (*guard)(void *arg), void (*body)(void *arg), void *arg);
	/* Runs body(arg), and lets go who can: at most one of this kind, or any of all kinds for STAGE_KINDS. */
	void (*change)(void *stage, unsigned kind, void (*body)(void *arg), void *arg);
};

/* vez_monitor_t and a room for each kind: who changes the state runs the waiting bodies. */
extern const struct stage_impl stage_vez;
/* One mutex, one condition, broadcast. */
extern const struct stage_impl stage_cond_broadcast;
/* One mutex, a condition for each kind, broadcast. */
extern const struct stage_impl stage_cond_kinds;
/* One mutex, a condition for each kind, signal: right because all of a kind wait for the same thing. */
extern const struct stage_impl stage_cond_signal;

#endif
