/* SPDX-License-Identifier: MIT */
/* Remote procedures. "Seen to fail" names a change of the library with which a test did. */
#include "lab.h"

#include "test.h"

enum { MOST_CALLS = 100000 };

/* Of all calls: how often each has run; and who blocks. */
struct runs {
	uint32_t ran[MOST_CALLS];
	uint32_t total;
	uint32_t blocked;
	uint32_t stop;
	uint32_t done, lost, refused;
};

/* Gives back its argument, and writes down that it ran. */
static int echo(vez_cluster_invocation_t *i, void *arg)
{
	struct runs *x = arg;
	uint32_t number = 0;
	memcpy(i->result, i->argument, i->argument_size);
	i->result_size = i->argument_size;
	if (i->argument_size >= sizeof number)
		memcpy(&number, i->argument, sizeof number);
	if (number < MOST_CALLS)
		__atomic_fetch_add(&x->ran[number], 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&x->total, 1, __ATOMIC_RELAXED);
	return 0;
}

static int fail(vez_cluster_invocation_t *i, void *arg)
{
	(void)arg;
	i->result_size = 5;
	return EDOM;
}

/* Does not return until it is told to. */
static int block(vez_cluster_invocation_t *i, void *arg)
{
	struct runs *x = arg;
	(void)i;
	__atomic_store_n(&x->blocked, 1, __ATOMIC_RELAXED);
	while (!__atomic_load_n(&x->stop, __ATOMIC_RELAXED))
		a_moment();
	return 0;
}

static int swell(vez_cluster_invocation_t *i, void *arg)
{
	(void)arg;
	i->result_size = VEZ_CLUSTER_BYTES_MAX + 1;
	return 0;
}

static const vez_cluster_function_t functions[] = {
	{ "echo", echo },
	{ "fail", fail },
	{ "block", block },
	{ "swell", swell },
};

static vez_cluster_service_t *serve(vez_cluster_t *c, const char *name, struct runs *x)
{
	vez_cluster_service_t *s = NULL;
	int rc;
	UNTIL((rc = vez_cluster_service_open(&s, c, name, functions, 4, x, SOON, NULL)) != EBUSY);
	CHECK_EQ(rc, 0);
	return s;
}

static vez_cluster_remote_t *open_remote(vez_cluster_t *c, const char *name)
{
	vez_cluster_remote_t *r = NULL;
	CHECK_EQ(vez_cluster_remote_open(&r, c, name, SOON, NULL), 0);
	return r;
}

static int call_echo(vez_cluster_remote_t *r, uint32_t number)
{
	uint32_t answer = 0;
	vez_cluster_bytes_t result = { &answer, 0, sizeof answer };
	int rc = vez_cluster_remote_call(r, "echo", &number, sizeof number, &result, SOON, NULL);
	CHECK(rc != 0 || (result.size == sizeof answer && answer == number));
	return rc;
}

/* A call that found no server is recalled; if one has come meanwhile, and has begun with it, that is VEZ_EDIED. */
static void await_server(vez_cluster_remote_t *r)
{
	int rc;
	UNTIL((rc = call_echo(r, 0)) != VEZ_ENOSERVER && rc != VEZ_EDIED);
	CHECK_EQ(rc, 0);
}

static int calls_left(const char *name)
{
	return in_line("service", name) - 1; /* "s" */
}

/* Seen to fail: a size that is not looked at; a function that is not found and is waited for. */
static void calls(void)
{
	enum { MANY = 100 };
	static vez_request_t q[MANY];
	static uint32_t answer[MANY];
	static vez_cluster_bytes_t result[MANY];
	static char big[VEZ_CLUSTER_BYTES_MAX + 1];
	vez_cluster_t *c = open_session(10000), *d = open_session(10000);
	struct runs *x = shared(sizeof *x);
	const char *name = fresh();
	vez_cluster_service_t *s = serve(c, name, x), *other;
	vez_cluster_remote_t *r = open_remote(d, name);
	CHECK_EQ(vez_cluster_service_open(&other, d, name, functions, 4, x, SOON, NULL), EBUSY);
	CHECK_EQ(vez_cluster_service_open(&other, c, name, functions, 4, x, SOON, NULL), EBUSY);
	CHECK_EQ(vez_cluster_service_open(&other, c, "a/b", functions, 4, x, SOON, NULL), EINVAL);
	CHECK_EQ(vez_cluster_service_open(&other, c, name, functions, 0, x, SOON, NULL), EINVAL);
	for (uint32_t i = 1; i <= 20; i++)
		CHECK_EQ(call_echo(r, i), 0);
	CHECK_EQ(vez_cluster_remote_call(r, "none", NULL, 0, NULL, SOON, NULL), ENOSYS);
	CHECK_EQ(vez_cluster_remote_call(r, "", NULL, 0, NULL, SOON, NULL), EINVAL);
	CHECK_EQ(vez_cluster_remote_call(r, "fail", NULL, 0, NULL, SOON, NULL), EDOM);
	CHECK_EQ(vez_cluster_remote_call(r, "swell", NULL, 0, NULL, SOON, NULL), EMSGSIZE);
	CHECK_EQ(vez_cluster_remote_call(r, "echo", big, sizeof big, NULL, SOON, NULL), EMSGSIZE);
	memset(big, 'y', sizeof big);
	vez_cluster_bytes_t all = { big, 0, sizeof big };
	CHECK_EQ(vez_cluster_remote_call(r, "echo", big, VEZ_CLUSTER_BYTES_MAX, &all, SOON, NULL), 0);
	CHECK_EQ(all.size, VEZ_CLUSTER_BYTES_MAX);
	all.room = 3;
	CHECK_EQ(vez_cluster_remote_call(r, "echo", "four", 4, &all, SOON, NULL), ENOBUFS);
	CHECK_EQ(vez_cluster_remote_call(r, "echo", NULL, 0, NULL, VEZ_NOW, NULL), ETIMEDOUT);
	uint32_t before = x->total;
	for (uint32_t i = 0; i < MANY; i++) {
		uint32_t number = 100 + i;
		result[i] = (vez_cluster_bytes_t){ &answer[i], 0, sizeof answer[i] };
		vez_request_init(&q[i], NULL, NULL);
		CHECK_EQ(vez_cluster_remote_call_async(r, "echo", &number, 4, &result[i], &q[i]), EINPROGRESS);
	}
	CHECK_EQ(vez_cluster_remote_close(r), EBUSY);
	for (uint32_t i = 0; i < MANY; i++) {
		CHECK_EQ(vez_request_wait(&q[i], SOON, NULL), 0);
		CHECK_EQ(vez_request_result(&q[i]), 0);
		CHECK_EQ(answer[i], 100 + i);
	}
	CHECK_EQ(x->total - before, MANY);
	UNTIL(calls_left(name) == 1);
	UNTIL(vez_cluster_service_close(s) == 0);
	CHECK_EQ(vez_cluster_remote_close(r) | vez_cluster_close(c) | vez_cluster_close(d), 0);
}

/* Nobody serves; somebody ceases to; another begins. Seen to fail: a call that waits for a server. */
static void nobody_serves(void)
{
	vez_cluster_t *c = open_session(10000), *d = open_session(10000);
	struct runs *x = shared(sizeof *x);
	const char *name = fresh();
	vez_cluster_remote_t *r = open_remote(d, name);
	for (uint32_t i = 0; i < 5; i++) {
		CHECK_EQ(call_echo(r, i), VEZ_ENOSERVER);
		vez_cluster_t *k = i % 2 ? c : d;
		vez_cluster_service_t *s = serve(k, name, x);
		CHECK_EQ(call_echo(r, i), 0);
		UNTIL(vez_cluster_service_close(s) == 0);
	}
	CHECK_EQ(call_echo(r, 9), VEZ_ENOSERVER);
	UNTIL(calls_left(name) == 0);
	for (uint32_t i = 0; i < 5; i++)
		CHECK_EQ(x->ran[i], 1);
	CHECK_EQ(x->ran[9], 0);
	CHECK_EQ(vez_cluster_remote_close(r) | vez_cluster_close(c) | vez_cluster_close(d), 0);
}

/* ---- faults ---- */

struct process {
	struct runs *x;
	const char *name;
	int port;
	int64_t session_ms;
	uint32_t first, step;
};

/* Until it is to stop, or its session is over: on a busy machine a short one may be at any moment. */
static void serve_for_a_session(const struct process *k)
{
	vez_cluster_t *c;
	vez_cluster_service_t *s = NULL;
	int rc = try_open(&c, k->port, NULL, NULL, k->session_ms, SOON, NULL);
	if (rc == 0) {
		UNTIL((rc = vez_cluster_service_open(&s, c, k->name, functions, 4, k->x, SOON, NULL)) != EBUSY);
		while (rc == 0 && !__atomic_load_n(&k->x->stop, __ATOMIC_RELAXED) && vez_cluster_check(c) == 0)
			a_moment();
		UNTIL(!s || vez_cluster_service_close(s) == 0);
		CHECK_EQ(vez_cluster_close(c), 0);
	}
	CHECK(rc == 0 || rc == VEZ_ELOST);
}

static int server(void *arg)
{
	const struct process *k = arg;
	while (!__atomic_load_n(&k->x->stop, __ATOMIC_RELAXED))
		serve_for_a_session(k);
	return 0;
}

/* Who is being served when the server dies may have been; who waits has not. Seen to fail: "s" that is set when the
 * functions have run. */
static void dies_while_it_serves(void)
{
	struct runs *x = shared(sizeof *x);
	struct process k = { x, fresh(), server_port, 500, 0, 0 };
	pid_t child = start_child(server, &k);
	vez_cluster_t *c = open_session(10000);
	vez_cluster_remote_t *r = open_remote(c, k.name);
	vez_request_t q[3];
	uint32_t number[2] = { 1, 2 };
	await_server(r);
	for (int i = 0; i < 3; i++)
		vez_request_init(&q[i], NULL, NULL);
	CHECK_EQ(vez_cluster_remote_call_async(r, "block", NULL, 0, NULL, &q[0]), EINPROGRESS);
	UNTIL(__atomic_load_n(&x->blocked, __ATOMIC_RELAXED));
	for (int i = 0; i < 2; i++)
		CHECK_EQ(vez_cluster_remote_call_async(r, "echo", &number[i], 4, NULL, &q[1 + i]), EINPROGRESS);
	UNTIL(calls_left(k.name) == 4);
	/* One gives up, and does not run. */
	CHECK_EQ(vez_request_cancel(&q[2]), 0);
	UNTIL(calls_left(k.name) == 3);
	kill(child, SIGKILL);
	CHECK_EQ(end_of(child), 1000 + SIGKILL);
	CHECK_EQ(vez_request_wait(&q[0], SOON, NULL) | vez_request_wait(&q[1], SOON, NULL), 0);
	CHECK_EQ(vez_request_result(&q[0]), VEZ_EDIED);
	CHECK_EQ(vez_request_result(&q[1]), VEZ_ENOSERVER);
	CHECK_EQ(x->ran[1] + x->ran[2], 0);
	UNTIL(calls_left(k.name) == 0);
	CHECK_EQ(vez_cluster_remote_close(r) | vez_cluster_close(c), 0);
}

/* The server dies while its caller is cut off, and another one serves: it does not run again what had begun, and says
 * so. Seen to fail: a server that begins with what another one had begun. */
static void dies_out_of_sight(void)
{
	struct runs *x = shared(sizeof *x);
	struct process k = { x, fresh(), server_port, 500, 0, 0 };
	pid_t child = start_child(server, &k);
	struct proxy *p = proxy_start();
	vez_cluster_t *far = open_session_at(p->port, 20000), *near = open_session(20000);
	vez_cluster_remote_t *rf = open_remote(far, k.name), *rn = open_remote(near, k.name);
	vez_request_t q;
	UNTIL(call_echo(rn, 0) != VEZ_ENOSERVER);
	vez_request_init(&q, NULL, NULL);
	CHECK_EQ(vez_cluster_remote_call_async(rf, "block", NULL, 0, NULL, &q), EINPROGRESS);
	UNTIL(__atomic_load_n(&x->blocked, __ATOMIC_RELAXED));
	p->shut = 1;
	x->blocked = 0;
	kill(child, SIGKILL);
	CHECK_EQ(end_of(child), 1000 + SIGKILL);
	vez_cluster_service_t *s = serve(near, k.name, x);
	CHECK_EQ(call_echo(rn, 1), 0);
	CHECK_EQ(x->blocked, 0);
	p->shut = 0;
	CHECK_EQ(vez_request_wait(&q, SOON, NULL), 0);
	CHECK_EQ(vez_request_result(&q), VEZ_EDIED);
	UNTIL(calls_left(k.name) == 1);
	UNTIL(vez_cluster_service_close(s) == 0);
	CHECK_EQ(vez_cluster_remote_close(rf) | vez_cluster_remote_close(rn), 0);
	CHECK_EQ(vez_cluster_close(far) | vez_cluster_close(near), 0);
}

/* The leader of three servers dies together with the process that serves a call: that one may have run, who waits has
 * not; when the leader is back another process serves. Seen to fail: a session that does not go on when it is connected
 * again. */
static void dies_with_the_leader(void)
{
	struct runs *x = shared(sizeof *x);
	struct process k = { x, fresh(), ENSEMBLE, 12000, 0, 0 };
	vez_request_t q[2];
	uint32_t number = 1;
	start_three();
	pid_t child = start_child(server, &k);
	vez_cluster_t *c = open_session_at(ENSEMBLE, 60000);
	vez_cluster_remote_t *r = open_remote(c, k.name);
	await_server(r);
	for (int i = 0; i < 2; i++)
		vez_request_init(&q[i], NULL, NULL);
	CHECK_EQ(vez_cluster_remote_call_async(r, "block", NULL, 0, NULL, &q[0]), EINPROGRESS);
	UNTIL(__atomic_load_n(&x->blocked, __ATOMIC_RELAXED));
	CHECK_EQ(vez_cluster_remote_call_async(r, "echo", &number, 4, NULL, &q[1]), EINPROGRESS);
	UNTIL(calls_left(k.name) == 3);
	int leader = ensemble_leader();
	ensemble_kill(leader);
	kill(child, SIGKILL);
	CHECK_EQ(end_of(child), 1000 + SIGKILL);
	CHECK_EQ(vez_request_wait(&q[0], SOON, NULL) | vez_request_wait(&q[1], SOON, NULL), 0);
	CHECK_EQ(vez_request_result(&q[0]), VEZ_EDIED);
	CHECK_EQ(vez_request_result(&q[1]), VEZ_ENOSERVER);
	CHECK_EQ(x->ran[1], 0);
	ensemble_restart(leader);
	UNTIL(ensemble_serves(leader));
	UNTIL(calls_left(k.name) == 0);
	vez_cluster_t *d = open_session_at(members[leader].port, 60000);
	vez_cluster_service_t *s = serve(d, k.name, x);
	CHECK_EQ(call_echo(r, 2), 0);
	CHECK_EQ(x->ran[2], 1);
	UNTIL(vez_cluster_service_close(s) == 0);
	CHECK_EQ(vez_cluster_remote_close(r) | vez_cluster_close(c) | vez_cluster_close(d), 0);
	UNTIL(calls_left(k.name) == 0);
	ensemble_stop();
}

static int caller(void *arg)
{
	const struct process *k = arg;
	vez_cluster_t *c = open_session_at(k->port, k->session_ms);
	vez_cluster_remote_t *r = open_remote(c, k->name);
	for (uint32_t i = k->first; !__atomic_load_n(&k->x->stop, __ATOMIC_RELAXED); i += k->step) {
		CHECK(i < MOST_CALLS);
		int rc = call_echo(r, i);
		uint32_t ran = __atomic_load_n(&k->x->ran[i], __ATOMIC_RELAXED);
		CHECK(rc == 0 || rc == VEZ_ENOSERVER || rc == VEZ_EDIED);
		CHECK(rc != 0 || ran == 1);
		CHECK(rc != VEZ_ENOSERVER || ran == 0);
		CHECK(ran <= 1);
		__atomic_fetch_add(rc == 0 ? &k->x->done : rc == VEZ_EDIED ? &k->x->lost : &k->x->refused, 1,
				   __ATOMIC_RELAXED);
		if (rc == VEZ_ENOSERVER)
			a_moment();
	}
	CHECK_EQ(vez_cluster_remote_close(r) | vez_cluster_close(c), 0);
	return 0;
}

static uint32_t done(const struct runs *x)
{
	return __atomic_load_n(&x->done, __ATOMIC_RELAXED);
}

/* Servers are killed one after another, under load, and callers between them: no call runs twice, none that is said not
 * to have run has, and one that was answered ran once. */
static void servers_killed(void)
{
	enum { CALLERS = 3, KILLS = 10 };
	struct runs *x = shared(sizeof *x);
	const char *name = fresh();
	struct process s = { x, name, server_port, 500, 0, 0 }, k[CALLERS];
	pid_t child[CALLERS], serving = start_child(server, &s);
	for (uint32_t i = 0; i < CALLERS; i++) {
		k[i] = (struct process){ x, name, server_port, 20000, i, CALLERS };
		child[i] = start_child(caller, &k[i]);
	}
	for (uint32_t i = 0; i < KILLS; i++) {
		uint32_t before = done(x);
		UNTIL(done(x) > before + 5 + i);
		kill(serving, SIGKILL);
		CHECK_EQ(end_of(serving), 1000 + SIGKILL);
		serving = start_child(server, &s);
		if (i % 3 == 0) {
			uint32_t victim = i / 3 % CALLERS;
			kill(child[victim], SIGKILL);
			CHECK_EQ(end_of(child[victim]), 1000 + SIGKILL);
			k[victim].first += 20000 * CALLERS / 3; /* calls that it has not made */
			child[victim] = start_child(caller, &k[victim]);
		}
	}
	UNTIL(done(x) > 300);
	__atomic_store_n(&x->stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < CALLERS; i++)
		CHECK_EQ(end_of(child[i]), 0);
	CHECK_EQ(end_of(serving), 0);
	for (uint32_t i = 0; i < MOST_CALLS; i++)
		CHECK(x->ran[i] <= 1);
	UNTIL(calls_left(name) == 0);
}

/* The connection of who calls, and that of who serves, breaks at each kind of request: every call runs once. Seen to
 * fail: a beginning that was not answered, and is taken for none. */
static void cut(void)
{
	static const int types[] = { ON_CREATE, ON_CREATE, ON_MULTI, ON_LIST, ON_GET };
	struct proxy *p = proxy_start();
	vez_cluster_t *c = open_session_at(p->port, 20000), *d = open_session(20000);
	struct runs *x = shared(sizeof *x);
	for (int side = 0; side < 2; side++) {
		const char *name = fresh();
		uint32_t first = 100 * (uint32_t)side;
		vez_cluster_service_t *s = serve(side ? c : d, name, x);
		vez_cluster_remote_t *r = open_remote(side ? d : c, name);
		for (uint32_t i = 0; i < 10; i++) {
			/* Who calls makes no transactions and no lists; who serves creates nothing. */
			bool never = side ? types[i / 2] == ON_CREATE :
					    types[i / 2] == ON_MULTI || types[i / 2] == ON_LIST;
			p->type = types[i / 2];
			p->cut = i % 2 ? CUT_AFTER : CUT_BEFORE;
			p->done = 0;
			p->cuts = never ? 0 : 1;
			CHECK_EQ(call_echo(r, first + i), 0);
			UNTIL(never || p->done == 1);
			UNTIL(calls_left(name) == 1);
		}
		for (uint32_t i = 0; i < 10; i++)
			CHECK_EQ(x->ran[first + i], 1);
		UNTIL(vez_cluster_service_close(s) == 0);
		CHECK_EQ(vez_cluster_remote_close(r), 0);
	}
	CHECK_EQ(vez_cluster_close(c) | vez_cluster_close(d), 0);
}

/* The session of who serves, and of who calls, is ended by a twin. */
static void ended_by_a_twin(void)
{
	struct runs *x = shared(sizeof *x);
	for (int side = 0; side < 2; side++) {
		struct proxy *p = proxy_start();
		vez_cluster_t *c = open_session_at(p->port, 20000), *d = open_session(20000);
		const char *name = fresh();
		vez_cluster_service_t *s = serve(side ? c : d, name, x);
		vez_cluster_remote_t *r = open_remote(side ? d : c, name);
		vez_request_t q;
		x->stop = x->blocked = 0;
		vez_request_init(&q, NULL, NULL);
		CHECK_EQ(vez_cluster_remote_call_async(r, "block", NULL, 0, NULL, &q), EINPROGRESS);
		UNTIL(__atomic_load_n(&x->blocked, __ATOMIC_RELAXED));
		end_session(p);
		CHECK_EQ(vez_request_wait(&q, SOON, NULL), 0);
		CHECK_EQ(vez_request_result(&q), side ? VEZ_EDIED : VEZ_ELOST);
		__atomic_store_n(&x->stop, 1, __ATOMIC_RELAXED);
		UNTIL(vez_cluster_service_close(s) == 0);
		CHECK_EQ(vez_cluster_remote_close(r) | vez_cluster_close(c) | vez_cluster_close(d), 0);
	}
}

const struct test remote_tests[] = {
	{ "remote: calls", calls },
	{ "remote: nobody serves", nobody_serves },
	{ "remote: dies while it serves", dies_while_it_serves },
	{ "remote: dies out of sight", dies_out_of_sight },
	{ "remote: dies with the leader", dies_with_the_leader },
	{ "remote: faults, servers killed", servers_killed },
	{ "remote: faults, cut", cut },
	{ "remote: ended by a twin", ended_by_a_twin },
	{ NULL, NULL },
};
