/* SPDX-License-Identifier: MIT */
/*
 * The functions that a program calls in place of the C library's: each counts, and calls the one that is behind it.
 *
 * State: per thread, the wait that it has returned from. It is forgotten when the thread unlocks that mutex, signals,
 *  or waits for something else. If it is still there when the thread waits on the same pair, within the time, the
 *  thread was woken in vain. The wake is laid to the last site that woke somebody on that condition.
 * Invariants: P1 no lock; no call of the program's functions; errno as the function behind left it. A handler that
 *  comes in between at most makes a count forget one wake.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "raw.h"
#include "real.h"
#include "table.h"

#define EXPORTED __attribute__((visibility("default")))
#define CALLER ((uintptr_t)__builtin_return_address(0))

static _Thread_local struct {
	const void *cond, *mutex;
	struct wakes_site *site, *waker;
	uint64_t when;
} last __attribute__((tls_model("initial-exec")));

static inline void forget(void)
{
	last.cond = NULL;
	last.mutex = NULL;
}

static void count_in_vain(void)
{
	if (raw_now() - last.when > wakes__within())
		return;
	wakes__add(&last.site->in_vain);
	if (last.waker)
		wakes__add(&last.waker->in_vain);
}

/* NULL: this process is not counted. */
static struct wakes_site *wait_begins(const void *cond, const void *mutex, uintptr_t caller, enum wakes_kind kind)
{
	struct process *p = wakes__process();
	struct trace trace;
	if (!p)
		return NULL;
	if (last.cond == cond && last.mutex == mutex)
		count_in_vain(); /* first: what follows takes time */
	forget();
	wakes__trace(&trace, caller);
	struct wakes_site *site = wakes__site(p->table, &trace, kind);
	wakes__add(&site->calls);
	wakes__cond_enter(p->conds, cond);
	return site;
}

static struct wakes_site *waker_of(struct process *p, const void *cond)
{
	int number = wakes__cond_waker(p->conds, cond);
	return number < 0 ? NULL : &p->table->sites[number];
}

static void woken(struct wakes_site *site, const void *cond, const void *mutex)
{
	struct process *p = wakes__process();
	last.cond = cond;
	last.mutex = mutex;
	last.site = site;
	last.waker = p ? waker_of(p, cond) : NULL;
	last.when = raw_now();
	wakes__add(&site->woken);
	atomic_store_explicit(&site->last, last.when, memory_order_relaxed);
	if (last.waker)
		wakes__add(&last.waker->woken);
}

static void not_woken(struct wakes_site *site, const void *cond, bool timed_out)
{
	struct process *p = wakes__process();
	if (p)
		wakes__cond_leave(p->conds, cond);
	if (timed_out)
		wakes__add(&site->timeouts);
}

static void wait_ends(struct wakes_site *site, const void *cond, const void *mutex, int rc, int timeout)
{
	if (!site)
		return;
	if (rc == 0)
		woken(site, cond, mutex);
	else
		not_woken(site, cond, rc == timeout);
}

static void wake(const void *cond, uintptr_t caller, enum wakes_kind kind)
{
	struct process *p = wakes__process();
	struct trace trace;
	forget();
	if (!p)
		return;
	struct wakes_table *t = p->table;
	wakes__trace(&trace, caller);
	struct wakes_site *site = wakes__site(t, &trace, kind);
	unsigned number = site >= t->sites && site < t->sites + WAKES_SITES ? (unsigned)(site - t->sites) : 0;
	wakes__add(&site->calls);
	if (!wakes__cond_wake(p->conds, cond, kind == WAKES_SIGNAL ? 1 : UINT32_MAX, number))
		wakes__add(&site->nobody);
}

/* ---- POSIX ---- */

EXPORTED int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	struct wakes_site *site = wait_begins(cond, mutex, CALLER, WAKES_WAIT);
	int rc = wakes__real(REAL_COND_WAIT).cond_wait(cond, mutex);
	wait_ends(site, cond, mutex, rc, ETIMEDOUT);
	return rc;
}

EXPORTED int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
	struct wakes_site *site = wait_begins(cond, mutex, CALLER, WAKES_TIMED);
	int rc = wakes__real(REAL_COND_TIMEDWAIT).cond_timedwait(cond, mutex, until);
	wait_ends(site, cond, mutex, rc, ETIMEDOUT);
	return rc;
}

EXPORTED int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
	const struct timespec *until)
{
	struct wakes_site *site = wait_begins(cond, mutex, CALLER, WAKES_TIMED);
	int rc = wakes__real(REAL_COND_CLOCKWAIT).cond_clockwait(cond, mutex, clock, until);
	wait_ends(site, cond, mutex, rc, ETIMEDOUT);
	return rc;
}

EXPORTED int pthread_cond_signal(pthread_cond_t *cond)
{
	wake(cond, CALLER, WAKES_SIGNAL);
	return wakes__real(REAL_COND_SIGNAL).cond(cond);
}

EXPORTED int pthread_cond_broadcast(pthread_cond_t *cond)
{
	wake(cond, CALLER, WAKES_BROADCAST);
	return wakes__real(REAL_COND_BROADCAST).cond(cond);
}

EXPORTED int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	if (last.mutex == mutex)
		forget();
	return wakes__real(REAL_MUTEX_UNLOCK).mutex(mutex);
}

/* ---- C11: the C library's do not call those above ---- */

EXPORTED int cnd_wait(cnd_t *cond, mtx_t *mutex)
{
	struct wakes_site *site = wait_begins(cond, mutex, CALLER, WAKES_WAIT);
	int rc = wakes__real(REAL_CND_WAIT).cnd_wait(cond, mutex);
	wait_ends(site, cond, mutex, rc, thrd_timedout);
	return rc;
}

EXPORTED int cnd_timedwait(cnd_t *restrict cond, mtx_t *restrict mutex, const struct timespec *restrict until)
{
	struct wakes_site *site = wait_begins(cond, mutex, CALLER, WAKES_TIMED);
	int rc = wakes__real(REAL_CND_TIMEDWAIT).cnd_timedwait(cond, mutex, until);
	wait_ends(site, cond, mutex, rc, thrd_timedout);
	return rc;
}

EXPORTED int cnd_signal(cnd_t *cond)
{
	wake(cond, CALLER, WAKES_SIGNAL);
	return wakes__real(REAL_CND_SIGNAL).cnd(cond);
}

EXPORTED int cnd_broadcast(cnd_t *cond)
{
	wake(cond, CALLER, WAKES_BROADCAST);
	return wakes__real(REAL_CND_BROADCAST).cnd(cond);
}

EXPORTED int mtx_unlock(mtx_t *mutex)
{
	if (last.mutex == mutex)
		forget();
	return wakes__real(REAL_MTX_UNLOCK).mtx(mutex);
}
