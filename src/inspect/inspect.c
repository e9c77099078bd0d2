/* SPDX-License-Identifier: MIT */
/* Inspection as users see it: switched on and off, names, the list. What is written down: engine/record.c. */
#include "vez/inspect.h"

#include <stdlib.h>
#include <string.h>

#include "../engine/records.h"
#include "report.h"

int vez_inspect(FILE *out)
{
	return vez__report(out);
}

void vez_inspect_enable(bool on)
{
	if (on)
		vez__fetch_or(&vez__watch, VEZ__INSPECTED, relaxed);
	else
		vez__fetch_and(&vez__watch, ~VEZ__INSPECTED, relaxed);
}

int vez_inspect_name(const void *object, const char *name)
{
	return vez__record_name(object, name);
}

__attribute__((constructor)) static void begin(void)
{
	const char *wish = secure_getenv("VEZ_INSPECT");
	if (wish && strcmp(wish, "1") == 0)
		vez_inspect_enable(true);
}
