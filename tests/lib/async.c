/* SPDX-License-Identifier: MIT */
/* Asynchronous requests on everything that takes them. */
#include "async.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct async_kind *current;
static int called;

const struct async_kind *async_at(const struct async_kind *kind)
{
	current = kind;
	return kind;
}

const char *async_text(void)
{
	return current ? current->name : "no kind";
}

/* ---- notes ---- */

pid_t own_tid(void)
{
	return (pid_t)syscall(SYS_gettid);
}

static void done(vez_request_t *r, int result, void *arg)
{
	struct note *n = arg;
	void (*then)(struct note *) = n->then;
	(void)r;
	n->result = result;
	n->place = ADD(&called, 1);
	n->by = own_tid();
	ADD(&n->calls, 1);
	if (then)
		then(n);
}

void note_init(struct note *n)
{
	vez_request_init(&n->r, done, n);
	n->calls = n->result = n->place = 0;
	n->by = 0;
}

void notes_reset(void)
{
	STORE(&called, 0);
}

void note_await(const struct note *n)
{
	UNTIL(LOAD(&n->calls) > 0);
}

/* ---- semaphores ---- */

static void make_sem(union async_object *o)
{
	vez_sem_init(&o->sem, 0, 0, 0);
}

static void make_barging_sem(union async_object *o)
{
	vez_sem_init(&o->sem, 0, 0, VEZ_BARGING);
}

static int file_sem(union async_object *o, struct note *n)
{
	return vez_sem_acquire_async(&o->sem, 1, &n->r);
}

static int block_sem(union async_object *o, int *item)
{
	(void)item;
	return vez_sem_acquire(&o->sem, 1);
}

static int let_go_sem(union async_object *o)
{
	return vez_sem_release(&o->sem, 1);
}

static void finish_nothing(union async_object *o)
{
	(void)o;
}

static size_t waiters_sem(const union async_object *o)
{
	return vez_sem_waiters(&o->sem);
}

static int destroy_sem(union async_object *o)
{
	return vez_sem_destroy(&o->sem);
}

static const struct async_kind sem = {
	"semaphore", make_sem, file_sem, block_sem, let_go_sem, finish_nothing, waiters_sem, destroy_sem, true, true,
};
static const struct async_kind barging_sem = {
	"barging semaphore", make_barging_sem, file_sem, block_sem, let_go_sem, finish_nothing, waiters_sem,
	destroy_sem, true, true,
};

/* ---- readers-writer locks: a writer is inside ---- */

static void make_rw(union async_object *o, unsigned policy)
{
	vez_rwlock_init(&o->rwlock, policy);
	vez_rwlock_wrlock(&o->rwlock);
}

static void make_rw_hoare(union async_object *o)
{
	make_rw(o, VEZ_RW_HOARE);
}

static void make_rw_fifo(union async_object *o)
{
	make_rw(o, VEZ_RW_FIFO);
}

static void make_rw_readers(union async_object *o)
{
	make_rw(o, VEZ_RW_READERS);
}

static int file_rd(union async_object *o, struct note *n)
{
	return vez_rwlock_rdlock_async(&o->rwlock, &n->r);
}

static int file_wr(union async_object *o, struct note *n)
{
	return vez_rwlock_wrlock_async(&o->rwlock, &n->r);
}

static int block_rd(union async_object *o, int *item)
{
	(void)item;
	return vez_rwlock_rdlock(&o->rwlock);
}

static int block_wr(union async_object *o, int *item)
{
	(void)item;
	return vez_rwlock_wrlock(&o->rwlock);
}

static int let_go_rw(union async_object *o)
{
	return vez_rwlock_wrunlock(&o->rwlock);
}

static void finish_rw(union async_object *o)
{
	vez_rwlock_wrunlock(&o->rwlock);
	while (vez_rwlock_rdunlock(&o->rwlock) == 0)
		;
}

static size_t waiters_rw(const union async_object *o)
{
	return vez_rwlock_waiters(&o->rwlock);
}

static int destroy_rw(union async_object *o)
{
	return vez_rwlock_destroy(&o->rwlock);
}

#define RW_KIND(id, policy, side, serial) \
	static const struct async_kind side##_##id = { \
		policy " " #side "lock", make_rw_##id, file_##side, block_##side, let_go_rw, finish_rw, waiters_rw, \
		destroy_rw, serial, true, \
	}
RW_KIND(hoare, "Hoare's", rd, false);
RW_KIND(fifo, "FIFO", rd, false);
RW_KIND(readers, "readers-first", rd, false);
RW_KIND(hoare, "Hoare's", wr, true);
RW_KIND(fifo, "FIFO", wr, true);
RW_KIND(readers, "readers-first", wr, true);

/* ---- latch and events ---- */

static void make_latch(union async_object *o)
{
	vez_latch_init(&o->latch, 1);
}

static int file_latch(union async_object *o, struct note *n)
{
	return vez_latch_wait_async(&o->latch, &n->r);
}

static int block_latch(union async_object *o, int *item)
{
	(void)item;
	return vez_latch_wait(&o->latch);
}

static int let_go_latch(union async_object *o)
{
	return vez_latch_count_down(&o->latch, 1);
}

static size_t waiters_latch(const union async_object *o)
{
	return vez_latch_waiters(&o->latch);
}

static int destroy_latch(union async_object *o)
{
	return vez_latch_destroy(&o->latch);
}

static const struct async_kind latch = {
	"latch", make_latch, file_latch, block_latch, let_go_latch, finish_nothing, waiters_latch, destroy_latch,
	false, true,
};

static void make_event(union async_object *o)
{
	vez_event_init(&o->event, 0);
}

static void make_auto_event(union async_object *o)
{
	vez_event_init(&o->event, VEZ_AUTO_RESET);
}

static int file_event(union async_object *o, struct note *n)
{
	return vez_event_wait_async(&o->event, &n->r);
}

static int block_event(union async_object *o, int *item)
{
	(void)item;
	return vez_event_wait(&o->event);
}

static int let_go_event(union async_object *o)
{
	return vez_event_set(&o->event);
}

static size_t waiters_event(const union async_object *o)
{
	return vez_event_waiters(&o->event);
}

static int destroy_event(union async_object *o)
{
	return vez_event_destroy(&o->event);
}

static const struct async_kind event = {
	"event", make_event, file_event, block_event, let_go_event, finish_nothing, waiters_event, destroy_event,
	false, true,
};
static const struct async_kind auto_event = {
	"auto-reset event", make_auto_event, file_event, block_event, let_go_event, finish_nothing, waiters_event,
	destroy_event, true, true,
};

/* ---- queues: putters find them full, takers empty ---- */

static void make_queue(union async_object *o, size_t capacity)
{
	vez_queue_init(&o->queue, o->storage, sizeof(int), capacity);
}

static void make_empty_0(union async_object *o)
{
	make_queue(o, 0);
}

static void make_empty_1(union async_object *o)
{
	make_queue(o, 1);
}

static void make_empty_3(union async_object *o)
{
	make_queue(o, 3);
}

static void fill(union async_object *o)
{
	int item = -1;
	while (vez_queue_try_put(&o->queue, &item) == 0)
		;
}

static void make_full_1(union async_object *o)
{
	make_queue(o, 1);
	fill(o);
}

static void make_full_3(union async_object *o)
{
	make_queue(o, 3);
	fill(o);
}

static int file_put(union async_object *o, struct note *n)
{
	return vez_queue_put_async(&o->queue, &n->item, &n->r);
}

static int file_take(union async_object *o, struct note *n)
{
	return vez_queue_take_async(&o->queue, &n->item, &n->r);
}

static int block_put(union async_object *o, int *item)
{
	return vez_queue_put(&o->queue, item);
}

static int block_take(union async_object *o, int *item)
{
	return vez_queue_take(&o->queue, item);
}

static int let_put(union async_object *o)
{
	int item;
	return vez_queue_try_take(&o->queue, &item);
}

static int let_take(union async_object *o)
{
	int item = 77;
	return vez_queue_try_put(&o->queue, &item);
}

static size_t waiters_queue(const union async_object *o)
{
	return vez_queue_waiters(&o->queue);
}

static int destroy_queue(union async_object *o)
{
	return vez_queue_destroy(&o->queue);
}

#define QUEUE_KIND(side, what, capacity, keeps) \
	static const struct async_kind side##_##capacity = { \
		"queue of " #capacity ", " #side, make_##what##_##capacity, file_##side, block_##side, let_##side, \
		finish_nothing, waiters_queue, destroy_queue, true, keeps, \
	}
QUEUE_KIND(put, empty, 0, false);
QUEUE_KIND(put, full, 1, true);
QUEUE_KIND(put, full, 3, true);
QUEUE_KIND(take, empty, 0, false);
QUEUE_KIND(take, empty, 1, true);
QUEUE_KIND(take, empty, 3, true);

/* ---- groups: another one is inside ---- */

static void make_group(union async_object *o)
{
	vez_group_init(&o->group, 0);
	vez_group_enter(&o->group, 1);
}

static int file_group(union async_object *o, struct note *n)
{
	return vez_group_enter_async(&o->group, 2, &n->r);
}

static int block_group(union async_object *o, int *item)
{
	(void)item;
	return vez_group_enter(&o->group, 2);
}

static int let_go_group(union async_object *o)
{
	return vez_group_leave(&o->group);
}

static void finish_group(union async_object *o)
{
	while (vez_group_leave(&o->group) == 0)
		;
}

static size_t waiters_group(const union async_object *o)
{
	return vez_group_waiters(&o->group);
}

static int destroy_group(union async_object *o)
{
	return vez_group_destroy(&o->group);
}

static const struct async_kind group = {
	"group", make_group, file_group, block_group, let_go_group, finish_group, waiters_group, destroy_group, false,
	true,
};

/* ---- a user's: permits on a monitor ---- */

static void make_user(union async_object *o)
{
	vez_monitor_init(&o->monitor, NULL);
	vez_room_init(&o->room);
	o->permits = 0;
}

static int file_user(union async_object *o, struct note *n)
{
	vez_monitor_enter(&o->monitor);
	if (o->permits == 0)
		return vez_monitor_wait_async(&o->monitor, &o->room, &n->r);
	bool takes = vez_monitor_settle(&o->monitor, &n->r, 0);
	o->permits -= takes;
	vez_monitor_exit(&o->monitor);
	return vez_request_result(&n->r);
}

static int block_user(union async_object *o, int *item)
{
	vez_request_t r = VEZ_REQUEST_INITIALIZER;
	(void)item;
	vez_monitor_enter(&o->monitor);
	if (o->permits == 0)
		return vez_monitor_wait(&o->monitor, &o->room, &r, VEZ_FOREVER, NULL);
	o->permits--;
	vez_monitor_exit(&o->monitor);
	return 0;
}

static int let_go_user(union async_object *o)
{
	vez_monitor_enter(&o->monitor);
	vez_request_t *first = vez_room_first(&o->room);
	if (!first || !vez_monitor_settle(&o->monitor, first, 0))
		o->permits++;
	vez_monitor_exit(&o->monitor);
	return 0;
}

static size_t waiters_user(const union async_object *o)
{
	return vez_room_length(&o->room);
}

static int destroy_user(union async_object *o)
{
	return vez_monitor_destroy(&o->monitor);
}

static const struct async_kind user = {
	"user's monitor", make_user, file_user, block_user, let_go_user, finish_nothing, waiters_user, destroy_user,
	true, true,
};

const struct async_kind *const async_kinds[] = {
	&sem, &barging_sem, &rd_hoare, &rd_fifo, &rd_readers, &wr_hoare, &wr_fifo, &wr_readers, &latch, &event,
	&auto_event, &put_0, &put_1, &put_3, &take_0, &take_1, &take_3, &group, &user, NULL,
};

/* ---- eventfds, threads ---- */

int new_eventfd(void)
{
	return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

uint64_t ticks_in(int efd)
{
	uint64_t ticks = 0;
	return read(efd, &ticks, sizeof ticks) == (ssize_t)sizeof ticks ? ticks : 0;
}

unsigned count_threads(void)
{
	unsigned count = 0;
	DIR *tasks = opendir("/proc/self/task");
	for (struct dirent *task; tasks && (task = readdir(tasks));)
		count += task->d_name[0] != '.';
	if (tasks)
		closedir(tasks);
	return count;
}
