/* SPDX-License-Identifier: MIT */
/*
 * Forks. The child has one thread, the one that forked: every other thread's part in the engine is taken over or
 * forgotten. Tokens are quiet at that moment; what is waited for belongs to the parent.
 */
#include <pthread.h>

#include "alarm.h"
#include "cancel.h"
#include "clock.h"
#include "completion.h"
#include "record.h"
#include "signals.h"

static void in_child(void)
{
	vez__shared_forget();
	vez__inspect_in_child();
	vez__completion_forget();
	vez__alarm_forget();
	vez__clock_forget();
	vez__cancel_forget();
	vez__signals_forget();
	vez__hold_forget();
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(vez__cancel_before_fork, vez__cancel_in_parent, in_child);
}
