/* SPDX-License-Identifier: MIT */
/* The semaphore. "Seen to fail" names a change of the library with which a test did. */
#include "lab.h"

#include "test.h"

struct sems {
	vez_cluster_t *c[3];
	vez_cluster_sem_t *s[3];
	const char *name;
};

static struct sems three_sessions(uint32_t permits)
{
	struct sems t = { .name = fresh() };
	for (int i = 0; i < 3; i++) {
		t.c[i] = open_session(10000);
		CHECK_EQ(vez_cluster_sem_open(&t.s[i], t.c[i], t.name, permits, SOON, NULL), 0);
	}
	return t;
}

static void end_three(struct sems *t)
{
	UNTIL(in_line("sem", t->name) == 0);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(vez_cluster_sem_close(t->s[i]), 0);
		CHECK_EQ(vez_cluster_close(t->c[i]), 0);
	}
}

static void ask_for(struct sems *t, int i, uint32_t n, vez_cluster_hold_t *h, vez_request_t *r)
{
	int before = in_line("sem", t->name);
	vez_request_init(r, NULL, NULL);
	CHECK_EQ(vez_cluster_sem_acquire_async(t->s[i], n, h, r), EINPROGRESS);
	UNTIL(in_line("sem", t->name) == before + 1);
}

/* Seen to fail: a sum that counts requests instead of permits. */
static void several_permits(void)
{
	struct sems t = three_sessions(5);
	vez_cluster_hold_t h[5];
	vez_request_t r[5];
	CHECK_EQ(vez_cluster_sem_acquire(t.s[0], 0, &h[0], SOON, NULL), EINVAL);
	CHECK_EQ(vez_cluster_sem_acquire(t.s[0], 6, &h[0], SOON, NULL), EINVAL);
	CHECK_EQ(vez_cluster_sem_acquire(t.s[0], 2, &h[0], SOON, NULL), 0);
	CHECK_EQ(vez_cluster_sem_acquire(t.s[1], 2, &h[1], SOON, NULL), 0);
	/* A big one at the head holds back a small one that would fit. */
	ask_for(&t, 2, 2, &h[2], &r[2]);
	ask_for(&t, 1, 1, &h[3], &r[3]);
	ask_for(&t, 0, 1, &h[4], &r[4]);
	CHECK_EQ(vez_request_result(&r[2]), EINPROGRESS);
	CHECK_EQ(vez_request_result(&r[3]), EINPROGRESS);
	/* One release lets two go, and not the third. */
	CHECK_EQ(vez_cluster_release(&h[0]), 0);
	CHECK_EQ(vez_request_wait(&r[2], SOON, NULL), 0);
	CHECK_EQ(vez_request_wait(&r[3], SOON, NULL), 0);
	CHECK_EQ(vez_request_result(&r[2]), 0);
	CHECK_EQ(vez_request_result(&r[3]), 0);
	CHECK(vez_cluster_hold_fence(&h[3]) > vez_cluster_hold_fence(&h[2]));
	CHECK_EQ(vez_request_result(&r[4]), EINPROGRESS);
	CHECK_EQ(vez_cluster_release(&h[3]), 0);
	CHECK_EQ(vez_request_wait(&r[4], SOON, NULL), 0);
	CHECK_EQ(vez_cluster_release(&h[1]) | vez_cluster_release(&h[2]) | vez_cluster_release(&h[4]), 0);
	end_three(&t);
}

/* Who was held back by one that gives up goes at once. Seen to fail: a claim that leaves and tells nobody. */
static void the_head_gives_up(void)
{
	struct sems t = three_sessions(3);
	vez_cluster_hold_t h, big, small[2];
	vez_request_t r, rs[2];
	CHECK_EQ(vez_cluster_sem_acquire(t.s[0], 1, &h, SOON, NULL), 0);
	ask_for(&t, 1, 3, &big, &r);
	ask_for(&t, 2, 1, &small[0], &rs[0]);
	ask_for(&t, 1, 1, &small[1], &rs[1]);
	CHECK_EQ(vez_request_cancel(&r), 0);
	CHECK_EQ(vez_request_wait(&rs[0], SOON, NULL), 0);
	CHECK_EQ(vez_request_wait(&rs[1], SOON, NULL), 0);
	CHECK_EQ(vez_request_result(&rs[0]) | vez_request_result(&rs[1]), 0);
	CHECK_EQ(vez_cluster_release(&h) | vez_cluster_release(&small[0]) | vez_cluster_release(&small[1]), 0);
	end_three(&t);
}

/* Who leaves can let more go than one transaction marks. Seen to fail: those after the first 64 are forgotten; the rest
 * is told from the beginning again. */
static void many_at_once(void)
{
	enum { MANY = 150 };
	static vez_cluster_hold_t all, h[MANY];
	static vez_request_t r[MANY];
	struct sems t = three_sessions(MANY);
	CHECK_EQ(vez_cluster_sem_acquire(t.s[0], MANY, &all, SOON, NULL), 0);
	for (int i = 0; i < MANY; i++) {
		vez_request_init(&r[i], NULL, NULL);
		CHECK_EQ(vez_cluster_sem_acquire_async(t.s[1 + i % 2], 1, &h[i], &r[i]), EINPROGRESS);
	}
	UNTIL(server_figure("zk_watch_count") >= MANY);
	CHECK_EQ(vez_cluster_release(&all), 0);
	for (int i = 0; i < MANY; i++) {
		CHECK_EQ(vez_request_wait(&r[i], SOON, NULL), 0);
		CHECK_EQ(vez_request_result(&r[i]), 0);
	}
	for (int i = 0; i < MANY; i++)
		CHECK_EQ(vez_cluster_release(&h[i]), 0);
	end_three(&t);
}

/* Three that leave at the same moment let three go. Seen to fail: a release that tells by what it read
 * before its node had gone. */
static void leaving_together(void)
{
	struct sems t = three_sessions(3);
	for (int round = 0; round < 30; round++) {
		vez_cluster_hold_t h[3], w[3];
		vez_request_t r[3];
		for (int i = 0; i < 3; i++)
			CHECK_EQ(vez_cluster_sem_acquire(t.s[i], 1, &h[i], SOON, NULL), 0);
		for (int i = 0; i < 3; i++) {
			vez_request_init(&r[i], NULL, NULL);
			CHECK_EQ(vez_cluster_sem_acquire_async(t.s[i], 1, &w[i], &r[i]), EINPROGRESS);
		}
		if (round % 2)
			UNTIL(in_line("sem", t.name) == 6);
		for (int i = 0; i < 3; i++)
			CHECK_EQ(vez_cluster_release(&h[i]), 0);
		for (int i = 0; i < 3; i++) {
			CHECK_EQ(vez_request_wait(&r[i], SOON, NULL), 0);
			CHECK_EQ(vez_request_result(&r[i]), 0);
		}
		for (int i = 0; i < 3; i++)
			CHECK_EQ(vez_cluster_release(&w[i]), 0);
	}
	end_three(&t);
}

const struct test sem_tests[] = {
	{ "sem: several permits", several_permits },
	{ "sem: the head gives up", the_head_gives_up },
	{ "sem: many at once", many_at_once },
	{ "sem: leaving together", leaving_together },
	{ NULL, NULL },
};
