/* SPDX-License-Identifier: MIT */
/*
 * vez/base.h - what every header of vez shares
 *
 * A call that can fail returns 0 or a positive errno number; vez_once and a barrier hand on what the user's function
 * returned. No call returns EINTR or changes errno. Fields whose names end in an underscore are private: a program that
 * touches them is not using vez.
 */
#ifndef VEZ_BASE_H
#define VEZ_BASE_H

#ifdef __i386__ /* its 64-bit words lie on 4-byte boundaries */
#error "vez is not for 32-bit x86: build for a 64-bit machine"
#endif

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define VEZ_BEGIN_DECLS_ extern "C" { _Pragma("GCC visibility push(default)")
#define VEZ_END_DECLS_ _Pragma("GCC visibility pop") }
#define VEZ_ASSERT_SIZE_(type, bytes) \
	static_assert(sizeof(void *) != 8 || sizeof(type) == (bytes), #type " has its documented size")
#else
#define VEZ_BEGIN_DECLS_ _Pragma("GCC visibility push(default)")
#define VEZ_END_DECLS_ _Pragma("GCC visibility pop")
#define VEZ_ASSERT_SIZE_(type, bytes) \
	_Static_assert(sizeof(void *) != 8 || sizeof(type) == (bytes), #type " has its documented size")
#endif

/* The object is closed: nothing is granted any more. */
#define VEZ_ECLOSED ESHUTDOWN
/* The barrier is broken. */
#define VEZ_EBROKEN ENOTRECOVERABLE

/* For vez_sem_init: running threads may overtake, within a bound. */
#define VEZ_BARGING 1u

VEZ_BEGIN_DECLS_

typedef struct vez_request vez_request_t;

/* Private: what an object begins with: a lock and its state in one word, how many requests are queued, and how many of
 * those that are settled are still to be taken by a thread that is on its way. */
struct vez__core {
	uint64_t word_;
	uint32_t length_;
	uint32_t coming_;
};

/* Private: a core whose word reads so. */
#define VEZ_CORE_INITIALIZER_(word) { (word), 0, 0 }

VEZ_END_DECLS_

#endif
