/* SPDX-License-Identifier: MIT */
/*
 * Threads of a test: start them, wait until they stand where the test needs them, stop them anywhere, and tell where
 * each stands when something takes too long. Nothing here sleeps for a time: it looks until it sees.
 */
#ifndef TEST_THREAD_H
#define TEST_THREAD_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>

struct thread {
	pthread_t id;
	void (*run)(void *arg);
	void *arg;
	const char *name;
	pid_t tid;            /* 0 until it runs */
	int64_t cpu_before;   /* what making it has cost */
	bool done;            /* run has returned */
	bool frozen;          /* inside the handler that stops it */
	int thaw[2];          /* what that handler reads from */
	struct thread *next;  /* all that run, for the report */
};

/* Runs run(arg) in a new thread; returns when the thread exists. The struct must stay where it is. */
void thread_start(struct thread *t, void (*run)(void *arg), void *arg);
void thread_join(struct thread *t);
bool thread_done(const struct thread *t);
/* Whether the calling thread's function has returned, and what is left is its end. */
bool thread_ends(void);

/* The word on which it sleeps in a futex wait, or 0 where it does not. */
uintptr_t thread_futex(const struct thread *t);
/* Waits until it sleeps in a futex wait. */
void thread_await_parked(const struct thread *t);

/* The system call it is in: number and arguments. False: it runs. Under an emulator these are the call and arguments that
 * the emulator makes for it, by the numbers of the machine that it runs on. A futex wait with a deadline that a signal
 * has stopped for nothing goes on as CALL_RESTART_SYSCALL, with the same arguments. A child that ends may do that: fork
 * blocks the signals of its thread for a moment (glibc 2.41 and later), so that SIGCHLD, which is ignored, finds another
 * one. */
bool thread_syscall(const struct thread *t, unsigned long call[7]);
#ifndef CALL_FUTEX
#define CALL_FUTEX SYS_futex
#define CALL_RESTART_SYSCALL SYS_restart_syscall
#define CALL_READ SYS_read
#define CALL_WRITE SYS_write
#endif

/* The threads of the process, of at most 16. */
unsigned list_threads(pid_t *tids);

/* fork, once all other threads sleep in system calls. One that is just being made may hold a lock of a sanitizer, which
 * the child would find taken for ever. */
pid_t fork_when_quiet(void);

/* What such a child ends with if what its parent had set was over before the fork: the test is then made again, with
 * more time. Whether it ended with that, or with 0. */
enum { TOO_LATE = 100 };
bool right_or_too_late(int status);

/* Stops it wherever it is, in a signal handler that reads from a pipe; lets it go on. */
void thread_freeze(struct thread *t);
void thread_thaw(struct thread *t);
/* Interrupts it: a futex wait returns for nothing. */
void thread_kick(struct thread *t);

/* Sends it SIGUSR1 until it is done or the time has come; a handler for that. */
void pester(struct thread *t, int64_t until);
void handle_nothing(int signo);

/* The processor time that the calling thread has used, in nanoseconds. */
int64_t own_cpu_ns(void);
/* The processor time it has used since it began to run, in nanoseconds: what making it costs is not counted. */
int64_t thread_cpu_ns(const struct thread *t);

/* Confines the calling thread, and those it starts, to one processor. */
void thread_pin_to_one_cpu(void);

/* A gate: who passes stops there until it is opened for one; the test sees who has arrived. When it has been opened for
 * somebody who is there, that one does not sleep at it any more. */
struct gate {
	sem_t opened;
	unsigned arrived, opens, passed;
};

void gate_init(struct gate *g);
void gate_pass(struct gate *g);
void gate_await(struct gate *g, unsigned arrived);
void gate_open(struct gate *g);

/* A look that has taken too long ends the test: it says for what, and where every thread stands. Time counts only as
 * far as the looker gets its turns, which on one processor are between those of the others. */
struct watch {
	int64_t waited, last;
	const char *what;
	const char *file;
	int line;
};

struct watch watch_start(const char *what, const char *file, int line);
void watch_look(struct watch *w);

/* Waits until the condition holds. */
#define UNTIL(condition) \
	for (struct watch watch_ = watch_start(#condition, __FILE__, __LINE__); !(condition); watch_look(&watch_))

/* Nanoseconds of CLOCK_MONOTONIC, whatever the test makes the library believe. */
int64_t real_now(void);

#define LOAD(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define STORE(p, value) __atomic_store_n((p), (value), __ATOMIC_RELEASE)
#define ADD(p, value) __atomic_add_fetch((p), (value), __ATOMIC_ACQ_REL)

#endif
