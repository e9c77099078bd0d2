/* SPDX-License-Identifier: MIT */
/* The system calls. errno is left as it was: vez reports by return value only. */
#include "sys.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <linux/futex.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../fault.h"
#include "atomic.h"

#define NS_PER_S INT64_C(1000000000)
/* How late a signal may be handled that is held back. */
#define SIGNALS_LATE_NS INT64_C(50000000)

/* SYS_futex takes two longs, whatever the C library's time_t. */
struct kernel_timespec {
	long sec;
	long nsec;
};

/* The result, or minus the error number. Where the C library's function is passed by, a thread that has slept finds
 * neither that nor errno to be fetched to its caches again: 2 to 4 % of the time of a hand-off. */
static VEZ__HOT long futex(uint32_t *word, int op, bool shared, uint32_t val, const void *val2, uint32_t *word2,
			   uint32_t val3)
{
	long rc;
	op = shared ? op : op | FUTEX_PRIVATE_FLAG;
#if defined(__x86_64__) && defined(__LP64__)
	register const void *fourth __asm__("r10") = val2;
	register uint32_t *fifth __asm__("r8") = word2;
	register uint32_t sixth __asm__("r9") = val3;
	__asm__ __volatile__("syscall"
			     : "=a"(rc)
			     : "a"(SYS_futex), "D"(word), "S"(op), "d"(val), "r"(fourth), "r"(fifth), "r"(sixth)
			     : "rcx", "r11", "memory");
#else
	int saved = errno;
	rc = syscall(SYS_futex, word, op, val, val2, word2, val3);
	if (rc < 0) {
		rc = -errno;
		errno = saved;
	}
#endif
	return rc;
}

/* Where long has 32 bits a late moment is cut; the caller reads the clock and waits again. */
static struct kernel_timespec kernel_time(int64_t moment)
{
	int64_t sec = moment / NS_PER_S;
	return (struct kernel_timespec){ sec > LONG_MAX ? LONG_MAX : (long)sec, (long)(moment % NS_PER_S) };
}

static VEZ__HOT int wait_until(uint32_t *word, uint32_t expected, vez_deadline_t deadline, uint32_t bits, bool shared)
{
	struct kernel_timespec ts;
	const struct kernel_timespec *limit = NULL;
	if (deadline != VEZ_FOREVER) {
		ts = kernel_time(deadline);
		limit = &ts;
	}
	return (int)-futex(word, FUTEX_WAIT_BITSET, shared, expected, limit, NULL, bits);
}

/* Whether a program's signal handlers wait for this thread to call a function that ThreadSanitizer knows. */
static bool holds_back(void)
{
#ifdef VEZ__TSAN
	return true;
#else
	return vez__watches(VEZ__HELD_BACK);
#endif
}

/* A wait with a limit ends with EINTR when a signal comes, one without is begun anew by the kernel. What came just
 * before the wait is noticed at its end. */
static vez_deadline_t bounded(vez_deadline_t deadline)
{
	int64_t limit = vez__sys_now() + SIGNALS_LATE_NS;
	return deadline < limit ? deadline : limit;
}

/* Runs the handlers that were held back: this is one of those functions. */
static void let_signals_in(void)
{
	sigset_t mask;
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
}

static int wait_letting_signals_in(uint32_t *word, uint32_t expected, vez_deadline_t deadline, uint32_t bits,
				   bool shared)
{
	let_signals_in();
	int rc = wait_until(word, expected, bounded(deadline), bits, shared);
	let_signals_in();
	return rc;
}

VEZ__HOT int vez__sys_futex_wait(uint32_t *word, uint32_t expected, vez_deadline_t deadline, uint32_t bits, bool shared)
{
	if (VEZ__UNLIKELY(holds_back()))
		return wait_letting_signals_in(word, expected, deadline, bits, shared);
	return wait_until(word, expected, deadline, bits, shared);
}

VEZ__HOT int vez__sys_futex_wake(uint32_t *word, int count, uint32_t bits, bool shared)
{
	/* Some sandboxes let only the first pass. */
	int op = bits == FUTEX_BITSET_MATCH_ANY ? FUTEX_WAKE : FUTEX_WAKE_BITSET;
	long woken = futex(word, op, shared, (uint32_t)count, NULL, NULL, bits);
	bool gone = woken == -EFAULT || woken == -EINVAL; /* or used anew: EINVAL, where a lock with priorities is */
	return gone ? 0 : (int)woken;
}

VEZ__HOT int vez__sys_futex_wake_op(uint32_t *first, uint32_t *second, uint32_t value, uint32_t threshold, bool shared)
{
	uint32_t op = FUTEX_OP(FUTEX_OP_SET, value, FUTEX_OP_CMP_GE, threshold);
	long rc = futex(first, FUTEX_WAKE_OP, shared, 1, (const void *)(uintptr_t)1, second, op);
	return rc < 0 ? (int)-rc : 0;
}

int64_t vez__sys_now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

int vez__sys_cpus(void)
{
	/* The system call itself: the C library's wrapper refuses machines with more processors than cpu_set_t. */
	unsigned long mask[1024 / sizeof(unsigned long)];
	int saved = errno;
	long bytes = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
	errno = saved;
	int count = 0;
	for (size_t i = 0; i < (size_t)(bytes < 0 ? 0 : bytes) / sizeof mask[0]; i++)
		count += __builtin_popcountl(mask[i]);
	return count > 0 ? count : 1;
}

void vez__sys_tick(int efd)
{
	int saved = errno;
	uint64_t one = 1;
	/* Not write(): that is a pthread cancellation point. */
	while (syscall(SYS_write, efd, &one, sizeof one) < 0 && errno == EINTR)
		;
	errno = saved;
}

static void block_others_signals(sigset_t *before)
{
	sigset_t others;
	vez__fill_but_faults(&others);
	pthread_sigmask(SIG_SETMASK, &others, before);
}

int vez__sys_thread(pthread_t *thread, void *(*run)(void *))
{
	sigset_t before;
	block_others_signals(&before);
	int saved = errno;
	int rc = pthread_create(thread, NULL, run, NULL);
	errno = saved;
	vez__sys_restore_signals(&before);
	return rc ? EAGAIN : 0;
}

void vez__sys_join(pthread_t thread)
{
	pthread_join(thread, NULL);
}

void vez__sys_detach(pthread_t thread)
{
	pthread_detach(thread);
}

void vez__sys_block_signals(sigset_t *before)
{
	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, before);
}

void vez__sys_restore_signals(const sigset_t *before)
{
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

bool vez__sys_blocks_signals(void)
{
	sigset_t blocked;
	sigemptyset(&blocked);
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	for (int signo = 1; signo <= SIGRTMAX; signo++)
		if (sigismember(&blocked, signo) == 1)
			return true;
	return false;
}

int vez__sys_handle(int signo, void (*handler)(int), struct sigaction *before)
{
	int saved = errno;
	struct sigaction replaced, action = { .sa_flags = SA_RESTART };
	action.sa_handler = handler;
	int rc = sigaction(signo, &action, &replaced);
	errno = saved;
	if (rc == 0 && replaced.sa_handler != handler)
		*before = replaced;
	return rc ? EINVAL : 0;
}

void vez__sys_unhandle(int signo, void (*handler)(int), const struct sigaction *before)
{
	struct sigaction now;
	if (sigaction(signo, NULL, &now) == 0 && now.sa_handler == handler)
		sigaction(signo, before, NULL);
}

void vez__sys_nap(int64_t until)
{
	int saved = errno;
	struct kernel_timespec ts = kernel_time(until);
	/* Not clock_nanosleep(): that is a pthread cancellation point. */
	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
	errno = saved;
}

void vez__sys_say(const char *line)
{
	int saved = errno;
	syscall(SYS_write, STDERR_FILENO, line, strlen(line));
	errno = saved;
}

void vez__sys_die(const char *line)
{
	vez__sys_say(line);
	abort();
}

/* Weak: in a program that is linked statically as a whole nothing is unloaded, and these are not there. Nor may dlopen
 * be named in one, without a warning from the linker. */
extern __typeof__(dladdr1) dladdr1 __attribute__((weak));
extern __typeof__(dlsym) dlsym __attribute__((weak));

void vez__sys_stay_loaded(const void *address)
{
	Dl_info info;
	struct link_map *object = NULL;
	void *(*open)(const char *, int);
	if (!dladdr1 || !dlsym || !dladdr1(address, &info, (void **)&object, RTLD_DL_LINKMAP))
		return;
	if (!object || object->l_name[0] == '\0') /* the program itself */
		return;
	*(void **)&open = dlsym(RTLD_DEFAULT, "dlopen");
	if (open)
		open(object->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

void vez__sys_yield(void)
{
	sched_yield();
}

uint64_t vez__sys_thread_id(void)
{
	return (uint64_t)syscall(SYS_gettid);
}

int vez__sys_errno(int value)
{
	int before = errno;
	errno = value;
	return before;
}
