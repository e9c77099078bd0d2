/* SPDX-License-Identifier: MIT */
/*
 * A synchronizer of one's own: a watermark, on which threads wait until it has reached their number.
 *
 * Here it tells writers how far a log is on the disk (group commit): each appends a record, gets its number, and waits
 * until that much has been written; one thread writes what has been appended, and raises the mark. With a condition
 * variable every raise would wake every writer to look. Here the room is ordered by number, so the thread that raises
 * the mark settles the first few requests and stops at the first that has to wait on; those threads wake, and no
 * others.
 *
 * What a synchronizer is made of: a monitor, a room for each kind of waiter, and the state. A call that cannot go on
 * files a request and waits; the call that changes the state settles those who can go, and leaving the monitor wakes
 * them. A deadline and a token come for free. A waiter that gives up holds nobody back here, so there is no rule for
 * that (README.md has a semaphore, which needs one).
 *
 * Exit status 0: no writer returned before its record was on the disk, and one that gave up was told so.
 */
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <vez.h>

struct watermark {
	vez_monitor_t monitor;
	vez_room_t room; /* by number */
	int64_t reached;
};

#define WATERMARK_INITIALIZER { VEZ_MONITOR_INITIALIZER(NULL), VEZ_ROOM_INITIALIZER, 0 }

/* Waits until the mark is at least so high: 0, ETIMEDOUT or ECANCELED. */
static int watermark_wait(struct watermark *w, int64_t number, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	vez_request_t r = VEZ_REQUEST_INITIALIZER;
	vez_request_set_key(&r, number);
	vez_request_set_value(&r, &number, 0);
	vez_monitor_enter(&w->monitor);
	if (w->reached < number)
		return vez_monitor_wait(&w->monitor, &w->room, &r, deadline, cancel);
	vez_monitor_exit(&w->monitor);
	return 0;
}

/* Raises it; wakes those who waited for no more than that. */
static void watermark_raise(struct watermark *w, int64_t number)
{
	vez_monitor_enter(&w->monitor);
	if (w->reached < number)
		w->reached = number;
	for (vez_request_t *r; (r = vez_room_first(&w->room)) && *(int64_t *)vez_request_ptr(r) <= w->reached;)
		vez_monitor_settle(&w->monitor, r, 0);
	vez_monitor_exit(&w->monitor);
}

static size_t watermark_waiters(const struct watermark *w)
{
	return vez_room_length(&w->room);
}

/* ---- a log ---- */

#define WRITERS 16
#define RECORDS 50 /* of each writer */

static struct watermark durable = WATERMARK_INITIALIZER;
static vez_event_t work; /* set: something was appended */
static vez_cancel_t stop = VEZ_CANCEL_INITIALIZER;
static int64_t appended, on_disk;
static unsigned too_early, writes;

static void *write_records(void *arg)
{
	for (int i = 0; i < RECORDS; i++) {
		int64_t number = __atomic_add_fetch(&appended, 1, __ATOMIC_RELAXED);
		vez_event_set(&work);
		watermark_wait(&durable, number, VEZ_FOREVER, NULL);
		if (__atomic_load_n(&on_disk, __ATOMIC_RELAXED) < number)
			__atomic_store_n(&too_early, 1, __ATOMIC_RELAXED);
	}
	return arg;
}

/* One write for all that has come during the last one. */
static void *flush(void *arg)
{
	while (vez_event_wait_until(&work, VEZ_FOREVER, &stop) == 0) {
		int64_t number = __atomic_load_n(&appended, __ATOMIC_RELAXED);
		nanosleep(&(struct timespec){ 0, 200000 }, NULL); /* fdatasync */
		__atomic_store_n(&on_disk, number, __ATOMIC_RELAXED);
		writes++;
		watermark_raise(&durable, number);
	}
	return arg;
}

int main(void)
{
	pthread_t writers[WRITERS], flusher;
	vez_event_init(&work, VEZ_AUTO_RESET);
	pthread_create(&flusher, NULL, flush, NULL);
	for (int i = 0; i < WRITERS; i++)
		pthread_create(&writers[i], NULL, write_records, NULL);
	for (int i = 0; i < WRITERS; i++)
		pthread_join(writers[i], NULL);
	int late = watermark_wait(&durable, WRITERS * RECORDS + 1, vez_after_ms(5), NULL);
	vez_cancel_fire(&stop);
	pthread_join(flusher, NULL);
	printf("%d records in %u writes; a wait ended too early: %s\n", WRITERS * RECORDS, writes,
	       too_early ? "yes" : "no");
	return too_early || writes > WRITERS * RECORDS || late != ETIMEDOUT || watermark_waiters(&durable) != 0 ||
	       vez_monitor_destroy(&durable.monitor) || vez_event_destroy(&work) || vez_cancel_destroy(&stop);
}
