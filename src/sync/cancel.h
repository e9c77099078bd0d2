/* SPDX-License-Identifier: MIT */
/* What the library's thread asks of tokens. */
#ifndef VEZ__CANCEL_H
#define VEZ__CANCEL_H

#include "vez/cancel.h"

/* Fires the tokens whose moment has come. When the next one's will. */
vez_deadline_t vez__cancel_fire_due(void);

/* Fires the token that of says, asked where no token can be destroyed; NULL: none. */
void vez__cancel_fire_of(vez_cancel_t *(*of)(int), int arg);

/* Where no token can be destroyed or fired; calls nothing else of vez inside. */
void vez__cancel_enter(void);
void vez__cancel_exit(void);

#endif
