/* SPDX-License-Identifier: MIT */
/*
 * vez/inspect.h - what a program waits for, and whether it waits for ever
 *
 * While inspection is on, every request that waits is written down: what for, who, since when and until when.
 * vez_inspect lists them, one line each, and says which threads wait for each other in a circle. It is off when a
 * program starts, and then costs a branch where a lock with an owner is taken, where a thread is about to sleep, and
 * where an asynchronous request is queued or completes; nothing where a semaphore is to be had. It is on from the
 * beginning with VEZ_INSPECT=1 in the environment. In a program that hangs, a debugger may ask:
 *
 *	(gdb) call vez_inspect(stderr)
 *	vez: 2 requests wait
 *	vez: mutex 0x55d0c0a1a0 "accounts": thread 4711, key 0, for 12.031775 s, no deadline, no token, owner 4712
 *	vez: mutex 0x55d0c0a250: thread 4712, key 0, for 12.031770 s, no deadline, no token, owner 4711
 *	vez: deadlock of 2 threads
 *	vez:   thread 4711 waits for mutex 0x55d0c0a1a0 "accounts", owner 4712
 *	vez:   thread 4712 waits for mutex 0x55d0c0a250, owner 4711
 *
 * A line has the type of the object (the name of its header; call for vez/call.h), its address and name, the kernel's
 * number of the thread (or async and the address of the request), its key, how long it has waited, what is left until
 * its deadline, the address of the token that would cancel it, and the owner, where one is known. A request that has
 * just been granted is listed until its thread has woken. The library's own thread is not listed.
 *
 * Owners are known of mutexes of all kinds, of rwlocks held for writing or upgraded, of schedulers, and of a once whose
 * function runs, if a thread took them while inspection was on; who holds one for reading is not known. A deadlock is a
 * circle of threads, each of which waits for what the next one owns. One of them with a deadline will end it: that is
 * none. Each was there when vez_inspect looked a second time: it is not what two threads were passing through. A token,
 * or a thread that gives up what another one owns, may still end it.
 *
 * Signal handlers: none of these; and functions of requests that run in one (vez/request.h) queue nothing while it is
 * on. fork: the child's list is empty; names, and what the forking thread owns, are known there.
 * Memory: while inspection is on the library allocates some, which it never does otherwise but for names: 200 bytes for
 * each thread that has waited or owns a lock, for each asynchronous request that waits, and for each name. It uses them
 * again, and gives none back. What there is no memory for is not listed. Nothing is allocated inside a monitor, a body
 * or a trigger: of the asynchronous requests that a thread files there, three or four are listed, for which it has
 * memory in hand.
 * Source: the wait-for graph of R. C. Holt, "Some Deadlock Properties of Computer Systems" (1972).
 */
#ifndef VEZ_INSPECT_H
#define VEZ_INSPECT_H

#include <stdio.h>

#include "base.h"

VEZ_BEGIN_DECLS_

/* Writes the list to out, or, if out is NULL, only counts. Returns how many requests it listed; or, if there are
 * deadlocks, minus how many of those. Takes no lock of any object and waits for no thread of the program, but for those
 * that are writing to out. Any thread, while the others do what they like; not from inside a monitor. */
int vez_inspect(FILE *out);

/* Switches it on or off. Waits that began, and locks that were taken, while it was off are not known afterwards; those
 * that began while it was on are listed until they end. */
void vez_inspect_enable(bool on);

/* Gives the object a name (a copy; at most 63 bytes), or another one; NULL takes it away, which is to be done before
 * the object's memory is used for something else. Whether inspection is on or not. 0 or ENOMEM. */
int vez_inspect_name(const void *object, const char *name);

VEZ_END_DECLS_

#endif
