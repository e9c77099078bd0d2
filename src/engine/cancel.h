/* SPDX-License-Identifier: MIT */
/* What the library's thread, signals and forks ask of tokens. */
#ifndef VEZ__CANCEL_H
#define VEZ__CANCEL_H

#include "vez/cancel.h"

/* Fires the tokens whose moment has come. When the next one's will. */
vez_deadline_t vez__cancel_fire_due(void);

/* Whether it is the calling thread's own, and goes with the thread before anything else could see to that. */
bool vez__cancel_is_over(const vez_cancel_t *c);

/* Fires the token that of says, asked where no token can be destroyed; NULL: none. */
void vez__cancel_fire_of(vez_cancel_t *(*of)(int), int arg);

/* Where no token can be destroyed or fired: the token in this place, which a signal fires, is c from now on, or
 * none. */
void vez__cancel_bind(vez_cancel_t **place, vez_cancel_t *c);

#endif
