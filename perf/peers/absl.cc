// SPDX-License-Identifier: MIT
//
// Abseil. Its headers prefer a Condition of the Mutex (Await, LockWhen), and keep CondVar for where signals are faster:
// both are here where both may be the better. It has neither semaphores nor queues; its Barrier and BlockingCounter
// serve once, the latter for one waiter.
#include <absl/base/call_once.h>
#include <absl/synchronization/mutex.h>
#include <absl/synchronization/notification.h>

#include <cstdlib>
#include <new>

#include "peers.h"

namespace {

// ---- sem ----

struct sem {
	absl::Mutex mutex;
	absl::CondVar cond;
	unsigned permits;
};

bool has_permit(sem *s)
{
	return s->permits > 0;
}

size_t sem_make(void *object, unsigned n)
{
	(new (object) sem)->permits = n;
	return sizeof(absl::Mutex) + sizeof(unsigned);
}

void sem_acquire(void *object, unsigned)
{
	sem *s = static_cast<sem *>(object);
	s->mutex.LockWhen(absl::Condition(has_permit, s));
	s->permits--;
	s->mutex.Unlock();
}

void sem_release(void *object, unsigned permits)
{
	sem *s = static_cast<sem *>(object);
	s->mutex.Lock();
	s->permits += permits;
	s->mutex.Unlock();
}

PEER_PAIRS(sem_pairs, sem, sem_acquire(o, 0), sem_release(o, 1))

size_t cond_make(void *object, unsigned n)
{
	sem_make(object, n);
	return sizeof(sem);
}

void cond_acquire(void *object, unsigned)
{
	sem *s = static_cast<sem *>(object);
	s->mutex.Lock();
	while (s->permits == 0)
		s->cond.Wait(&s->mutex);
	s->permits--;
	s->mutex.Unlock();
}

void cond_release(void *object, unsigned permits)
{
	sem *s = static_cast<sem *>(object);
	s->mutex.Lock();
	s->permits += permits;
	s->mutex.Unlock();
	for (; permits > 0; permits--)
		s->cond.Signal();
}

PEER_PAIRS(cond_pairs, sem, cond_acquire(o, 0), cond_release(o, 1))

const peer_sem sems[] = {
	{ "", sizeof(sem), sem_make, sem_acquire, sem_release, sem_pairs },
	{ "cv", sizeof(sem), cond_make, cond_acquire, cond_release, cond_pairs },
	{},
};

// ---- mutex and rwlock: one type is both ----

size_t mutex_make(void *object, unsigned)
{
	new (object) absl::Mutex;
	return sizeof(absl::Mutex);
}

PEER_PAIRS(mutex_pairs, absl::Mutex, o->Lock(), o->Unlock())
PEER_PAIRS(read_pairs, absl::Mutex, o->ReaderLock(), o->ReaderUnlock())
PEER_CONTEND(mutex_contend, absl::Mutex, o->Lock(), o->Unlock())

const peer_mutex mutexes[] = {
	{ "", sizeof(absl::Mutex), mutex_make, mutex_pairs, mutex_contend },
	{},
};

void mutex_read(void *object, void (*section)(void *arg), void *arg)
{
	absl::ReaderMutexLock lock(static_cast<absl::Mutex *>(object));
	section(arg);
}

void mutex_write(void *object, void (*section)(void *arg), void *arg)
{
	absl::MutexLock lock(static_cast<absl::Mutex *>(object));
	section(arg);
}

const peer_rwlock rwlocks[] = {
	{ "", sizeof(absl::Mutex), mutex_make, mutex_read, mutex_write, read_pairs, mutex_pairs },
	{},
};

// ---- guarded buffer ----

struct buffer {
	absl::Mutex mutex;
	absl::CondVar not_full, not_empty;
	peer_ring ring;
};

bool has_place(peer_ring *ring)
{
	return !peer_ring_full(ring);
}

bool has_item(peer_ring *ring)
{
	return !peer_ring_empty(ring);
}

size_t buffer_make(void *object, unsigned n)
{
	(new (object) buffer)->ring.capacity = n;
	return sizeof(absl::Mutex);
}

void buffer_put(void *object, uint64_t item)
{
	buffer *b = static_cast<buffer *>(object);
	b->mutex.LockWhen(absl::Condition(has_place, &b->ring));
	peer_ring_put(&b->ring, item);
	b->mutex.Unlock();
}

uint64_t buffer_take(void *object)
{
	buffer *b = static_cast<buffer *>(object);
	b->mutex.LockWhen(absl::Condition(has_item, &b->ring));
	uint64_t item = peer_ring_take(&b->ring);
	b->mutex.Unlock();
	return item;
}

size_t cond_buffer_make(void *object, unsigned n)
{
	buffer_make(object, n);
	return sizeof(buffer) - sizeof(peer_ring);
}

void cond_buffer_put(void *object, uint64_t item)
{
	buffer *b = static_cast<buffer *>(object);
	b->mutex.Lock();
	while (peer_ring_full(&b->ring))
		b->not_full.Wait(&b->mutex);
	peer_ring_put(&b->ring, item);
	b->not_empty.Signal();
	b->mutex.Unlock();
}

uint64_t cond_buffer_take(void *object)
{
	buffer *b = static_cast<buffer *>(object);
	b->mutex.Lock();
	while (peer_ring_empty(&b->ring))
		b->not_empty.Wait(&b->mutex);
	uint64_t item = peer_ring_take(&b->ring);
	b->not_full.Signal();
	b->mutex.Unlock();
	return item;
}

const peer_buffer buffers[] = {
	{ "", sizeof(buffer), buffer_make, buffer_put, buffer_take },
	{ "cv", sizeof(buffer), cond_buffer_make, cond_buffer_put, cond_buffer_take },
	{},
};

// ---- once ----

size_t once_make(void *object, unsigned)
{
	new (object) absl::once_flag;
	return sizeof(absl::once_flag);
}

void once_call(void *object, void (*fn)(void *arg), void *arg)
{
	absl::call_once(*static_cast<absl::once_flag *>(object), fn, arg);
}

void once_calls(void *object, uint64_t n, void (*fn)(void *arg), void *arg)
{
	for (; n > 0; n--)
		absl::call_once(*static_cast<absl::once_flag *>(object), fn, arg);
}

const peer_once onces[] = {
	{ "", sizeof(absl::once_flag), once_make, once_call, once_calls },
	{},
};

// ---- event: a notification, which is made anew; or a flag that one wait takes ----

size_t notification_make(void *object, unsigned)
{
	new (object) absl::Notification;
	return sizeof(absl::Notification);
}

void notification_set(void *object)
{
	static_cast<absl::Notification *>(object)->Notify();
}

void notification_wait(void *object)
{
	static_cast<absl::Notification *>(object)->WaitForNotification();
}

void notification_reset(void *object)
{
	static_cast<absl::Notification *>(object)->~Notification();
	new (object) absl::Notification;
}

size_t flag_make(void *object, unsigned)
{
	return sem_make(object, 0);
}

void flag_set(void *object)
{
	sem *flag = static_cast<sem *>(object);
	absl::MutexLock lock(&flag->mutex);
	flag->permits = 1;
}

void flag_wait(void *object)
{
	sem_acquire(object, 0);
}

const peer_event events[] = {
	{ "", sizeof(absl::Notification), notification_make, notification_set, notification_wait, notification_reset,
	  false },
	{ "flag", sizeof(sem), flag_make, flag_set, flag_wait, nullptr, true },
	{},
};

} // namespace

const struct peer peer = {
	"absl", sems, mutexes, rwlocks, buffers, nullptr, nullptr, onces, events, nullptr, nullptr,
};
