/* SPDX-License-Identifier: MIT */
/*
 * Objects that are destroyed and taken away by the first thread that may, while the calls that let it go are still on
 * their way out.
 *
 * The object lies at the end of a page of its own. In every other round the page is made inaccessible as soon as
 * destroy has returned 0, so that a late read or write is a crash; in the others the bytes are overwritten at once,
 * which takes no system call and so meets the latest of touches, and looked at when everybody is out.
 */
#include "stress.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void page_make(struct page *p)
{
	p->size = (size_t)sysconf(_SC_PAGESIZE);
	p->base = mmap(NULL, p->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(p->base != MAP_FAILED, "no page");
}

void *page_object(struct page *p, size_t size)
{
	return p->base + p->size - (size + 63) / 64 * 64;
}

void page_take_away(struct page *p, void *obj, size_t size, bool fill)
{
	p->filled = fill;
	if (fill)
		memset(obj, FILL, size);
	else
		EXPECT(mprotect(p->base, p->size, PROT_NONE) == 0, "mprotect");
}

void page_check(struct page *p, const void *obj, size_t size)
{
	const unsigned char *bytes = obj;
	if (!p->filled)
		EXPECT(mprotect(p->base, p->size, PROT_READ | PROT_WRITE) == 0, "mprotect");
	for (size_t i = 0; p->filled && i < size; i++)
		EXPECT(bytes[i] == FILL, "byte %zu was written after the object had been destroyed", i);
}

/* ---- those who wait for one object ---- */

static struct {
	const struct test *t;
	const struct life *life;
	struct page page;
	void *obj;
	bool fill;
	atomic_bool late_comes, gone, let_go;
	atomic_uint back, out;
} one;

bool last_out(const struct test *t, bool was_let_go)
{
	if (was_let_go)
		atomic_store(&one.let_go, true);
	return atomic_fetch_add(&one.out, 1) + 1 == t->n && atomic_load(&one.let_go);
}

static void take_away(void)
{
	bool destroys = one.life->destroy && !(one.t->flags & LATE);
	int rc = destroys ? one.life->destroy(one.obj) : 0;
	EXPECT(rc == 0, "destroy: %d", rc);
	page_take_away(&one.page, one.obj, one.life->size, one.fill);
}

static void use(void *arg)
{
	(void)arg;
	if (one.life->wait(one.obj, one.t) && !(one.t->flags & LATE) && !atomic_exchange(&one.gone, true))
		take_away();
	atomic_fetch_add(&one.back, 1);
}

static void use_late(void *arg)
{
	(void)arg;
	WAIT_UNTIL(atomic_load(&one.late_comes));
	/* Without leaving the processor: the others are still being let go. */
	for (unsigned i = 0; i < 20000 && !one.life->is_open(one.obj); i++)
		;
	EXPECT(one.life->wait(one.obj, one.t), "not let go");
	atomic_store(&one.gone, true);
	take_away();
}

/* All who come early are queued, or have given up. Who is back is counted first: so nobody is counted twice. */
static bool all_are_there(void)
{
	unsigned back = atomic_load(&one.back);
	return back + one.life->waiters(one.obj) == one.t->n - !!(one.t->flags & LATE);
}

void life_late_comes(void)
{
	atomic_store(&one.late_comes, true);
}

static void all_come(void)
{
	WAIT_UNTIL(all_are_there());
	life_late_comes();
}

void life_run(const struct test *t, const struct life *l)
{
	struct crew crew = { 0 };
	unsigned long rounds = rounds_of(t), by_user = 0;
	one.t = t;
	one.life = l;
	page_make(&one.page);
	one.obj = page_object(&one.page, l->size);
	for (unsigned i = 0; i < t->n; i++)
		crew_add(&crew, "user", i == 0 && t->flags & LATE ? use_late : use, NULL);
	for (unsigned long i = 0; i < rounds; i++) {
		one.fill = i & 1;
		atomic_store(&one.late_comes, false);
		atomic_store(&one.gone, false);
		atomic_store(&one.back, 0);
		atomic_store(&one.let_go, false);
		atomic_store(&one.out, 0);
		l->make(one.obj, t);
		crew_begin(&crew);
		if (!(t->flags & RACES))
			all_come();
		dawdle();
		l->let_go(one.obj, t);
		crew_end(&crew);
		by_user += atomic_load(&one.gone);
		if (!atomic_load(&one.gone))
			take_away();
		page_check(&one.page, one.obj, l->size);
	}
	crew_dismiss(&crew);
	EXPECT(by_user > 0 || rounds < 100, "no user ever had the right to destroy it");
}
