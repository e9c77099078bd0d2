/* SPDX-License-Identifier: MIT */
/* The event. "Seen to fail" names a change of the library with which a test did. */
#include "lab.h"

#include "test.h"

/* Seen to fail: an answer that lets nobody go. */
static void sets_and_resets(void)
{
	vez_cluster_t *a = open_session(10000), *b = open_session(10000);
	vez_cluster_event_t *ea, *eb;
	const char *name = fresh();
	CHECK_EQ(vez_cluster_event_open(&ea, a, name, SOON, NULL), 0);
	CHECK_EQ(vez_cluster_event_open(&eb, b, name, SOON, NULL), 0);
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(vez_cluster_event_wait(eb, vez_after_ms(10), NULL), ETIMEDOUT);
		CHECK_EQ(vez_cluster_event_set(ea, SOON, NULL), 0);
		CHECK_EQ(vez_cluster_event_set(ea, SOON, NULL), 0);
		CHECK_EQ(vez_cluster_event_wait(eb, SOON, NULL), 0);
		CHECK_EQ(vez_cluster_event_wait(eb, SOON, NULL), 0);
		CHECK_EQ(vez_cluster_event_reset(i % 2 ? ea : eb, SOON, NULL), 0);
		CHECK_EQ(vez_cluster_event_reset(ea, SOON, NULL), 0);
	}
	CHECK_EQ(vez_cluster_event_wait(eb, VEZ_NOW, NULL), ETIMEDOUT);
	CHECK_EQ(vez_cluster_event_close(ea) | vez_cluster_event_close(eb), 0);
	CHECK_EQ(vez_cluster_close(a) | vez_cluster_close(b), 0);
}

/* Many of several processes; one that gave up; a reset that follows at once; the session's end. Seen to fail: a change
 * that lets only the first go. */
static void lets_all_go(void)
{
	enum { MANY = 200 };
	static vez_request_t r[MANY];
	vez_cluster_t *c[2] = { open_session(10000), open_session(10000) };
	vez_cluster_event_t *e[2];
	const char *name = fresh();
	for (int i = 0; i < 2; i++)
		CHECK_EQ(vez_cluster_event_open(&e[i], c[i], name, SOON, NULL), 0);
	for (int i = 0; i < MANY; i++) {
		vez_request_init(&r[i], NULL, NULL);
		CHECK_EQ(vez_cluster_event_wait_async(e[i % 2], &r[i]), EINPROGRESS);
	}
	CHECK_EQ(vez_cluster_event_close(e[0]), EBUSY);
	CHECK_EQ(vez_request_cancel(&r[0]), 0);
	UNTIL(server_figure("zk_watch_count") == 2);
	CHECK_EQ(vez_cluster_event_set(e[0], SOON, NULL), 0);
	CHECK_EQ(vez_cluster_event_reset(e[0], SOON, NULL), 0);
	for (int i = 1; i < MANY; i++) {
		CHECK_EQ(vez_request_wait(&r[i], SOON, NULL), 0);
		CHECK_EQ(vez_request_result(&r[i]), 0);
	}
	vez_request_init(&r[0], NULL, NULL);
	CHECK_EQ(vez_cluster_event_wait_async(e[0], &r[0]), EINPROGRESS);
	CHECK_EQ(vez_cluster_close(c[0]), 0);
	CHECK_EQ(vez_request_result(&r[0]), VEZ_ECLOSED);
	CHECK_EQ(vez_cluster_event_wait(e[0], SOON, NULL), VEZ_ECLOSED);
	CHECK_EQ(vez_cluster_event_close(e[0]) | vez_cluster_event_close(e[1]), 0);
	CHECK_EQ(vez_cluster_close(c[1]), 0);
}

/* The connection breaks at each kind of request; and is broken while it is set. Seen to fail: a question that is not
 * asked again. */
static void cut(void)
{
	static const int types[] = { ON_GET, ON_DELETE, ON_CREATE };
	struct proxy *p = proxy_start();
	vez_cluster_t *far = open_session_at(p->port, 20000), *near = open_session(20000);
	vez_cluster_event_t *ef, *en;
	const char *name = fresh();
	vez_request_t r;
	CHECK_EQ(vez_cluster_event_open(&ef, far, name, SOON, NULL), 0);
	CHECK_EQ(vez_cluster_event_open(&en, near, name, SOON, NULL), 0);
	for (int i = 0; i < 6; i++) {
		p->type = types[i / 2];
		p->cut = i % 2 ? CUT_AFTER : CUT_BEFORE;
		p->done = 0;
		p->cuts = 1;
		vez_request_init(&r, NULL, NULL);
		CHECK_EQ(vez_cluster_event_wait_async(ef, &r), EINPROGRESS);
		CHECK_EQ(vez_cluster_event_set(ef, SOON, NULL), 0);
		CHECK_EQ(vez_request_wait(&r, SOON, NULL), 0);
		CHECK_EQ(vez_request_result(&r), 0);
		CHECK_EQ(vez_cluster_event_reset(ef, SOON, NULL), 0);
		CHECK_EQ(p->done, 1);
	}
	for (int i = 0; i < 2; i++) {
		vez_request_init(&r, NULL, NULL);
		CHECK_EQ(vez_cluster_event_wait_async(ef, &r), EINPROGRESS);
		UNTIL(server_figure("zk_watch_count") == 1);
		p->shut = 1;
		UNTIL(server_figure("zk_watch_count") == 0);
		CHECK_EQ(vez_cluster_event_set(en, SOON, NULL), 0);
		if (i == 1)
			CHECK_EQ(vez_cluster_event_reset(en, SOON, NULL), 0);
		p->shut = 0;
		CHECK_EQ(vez_request_wait(&r, SOON, NULL), 0);
		CHECK_EQ(vez_request_result(&r), 0);
		CHECK_EQ(vez_cluster_event_reset(en, SOON, NULL), 0);
	}
	CHECK_EQ(vez_cluster_event_close(ef) | vez_cluster_event_close(en), 0);
	CHECK_EQ(vez_cluster_close(far) | vez_cluster_close(near), 0);
}

const struct test event_tests[] = {
	{ "event: sets and resets", sets_and_resets },
	{ "event: lets all go", lets_all_go },
	{ "event: cut", cut },
	{ NULL, NULL },
};
