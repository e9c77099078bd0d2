/* SPDX-License-Identifier: MIT */
/* What a scenario is. The same file runs under the schedule explorer (engine/) and on real threads (threads.c), where
 * the library has made its own thread. */
#include "vez-explore.h"
