/* SPDX-License-Identifier: MIT */
/* Readers and writers, with both policies. "Seen to fail" names a change of the library with which a test did. */
#include "lab.h"

#include "test.h"

enum { SESSIONS = 3, MOST = 8 };

/* A lock that several sessions have open, and requests for it. */
struct locks {
	vez_cluster_t *c[SESSIONS];
	vez_cluster_rwlock_t *l[SESSIONS];
	vez_cluster_hold_t h[MOST];
	vez_request_t r[MOST];
	const char *name;
	char path[64];
};

static void open_locks(struct locks *t, unsigned policy)
{
	t->name = fresh();
	snprintf(t->path, sizeof t->path, "/vez/rwlock-%s", t->name);
	for (int i = 0; i < SESSIONS; i++) {
		t->c[i] = open_session(10000);
		CHECK_EQ(vez_cluster_rwlock_open_with(&t->l[i], t->c[i], t->name, policy, SOON, NULL), 0);
	}
}

/* Everything was given back: no node is left but so many. */
static void close_locks(struct locks *t, int left)
{
	UNTIL(nodes(t->path) == left);
	for (int i = 0; i < SESSIONS; i++) {
		CHECK_EQ(vez_cluster_rwlock_close(t->l[i]), 0);
		CHECK_EQ(vez_cluster_close(t->c[i]), 0);
	}
}

static bool has_epoch(const struct locks *t)
{
	char found[512];
	return node_below(t->path, "epoch-", found);
}

static void ask(struct locks *t, int session, bool write, int i)
{
	vez_request_init(&t->r[i], NULL, NULL);
	CHECK_EQ(write ? vez_cluster_rwlock_write_async(t->l[session], &t->h[i], &t->r[i]) :
			 vez_cluster_rwlock_read_async(t->l[session], &t->h[i], &t->r[i]), EINPROGRESS);
}

/* The request stands in line, and has been looked at: it waits. */
static void ask_behind(struct locks *t, int session, bool write, int i)
{
	int before = nodes(t->path);
	long long watches = server_figure("zk_watch_count");
	ask(t, session, write, i);
	UNTIL(nodes(t->path) == before + 1 && server_figure("zk_watch_count") > watches);
	CHECK_EQ(vez_request_result(&t->r[i]), EINPROGRESS);
}

static void had(struct locks *t, int i)
{
	CHECK_EQ(vez_request_wait(&t->r[i], SOON, NULL), 0);
	CHECK_EQ(vez_request_result(&t->r[i]), 0);
}

static void have(struct locks *t, int session, bool write, int i)
{
	ask(t, session, write, i);
	had(t, i);
}

/* Whatever is under way has come to rest: for some time, nothing has come to the server but looks at its figures. */
static void settle(void)
{
	long long before = server_figure("zk_packets_received");
	for (int quiet = 0; quiet < 5; quiet++) {
		a_moment();
		long long now = server_figure("zk_packets_received");
		if (now > before + 1)
			quiet = 0;
		before = now;
	}
}

static void waits(struct locks *t, int i)
{
	settle();
	CHECK_EQ(vez_request_result(&t->r[i]), EINPROGRESS);
}

static void give_back(struct locks *t, int i)
{
	CHECK_EQ(vez_cluster_release(&t->h[i]), 0);
}

static uint64_t fence(const struct locks *t, int i)
{
	return vez_cluster_hold_fence(&t->h[i]);
}

/* Readers together, writers alone, in the order in which they came. Seen to fail: a writer that takes one permit. */
static void in_order(void)
{
	struct locks t;
	open_locks(&t, VEZ_RW_FIFO);
	have(&t, 0, false, 0);
	have(&t, 1, false, 1);
	ask_behind(&t, 1, true, 2);
	ask_behind(&t, 0, false, 3);
	ask_behind(&t, 2, true, 4);
	ask_behind(&t, 0, false, 5);
	give_back(&t, 0);
	waits(&t, 2);
	give_back(&t, 1);
	had(&t, 2);
	waits(&t, 3);
	give_back(&t, 2);
	had(&t, 3);
	waits(&t, 5);
	give_back(&t, 3);
	had(&t, 4);
	give_back(&t, 4);
	had(&t, 5);
	for (int i = 3; i < 6; i++)
		CHECK(fence(&t, i) > fence(&t, i - 1));
	give_back(&t, 5);
	close_locks(&t, 0);
}

/* A writer that leaves admits those who wait behind the next one, and no one who comes later; then that one has its
 * turn. Seen to fail: no reader is admitted; every reader is; a writer that does not wait for readers who were admitted
 * from behind it; a writer that takes a mark for its turn; a fence that is the node's creation; a reader that leaves
 * and tells nobody; a writer that leaves without an epoch. */
static void alternating(void)
{
	struct locks t;
	open_locks(&t, VEZ_RW_HOARE);
	have(&t, 0, true, 0);
	ask_behind(&t, 1, true, 1);
	ask_behind(&t, 2, false, 2);
	ask_behind(&t, 0, false, 3);
	ask_behind(&t, 1, true, 4);
	ask_behind(&t, 1, false, 5);
	give_back(&t, 0);
	had(&t, 2);
	had(&t, 3);
	had(&t, 5);
	waits(&t, 1);
	ask_behind(&t, 0, false, 6);
	give_back(&t, 2);
	give_back(&t, 3);
	waits(&t, 1);
	waits(&t, 6);
	give_back(&t, 5);
	had(&t, 1);
	waits(&t, 4);
	waits(&t, 6);
	give_back(&t, 1);
	had(&t, 6);
	waits(&t, 4);
	give_back(&t, 6);
	had(&t, 4);
	CHECK(fence(&t, 0) < fence(&t, 2) && fence(&t, 0) < fence(&t, 3) && fence(&t, 0) < fence(&t, 5));
	CHECK(fence(&t, 2) < fence(&t, 1) && fence(&t, 3) < fence(&t, 1) && fence(&t, 5) < fence(&t, 1));
	CHECK(fence(&t, 1) < fence(&t, 6) && fence(&t, 6) < fence(&t, 4));
	give_back(&t, 4);
	close_locks(&t, 1);
}

/* While readers read and a writer waits, who comes to read waits, too. A lock that nobody has written leaves nothing.
 * Seen to fail: readers wait only for a writer that holds; a writer that gives up makes an epoch. */
static void a_waiting_writer(void)
{
	struct locks t;
	open_locks(&t, VEZ_RW_HOARE);
	have(&t, 0, false, 0);
	have(&t, 1, false, 1);
	ask_behind(&t, 2, true, 2);
	ask_behind(&t, 1, false, 3);
	waits(&t, 3);
	/* It gives up: the reader goes on. */
	CHECK_EQ(vez_request_cancel(&t.r[2]), 0);
	had(&t, 3);
	CHECK(!has_epoch(&t));
	for (int i = 0; i < 4; i++)
		if (i != 2)
			give_back(&t, i);
	close_locks(&t, 0);
}

/* The first of two writers gives up while those read who were admitted from behind: the other one has its turn when
 * they have left. Seen to fail: a writer that gives up makes an epoch. */
static void the_first_gives_up(void)
{
	struct locks t;
	open_locks(&t, VEZ_RW_HOARE);
	have(&t, 0, true, 0);
	ask_behind(&t, 1, true, 1);
	ask_behind(&t, 2, true, 2);
	ask_behind(&t, 0, false, 3);
	give_back(&t, 0);
	had(&t, 3);
	CHECK_EQ(vez_request_cancel(&t.r[1]), 0);
	UNTIL(nodes(t.path) == 3);
	waits(&t, 2);
	give_back(&t, 3);
	had(&t, 2);
	give_back(&t, 2);
	close_locks(&t, 1);
}

/* More than one transaction marks. Seen to fail: those after the first 64 are forgotten. */
static void many_readers(void)
{
	enum { MANY = 150 };
	static vez_cluster_hold_t h[MANY];
	static vez_request_t r[MANY];
	struct locks t;
	open_locks(&t, VEZ_RW_HOARE);
	have(&t, 0, true, 0);
	ask_behind(&t, 1, true, 1);
	long long watches = server_figure("zk_watch_count");
	for (int i = 0; i < MANY; i++) {
		vez_request_init(&r[i], NULL, NULL);
		CHECK_EQ(vez_cluster_rwlock_read_async(t.l[1 + i % 2], &h[i], &r[i]), EINPROGRESS);
	}
	UNTIL(server_figure("zk_watch_count") >= watches + MANY);
	give_back(&t, 0);
	for (int i = 0; i < MANY; i++) {
		CHECK_EQ(vez_request_wait(&r[i], SOON, NULL), 0);
		CHECK_EQ(vez_request_result(&r[i]), 0);
	}
	CHECK_EQ(vez_request_result(&t.r[1]), EINPROGRESS);
	for (int i = 0; i < MANY; i++)
		CHECK_EQ(vez_cluster_release(&h[i]), 0);
	had(&t, 1);
	give_back(&t, 1);
	close_locks(&t, 1);
}

/* Seen to fail: a policy that the object's node does not say; one that is not looked at. */
static void policies(void)
{
	vez_cluster_t *c = open_session(5000);
	vez_cluster_rwlock_t *l, *m;
	const char *name[] = { fresh(), fresh() };
	CHECK_EQ(vez_cluster_rwlock_open_with(&l, c, name[0], VEZ_RW_READERS, SOON, NULL), EINVAL);
	CHECK_EQ(vez_cluster_rwlock_open_with(&l, c, name[0], 1, SOON, NULL), EINVAL);
	CHECK_EQ(in_line("rwlock", name[0]), -1);
	CHECK_EQ(vez_cluster_rwlock_open_with(&l, c, "a/b", VEZ_RW_HOARE, SOON, NULL), EINVAL);
	CHECK_EQ(vez_cluster_rwlock_open_with(&l, c, name[0], VEZ_RW_HOARE, VEZ_NOW, NULL), ETIMEDOUT);
	CHECK_EQ(vez_cluster_rwlock_open_with(&l, c, name[0], VEZ_RW_HOARE, SOON, NULL), 0);
	CHECK_EQ(vez_cluster_rwlock_open_with(&m, c, name[0], VEZ_RW_FIFO, SOON, NULL), EPROTO);
	CHECK_EQ(vez_cluster_rwlock_open(&m, c, name[0], SOON, NULL), EPROTO);
	CHECK_EQ(vez_cluster_rwlock_open_with(&m, c, name[0], VEZ_RW_HOARE, SOON, NULL), 0);
	CHECK_EQ(vez_cluster_rwlock_close(l) | vez_cluster_rwlock_close(m), 0);
	CHECK_EQ(vez_cluster_rwlock_open(&l, c, name[1], SOON, NULL), 0);
	CHECK_EQ(vez_cluster_rwlock_open_with(&m, c, name[1], VEZ_RW_HOARE, SOON, NULL), EPROTO);
	CHECK_EQ(vez_cluster_rwlock_open_with(&m, c, name[1], VEZ_RW_FIFO, SOON, NULL), 0);
	CHECK_EQ(vez_cluster_rwlock_close(l) | vez_cluster_rwlock_close(m), 0);
	CHECK_EQ(vez_cluster_close(c), 0);
}

/* Limits, and a session that is closed, as for all that stands in line; by both kinds of request. Seen to fail: a claim
 * that gives up and leaves its node. */
static void limits(void)
{
	struct locks t;
	vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
	vez_cluster_hold_t h;
	open_locks(&t, VEZ_RW_HOARE);
	have(&t, 0, true, 0);
	CHECK_EQ(vez_cluster_rwlock_read(t.l[1], &h, VEZ_NOW, NULL), ETIMEDOUT);
	CHECK_EQ(vez_cluster_rwlock_read(t.l[1], &h, vez_after_ms(50), NULL), ETIMEDOUT);
	CHECK_EQ(vez_cluster_rwlock_write(t.l[1], &h, vez_after_ms(50), NULL), ETIMEDOUT);
	vez_cancel_fire_at(&token, vez_after_ms(50));
	CHECK_EQ(vez_cluster_rwlock_read(t.l[1], &h, SOON, &token), ECANCELED);
	CHECK_EQ(vez_cancel_destroy(&token), 0);
	CHECK_EQ(vez_cluster_rwlock_close(t.l[0]), EBUSY);
	UNTIL(nodes(t.path) == 1);
	CHECK(!vez_cancel_fired(vez_cluster_hold_token(&t.h[0])));
	/* Who holds and who waits in it are gone with a session: the reader is the next. */
	ask_behind(&t, 1, false, 1);
	ask_behind(&t, 0, true, 2);
	CHECK_EQ(vez_cluster_close(t.c[0]), 0);
	CHECK_EQ(vez_request_result(&t.r[2]), VEZ_ECLOSED);
	had(&t, 1);
	CHECK_EQ(vez_cluster_release(&t.h[0]), VEZ_ECLOSED);
	give_back(&t, 1);
	CHECK_EQ(vez_cluster_rwlock_close(t.l[0]), 0);
	t.c[0] = open_session(10000);
	CHECK_EQ(vez_cluster_rwlock_open_with(&t.l[0], t.c[0], t.name, VEZ_RW_HOARE, SOON, NULL), 0);
	close_locks(&t, 0);
}

/* ---- killed ---- */

struct victim {
	struct {
		char name[64];
		int goes;
		int holds;
	} *shared;
	bool writes;
	pid_t child;
};

#define GOES(v) __atomic_load_n(&(v).shared->goes, __ATOMIC_ACQUIRE)
#define HOLDS(v) __atomic_load_n(&(v).shared->holds, __ATOMIC_ACQUIRE)

/* Asks when it is told to, says when it has, and waits to be killed. */
static int ask_and_stay(void *arg)
{
	struct victim *v = arg;
	UNTIL(GOES(*v));
	vez_cluster_t *c = open_session(300);
	vez_cluster_rwlock_t *l;
	vez_cluster_hold_t h;
	CHECK_EQ(vez_cluster_rwlock_open_with(&l, c, v->shared->name, VEZ_RW_HOARE, SOON, NULL), 0);
	CHECK_EQ(v->writes ? vez_cluster_rwlock_write(l, &h, SOON, NULL) :
			     vez_cluster_rwlock_read(l, &h, SOON, NULL), 0);
	__atomic_store_n(&v->shared->holds, 1, __ATOMIC_RELEASE);
	for (;;)
		pause();
	return 0;
}

/* Before this process has threads: a child that has been forked beside some may make none under ThreadSanitizer. */
static void start_victim(struct victim *v, bool writes)
{
	v->shared = shared(sizeof *v->shared);
	v->writes = writes;
	v->child = start_child(ask_and_stay, v);
}

static void tell_victim(const struct victim *v, const struct locks *t)
{
	snprintf(v->shared->name, sizeof v->shared->name, "%s", t->name);
	__atomic_store_n(&v->shared->goes, 1, __ATOMIC_RELEASE);
}

static void kill_victim(const struct victim *v)
{
	kill(v->child, SIGKILL);
	CHECK_EQ(end_of(v->child), 1000 + SIGKILL);
}

/* A writer that is killed while it holds admits nobody: the line goes on in order. Seen to fail: the end of a session
 * that nobody watches. */
static void writer_killed(void)
{
	struct locks t;
	struct victim v;
	start_victim(&v, true);
	open_locks(&t, VEZ_RW_HOARE);
	tell_victim(&v, &t);
	UNTIL(HOLDS(v));
	ask_behind(&t, 0, false, 0);
	ask_behind(&t, 1, true, 1);
	ask_behind(&t, 2, false, 2);
	kill_victim(&v);
	had(&t, 0);
	waits(&t, 1);
	waits(&t, 2);
	CHECK(!has_epoch(&t));
	give_back(&t, 0);
	had(&t, 1);
	waits(&t, 2);
	give_back(&t, 1);
	had(&t, 2);
	CHECK(fence(&t, 0) < fence(&t, 1) && fence(&t, 1) < fence(&t, 2));
	give_back(&t, 2);
	close_locks(&t, 1);
}

/* One that is killed while it waits holds back nobody any more. Seen to fail: as above. */
static void waiting_writer_killed(void)
{
	struct locks t;
	struct victim v;
	start_victim(&v, true);
	open_locks(&t, VEZ_RW_HOARE);
	have(&t, 0, false, 0);
	tell_victim(&v, &t);
	UNTIL(nodes(t.path) == 2);
	ask_behind(&t, 1, false, 1);
	ask_behind(&t, 2, true, 2);
	kill_victim(&v);
	had(&t, 1);
	CHECK(!HOLDS(v));
	waits(&t, 2);
	give_back(&t, 0);
	waits(&t, 2);
	give_back(&t, 1);
	had(&t, 2);
	give_back(&t, 2);
	close_locks(&t, 1);
}

/* A reader that came after a writer had looked, is admitted before it, and killed: that writer is the next all the
 * same. gives_up: it has become the first one by another's giving up. Seen to fail: a writer that leaves, or gives up,
 * and does not tell the first writer of readers behind it; a look that watches those before it alone; a mark taken for
 * a turn. */
static void admitted_reader_killed(bool gives_up)
{
	struct locks t;
	struct victim v;
	start_victim(&v, false);
	open_locks(&t, VEZ_RW_HOARE);
	have(&t, 0, true, 0);
	if (gives_up)
		ask_behind(&t, 2, true, 2);
	ask_behind(&t, 1, true, 1);
	int before = nodes(t.path);
	tell_victim(&v, &t);
	UNTIL(nodes(t.path) == before + 1);
	give_back(&t, 0);
	UNTIL(HOLDS(v));
	waits(&t, 1);
	if (gives_up) {
		CHECK_EQ(vez_request_cancel(&t.r[2]), 0);
		UNTIL(nodes(t.path) == 3);
		waits(&t, 1);
	}
	kill_victim(&v);
	had(&t, 1);
	give_back(&t, 1);
	close_locks(&t, 1);
}

static void reader_killed(void)
{
	admitted_reader_killed(false);
}

static void reader_killed_first_gives_up(void)
{
	admitted_reader_killed(true);
}

/* ---- the epoch ---- */

/* Somebody removes it while a writer holds: that one leaves all the same, and the line goes on in order. Seen to fail:
 * a step that is refused, and tried for ever; a writer that leaves and tells readers alone. */
static void epoch_removed(void)
{
	struct locks t;
	char epoch[512];
	open_locks(&t, VEZ_RW_HOARE);
	have(&t, 0, true, 0);
	give_back(&t, 0);
	UNTIL(nodes(t.path) == 1);
	have(&t, 0, true, 0);
	ask_behind(&t, 1, true, 1);
	ask_behind(&t, 2, false, 2);
	CHECK(node_below(t.path, "epoch-", epoch));
	remove_node(epoch);
	give_back(&t, 0);
	had(&t, 1);
	waits(&t, 2);
	give_back(&t, 1);
	had(&t, 2);
	give_back(&t, 2);
	close_locks(&t, 1);
}

/* One that is left from long ago is removed before numbers come again; a writer that holds meanwhile is not disturbed.
 * Seen to fail: one that stays. */
static void epoch_outlived(void)
{
	struct locks t;
	char epoch[128];
	open_locks(&t, VEZ_RW_HOARE);
	snprintf(epoch, sizeof epoch, "%s/epoch--1000000000", t.path);
	make_node(epoch);
	have(&t, 0, false, 0);
	give_back(&t, 0);
	UNTIL(nodes(t.path) == 1);
	settle();
	CHECK(has_epoch(&t));
	remove_node(epoch);
	snprintf(epoch, sizeof epoch, "%s/epoch--1500000000", t.path);
	make_node(epoch);
	have(&t, 0, false, 0);
	give_back(&t, 0);
	UNTIL(nodes(t.path) == 0);
	make_node(epoch);
	have(&t, 1, true, 1);
	CHECK_EQ(vez_cluster_rwlock_read(t.l[0], &t.h[0], vez_after_ms(20), NULL), ETIMEDOUT);
	UNTIL(nodes(t.path) == 1);
	give_back(&t, 1);
	close_locks(&t, 0);
}

/* ---- packets ---- */

static long long packets(void)
{
	return server_figure("zk_packets_received") + server_figure("zk_packets_sent") - 2 * questions;
}

enum { ROUNDS = 20 };

/* A round in which somebody has it, and gives it back; hands over to a reader, or a writer, who gives it back. */
static void round_of(struct locks *t, int left, bool alone, bool write)
{
	have(t, 0, alone ? write : true, 0);
	if (!alone) {
		ask(t, 1, write, 1);
		UNTIL(nodes(t->path) == left + 2);
	}
	give_back(t, 0);
	if (!alone) {
		had(t, 1);
		give_back(t, 1);
	}
	UNTIL(nodes(t->path) == left);
}

/* No more than so many packets each, but for the looks at the figures. */
static void rounds(struct locks *t, bool alone, bool write, long long most)
{
	int left = nodes(t->path);
	long long before = packets();
	for (int i = 0; i < ROUNDS; i++)
		round_of(t, left, alone, write);
	long long each = (packets() - before - 10) / ROUNDS;
	printf("     %s %s: %lld packets\n", alone ? "alone," : "to a", write ? "writer" : "reader", each);
	fflush(stdout);
	CHECK(each <= most);
}

/* An acquire and its release; or an acquire, one that waits (6), the hand-over, and that one's release (4). Seen to
 * fail: a marked reader that looks again. */
static void packets_of(unsigned policy, long long alone, long long to_writer, long long to_reader)
{
	struct locks t;
	open_locks(&t, policy);
	int left = policy == VEZ_RW_HOARE;
	have(&t, 0, true, 0);
	give_back(&t, 0);
	UNTIL(nodes(t.path) == left);
	round_of(&t, left, false, true); /* the sessions learn of each other */
	rounds(&t, true, false, alone);
	rounds(&t, true, true, alone);
	rounds(&t, false, true, to_writer);
	rounds(&t, false, false, to_reader);
	close_locks(&t, left);
}

static void packets_in_order(void)
{
	packets_of(VEZ_RW_FIFO, 8, 21, 21);
}

static void packets_alternating(void)
{
	packets_of(VEZ_RW_HOARE, 10, 27, 25);
}

const struct test rwlock_tests[] = {
	{ "rwlock: in order", in_order },
	{ "rwlock: alternating", alternating },
	{ "rwlock: a waiting writer", a_waiting_writer },
	{ "rwlock: the first gives up", the_first_gives_up },
	{ "rwlock: many readers", many_readers },
	{ "rwlock: policies", policies },
	{ "rwlock: limits", limits },
	{ "rwlock: writer killed", writer_killed },
	{ "rwlock: waiting writer killed", waiting_writer_killed },
	{ "rwlock: admitted reader killed", reader_killed },
	{ "rwlock: admitted reader killed, the first gives up", reader_killed_first_gives_up },
	{ "rwlock: epoch removed", epoch_removed },
	{ "rwlock: epoch outlived", epoch_outlived },
	{ "rwlock: packets, in order", packets_in_order },
	{ "rwlock: packets, alternating", packets_alternating },
	{ NULL, NULL },
};
