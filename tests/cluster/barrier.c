/* SPDX-License-Identifier: MIT */
/* Barrier and latch. "Seen to fail" names a change of the library with which a test did. */
#include "lab.h"

#include "test.h"

enum { PARTIES = 3 };

struct members {
	vez_cluster_t *c[PARTIES];
	vez_cluster_barrier_t *b[PARTIES];
	const char *name;
};

static vez_cluster_barrier_t *open_barrier(vez_cluster_t *c, const char *name, uint32_t parties)
{
	vez_cluster_barrier_t *b = NULL;
	CHECK_EQ(vez_cluster_barrier_open(&b, c, name, parties, SOON, NULL), 0);
	return b;
}

static int members_of(const char *name)
{
	char path[256];
	snprintf(path, sizeof path, "/vez/barrier-%s/members", name);
	return nodes(path);
}

static struct members three_members(void)
{
	struct members t = { .name = fresh() };
	for (int i = 0; i < PARTIES; i++) {
		t.c[i] = open_session(10000);
		t.b[i] = open_barrier(t.c[i], t.name, PARTIES);
	}
	UNTIL(members_of(t.name) == PARTIES);
	return t;
}

static void close_member(struct members *t, int i)
{
	CHECK_EQ(vez_cluster_barrier_close(t->b[i]) | vez_cluster_close(t->c[i]), 0);
}

/* How many wait: the nodes but "s" and "members". */
static int waiting(const char *name)
{
	return in_line("barrier", name) - 2;
}

/* So that so many wait then. */
static void arrive(vez_cluster_barrier_t *b, const char *name, int count, uint32_t *index, vez_request_t *r)
{
	vez_request_init(r, NULL, NULL);
	CHECK_EQ(vez_cluster_barrier_wait_async(b, index, r), EINPROGRESS);
	UNTIL(waiting(name) == count);
}

static int end_of_wait(vez_request_t *r)
{
	CHECK_EQ(vez_request_wait(r, SOON, NULL), 0);
	return vez_request_result(r);
}

/* Seen to fail: an index that is counted up. */
static void passes_together(void)
{
	struct members t = three_members();
	vez_cluster_barrier_t *other;
	vez_request_t r[PARTIES];
	uint32_t index[PARTIES];
	CHECK_EQ(vez_cluster_barrier_open(&other, t.c[0], t.name, 2, SOON, NULL), EPROTO);
	CHECK_EQ(vez_cluster_barrier_open(&other, t.c[0], fresh(), 0, SOON, NULL), EINVAL);
	CHECK_EQ(vez_cluster_barrier_open(&other, t.c[0], fresh(), VEZ_CLUSTER_BARRIER_MAX + 1, SOON, NULL), EINVAL);
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < PARTIES - 1; i++) {
			arrive(t.b[(i + round) % PARTIES], t.name, i + 1, &index[i], &r[i]);
			CHECK_EQ(vez_request_result(&r[i]), EINPROGRESS);
		}
		CHECK_EQ(vez_cluster_barrier_close(t.b[round % PARTIES]), EBUSY);
		CHECK_EQ(vez_cluster_barrier_wait(t.b[(round + 2) % PARTIES], &index[2], SOON, NULL), 0);
		for (int i = 0; i < PARTIES - 1; i++)
			CHECK_EQ(end_of_wait(&r[i]), 0);
		for (uint32_t i = 0; i < PARTIES; i++)
			CHECK_EQ(index[i], PARTIES - 1 - i);
		UNTIL(waiting(t.name) == 0);
	}
	/* Nobody waits: who leaves breaks nothing. */
	close_member(&t, 0);
	CHECK_EQ(vez_cluster_barrier_wait(t.b[1], NULL, VEZ_NOW, NULL), ETIMEDOUT);
	for (int i = 1; i < PARTIES; i++)
		close_member(&t, i);
}

/* One gives up by deadline, token or cancellation: all get to know, until a reset. Seen to fail: a call "left" that
 * does nothing. */
static void gives_up(void)
{
	struct members t = three_members();
	vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
	vez_request_t r[2];
	for (int how = 0; how < 3; how++) {
		arrive(t.b[0], t.name, 1, NULL, &r[0]);
		if (how == 0) {
			CHECK_EQ(vez_cluster_barrier_wait(t.b[1], NULL, vez_after_ms(50), NULL), ETIMEDOUT);
		} else if (how == 1) {
			vez_cancel_fire_at(&token, vez_after_ms(50));
			CHECK_EQ(vez_cluster_barrier_wait(t.b[1], NULL, SOON, &token), ECANCELED);
			CHECK_EQ(vez_cancel_destroy(&token), 0);
		} else {
			arrive(t.b[1], t.name, 2, NULL, &r[1]);
			CHECK_EQ(vez_request_cancel(&r[1]), 0);
		}
		CHECK_EQ(end_of_wait(&r[0]), VEZ_EBROKEN);
		for (int i = 0; i < PARTIES; i++)
			CHECK_EQ(vez_cluster_barrier_wait(t.b[i], NULL, SOON, NULL), VEZ_EBROKEN);
		CHECK_EQ(vez_cluster_barrier_reset(t.b[how], SOON, NULL), 0);
		arrive(t.b[0], t.name, 1, NULL, &r[0]);
		arrive(t.b[1], t.name, 2, NULL, &r[1]);
		CHECK_EQ(vez_cluster_barrier_wait(t.b[2], NULL, SOON, NULL), 0);
		CHECK_EQ(end_of_wait(&r[0]) | end_of_wait(&r[1]), 0);
		UNTIL(waiting(t.name) == 0);
	}
	/* A reset ends a round. One that is reset at once by who gave up stays whole. */
	arrive(t.b[0], t.name, 1, NULL, &r[0]);
	CHECK_EQ(vez_cluster_barrier_reset(t.b[1], SOON, NULL), 0);
	CHECK_EQ(end_of_wait(&r[0]), VEZ_EBROKEN);
	for (int i = 0; i < 10; i++) {
		CHECK_EQ(vez_cluster_barrier_wait(t.b[1], NULL, vez_after_us(300 * i + 1), NULL), ETIMEDOUT);
		CHECK_EQ(vez_cluster_barrier_reset(t.b[1], SOON, NULL), 0);
		arrive(t.b[0], t.name, 1, NULL, &r[0]);
		arrive(t.b[1], t.name, 2, NULL, &r[1]);
		CHECK_EQ(vez_cluster_barrier_wait(t.b[2], NULL, SOON, NULL), 0);
		CHECK_EQ(end_of_wait(&r[0]) | end_of_wait(&r[1]), 0);
		UNTIL(waiting(t.name) == 0);
	}
	for (int i = 0; i < PARTIES; i++)
		close_member(&t, i);
}

static void round_trip(vez_cluster_t *c)
{
	vez_cluster_mutex_t *m;
	CHECK_EQ(vez_cluster_mutex_open(&m, c, fresh(), SOON, NULL), 0);
	CHECK_EQ(vez_cluster_mutex_close(m), 0);
}

/* A member that leaves while others wait; or before, which one that comes later has seen. Seen to fail: an arrival that
 * does not tell of it. */
static void leaves(void)
{
	struct members t = three_members();
	vez_request_t r;
	arrive(t.b[0], t.name, 1, NULL, &r);
	CHECK_EQ(vez_cluster_barrier_close(t.b[1]), 0);
	CHECK_EQ(end_of_wait(&r), VEZ_EBROKEN);
	CHECK_EQ(vez_cluster_barrier_wait(t.b[2], NULL, SOON, NULL), VEZ_EBROKEN);
	t.b[1] = open_barrier(t.c[1], t.name, PARTIES);
	CHECK_EQ(vez_cluster_barrier_reset(t.b[2], SOON, NULL), 0);
	arrive(t.b[0], t.name, 1, NULL, &r);
	CHECK_EQ(vez_request_cancel(&r), 0);
	CHECK_EQ(vez_cluster_barrier_reset(t.b[0], SOON, NULL), 0);
	CHECK_EQ(vez_cluster_barrier_close(t.b[1]), 0);
	UNTIL(members_of(t.name) == PARTIES - 1);
	/* Who is answered twice has been told, and has asked. */
	round_trip(t.c[0]);
	round_trip(t.c[0]);
	CHECK_EQ(vez_cluster_barrier_wait(t.b[0], NULL, SOON, NULL), VEZ_EBROKEN);
	CHECK_EQ(vez_cluster_close(t.c[1]), 0);
	close_member(&t, 0);
	close_member(&t, 2);
}

/* ---- members that die ---- */

struct party {
	const char *name;
	int port;
	int64_t session_ms;
	uint32_t *passed; /* of each round: how many */
	uint32_t *broken;
	uint32_t rounds;
};

/* Goes through as many rounds as it can. */
static int party(void *arg)
{
	const struct party *p = arg;
	vez_cluster_t *c = open_session_at(p->port, p->session_ms);
	vez_cluster_barrier_t *b = open_barrier(c, p->name, PARTIES);
	int rc = 0;
	for (uint32_t i = 0; rc == 0 && i < p->rounds; i++) {
		rc = vez_cluster_barrier_wait(b, NULL, SOON, NULL);
		CHECK(rc == 0 || rc == VEZ_EBROKEN);
		if (rc == 0) {
			uint32_t before = i ? __atomic_load_n(&p->passed[i - 1], __ATOMIC_RELAXED) : PARTIES;
			__atomic_fetch_add(&p->passed[i], 1, __ATOMIC_RELAXED);
			CHECK(before >= 1);
		}
	}
	__atomic_fetch_add(p->broken, rc == VEZ_EBROKEN, __ATOMIC_RELAXED);
	CHECK_EQ(vez_cluster_barrier_close(b) | vez_cluster_close(c), 0);
	return 0;
}

static uint32_t rounds_passed(const uint32_t *passed)
{
	uint32_t i = 0;
	while (__atomic_load_n(&passed[i], __ATOMIC_RELAXED) > 0)
		i++;
	return i;
}

/* One of three is killed: the others come out of it, having passed the same rounds. */
static int one_dies(void *arg)
{
	enum { ROUNDS = 100000 };
	uint32_t i = *(uint32_t *)arg;
	uint32_t *passed = shared(ROUNDS * sizeof *passed), *broken = shared(sizeof *broken);
	struct party p = { fresh(), server_port, 500, passed, broken, ROUNDS };
	pid_t child[PARTIES];
	for (int j = 0; j < PARTIES; j++)
		child[j] = start_child(party, &p);
	UNTIL(rounds_passed(passed) >= 3 + i);
	kill(child[i % PARTIES], SIGKILL);
	CHECK_EQ(end_of(child[i % PARTIES]), 1000 + SIGKILL);
	for (uint32_t j = 0; j < PARTIES; j++)
		CHECK(j == i % PARTIES || end_of(child[j]) == 0);
	CHECK_EQ(*broken, PARTIES - 1);
	uint32_t last = rounds_passed(passed);
	for (uint32_t j = 0; j + 1 < last; j++)
		CHECK_EQ(passed[j], PARTIES);
	CHECK(passed[last - 1] >= PARTIES - 1);
	UNTIL(waiting(p.name) == 0 && members_of(p.name) == 0);
	/* And it can be used again. */
	struct members t = { .name = p.name };
	vez_request_t r[2];
	for (int j = 0; j < PARTIES; j++) {
		t.c[j] = open_session(10000);
		t.b[j] = open_barrier(t.c[j], p.name, PARTIES);
	}
	CHECK_EQ(vez_cluster_barrier_wait(t.b[0], NULL, SOON, NULL), VEZ_EBROKEN);
	CHECK_EQ(vez_cluster_barrier_reset(t.b[1], SOON, NULL), 0);
	arrive(t.b[0], p.name, 1, NULL, &r[0]);
	arrive(t.b[1], p.name, 2, NULL, &r[1]);
	CHECK_EQ(vez_cluster_barrier_wait(t.b[2], NULL, SOON, NULL), 0);
	CHECK_EQ(end_of_wait(&r[0]) | end_of_wait(&r[1]), 0);
	for (int j = 0; j < PARTIES; j++)
		close_member(&t, j);
	return 0;
}

/* Wherever it is. Seen to fail: a member that goes and is not told of. */
static void dies(void)
{
	for (uint32_t i = 0; i < 8; i++)
		CHECK_EQ(end_of(start_child(one_dies, &i)), 0);
}

/* Connections break at each kind of request, before and after the server has it: each round passes once. */
static void cut(void)
{
	enum { ROUNDS = 120, CUTS = 20 };
	static const int types[] = { ON_CREATE, ON_MULTI, ON_LIST, ON_GET };
	struct proxy *x = proxy_start();
	uint32_t *passed = shared((ROUNDS + 1) * sizeof *passed), *broken = shared(sizeof *broken);
	struct party p[PARTIES];
	pid_t child[PARTIES];
	const char *name = fresh();
	for (int j = 0; j < PARTIES; j++) {
		p[j] = (struct party){ name, j ? x->port : server_port, 20000, passed, broken, ROUNDS };
		child[j] = start_child(party, &p[j]);
	}
	for (uint32_t i = 0; i < CUTS; i++) {
		UNTIL(rounds_passed(passed) > 5 * i);
		x->type = types[i / 2 % 4];
		x->cut = i % 2 ? CUT_AFTER : CUT_BEFORE;
		x->done = 0;
		x->cuts = 1;
		UNTIL(x->done == 1 || rounds_passed(passed) == ROUNDS);
	}
	/* The last round is the same for all: who leaves then breaks nothing. */
	for (int j = 0; j < PARTIES; j++)
		CHECK_EQ(end_of(child[j]), 0);
	CHECK_EQ(*broken, 0);
	for (uint32_t i = 0; i < ROUNDS; i++)
		CHECK_EQ(passed[i], PARTIES);
	UNTIL(waiting(name) == 0 && members_of(name) == 0);
}

/* Seen to fail: an expired session whose waits wait on. */
static void ended_by_a_twin(void)
{
	struct proxy *p = proxy_start();
	vez_cluster_t *c = open_session_at(p->port, 20000), *d = open_session(20000);
	const char *name = fresh();
	vez_cluster_barrier_t *b = open_barrier(c, name, 3), *other = open_barrier(d, name, 3);
	vez_request_t r[2];
	UNTIL(members_of(name) == 2);
	arrive(b, name, 1, NULL, &r[0]);
	arrive(other, name, 2, NULL, &r[1]);
	end_session(p);
	CHECK_EQ(end_of_wait(&r[0]), VEZ_ELOST);
	CHECK_EQ(end_of_wait(&r[1]), VEZ_EBROKEN);
	CHECK_EQ(vez_cluster_barrier_close(b) | vez_cluster_close(c), 0);
	CHECK_EQ(vez_cluster_barrier_close(other) | vez_cluster_close(d), 0);
}

/* ---- latch ---- */

static vez_cluster_latch_t *open_latch(vez_cluster_t *c, const char *name, uint32_t count)
{
	vez_cluster_latch_t *l = NULL;
	CHECK_EQ(vez_cluster_latch_open(&l, c, name, count, SOON, NULL), 0);
	return l;
}

/* Seen to fail: a gate that stays when the count is 0. */
static void latch_opens(void)
{
	enum { MANY = 50 };
	static vez_request_t r[MANY];
	vez_cluster_t *c[2] = { open_session(10000), open_session(10000) };
	const char *name = fresh();
	vez_cluster_latch_t *l[2] = { open_latch(c[0], name, 5), open_latch(c[1], name, 5) }, *other;
	CHECK_EQ(vez_cluster_latch_open(&other, c[0], name, 4, SOON, NULL), EPROTO);
	CHECK_EQ(vez_cluster_latch_open(&other, c[0], fresh(), 0, SOON, NULL), EINVAL);
	CHECK_EQ(vez_cluster_latch_wait(l[0], vez_after_ms(30), NULL), ETIMEDOUT);
	for (int i = 0; i < MANY; i++) {
		vez_request_init(&r[i], NULL, NULL);
		CHECK_EQ(vez_cluster_latch_wait_async(l[i % 2], &r[i]), EINPROGRESS);
	}
	CHECK_EQ(vez_cluster_latch_close(l[0]), EBUSY);
	CHECK_EQ(vez_cluster_latch_count_down(l[0], 1, SOON, NULL), 0);
	CHECK_EQ(vez_cluster_latch_count_down(l[1], 2, SOON, NULL), 0);
	CHECK_EQ(vez_cluster_latch_count_down(l[1], 1, SOON, NULL), 0);
	CHECK_EQ(vez_cluster_latch_wait(l[0], vez_after_ms(30), NULL), ETIMEDOUT);
	for (int i = 0; i < MANY; i++)
		CHECK_EQ(vez_request_result(&r[i]), EINPROGRESS);
	CHECK_EQ(vez_cluster_latch_count_down(l[0], 7, SOON, NULL), 0);
	for (int i = 0; i < MANY; i++)
		CHECK_EQ(end_of_wait(&r[i]), 0);
	CHECK_EQ(vez_cluster_latch_count_down(l[0], 1, SOON, NULL), 0);
	CHECK_EQ(vez_cluster_latch_wait(l[1], SOON, NULL), 0);
	UNTIL(in_line("latch", name) == 1);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(vez_cluster_latch_close(l[i]) | vez_cluster_close(c[i]), 0);
}

/* Each call counts once, whatever breaks; the last one opens it. Seen to fail: a call that is made again without a
 * look. */
static void latch_cut(void)
{
	static const int types[] = { ON_CREATE, ON_CREATE, ON_MULTI, ON_LIST, ON_GET };
	struct proxy *p = proxy_start();
	vez_cluster_t *far = open_session_at(p->port, 20000), *near = open_session(20000);
	const char *name = fresh();
	vez_cluster_latch_t *f = open_latch(far, name, 11), *n = open_latch(near, name, 11);
	vez_request_t r;
	vez_request_init(&r, NULL, NULL);
	CHECK_EQ(vez_cluster_latch_wait_async(n, &r), EINPROGRESS);
	for (int i = 0; i < 10; i++) {
		p->type = types[i / 2];
		p->cut = i % 2 ? CUT_AFTER : CUT_BEFORE;
		p->done = 0;
		p->cuts = 1;
		CHECK_EQ(vez_cluster_latch_count_down(f, 1, SOON, NULL), 0);
		UNTIL(p->done == 1);
		UNTIL(in_line("latch", name) == 2);
	}
	CHECK_EQ(vez_request_result(&r), EINPROGRESS);
	CHECK_EQ(vez_cluster_latch_count_down(f, 1, SOON, NULL), 0);
	CHECK_EQ(end_of_wait(&r), 0);
	CHECK_EQ(vez_cluster_latch_close(f) | vez_cluster_latch_close(n), 0);
	CHECK_EQ(vez_cluster_close(far) | vez_cluster_close(near), 0);
}

const struct test barrier_tests[] = {
	{ "barrier: passes together", passes_together },
	{ "barrier: gives up", gives_up },
	{ "barrier: leaves", leaves },
	{ "barrier: faults, dies", dies },
	{ "barrier: faults, cut", cut },
	{ "barrier: ended by a twin", ended_by_a_twin },
	{ "latch: opens", latch_opens },
	{ "latch: cut", latch_cut },
	{ NULL, NULL },
};
