// SPDX-License-Identifier: MIT
//
// oneAPI Threading Building Blocks: its mutexes and reader-writer locks, each of which its documentation advises for
// something; the bounded queue; and the once of which those who come help. Nothing in it waits for a condition.
#include <oneapi/tbb/collaborative_call_once.h>
#include <oneapi/tbb/concurrent_queue.h>
#include <oneapi/tbb/mutex.h>
#include <oneapi/tbb/queuing_mutex.h>
#include <oneapi/tbb/queuing_rw_mutex.h>
#include <oneapi/tbb/rw_mutex.h>
#include <oneapi/tbb/spin_mutex.h>
#include <oneapi/tbb/spin_rw_mutex.h>

#include <cstdlib>
#include <new>

#include "peers.h"

namespace {

template <typename T> size_t make(void *object, unsigned)
{
	new (object) T;
	return sizeof(T);
}

// ---- mutex: all by their scoped lock, which is the node of those that queue ----

using adaptive = tbb::mutex;
using spinning = tbb::spin_mutex;
using queuing = tbb::queuing_mutex;

PEER_PAIRS(adaptive_pairs, adaptive, adaptive::scoped_lock lock(*o), lock.release())
PEER_PAIRS(spinning_pairs, spinning, spinning::scoped_lock lock(*o), lock.release())
PEER_PAIRS(queuing_pairs, queuing, queuing::scoped_lock lock(*o), lock.release())
PEER_CONTEND(adaptive_contend, adaptive, adaptive::scoped_lock lock(*o), lock.release())
PEER_CONTEND(spinning_contend, spinning, spinning::scoped_lock lock(*o), lock.release())
PEER_CONTEND(queuing_contend, queuing, queuing::scoped_lock lock(*o), lock.release())

const peer_mutex mutexes[] = {
	{ "", sizeof(adaptive), make<adaptive>, adaptive_pairs, adaptive_contend },
	{ "spin", sizeof(spinning), make<spinning>, spinning_pairs, spinning_contend },
	{ "queuing", sizeof(queuing), make<queuing>, queuing_pairs, queuing_contend },
	{},
};

// ---- rwlock ----

template <typename T> void read(void *object, void (*section)(void *arg), void *arg)
{
	typename T::scoped_lock lock(*static_cast<T *>(object), false);
	section(arg);
}

template <typename T> void write(void *object, void (*section)(void *arg), void *arg)
{
	typename T::scoped_lock lock(*static_cast<T *>(object), true);
	section(arg);
}

using adaptive_rw = tbb::rw_mutex;
using spinning_rw = tbb::spin_rw_mutex;
using queuing_rw = tbb::queuing_rw_mutex;

PEER_PAIRS(adaptive_reads, adaptive_rw, adaptive_rw::scoped_lock lock(*o, false), lock.release())
PEER_PAIRS(adaptive_writes, adaptive_rw, adaptive_rw::scoped_lock lock(*o, true), lock.release())
PEER_PAIRS(spinning_reads, spinning_rw, spinning_rw::scoped_lock lock(*o, false), lock.release())
PEER_PAIRS(spinning_writes, spinning_rw, spinning_rw::scoped_lock lock(*o, true), lock.release())
PEER_PAIRS(queuing_reads, queuing_rw, queuing_rw::scoped_lock lock(*o, false), lock.release())
PEER_PAIRS(queuing_writes, queuing_rw, queuing_rw::scoped_lock lock(*o, true), lock.release())

const peer_rwlock rwlocks[] = {
	{ "", sizeof(adaptive_rw), make<adaptive_rw>, read<adaptive_rw>, write<adaptive_rw>, adaptive_reads,
	  adaptive_writes },
	{ "spin", sizeof(spinning_rw), make<spinning_rw>, read<spinning_rw>, write<spinning_rw>, spinning_reads,
	  spinning_writes },
	{ "queuing", sizeof(queuing_rw), make<queuing_rw>, read<queuing_rw>, write<queuing_rw>, queuing_reads,
	  queuing_writes },
	{},
};

// ---- queue ----

using queue = tbb::concurrent_bounded_queue<uint64_t>;

size_t queue_make(void *object, unsigned n)
{
	(new (object) queue)->set_capacity(n);
	return sizeof(queue);
}

void queue_put(void *object, uint64_t item)
{
	static_cast<queue *>(object)->push(item);
}

uint64_t queue_take(void *object)
{
	uint64_t item;
	static_cast<queue *>(object)->pop(item);
	return item;
}

const peer_buffer queues[] = {
	{ "", sizeof(queue), queue_make, queue_put, queue_take },
	{},
};

// ---- once ----

using once_flag = tbb::collaborative_once_flag;

void once_call(void *object, void (*fn)(void *arg), void *arg)
{
	tbb::collaborative_call_once(*static_cast<once_flag *>(object), fn, arg);
}

void once_calls(void *object, uint64_t n, void (*fn)(void *arg), void *arg)
{
	for (; n > 0; n--)
		tbb::collaborative_call_once(*static_cast<once_flag *>(object), fn, arg);
}

const peer_once onces[] = {
	{ "", sizeof(once_flag), make<once_flag>, once_call, once_calls },
	{},
};

} // namespace

const struct peer peer = {
	"tbb", nullptr, mutexes, rwlocks, nullptr, queues, nullptr, onces, nullptr, nullptr, nullptr,
};
