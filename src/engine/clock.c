/* SPDX-License-Identifier: MIT */
/*
 * The library's own thread.
 *
 * State
 *  starting  a short lock: one thread at a time makes it. Unlike others it is held during a system call, once
 *  exists    whether there is one that works; set inside starting, cleared at exit
 *  state     0; WORKING: the thread is at work and may be inside a user's function; STOPPING: the process exits
 *  vez__clock_wanted  whether somebody needs the thread who may not make it
 * What it has to do lies in alarm.c, cancel.c, signals.c and rest.c. These call vez__clock_start, and are called by it:
 *  whoever leaves something to the thread makes sure that there is one.
 * Progress: all that is due is done in every round; then one batch of what calls have left. So nothing is late by more
 *  than that batch.
 * Ordering: state (acq_rel): what the thread did comes before the exit that finds it idle.
 * Lifetime: the thread is made at first need, ends at exit, unless it is inside a user's function then; none is made
 *  after that. It is not in the child of a fork.
 */
#include "clock.h"

#include <errno.h>

#include "../futex/atomic.h"
#include "../futex/fork.h"
#include "../futex/lock.h"
#include "../futex/sys.h"
#include "alarm.h"
#include "await.h"
#include "cancel.h"
#include "completion.h"
#include "signals.h"

#define WORKING 1u
#define STOPPING 2u

static uint64_t starting;
static uint32_t exists;
static uint32_t state;
static pthread_t thread;
uint32_t vez__clock_wanted;

/* Ends the requests that are due at this moment. When others will be. */
static vez_deadline_t end_due(int64_t now)
{
	vez_deadline_t again;
	vez__hold();
	vez_request_t *r = vez__alarm_due(now, &again);
	vez__let_go();
	vez__calls_begin();
	while (r) {
		vez_request_t *following = r->timer_.link_[0];
		vez__end_announced(r, ETIMEDOUT);
		r = following;
	}
	vez__calls_end();
	return again;
}

vez_deadline_t vez__clock_round(void)
{
	vez__alarm_begin();
	vez__signals_fire();
	vez_deadline_t tokens = vez__cancel_fire_due();
	vez_deadline_t requests = end_due(vez__sys_now());
	if (vez__calls_do_rest())
		return VEZ_NOW;
	return tokens < requests ? tokens : requests;
}

static void *run(void *arg)
{
	vez__calls_by_library();
	while (!(vez__fetch_or(&state, WORKING, acq_rel) & STOPPING)) {
		vez_deadline_t again = vez__clock_round();
		if (vez__fetch_and(&state, ~WORKING, acq_rel) & STOPPING)
			break;
		if (again != VEZ_NOW)
			vez__alarm_sleep(again);
	}
	return arg;
}

int vez__clock_start(void)
{
	int rc = 0;
	if (VEZ__LIKELY(vez__load(&exists, acquire)))
		return 0;
	vez__lock_holding(&starting); /* a handler that completes something may need the thread, too */
	if (vez__load(&state, acquire) & STOPPING) {
		rc = EAGAIN;
	} else if (!vez__load(&exists, relaxed)) {
		rc = vez__sys_thread(&thread, run);
		vez__store(&exists, rc == 0, release);
	}
	vez__unlock_holding(&starting);
	return rc;
}

bool vez__clock_exists(void)
{
	return vez__load(&exists, acquire);
}

bool vez__clock_stops(void)
{
	return vez__load(&state, relaxed) & STOPPING;
}

void vez__clock_want(void)
{
	if (!vez__clock_exists())
		vez__store(&vez__clock_wanted, 1, relaxed);
}

/* Who wanted it asks again, if none could be made. */
VEZ__COLD void vez__clock_start_wanted(void)
{
	if (vez__holds())
		return;
	vez__store(&vez__clock_wanted, 0, relaxed);
	vez__clock_start();
}

/* A thread that is inside a user's function may stay there for ever, or be the one that exits. Destructors of a program
 * that libvez.a is linked into may run later: no thread is made for them, which nobody would stop. */
__attribute__((destructor)) static void stop(void)
{
	uint32_t before = vez__fetch_or(&state, STOPPING, acq_rel);
	if (!vez__exchange(&exists, 0, acq_rel))
		return;
	vez__alarm_ring();
	if (before & WORKING)
		vez__sys_detach(thread); /* or ThreadSanitizer reports a leak */
	else
		vez__sys_join(thread);
}

/* The thread, and what runs when a thread ends or a signal comes, are in this object. libvez.so is linked so that it is
 * never unloaded; a plugin that libvez.a is linked into is not. */
__attribute__((constructor)) static void stay(void)
{
	vez__sys_stay_loaded(&exists);
}

/* There is no thread. */
static void in_child(void)
{
	starting = 0;
	exists = 0;
	state = 0;
	vez__clock_wanted = 0;
}

VEZ__AT_FORK(NULL, NULL, in_child)
