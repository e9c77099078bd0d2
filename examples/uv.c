/* SPDX-License-Identifier: MIT */
/*
 * A program on libuv that lets two of its 10,000 jobs at a time into libuv's pool of four threads, so that two are left
 * for everybody else; the jobs that wait need no thread.
 *
 * Each job asks for a slot of a semaphore, asynchronously. What is decided joins a list of completions, whose eventfd a
 * uv_poll_t watches: the slot is given back by the thread that worked, and the tick wakes the loop. Every fourth job
 * has a deadline. SIGTERM, which the program sends to itself, fires the token that all of them name.
 *
 * Exit status 0: every job ended once, never more than two were worked for, all waited at once, and there was no thread
 * but the main one, the one that keeps deadlines, and those of the pool.
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>
#include <vez.h>

#define ALL 10000
#define SLOTS 2
#define POOL 4
#define STOP_AFTER 2000 /* jobs, two in 100 us: 100 ms at least */
#define LIMIT_MS 50

#define MUST(what) ((what) ? (void)0 : fail(#what, __LINE__))

static _Noreturn void fail(const char *what, int line)
{
	fprintf(stderr, "line %d: not so: %s\n", line, what);
	exit(1);
}

struct job {
	vez_request_t request; /* the first member: what comes out of the list is the job */
	uv_work_t work;
};

static vez_sem_t slots = VEZ_SEM_INITIALIZER(0);
static vez_cancel_t stop = VEZ_CANCEL_INITIALIZER;
static vez_completions_t decided;
static struct job jobs[ALL];
static uv_loop_t *loop;
static uv_poll_t ticks;
static int efd;
static unsigned done, late, cancelled; /* the loop's */
static unsigned at_work;               /* the pool's */

static void ended(unsigned *count)
{
	++*count;
	if (done + late + cancelled == ALL)
		uv_close((uv_handle_t *)&ticks, NULL); /* nothing is left to do: the loop ends */
}

/* On a thread of the pool. */
static void work(uv_work_t *w)
{
	(void)w;
	MUST(__atomic_add_fetch(&at_work, 1, __ATOMIC_RELAXED) <= SLOTS);
	nanosleep(&(struct timespec){ 0, 100000 }, NULL);
	__atomic_sub_fetch(&at_work, 1, __ATOMIC_RELAXED);
	vez_sem_release(&slots, 1);
}

static void worked(uv_work_t *w, int status)
{
	(void)w;
	MUST(status == 0);
	if (done + 1 == STOP_AFTER)
		kill(getpid(), SIGTERM);
	ended(&done);
}

/* With a result of 0 a slot is taken. */
static void go_on(struct job *j, int result)
{
	if (result == 0) {
		MUST(uv_queue_work(loop, &j->work, work, worked) == 0);
	} else if (result == ETIMEDOUT) {
		ended(&late);
	} else {
		MUST(result == ECANCELED);
		ended(&cancelled);
	}
}

static void submit(struct job *j, bool limited)
{
	vez_request_init_completions(&j->request, &decided);
	vez_request_set_limits(&j->request, limited ? vez_after_ms(LIMIT_MS) : VEZ_FOREVER, &stop);
	int rc = vez_sem_acquire_async(&slots, 1, &j->request);
	if (rc != EINPROGRESS)
		go_on(j, rc); /* at once */
}

/* After a tick the list is emptied: the next tick comes when it ceases to be empty. */
static void take_decided(uv_poll_t *handle, int status, int events)
{
	uint64_t number;
	(void)handle, (void)events;
	MUST(status == 0 && read(efd, &number, sizeof number) == sizeof number);
	for (vez_request_t *r; (r = vez_completions_next(&decided));)
		go_on((struct job *)r, vez_request_result(r));
}

static unsigned threads(void)
{
	unsigned count = 0;
	DIR *tasks = opendir("/proc/self/task");
	MUST(tasks);
	for (struct dirent *d; (d = readdir(tasks));)
		count += d->d_name[0] != '.';
	closedir(tasks);
	return count;
}

int main(void)
{
	alarm(60);
	loop = uv_default_loop();
	efd = eventfd(0, EFD_NONBLOCK);
	vez_completions_init(&decided, efd);
	MUST(uv_poll_init(loop, &ticks, efd) == 0 && uv_poll_start(&ticks, UV_READABLE, take_decided) == 0);
	MUST(vez_cancel_on_signal(&stop, SIGTERM) == 0);
	for (int i = 0; i < ALL; i++)
		submit(&jobs[i], i % 4 == 0);
	printf("%zu jobs wait, %u threads\n", vez_sem_waiters(&slots), threads());
	MUST(vez_sem_waiters(&slots) >= ALL / 4 * 3 && threads() <= 2);
	vez_sem_release(&slots, SLOTS);
	MUST(uv_run(loop, UV_RUN_DEFAULT) == 0 && threads() <= 2 + POOL);
	printf("%u done, %u late, %u cancelled\n", done, late, cancelled);
	MUST(done + late + cancelled == ALL && done >= STOP_AFTER && late > 0 && cancelled > 0);
	MUST(vez_sem_waiters(&slots) == 0 && vez_sem_permits(&slots) == SLOTS);
	MUST(vez_cancel_on_signal(NULL, SIGTERM) == 0);
	MUST(vez_cancel_destroy(&stop) == 0 && vez_sem_destroy(&slots) == 0);
	MUST(uv_loop_close(loop) == 0);
	return 0;
}
