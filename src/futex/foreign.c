/* SPDX-License-Identifier: MIT */
/* What the unwinder asks before it goes through a frame that has called a user's function: a personality, as the
 * Itanium C++ ABI ("Exception Handling", 2.5) describes it. It never answers. */
#include "foreign.h"

#include <stdint.h>
#include <stdlib.h>

#include "sys.h"

#define FORCED 8 /* _UA_FORCE_UNWIND: the thread ends */

/* The C++ library's, where there is one: it says what was thrown, and calls the program's own terminate handler. */
extern void *begin_catch(void *exception) __asm__("__cxa_begin_catch") __attribute__((weak));
extern void terminate(void) __asm__("_ZSt9terminatev") __attribute__((weak));

int vez__foreign_left(int version, int actions, uint64_t class, void *exception, void *context);

/* Named only by what the assembler reads. */
__attribute__((used)) int vez__foreign_left(int version, int actions, uint64_t class, void *exception, void *context)
{
	(void)version;
	(void)class;
	(void)context;
	if (actions & FORCED)
		vez__sys_die("vez: a thread ended inside a function that vez has called\n");
	vez__sys_say("vez: an exception left a function that vez has called\n");
	if (begin_catch && terminate) {
		begin_catch(exception);
		terminate();
	}
	abort();
}
