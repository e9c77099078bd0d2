/* SPDX-License-Identifier: MIT */
/*
 * What every access means.
 *
 * State: memory is seen in cells of eight bytes. For each cell and thread, the last access of each kind with the
 * thread's clock; and what an acquire learns there. The cells of a schedule carry its generation, so starting the next
 * one is free. Happens-before is that of C11: vector clocks; a release sequence goes on through
 * read-modify-writes and ends with a plain atomic store. Futex calls order nothing.
 * Oracles: a race is two conflicting accesses, one of them not atomic, that are not ordered. Memory that is dead
 * (x_dead) is written at that moment, as it were: so an access before it that is not ordered is found in every schedule
 * in which it happens, and one after it at once. A thread's stack below its deepest frame is dead to others, and what
 * others did there must be ordered before the frame is left.
 * Plain accesses are known because the library is compiled as for ThreadSanitizer, but linked with the functions here.
 */
#include "engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CELLS 8192
#define DEAD_MOST 16
#define WRITTEN_MOST CELLS

static struct cell cells[CELLS];
static unsigned generation;
uint64_t memory_key;
static struct range {
	uintptr_t from, to;
	struct place at;
	unsigned by;
} dead[DEAD_MOST];
static unsigned dead_count;

/* Static memory that this schedule has written, with its values before: every schedule starts from the same. */
static struct written {
	uint64_t *at;
	uint64_t before;
} written[WRITTEN_MOST];
static unsigned written_count;

extern uintptr_t tls_from, tls_to;

static const char *const kind_names[] = { "plain read", "plain write", "atomic read", "atomic write" };

void memory_reset(void)
{
	generation++;
	memory_key = 0;
	dead_count = 0;
	while (written_count > 0) {
		written_count--;
		*written[written_count].at = written[written_count].before;
	}
}

static void save_before(struct cell *c, uintptr_t address)
{
	uint64_t *at = (uint64_t *)(address & ~(uintptr_t)7);
	c->saved = true;
	if (address - (uintptr_t)stacks >= sizeof stacks)
		written[written_count++] = (struct written){ at, *at };
}

struct cell *cell_at(uintptr_t address)
{
	uintptr_t key = address >> 3;
	unsigned slot = (unsigned)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 51);
	for (unsigned tried = 0; tried < CELLS; tried++, slot = (slot + 1) % CELLS) {
		struct cell *c = &cells[slot];
		if (c->generation != generation) {
			memset(c, 0, offsetof(struct cell, last));
			c->generation = generation;
			c->key = key;
		}
		if (c->key == key)
			return c;
	}
	fail("explorer", "a schedule touches too much memory");
}

void join_clock(uint32_t *into, const uint32_t *from)
{
	for (unsigned i = 0; i < THREADS; i++)
		if (from[i] > into[i])
			into[i] = from[i];
}

uint64_t clock_key(const uint32_t *clock)
{
	uint64_t key = 0;
	for (unsigned i = 0; i < THREADS; i++)
		key = mix(key, clock[i]);
	return key;
}

static void mark_cell(struct cell *c)
{
	memory_key -= c->mark;
	c->mark = mix(mix(c->key, *(const uint64_t *)(c->key << 3) & c->atomic), clock_key(c->released)) | 1;
	memory_key += c->mark;
}

void wrote(struct cell *c, uintptr_t address, unsigned size)
{
	c->atomic |= ~UINT64_C(0) >> (64 - 8 * size) << (8 * (address & 7));
	mark_cell(c);
}

static void acquire_clock(const uint32_t *released)
{
	bool learns = false;
	for (unsigned i = 0; i < THREADS; i++)
		learns |= released[i] > self->clock[i];
	if (!learns)
		return;
	join_clock(self->clock, released);
	mix_history(clock_key(self->clock));
}

/* self has read what releases that. */
static void read_clock(const uint32_t *released, int order)
{
	if (acquires(order))
		acquire_clock(released);
	else
		join_clock(self->acquirable_clock, released);
}

static void release_cell(struct cell *c, int order, bool continues)
{
	if (!continues)
		memset(c->released, 0, sizeof c->released);
	join_clock(c->released, releases(order) ? self->clock : self->fenced_clock);
	if (releases(order))
		self->clock[SELF]++;
}

static void report(const char *oracle, struct place first, struct place second, const char *text)
{
	failure.at[0] = first;
	failure.at[1] = second;
	fail(oracle, "%s", text);
}

static void report_pair(const char *oracle, uintptr_t address, const char *what, unsigned by, struct place first,
			enum access kind, struct place second)
{
	char name[80], text[300];
	name_memory((void *)address, name, sizeof name);
	snprintf(text, sizeof text, "%s: %s by T%u, not ordered before the %s by T%u", name, what, by, kind_names[kind],
		 SELF);
	report(oracle, first, second, text);
}

static void check_dead(uintptr_t address, unsigned size, enum access kind, struct place at)
{
	for (unsigned i = 0; i < dead_count; i++) {
		if (address >= dead[i].to || address + size <= dead[i].from)
			continue;
		char name[80], text[200];
		name_memory((void *)address, name, sizeof name);
		snprintf(text, sizeof text, "%s by T%u of %s, which is dead since T%u said so", kind_names[kind], SELF,
			 name, dead[i].by);
		report("dead memory", dead[i].at, at, text);
	}
}

static void visit(struct thread *owner, uintptr_t address, enum access kind, struct place at)
{
	if (address < owner->stack_end || owner->state == FINISHED) {
		char text[200];
		snprintf(text, sizeof text, "%s by T%u on the stack of T%u, in a frame that has returned",
			 kind_names[kind], SELF, (unsigned)(owner - threads));
		report("dead memory", at, (struct place){ 0 }, text);
	}
	self->stirred = true;
	struct visit *v = owner->visits;
	for (unsigned i = 0; i < owner->visited; i++, v++) {
		if (v->address == address && v->by == SELF)
			break;
	}
	if (v == owner->visits + owner->visited && owner->visited++ == VISITS_MOST)
		fail("explorer", "too many visits on a stack");
	*v = (struct visit){ address, SELF, self->clock[SELF], at };
}

void visits_check(uintptr_t stack_end)
{
	unsigned kept = 0;
	self->stack_end = stack_end;
	for (unsigned i = 0; i < self->visited; i++) {
		struct visit *v = &self->visits[i];
		if (v->address >= stack_end) {
			self->visits[kept++] = *v;
		} else if (v->clock > self->clock[v->by]) {
			char text[200];
			snprintf(text, sizeof text, "T%u touched a frame of T%u and is not ordered before its return",
				 v->by, SELF);
			report("dead memory", v->at, (struct place){ 0 }, text);
		}
	}
	self->visited = kept;
}

static inline bool conflicts(enum access a, enum access b)
{
	if (a >= ATOMIC_READ && b >= ATOMIC_READ)
		return false;
	return a == PLAIN_WRITE || a == ATOMIC_WRITE || b == PLAIN_WRITE || b == ATOMIC_WRITE;
}

/* Whether that access changes nothing of what self has done to the cell, as others will judge it. */
static bool known_access(const struct cell *c, uintptr_t address, uint8_t bytes, enum access kind)
{
	if (kind == ATOMIC_WRITE || (kind == PLAIN_WRITE && address - (uintptr_t)stacks[SELF] >= STACK_SIZE))
		return false;
	for (enum access k = kind; k < ACCESS_KINDS; k += ATOMIC_WRITE - ATOMIC_READ) {
		const struct last *l = &c->last[SELF][k];
		if (l->clock == self->clock[SELF] && (l->bytes & bytes) == bytes)
			return true;
		if (k % 2)
			break;
	}
	return false;
}

static void check_races(const struct cell *c, uintptr_t address, uint8_t bytes, enum access kind, struct place at)
{
	for (unsigned id = 0; id < THREADS; id++) {
		if (id == SELF || !(c->users >> id & 1))
			continue;
		for (enum access k = 0; k < ACCESS_KINDS; k++) {
			const struct last *l = &c->last[id][k];
			if ((l->bytes & bytes) && l->clock > self->clock[id] && conflicts(k, kind))
				report_pair("race", address, kind_names[k], id, l->at, kind, at);
		}
	}
}

/* A cell has room for two words: what is written to the one says nothing of what the other releases. */
static bool overlaps(uint64_t bits, uint8_t bytes)
{
	for (unsigned i = 0; i < 8; i++)
		if ((bytes >> i & 1) && (bits >> 8 * i & 0xff))
			return true;
	return false;
}

static void touch_cell(uintptr_t address, uint8_t bytes, enum access kind, struct place at)
{
	struct cell *c = cell_at(address);
	if (!(c->users >> SELF & 1)) {
		memset(c->last[SELF], 0, sizeof c->last[SELF]);
		c->users |= (uint8_t)(1u << SELF);
	}
	if (c->users != 1u << SELF && !search_repeats())
		check_races(c, address, bytes, kind, at);
	if (!c->saved && (kind == PLAIN_WRITE || kind == ATOMIC_WRITE))
		save_before(c, address);
	struct last *l = &c->last[SELF][kind];
	if (!self->stirred && !known_access(c, address, bytes, kind))
		self->stirred = true;
	if (l->clock != self->clock[SELF])
		l->bytes = 0;
	l->clock = self->clock[SELF];
	l->bytes |= bytes;
	l->at = at;
	if (kind == PLAIN_WRITE && overlaps(c->atomic, bytes)) {
		memset(c->released, 0, sizeof c->released);
		if (c->mark)
			mark_cell(c);
		if (weak)
			weak_forget(address & ~(uintptr_t)7, bytes);
	}
}

void touch(uintptr_t address, unsigned size, enum access kind, struct place at)
{
	if (address >= tls_from && address < tls_to)
		return;
	if (dead_count > 0)
		check_dead(address, size, kind, at);
	uintptr_t on = address - (uintptr_t)stacks;
	if (on < sizeof stacks && on / STACK_SIZE != SELF)
		visit(&threads[on / STACK_SIZE], address, kind, at);
	uintptr_t end = address + size;
	while (address < end) {
		unsigned offset = address & 7;
		unsigned count = 8 - offset < end - address ? 8 - offset : (unsigned)(end - address);
		touch_cell(address, (uint8_t)(((1u << count) - 1) << offset), kind, at);
		address += count;
	}
}

void x_dead(void *object, size_t size)
{
	ENTER();
	struct place at = { NULL, (uintptr_t)__builtin_return_address(0) };
	point();
	TRACE("dead", NULL, object, 0, "%zu bytes may be unmapped", size);
	touch((uintptr_t)object, (unsigned)size, PLAIN_WRITE, at);
	if (dead_count == DEAD_MOST)
		fail("explorer", "too much is dead");
	dead[dead_count++] = (struct range){ (uintptr_t)object, (uintptr_t)object + size, at, SELF };
}

void x_alive(void *object, size_t size)
{
	unsigned kept = 0;
	for (unsigned i = 0; i < dead_count; i++)
		if (dead[i].from >= (uintptr_t)object + size || dead[i].to <= (uintptr_t)object)
			dead[kept++] = dead[i];
	dead_count = kept;
}

/* ---- atomic accesses ---- */

bool acquires(int order)
{
	return order == __ATOMIC_ACQUIRE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

bool releases(int order)
{
	return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

static uint64_t memory_read(const void *p, unsigned size)
{
	switch (size) {
	case 1:
		return *(const uint8_t *)p;
	case 4:
		return *(const uint32_t *)p;
	case 8:
		return *(const uint64_t *)p;
	}
	abort();
}

static void memory_write(void *p, unsigned size, uint64_t value)
{
	switch (size) {
	case 1:
		*(uint8_t *)p = (uint8_t)value;
		return;
	case 4:
		*(uint32_t *)p = (uint32_t)value;
		return;
	case 8:
		*(uint64_t *)p = value;
		return;
	}
	abort();
}

/* A thread-local variable is no step, and shared with nobody but a signal handler of the thread. */
static bool is_local(const void *p)
{
	if ((uintptr_t)p < tls_from || (uintptr_t)p >= tls_to)
		return false;
	if (self->signal_due)
		point();
	return true;
}

void x__handlers(void)
{
	ENTER();
	if (self->signal_due)
		point();
}

/* What self sees: its own delayed stores come first. */
uint64_t read_word(const void *p, unsigned size)
{
	for (unsigned i = self->buffered; i-- > 0;) {
		struct delayed *d = &self->buffer[i];
		if (d->p == p && d->size == size)
			return d->value;
		if (((uintptr_t)d->p ^ (uintptr_t)p) < 8) {
			flush_all(SELF);
			break;
		}
	}
	return memory_read(p, size);
}

/* A step that only reads: what follows depends on the value, and on what an acquire learns (acquire_cell). */
static struct cell *read_step(const void *p, unsigned size, uint64_t value, const struct x__site *site)
{
	touch((uintptr_t)p, size, ATOMIC_READ, (struct place){ site, 0 });
	struct cell *c = cell_at((uintptr_t)p);
	mix_history(value);
	self->last_read = (struct look){ c, c->mark };
	if (self->looking) {
		if (self->looked == LOOKS_MOST)
			fail("explorer", "a condition reads too much");
		self->looks[self->looked++] = (struct look){ c, c->mark };
	}
	return c;
}

static struct cell *write_step(void *p, unsigned size, const struct x__site *site)
{
	touch((uintptr_t)p, size, ATOMIC_WRITE, (struct place){ site, 0 });
	return cell_at((uintptr_t)p);
}

/* An old message: who looks whether what it has read has changed finds that it has. */
static const char *stale(const void *p, const struct message *m)
{
	if (!m || weak_is_newest(p, m))
		return "";
	self->last_read.mark = 0;
	return ", stale";
}

uint64_t x__load(const void *p, unsigned size, const struct x__site *site)
{
	ENTER();
	if (is_local(p))
		return memory_read(p, size);
	point();
	const struct message *m = weak ? weak_load(p, site, NULL) : NULL;
	uint64_t value = m ? m->value : read_word(p, size);
	struct cell *c = read_step(p, size, value, site);
	if (m || !weak)
		read_clock(m ? m->clock : c->released, site->order);
	const char *how = stale(p, m);
	TRACE("load", site, p, size, "%#jx%s", (uintmax_t)value, how);
	return value;
}

void flush_one(unsigned id)
{
	struct thread *t = &threads[id];
	struct delayed d = t->buffer[0];
	memmove(t->buffer, t->buffer + 1, --t->buffered * sizeof d);
	struct cell *c = cell_at((uintptr_t)d.p);
	memory_write(d.p, d.size, d.value);
	memcpy(c->released, d.clock, sizeof d.clock);
	wrote(c, (uintptr_t)d.p, d.size);
	TRACE("visible", d.site, d.p, d.size, "the delayed store of T%u: %#jx", id, (uintmax_t)d.value);
}

void flush_all(unsigned id)
{
	while (threads[id].buffered > 0)
		flush_one(id);
}

static void store_delayed(void *p, unsigned size, uint64_t value, const struct x__site *site)
{
	if (self->buffered == BUFFER_MOST)
		flush_one(SELF);
	struct delayed *d = &self->buffer[self->buffered++];
	*d = (struct delayed){ p, size, value, site, { 0 } };
	memcpy(d->clock, releases(site->order) ? self->clock : self->fenced_clock, sizeof d->clock);
	touch((uintptr_t)p, size, ATOMIC_WRITE, (struct place){ site, 0 });
	if (releases(site->order))
		self->clock[SELF]++;
	TRACE("store", site, p, size, "%#jx, delayed", (uintmax_t)value);
}

void x__store(void *p, unsigned size, uint64_t value, const struct x__site *site)
{
	ENTER();
	if (is_local(p)) {
		memory_write(p, size, value);
		return;
	}
	point();
	bool ordered = site->order == __ATOMIC_SEQ_CST;
	if (ordered)
		flush_all(SELF);
	else if (!weak && (self->buffered > 0 || decide_plain(2, 1) == 1)) {
		store_delayed(p, size, value, site);
		return;
	}
	struct cell *c = write_step(p, size, site);
	bool lasts = !weak || weak_store(p, size, memory_read(p, size), value, site);
	TRACE("store", site, p, size, "%#jx%s", (uintmax_t)value, lasts ? "" : ", before what is there");
	if (lasts)
		memory_write(p, size, value);
	release_cell(c, site->order, false);
	wrote(c, (uintptr_t)p, size);
}

void rmw_word(void *p, unsigned size, uint64_t old, uint64_t next, const struct x__site *site)
{
	struct cell *c = write_step(p, size, site);
	const struct message *m = weak ? weak_rmw_reads(p, size, old, site) : NULL;
	mix_history(old);
	read_clock(m ? m->clock : c->released, site->order);
	if (weak)
		weak_rmw_writes(p, next, site);
	memory_write(p, size, next);
	release_cell(c, site->order, true);
	wrote(c, (uintptr_t)p, size);
}

static uint64_t combine(enum x__rmw op, uint64_t old, uint64_t value)
{
	switch (op) {
	case X__EXCHANGE:
		return value;
	case X__ADD:
		return old + value;
	case X__OR:
		return old | value;
	case X__AND:
		return old & value;
	}
	abort();
}

uint64_t x__rmw(void *p, unsigned size, enum x__rmw op, uint64_t value, const struct x__site *site)
{
	static const char *const names[] = { "exchange", "fetch_add", "fetch_or", "fetch_and" };
	ENTER();
	bool local = is_local(p);
	uint64_t old = memory_read(p, size);
	if (local) {
		memory_write(p, size, combine(op, old, value));
		return old;
	}
	point();
	flush_all(SELF);
	old = memory_read(p, size);
	rmw_word(p, size, old, combine(op, old, value) & UINT64_MAX >> (64 - 8 * size), site);
	TRACE(names[op], site, p, size, "%#jx -> %#jx", (uintmax_t)old, (uintmax_t)memory_read(p, size));
	return old;
}

bool x__cas(void *p, unsigned size, void *expected, uint64_t desired, const struct x__site *site)
{
	static const struct x__site failed_site = { __FILE__, __func__, "", "relaxed", __LINE__, __ATOMIC_RELAXED };
	ENTER();
	bool local = is_local(p);
	if (!local) {
		point();
		flush_all(SELF);
	}
	uint64_t old = memory_read(p, size);
	uint64_t wanted = memory_read(expected, size);
	if (local) {
		memory_write(old == wanted ? p : expected, size, old == wanted ? desired : old);
		return old == wanted;
	}
	/* Where it fails it is a relaxed load. */
	const struct message *m = weak ? weak_load(p, &failed_site, &wanted) : NULL;
	if (m)
		old = m->value;
	if (old != wanted) {
		struct cell *c = read_step(p, size, old, site);
		if (m || !weak)
			read_clock(m ? m->clock : c->released, __ATOMIC_RELAXED);
		memory_write(expected, size, old);
		const char *how = stale(p, m);
		TRACE("cas", site, p, size, "fails: %#jx, not %#jx%s", (uintmax_t)old, (uintmax_t)wanted, how);
		return false;
	}
	rmw_word(p, size, old, desired, site);
	TRACE("cas", site, p, size, "%#jx -> %#jx", (uintmax_t)old, (uintmax_t)memory_read(p, size));
	return true;
}

/* ---- what the compiler calls for plain accesses ---- */

#define HERE ((struct place){ NULL, (uintptr_t)__builtin_return_address(0) })

static void plain(uintptr_t address, unsigned size, enum access kind, struct place at)
{
	/* A thread sees its own delayed stores, and this access is not the explorer's to make. */
	for (unsigned i = 0; i < self->buffered; i++)
		if ((uintptr_t)self->buffer[i].p < address + size && address < (uintptr_t)self->buffer[i].p + 8)
			flush_all(SELF);
	touch(address, size, kind, at);
}

#define PLAIN(bytes) \
	void __tsan_read##bytes(void *p); \
	void __tsan_read##bytes(void *p) \
	{ \
		plain((uintptr_t)p, bytes, PLAIN_READ, HERE); \
	} \
	void __tsan_write##bytes(void *p); \
	void __tsan_write##bytes(void *p) \
	{ \
		plain((uintptr_t)p, bytes, PLAIN_WRITE, HERE); \
	}
#define UNALIGNED(bytes) \
	void __tsan_unaligned_read##bytes(void *p); \
	void __tsan_unaligned_read##bytes(void *p) \
	{ \
		plain((uintptr_t)p, bytes, PLAIN_READ, HERE); \
	} \
	void __tsan_unaligned_write##bytes(void *p); \
	void __tsan_unaligned_write##bytes(void *p) \
	{ \
		plain((uintptr_t)p, bytes, PLAIN_WRITE, HERE); \
	}

PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)
UNALIGNED(2)
UNALIGNED(4)
UNALIGNED(8)
UNALIGNED(16)

void __tsan_init(void);
void __tsan_read_range(void *p, unsigned long size);
void __tsan_write_range(void *p, unsigned long size);
void __tsan_func_entry(void *pc);
void __tsan_func_exit(void);
void *__tsan_memset(void *p, int value, size_t size);
void *__tsan_memcpy(void *p, const void *from, size_t size);
void *__tsan_memmove(void *p, const void *from, size_t size);
void *x__memset(void *p, int value, size_t size);
void *x__memcpy(void *p, const void *from, size_t size);

void __tsan_init(void)
{
}

void __tsan_read_range(void *p, unsigned long size)
{
	plain((uintptr_t)p, (unsigned)size, PLAIN_READ, HERE);
}

void __tsan_write_range(void *p, unsigned long size)
{
	plain((uintptr_t)p, (unsigned)size, PLAIN_WRITE, HERE);
}

void __tsan_func_entry(void *pc)
{
	(void)pc;
}

void __tsan_func_exit(void)
{
	if (self->visited > 0)
		ENTER();
}

void x__futex_func_entry(void *pc);
void x__futex_func_exit(void);

/* The same, of functions in src/futex. */
void x__futex_func_entry(void *pc)
{
	(void)pc;
	self->futex_calls++;
}

void x__futex_func_exit(void)
{
	if (--self->futex_calls == 0)
		self->stirred = true;
	if (self->visited > 0)
		ENTER();
}

void *x__memset(void *p, int value, size_t size)
{
	plain((uintptr_t)p, (unsigned)size, PLAIN_WRITE, HERE);
	return memset(p, value, size);
}

void *x__memcpy(void *p, const void *from, size_t size)
{
	plain((uintptr_t)from, (unsigned)size, PLAIN_READ, HERE);
	plain((uintptr_t)p, (unsigned)size, PLAIN_WRITE, HERE);
	return memmove(p, from, size);
}

void *__tsan_memset(void *p, int value, size_t size)
{
	return x__memset(p, value, size);
}

void *__tsan_memcpy(void *p, const void *from, size_t size)
{
	return x__memcpy(p, from, size);
}

void *__tsan_memmove(void *p, const void *from, size_t size)
{
	return x__memcpy(p, from, size);
}
