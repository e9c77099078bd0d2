/* SPDX-License-Identifier: MIT */
/*
 * What goes wrong: processes are killed and stopped, connections cut, the server restarted; and a history that is
 * checked. "Seen to fail" names a change of the library, or of the test, with which a test did.
 */
#include "lab.h"

#include <sys/wait.h>

#include "test.h"

#define CLIENTS 4

/* ---- clients that come and go ---- */

struct load {
	struct history *h;
	const char *name;
	uint32_t permits; /* 0: a mutex */
	int port;
	int64_t session_ms;
	int client;
	int rounds;
	int killed; /* where it is to be killed; -1: anywhere */
	int *stop;
};

static int take(struct load *l, vez_cluster_mutex_t *m, vez_cluster_sem_t *s, uint32_t n, vez_cluster_hold_t *hold,
		vez_deadline_t deadline)
{
	(void)l;
	return m ? vez_cluster_mutex_lock(m, hold, deadline, NULL) : vez_cluster_sem_acquire(s, n, hold, deadline, NULL);
}

/* Takes and gives back, and writes down what happened; some give up before. Opens another session when one is lost. */
static int client(void *arg)
{
	struct load *l = arg;
	unsigned random = (unsigned)l->client * 7919u + 1;
	vez_cluster_t *c = NULL;
	vez_cluster_mutex_t *m = NULL;
	vez_cluster_sem_t *s = NULL;
	for (int round = 0; round < l->rounds && !__atomic_load_n(l->stop, __ATOMIC_RELAXED); round++) {
		vez_cluster_hold_t hold;
		if (!c) {
			c = open_session_at(l->port, l->session_ms);
			int rc = l->permits ? vez_cluster_sem_open(&s, c, l->name, l->permits, SOON, NULL) :
					      vez_cluster_mutex_open(&m, c, l->name, SOON, NULL);
			CHECK(rc == 0 || rc == VEZ_ELOST);
			if (rc == VEZ_ELOST) {
				vez_cluster_close(c);
				c = NULL;
				continue;
			}
		}
		random = random * 1103515245u + 12345u;
		uint32_t n = l->permits ? 1 + (random >> 16) % l->permits : 1;
		bool hurries = (random >> 20) % 4 == 0;
		note(l->h, l->client, round, ASKED, n, 0);
		int rc = take(l, m, s, n, &hold, hurries ? vez_after_us((random >> 8) % 3000) : SOON);
		if (rc == 0) {
			bool sure = vez_cluster_hold_check(&hold) == 0;
			if (sure)
				note(l->h, l->client, round, GOT, n, vez_cluster_hold_fence(&hold));
			sure = vez_cluster_hold_check(&hold) == 0;
			note(l->h, l->client, round, sure ? GIVES_BACK : LOST, n, vez_cluster_hold_fence(&hold));
			rc = vez_cluster_release(&hold);
		} else {
			note(l->h, l->client, round, GAVE_UP, n, 0);
			CHECK(rc == VEZ_ELOST || rc == ETIMEDOUT);
			CHECK(rc == VEZ_ELOST || hurries);
		}
		if (rc == VEZ_ELOST) {
			CHECK_EQ(m ? vez_cluster_mutex_close(m) : vez_cluster_sem_close(s), 0);
			CHECK_EQ(vez_cluster_close(c), 0);
			c = NULL;
		}
	}
	if (c) {
		CHECK_EQ(m ? vez_cluster_mutex_close(m) : vez_cluster_sem_close(s), 0);
		CHECK_EQ(vez_cluster_close(c), 0);
	}
	return 0;
}

static void check_history(const struct history *h, uint32_t permits)
{
	const char *fault = history_fault(h, permits ? permits : 1);
	if (fault)
		fprintf(stderr, "%s\n", fault);
	CHECK(fault == NULL);
}

/* Every permit is there, and no node is left. */
static void check_nothing_left(const char *name, uint32_t permits)
{
	vez_cluster_t *c = open_session(10000);
	vez_cluster_hold_t hold;
	vez_cluster_mutex_t *m = NULL;
	vez_cluster_sem_t *s = NULL;
	UNTIL(in_line(permits ? "sem" : "mutex", name) == 0);
	if (permits) {
		CHECK_EQ(vez_cluster_sem_open(&s, c, name, permits, SOON, NULL), 0);
		CHECK_EQ(vez_cluster_sem_acquire(s, permits, &hold, SOON, NULL), 0);
	} else {
		CHECK_EQ(vez_cluster_mutex_open(&m, c, name, SOON, NULL), 0);
		CHECK_EQ(vez_cluster_mutex_lock(m, &hold, SOON, NULL), 0);
	}
	CHECK_EQ(vez_cluster_release(&hold), 0);
	CHECK_EQ(permits ? vez_cluster_sem_close(s) : vez_cluster_mutex_close(m), 0);
	CHECK_EQ(vez_cluster_close(c), 0);
}

static void undisturbed(uint32_t permits)
{
	struct load l[CLIENTS];
	pid_t child[CLIENTS];
	struct history *h = history_new();
	int *stop = shared(sizeof *stop);
	const char *name = fresh();
	for (int i = 0; i < CLIENTS; i++) {
		l[i] = (struct load){ h, name, permits, server_port, 10000, i, 150, 0, stop };
		child[i] = start_child(client, &l[i]);
	}
	for (int i = 0; i < CLIENTS; i++)
		CHECK_EQ(end_of(child[i]), 0);
	CHECK(history_count(h, GOT) > 300);
	check_history(h, permits);
	check_nothing_left(name, permits);
}

static void mutex_undisturbed(void)
{
	undisturbed(0);
}

static void sem_undisturbed(void)
{
	undisturbed(3);
}

/* ---- killed ---- */

/* One client after another is killed at whatever it is doing, and another takes its place. */
static void killed_anywhere(uint32_t permits)
{
	enum { KILLS = 40 };
	struct load l[CLIENTS + KILLS];
	pid_t child[CLIENTS];
	struct history *h = history_new();
	int *stop = shared(sizeof *stop);
	const char *name = fresh();
	for (int i = 0; i < CLIENTS; i++) {
		l[i] = (struct load){ h, name, permits, server_port, 300, i, 1000000, 0, stop };
		child[i] = start_child(client, &l[i]);
	}
	for (int i = 0; i < KILLS; i++) {
		int victim = i % CLIENTS;
		uint32_t seen = __atomic_load_n(&h->count, __ATOMIC_RELAXED);
		UNTIL(__atomic_load_n(&h->count, __ATOMIC_RELAXED) > seen + 5 + (uint32_t)i % 7);
		kill(child[victim], SIGKILL);
		CHECK_EQ(end_of(child[victim]), 1000 + SIGKILL);
		l[CLIENTS + i] = l[victim];
		l[CLIENTS + i].client = CLIENTS + i;
		child[victim] = start_child(client, &l[CLIENTS + i]);
	}
	__atomic_store_n(stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < CLIENTS; i++)
		CHECK_EQ(end_of(child[i]), 0);
	check_history(h, permits);
	check_nothing_left(name, permits);
}

static void mutex_killed(void)
{
	killed_anywhere(0);
}

/* Seen to fail: the end of a session that nobody watches. */
static void sem_killed(void)
{
	killed_anywhere(3);
}

const struct test fault_tests[] = {
	{ "faults: none, mutex", mutex_undisturbed },
	{ "faults: none, sem", sem_undisturbed },
	{ "faults: mutex, killed", mutex_killed },
	{ "faults: sem, killed", sem_killed },
	{ NULL, NULL },
};
