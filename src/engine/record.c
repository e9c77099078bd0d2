/* SPDX-License-Identifier: MIT */
/*
 * What is written down for inspection: what every blocked request waits for, and who owns it.
 *
 * State
 *  vez__watch (futex/checker.h)  INSPECTED: what happens is to be written down; RECORDED: a record was ever needed
 *  records, each for a thread, an asynchronous request, a name, or more of what a thread owns
 *   next, key  link in a list, and by what it is found there (a request, a named object). Written before it is pushed;
 *             next also by a thread that takes others off that list, in its lock
 *   link      link in the pool, the limbo or a thread's spares; by whose that is
 *   turn      odd: a wait is shown. Raised by one whenever a wait is shown or hidden; never goes back, whatever the
 *             record is used for next. By the thread, or by those that file and complete the asynchronous request
 *   thread    of a thread: its number, as the kernel has it
 *   wait      a struct vez__wait, word by word. Written while turn is even
 *   moved, moved_to  the request that was moved, and to which object. By its mover, inside that object; moved is
 *             cleared by the thread before the request is queued and when it has waited
 *   words     of a thread, and of those that follow it by more: the objects that it owns, or 0. Set by the thread,
 *             cleared by the thread that gives the object up. Of a name: its text
 *  lists      vez__threads: of each thread that has waited or owned something; vez__shards: asynchronous requests
 *             and names, by their key. Pushed by anybody, without a lock; taken off in its lock
 *  pool       records that nobody uses, in its lock; chunks: where they all are
 *  limbo      records that are in no list any more, but may still be looked at: a stack, in_limbo about as many
 *  readers    how many walk the lists. By them
 *  mine       of each thread: its record; spares, so that nothing is allocated inside a monitor
 * Invariants
 *  N1 a record's memory is never given back. It is used anew only when it was in limbo at a moment when nobody walked
 *     the lists: so an inspector is not led from one into another. Nobody waits for that moment: where somebody walks,
 *     others are allocated.
 *  N2 what is read of a wait belongs together if turn was odd before and is the same after (read_wait, inspect.c).
 *  N3 an inspector (inspect/inspect.c) looks at nothing but records: objects, requests and tokens are addresses to it,
 *     and may be gone.
 *  N4 a thread whose wait is shown is inside sleep_until_called (await.c): it runs nothing of the program's, gives up
 *     nothing, and gets nothing but what it waits for. An object is in its owner's words only while that owns it (set
 *     after it was taken, cleared before it is given up).
 *     So if turns are the same at two moments, and between them each thread of a circle was seen to own what the one
 *     before it waits for, all of that held at once: none of them could have been granted what it waits for, as that
 *     was owned. It lasts, unless a deadline or a token ends it, or a thread gives up what another one owns.
 *  N5 nothing here allocates inside a monitor, nor takes a lock, but where a request that is filed inside a user's
 *     monitor ends at once. Whoever is in a list's lock holds (hold.h), so that a handler which completes requests does
 *     not wait for it.
 * Ordering
 *  push (release) pairs with vez__record_first and vez__record_next (acquire): the record's fields.
 *  turn to odd (release) pairs with the first load in read_wait (acquire): the wait. Each word of a later wait is
 *  stored by release and loaded by acquire: a reader of one of them also reads the turn that hid the wait before it.
 *  moved (release) pairs with its load in waits_for (acquire): moved_to.
 *  readers: all are exchanges (acq_rel), so empty_limbo's comes after the last of a reader that it does not count,
 *  which looks no more, or before the first of one that will not find these records in a list any more.
 * Progress: showing and hiding a wait, filing, moving and owning are a constant number of steps of the thread's own;
 *  filing is lock-free. Completing takes a shard's lock. An inspector waits for nobody, and nobody for it.
 * Lifetime: records stay. A thread's is taken off its list when the thread ends.
 * fork: the child keeps names and its only thread's record.
 * Sources: the quiescent state of read-copy update: P. McKenney, J. Slingwine (1998). Its grace periods, which wait for
 *  readers, are not used: a thread that waits for one inside a lock would wait for whoever reads something of the
 *  program's and wants that lock. The sequence count of Linux's seqlock; wait-for graphs: R. C. Holt (1972).
 */
#include "record.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../futex/fork.h"
#include "../futex/lock.h"
#include "../futex/sys.h"
#include "agenda.h"
#include "hold.h"
#include "records.h"
#include "vez/inspect.h"

#define CHUNK 64
#define SPARES 4
#define LIMBO_MOST 256

struct chunk {
	struct chunk *before;
	struct vez__record records[CHUNK];
};

_Alignas(64) struct vez__list vez__threads;
struct vez__list vez__shards[VEZ__SHARDS];
static struct vez__list pool;
static struct chunk *chunks;
static struct vez__record *limbo;
static uint32_t in_limbo;
static uint32_t readers;

static __thread struct {
	struct vez__record *record;
	struct vez__record *spare;
	unsigned spares;
} mine __attribute__((tls_model("initial-exec")));

/* ---- lists ---- */

static void push(struct vez__list *l, struct vez__record *r)
{
	struct vez__record *first = vez__load(&l->first, relaxed);
	do
		vez__store(&r->next, first, relaxed);
	while (!vez__cas(&l->first, &first, r, release));
}

/* In the list's lock: r, which keeps its own link for who stands on it. Others may push. */
static void take_off(struct vez__list *l, struct vez__record *r)
{
	struct vez__record *seen = r;
	struct vez__record *next = vez__record_next(r);
	if (vez__cas(&l->first, &seen, next, acq_rel))
		return;
	struct vez__record *before = vez__record_first(l);
	while (vez__record_next(before) != r)
		before = vez__record_next(before);
	vez__store(&before->next, next, release);
}

/* ---- memory ---- */

static void put_in_pool(struct vez__record *first)
{
	vez__lock_holding(&pool.lock);
	while (first) {
		struct vez__record *following = first->link;
		first->link = pool.first;
		pool.first = first;
		first = following;
	}
	vez__unlock_holding(&pool.lock);
}

static struct vez__record *take_from_pool(void)
{
	vez__lock_holding(&pool.lock);
	struct vez__record *r = pool.first;
	if (r)
		pool.first = r->link;
	vez__unlock_holding(&pool.lock);
	return r;
}

void vez__records_enter(void)
{
	vez__fetch_add(&readers, 1, acq_rel);
}

void vez__records_exit(void)
{
	vez__fetch_add(&readers, UINT32_MAX, acq_rel);
}

/* In no list any more: used anew in a while. Signal handlers, too. */
static void retire(struct vez__record *r)
{
	vez__stack_push(&limbo, r, &r->link);
	vez__fetch_add(&in_limbo, 1, relaxed);
}

/* Unless somebody walks the lists, who may stand on one of them. */
static void empty_limbo(void)
{
	struct vez__record *r = vez__stack_take(&limbo);
	vez__store(&in_limbo, 0, relaxed);
	if (vez__fetch_add(&readers, 0, acq_rel) == 0) {
		put_in_pool(r);
		return;
	}
	while (r) {
		struct vez__record *next = r->link;
		retire(r);
		r = next;
	}
}

static void make_chunk(void)
{
	struct chunk *c = calloc(1, sizeof *c);
	if (!c)
		return;
	for (unsigned i = 0; i + 1 < CHUNK; i++)
		c->records[i].link = &c->records[i + 1];
	vez__stack_push(&chunks, c, &c->before);
	put_in_pool(c->records);
}

/* Outside every monitor. NULL: there is no memory. */
static struct vez__record *obtain(void)
{
	int saved = vez__sys_errno(0);
	if (!vez__watches(VEZ__RECORDED))
		vez__fetch_or(&vez__watch, VEZ__RECORDED, relaxed);
	struct vez__record *r = take_from_pool();
	if (!r && vez__load(&in_limbo, relaxed) >= LIMBO_MOST) {
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
static bool can_watch;

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
	vez__lock_holding(&vez__threads.lock);
	take_off(&vez__threads, r);
	vez__unlock_holding(&vez__threads.lock);
	while (r) {
		struct vez__record *more = vez__record_more(r);
		retire(r);
		r = more;
	}
}

static void make_key(void)
{
	can_watch = pthread_key_create(&exits, at_exit) == 0;
}

/* What is in mine is given back when the thread ends; if there is no key left, it is not. */
static void watch_exit(void)
{
	static pthread_once_t made = PTHREAD_ONCE_INIT;
	pthread_once(&made, make_key);
	if (can_watch)
		pthread_setspecific(exits, &mine);
}

static void clear(struct vez__record *r, enum vez__kind kind, const void *key)
{
	vez__store(&r->kind, kind, relaxed);
	vez__store(&r->key, key, relaxed);
	vez__store(&r->more, NULL, relaxed);
	vez__store(&r->moved, NULL, relaxed);
	for (unsigned i = 0; i < VEZ__WORDS; i++)
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
	clear(r, VEZ__OF_THREAD, NULL);
	vez__store(&r->thread, vez__sys_thread_id(), relaxed);
	push(&vez__threads, r);
	mine.record = r;
	watch_exit();
	return r;
}

/* ---- what waits ---- */

static void show(struct vez__record *r, const struct vez__wait *w)
{
	vez__words_write(r->wait, w);
	vez__store(&r->turn, vez__load(&r->turn, relaxed) + 1, release);
}

static void hide(struct vez__record *r)
{
	vez__store(&r->turn, vez__load(&r->turn, relaxed) + 1, release);
}

/* Calls keep something else there: a guard, a ticket. */
static bool has_key(enum vez__type what)
{
	return what != VEZ__CALL && what != VEZ__CONSTRAINT;
}

/* ---- a thread's request ---- */

void vez__inspect_begin_wait(struct vez__shown *shown, const vez_request_t *r, vez_deadline_t deadline)
{
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
	struct vez__wait w = {
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

struct vez__record *vez__inspect_own_record(void)
{
	struct vez__record *r = own_record();
	if (r)
		vez__store(&r->moved, NULL, relaxed);
	return r;
}

void vez__inspect_move(const vez_request_t *r, const void *object)
{
	vez__store(&r->then_.record_->moved_to, object, relaxed);
	vez__store(&r->then_.record_->moved, r, release);
}

void vez__inspect_forget_move(struct vez__record *record)
{
	vez__store(&record->moved, NULL, relaxed);
}

/* ---- asynchronous requests ---- */

/* A handler of the same thread may come between any two steps here: it finds less, or leaves more. */
static void keep_spare(struct vez__record *r)
{
	struct vez__record *top = vez__load(&mine.spare, relaxed);
	do
		r->link = top;
	while (!vez__cas(&mine.spare, &top, r, relaxed));
	vez__fetch_add(&mine.spares, 1, relaxed);
}

static struct vez__record *take_spare(void)
{
	struct vez__record *all = vez__exchange(&mine.spare, NULL, relaxed);
	struct vez__record *r = all ? all->link : NULL;
	vez__store(&mine.spares, 0, relaxed);
	while (r) {
		struct vez__record *next = r->link;
		keep_spare(r);
		r = next;
	}
	return all;
}

void vez__inspect_prepare(void)
{
	struct vez__record *r;
	if (vez__load(&mine.spares, relaxed) > SPARES / 2 || vez__holds())
		return;
	while (vez__load(&mine.spares, relaxed) < SPARES && (r = obtain()))
		keep_spare(r);
	watch_exit();
}

void vez__inspect_file(const vez_request_t *r, const void *object, enum vez__type type, const void *token)
{
	struct vez__record *record = take_spare();
	if (!record)
		return;
	clear(record, VEZ__OF_REQUEST, r);
	show(record, &(struct vez__wait){ .request = r, .object = object, .what = type, .token = token,
				     .sort_key = has_key(type) ? r->key_ : 0, .since = vez__sys_now(),
				     .deadline = vez__timer_at(&r->timer_) });
	push(vez__shard_of(r), record);
}

void vez__inspect_decided(const vez_request_t *r)
{
	struct vez__list *shard = vez__shard_of(r);
	if (!vez__watches(VEZ__RECORDED) || !vez__record_first(shard))
		return;
	vez__lock_holding(&shard->lock);
	struct vez__record *record = vez__record_find(shard, VEZ__OF_REQUEST, r);
	if (record) {
		hide(record);
		take_off(shard, record);
	}
	vez__unlock_holding(&shard->lock);
	if (record)
		retire(record);
}

/* ---- owners ---- */

/* A free word of the thread's record, or one of a record more. */
static uintptr_t *free_word(struct vez__record *r)
{
	uintptr_t *word = vez__record_word(r, 0);
	struct vez__record *more = word || vez__holds() ? NULL : obtain();
	if (!more)
		return word;
	clear(more, VEZ__OF_MORE, NULL);
	while (vez__record_more(r))
		r = vez__record_more(r);
	vez__store(&r->more, more, release);
	return &more->words[0];
}

bool vez__inspect_owns(const void *object)
{
	struct vez__record *r = own_record();
	if (!r)
		return false;
	uintptr_t *word = vez__record_word(r, (uintptr_t)object);
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
	vez__records_enter();
	for (struct vez__record *r = vez__record_first(&vez__threads); r; r = vez__record_next(r))
		while ((word = vez__record_word(r, (uintptr_t)object)))
			vez__store(word, 0, release);
	vez__records_exit();
}

bool vez__inspect_leaves(const void *object)
{
	uintptr_t *word = vez__record_word(mine.record, (uintptr_t)object);
	if (word)
		vez__store(word, 0, release);
	return word;
}

void vez__inspect_disowns(const void *object)
{
	if (!vez__inspect_leaves(object))
		clear_others(object);
}

/* ---- names ---- */

int vez_inspect_name(const void *object, const char *name)
{
	struct vez__list *shard = vez__shard_of(object);
	struct vez__record *r = name ? obtain() : NULL;
	if (name && !r)
		return ENOMEM;
	if (r) {
		char text[VEZ__NAME_BYTES] = "";
		memcpy(text, name, strnlen(name, VEZ__NAME_BYTES - 1));
		clear(r, VEZ__OF_NAME, object);
		vez__words_write(r->words, text);
	}
	vez__lock_holding(&shard->lock);
	struct vez__record *before = vez__record_find(shard, VEZ__OF_NAME, object);
	if (r)
		push(shard, r);
	if (before)
		take_off(shard, before);
	vez__unlock_holding(&shard->lock);
	if (before)
		retire(before);
	return 0;
}

/* ---- fork ---- */

/* The shard with its names alone. */
static void keep_names(struct vez__list *shard)
{
	struct vez__record *r = shard->first;
	*shard = (struct vez__list){ NULL, 0 };
	while (r) {
		struct vez__record *next = r->next;
		if (r->kind == VEZ__OF_NAME)
			push(shard, r);
		r = next;
	}
}

static bool is_named(const struct vez__record *named)
{
	const struct vez__record *r = vez__shard_of(named->key)->first;
	while (r && r != named)
		r = r->next;
	return r;
}

/* What is neither a name nor the only thread's is in the pool. */
static void fill_pool(void)
{
	pool = (struct vez__list){ NULL, 0 };
	for (struct chunk *c = chunks; c; c = c->before)
		for (unsigned i = 0; i < CHUNK; i++) {
			struct vez__record *r = &c->records[i];
			if (r->kind == VEZ__OF_NAME ? is_named(r) : r->key == &mine)
				continue;
			r->turn += vez__record_is_shown(r->turn);
			r->kind = VEZ__UNUSED;
			r->link = pool.first;
			pool.first = r;
		}
}

static void begin_anew(void)
{
	vez__threads = (struct vez__list){ NULL, 0 };
	limbo = NULL;
	in_limbo = 0;
	mine.spare = NULL;
	mine.spares = 0;
	for (unsigned i = 0; i < VEZ__SHARDS; i++)
		keep_names(&vez__shards[i]);
	for (struct vez__record *r = mine.record; r; r = r->more)
		r->key = &mine;
	fill_pool();
	for (struct vez__record *r = mine.record; r; r = r->more)
		r->key = NULL;
	if (mine.record) {
		mine.record->thread = vez__sys_thread_id();
		push(&vez__threads, mine.record);
	}
}

static void in_child(void)
{
	readers = 0;
	if (vez__watches(VEZ__RECORDED))
		begin_anew();
}

VEZ__AT_FORK(NULL, NULL, in_child)
