/* SPDX-License-Identifier: MIT */
/* Tokens that a signal fires. */
#ifndef VEZ__SIGNALS_H
#define VEZ__SIGNALS_H

#include "vez/cancel.h"

/* On the library's thread: fires the tokens of the signals that have come. */
void vez__signals_fire(void);

/* The token goes: its signals do what they did before. */
void vez__signals_unbind(vez_cancel_t *c);

#endif
