/* SPDX-License-Identifier: MIT */
/* Switching stacks: eight instructions where the machine is known, since swapcontext makes a system call. */
#include "engine.h"

#if defined(__x86_64__)

__asm__(".text\n"
	".globl stack_switch\n"
	".type stack_switch, @function\n"
	"stack_switch:\n"
	"	pushq %rbp\n"
	"	pushq %rbx\n"
	"	pushq %r12\n"
	"	pushq %r13\n"
	"	pushq %r14\n"
	"	pushq %r15\n"
	"	movq %rsp, (%rdi)\n"
	"	movq %rsi, %rsp\n"
	"	popq %r15\n"
	"	popq %r14\n"
	"	popq %r13\n"
	"	popq %r12\n"
	"	popq %rbx\n"
	"	popq %rbp\n"
	"	ret\n"
	".size stack_switch, .-stack_switch\n");

void *stack_make(char *base, size_t size, void (*entry)(void))
{
	void **sp = (void **)(base + size);
	*--sp = NULL; /* where entry would return to, so that the stack is aligned as after a call */
	*--sp = (void *)entry;
	for (int i = 0; i < 6; i++)
		*--sp = NULL;
	return sp;
}

#else

#include <stdlib.h>
#include <ucontext.h>

/* One context for each stack that was ever made, and for the program's own. */
static ucontext_t contexts[THREADS + 1];

void stack_switch(void **save, void *to)
{
	if (!*save)
		*save = &contexts[THREADS];
	swapcontext(*save, to);
}

void *stack_make(char *base, size_t size, void (*entry)(void))
{
	ucontext_t *c = &contexts[(base - stacks[0]) / STACK_SIZE];
	if (getcontext(c) != 0)
		abort();
	c->uc_stack.ss_sp = base;
	c->uc_stack.ss_size = size;
	c->uc_link = NULL;
	makecontext(c, entry, 0);
	return c;
}

#endif
