/* SPDX-License-Identifier: MIT */
/* A semaphore acquire in a thread of its own. */
#include "acquire.h"

#include <errno.h>

#define UNTOUCHED 12345

static vez_deadline_t far(void)
{
	return vez_after_ms(INT64_C(3600000));
}

static int call_async(const struct acquire *a, vez_deadline_t deadline, vez_cancel_t *token)
{
	vez_request_t r;
	vez_request_init(&r, NULL, NULL);
	vez_request_set_limits(&r, deadline, token);
	int rc = vez_sem_acquire_async(a->sem, a->n, &r);
	if (rc != EINPROGRESS)
		return rc;
	EXPECT_EQ(vez_request_wait(&r, VEZ_FOREVER, NULL), 0);
	return vez_request_result(&r);
}

static int call(const struct acquire *a, vez_cancel_t *token)
{
	vez_deadline_t deadline = a->deadline ? a->deadline : far();
	switch (a->form) {
	case FAR:
		return vez_sem_acquire_until(a->sem, a->n, deadline, NULL);
	case TOKEN:
		return vez_sem_acquire_until(a->sem, a->n, VEZ_FOREVER, token);
	case TOKEN_FAR:
		return vez_sem_acquire_until(a->sem, a->n, deadline, token);
	case KEYED:
		return vez_sem_acquire_key(a->sem, a->n, a->key, deadline, token);
	case ASYNC:
		return call_async(a, VEZ_FOREVER, NULL);
	case ASYNC_FAR:
		return call_async(a, deadline, NULL);
	case ASYNC_TOKEN:
		return call_async(a, VEZ_FOREVER, token);
	default:
		return vez_sem_acquire(a->sem, a->n);
	}
}

int acquire_as(enum form form, vez_sem_t *s, uint32_t n, vez_cancel_t *token)
{
	struct acquire a = ACQUIRE(s, n, form);
	errno = UNTOUCHED;
	int rc = call(&a, token);
	EXPECT_EQ(errno, UNTOUCHED);
	return rc;
}

static void run(void *arg)
{
	struct acquire *a = arg;
	a->self = vez_cancel_self();
	errno = UNTOUCHED;
	a->rc = call(a, a->token ? a->token : &a->own);
	a->errno_after = errno;
	a->waits = inject_own_waits();
}

void acquire_run(struct acquire *a)
{
	thread_start(&a->thread, run, a);
}

void acquire_start(struct acquire *a)
{
	size_t before = vez_sem_waiters(a->sem);
	acquire_run(a);
	UNTIL(vez_sem_waiters(a->sem) == before + 1);
}

uintptr_t acquire_await_parked(struct acquire *a)
{
	uintptr_t word = 0, lock = (uintptr_t)a->sem;
	UNTIL(word != 0 && word - lock >= sizeof *a->sem)
		word = thread_futex(&a->thread);
	return word;
}

bool acquire_blocked(struct acquire *a)
{
	acquire_await_parked(a);
	return !thread_done(&a->thread) && vez_sem_waiters(a->sem) > 0;
}

int acquire_join(struct acquire *a)
{
	thread_join(&a->thread);
	EXPECT_EQ(a->errno_after, UNTOUCHED);
	return a->rc;
}
