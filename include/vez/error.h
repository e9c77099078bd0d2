/* SPDX-License-Identifier: MIT */
/*
 * vez/error.h - what a result says
 *
 * A call that can fail returns 0 or a positive errno number. This names them as vez means them: strerror says of
 * ETIMEDOUT that a connection timed out, and of VEZ_ECLOSED that an endpoint was shut down.
 *
 * Signal handlers: may call it. fork: nothing to do.
 */
#ifndef VEZ_ERROR_H
#define VEZ_ERROR_H

#include "base.h"

VEZ_BEGIN_DECLS_

/* A few words of English, without a full stop: "the deadline has passed". 0 is "success"; a number that no call of vez
 * returns is "an error that vez does not know". The text is constant and stays; any thread, any time. */
const char *vez_strerror(int result);

VEZ_END_DECLS_

#endif
