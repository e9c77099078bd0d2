/* SPDX-License-Identifier: MIT */
/*
 * Inspection: what every blocked request waits for, and who owns it.
 *
 * State
 *  vez__inspect_on  whether what happens is to be written down
 *  vez__inspect_used  whether a record was ever needed; set once
 *  records, each for a thread, an asynchronous request, a name, or more of what a thread owns
 *   next, key  link in a list, and by what it is found there (a request, a named object). Written before it is pushed;
 *             next also by who takes others off that list, in its lock
 *   link      link in the pool, the limbo or a thread's spares; by whose that is
 *   turn      odd: a wait is shown. Raised by one whenever a wait is shown or hidden; never goes back, whatever the
 *             record is used for next. By the thread, or who files or completes the asynchronous request
 *   thread, request, object, what, sort_key, since, deadline, token  the wait. Written while turn is even
 *   moved, moved_to  the request that was moved, and to which object. By who moves it, inside that object; moved is
 *             cleared by the thread before the request is queued and when it has waited
 *   words     of a thread, and of those that follow it by more: the objects that it owns, or 0. Set by the thread,
 *             cleared by who gives the object up. Of a name: its text
 *  lists      threads: of each thread that has waited or owned something; shards: asynchronous requests and names,
 *             by their key. Pushed by anybody, without a lock; taken off in its lock
 *  pool       records that nobody uses, in its lock; chunks: where they all are
 *  limbo      records that are in no list any more, but may still be looked at: a stack, in_limbo about as many
 *  mine       of each thread: its record; spares, so that nothing is allocated inside a monitor; whether it is apart;
 *             whether urcu_bp's locks were taken for the fork that it makes
 * Invariants
 *  N1 a record's memory is never given back. It is used anew only when it has been in limbo for a whole grace period
 *     of liburcu: so an inspector, which walks the lists in a read-side critical section, is not led from one into
 *     another.
 *  N2 what an inspector reads of a wait belongs together if turn was odd before and is the same after (read_wait).
 *  N3 an inspector looks at nothing but records: objects, requests and tokens are addresses to it, and may be gone.
 *  N4 a thread whose wait is shown is inside sleep_until_called (monitor.c): it runs nothing of the program's, gives up
 *     nothing, and gets nothing but what it waits for. An object is in its owner's words only while that owns it (set
 *     after it was taken, cleared before it is given up).
 *     So if turns are the same at two moments, and between them each thread of a circle was seen to own what the one
 *     before it waits for, all of that held at once: none of them could have been granted what it waits for, as that
 *     was owned. It lasts, unless a deadline or a token ends it, or a thread gives up what another one owns.
 *  N5 nothing here takes a lock or allocates inside a monitor. Whoever is in a list's lock holds (completion.c), so
 *     that a handler which completes requests does not wait for it.
 * Ordering
 *  push (release) pairs with first_of and next_of (acquire): the record's fields.
 *  turn to odd (release) pairs with the first load in read_wait (acquire): the wait. Each field of a later wait is
 *  stored by release and loaded by acquire: who has read one of them also reads the turn that hid the wait before it.
 *  moved (release) pairs with its load in waits_for (acquire): moved_to.
 * Progress: showing and hiding a wait, filing, moving and owning are a constant number of steps of the thread's own;
 *  filing is lock-free. Completing takes a shard's lock. Now and then a thread that is about to file waits for a grace
 *  period. An inspector waits for nobody.
 * Lifetime: records stay. A thread's is taken off its list when the thread ends.
 * fork: urcu_bp's own locks are taken over a fork. The child keeps names and its only thread's record.
 * Sources: read-copy update: P. McKenney, J. Slingwine (1998), M. Desnoyers' liburcu; the sequence count of Linux's
 *  seqlock; wait-for graphs: R. C. Holt (1972).
 */
#include "inspect.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <urcu/urcu-bp.h>

#include "../futex/lock.h"
#include "../futex/sys.h"
#include "alarm.h"
#include "completion.h"

#define SHARD_BITS 12
#define WORDS 8
#define CHUNK 64
#define SPARES 4
#define LIMBO_MOST 256
#define TRIES 3
#define NS_PER_S INT64_C(1000000000)

enum kind { UNUSED, OF_THREAD, OF_REQUEST, OF_NAME, OF_MORE };

struct vez__record {
	struct vez__record *next;
	struct vez__record *link;
	struct vez__record *more;
	const void *key;
	uint32_t kind;
	uint32_t what;
	uint64_t turn;
	uint64_t thread;
	const void *request;
	const void *object;
	int64_t sort_key;
	int64_t since;
	int64_t deadline;
	const void *token;
	const void *moved;
	const void *moved_to;
	uintptr_t words[WORDS];
};

struct list {
	struct vez__record *first;
	uint64_t lock;
};

struct chunk {
	struct chunk *before;
	struct vez__record records[CHUNK];
};

uint32_t vez__inspect_on;
uint32_t vez__inspect_used;
static struct list threads;
static struct list shards[1 << SHARD_BITS];
static struct list pool;
static struct chunk *chunks;
static struct vez__record *limbo;
static uint32_t in_limbo;

static __thread struct {
	struct vez__record *record;
	struct vez__record *spare;
	unsigned spares;
	bool apart;
	bool forking;
} mine __attribute__((tls_model("initial-exec")));

static const char *const names[] = {
	[VEZ__MONITOR] = "monitor", [VEZ__CALL] = "call", [VEZ__SEM] = "sem", [VEZ__MUTEX] = "mutex",
	[VEZ__RWLOCK] = "rwlock", [VEZ__COND] = "cond", [VEZ__EVENT] = "event", [VEZ__LATCH] = "latch",
	[VEZ__BARRIER] = "barrier", [VEZ__GROUP] = "group", [VEZ__QUEUE] = "queue", [VEZ__SCHED] = "sched",
	[VEZ__ONCE] = "once", [VEZ__SELECT] = "select", [VEZ__COMPLETIONS] = "completions",
	[VEZ__REQUEST] = "request", [VEZ__CANCEL] = "cancel", [VEZ__CONSTRAINT] = "constraint",
};

/* ---- lists ---- */

static void lock(struct list *l)
{
	vez__hold();
	vez__lock_enter(&l->lock);
}

static void unlock(struct list *l)
{
	vez__lock_exit(&l->lock);
	vez__let_go();
}

static struct list *shard_of(const void *key)
{
	return &shards[((uint64_t)(uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - SHARD_BITS)];
}

static struct vez__record *first_of(const struct list *l)
{
	return vez__load(&l->first, acquire);
}

static struct vez__record *next_of(const struct vez__record *r)
{
	return vez__load(&r->next, acquire);
}

static struct vez__record *more_of(const struct vez__record *r)
{
	return vez__load(&r->more, acquire);
}

static void push(struct list *l, struct vez__record *r)
{
	struct vez__record *first = vez__load(&l->first, relaxed);
	do
		vez__store(&r->next, first, relaxed);
	while (!vez__cas(&l->first, &first, r, release));
}

static struct vez__record *find(const struct list *l, enum kind kind, const void *key)
{
	struct vez__record *r = first_of(l);
	while (r && (vez__load(&r->kind, relaxed) != kind || vez__load(&r->key, relaxed) != key))
		r = next_of(r);
	return r;
}

/* In the list's lock: r, which keeps its own link for who stands on it. Others may push. */
static void take_off(struct list *l, struct vez__record *r)
{
	struct vez__record *seen = r;
	struct vez__record *next = next_of(r);
	if (vez__cas(&l->first, &seen, next, acq_rel))
		return;
	struct vez__record *before = first_of(l);
	while (next_of(before) != r)
		before = next_of(before);
	vez__store(&before->next, next, release);
}

/* ---- memory ---- */

static void put_in_pool(struct vez__record *first)
{
	lock(&pool);
	while (first) {
		struct vez__record *following = first->link;
		first->link = pool.first;
		pool.first = first;
		first = following;
	}
	unlock(&pool);
}

static struct vez__record *take_from_pool(void)
{
	lock(&pool);
	struct vez__record *r = pool.first;
	if (r)
		pool.first = r->link;
	unlock(&pool);
	return r;
}

/* In no list any more: used anew in a while. Signal handlers, too. */
static void retire(struct vez__record *r)
{
	struct vez__record *top = vez__load(&limbo, relaxed);
	do
		vez__store(&r->link, top, relaxed);
	while (!vez__cas(&limbo, &top, r, acq_rel));
	vez__fetch_add(&in_limbo, 1, relaxed);
}

static void empty_limbo(void)
{
	struct vez__record *first = vez__exchange(&limbo, NULL, acq_rel);
	vez__store(&in_limbo, 0, relaxed);
	urcu_bp_synchronize_rcu();
	put_in_pool(first);
}

static void make_chunk(void)
{
	struct chunk *c = calloc(1, sizeof *c);
	if (!c)
		return;
	for (unsigned i = 0; i + 1 < CHUNK; i++)
		c->records[i].link = &c->records[i + 1];
	struct chunk *before = vez__load(&chunks, relaxed);
	do
		c->before = before;
	while (!vez__cas(&chunks, &before, c, acq_rel));
	put_in_pool(c->records);
}

/* Outside every monitor. NULL: there is no memory. Who is in a read-side critical section of its own does not wait for
 * a grace period. */
static struct vez__record *obtain(void)
{
	int saved = vez__sys_errno(0);
	vez__store(&vez__inspect_used, 1, relaxed);
	struct vez__record *r = take_from_pool();
	if (!r && vez__load(&in_limbo, relaxed) >= LIMBO_MOST && !urcu_bp_read_ongoing()) {
		empty_limbo();
		r = take_from_pool();
	}
	if (!r) {
		make_chunk();
		r = take_from_pool();
	}
	vez__sys_errno(saved);
	return r;
}

/* ---- threads ---- */

static pthread_key_t exits;

static void at_exit(void *arg)
{
	struct vez__record *r = mine.record;
	struct vez__record *spare = mine.spare;
	(void)arg;
	mine.record = NULL;
	mine.spare = NULL;
	mine.spares = 0;
	put_in_pool(spare);
	if (!r)
		return;
	lock(&threads);
	take_off(&threads, r);
	unlock(&threads);
	while (r) {
		struct vez__record *more = more_of(r);
		retire(r);
		r = more;
	}
}

static void make_key(void)
{
	pthread_key_create(&exits, at_exit);
}

/* What is in mine is given back when the thread ends. */
static void watch_exit(void)
{
	static pthread_once_t made = PTHREAD_ONCE_INIT;
	pthread_once(&made, make_key);
	pthread_setspecific(exits, &mine);
}

static void clear(struct vez__record *r, enum kind kind, const void *key)
{
	vez__store(&r->kind, kind, relaxed);
	vez__store(&r->key, key, relaxed);
	vez__store(&r->more, NULL, relaxed);
	vez__store(&r->moved, NULL, relaxed);
	for (unsigned i = 0; i < WORDS; i++)
		vez__store(&r->words[i], 0, relaxed);
}

/* The thread's record, made if need be and if that is allowed here; or NULL. */
static struct vez__record *own_record(void)
{
	if (mine.record || vez__holds())
		return mine.record;
	struct vez__record *r = obtain();
	if (!r || mine.record) { /* made by a function that was called meanwhile */
		put_in_pool(r);
		return mine.record;
	}
	clear(r, OF_THREAD, NULL);
	vez__store(&r->thread, vez__sys_thread_id(), relaxed);
	push(&threads, r);
	mine.record = r;
	watch_exit();
	return r;
}

void vez__inspect_apart(bool apart)
{
	mine.apart = apart;
}

/* ---- what waits ---- */

struct wait {
	const struct vez__record *record;
	uint64_t turn;
	uint64_t thread; /* 0: none */
	const void *request;
	const void *object;
	const void *place; /* object, or where the request was moved from there */
	int64_t sort_key;
	int64_t since;
	vez_deadline_t deadline;
	const void *token;
	enum vez__type what;
	const struct vez__record *owner;
	struct wait *next; /* the wait of the owner */
	unsigned mark;
	bool begins; /* a circle */
};

static void show(struct vez__record *r, const struct wait *w)
{
	vez__store(&r->thread, w->thread, release);
	vez__store(&r->request, w->request, release);
	vez__store(&r->object, w->object, release);
	vez__store(&r->what, (uint32_t)w->what, release);
	vez__store(&r->sort_key, w->sort_key, release);
	vez__store(&r->since, w->since, release);
	vez__store(&r->deadline, w->deadline, release);
	vez__store(&r->token, w->token, release);
	vez__store(&r->turn, vez__load(&r->turn, relaxed) + 1, release);
}

static void hide(struct vez__record *r)
{
	vez__store(&r->turn, vez__load(&r->turn, relaxed) + 1, release);
}

static bool is_shown(uint64_t turn)
{
	return turn & 1;
}

/* Calls keep something else there: a guard, a ticket. */
static bool has_key(enum vez__type what)
{
	return what != VEZ__CALL && what != VEZ__CONSTRAINT;
}

/* ---- a thread's request ---- */

void vez__inspect_begin_wait(struct vez__shown *shown, const vez_request_t *r, vez_deadline_t deadline)
{
	if (mine.apart)
		return;
	shown->record = own_record();
	shown->request = r;
	shown->since = vez__sys_now();
	shown->deadline = deadline;
}

static uintptr_t low_bits(const void *link)
{
	return (uintptr_t)link & 7;
}

void vez__inspect_show_wait(const struct vez__shown *shown)
{
	const vez_request_t *r = shown->request;
	const char *object = r->timer_.link_[0];
	const char *token = r->timer_.link_[1];
	struct wait w = {
		.thread = vez__load(&shown->record->thread, relaxed), .request = r, .object = object - low_bits(object),
		.token = token - low_bits(token), .since = shown->since, .deadline = shown->deadline,
		.what = (enum vez__type)(low_bits(object) | low_bits(token) << 3),
	};
	/* A condition's key may be changed meanwhile by who moves the request. */
	if (w.what == VEZ__COND)
		w.sort_key = (intptr_t)r->arg_;
	else if (has_key(w.what))
		w.sort_key = r->key_;
	show(shown->record, &w);
}

void vez__inspect_hide_wait(const struct vez__shown *shown)
{
	hide(shown->record);
}

struct vez__record *vez__inspect_follower(void)
{
	struct vez__record *r = own_record();
	if (r)
		vez__store(&r->moved, NULL, relaxed);
	return r;
}

void vez__inspect_move(const vez_request_t *r, const void *object)
{
	vez__store(&r->then_.follower_->moved_to, object, relaxed);
	vez__store(&r->then_.follower_->moved, r, release);
}

void vez__inspect_unfollow(struct vez__record *follower)
{
	vez__store(&follower->moved, NULL, relaxed);
}

/* ---- asynchronous requests ---- */

void vez__inspect_prepare(void)
{
	struct vez__record *r;
	if (mine.spares > SPARES / 2 || vez__holds())
		return;
	while (mine.spares < SPARES && (r = obtain())) {
		r->link = mine.spare;
		mine.spare = r;
		mine.spares++;
	}
	watch_exit();
}

void vez__inspect_file(const vez_request_t *r, const void *object, enum vez__type type, const void *token)
{
	struct vez__record *record = mine.spare;
	if (!record)
		return;
	mine.spare = record->link;
	mine.spares--;
	clear(record, OF_REQUEST, r);
	show(record, &(struct wait){ .request = r, .object = object, .what = type, .token = token,
				     .sort_key = has_key(type) ? r->key_ : 0, .since = vez__sys_now(),
				     .deadline = vez__timer_at(&r->timer_) });
	push(shard_of(r), record);
}

void vez__inspect_decided(const vez_request_t *r)
{
	struct list *shard = shard_of(r);
	if (VEZ__LIKELY(!vez__load(&vez__inspect_used, relaxed)) || !first_of(shard))
		return;
	lock(shard);
	struct vez__record *record = find(shard, OF_REQUEST, r);
	if (record) {
		hide(record);
		take_off(shard, record);
	}
	unlock(shard);
	if (record)
		retire(record);
}

/* ---- owners ---- */

static uintptr_t *word_of(struct vez__record *r, uintptr_t value)
{
	for (; r; r = more_of(r))
		for (unsigned i = 0; i < WORDS; i++)
			if (vez__load(&r->words[i], acquire) == value)
				return &r->words[i];
	return NULL;
}

/* A free word of the thread's record, or one of a record more. */
static uintptr_t *free_word(struct vez__record *r)
{
	uintptr_t *word = word_of(r, 0);
	struct vez__record *more = word || vez__holds() ? NULL : obtain();
	if (!more)
		return word;
	clear(more, OF_MORE, NULL);
	while (more_of(r))
		r = more_of(r);
	vez__store(&r->more, more, release);
	return &more->words[0];
}

bool vez__inspect_owns(const void *object)
{
	struct vez__record *r = own_record();
	if (!r)
		return false;
	uintptr_t *word = word_of(r, (uintptr_t)object);
	if (!word)
		word = free_word(r);
	if (!word)
		return false;
	vez__store(word, (uintptr_t)object, release);
	return true;
}

/* Not its owner gives it up. */
static VEZ__COLD void clear_others(const void *object)
{
	uintptr_t *word;
	urcu_bp_read_lock();
	for (struct vez__record *r = first_of(&threads); r; r = next_of(r))
		while ((word = word_of(r, (uintptr_t)object)))
			vez__store(word, 0, release);
	urcu_bp_read_unlock();
}

void vez__inspect_disowns(const void *object)
{
	uintptr_t *word = word_of(mine.record, (uintptr_t)object);
	if (word)
		vez__store(word, 0, release);
	else
		clear_others(object);
}

void vez__inspect_leaves(const void *object)
{
	uintptr_t *word = word_of(mine.record, (uintptr_t)object);
	if (word)
		vez__store(word, 0, release);
}

/* ---- names ---- */

#define NAME_BYTES (WORDS * sizeof(uintptr_t))

static void set_text(struct vez__record *r, const char *text)
{
	uintptr_t words[WORDS] = { 0 };
	memcpy(words, text, strnlen(text, NAME_BYTES - 1));
	for (unsigned i = 0; i < WORDS; i++)
		vez__store(&r->words[i], words[i], relaxed);
}

static void get_name(const void *object, char text[NAME_BYTES])
{
	uintptr_t words[WORDS] = { 0 };
	urcu_bp_read_lock();
	const struct vez__record *r = find(shard_of(object), OF_NAME, object);
	for (unsigned i = 0; r && i < WORDS; i++)
		words[i] = vez__load(&r->words[i], relaxed);
	urcu_bp_read_unlock();
	memcpy(text, words, NAME_BYTES);
}

int vez_inspect_name(const void *object, const char *name)
{
	struct list *shard = shard_of(object);
	struct vez__record *r = name ? obtain() : NULL;
	if (name && !r)
		return ENOMEM;
	if (r) {
		clear(r, OF_NAME, object);
		set_text(r, name);
	}
	lock(shard);
	struct vez__record *before = find(shard, OF_NAME, object);
	if (r)
		push(shard, r);
	if (before)
		take_off(shard, before);
	unlock(shard);
	if (before)
		retire(before);
	return 0;
}

/* ---- the inspector: what is there ---- */

struct owned {
	uintptr_t object;
	const struct vez__record *owner;
};

/* All in one read-side critical section, but for printing. */
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
	return vez__load(&r->moved, acquire) == w->request ? vez__load(&r->moved_to, relaxed) : w->object;
}

static bool read_wait(const struct vez__record *r, struct wait *w)
{
	for (unsigned n = 0; n < TRIES; n++) {
		*w = (struct wait){ .record = r, .turn = vez__load(&r->turn, acquire) };
		if (!is_shown(w->turn))
			return false;
		w->thread = vez__load(&r->thread, acquire);
		w->request = vez__load(&r->request, acquire);
		w->object = vez__load(&r->object, acquire);
		w->what = (enum vez__type)vez__load(&r->what, acquire);
		w->sort_key = vez__load(&r->sort_key, acquire);
		w->since = vez__load(&r->since, acquire);
		w->deadline = vez__load(&r->deadline, acquire);
		w->token = vez__load(&r->token, acquire);
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
	if (w.place != w.object) {
		w.what = VEZ__MUTEX;
		w.sort_key = 0;
		w.deadline = VEZ_FOREVER;
		w.token = NULL;
	}
	p->waits[p->count++] = w;
}

static void add_owned(struct report *p, const struct vez__record *owner)
{
	for (const struct vez__record *r = owner; r; r = more_of(r))
		for (unsigned i = 0; i < WORDS; i++) {
			uintptr_t object = vez__load(&r->words[i], acquire);
			if (object && grow(&p->owned, sizeof *p->owned, p->owned_count, &p->owned_room))
				p->owned[p->owned_count++] = (struct owned){ object, owner };
		}
}

static int by_since(const void *a, const void *b)
{
	const struct wait *x = a, *y = b;
	return (x->since > y->since) - (x->since < y->since);
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
	for (const struct vez__record *r = first_of(&threads); r; r = next_of(r)) {
		add_wait(p, r);
		add_owned(p, r);
	}
	for (unsigned i = 0; i < sizeof shards / sizeof *shards; i++)
		for (const struct vez__record *r = first_of(&shards[i]); r; r = next_of(r))
			if (vez__load(&r->kind, relaxed) == OF_REQUEST)
				add_wait(p, r);
	if (p->count > 0)
		qsort(p->waits, p->count, sizeof *p->waits, by_since);
	if (p->owned_count > 0)
		qsort(p->owned, p->owned_count, sizeof *p->owned, by_object);
}

/* ---- the inspector: who waits for whom ---- */

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
		if (p->waits[i].thread)
			p->by_record[p->by_record_count++] = &p->waits[i];
	if (p->by_record_count > 0)
		qsort(p->by_record, p->by_record_count, sizeof(struct wait *), by_record);
	for (size_t i = 0; i < p->count; i++) {
		struct wait *w = &p->waits[i];
		w->owner = owner_of(p, w->place);
		if (w->thread)
			w->next = wait_of(p, w->owner);
	}
}

/* Whether the thread still waits, for what the same other one still owns, and will not end that by itself. */
static bool is_stuck(const struct wait *w)
{
	const struct vez__record *r = w->record;
	return w->deadline == VEZ_FOREVER && waits_for(r, w) == w->place &&
	       word_of((struct vez__record *)w->owner, (uintptr_t)w->place) &&
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

/* ---- the inspector: what it says ---- */

static void print_object(FILE *out, enum vez__type what, const void *object)
{
	char name[NAME_BYTES];
	get_name(object, name);
	fprintf(out, "%s %p", names[what], object);
	if (*name)
		fprintf(out, " \"%s\"", name);
}

static void print_owner(FILE *out, const struct wait *w)
{
	if (w->owner)
		fprintf(out, ", owner %" PRIu64, vez__load(&w->owner->thread, relaxed));
	fputc('\n', out);
}

static void print_seconds(FILE *out, const char *before, int64_t ns)
{
	fprintf(out, ", %s %" PRId64 ".%06" PRId64 " s", before, ns / NS_PER_S, ns % NS_PER_S / 1000);
}

static void print_wait(FILE *out, const struct wait *w, int64_t now)
{
	fputs("vez: ", out);
	print_object(out, w->what, w->place);
	if (w->thread)
		fprintf(out, ": thread %" PRIu64, w->thread);
	else
		fprintf(out, ": async %p", w->request);
	fprintf(out, ", key %" PRId64, w->sort_key);
	print_seconds(out, "for", now > w->since ? now - w->since : 0);
	if (w->deadline == VEZ_FOREVER)
		fputs(", no deadline", out);
	else
		print_seconds(out, "deadline in", w->deadline > now ? w->deadline - now : 0);
	if (w->token)
		fprintf(out, ", token %p", w->token);
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
		fprintf(out, "vez:   thread %" PRIu64 " waits for ", w->thread);
		print_object(out, w->what, w->place);
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
	urcu_bp_read_lock();
	collect(&p);
	link_waits(&p);
	int deadlocks = (int)find_deadlocks(&p);
	urcu_bp_read_unlock();
	int listed = (int)p.count;
	if (out)
		print(out, &p);
	free(p.waits);
	free(p.owned);
	free(p.by_record);
	vez__sys_errno(saved);
	return deadlocks > 0 ? -deadlocks : listed;
}

void vez_inspect_enable(bool on)
{
	vez__store(&vez__inspect_on, on, relaxed);
}

__attribute__((constructor)) static void begin(void)
{
	const char *wish = secure_getenv("VEZ_INSPECT");
	if (wish && strcmp(wish, "1") == 0)
		vez_inspect_enable(true);
}

/* ---- fork ---- */

void vez__inspect_before_fork(void)
{
	mine.forking = vez__load(&vez__inspect_used, relaxed);
	if (mine.forking)
		urcu_bp_before_fork();
}

void vez__inspect_in_parent(void)
{
	if (mine.forking)
		urcu_bp_after_fork_parent();
}

/* The shard with its names alone. */
static void keep_names(struct list *shard)
{
	struct vez__record *r = shard->first;
	*shard = (struct list){ NULL, 0 };
	while (r) {
		struct vez__record *next = r->next;
		if (r->kind == OF_NAME)
			push(shard, r);
		r = next;
	}
}

static bool is_named(const struct vez__record *named)
{
	const struct vez__record *r = shard_of(named->key)->first;
	while (r && r != named)
		r = r->next;
	return r;
}

/* What is neither a name nor the only thread's is in the pool. */
static void fill_pool(void)
{
	pool = (struct list){ NULL, 0 };
	for (struct chunk *c = chunks; c; c = c->before)
		for (unsigned i = 0; i < CHUNK; i++) {
			struct vez__record *r = &c->records[i];
			if (r->kind == OF_NAME ? is_named(r) : r->key == &mine)
				continue;
			r->turn += is_shown(r->turn);
			r->kind = UNUSED;
			r->link = pool.first;
			pool.first = r;
		}
}

static void begin_anew(void)
{
	threads = (struct list){ NULL, 0 };
	limbo = NULL;
	in_limbo = 0;
	mine.spare = NULL;
	mine.spares = 0;
	for (unsigned i = 0; i < sizeof shards / sizeof *shards; i++)
		keep_names(&shards[i]);
	for (struct vez__record *r = mine.record; r; r = r->more)
		r->key = &mine;
	fill_pool();
	for (struct vez__record *r = mine.record; r; r = r->more)
		r->key = NULL;
	if (mine.record) {
		mine.record->thread = vez__sys_thread_id();
		push(&threads, mine.record);
	}
}

void vez__inspect_in_child(void)
{
	if (!vez__load(&vez__inspect_used, relaxed))
		return;
	if (mine.forking)
		urcu_bp_after_fork_child();
	begin_anew();
}
