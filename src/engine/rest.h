/* SPDX-License-Identifier: MIT */
/* What calls leave to the library's thread: functions of requests that are to be called, and objects that are to be
 * entered because more can be done there than one call does. */
#ifndef VEZ__REST_H
#define VEZ__REST_H

#include "core.h"

/* Holding: the functions of so many requests, a ring that is empty then, are called by the library's thread, in order
 * and after all that was left to it before. Returns the number of the last one. */
uint64_t vez__rest_hand(struct vez__pending *functions, uint32_t count);

/* How many of them have returned: those with this number, or less. Acquires. */
uint64_t vez__rest_returned(void);

/* Inside an object, holding: the library's thread is to call enter(object). Which must be there until then, or until
 * this is withdrawn. Returns a ticket; 0: there is no place left, or that thread ends. Outside, vez__alarm_tell says
 * that there is something to tell, and vez__rest_tell is called. */
uint32_t vez__rest_ask(void *object, void (*enter)(void *object));

/* Inside the object: whether the thread will come; not where the process exits, or is the child of the one that
 * asked. */
bool vez__rest_comes(uint32_t ticket);

/* Inside the object. False: the thread is about to enter. */
bool vez__rest_withdraw(uint32_t ticket, const void *object);

/* Makes the thread, if this one has asked for it. Where none can be made, does what that one would do; but not while
 * more is held than by the call that asked: then when that is let go. */
void vez__rest_tell(void);

/* ---- for the thread ---- */

/* The next request whose function is to be called; NULL: none. When it has returned, this is said. */
vez_request_t *vez__rest_next(void);
void vez__rest_note_returned(void);

/* Enters an object that is to be entered. False: none is. */
bool vez__rest_enter(void);

/* In the child of a fork: nothing was left. */
void vez__rest_forget(void);

#endif
