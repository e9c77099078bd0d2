/* SPDX-License-Identifier: MIT */
/* Tokens that a signal fires. */
#ifndef VEZ__SIGNALS_H
#define VEZ__SIGNALS_H

#include "vez/cancel.h"

/* On the library's thread: fires the tokens of the signals that have come. */
void vez__signals_fire(void);

/* The token goes: its signals fire nothing any more. gives_back: and do what they did before; else they do nothing. */
void vez__signals_unbind(vez_cancel_t *c, bool gives_back);

#endif
