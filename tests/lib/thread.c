/* SPDX-License-Identifier: MIT */
/* Threads of a test. */
#include "thread.h"

#include <dirent.h>
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_NS INT64_C(20000000000)
#define TURN_NS INT64_C(2000000) /* what one look counts for at most */
#define FREEZE_SIGNAL SIGUSR2

static __thread struct thread *self;
static __thread bool ends;
static struct thread *threads;
static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;

static int64_t clock_ns(clockid_t clock)
{
	struct timespec ts = { 0, 0 };
	clock_gettime(clock, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t real_now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

void pester(struct thread *t, int64_t until)
{
	while (!thread_done(t) && real_now() < until) {
		pthread_kill(t->id, SIGUSR1);
		sched_yield();
	}
}

void handle_nothing(int signo)
{
	(void)signo;
}

int64_t own_cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* ---- threads ---- */

static void list(struct thread *t)
{
	pthread_mutex_lock(&threads_lock);
	t->next = threads;
	threads = t;
	pthread_mutex_unlock(&threads_lock);
}

static void unlist(struct thread *t)
{
	pthread_mutex_lock(&threads_lock);
	struct thread **at = &threads;
	while (*at && *at != t)
		at = &(*at)->next;
	if (*at)
		*at = t->next;
	pthread_mutex_unlock(&threads_lock);
}

static void *body(void *arg)
{
	struct thread *t = arg;
	self = t;
	t->cpu_before = own_cpu_ns();
	STORE(&t->tid, (pid_t)syscall(SYS_gettid));
	t->run(t->arg);
	ends = true;
	STORE(&t->done, true);
	return NULL;
}

void thread_start(struct thread *t, void (*run)(void *arg), void *arg)
{
	const char *name = t->name;
	memset(t, 0, sizeof *t);
	t->name = name;
	t->run = run;
	t->arg = arg;
	list(t);
	if (pipe(t->thaw) != 0 || pthread_create(&t->id, NULL, body, t) != 0)
		abort();
	UNTIL(LOAD(&t->tid) != 0);
}

void thread_join(struct thread *t)
{
	UNTIL(thread_done(t));
	pthread_join(t->id, NULL);
	unlist(t);
	close(t->thaw[0]);
	close(t->thaw[1]);
}

bool thread_done(const struct thread *t)
{
	return LOAD(&t->done);
}

bool thread_ends(void)
{
	return ends;
}

/* ---- where it stands ---- */

static size_t read_task(pid_t tid, const char *what, char *text, size_t size)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/self/task/%d/%s", (int)tid, what);
	FILE *f = fopen(path, "r");
	size_t length = f ? fread(text, 1, size - 1, f) : 0;
	text[length] = '\0';
	if (f)
		fclose(f);
	return length;
}

bool thread_syscall(const struct thread *t, unsigned long call[7])
{
	char text[256];
	if (thread_done(t) || read_task(t->tid, "syscall", text, sizeof text) == 0)
		return false;
	return sscanf(text, "%lu %lx %lx %lx %lx %lx %lx", &call[0], &call[1], &call[2], &call[3], &call[4], &call[5],
		      &call[6]) == 7;
}

uintptr_t thread_futex(const struct thread *t)
{
	unsigned long call[7];
	if (!thread_syscall(t, call) || (call[0] != CALL_FUTEX && call[0] != CALL_RESTART_SYSCALL))
		return 0;
	return (call[2] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET ? call[1] : 0;
}

void thread_await_parked(const struct thread *t)
{
	UNTIL(thread_futex(t) != 0);
}

unsigned list_threads(pid_t *tids)
{
	unsigned count = 0;
	DIR *tasks = opendir("/proc/self/task");
	for (struct dirent *task; tasks && (task = readdir(tasks));)
		if (task->d_name[0] != '.' && count < 16)
			tids[count++] = atoi(task->d_name);
	if (tasks)
		closedir(tasks);
	return count;
}

static bool others_sleep(void)
{
	pid_t tids[16], own = (pid_t)syscall(SYS_gettid);
	char text[256];
	unsigned count = list_threads(tids);
	for (unsigned i = 0; i < count; i++)
		if (tids[i] != own && (read_task(tids[i], "syscall", text, sizeof text) == 0 || text[0] == 'r'))
			return false; /* it is gone, or "running" */
	return true;
}

pid_t fork_when_quiet(void)
{
	UNTIL(others_sleep());
	return fork();
}

bool right_or_too_late(int status)
{
	return status == 0 || (WIFEXITED(status) && WEXITSTATUS(status) == TOO_LATE);
}

int64_t thread_cpu_ns(const struct thread *t)
{
	clockid_t clock;
	return pthread_getcpuclockid(t->id, &clock) == 0 ? clock_ns(clock) - t->cpu_before : 0;
}

void thread_pin_to_one_cpu(void)
{
	cpu_set_t all, one;
	sched_getaffinity(0, sizeof all, &all);
	int cpu = 0;
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof one, &one) != 0)
		abort();
}

/* ---- freezing ---- */

static void stop_here(int signo)
{
	int saved = errno;
	char byte;
	(void)signo;
	STORE(&self->frozen, true);
	while (read(self->thaw[0], &byte, 1) < 0 && errno == EINTR)
		;
	STORE(&self->frozen, false);
	errno = saved;
}

void thread_freeze(struct thread *t)
{
	struct sigaction action;
	memset(&action, 0, sizeof action);
	action.sa_handler = stop_here;
	sigaction(FREEZE_SIGNAL, &action, NULL);
	pthread_kill(t->id, FREEZE_SIGNAL);
	UNTIL(LOAD(&t->frozen));
}

void thread_thaw(struct thread *t)
{
	if (write(t->thaw[1], "", 1) != 1)
		abort();
	UNTIL(!LOAD(&t->frozen));
}

void thread_kick(struct thread *t)
{
	thread_freeze(t);
	thread_thaw(t);
}

/* ---- gates ---- */

void gate_init(struct gate *g)
{
	sem_init(&g->opened, 0, 0);
	g->arrived = g->opens = g->passed = 0;
}

void gate_pass(struct gate *g)
{
	ADD(&g->arrived, 1);
	while (sem_wait(&g->opened) != 0)
		;
	ADD(&g->passed, 1);
}

void gate_await(struct gate *g, unsigned arrived)
{
	UNTIL(LOAD(&g->arrived) >= arrived);
}

void gate_open(struct gate *g)
{
	unsigned opens = ADD(&g->opens, 1);
	sem_post(&g->opened);
	UNTIL(LOAD(&g->passed) >= opens || LOAD(&g->arrived) < opens);
}

/* ---- the watch ---- */

struct watch watch_start(const char *what, const char *file, int line)
{
	return (struct watch){ 0, real_now(), what, file, line };
}

static void report(const struct thread *t)
{
	char call[256], wchan[64];
	read_task(t->tid, "syscall", call, sizeof call);
	read_task(t->tid, "wchan", wchan, sizeof wchan);
	fprintf(stderr, "  thread %d %s: %s; system call and arguments: %s; in the kernel: %s\n", (int)t->tid,
		t->name ? t->name : "", thread_done(t) ? "done" : "not done", call, wchan);
	uintptr_t word = thread_futex(t);
	if (word)
		fprintf(stderr, "    sleeps on %#lx, which now reads %#x\n", (unsigned long)word,
			__atomic_load_n((const uint32_t *)word, __ATOMIC_RELAXED));
}

void watch_look(struct watch *w)
{
	int64_t now = real_now(), turn = now - w->last;
	w->waited += turn < TURN_NS ? turn : TURN_NS;
	w->last = now;
	if (w->waited < LIMIT_NS) {
		sched_yield();
		return;
	}
	fprintf(stderr, "%s:%d: waited in vain until %s\n", w->file, w->line, w->what);
	for (const struct thread *t = threads; t; t = t->next)
		report(t);
	abort();
}
