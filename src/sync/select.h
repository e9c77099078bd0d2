/* SPDX-License-Identifier: MIT */
/* What the engine asks of a wait-for-any. r is always a member of one. */
#ifndef VEZ__SELECT_H
#define VEZ__SELECT_H

#include "vez/request.h"

/* A member is passed to an X_async. True: the wait is won already. */
bool vez__select_file(vez_request_t *r);

/* Inside the monitor of r's object: whether r wins. May be asked in a signal handler. */
bool vez__select_claim(vez_request_t *r);

/* Whether the two requests belong to the same wait-for-any. */
bool vez__select_same(const vez_request_t *a, const vez_request_t *b);

/* Two requests, a member's and another's that it meets, win together or not at all. 0: both have won. Else one of them
 * is lost, and this says which. Not in signal handlers. */
enum vez__lost { VEZ__NEITHER, VEZ__FIRST, VEZ__SECOND };
enum vez__lost vez__select_claim_both(vez_request_t *first, vez_request_t *second);

/* Outside every monitor: a member is complete. From here on it is its owner's. */
void vez__select_decided(vez_request_t *r);

#endif
