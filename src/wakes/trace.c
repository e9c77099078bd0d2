/* SPDX-License-Identifier: MIT */
/*
 * Who called the function that calls: by the unwinder of the compiler's library, only where callers are asked for.
 *
 * State: how many; the unwinder's functions. Set in the constructor, before the program has threads that count: until
 *  then a call has no callers.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <unwind.h>

#include "table.h"

static size_t callers;
static _Unwind_Reason_Code (*unwind)(_Unwind_Trace_Fn, void *);
static _Unwind_Ptr (*address_of)(struct _Unwind_Context *);

void wakes__trace_begin(void)
{
	const char *asked = getenv(WAKES_CALLERS);
	size_t most = asked ? strtoul(asked, NULL, 10) : 0;
	void *library = most > 0 ? dlopen("libgcc_s.so.1", RTLD_NOW) : NULL;
	if (!library)
		return;
	*(void **)&unwind = dlsym(library, "_Unwind_Backtrace");
	*(void **)&address_of = dlsym(library, "_Unwind_GetIP");
	if (unwind && address_of)
		callers = most < WAKES_FRAMES ? most : WAKES_FRAMES - 1;
}

struct walk {
	struct trace *trace;
	size_t count; /* 0: still in this object */
};

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *arg)
{
	struct walk *w = arg;
	uintptr_t address = address_of(context);
	if (w->count > 0 && address != 0)
		w->trace->frame[w->count++] = address;
	else if (address == w->trace->frame[0])
		w->count = 1;
	return w->count > callers ? _URC_END_OF_STACK : _URC_NO_REASON;
}

void wakes__trace(struct trace *trace, uintptr_t call)
{
	*trace = (struct trace){ { call } };
	if (callers > 0) {
		struct walk w = { trace, 0 };
		unwind(step, &w);
	}
}
