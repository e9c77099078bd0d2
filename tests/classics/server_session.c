/* SPDX-License-Identifier: MIT */
/*
 * A server's session with orderly shutdown (M. Grand, Patterns in Java: Two-Phase Termination): on SIGTERM no new work
 * is accepted, what was accepted is finished, and then everybody leaves.
 *
 * Phase one is a token that every wait for new work names; phase two is closing the queue, which the workers drain. A
 * thread that only waits for the signal fires the token: nothing else happens in a handler's place.
 * Seen to fail: a session that waits without the token never ends; taking with the token loses accepted work.
 */
#include "classic.h"

#define SESSIONS 3
#define WORKERS 2

static vez_cancel_t shutdown_token = VEZ_CANCEL_INITIALIZER;
static vez_event_t never = VEZ_EVENT_INITIALIZER; /* a client that says nothing more */
static int places[4];
static vez_queue_t work;
static int accepted, finished;
static sigset_t termination;

/* Every session's last request is a long one: it is handed in when all others have been, and occupies a worker until
 * the sessions have ended. With fewer workers than sessions, some are still queued then. */
#define REQUESTS 500
static vez_latch_t ordinary_ones;
static vez_event_t sessions_ended = VEZ_EVENT_INITIALIZER;

static void *wait_for_signal(void *arg)
{
	int signo;
	(void)arg;
	check(sigwait(&termination, &signo) == 0 && signo == SIGTERM);
	vez_cancel_fire(&shutdown_token);
	return NULL;
}

/* Accepts requests until it is told to stop; some of them while the workers are busy. */
static void *session(void *arg)
{
	int rc = 0;
	(void)arg;
	for (int i = 0; rc == 0; i++) {
		if (i == REQUESTS - 1) {
			check(vez_latch_count_down(&ordinary_ones, 1) == 0);
			check(vez_latch_wait(&ordinary_ones) == 0);
		}
		if (i == REQUESTS)
			rc = vez_event_wait_until(&never, VEZ_FOREVER, &shutdown_token);
		else if ((rc = vez_queue_put_until(&work, &i, VEZ_FOREVER, &shutdown_token)) == 0)
			__atomic_fetch_add(&accepted, 1, __ATOMIC_RELAXED);
	}
	check(rc == ECANCELED);
	return NULL;
}

static void *worker(void *arg)
{
	int request;
	(void)arg;
	while (vez_queue_take(&work, &request) == 0) {
		if (request == REQUESTS - 1)
			check(vez_event_wait(&sessions_ended) == 0);
		__atomic_fetch_add(&finished, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

int main(void)
{
	pthread_t sessions[SESSIONS], workers[WORKERS];
	sigemptyset(&termination);
	sigaddset(&termination, SIGTERM);
	check(pthread_sigmask(SIG_BLOCK, &termination, NULL) == 0);
	check(vez_latch_init(&ordinary_ones, SESSIONS) == 0);
	check(vez_queue_init(&work, places, sizeof places[0], 4) == 0);

	pthread_t signals = start(wait_for_signal, NULL);
	for (int i = 0; i < WORKERS; i++)
		workers[i] = start(worker, NULL);
	for (int i = 0; i < SESSIONS; i++)
		sessions[i] = start(session, NULL);
	await(vez_event_waiters(&never) == SESSIONS);
	check(kill(getpid(), SIGTERM) == 0);

	finish(signals);
	for (int i = 0; i < SESSIONS; i++)
		finish(sessions[i]);
	check(vez_queue_close(&work) == 0 && vez_queue_length(&work) > 0);
	check(vez_event_set(&sessions_ended) == 0);
	for (int i = 0; i < WORKERS; i++)
		finish(workers[i]);
	check(accepted == SESSIONS * REQUESTS && finished == accepted);
	check(vez_cancel_fired(&shutdown_token));
	return 0;
}
