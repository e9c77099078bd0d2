/* SPDX-License-Identifier: MIT */
/*
 * The inspector: reads the records, finds out who waits for whom, and says so; and how it is switched on.
 *
 * State: none but on its stack. What it reads and why that may be believed: N1 to N4 of engine/record.c.
 * Progress: linear in what is listed, times its logarithm; waits for nobody.
 */
#include "vez/inspect.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../engine/records.h"
#include "../futex/sys.h"

#define TRIES 3
#define NS_PER_S INT64_C(1000000000)

static const char *const names[] = {
	[VEZ__MONITOR] = "monitor", [VEZ__CALL] = "call", [VEZ__SEM] = "sem", [VEZ__MUTEX] = "mutex",
	[VEZ__RWLOCK] = "rwlock", [VEZ__COND] = "cond", [VEZ__EVENT] = "event", [VEZ__LATCH] = "latch",
	[VEZ__BARRIER] = "barrier", [VEZ__GROUP] = "group", [VEZ__QUEUE] = "queue", [VEZ__SCHED] = "sched",
	[VEZ__ONCE] = "once", [VEZ__SELECT] = "select", [VEZ__COMPLETIONS] = "completions",
	[VEZ__REQUEST] = "request", [VEZ__CANCEL] = "cancel", [VEZ__CONSTRAINT] = "constraint",
	[VEZ__SLEEP] = "sleep",
};

/* What was read of a record. */
struct wait {
	struct vez__wait at;
	const struct vez__record *record;
	uint64_t turn;
	const void *place; /* at.object, or where the request was moved from there */
	const struct vez__record *owner;
	uint64_t owner_thread;
	struct wait *next; /* the wait of the owner */
	unsigned mark;
	bool begins; /* a circle */
};

/* ---- what is there ---- */

struct owned {
	uintptr_t object;
	const struct vez__record *owner;
};

/* All in one walk, but for printing. */
struct report {
	struct wait *waits;
	size_t count, room;
	struct owned *owned;
	size_t owned_count, owned_room;
	struct wait **by_record; /* the threads' waits */
	size_t by_record_count;
};

/* Room for one more; false: there is no memory. */
static bool grow(void *array, size_t size, size_t count, size_t *room)
{
	void **elements = array;
	if (count < *room)
		return true;
	size_t more = *room ? 2 * *room : 64;
	void *moved = realloc(*elements, more * size);
	if (!moved)
		return false;
	*elements = moved;
	*room = more;
	return true;
}

/* Where a request waits that is to be found here. */
static const void *waits_for(const struct vez__record *r, const struct wait *w)
{
	return vez__load(&r->moved, acquire) == w->at.request ? vez__load(&r->moved_to, relaxed) : w->at.object;
}

static bool read_wait(const struct vez__record *r, struct wait *w)
{
	for (unsigned n = 0; n < TRIES; n++) {
		*w = (struct wait){ .record = r, .turn = vez__load(&r->turn, acquire) };
		if (!vez__record_is_shown(w->turn))
			return false;
		vez__words_read(&w->at, r->wait);
		w->place = waits_for(r, w);
		if (vez__load(&r->turn, relaxed) == w->turn)
			return true;
	}
	return false;
}

static void add_wait(struct report *p, const struct vez__record *r)
{
	struct wait w;
	if (!read_wait(r, &w) || !grow(&p->waits, sizeof *p->waits, p->count, &p->room))
		return;
	if (w.place != w.at.object) {
		w.at.what = VEZ__MUTEX;
		w.at.sort_key = 0;
		w.at.deadline = VEZ_FOREVER;
		w.at.token = NULL;
	}
	p->waits[p->count++] = w;
}

static void add_owned(struct report *p, const struct vez__record *owner)
{
	for (const struct vez__record *r = owner; r; r = vez__record_more(r))
		for (unsigned i = 0; i < VEZ__WORDS; i++) {
			uintptr_t object = vez__load(&r->words[i], acquire);
			if (object && grow(&p->owned, sizeof *p->owned, p->owned_count, &p->owned_room))
				p->owned[p->owned_count++] = (struct owned){ object, owner };
		}
}

static int by_since(const void *a, const void *b)
{
	const struct wait *x = a, *y = b;
	return (x->at.since > y->at.since) - (x->at.since < y->at.since);
}

static int by_object(const void *a, const void *b)
{
	const struct owned *x = a, *y = b;
	return (x->object > y->object) - (x->object < y->object);
}

static int by_record(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t)(*(struct wait *const *)a)->record, y = (uintptr_t)(*(struct wait *const *)b)->record;
	return (x > y) - (x < y);
}

static void collect(struct report *p)
{
	for (const struct vez__record *r = vez__record_first(&vez__threads); r; r = vez__record_next(r)) {
		add_wait(p, r);
		add_owned(p, r);
	}
	for (unsigned i = 0; i < VEZ__SHARDS; i++)
		for (const struct vez__record *r = vez__record_first(&vez__shards[i]); r; r = vez__record_next(r))
			if (vez__load(&r->kind, relaxed) == VEZ__OF_REQUEST)
				add_wait(p, r);
	if (p->count > 0)
		qsort(p->waits, p->count, sizeof *p->waits, by_since);
	if (p->owned_count > 0)
		qsort(p->owned, p->owned_count, sizeof *p->owned, by_object);
}

/* ---- who waits for whom ---- */

static const struct vez__record *owner_of(const struct report *p, const void *object)
{
	struct owned key = { (uintptr_t)object, NULL };
	if (p->owned_count == 0)
		return NULL;
	const struct owned *found = bsearch(&key, p->owned, p->owned_count, sizeof key, by_object);
	return found ? found->owner : NULL;
}

static struct wait *wait_of(const struct report *p, const struct vez__record *record)
{
	struct wait key = { .record = record };
	struct wait *at = &key;
	if (!record || p->by_record_count == 0)
		return NULL;
	struct wait **found = bsearch(&at, p->by_record, p->by_record_count, sizeof at, by_record);
	return found ? *found : NULL;
}

static void link_waits(struct report *p)
{
	p->by_record = p->count > 0 ? malloc(p->count * sizeof(struct wait *)) : NULL;
	for (size_t i = 0; p->by_record && i < p->count; i++)
		if (p->waits[i].at.thread)
			p->by_record[p->by_record_count++] = &p->waits[i];
	if (p->by_record_count > 0)
		qsort(p->by_record, p->by_record_count, sizeof(struct wait *), by_record);
	for (size_t i = 0; i < p->count; i++) {
		struct wait *w = &p->waits[i];
		w->owner = owner_of(p, w->place);
		w->owner_thread = w->owner ? vez__load(&w->owner->thread, relaxed) : 0;
		if (w->at.thread)
			w->next = wait_of(p, w->owner);
	}
}

/* Whether the thread still waits, for what the same other one still owns, and will not end that by itself. */
static bool is_stuck(const struct wait *w)
{
	const struct vez__record *r = w->record;
	return w->at.deadline == VEZ_FOREVER && waits_for(r, w) == w->place &&
	       vez__record_word((struct vez__record *)w->owner, (uintptr_t)w->place) &&
	       vez__load(&r->turn, acquire) == w->turn;
}

/* Looks at each wait of a circle a second time: at what they wait for and own, then whether all have waited so long. */
static bool is_deadlock(const struct wait *first)
{
	const struct wait *w = first;
	do {
		if (!is_stuck(w))
			return false;
		w = w->next;
	} while (w != first);
	do {
		if (vez__load(&w->record->turn, acquire) != w->turn)
			return false;
		w = w->next;
	} while (w != first);
	return true;
}

/* Marks the first wait of each circle. How many there are. */
static unsigned find_deadlocks(struct report *p)
{
	unsigned found = 0;
	for (size_t i = 0; i < p->count; i++) {
		unsigned mark = (unsigned)i + 1;
		struct wait *w = &p->waits[i];
		for (; w && !w->mark; w = w->next)
			w->mark = mark;
		if (w && w->mark == mark && is_deadlock(w)) {
			w->begins = true;
			found++;
		}
	}
	return found;
}

/* ---- what it says ---- */

static void print_object(FILE *out, uint64_t what, const void *object)
{
	char name[VEZ__NAME_BYTES] = "";
	vez__records_enter();
	const struct vez__record *r = vez__record_find(vez__shard_of(object), VEZ__OF_NAME, object);
	if (r)
		vez__words_read(name, r->words);
	vez__records_exit();
	fprintf(out, "%s %p", names[what], object);
	if (*name)
		fprintf(out, " \"%s\"", name);
}

static void print_owner(FILE *out, const struct wait *w)
{
	if (w->owner)
		fprintf(out, ", owner %" PRIu64, w->owner_thread);
	fputc('\n', out);
}

static void print_seconds(FILE *out, const char *before, int64_t ns)
{
	fprintf(out, ", %s %" PRId64 ".%06" PRId64 " s", before, ns / NS_PER_S, ns % NS_PER_S / 1000);
}

static void print_wait(FILE *out, const struct wait *w, int64_t now)
{
	fputs("vez: ", out);
	print_object(out, w->at.what, w->place);
	if (w->at.thread)
		fprintf(out, ": thread %" PRIu64, w->at.thread);
	else
		fprintf(out, ": async %p", w->at.request);
	fprintf(out, ", key %" PRId64, w->at.sort_key);
	print_seconds(out, "for", now > w->at.since ? now - w->at.since : 0);
	if (w->at.deadline == VEZ_FOREVER)
		fputs(", no deadline", out);
	else
		print_seconds(out, "deadline in", w->at.deadline > now ? w->at.deadline - now : 0);
	if (w->at.token)
		fprintf(out, ", token %p", w->at.token);
	else
		fputs(", no token", out);
	print_owner(out, w);
}

static void print_deadlock(FILE *out, const struct wait *first)
{
	const struct wait *w = first;
	unsigned n = 0;
	do
		n++;
	while ((w = w->next) != first);
	fprintf(out, "vez: deadlock of %u thread%s\n", n, n == 1 ? "" : "s");
	do {
		fprintf(out, "vez:   thread %" PRIu64 " waits for ", w->at.thread);
		print_object(out, w->at.what, w->place);
		print_owner(out, w);
	} while ((w = w->next) != first);
}

static void print(FILE *out, const struct report *p)
{
	int64_t now = vez__sys_now();
	flockfile(out);
	fprintf(out, "vez: %zu request%s wait%s\n", p->count, p->count == 1 ? "" : "s", p->count == 1 ? "s" : "");
	for (size_t i = 0; i < p->count; i++)
		print_wait(out, &p->waits[i], now);
	for (size_t i = 0; i < p->count; i++)
		if (p->waits[i].begins)
			print_deadlock(out, &p->waits[i]);
	funlockfile(out);
}

int vez_inspect(FILE *out)
{
	struct report p = { .count = 0 };
	int saved = vez__sys_errno(0);
	vez__records_enter();
	collect(&p);
	link_waits(&p);
	int deadlocks = (int)find_deadlocks(&p);
	vez__records_exit();
	int listed = (int)p.count;
	if (out)
		print(out, &p);
	free(p.waits);
	free(p.owned);
	free(p.by_record);
	vez__sys_errno(saved);
	return deadlocks > 0 ? -deadlocks : listed;
}

/* ---- on and off ---- */

void vez_inspect_enable(bool on)
{
	if (on)
		vez__fetch_or(&vez__watch, VEZ__INSPECTED, relaxed);
	else
		vez__fetch_and(&vez__watch, ~VEZ__INSPECTED, relaxed);
}

__attribute__((constructor)) static void begin(void)
{
	const char *wish = secure_getenv("VEZ_INSPECT");
	if (wish && strcmp(wish, "1") == 0)
		vez_inspect_enable(true);
}
