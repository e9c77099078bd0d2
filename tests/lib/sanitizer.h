/* SPDX-License-Identifier: MIT */
/* Which sanitizer a program is built with, whatever the compiler: UNDER_TSAN, UNDER_ASAN, or neither. */
#ifndef TEST_SANITIZER_H
#define TEST_SANITIZER_H

#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN 1
#endif
#if defined(__SANITIZE_ADDRESS__)
#define UNDER_ASAN 1
#endif
#if defined(__has_feature)
#if __has_feature(thread_sanitizer) && !defined(UNDER_TSAN)
#define UNDER_TSAN 1
#endif
#if __has_feature(address_sanitizer) && !defined(UNDER_ASAN)
#define UNDER_ASAN 1
#endif
#endif

/* Whether the child of a process with threads may make some: the sanitizers know none there, or may have been forked
 * inside a lock of their own; and qemu ends there. */
#if defined(UNDER_TSAN) || defined(UNDER_ASAN) || defined(UNDER_QEMU)
#define THREADS_IN_CHILD 0
#else
#define THREADS_IN_CHILD 1
#endif

#endif
