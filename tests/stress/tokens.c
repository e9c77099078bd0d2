/* SPDX-License-Identifier: MIT */
/*
 * Tokens with hooks and children, and a thread's own: attached, detached, made and destroyed while a fire is on
 * its way.
 *
 * Each hook counts its runs, so that every answer of attach, detach and try_detach is held against what happened. What
 * is given up (a hook that runs, a token that was destroyed) is overwritten or taken away at once and looked at when
 * the fire is out.
 */
#include "stress.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define STACK (2u << 20)

static void filled(const void *memory, size_t size, const char *what)
{
	const unsigned char *bytes = memory;
	for (size_t i = 0; i < size; i++)
		EXPECT(bytes[i] == FILL, "byte %zu of %s was written after it had been given up", i, what);
}

static void expect_canceled(vez_sem_t *s, vez_cancel_t *token, vez_deadline_t deadline)
{
	int rc;
	WAIT_UNTIL((rc = vez_sem_acquire_until(s, 1, deadline, token)) != ETIMEDOUT);
	EXPECT(rc == ECANCELED, "result %d", rc);
}

/* ---- attach and detach against fire and clear ---- */

#define ATTACHERS 2

struct counted {
	vez_cancel_hook_t hook;
	atomic_uint begun, ended;
	bool waits;
};

static struct {
	vez_cancel_t token;
	struct counted counted[ATTACHERS];
	atomic_uint none, late, at_once;
} hooks;

static void count(void *arg)
{
	struct counted *c = arg;
	atomic_fetch_add(&c->begun, 1);
	meet(15000);
	atomic_fetch_add(&c->ended, 1);
}

/* What detach says is what happened. */
static void take_off(struct counted *c)
{
	int rc = c->waits ? vez_cancel_detach(&hooks.token, &c->hook) : vez_cancel_try_detach(&hooks.token, &c->hook);
	unsigned runs = atomic_load(&c->begun), ended = atomic_load(&c->ended);
	if (rc == 0)
		EXPECT(runs == 0, "detached, and it ran");
	else
		EXPECT(rc == EALREADY && (!c->waits || ended == 1), "detach: %d, ran %u times, ended %u", rc, runs,
		       ended);
	atomic_fetch_add(rc == 0 ? &hooks.none : &hooks.late, 1);
}

static void attach_once(void *arg)
{
	struct counted *c = arg;
	c->waits = rnd(2);
	meet(5000);
	int rc = vez_cancel_attach(&hooks.token, &c->hook, count, c);
	if (rc == 0) {
		meet(10000);
		take_off(c);
		return;
	}
	EXPECT(rc == EALREADY && atomic_load(&c->ended) == 1, "attach: %d, and it ended %u times", rc, c->ended);
	atomic_fetch_add(&hooks.at_once, 1);
}

static void fire_and_clear(void *arg)
{
	(void)arg;
	meet(8000);
	vez_cancel_fire(&hooks.token);
	if (rnd(2)) {
		vez_cancel_clear(&hooks.token);
		meet(12000);
		vez_cancel_fire(&hooks.token);
	}
}

/* Seen to fail: with a detach that does not wait; with a take_off that does not ask whether the hook is still attached
 * (it crashes or runs after all); and, by the thread sanitizer, with a fire that looks outside kin whether it
 * owes hooks. */
static void hooks_test(const struct test *t)
{
	struct crew crew = { 0 };
	unsigned long rounds = rounds_of(t);
	for (int i = 0; i < ATTACHERS; i++)
		crew_add(&crew, "attacher", attach_once, &hooks.counted[i]);
	crew_add(&crew, "firer", fire_and_clear, NULL);
	if (t->n > 1)
		crew_add(&crew, "firer", fire_and_clear, NULL);
	for (unsigned long i = 0; i < rounds; i++) {
		vez_cancel_init(&hooks.token);
		for (int k = 0; k < ATTACHERS; k++) {
			atomic_store(&hooks.counted[k].begun, 0);
			atomic_store(&hooks.counted[k].ended, 0);
		}
		crew_begin(&crew);
		crew_end(&crew);
		EXPECT(vez_cancel_destroy(&hooks.token) == 0, "the token is still in use");
		for (int k = 0; k < ATTACHERS; k++)
			EXPECT(hooks.counted[k].begun <= 1 && hooks.counted[k].begun == hooks.counted[k].ended,
			       "ran twice");
	}
	crew_dismiss(&crew);
	remark("%u detached, %u too late, %u at once", hooks.none, hooks.late, hooks.at_once);
}

/* ---- a hook that frees itself ---- */

#define FREED 4

static struct {
	vez_cancel_t token;
	atomic_uint ran;
} freed;

static void free_itself(void *arg)
{
	vez_cancel_hook_t *h = arg;
	memset(h, FILL, sizeof *h);
	free(h);
	atomic_fetch_add(&freed.ran, 1);
}

static void attach_free(void *arg)
{
	(void)arg;
	for (int i = 0; i < FREED; i++) {
		meet(3000);
		vez_cancel_hook_t *h = malloc(sizeof *h);
		vez_cancel_attach(&freed.token, h, free_itself, h);
	}
}

static void fire_freed(void *arg)
{
	(void)arg;
	meet(3000);
	vez_cancel_fire(&freed.token);
}

/* Seen to fail (it crashes): with run_hooks taking its hook off the list only when it has run. */
static void freed_test(const struct test *t)
{
	struct crew crew = { 0 };
	unsigned long rounds = rounds_of(t);
	crew_add(&crew, "attacher", attach_free, NULL);
	crew_add(&crew, "firer", fire_freed, NULL);
	for (unsigned long i = 0; i < rounds; i++) {
		atomic_store(&freed.ran, 0);
		crew_begin(&crew);
		crew_end(&crew);
		EXPECT(freed.ran == FREED, "%u of %d ran", freed.ran, FREED);
		EXPECT(vez_cancel_destroy(&freed.token) == 0, "the token is still in use");
		vez_cancel_init(&freed.token);
	}
	crew_dismiss(&crew);
}

/* ---- a hook that attaches itself anew, or that its attach runs ---- */

static struct {
	vez_cancel_t fired, next;
	vez_cancel_hook_t hook;
	atomic_bool renews, begun, ended;
} anew;

static void attach_anew(void *arg)
{
	if (atomic_load(&anew.renews))
		EXPECT(vez_cancel_attach(&anew.next, &anew.hook, attach_anew, arg) == 0, "attach");
	atomic_store(&anew.begun, true);
	meet(20000);
	atomic_store(&anew.ended, true);
}

static void attach_fired(void *arg)
{
	EXPECT(vez_cancel_attach(&anew.fired, &anew.hook, attach_anew, arg) == EALREADY, "attach");
}

static void detach_anew(void *arg)
{
	vez_cancel_t *c = atomic_load(&anew.renews) ? &anew.next : &anew.fired;
	(void)arg;
	WAIT_UNTIL(atomic_load(&anew.begun));
	int rc = vez_cancel_detach(c, &anew.hook);
	EXPECT(rc == (atomic_load(&anew.renews) ? 0 : EALREADY), "detach: %d", rc);
	EXPECT(atomic_load(&anew.ended), "it still runs");
}

/* While it runs, another thread detaches it: from the token where it is attached anew, or from that whose attach runs
 * it. Seen to fail: with an attach that does not make its runs known, and with one that does not renew those
 * of before. */
static void anew_test(const struct test *t)
{
	struct crew crew = { 0 };
	unsigned long rounds = rounds_of(t);
	crew_add(&crew, "attacher", attach_fired, NULL);
	crew_add(&crew, "detacher", detach_anew, NULL);
	vez_cancel_fire(&anew.fired);
	for (unsigned long i = 0; i < rounds; i++) {
		atomic_store(&anew.renews, i & 1);
		atomic_store(&anew.begun, false);
		atomic_store(&anew.ended, false);
		crew_begin(&crew);
		crew_end(&crew);
		EXPECT(vez_cancel_destroy(&anew.next) == 0, "the token is still in use");
	}
	crew_dismiss(&crew);
	EXPECT(vez_cancel_destroy(&anew.fired) == 0, "the token is still in use");
}

/* ---- two hooks that detach each other ---- */

struct rival {
	vez_cancel_t token;
	vez_cancel_hook_t hook;
	struct rival *other;
	unsigned ran;
	int answer;
};

static struct rival rivals[2];

static void detach_other(void *arg)
{
	struct rival *me = arg;
	me->ran++;
	meet(4000);
	me->answer = vez_cancel_try_detach(&me->other->token, &me->other->hook);
}

static void fire_rival(void *arg)
{
	struct rival *me = arg;
	meet(2000);
	vez_cancel_fire(&me->token);
}

/* Seen to fail: with a try_detach that leaves the hook attached. */
static void rivals_test(const struct test *t)
{
	struct crew crew = { 0 };
	unsigned long rounds = rounds_of(t), both = 0;
	for (int i = 0; i < 2; i++)
		crew_add(&crew, "rival", fire_rival, &rivals[i]);
	for (unsigned long i = 0; i < rounds; i++) {
		for (int k = 0; k < 2; k++) {
			rivals[k].other = &rivals[!k];
			rivals[k].ran = 0;
			rivals[k].answer = -1;
			EXPECT(vez_cancel_attach(&rivals[k].token, &rivals[k].hook, detach_other, &rivals[k]) == 0,
			       "attach");
		}
		crew_begin(&crew);
		crew_end(&crew);
		for (int k = 0; k < 2; k++) {
			EXPECT(rivals[k].ran == (rivals[!k].answer != 0), "ran %u times, and was told %d",
			       rivals[k].ran, rivals[!k].answer);
			EXPECT(vez_cancel_clear(&rivals[k].token), "not fired");
			EXPECT(vez_cancel_destroy(&rivals[k].token) == 0, "the token is still in use");
		}
		both += rivals[0].ran && rivals[1].ran;
	}
	crew_dismiss(&crew);
	remark("%lu%% both ran", both * 100 / rounds);
}

/* ---- children ---- */

#define FAMILIES 2

static struct {
	vez_cancel_t parent;
	vez_sem_t sem;
	struct family {
		vez_cancel_t child, grandchild;
		vez_cancel_hook_t hook;
		unsigned ran;
	} families[FAMILIES];
} kin;

static void count_run(void *arg)
{
	++*(unsigned *)arg;
}

static void token_give_up(vez_cancel_t *token)
{
	EXPECT(vez_cancel_destroy(token) == 0, "the token is still in use");
	memset(token, FILL, sizeof *token);
}

/* A child waits, or passes its own child on to its parent and goes before the fire may have come; whoever waits is
 * ended by the parent's fire. Its hook runs after that, or is detached first. */
static void raise_family(void *arg)
{
	struct family *f = arg;
	bool early = rnd(2);
	meet(4000);
	vez_cancel_init_child(&f->child, &kin.parent);
	vez_cancel_init_child(&f->grandchild, &f->child);
	f->ran = 0;
	vez_cancel_attach(&f->grandchild, &f->hook, count_run, &f->ran);
	if (early) {
		meet(8000);
		token_give_up(&f->child);
	}
	expect_canceled(&kin.sem, early || rnd(2) ? &f->grandchild : &f->child, rnd(2) ? VEZ_FOREVER :
			vez_after_us(20));
	if (!early)
		token_give_up(&f->child);
	EXPECT(vez_cancel_fired(&f->grandchild), "the grandchild is not fired");
	int rc = vez_cancel_detach(&f->grandchild, &f->hook);
	EXPECT(f->ran == (rc != 0), "its hook ran %u times, and detach said %d", f->ran, rc);
	token_give_up(&f->grandchild);
}

static void fire_parent(void *arg)
{
	(void)arg;
	meet(10000);
	vez_cancel_fire(&kin.parent);
}

/* Seen to fail: with a destroy that leaves the children without a parent (it hangs), with one that leaves the token
 * among its parent's children, and with an init_child that does not look whether the parent is fired (it hangs). */
static void children_test(const struct test *t)
{
	struct crew crew = { 0 };
	unsigned long rounds = rounds_of(t);
	vez_sem_init(&kin.sem, 0, 0, 0);
	watch_object(&fifo, &kin.sem);
	for (int i = 0; i < FAMILIES; i++)
		crew_add(&crew, "family", raise_family, &kin.families[i]);
	crew_add(&crew, "firer", fire_parent, NULL);
	for (unsigned long i = 0; i < rounds; i++) {
		crew_begin(&crew);
		crew_end(&crew);
		for (int k = 0; k < FAMILIES; k++) {
			filled(&kin.families[k].child, sizeof(vez_cancel_t), "a child");
			filled(&kin.families[k].grandchild, sizeof(vez_cancel_t), "a grandchild");
		}
		EXPECT(vez_cancel_destroy(&kin.parent) == 0, "the parent is still in use");
		vez_cancel_init(&kin.parent);
	}
	crew_dismiss(&crew);
	EXPECT(vez_sem_destroy(&kin.sem) == 0, "destroy");
}

/* ---- the token of a thread that exits ---- */

#define CHILDREN 500

static struct {
	vez_sem_t sem;
	_Atomic(vez_cancel_t *) token;
	vez_cancel_t children[CHILDREN];
	bool queues;
} self;

/* Exits as soon as its token has ended its wait: a refused one, while the fire marks the children. */
static void *own_wait(void *arg)
{
	vez_cancel_t *mine = vez_cancel_self();
	(void)arg;
	for (int i = 0; i < CHILDREN && !self.queues; i++)
		vez_cancel_init_child(&self.children[i], mine);
	atomic_store(&self.token, mine);
	expect_canceled(&self.sem, mine, self.queues ? VEZ_FOREVER : VEZ_NOW);
	return NULL;
}

static void fire_self(void *arg)
{
	(void)arg;
	WAIT_UNTIL(atomic_load(&self.token));
	if (self.queues)
		WAIT_UNTIL(vez_sem_waiters(&self.sem) == 1);
	vez_cancel_fire(atomic_load(&self.token));
}

/* Its token is thread-local, at the end of its stack, which is taken away as soon as it has exited. Seen to fail (it
 * crashes): with an exit that does not pass through the lock that a fire holds. */
static void self_test(const struct test *t)
{
	struct crew crew = { 0 };
	unsigned long rounds = rounds_of(t);
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	vez_sem_init(&self.sem, 0, 0, 0);
	watch_object(&fifo, &self.sem);
	crew_add(&crew, "firer", fire_self, NULL);
	for (unsigned long i = 0; i < rounds; i++) {
		pthread_t thread;
		void *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		EXPECT(stack != MAP_FAILED && pthread_attr_setstack(&attr, stack, STACK) == 0, "no stack");
		atomic_store(&self.token, NULL);
		self.queues = t->flags || (i & 1);
		crew_begin(&crew);
		EXPECT(pthread_create(&thread, &attr, own_wait, NULL) == 0, "no thread");
		pthread_join(thread, NULL);
		EXPECT(mprotect(stack, STACK, PROT_NONE) == 0, "mprotect");
		crew_end(&crew);
		munmap(stack, STACK);
	}
	crew_dismiss(&crew);
	EXPECT(vez_sem_destroy(&self.sem) == 0, "destroy");
}

const struct test token_tests[] = {
	{ "hooks", hooks_test, NULL, 1, 0, 2 },
	{ "hooks-two-fires", hooks_test, NULL, 2, 0, 2 },
	{ "hook-frees-itself", freed_test, NULL, 0, 0, 2 },
	{ "hook-attached-anew", anew_test, NULL, 0, 0, 5 },
	{ "hooks-detach-each-other", rivals_test, NULL, 0, 0, 2 },
	{ "children", children_test, NULL, 0, 0, 2 },
	{ "token-of-exiting-thread", self_test, NULL, 0, 0, 5 },
	{ 0 },
};
