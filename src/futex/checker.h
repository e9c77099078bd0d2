/* SPDX-License-Identifier: MIT */
/*
 * What race checkers are told. ThreadSanitizer does not see the accesses of a library that was built without it, and
 * helgrind and DRD do not know what an atomic access orders: each would report a program whose data vez guards. Where
 * one is there, it is told what happens before what, by the very accesses that order it (atomic.h), and who holds a
 * lock.
 *
 * Whether one is there is found out once, when the library is loaded, and noted in a word that says as well whether
 * inspection is on. Fast paths look at that word, or at something that is only there if it was set, and are not taken
 * under a checker; so nothing is told there, and their cost is that of one branch at most.
 *
 * A library that is itself built for ThreadSanitizer tells it nothing: its accesses are seen. Only who holds a lock is
 * told to ThreadSanitizer alone.
 */
#ifndef VEZ__CHECKER_H
#define VEZ__CHECKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ThreadSanitizer sees no store that the kernel makes. */
#if defined(__SANITIZE_THREAD__)
#define VEZ__TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define VEZ__TSAN 1
#endif
#endif

/* Inspection is on (engine/record.h); a race checker is there; it holds signals back: it runs a program's handler when
 * the thread next calls a function that it knows, which a futex call is not; something was ever written down for
 * inspection. */
#define VEZ__INSPECTED 1u
#define VEZ__CHECKED 2u
#define VEZ__HELD_BACK 4u
#define VEZ__RECORDED 8u

#ifdef VEZ_EXPLORE
#define vez__told_release(address) ((void)(address))
#define vez__told_acquire(address, bytes) ((void)(address))
#define vez__told_locks(lock) ((void)(lock))
#define vez__told_locked(lock, bounded) ((void)(lock), (void)(bounded))
#define vez__told_unlocks(lock) ((void)(lock))
#define vez__told_made(lock) ((void)(lock))
#define vez__told_gone(lock) ((void)(lock))
#else

/* Hidden where it is used, too: one instruction looks (vez__checked and vez__watched, in atomic.h). */
extern uint32_t vez__watch __attribute__((visibility("hidden")));

/* What this thread has done is before what others do who are told to acquire by the same address, where so many bytes
 * are only accessed atomically. Only addresses are used, here and in all of these. Signal handlers, too. */
void vez__told_release(const void *address);
void vez__told_acquire(const void *address, size_t bytes);

/* While checked: this lock (the address of a core) is about to be waited for without limit; is the calling thread's,
 * which may have waited for it only within bounds; is about to be unlocked by the calling thread, whoever holds it:
 * where that is somebody else or nobody, a checker reports it; is new, or gone. */
void vez__told_locks(const void *lock);
void vez__told_locked(const void *lock, bool bounded);
void vez__told_unlocks(const void *lock);
void vez__told_made(const void *lock);
void vez__told_gone(const void *lock);

#endif

#endif
