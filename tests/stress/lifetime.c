/* SPDX-License-Identifier: MIT */
/*
 * Whoever returns first may destroy the object and take its memory away, while the calls that let it go are still
 * on their way out.
 *
 * How it is taken away: life.c. Seen to fail: with vez_sem_release reading the word again when it has left, with
 * vez__leave_pending reading the monitor when it has published (destroy-two-granted: already when it has left), and, by
 * the user's semaphore, which cannot be destroyed then, with a settled request published before the monitor is left.
 */
#include "stress.h"

#include <string.h>

#define TRIES 1u
#define TIMED 2u
#define FIRED 4u
#define CLOSED 8u

/* ---- the synchronizers ---- */

static struct {
	const struct test *t;
	struct page page;
	void *obj;
	vez_cancel_t token;
	int64_t limit;
	bool fill;
	int head_result, result;
	atomic_bool head_done;
} life;

static void discard(void)
{
	const struct kind *kind = life.t->kind;
	int rc = kind->destroy(life.obj);
	EXPECT(rc == 0, "destroy: %d with %zu queued, after result %d", rc, kind->waiters(life.obj), life.result);
	page_take_away(&life.page, life.obj, kind->size, life.fill);
}

/* Acquires, then takes the object away. */
static void last_user(void *arg)
{
	const struct test *t = life.t;
	(void)arg;
	if (t->flags & TRIES)
		while ((life.result = t->kind->try_acquire(life.obj, t->n)) == EBUSY)
			;
	else
		life.result = t->kind->acquire(life.obj, t->n, 0, VEZ_FOREVER, NULL);
	EXPECT(life.result == (t->flags & CLOSED ? VEZ_ECLOSED : 0), "result %d", life.result);
	discard();
}

static void life_begin(const struct test *t)
{
	life.t = t;
	page_make(&life.page);
	life.obj = page_object(&life.page, t->kind->size);
}

/* A06: release (or close) against destroy by the one it let go. */
static void release_destroy_test(const struct test *t)
{
	struct crew crew = { 0 };
	unsigned long rounds = rounds_of(t);
	life_begin(t);
	crew_add(&crew, "last", last_user, NULL);
	for (unsigned long i = 0; i < rounds; i++) {
		life.fill = i & 1;
		t->kind->init(life.obj, 0);
		crew_begin(&crew);
		if (!(t->flags & TRIES) && (rnd(4) || (t->flags & CLOSED)))
			WAIT_UNTIL(t->kind->waiters(life.obj) == 1);
		dawdle();
		if (t->flags & CLOSED)
			t->kind->close(life.obj);
		else
			t->kind->release(life.obj, t->n);
		crew_end(&crew);
		page_check(&life.page, life.obj, t->kind->size);
	}
	crew_dismiss(&crew);
}

static void first_user(void *arg)
{
	const struct test *t = life.t;
	vez_deadline_t deadline = t->flags & TIMED ? vez_after_ns(life.limit) : VEZ_FOREVER;
	(void)arg;
	life.head_result = t->kind->acquire(life.obj, t->n + 1, 0, deadline, t->flags & FIRED ? &life.token : NULL);
	atomic_store(&life.head_done, true);
}

/* The first leaves, by deadline or token, and by that lets the second go, which takes the object away. */
static void departure_destroy_test(const struct test *t)
{
	struct crew heads = { 0 }, lasts = { 0 };
	unsigned long rounds = rounds_of(t);
	life_begin(t);
	crew_add(&heads, "first", first_user, NULL);
	crew_add(&lasts, "last", last_user, NULL);
	for (unsigned long i = 0; i < rounds; i++) {
		life.fill = i & 1;
		life.limit = 10000 + (int64_t)rnd(10000);
		t->kind->init(life.obj, t->n);
		vez_cancel_clear(&life.token);
		atomic_store(&life.head_done, false);
		crew_begin(&heads);
		WAIT_UNTIL(atomic_load(&life.head_done) || t->kind->waiters(life.obj) == 1);
		crew_begin(&lasts);
		dawdle();
		if (t->flags & FIRED)
			vez_cancel_fire(&life.token);
		crew_end(&heads);
		crew_end(&lasts);
		EXPECT(life.head_result == (t->flags & FIRED ? ECANCELED : ETIMEDOUT), "first: %d", life.head_result);
		page_check(&life.page, life.obj, t->kind->size);
	}
	crew_dismiss(&heads);
	crew_dismiss(&lasts);
}

/* One release grants two waiters, the first of which is just giving up: the second, which finds nobody queued,
 * destroys. Seen to fail where a request that is settled, but whose thread is still on its way in, makes destroy
 * say EBUSY. */
static void two_granted_destroy_test(const struct test *t)
{
	struct crew heads = { 0 }, lasts = { 0 };
	unsigned long rounds = rounds_of(t), granted = 0;
	int64_t late = 0;
	life_begin(t);
	crew_add(&heads, "first", first_user, NULL);
	crew_add(&lasts, "last", last_user, NULL);
	for (unsigned long i = 0; i < rounds; i++) {
		life.fill = i & 1;
		life.limit = 40000;
		t->kind->init(life.obj, 0);
		vez_cancel_clear(&life.token);
		atomic_store(&life.head_done, false);
		crew_begin(&heads);
		WAIT_UNTIL(atomic_load(&life.head_done) || t->kind->waiters(life.obj) == 1);
		int64_t deadline = now_ns() + life.limit;
		crew_begin(&lasts);
		WAIT_UNTIL(atomic_load(&life.head_done) || t->kind->waiters(life.obj) == 2);
		if (t->flags & TIMED)
			WAIT_UNTIL(now_ns() >= deadline + late);
		dawdle();
		t->kind->release(life.obj, 2 * t->n + 1);
		crew_end(&heads);
		crew_end(&lasts);
		granted += life.head_result == 0;
		late += life.head_result == 0 ? 150 : late > -20000 ? -150 : 0;
		page_check(&life.page, life.obj, t->kind->size);
	}
	crew_dismiss(&heads);
	crew_dismiss(&lasts);
	remark("%lu%% granted", granted * 100 / rounds);
}

/* The same where the first was asked to retry (barging). It is closed, and who closed it destroys. */
static void asked_destroy_test(const struct test *t)
{
	struct crew heads = { 0 };
	unsigned long rounds = rounds_of(t);
	life_begin(t);
	crew_add(&heads, "first", first_user, NULL);
	for (unsigned long i = 0; i < rounds; i++) {
		life.fill = i & 1;
		t->kind->init(life.obj, 0);
		crew_begin(&heads);
		WAIT_UNTIL(t->kind->waiters(life.obj) == 1);
		dawdle();
		t->kind->release(life.obj, t->n + 1);
		life.result = t->kind->try_acquire(life.obj, 1);
		t->kind->close(life.obj);
		discard();
		crew_end(&heads);
		page_check(&life.page, life.obj, t->kind->size);
	}
	crew_dismiss(&heads);
}

/* ---- the token ---- */

static struct {
	const struct test *t;
	union object obj;
	struct page page;
	vez_cancel_t *token;
	bool fill, queues;
	atomic_bool ready;
} tok;

/* Waits with the token, and takes it away when the wait was ended by it. */
static void token_user(void *arg)
{
	const struct kind *kind = tok.t->kind;
	vez_deadline_t deadline = tok.queues ? VEZ_FOREVER : VEZ_NOW;
	int rc;
	(void)arg;
	atomic_store(&tok.ready, true);
	for (volatile uint64_t i = rnd(60); i > 0; i--)
		;
	WAIT_UNTIL((rc = kind->acquire(&tok.obj, 1, 0, deadline, tok.token)) != ETIMEDOUT);
	EXPECT(vez_cancel_destroy(tok.token) == 0, "the token cannot be destroyed");
	if (tok.fill)
		memset(tok.token, FILL, sizeof *tok.token); /* at once: the fire's way out is short */
	EXPECT(rc == ECANCELED, "result %d", rc);
	page_take_away(&tok.page, tok.token, sizeof *tok.token, tok.fill);
}

/* fire against the end of the token: the wait was queued, or was refused because the token is fired. Seen to fail
 * (token-refused crashes): with a vez_cancel_destroy that does not enter kin. */
static void token_test(const struct test *t)
{
	struct crew crew = { 0 };
	unsigned long rounds = rounds_of(t);
	tok.t = t;
	tok.queues = t->flags & FIRED;
	page_make(&tok.page);
	tok.token = page_object(&tok.page, sizeof *tok.token);
	t->kind->init(&tok.obj, 0);
	watch_object(t->kind, &tok.obj);
	crew_add(&crew, "user", token_user, NULL);
	for (unsigned long i = 0; i < rounds; i++) {
		tok.fill = i & 1;
		vez_cancel_init(tok.token);
		atomic_store(&tok.ready, false);
		crew_begin(&crew);
		if (tok.queues)
			WAIT_UNTIL(t->kind->waiters(&tok.obj) == 1);
		else
			WAIT_UNTIL(atomic_load(&tok.ready));
		vez_cancel_fire(tok.token);
		crew_end(&crew);
		page_check(&tok.page, tok.token, sizeof *tok.token);
	}
	crew_dismiss(&crew);
	EXPECT(t->kind->destroy(&tok.obj) == 0, "destroy");
}

#define EACH(name, run, flags, share) \
	{ name, run, &fifo, 1, flags, share }, { name, run, &barging, 1, flags, share }, \
	{ name, run, &user, 1, flags, share }

const struct test lifetime_tests[] = {
	EACH("destroy-parked", release_destroy_test, 0, 1),
	EACH("destroy-trying", release_destroy_test, TRIES, 1),
	EACH("destroy-closed", release_destroy_test, CLOSED, 1),
	/* Not barging: there the second overtakes the first, which is then still queued. */
	{ "destroy-after-timeout", departure_destroy_test, &fifo, 1, TIMED, 2 },
	{ "destroy-after-timeout", departure_destroy_test, &user, 1, TIMED, 2 },
	{ "destroy-after-cancel", departure_destroy_test, &fifo, 1, FIRED, 2 },
	{ "destroy-after-cancel", departure_destroy_test, &user, 1, FIRED, 2 },
	EACH("destroy-two-granted", two_granted_destroy_test, TIMED, 5),
	{ "destroy-asked", asked_destroy_test, &barging, 1, 0, 5 },
	EACH("token-queued", token_test, FIRED, 1),
	EACH("token-refused", token_test, 0, 1),
	{ 0 },
};
