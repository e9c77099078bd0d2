// SPDX-License-Identifier: MIT
//
// The C++ standard library, C++20. Where it has no event that stays set, an atomic flag is waited for; where one wait
// takes one set, a binary semaphore is. It has no queue, and no semaphore that keeps an order.
#include <atomic>
#include <barrier>
#include <condition_variable>
#include <cstdlib>
#include <latch>
#include <mutex>
#include <new>
#include <optional>
#include <semaphore>
#include <shared_mutex>
#include <stop_token>

#include "peers.h"

namespace {

// ---- sem ----

using semaphore = std::counting_semaphore<>;

size_t sem_make(void *object, unsigned n)
{
	new (object) semaphore(n);
	return sizeof(semaphore);
}

void sem_acquire(void *object, unsigned)
{
	static_cast<semaphore *>(object)->acquire();
}

void sem_release(void *object, unsigned permits)
{
	static_cast<semaphore *>(object)->release(permits);
}

PEER_PAIRS(sem_pairs, semaphore, o->acquire(), o->release())

const peer_sem sems[] = {
	{ "", sizeof(semaphore), sem_make, sem_acquire, sem_release, sem_pairs },
	{},
};

// ---- mutex ----

size_t mutex_make(void *object, unsigned)
{
	new (object) std::mutex;
	return sizeof(std::mutex);
}

PEER_PAIRS(mutex_pairs, std::mutex, o->lock(), o->unlock())
PEER_CONTEND(mutex_contend, std::mutex, o->lock(), o->unlock())

const peer_mutex mutexes[] = {
	{ "", sizeof(std::mutex), mutex_make, mutex_pairs, mutex_contend },
	{},
};

// ---- rwlock ----

size_t rwlock_make(void *object, unsigned)
{
	new (object) std::shared_mutex;
	return sizeof(std::shared_mutex);
}

void rwlock_read(void *object, void (*section)(void *arg), void *arg)
{
	std::shared_lock lock(*static_cast<std::shared_mutex *>(object));
	section(arg);
}

void rwlock_write(void *object, void (*section)(void *arg), void *arg)
{
	std::scoped_lock lock(*static_cast<std::shared_mutex *>(object));
	section(arg);
}

PEER_PAIRS(read_pairs, std::shared_mutex, o->lock_shared(), o->unlock_shared())
PEER_PAIRS(write_pairs, std::shared_mutex, o->lock(), o->unlock())

const peer_rwlock rwlocks[] = {
	{ "", sizeof(std::shared_mutex), rwlock_make, rwlock_read, rwlock_write, read_pairs, write_pairs },
	{},
};

// ---- guarded buffer ----

struct buffer {
	std::mutex mutex;
	std::condition_variable not_full, not_empty;
	peer_ring ring;
};

size_t buffer_make(void *object, unsigned n)
{
	(new (object) buffer)->ring.capacity = n;
	return sizeof(buffer) - sizeof(peer_ring);
}

void buffer_put(void *object, uint64_t item)
{
	buffer *b = static_cast<buffer *>(object);
	{
		std::unique_lock lock(b->mutex);
		b->not_full.wait(lock, [b] { return !peer_ring_full(&b->ring); });
		peer_ring_put(&b->ring, item);
	}
	b->not_empty.notify_one();
}

uint64_t buffer_take(void *object)
{
	buffer *b = static_cast<buffer *>(object);
	uint64_t item;
	{
		std::unique_lock lock(b->mutex);
		b->not_empty.wait(lock, [b] { return !peer_ring_empty(&b->ring); });
		item = peer_ring_take(&b->ring);
	}
	b->not_full.notify_one();
	return item;
}

const peer_buffer buffers[] = {
	{ "", sizeof(buffer), buffer_make, buffer_put, buffer_take },
	{},
};

// ---- barrier ----

size_t barrier_make(void *object, unsigned n)
{
	new (object) std::barrier<>(n);
	return sizeof(std::barrier<>);
}

void barrier_meet(void *object)
{
	static_cast<std::barrier<> *>(object)->arrive_and_wait();
}

const peer_barrier barriers[] = {
	{ "", sizeof(std::barrier<>), barrier_make, barrier_meet },
	{},
};

// ---- once ----

size_t once_make(void *object, unsigned)
{
	new (object) std::once_flag;
	return sizeof(std::once_flag);
}

void once_call(void *object, void (*fn)(void *arg), void *arg)
{
	std::call_once(*static_cast<std::once_flag *>(object), fn, arg);
}

void once_calls(void *object, uint64_t n, void (*fn)(void *arg), void *arg)
{
	for (; n > 0; n--)
		std::call_once(*static_cast<std::once_flag *>(object), fn, arg);
}

const peer_once onces[] = {
	{ "", sizeof(std::once_flag), once_make, once_call, once_calls },
	{},
};

// ---- event ----

using flag = std::atomic<int>;

size_t flag_make(void *object, unsigned)
{
	new (object) flag(0);
	return sizeof(flag);
}

void flag_set(void *object)
{
	flag *f = static_cast<flag *>(object);
	f->store(1);
	f->notify_all();
}

void flag_wait(void *object)
{
	static_cast<flag *>(object)->wait(0);
}

void flag_reset(void *object)
{
	static_cast<flag *>(object)->store(0);
}

using binary = std::binary_semaphore;

size_t binary_make(void *object, unsigned)
{
	new (object) binary(0);
	return sizeof(binary);
}

void binary_set(void *object)
{
	static_cast<binary *>(object)->release();
}

void binary_wait(void *object)
{
	static_cast<binary *>(object)->acquire();
}

const peer_event events[] = {
	{ "", sizeof(flag), flag_make, flag_set, flag_wait, flag_reset, false },
	{ "binary", sizeof(binary), binary_make, binary_set, binary_wait, nullptr, true },
	{},
};

// ---- latch ----

size_t latch_make(void *object, unsigned)
{
	new (object) std::latch(1);
	return sizeof(std::latch);
}

void latch_set(void *object)
{
	static_cast<std::latch *>(object)->count_down();
}

void latch_wait(void *object)
{
	static_cast<std::latch *>(object)->wait();
}

void latch_reset(void *object)
{
	static_cast<std::latch *>(object)->~latch();
	new (object) std::latch(1);
}

const peer_event latches[] = {
	{ "", sizeof(std::latch), latch_make, latch_set, latch_wait, latch_reset, false },
	{},
};

// ---- token ----

struct callable {
	std::mutex mutex;
	std::condition_variable_any cond;
	std::stop_source sources[PEER_MOST][2];
};

size_t token_make(void *object, unsigned)
{
	new (object) callable;
	return sizeof(std::stop_source);
}

void token_wait(void *object, unsigned slot, unsigned round)
{
	callable *c = static_cast<callable *>(object);
	std::unique_lock lock(c->mutex);
	c->cond.wait(lock, c->sources[slot][round % 2].get_token(), [] { return false; });
}

void token_fire(void *object, unsigned slot, unsigned round)
{
	callable *c = static_cast<callable *>(object);
	c->sources[slot][(round + 1) % 2] = std::stop_source();
	c->sources[slot][round % 2].request_stop();
}

const peer_token tokens[] = {
	{ "", sizeof(callable), token_make, token_wait, token_fire },
	{},
};

} // namespace

const struct peer peer = {
	"cxx", sems, mutexes, rwlocks, buffers, nullptr, barriers, onces, events, latches, tokens,
};
