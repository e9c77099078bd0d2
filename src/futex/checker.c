/* SPDX-License-Identifier: MIT */
/*
 * Race checkers: which are there, and how each is told.
 *
 * State
 *  vez__watch  bits of checker.h. CHECKED and HELD_BACK are set before main and stay, RECORDED once it is
 *              set; INSPECTED comes and goes
 * Invariants
 *  V1 a release is told before the access that makes it visible, an acquire after the access that has seen it: an order
 *     that holds is known to the checker before anybody can rely on it. A failed exchange tells a release in vain,
 *     which can only hide a race.
 *  V2 what a lock is known by is not the address that tells of orders: ThreadSanitizer forgets at an unlock what others
 *     have released there.
 *  V3 nothing is left open between two calls: ThreadSanitizer ignores what a thread does between a pair of pre and
 *     post, and functions of the program may run inside an unlock.
 * Sources: the interface of ThreadSanitizer (sanitizer/tsan_interface.h), declared here as it may not be installed; the
 *  client requests of valgrind (valgrind/helgrind.h, valgrind/drd.h): instructions without effect outside it. Where
 *  these headers are not there when the library is built, it tells valgrind nothing.
 */
#include "checker.h"

#ifndef VEZ_EXPLORE

/* valgrind.h has macros for each request; these two tools have some of the same name. */
#if defined(__has_include)
#if __has_include(<valgrind/helgrind.h>) && __has_include(<valgrind/drd.h>)
#include <valgrind/helgrind.h>
#include <valgrind/drd.h>
#define HAS_VALGRIND() (RUNNING_ON_VALGRIND > 0)
#define TELL(request, address, bytes) VALGRIND_DO_CLIENT_REQUEST_STMT(request, address, bytes, 0, 0, 0)
#endif
#endif
#ifndef HAS_VALGRIND
#define HAS_VALGRIND() false
#define TELL(request, address, bytes) ((void)0)
#endif

/* On a line of the cache that is hardly ever written to. */
_Alignas(64) uint32_t vez__watch;

/* NULL where no ThreadSanitizer is. */
extern void __tsan_acquire(void *address) __attribute__((weak));
extern void __tsan_release(void *address) __attribute__((weak));
extern void __tsan_mutex_create(void *lock, unsigned flags) __attribute__((weak));
extern void __tsan_mutex_destroy(void *lock, unsigned flags) __attribute__((weak));
extern void __tsan_mutex_pre_lock(void *lock, unsigned flags) __attribute__((weak));
extern void __tsan_mutex_post_lock(void *lock, unsigned flags, int recursion) __attribute__((weak));
extern int __tsan_mutex_pre_unlock(void *lock, unsigned flags) __attribute__((weak));
extern void __tsan_mutex_post_unlock(void *lock, unsigned flags) __attribute__((weak));

#define TSAN_TRY_LOCK (1u << 4)
#define TSAN_TRY_LOCK_FAILED (1u << 5)

/* V2. */
static void *known_by(const void *lock)
{
	return (char *)(uintptr_t)lock + 8;
}

void vez__told_release(const void *address)
{
	if (__tsan_release)
		__tsan_release((void *)(uintptr_t)address);
	TELL(_VG_USERREQ__HG_USERSO_SEND_PRE, address, 0);
	TELL(VG_USERREQ__DRD_ANNOTATE_HAPPENS_BEFORE, address, 0);
}

/* Helgrind forgets the accesses there: the one that has just been seen came after what was told of it (V1). */
void vez__told_acquire(const void *address, size_t bytes)
{
	(void)bytes; /* valgrind's headers ask for nothing on a processor that it does not know */
	if (__tsan_acquire)
		__tsan_acquire((void *)(uintptr_t)address);
	TELL(_VG_USERREQ__HG_USERSO_RECV_POST, address, 0);
	TELL(_VG_USERREQ__HG_ARANGE_MAKE_TRACKED, address, bytes);
	TELL(VG_USERREQ__DRD_ANNOTATE_HAPPENS_AFTER, address, 0);
}

/* Looks for a circle of locks before the thread may sleep in it. */
void vez__told_locks(const void *lock)
{
	if (!__tsan_mutex_pre_lock)
		return;
	__tsan_mutex_pre_lock(known_by(lock), 0);
	__tsan_mutex_post_lock(known_by(lock), TSAN_TRY_LOCK | TSAN_TRY_LOCK_FAILED, 0);
}

/* Who waits within bounds is not caught in a circle. */
void vez__told_locked(const void *lock, bool bounded)
{
	unsigned flags = bounded ? TSAN_TRY_LOCK : 0;
	if (!__tsan_mutex_pre_lock)
		return;
	__tsan_mutex_pre_lock(known_by(lock), flags);
	__tsan_mutex_post_lock(known_by(lock), flags, 0);
}

void vez__told_unlocks(const void *lock)
{
	if (!__tsan_mutex_pre_unlock)
		return;
	__tsan_mutex_pre_unlock(known_by(lock), 0);
	__tsan_mutex_post_unlock(known_by(lock), 0);
}

void vez__told_made(const void *lock)
{
	if (__tsan_mutex_create)
		__tsan_mutex_create(known_by(lock), 0);
}

void vez__told_gone(const void *lock)
{
	if (__tsan_mutex_destroy)
		__tsan_mutex_destroy(known_by(lock), 0);
}

#ifndef VEZ__TSAN
/* Before anything of the program runs that could use the library. */
__attribute__((constructor)) static void look(void)
{
	if (__tsan_acquire && __tsan_release)
		vez__watch |= VEZ__CHECKED | VEZ__HELD_BACK;
	if (HAS_VALGRIND())
		vez__watch |= VEZ__CHECKED;
}
#endif

#endif
