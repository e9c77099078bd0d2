/* SPDX-License-Identifier: MIT */
/* The signals by which a thread learns of its own fault. */
#ifndef VEZ__FAULT_H
#define VEZ__FAULT_H

#include <signal.h>
#include <stdbool.h>

/* Whether the kernel raises this signal on the thread whose instruction is at fault. Where that one blocks it, the
 * process ends without its handler; where a handler returns, the instruction faults again. */
static inline bool vez__is_fault(int signo)
{
	return signo == SIGSEGV || signo == SIGBUS || signo == SIGFPE || signo == SIGILL || signo == SIGTRAP ||
	       signo == SIGSYS;
}

#endif
