/* SPDX-License-Identifier: MIT */
/* Several monitors in one step. "Seen to fail" names a change of the library with which a test did. */
#include "lab.h"

#include "test.h"

enum { MOST_CLIENTS = 64, MOST_CALLS = 100000, ALL = 1000 };

/* A monitor's bytes. steps: how many steps of both there have been; last: of each client, its last step, so that one
 * which is done twice is seen. */
struct account {
	int64_t money;
	uint64_t steps;
	uint64_t pokes;
	uint32_t last[MOST_CLIENTS];
};

struct order {
	int64_t much;
	uint32_t client;
	uint32_t round;
};

/* What a step of both gives. */
struct seen {
	uint64_t steps[2];
	int64_t money[2];
};

static struct account *account_of(void *state, size_t *size)
{
	if (*size == 0)
		memset(state, 0, sizeof(struct account));
	*size = sizeof(struct account);
	return state;
}

static struct order order_of(const void *argument)
{
	struct order o;
	memcpy(&o, argument, sizeof o);
	return o;
}

/* ---- on one account ---- */

static int put(vez_cluster_step_t *s, void *arg)
{
	struct account *a = account_of(s->state, &s->state_size);
	(void)arg;
	a->money += order_of(s->argument).much;
	return 0;
}

static bool has_enough(const vez_cluster_step_t *s, void *arg)
{
	(void)arg;
	return s->state_size > 0 && ((struct account *)s->state)->money >= order_of(s->argument).much;
}

static int take(vez_cluster_step_t *s, void *arg)
{
	struct account *a = account_of(s->state, &s->state_size);
	(void)arg;
	a->money -= order_of(s->argument).much;
	return 0;
}

/* Changes the state, and no money. */
static int poke(vez_cluster_step_t *s, void *arg)
{
	struct account *a = account_of(s->state, &s->state_size);
	(void)arg;
	memcpy(s->result, &a->pokes, sizeof a->pokes);
	s->result_size = sizeof a->pokes;
	a->pokes++;
	return 0;
}

static const vez_cluster_operation_t operations[] = {
	{ "put", NULL, put },
	{ "take", has_enough, take },
	{ "poke", NULL, poke },
};

/* ---- on both ---- */

static bool can_move(const vez_cluster_joint_step_t *s, void *arg)
{
	int64_t much = order_of(s->argument).much;
	const vez_cluster_bytes_t *from = &s->states[much < 0];
	(void)arg;
	return from->size > 0 && ((const struct account *)from->data)->money >= (much < 0 ? -much : much);
}

/* From the first to the second; less than nothing goes the other way. */
static int move(vez_cluster_joint_step_t *s, void *arg)
{
	struct order o = order_of(s->argument);
	struct account *a[2];
	struct seen seen;
	(void)arg;
	for (int i = 0; i < 2; i++)
		a[i] = account_of(s->states[i].data, &s->states[i].size);
	if (o.round > 0 && o.round <= a[0]->last[o.client])
		return EEXIST;
	for (int i = 0; i < 2; i++) {
		seen.steps[i] = a[i]->steps++;
		a[i]->money -= i ? -o.much : o.much;
		a[i]->last[o.client] = o.round;
		seen.money[i] = a[i]->money;
	}
	memcpy(s->result, &seen, sizeof seen);
	s->result_size = sizeof seen;
	return 0;
}

static int look(vez_cluster_joint_step_t *s, void *arg)
{
	struct seen seen = { { 0, 0 }, { 0, 0 } };
	(void)arg;
	for (int i = 0; i < 2; i++) {
		const struct account *a = s->states[i].data;
		seen.steps[i] = s->states[i].size ? a->steps : 0;
		seen.money[i] = s->states[i].size ? a->money : 0;
	}
	memcpy(s->result, &seen, sizeof seen);
	s->result_size = sizeof seen;
	return 0;
}

static int fail(vez_cluster_joint_step_t *s, void *arg)
{
	(void)arg;
	for (int i = 0; i < 2; i++)
		account_of(s->states[i].data, &s->states[i].size)->money = 12345;
	return EDOM;
}

static int swell(vez_cluster_joint_step_t *s, void *arg)
{
	(void)arg;
	account_of(s->states[0].data, &s->states[0].size)->money = 12345;
	memcpy(&s->states[1].size, s->argument, sizeof s->states[1].size);
	return 0;
}

static const vez_cluster_joint_operation_t joint[] = {
	{ "move", can_move, move }, { "look", NULL, look }, { "fail", NULL, fail }, { "swell", NULL, swell },
};

struct bank {
	vez_cluster_t *c;
	vez_cluster_monitor_t *m[2];
	vez_cluster_synchronizer_t *y;
};

static struct bank open_bank_at(int port, int64_t session_ms, const char *name)
{
	struct bank b = { .c = open_session_at(port, session_ms) };
	char account[80];
	for (int i = 0; i < 2; i++) {
		snprintf(account, sizeof account, "%s-%d", name, i);
		CHECK_EQ(vez_cluster_monitor_open(&b.m[i], b.c, account, operations, 3, NULL, SOON, NULL), 0);
	}
	CHECK_EQ(vez_cluster_synchronizer_open(&b.y, b.c, name, b.m, 2, joint, 4, NULL, SOON, NULL), 0);
	return b;
}

static struct bank open_bank(const char *name)
{
	return open_bank_at(server_port, 10000, name);
}

static void close_bank(const struct bank *b)
{
	CHECK_EQ(vez_cluster_monitor_close(b->m[0]) | vez_cluster_monitor_close(b->m[1]), 0);
	CHECK_EQ(vez_cluster_synchronizer_close(b->y) | vez_cluster_close(b->c), 0);
}

static int put_into(vez_cluster_monitor_t *m, int64_t much)
{
	struct order o = { much, 0, 0 };
	return vez_cluster_monitor_call(m, "put", &o, sizeof o, NULL, SOON, NULL);
}

static struct seen look_at(const struct bank *b)
{
	struct seen seen;
	vez_cluster_bytes_t result = { &seen, 0, sizeof seen };
	CHECK_EQ(vez_cluster_synchronizer_call(b->y, "look", NULL, 0, &result, SOON, NULL), 0);
	CHECK_EQ(result.size, sizeof seen);
	return seen;
}

static void check_money(const struct bank *b, int64_t first, int64_t second)
{
	struct seen seen = look_at(b);
	CHECK_EQ(seen.money[0], first);
	CHECK_EQ(seen.money[1], second);
}

static int move_money(const struct bank *b, int64_t much, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	struct order o = { much, 0, 0 };
	return vez_cluster_synchronizer_call(b->y, "move", &o, sizeof o, NULL, deadline, cancel);
}

static void move_later(const struct bank *b, int64_t much, vez_request_t *r)
{
	struct order o = { much, 0, 0 };
	vez_request_init(r, NULL, NULL);
	CHECK_EQ(vez_cluster_synchronizer_call_async(b->y, "move", &o, sizeof o, NULL, r), EINPROGRESS);
}

static void comes(vez_request_t *r)
{
	CHECK_EQ(vez_request_wait(r, SOON, NULL), 0);
	CHECK_EQ(vez_request_result(r), 0);
}

/* No node is left but "s". */
static void check_empty(const char *name)
{
	char account[80];
	UNTIL(in_line("synchronizer", name) == 1);
	for (int i = 0; i < 2; i++) {
		snprintf(account, sizeof account, "%s-%d", name, i);
		UNTIL(in_line("monitor", account) == 1);
	}
}

/* ---- what it does ---- */

/* Seen to fail: arguments that are not looked at; states that a failed body has changed. */
static void limits(void)
{
	const char *name = fresh();
	struct bank b = open_bank(name), d = open_bank(name);
	vez_cluster_monitor_t *bad[5] = { b.m[0], d.m[1], b.m[0], b.m[0], b.m[0] };
	vez_cluster_synchronizer_t *y;
	vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
	vez_request_t r, local, *winner;
	static char big[VEZ_CLUSTER_BYTES_MAX + 1];
	size_t size = VEZ_CLUSTER_STATE_MAX + 1;
	CHECK_EQ(vez_cluster_synchronizer_open(&y, b.c, "x", b.m, 0, joint, 4, NULL, SOON, NULL), EINVAL);
	CHECK_EQ(vez_cluster_synchronizer_open(&y, b.c, "x", bad, 5, joint, 4, NULL, SOON, NULL), EINVAL);
	CHECK_EQ(vez_cluster_synchronizer_open(&y, b.c, "x", bad, 2, joint, 4, NULL, SOON, NULL), EINVAL);
	bad[1] = b.m[0];
	CHECK_EQ(vez_cluster_synchronizer_open(&y, b.c, "x", bad, 2, joint, 4, NULL, SOON, NULL), EINVAL);
	CHECK_EQ(vez_cluster_synchronizer_open(&y, b.c, "x", b.m, 2, joint, 0, NULL, SOON, NULL), EINVAL);
	CHECK_EQ(vez_cluster_synchronizer_open(&y, b.c, "a/b", b.m, 2, joint, 4, NULL, SOON, NULL), EINVAL);
	CHECK_EQ(vez_cluster_synchronizer_open(&y, b.c, name, b.m, 1, joint, 4, NULL, SOON, NULL), EPROTO);
	CHECK_EQ(vez_cluster_synchronizer_open(&y, b.c, name, b.m, 2, joint, 3, NULL, SOON, NULL), EPROTO);
	bad[0] = b.m[1];
	CHECK_EQ(vez_cluster_synchronizer_open(&y, b.c, name, bad, 2, joint, 4, NULL, SOON, NULL), EPROTO);
	CHECK_EQ(vez_cluster_synchronizer_call(b.y, "none", NULL, 0, NULL, SOON, NULL), ENOSYS);
	CHECK_EQ(vez_cluster_synchronizer_call(b.y, "look", big, sizeof big, NULL, SOON, NULL), EMSGSIZE);

	CHECK_EQ(put_into(b.m[0], 7), 0);
	CHECK_EQ(vez_cluster_synchronizer_call(b.y, "fail", NULL, 0, NULL, SOON, NULL), EDOM);
	CHECK_EQ(vez_cluster_synchronizer_call(b.y, "swell", &size, sizeof size, NULL, SOON, NULL), EMSGSIZE);
	check_money(&d, 7, 0);
	/* Those that are served in one go, too. */
	vez_request_t many[20];
	struct seen seen[20];
	vez_cluster_bytes_t results[20];
	for (int i = 0; i < 20; i++) {
		results[i] = (vez_cluster_bytes_t){ &seen[i], 0, sizeof seen[i] };
		vez_request_init(&many[i], NULL, NULL);
		CHECK_EQ(vez_cluster_synchronizer_call_async(b.y, i % 2 ? "look" : "fail", NULL, 0, &results[i],
							     &many[i]), EINPROGRESS);
	}
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(vez_request_wait(&many[i], SOON, NULL), 0);
		CHECK_EQ(vez_request_result(&many[i]), i % 2 ? 0 : EDOM);
		CHECK(i % 2 == 0 || (seen[i].money[0] == 7 && seen[i].money[1] == 0));
	}
	vez_cluster_bytes_t small = { big, 0, 3 };
	CHECK_EQ(vez_cluster_synchronizer_call(d.y, "look", NULL, 0, &small, SOON, NULL), ENOBUFS);

	CHECK_EQ(move_money(&b, 8, VEZ_NOW, NULL), ETIMEDOUT);
	CHECK_EQ(move_money(&b, 8, vez_after_ms(30), NULL), ETIMEDOUT);
	vez_cancel_fire_at(&token, vez_after_ms(30));
	CHECK_EQ(move_money(&b, 8, SOON, &token), ECANCELED);
	CHECK_EQ(vez_cancel_destroy(&token), 0);
	vez_select_t s;
	vez_event_t event = VEZ_EVENT_INITIALIZER;
	struct order o = { 8, 0, 0 };
	vez_select_init(&s);
	vez_request_init(&r, NULL, NULL);
	vez_request_init(&local, NULL, NULL);
	vez_cluster_synchronizer_call_async(b.y, "move", &o, sizeof o, NULL, vez_select_case(&s, &r));
	vez_event_wait_async(&event, vez_select_case(&s, &local));
	vez_event_set(&event);
	CHECK_EQ(vez_select_wait(&s, SOON, NULL, &winner), 0);
	CHECK(winner == &local);
	check_money(&d, 7, 0);
	check_empty(name);

	move_later(&b, 8, &r);
	CHECK_EQ(vez_cluster_synchronizer_close(b.y), EBUSY);
	CHECK_EQ(vez_cluster_close(b.c), 0);
	CHECK_EQ(vez_request_result(&r), VEZ_ECLOSED);
	CHECK_EQ(move_money(&b, 1, SOON, NULL), VEZ_ECLOSED);
	CHECK_EQ(vez_cluster_monitor_close(b.m[0]) | vez_cluster_monitor_close(b.m[1]), 0);
	CHECK_EQ(vez_cluster_synchronizer_close(b.y), 0);
	close_bank(&d);
}

/* Both at once, the largest, too; and what changes in one step lets go who waits at one of the monitors, also in a
 * process that knows nothing of the other. Seen to fail: who waits at a monitor is not asked. */
static void one_step(void)
{
	const char *name = fresh();
	struct bank b = open_bank(name), d = open_bank(name);
	vez_cluster_t *c = open_session(10000);
	vez_cluster_monitor_t *m;
	vez_request_t r[2];
	struct order o = { 5, 0, 0 };
	size_t size = VEZ_CLUSTER_STATE_MAX;
	char account[80];
	snprintf(account, sizeof account, "%s-1", name);
	CHECK_EQ(vez_cluster_monitor_open(&m, c, account, operations, 3, NULL, SOON, NULL), 0);
	for (int i = 0; i < 2; i++) {
		vez_request_init(&r[i], NULL, NULL);
		CHECK_EQ(vez_cluster_monitor_call_async(i ? b.m[1] : m, "take", &o, sizeof o, NULL, &r[i]),
			 EINPROGRESS);
		UNTIL(in_line("monitor", account) == i + 2);
	}
	CHECK_EQ(put_into(d.m[0], 20), 0);
	CHECK_EQ(move_money(&d, 4, SOON, NULL), 0);
	check_money(&b, 16, 4);
	CHECK_EQ(move_money(&d, 2, SOON, NULL), 0);
	comes(&r[0]);
	check_money(&d, 14, 1);
	CHECK_EQ(vez_request_result(&r[1]), EINPROGRESS);
	CHECK_EQ(move_money(&b, 4, SOON, NULL), 0);
	comes(&r[1]);
	check_money(&d, 10, 0);
	CHECK_EQ(vez_cluster_synchronizer_call(b.y, "swell", &size, sizeof size, NULL, SOON, NULL), 0);
	check_money(&d, 12345, 0);
	check_empty(name);
	CHECK_EQ(vez_cluster_monitor_close(m) | vez_cluster_close(c), 0);
	close_bank(&b);
	close_bank(&d);
}

/* Who waits for both is let go by a change of one, made by a process that knows nothing of the synchronizer; whoever
 * gives up, or is cut off until its session is over, in front of it. Seen to fail: a call that waits, of which its
 * process is not told; states that are not watched; a process in front that is not. */
static void guards(void)
{
	const char *name = fresh();
	struct bank b[4];
	vez_cluster_t *c = open_session(10000);
	vez_cluster_monitor_t *m;
	vez_request_t r[4];
	struct proxy *p = proxy_start();
	char account[80];
	snprintf(account, sizeof account, "%s-0", name);
	CHECK_EQ(vez_cluster_monitor_open(&m, c, account, operations, 3, NULL, SOON, NULL), 0);
	for (int i = 0; i < 4; i++) {
		b[i] = i == 1 ? open_bank_at(p->port, 2000, name) : open_bank(name);
		move_later(&b[i], i == 3 ? 9 : 10, &r[i]);
		UNTIL(in_line("synchronizer", name) == i + 2);
		check_money(&b[0], 0, 0); /* it waits now */
	}
	UNTIL(in_line("synchronizer", name) == 5);
	CHECK_EQ(put_into(m, 8), 0);
	CHECK_EQ(vez_request_cancel(&r[0]), 0);
	UNTIL(in_line("synchronizer", name) == 4);
	CHECK_EQ(put_into(m, 1), 0);
	comes(&r[3]);
	CHECK_EQ(put_into(m, 9), 0);
	CHECK_EQ(vez_request_result(&r[1]), EINPROGRESS);
	p->shut = 1;
	CHECK_EQ(put_into(m, 1), 0);
	comes(&r[2]);
	CHECK_EQ(vez_request_wait(&r[1], SOON, NULL), 0);
	CHECK_EQ(vez_request_result(&r[1]), VEZ_ELOST);
	CHECK_EQ(vez_cluster_close(b[1].c), 0);
	check_money(&b[0], 0, 19);
	/* Again and again, so that the change comes wherever they are. */
	for (int i = 0; i < 50; i++) {
		move_later(&b[0], 2, &r[0]);
		if (i % 2)
			move_later(&b[2], -20, &r[2]);
		CHECK_EQ(put_into(m, 2), 0);
		comes(&r[0]);
		if (i % 2) {
			comes(&r[2]);
			CHECK_EQ(move_money(&b[3], 20, SOON, NULL), 0);
			CHECK_EQ(put_into(b[3].m[1], -4), 0);
		}
	}
	check_money(&b[0], 0, 19);
	check_empty(name);
	CHECK_EQ(vez_cluster_synchronizer_close(b[1].y), 0);
	CHECK_EQ(vez_cluster_monitor_close(b[1].m[0]) | vez_cluster_monitor_close(b[1].m[1]), 0);
	CHECK_EQ(vez_cluster_monitor_close(m) | vez_cluster_close(c), 0);
	close_bank(&b[0]);
	close_bank(&b[2]);
	close_bank(&b[3]);
}

static int fill(vez_cluster_joint_step_t *s, void *arg)
{
	(void)arg;
	for (int i = 0; i < VEZ_CLUSTER_RELATED_MAX; i++) {
		s->states[i].size = VEZ_CLUSTER_STATE_MAX;
		memset(s->states[i].data, 'a' + i, VEZ_CLUSTER_STATE_MAX);
	}
	memset(s->result, 'r', VEZ_CLUSTER_BYTES_MAX);
	s->result_size = VEZ_CLUSTER_BYTES_MAX;
	return 0;
}

static bool is_full(const vez_cluster_step_t *s, void *arg)
{
	(void)arg;
	return s->state_size == VEZ_CLUSTER_STATE_MAX;
}

static int give_much(vez_cluster_step_t *s, void *arg)
{
	(void)arg;
	memset(s->result, ((char *)s->state)[VEZ_CLUSTER_STATE_MAX - 1], VEZ_CLUSTER_BYTES_MAX);
	s->result_size = VEZ_CLUSTER_BYTES_MAX;
	return 0;
}

/* As many monitors as there can be, all of them full in one step; calls wait at each, and give as much as they can: not
 * all in one transaction. Seen to fail: nobody looks for those that are left for another one. */
static void largest(void)
{
	enum { WAIT = 12 };
	static const vez_cluster_operation_t give[] = { { "give", is_full, give_much } };
	static const vez_cluster_joint_operation_t all[] = { { "fill", NULL, fill } };
	static char room[WAIT + 1][VEZ_CLUSTER_BYTES_MAX];
	vez_cluster_t *c = open_session(20000), *other = open_session(20000);
	vez_cluster_monitor_t *m[VEZ_CLUSTER_RELATED_MAX], *n[VEZ_CLUSTER_RELATED_MAX];
	vez_cluster_synchronizer_t *y;
	vez_request_t r[WAIT];
	vez_cluster_bytes_t result[WAIT + 1];
	const char *name = fresh();
	char one[80];
	for (int i = 0; i < VEZ_CLUSTER_RELATED_MAX; i++) {
		snprintf(one, sizeof one, "%s-%d", name, i);
		CHECK_EQ(vez_cluster_monitor_open(&m[i], c, one, give, 1, NULL, SOON, NULL), 0);
		CHECK_EQ(vez_cluster_monitor_open(&n[i], other, one, give, 1, NULL, SOON, NULL), 0);
	}
	CHECK_EQ(vez_cluster_synchronizer_open(&y, c, name, m, VEZ_CLUSTER_RELATED_MAX, all, 1, NULL, SOON, NULL), 0);
	for (int i = 0; i <= WAIT; i++)
		result[i] = (vez_cluster_bytes_t){ room[i], 0, sizeof room[i] };
	for (int i = 0; i < WAIT; i++) {
		vez_request_init(&r[i], NULL, NULL);
		CHECK_EQ(vez_cluster_monitor_call_async(n[i % VEZ_CLUSTER_RELATED_MAX], "give", NULL, 0, &result[i],
							&r[i]), EINPROGRESS);
	}
	for (int i = 0; i < VEZ_CLUSTER_RELATED_MAX; i++) {
		snprintf(one, sizeof one, "%s-%d", name, i);
		UNTIL(in_line("monitor", one) == 1 + WAIT / VEZ_CLUSTER_RELATED_MAX);
	}
	CHECK_EQ(vez_cluster_synchronizer_call(y, "fill", NULL, 0, &result[WAIT], SOON, NULL), 0);
	CHECK(result[WAIT].size == VEZ_CLUSTER_BYTES_MAX && room[WAIT][0] == 'r');
	for (int i = 0; i < WAIT; i++) {
		comes(&r[i]);
		CHECK_EQ(result[i].size, VEZ_CLUSTER_BYTES_MAX);
		CHECK_EQ(room[i][0], 'a' + i % VEZ_CLUSTER_RELATED_MAX);
	}
	for (int i = 0; i < VEZ_CLUSTER_RELATED_MAX; i++)
		CHECK_EQ(vez_cluster_monitor_close(m[i]) | vez_cluster_monitor_close(n[i]), 0);
	CHECK_EQ(vez_cluster_synchronizer_close(y) | vez_cluster_close(c) | vez_cluster_close(other), 0);
}

/* ---- beside those who call at one monitor alone ---- */

struct poker {
	const char *account;
	uint32_t *stop;
	uint64_t *pokes; /* of all */
};

static int poke_on(void *arg)
{
	const struct poker *k = arg;
	vez_cluster_t *c = open_session(60000);
	vez_cluster_monitor_t *m;
	CHECK_EQ(vez_cluster_monitor_open(&m, c, k->account, operations, 3, NULL, SOON, NULL), 0);
	while (!__atomic_load_n(k->stop, __ATOMIC_RELAXED)) {
		CHECK_EQ(vez_cluster_monitor_call(m, "poke", NULL, 0, NULL, vez_after_ms(20000), NULL), 0);
		__atomic_fetch_add(k->pokes, 1, __ATOMIC_RELAXED);
	}
	CHECK_EQ(vez_cluster_monitor_close(m) | vez_cluster_close(c), 0);
	return 0;
}

/* Many call at a monitor, so that one of them has duty there; steps of both monitors, by a process that has not, change
 * its state between that one's commits. No call is lost, none is made twice, and none waits for the session time. Seen
 * to fail: who has duty goes on by what it had left in the state, after a commit that was refused; it sets the state
 * whatever its version is. */
static void beside_duty(void)
{
	enum { CALLERS = 8, STEPS = 100 };
	const char *name = fresh();
	struct poker k = { NULL, shared(sizeof *k.stop), shared(sizeof *k.pokes) };
	char account[80], duty[128];
	uint64_t pokes;
	vez_cluster_bytes_t result = { &pokes, 0, sizeof pokes };
	pid_t child[CALLERS];
	snprintf(account, sizeof account, "%s-0", name);
	snprintf(duty, sizeof duty, "/vez/monitor-%s/duty", account);
	k.account = account;
	for (int i = 0; i < CALLERS; i++)
		child[i] = start_child(poke_on, &k);
	struct bank b = open_bank_at(server_port, 60000, name);
	UNTIL(nodes(duty) == 0);
	for (int i = 0; i < STEPS; i++) {
		CHECK_EQ(put_into(b.m[1], 1), 0);
		CHECK_EQ(move_money(&b, -1, vez_after_ms(20000), NULL), 0);
	}
	__atomic_store_n(k.stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < CALLERS; i++)
		CHECK_EQ(end_of(child[i]), 0);
	check_money(&b, STEPS, 0);
	CHECK_EQ(vez_cluster_monitor_call(b.m[0], "poke", NULL, 0, &result, SOON, NULL), 0);
	CHECK_EQ(pokes, *k.pokes);
	check_empty(name);
	close_bank(&b);
}

/* ---- a history of steps ---- */

struct steps {
	uint32_t moved[MOST_CALLS]; /* of each step: how often it was given */
	uint32_t poked[MOST_CALLS];
	uint32_t each[MOST_CLIENTS]; /* of each client: its steps */
	uint32_t unknown;
	uint32_t stop;
	uint32_t done;
};

struct client {
	struct steps *steps;
	const char *name;
	int port;
	int64_t session_ms;
	uint32_t client;
	bool gives_up;
};

static void note_once(uint32_t *what, uint64_t i)
{
	CHECK(i < MOST_CALLS);
	CHECK_EQ(__atomic_fetch_add(&what[i], 1, __ATOMIC_RELAXED), 0);
}

/* Moves money, pokes one account, and looks at both: at every moment the money is all there, and as many steps have
 * been taken with one as with the other. Every second time it moves back what it has moved before, so that what waits
 * for money gets it; where others are killed, and leave it on one side, it gives up, at first soon. */
static int client(void *arg)
{
	const struct client *k = arg;
	struct bank b = open_bank_at(k->port, k->session_ms, k->name);
	unsigned random = k->client * 7919u + 1;
	int64_t patience = 20, moved = 0;
	for (uint32_t round = 1; moved != 0 || !__atomic_load_n(&k->steps->stop, __ATOMIC_RELAXED); round++) {
		struct seen seen;
		uint64_t pokes;
		vez_cluster_bytes_t result = { &seen, 0, sizeof seen }, number = { &pokes, 0, sizeof pokes };
		random = random * 1103515245u + 12345u;
		int64_t much = (int64_t)((random >> 16) % 401) - 200;
		struct order o = { moved ? -moved : k->gives_up ? much : much + 201, k->client, round };
		int rc = vez_cluster_synchronizer_call(b.y, "move", &o, sizeof o, &result,
						       k->gives_up ? vez_after_ms(patience) : SOON, NULL);
		moved = moved || k->gives_up ? 0 : o.much;
		patience = rc == 0 ? 20 : 2 * patience;
		if (rc != 0) {
			CHECK(k->gives_up && rc == ETIMEDOUT);
			__atomic_fetch_add(&k->steps->unknown, 1, __ATOMIC_RELAXED);
			continue;
		}
		CHECK_EQ(seen.money[0] + seen.money[1], ALL);
		CHECK(seen.money[0] >= 0 && seen.money[1] >= 0);
		CHECK_EQ(seen.steps[0], seen.steps[1]);
		note_once(k->steps->moved, seen.steps[0]);
		__atomic_fetch_add(&k->steps->each[k->client], 1, __ATOMIC_RELAXED);
		if (round % 2) {
			CHECK_EQ(vez_cluster_monitor_call(b.m[0], "poke", NULL, 0, &number, SOON, NULL), 0);
			note_once(k->steps->poked, pokes);
		} else {
			seen = look_at(&b);
			CHECK_EQ(seen.money[0] + seen.money[1], ALL);
			CHECK_EQ(seen.steps[0], seen.steps[1]);
		}
		__atomic_fetch_add(&k->steps->done, 1, __ATOMIC_RELAXED);
	}
	close_bank(&b);
	return 0;
}

/* All steps are there but those of which nobody got to know. */
static void check_steps(const uint32_t *given, uint64_t count, uint32_t unknown)
{
	uint32_t missing = 0;
	CHECK(count > 0 && count < MOST_CALLS);
	for (uint64_t i = 0; i < MOST_CALLS; i++) {
		CHECK(given[i] <= (i < count));
		missing += i < count && given[i] == 0;
	}
	CHECK(missing <= unknown);
}

static void check_history(const struct steps *k, const char *name, uint32_t killed)
{
	uint32_t unknown = killed + k->unknown;
	struct bank b = open_bank(name);
	uint64_t pokes;
	vez_cluster_bytes_t number = { &pokes, 0, sizeof pokes };
	check_empty(name);
	struct seen seen = look_at(&b);
	CHECK_EQ(seen.money[0] + seen.money[1], ALL);
	CHECK_EQ(seen.steps[0], seen.steps[1]);
	check_steps(k->moved, seen.steps[0], unknown);
	CHECK_EQ(vez_cluster_monitor_call(b.m[0], "poke", NULL, 0, &number, SOON, NULL), 0);
	check_steps(k->poked, pokes, unknown);
	close_bank(&b);
}

static uint32_t done(const struct steps *k)
{
	return __atomic_load_n(&k->done, __ATOMIC_RELAXED);
}

static size_t done_by(const void *what, int client)
{
	const struct steps *k = what;
	return client == ALL_CLIENTS ? done(k) : __atomic_load_n(&k->each[client], __ATOMIC_RELAXED);
}

static int fund(void *name)
{
	struct bank b = open_bank_at(members[0].port ? ENSEMBLE : server_port, 10000, name);
	CHECK_EQ(put_into(b.m[0], ALL), 0);
	close_bank(&b);
	return 0;
}

/* In a child: under a sanitizer a process that has had threads must not fork. */
static struct steps *start(const char *name)
{
	CHECK_EQ(end_of(start_child(fund, (void *)name)), 0);
	return shared(sizeof(struct steps));
}

static void end(struct steps *k, const struct clients *clients)
{
	__atomic_store_n(&k->stop, 1, __ATOMIC_RELAXED);
	clients_end(clients);
}

/* Clients are killed at whatever they do: the steps are one sequence over both states. Seen to fail: a state that is
 * set whatever its version is. */
static void killed(void)
{
	enum { KILLS = 10 };
	struct client k[CLIENTS + KILLS];
	const char *name = fresh();
	struct steps *steps = start(name);
	struct clients clients = { client, k, sizeof k[0], done_by, steps, { 0 } };
	for (uint32_t i = 0; i < CLIENTS + KILLS; i++)
		k[i] = (struct client){ steps, name, server_port, 2000, i, true };
	clients_start(&clients);
	clients_killed(&clients, KILLS);
	end(steps, &clients);
	check_history(steps, name, KILLS);
}

/* The leader of three servers is killed under load, and comes back: the steps are one sequence over both states, and
 * every client gets to know of its own. Seen to fail: what is not answered, and taken for refused. */
static void leader_killed(void)
{
	struct client k[CLIENTS];
	const char *name = fresh();
	start_three();
	struct steps *steps = start(name);
	struct clients clients = { client, k, sizeof k[0], done_by, steps, { 0 } };
	for (uint32_t i = 0; i < CLIENTS; i++)
		k[i] = (struct client){ steps, name, ENSEMBLE, 60000, i, false };
	clients_start(&clients);
	clients_leader_killed(&clients, 1);
	end(steps, &clients);
	CHECK_EQ(steps->unknown, 0);
	server_port = ENSEMBLE;
	check_history(steps, name, 0);
	ensemble_stop();
}

/* Connections break before and after each kind of request. Seen to fail: a call that is made again without a look. */
static void cut_often(void)
{
	enum { CUTS = 10 };
	static const int types[] = { ON_CREATE, ON_CREATE, ON_MULTI, ON_LIST, ON_GET };
	struct proxy *p = proxy_start();
	struct client k[CLIENTS];
	const char *name = fresh();
	struct steps *steps = start(name);
	struct clients clients = { client, k, sizeof k[0], done_by, steps, { 0 } };
	for (uint32_t i = 0; i < CLIENTS; i++)
		k[i] = (struct client){ steps, name, i == 0 ? server_port : p->port, 10000, i, false };
	clients_start(&clients);
	for (int i = 0; i < CUTS; i++) {
		uint32_t seen = done(steps);
		UNTIL(done(steps) > seen + 5);
		p->type = types[i / 2];
		p->cut = i % 2 ? CUT_AFTER : CUT_BEFORE;
		p->done = 0;
		p->cuts = 1;
		UNTIL(p->done == 1);
	}
	end(steps, &clients);
	check_history(steps, name, 0);
}

const struct test synchronizer_tests[] = {
	{ "synchronizer: limits", limits },
	{ "synchronizer: one step", one_step },
	{ "synchronizer: guards", guards },
	{ "synchronizer: largest", largest },
	{ "synchronizer: beside duty", beside_duty },
	{ "synchronizer: faults, killed", killed },
	{ "synchronizer: faults, cut often", cut_often },
	{ "synchronizer: faults, leader killed", leader_killed },
	{ NULL, NULL },
};
