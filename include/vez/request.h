/* SPDX-License-Identifier: MIT */
/*
 * vez/request.h - one pending operation
 *
 * A request carries the operation's arguments and result, its place in a room, and its own futex word. The blocking
 * calls of the synchronizers keep theirs on the caller's stack; who builds a synchronizer on vez/monitor.h hands one to
 * vez_monitor_wait. All-zero bytes are a valid request, with key 0 and no value.
 *
 * A request serves one wait at a time and may be used for the next as soon as that one has returned. The key and the
 * value may be set while it is queued nowhere; inside the monitor they may also be read, and the value set, while it
 * is.
 */
#ifndef VEZ_REQUEST_H
#define VEZ_REQUEST_H

#include "base.h"
#include "deadline.h"

VEZ_BEGIN_DECLS_

struct vez_monitor;
struct vez_room;
struct vez_cancel;
struct vez__ops;

typedef struct vez_request {
	void *place_[2];
	void *enlisted_[2];
	uint32_t word_;
	int32_t result_;
	uint32_t state_;
	uint32_t kind_;
	int64_t key_;
	void *ptr_;
	uint64_t value_;
	struct vez_monitor *monitor_;
	struct vez_room *room_;
	const struct vez__ops *ops_;
	vez_deadline_t deadline_;
	struct vez_cancel *cancel_;
	void (*done_)(struct vez_request *r, int result, void *arg);
	void *arg_;
} vez_request_t;

VEZ_ASSERT_SIZE_(vez_request_t, 128);

#define VEZ_REQUEST_INITIALIZER { { 0, 0 }, { 0, 0 }, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Makes a request with key 0 and no value. done, which may be NULL, is what a request that is queued without waiting
 * calls when it completes; a wait ignores it. */
void vez_request_init(vez_request_t *r, void (*done)(vez_request_t *r, int result, void *arg), void *arg);

/* The request's place in a room: smallest key first, first come first served among equals. */
void vez_request_set_key(vez_request_t *r, int64_t key);

/* Two words for arguments and results, which vez itself never reads. */
void vez_request_set_value(vez_request_t *r, void *ptr, uint64_t word);
void *vez_request_ptr(const vez_request_t *r);
uint64_t vez_request_word(const vez_request_t *r);

VEZ_END_DECLS_

#endif
