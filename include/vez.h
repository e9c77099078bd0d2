/* SPDX-License-Identifier: MIT */
/* vez.h - all of vez: synchronizers that wake exactly the right thread. */
#ifndef VEZ_H
#define VEZ_H

#include "vez/barrier.h"
#include "vez/call.h"
#include "vez/cancel.h"
#include "vez/cond.h"
#include "vez/constraint.h"
#include "vez/deadline.h"
#include "vez/error.h"
#include "vez/event.h"
#include "vez/group.h"
#include "vez/inspect.h"
#include "vez/latch.h"
#include "vez/monitor.h"
#include "vez/mutex.h"
#include "vez/once.h"
#include "vez/queue.h"
#include "vez/request.h"
#include "vez/rwlock.h"
#include "vez/sched.h"
#include "vez/sem.h"
#include "vez/sleep.h"

#endif
