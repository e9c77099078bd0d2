/* SPDX-License-Identifier: MIT */
/*
 * The only way to touch memory that threads share without a lock.
 *
 * Every access names its order (relaxed, acquire, release, acq_rel, seq_cst), and every access goes through
 * these macros, so that the schedule explorer can stand in for them and own each step. The fields are plain
 * uint32_t, uint64_t, uintptr_t or pointers: public headers are C++ too, where _Atomic does not exist.
 *
 * ThreadSanitizer does not model fences: there is no fence here, the order is always on the operation. A race checker
 * that does not see what an access orders is told by that access (checker.h).
 */
#ifndef VEZ__ATOMIC_H
#define VEZ__ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

#include "checker.h"

#define VEZ__ORDER_relaxed __ATOMIC_RELAXED
#define VEZ__ORDER_acquire __ATOMIC_ACQUIRE
#define VEZ__ORDER_release __ATOMIC_RELEASE
#define VEZ__ORDER_acq_rel __ATOMIC_ACQ_REL
#define VEZ__ORDER_seq_cst __ATOMIC_SEQ_CST

#ifdef VEZ_EXPLORE
#include "explore_atomic.h"
#define vez__load_fast vez__load
#define vez__fetch_add_untold vez__fetch_add
#define vez__cas_fast vez__cas
#define vez__cas_if(told, p, expected, desired, order) ((void)(told), vez__cas(p, expected, desired, order))
#define vez__watched() false
#define vez__checked() false
#define vez__watches(bits) false
#else

/* Whether one of these bits of vez__watch is set. */
static inline bool vez__watches(uint32_t bits)
{
	return __builtin_expect((__atomic_load_n(&vez__watch, __ATOMIC_RELAXED) & bits) != 0, 0);
}

/* Whether a race checker is to be told; whether that is so or inspection is on. */
static inline bool vez__checked(void)
{
#ifdef VEZ__TSAN
	return false;
#endif
	return vez__watches(VEZ__CHECKED);
}

static inline bool vez__watched(void)
{
	return vez__watches(VEZ__CHECKED | VEZ__INSPECTED);
}

/* An access of this order to p, whose value it is. */
#define VEZ__TELL_RELEASE(p) (vez__checked() ? vez__told_release(p) : (void)0)
#define VEZ__TELL_ACQUIRE(p) (vez__checked() ? vez__told_acquire((p), sizeof *(p)) : (void)0)
#define VEZ__RELEASES(p, access) (VEZ__TELL_RELEASE(p), (access))
#define VEZ__ACQUIRES(p, access) \
	({ \
		__typeof__(access) accessed_ = (access); \
		VEZ__TELL_ACQUIRE(p); \
		accessed_; \
	})
#define VEZ__ACCESS(order, p, access) VEZ__ACCESS_##order(p, access)
#define VEZ__ACCESS_relaxed(p, access) (access)
#define VEZ__ACCESS_acquire(p, access) VEZ__ACQUIRES(p, access)
#define VEZ__ACCESS_release(p, access) VEZ__RELEASES(p, access)
#define VEZ__ACCESS_acq_rel(p, access) VEZ__RELEASES(p, VEZ__ACQUIRES(p, access))
#define VEZ__ACCESS_seq_cst(p, access) VEZ__RELEASES(p, VEZ__ACQUIRES(p, access))

#define vez__load(p, order) VEZ__ACCESS(order, p, __atomic_load_n((p), VEZ__ORDER_##order))
#define vez__store(p, value, order) VEZ__ACCESS(order, p, __atomic_store_n((p), (value), VEZ__ORDER_##order))
#define vez__exchange(p, value, order) VEZ__ACCESS(order, p, __atomic_exchange_n((p), (value), VEZ__ORDER_##order))
#define vez__fetch_add(p, value, order) VEZ__ACCESS(order, p, __atomic_fetch_add((p), (value), VEZ__ORDER_##order))
#define vez__fetch_or(p, value, order) VEZ__ACCESS(order, p, __atomic_fetch_or((p), (value), VEZ__ORDER_##order))
#define vez__fetch_and(p, value, order) VEZ__ACCESS(order, p, __atomic_fetch_and((p), (value), VEZ__ORDER_##order))

/* On failure *expected becomes what was there, read relaxed: a loop decides anew from it, and orders itself by
 * the exchange that succeeds. Never fails spuriously. */
#define vez__cas(p, expected, desired, order) VEZ__CAS_##order(p, vez__cas_fast(p, expected, desired, order))
#define VEZ__CAS_relaxed(p, exchange) (exchange)
#define VEZ__CAS_acquire(p, exchange) ((exchange) && (VEZ__TELL_ACQUIRE(p), true))
#define VEZ__CAS_release(p, exchange) (VEZ__TELL_RELEASE(p), (exchange))
#define VEZ__CAS_acq_rel(p, exchange) (VEZ__TELL_RELEASE(p), VEZ__CAS_acquire(p, exchange))

/* The same on fast paths, where nothing is told: the caller has seen that there is no checker, or tells it itself. */
#define vez__load_fast(p, order) __atomic_load_n((p), VEZ__ORDER_##order)
#define vez__cas_fast(p, expected, desired, order) \
	__atomic_compare_exchange_n((p), (expected), (desired), false, VEZ__ORDER_##order, __ATOMIC_RELAXED)

/* The same for words by which unrelated threads meet: a checker would take them for ordered, and miss their races. */
#define vez__fetch_add_untold(p, value, order) __atomic_fetch_add((p), (value), VEZ__ORDER_##order)

/* For functions that are compiled twice, where telling must not cost those a register that do not tell. */
#define vez__cas_if(told, p, expected, desired, order) \
	((told) ? vez__cas(p, expected, desired, order) : vez__cas_fast(p, expected, desired, order))

/* Tell the processor that this is a waiting loop. */
static inline void vez__pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__) || (defined(__ARM_ARCH) && __ARM_ARCH >= 7)
	__asm__ __volatile__("yield" ::: "memory");
#else
	__asm__ __volatile__("" ::: "memory");
#endif
}

/* Nothing is moved across, as a signal handler of this thread sees it. Says nothing to other threads. */
#define vez__order_for_handlers() __atomic_signal_fence(__ATOMIC_SEQ_CST)

#endif /* VEZ_EXPLORE */

#define VEZ__LIKELY(x) __builtin_expect(!!(x), 1)
#define VEZ__UNLIKELY(x) __builtin_expect(!!(x), 0)
#define VEZ__INLINE inline __attribute__((always_inline))

/* Where a function lies. COLD: apart, for it is called rarely. HOT: with the others by which a thread goes to sleep or
 * wakes another one: whoever has slept finds none of them in its caches, and the fewer pages they are on the better.
 * SLOW: not in the fast path that calls it. */
#define VEZ__COLD __attribute__((cold, noinline))
#define VEZ__HOT __attribute__((hot))
#define VEZ__SLOW __attribute__((noinline))

#endif
