/* SPDX-License-Identifier: MIT */
/*
 * vez/rwlock.h - readers and writers: many read at a time, or one writes
 *
 * Three policies say who goes first:
 *
 *	VEZ_RW_HOARE    (the default) a waiting writer holds back new readers; a leaving writer admits every reader that
 *	                waits then, and only those. So neither side starves: a writer waits for the readers that are
 *	                inside and at most one more party of them for each writer ahead of it, a reader for one writer.
 *	VEZ_RW_FIFO     strict order of arrival; readers that stand next to each other enter together.
 *	VEZ_RW_READERS  readers wait only while somebody writes. Writers may starve.
 *
 * Writers are served in order of arrival under all of them. A newcomer never overtakes those who come before it by
 * policy, whether it waits, tries, or comes with a deadline that has passed. Uncontended, each call is one
 * compare-and-swap and no system call; a writer that leaves wakes waiting readers up to 32 at a time by one system call
 * (threads that began to use vez one after another mostly belong together).
 *
 * Holds are counted, not tracked: any thread may unlock. So a writer that locks again waits for itself, and gets no
 * EDEADLK (inspection finds it, but not a reader that asks to write). The lock is not recursive, for readers
 * neither: a thread that reads and asks to read again may wait behind a writer that waits for it, for ever
 * (VEZ_RW_READERS: behind an upgrader).
 *
 * Upgrading: a reader may write in between (vez_rwlock_upgrade_until) and then reads on (vez_rwlock_undo_upgrade). It
 * keeps its read hold and enters when every other reader has left or waits to upgrade, too. Several that wait enter in
 * turn: each undoes, and leaves or upgrades again, before the next one enters; so what one has read before it asked may
 * have changed when it enters: re-validate. A waiting upgrader goes before waiting writers and holds back newcomers
 * under every policy. To undo, and to downgrade, counts as a leaving writer: waiting readers enter by policy
 * (VEZ_RW_FIFO: those who came before the first waiting writer and the first waiting upgrader). A thread that holds the
 * lock for reading twice waits for itself.
 *
 * Ordering: everything before an unlock, downgrade or undo happens before everything after a lock or upgrade that it
 * lets through; what happens while reading happens before what is written next.
 * Destroy: a thread whose call has returned, with any result, may destroy the lock and unmap it, if no other thread
 * will call it again, nobody holds it and nobody is queued. vez_rwlock_destroy first waits for a call that is
 * just leaving.
 * Signal handlers: vez_rwlock_waiters only.
 * fork: in the child the lock is held as it was, and the forking thread may unlock what it held; a lock on which other
 * threads were waiting, or inside of which one of them was, is to be initialized anew. Waits are no pthread
 * cancellation points.
 * Errors on entry, in this order: ECANCELED (token fired, nothing taken), EPERM (upgrading without a read hold), then
 * the lock (which is taken even if the deadline has passed) or EOVERFLOW, then ETIMEDOUT.
 * Sources: Courtois, Heymans, Parnas (1971); the default policy is that of Hoare, "Monitors" (1974).
 */
#ifndef VEZ_RWLOCK_H
#define VEZ_RWLOCK_H

#include "base.h"
#include "cancel.h"
#include "deadline.h"
#include "request.h"

VEZ_BEGIN_DECLS_

#define VEZ_RW_HOARE 0u
#define VEZ_RW_FIFO 64u
#define VEZ_RW_READERS 128u

/* The most read holds at a time. */
#define VEZ_RWLOCK_MAX_READERS 32767

typedef struct vez_rwlock {
	struct vez__core core_;
	vez_request_t *readers_;
	vez_request_t *writers_;
	vez_request_t *upgraders_;
	uint64_t tickets_;
	uint32_t readers_length_;
	uint16_t reserved_;
	uint16_t free_;
} vez_rwlock_t;

VEZ_ASSERT_SIZE_(vez_rwlock_t, 56);

/* A free lock with VEZ_RW_HOARE. All-zero bytes are one, too. */
#define VEZ_RWLOCK_INITIALIZER { VEZ_CORE_INITIALIZER_(0), 0, 0, 0, 0, 0, 0, 0 }

/* Makes a free lock. EINVAL: no such policy. */
int vez_rwlock_init(vez_rwlock_t *l, unsigned policy);

/* EBUSY, and nothing has changed, while somebody holds it or requests are queued. */
int vez_rwlock_destroy(vez_rwlock_t *l);

/* Holds it for reading, waiting as long as it takes. 0; EOVERFLOW if there are VEZ_RWLOCK_MAX_READERS holds when it is
 * called and nobody writes or waits to. One that waits already goes on waiting until there is room. */
int vez_rwlock_rdlock(vez_rwlock_t *l);

/* Holds it for reading if that is possible without waiting: 0; else EBUSY, and nothing has changed. EOVERFLOW as
 * vez_rwlock_rdlock. Honours the queue, by policy. Makes no system call, but while readers that waited are about to be
 * let in, and another call is inside at that moment: then it waits until that has left. */
int vez_rwlock_tryrdlock(vez_rwlock_t *l);

/* Also ends with ETIMEDOUT at the deadline, or with ECANCELED when the token (which may be NULL) fires. */
int vez_rwlock_rdlock_until(vez_rwlock_t *l, vez_deadline_t deadline, vez_cancel_t *cancel);

/* The same without waiting, by the request's limits (vez/request.h): 0, EINPROGRESS, or an error. */
int vez_rwlock_rdlock_async(vez_rwlock_t *l, vez_request_t *r);

/* Gives a read hold back; any thread. EPERM, and nothing has changed, if there is none that could be given back: nobody
 * reads, or all who do are upgraded or wait to be. */
int vez_rwlock_rdunlock(vez_rwlock_t *l);

/* The same for writing; trywrlock waits for no other call. */
int vez_rwlock_wrlock(vez_rwlock_t *l);
int vez_rwlock_trywrlock(vez_rwlock_t *l);
int vez_rwlock_wrlock_until(vez_rwlock_t *l, vez_deadline_t deadline, vez_cancel_t *cancel);
int vez_rwlock_wrlock_async(vez_rwlock_t *l, vez_request_t *r);

/* EPERM if nobody writes, and while one is upgraded. */
int vez_rwlock_wrunlock(vez_rwlock_t *l);

/* Gives up what the caller holds, whichever way: vez_rwlock_wrunlock or vez_rwlock_rdunlock. A caller that holds
 * nothing gives up another thread's hold. EPERM if nobody holds it, and while one is upgraded. */
int vez_rwlock_unlock(vez_rwlock_t *l);

/* The writer becomes a reader, and no writer comes in between. EPERM if nobody writes, and while one is upgraded. */
int vez_rwlock_downgrade(vez_rwlock_t *l);

/* A reader becomes the only one inside, and keeps its read hold: 0. After ETIMEDOUT and ECANCELED it reads on as
 * before: if another one is upgraded when it gives up, the call returns only after that one has undone it. EPERM if
 * there is no read hold but of those who wait to upgrade, and while one is upgraded. */
int vez_rwlock_upgrade_until(vez_rwlock_t *l, vez_deadline_t deadline, vez_cancel_t *cancel);

/* The same if that is possible without waiting: 0; else EBUSY, and nothing has changed. EPERM as
 * vez_rwlock_upgrade_until. */
int vez_rwlock_try_upgrade(vez_rwlock_t *l);

/* The upgraded one returns to reading. EPERM if nobody is upgraded. */
int vez_rwlock_undo_upgrade(vez_rwlock_t *l);

/* How many requests are queued: readers, writers and upgraders. Any thread, any time, signal handlers included. */
size_t vez_rwlock_waiters(const vez_rwlock_t *l);

VEZ_END_DECLS_

#endif
