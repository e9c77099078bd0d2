/* SPDX-License-Identifier: MIT */
/* The signals by which a thread learns of its own fault: one list, for the floors and for what stands beside them. */
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

/* All other signals: what a thread of the library's own blocks. The program's handler is to see a fault in a function of
 * the program's there, too. */
static inline void vez__fill_but_faults(sigset_t *set)
{
	sigfillset(set);
	for (int signo = 1; signo < SIGRTMIN; signo++)
		if (vez__is_fault(signo))
			sigdelset(set, signo);
}

#endif
