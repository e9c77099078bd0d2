/* SPDX-License-Identifier: MIT */
/* The mutex, and what all holds have. "Seen to fail" names a change of the library with which a test did. */
#include "lab.h"

#include <sys/eventfd.h>

#include "test.h"

struct two {
	vez_cluster_t *a, *b;
	vez_cluster_mutex_t *ma, *mb;
	const char *name;
};

static struct two two_sessions(void)
{
	struct two t = { .name = fresh() };
	t.a = open_session(10000);
	t.b = open_session(10000);
	CHECK_EQ(vez_cluster_mutex_open(&t.ma, t.a, t.name, SOON, NULL), 0);
	CHECK_EQ(vez_cluster_mutex_open(&t.mb, t.b, t.name, SOON, NULL), 0);
	return t;
}

/* Everything was given back: no node is left. */
static void end_two(struct two *t)
{
	UNTIL(in_line("mutex", t->name) == 0);
	CHECK_EQ(vez_cluster_mutex_close(t->ma), 0);
	CHECK_EQ(vez_cluster_mutex_close(t->mb), 0);
	CHECK_EQ(vez_cluster_close(t->a), 0);
	CHECK_EQ(vez_cluster_close(t->b), 0);
}

/* Seen to fail: a claim that is granted whoever is in front of it. */
static void one_at_a_time(void)
{
	struct two t = two_sessions();
	vez_cluster_hold_t ha, hb;
	vez_request_t r;
	CHECK_EQ(vez_cluster_mutex_lock(t.ma, &ha, SOON, NULL), 0);
	CHECK_EQ(vez_cluster_hold_check(&ha), 0);
	vez_request_init(&r, NULL, NULL);
	CHECK_EQ(vez_cluster_mutex_lock_async(t.mb, &hb, &r), EINPROGRESS);
	UNTIL(in_line("mutex", t.name) == 2);
	CHECK_EQ(vez_request_result(&r), EINPROGRESS);
	CHECK_EQ(vez_cluster_mutex_close(t.mb), EBUSY);
	uint64_t fence = vez_cluster_hold_fence(&ha);
	CHECK_EQ(vez_cluster_release(&ha), 0);
	CHECK_EQ(vez_cluster_release(&ha), EINVAL);
	CHECK_EQ(vez_request_wait(&r, SOON, NULL), 0);
	CHECK_EQ(vez_request_result(&r), 0);
	CHECK(vez_cluster_hold_fence(&hb) > fence);
	CHECK_EQ(vez_cluster_release(&hb), 0);
	end_two(&t);
}

/* Seen to fail: a claim that gives up and leaves its node. */
static void limits(void)
{
	struct two t = two_sessions();
	vez_cluster_hold_t ha, hb;
	vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
	vez_request_t r;
	CHECK_EQ(vez_cluster_mutex_lock(t.ma, &ha, SOON, NULL), 0);
	CHECK_EQ(vez_cluster_mutex_lock(t.mb, &hb, VEZ_NOW, NULL), ETIMEDOUT);
	CHECK_EQ(vez_cluster_mutex_lock(t.mb, &hb, vez_after_ms(100), NULL), ETIMEDOUT);
	vez_cancel_fire_at(&token, vez_after_ms(100));
	CHECK_EQ(vez_cluster_mutex_lock(t.mb, &hb, SOON, &token), ECANCELED);
	CHECK_EQ(vez_cluster_mutex_lock(t.mb, &hb, SOON, &token), ECANCELED);
	vez_request_init(&r, NULL, NULL);
	vez_request_set_limits(&r, SOON, &token);
	CHECK_EQ(vez_cluster_mutex_lock_async(t.mb, &hb, &r), ECANCELED);
	vez_cancel_clear(&token);
	vez_request_init(&r, NULL, NULL);
	vez_request_set_limits(&r, vez_after_ms(50), &token);
	CHECK_EQ(vez_cluster_mutex_lock_async(t.mb, &hb, &r), EINPROGRESS);
	CHECK_EQ(vez_request_wait(&r, SOON, NULL), 0);
	CHECK_EQ(vez_request_result(&r), ETIMEDOUT);
	vez_request_init(&r, NULL, NULL);
	CHECK_EQ(vez_cluster_mutex_lock_async(t.mb, &hb, &r), EINPROGRESS);
	CHECK_EQ(vez_request_cancel(&r), 0);
	UNTIL(in_line("mutex", t.name) == 1);
	CHECK_EQ(vez_cluster_release(&ha), 0);
	CHECK_EQ(vez_cluster_mutex_lock(t.mb, &hb, SOON, NULL), 0);
	CHECK_EQ(vez_cluster_release(&hb), 0);
	CHECK_EQ(vez_cancel_destroy(&token), 0);
	end_two(&t);
}

static int64_t order[20];
static int granted;

static void note_order(vez_request_t *r, int result, void *arg)
{
	vez_cluster_hold_t *h = arg;
	(void)r;
	CHECK_EQ(result, 0);
	order[__atomic_fetch_add(&granted, 1, __ATOMIC_RELAXED)] = (int64_t)vez_cluster_hold_fence(h);
	CHECK_EQ(vez_cluster_release(h), 0);
}

/* In the order in which they came, whoever gives up in between. Seen to fail: the first in the list that is not in
 * front of a claim is watched instead of the last that is. */
static void first_come_first_served(void)
{
	struct two t = two_sessions();
	vez_cluster_hold_t first, h[20];
	vez_request_t r[20];
	CHECK_EQ(vez_cluster_mutex_lock(t.ma, &first, SOON, NULL), 0);
	for (int i = 0; i < 20; i++) {
		vez_request_init(&r[i], i % 5 == 3 ? NULL : note_order, &h[i]);
		CHECK_EQ(vez_cluster_mutex_lock_async(i % 2 ? t.ma : t.mb, &h[i], &r[i]), EINPROGRESS);
		UNTIL(in_line("mutex", t.name) == i + 2);
	}
	for (int i = 3; i < 20; i += 5)
		CHECK_EQ(vez_request_cancel(&r[i]), 0);
	CHECK_EQ(vez_cluster_release(&first), 0);
	for (int i = 0; i < 20; i++)
		CHECK_EQ(vez_request_wait(&r[i], SOON, NULL), 0);
	CHECK_EQ(granted, 16);
	for (int i = 1; i < 16; i++)
		CHECK(order[i] > order[i - 1]);
	end_two(&t);
}

/* An eventfd, a list, and a wait-for-any with a local object. Seen to fail: a grant to a member whose wait is won that
 * stays. */
static void ways_to_learn(void)
{
	struct two t = two_sessions();
	vez_cluster_hold_t ha, hb;
	vez_request_t r, local, remote, *winner;
	vez_completions_t list;
	vez_sem_t permits = VEZ_SEM_INITIALIZER(0);
	vez_select_t any;
	eventfd_t ticks;
	int efd = eventfd(0, 0);
	vez_request_init_eventfd(&r, efd);
	CHECK_EQ(vez_cluster_mutex_lock_async(t.ma, &ha, &r), EINPROGRESS);
	CHECK_EQ(eventfd_read(efd, &ticks), 0);
	CHECK_EQ(vez_request_result(&r), 0);
	CHECK_EQ(vez_cluster_release(&ha), 0);
	vez_completions_init(&list, -1);
	vez_request_init_completions(&r, &list);
	CHECK_EQ(vez_cluster_mutex_lock_async(t.ma, &ha, &r), EINPROGRESS);
	CHECK_EQ(vez_completions_wait(&list, SOON, NULL), 0);
	CHECK(vez_completions_next(&list) == &r);

	/* The local one wins: the other leaves. */
	vez_select_init(&any);
	vez_sem_acquire_async(&permits, 1, vez_select_case(&any, &local));
	CHECK_EQ(vez_cluster_mutex_lock_async(t.mb, &hb, vez_select_case(&any, &remote)), EINPROGRESS);
	UNTIL(in_line("mutex", t.name) == 2);
	vez_sem_release(&permits, 1);
	CHECK_EQ(vez_select_wait(&any, SOON, NULL, &winner), 0);
	CHECK(winner == &local);
	UNTIL(in_line("mutex", t.name) == 1);

	/* The other one wins. */
	vez_select_init(&any);
	vez_sem_acquire_async(&permits, 1, vez_select_case(&any, &local));
	CHECK_EQ(vez_cluster_mutex_lock_async(t.mb, &hb, vez_select_case(&any, &remote)), EINPROGRESS);
	UNTIL(in_line("mutex", t.name) == 2);
	CHECK_EQ(vez_cluster_release(&ha), 0);
	CHECK_EQ(vez_select_wait(&any, SOON, NULL, &winner), 0);
	CHECK(winner == &remote);
	CHECK_EQ(vez_sem_waiters(&permits), 0);
	CHECK_EQ(vez_cluster_release(&hb), 0);

	/* Its turn comes when the wait is won, and not yet over: it goes to the next. */
	CHECK_EQ(vez_cluster_mutex_lock(t.ma, &ha, SOON, NULL), 0);
	vez_select_init(&any);
	vez_sem_acquire_async(&permits, 1, vez_select_case(&any, &local));
	CHECK_EQ(vez_cluster_mutex_lock_async(t.mb, &hb, vez_select_case(&any, &remote)), EINPROGRESS);
	UNTIL(in_line("mutex", t.name) == 2);
	vez_sem_release(&permits, 1);
	CHECK_EQ(vez_cluster_release(&ha), 0);
	UNTIL(in_line("mutex", t.name) == 0);
	CHECK_EQ(vez_select_wait(&any, SOON, NULL, &winner), 0);
	CHECK(winner == &local);

	/* Both may: one does. */
	for (int i = 0; i < 50; i++) {
		vez_select_init(&any);
		CHECK_EQ(vez_cluster_mutex_lock_async(t.mb, &hb, vez_select_case(&any, &remote)), EINPROGRESS);
		vez_sem_acquire_async(&permits, 1, vez_select_case(&any, &local));
		if (i % 2)
			a_moment();
		vez_sem_release(&permits, 1);
		CHECK_EQ(vez_select_wait(&any, SOON, NULL, &winner), 0);
		if (winner == &remote)
			CHECK_EQ(vez_cluster_release(&hb) | vez_sem_try_acquire(&permits, 1), 0);
		CHECK_EQ(vez_sem_permits(&permits), 0);
	}
	end_two(&t);
}

/* What depends on a hold ends with it. Seen to fail: a release that fires nothing. */
static void token_of_a_hold(void)
{
	struct two t = two_sessions();
	vez_cluster_hold_t h;
	vez_cancel_t child;
	CHECK_EQ(vez_cluster_mutex_lock(t.ma, &h, SOON, NULL), 0);
	vez_cancel_init_child(&child, vez_cluster_hold_token(&h));
	CHECK(!vez_cancel_fired(&child));
	CHECK_EQ(vez_cluster_release(&h), 0);
	CHECK(vez_cancel_fired(&child));
	CHECK_EQ(vez_cancel_destroy(&child), 0);
	CHECK(!vez_cancel_fired(vez_cluster_lost(t.a)));
	end_two(&t);
}

/* Seen to fail: a close that waits for what waits. */
static void close_with_requests(void)
{
	struct two t = two_sessions();
	vez_cluster_hold_t ha, hb, hold;
	vez_cluster_mutex_t *m;
	vez_request_t r[2];
	CHECK_EQ(vez_cluster_mutex_open(&m, t.b, fresh(), SOON, NULL), 0);
	CHECK_EQ(vez_cluster_mutex_lock(m, &hold, SOON, NULL), 0);
	CHECK_EQ(vez_cluster_mutex_lock(t.ma, &ha, SOON, NULL), 0);
	vez_request_init(&r[0], NULL, NULL);
	vez_request_init(&r[1], NULL, NULL);
	CHECK_EQ(vez_cluster_mutex_lock_async(t.mb, &hb, &r[0]), EINPROGRESS);
	UNTIL(in_line("mutex", t.name) == 2);
	CHECK_EQ(vez_cluster_mutex_lock_async(t.mb, &hb, &r[1]), EINPROGRESS); /* not even sent, perhaps */
	CHECK_EQ(vez_cluster_close(t.b), 0);
	CHECK_EQ(vez_request_result(&r[0]), VEZ_ECLOSED);
	CHECK_EQ(vez_request_result(&r[1]), VEZ_ECLOSED);
	CHECK(vez_cancel_fired(vez_cluster_hold_token(&hold)));
	CHECK_EQ(vez_cluster_hold_check(&hold), VEZ_ECLOSED);
	CHECK_EQ(vez_cluster_mutex_lock(t.mb, &hb, SOON, NULL), VEZ_ECLOSED);
	CHECK_EQ(in_line("mutex", t.name), 1);
	CHECK_EQ(vez_cluster_mutex_close(m), EBUSY);
	CHECK_EQ(vez_cluster_release(&hold), VEZ_ECLOSED);
	CHECK_EQ(vez_cluster_mutex_close(m), 0);
	CHECK_EQ(vez_cluster_mutex_close(t.mb), 0);
	CHECK_EQ(vez_cluster_release(&ha), 0);
	CHECK_EQ(vez_cluster_mutex_close(t.ma), 0);
	CHECK_EQ(vez_cluster_close(t.a), 0);
}

static void close_here(vez_request_t *r, int result, void *arg)
{
	(void)r;
	CHECK_EQ(result, 0);
	CHECK_EQ(vez_cluster_close(arg), EDEADLK);
}

/* Seen to fail: a close that does not ask who calls it. */
static void close_from_inside(void)
{
	struct two t = two_sessions();
	vez_cluster_hold_t h;
	vez_request_t r;
	vez_request_init(&r, close_here, t.a);
	CHECK_EQ(vez_cluster_mutex_lock_async(t.ma, &h, &r), EINPROGRESS);
	CHECK_EQ(vez_request_wait(&r, SOON, NULL), 0);
	CHECK_EQ(vez_cluster_release(&h), 0);
	end_two(&t);
}

/* Seen to fail: names that are not looked at; a node that is not read when it is there. */
static void names(void)
{
	char longest[66];
	vez_cluster_t *c = open_session(5000);
	vez_cluster_mutex_t *m;
	vez_cluster_sem_t *s;
	const char *bad[] = { "", ".", "..", "a/b", "/", "a\nb", "\x7f", "\xc3\xa3" };
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK_EQ(vez_cluster_mutex_open(&m, c, bad[i], SOON, NULL), EINVAL);
	memset(longest, 'x', sizeof longest);
	longest[65] = '\0';
	CHECK_EQ(vez_cluster_mutex_open(&m, c, longest, SOON, NULL), ENAMETOOLONG);
	longest[64] = '\0';
	CHECK_EQ(vez_cluster_mutex_open(&m, c, longest, SOON, NULL), 0);
	CHECK_EQ(vez_cluster_mutex_close(m), 0);
	CHECK_EQ(vez_cluster_mutex_open(&m, c, "a", VEZ_NOW, NULL), ETIMEDOUT);
	CHECK_EQ(vez_cluster_sem_open(&s, c, "s", 0, SOON, NULL), EINVAL);
	CHECK_EQ(vez_cluster_sem_open(&s, c, "s", VEZ_CLUSTER_SEM_MAX + 1, SOON, NULL), EINVAL);
	CHECK_EQ(vez_cluster_sem_open(&s, c, "s", 3, SOON, NULL), 0);
	CHECK_EQ(vez_cluster_sem_close(s), 0);
	CHECK_EQ(vez_cluster_sem_open(&s, c, "s", 4, SOON, NULL), EPROTO);
	CHECK_EQ(vez_cluster_close(c), 0);
}

/* The object's node is removed while nobody holds it. Seen to fail: a create that is tried for ever. */
static void node_removed(void)
{
	char path[64];
	vez_cluster_hold_t h;
	struct two t = two_sessions();
	snprintf(path, sizeof path, "/vez/mutex-%s", t.name);
	remove_node(path);
	CHECK_EQ(vez_cluster_mutex_lock(t.ma, &h, SOON, NULL), ENOENT);
	vez_cluster_mutex_t *again;
	CHECK_EQ(vez_cluster_mutex_open(&again, t.a, t.name, SOON, NULL), 0);
	CHECK_EQ(vez_cluster_mutex_close(again), 0);
	end_two(&t);
}

/* From one holder to the next: a write and one event, whatever the number of waiters. Sessions of an hour, as it were,
 * so that hardly a heartbeat is counted. Seen to fail: who is told looks again. */
static void packets_of_a_hand_over(void)
{
	enum { MOST = 16 };
	for (int waiters = 2; waiters <= MOST; waiters *= 2) {
		vez_cluster_t *c[MOST];
		vez_cluster_mutex_t *m[MOST];
		vez_cluster_hold_t h[MOST];
		vez_request_t r[MOST];
		const char *name = fresh();
		for (int i = 0; i < waiters; i++) {
			c[i] = open_session(60000);
			CHECK_EQ(vez_cluster_mutex_open(&m[i], c[i], name, SOON, NULL), 0);
			vez_request_init(&r[i], NULL, NULL);
			CHECK_EQ(vez_cluster_mutex_lock_async(m[i], &h[i], &r[i]), EINPROGRESS);
			UNTIL(in_line("mutex", name) == i + 1);
		}
		UNTIL(server_figure("zk_watch_count") == waiters - 1);
		long long before = server_figure("zk_packets_received") + server_figure("zk_packets_sent") -
				   2 * questions;
		for (int i = 0; i < waiters; i++) {
			CHECK_EQ(vez_request_wait(&r[i], SOON, NULL), 0);
			CHECK_EQ(vez_cluster_release(&h[i]), 0);
		}
		UNTIL(in_line("mutex", name) == 0);
		long long after = server_figure("zk_packets_received") + server_figure("zk_packets_sent") -
				  2 * questions;
		/* Three a hand-over; the looks at the figures are packets, too. */
		printf("     %d waiters: %lld packets\n", waiters, after - before);
		fflush(stdout);
		CHECK(after - before <= 3 * waiters + 10);
		for (int i = 0; i < waiters; i++) {
			CHECK_EQ(vez_cluster_mutex_close(m[i]), 0);
			CHECK_EQ(vez_cluster_close(c[i]), 0);
		}
	}
}

const struct test mutex_tests[] = {
	{ "mutex: one at a time", one_at_a_time },
	{ "mutex: limits", limits },
	{ "mutex: first come first served", first_come_first_served },
	{ "mutex: ways to learn", ways_to_learn },
	{ "mutex: token of a hold", token_of_a_hold },
	{ "mutex: close with requests", close_with_requests },
	{ "mutex: close from inside", close_from_inside },
	{ "mutex: names", names },
	{ "mutex: node removed", node_removed },
	{ "mutex: packets of a hand-over", packets_of_a_hand_over },
	{ NULL, NULL },
};
