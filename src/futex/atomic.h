/* SPDX-License-Identifier: MIT */
/*
 * The only way to touch memory that threads share without a lock.
 *
 * Every access names its order (relaxed, acquire, release, acq_rel, seq_cst), and every access goes through
 * these macros, so that the schedule explorer can stand in for them and own each step. The fields are plain
 * uint32_t, uint64_t, uintptr_t or pointers: public headers are C++ too, where _Atomic does not exist.
 *
 * ThreadSanitizer does not model fences: there is no fence here, the order is always on the operation.
 */
#ifndef VEZ__ATOMIC_H
#define VEZ__ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

#define VEZ__ORDER_relaxed __ATOMIC_RELAXED
#define VEZ__ORDER_acquire __ATOMIC_ACQUIRE
#define VEZ__ORDER_release __ATOMIC_RELEASE
#define VEZ__ORDER_acq_rel __ATOMIC_ACQ_REL
#define VEZ__ORDER_seq_cst __ATOMIC_SEQ_CST

#ifdef VEZ_EXPLORE
#include "explore_atomic.h"
#else

#define vez__load(p, order) __atomic_load_n((p), VEZ__ORDER_##order)
#define vez__store(p, value, order) __atomic_store_n((p), (value), VEZ__ORDER_##order)
#define vez__exchange(p, value, order) __atomic_exchange_n((p), (value), VEZ__ORDER_##order)
#define vez__fetch_add(p, value, order) __atomic_fetch_add((p), (value), VEZ__ORDER_##order)
#define vez__fetch_or(p, value, order) __atomic_fetch_or((p), (value), VEZ__ORDER_##order)
#define vez__fetch_and(p, value, order) __atomic_fetch_and((p), (value), VEZ__ORDER_##order)

/* On failure *expected becomes what was there, read relaxed: a loop decides anew from it, and orders itself by
 * the exchange that succeeds. Never fails spuriously. */
#define vez__cas(p, expected, desired, order) \
	__atomic_compare_exchange_n((p), (expected), (desired), false, VEZ__ORDER_##order, __ATOMIC_RELAXED)

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

/* ThreadSanitizer sees no store that the kernel makes. */
#if defined(__SANITIZE_THREAD__)
#define VEZ__TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define VEZ__TSAN 1
#endif
#endif

#define VEZ__LIKELY(x) __builtin_expect(!!(x), 1)
#define VEZ__UNLIKELY(x) __builtin_expect(!!(x), 0)
#define VEZ__COLD __attribute__((cold, noinline))

#endif
