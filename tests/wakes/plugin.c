/* SPDX-License-Identifier: MIT */
/* A herd in a library that a program opens while it runs. */
#include "herd.h"

int plugin_run(int size, int rounds);

int plugin_run(int size, int rounds)
{
	return herd_run(size, rounds);
}
