/* SPDX-License-Identifier: MIT */
/*
 * Probes for tracers: a no-op instruction each, in programs that are built where <sys/sdt.h> is; nothing elsewhere, nor
 * in the schedule explorer's build. Arguments, in order:
 *
 *	vez:queue   object, request, word, key     the request is in a room of the object
 *	vez:grant   object, request, word, result  its result is decided
 *	vez:giveup  object, request, word, cause   it ends by itself: ETIMEDOUT, ECANCELED
 *	vez:wake    word, how many                 the thread of the request with this word is woken, or about to be; or
 *	                                           all followers that sleep on it (INT_MAX); or a thread that waits to
 *	                                           enter an object, or to destroy it
 *
 * The word is the request's own, by which its thread is known, even if that sleeps in its slot (slot.h); 0 if no
 * thread waits for it. All but wake are passed inside the object's monitor. A barrier's party that waits without a
 * request has an address of its own stand there, and passes grant itself, when it has been woken.
 */
#ifndef VEZ__PROBE_H
#define VEZ__PROBE_H

#if !defined(VEZ_EXPLORE) && defined(__has_include)
#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#define VEZ__PROBE2(name, a, b) DTRACE_PROBE2(vez, name, a, b)
#define VEZ__PROBE4(name, a, b, c, d) DTRACE_PROBE4(vez, name, a, b, c, d)
#endif
#endif

#ifndef VEZ__PROBE2
#define VEZ__PROBE2(name, a, b) ((void)0)
#define VEZ__PROBE4(name, a, b, c, d) ((void)0)
#endif

#endif
