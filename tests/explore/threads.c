/* SPDX-License-Identifier: MIT */
/*
 * The scenarios of the explorer on real threads: each is run ROUNDS times, as the machine schedules it.
 *
 *	explore-threads [--list] [--scenario=PATTERN] [--rounds=N] [--seed=S]
 *
 * What the explorer decides happens by chance here: deadlines are short and random, a signal comes at a random moment.
 * Dead memory is overwritten, so that ThreadSanitizer reports whoever touches it late. Built with SAN=thread it checks
 * the plain variables of the scenarios for races, on the library as it is; signal scenarios are left out then, because
 * handlers are deferred until a call that ThreadSanitizer knows. Ends with 'N passed, N failed'; a round that takes
 * longer than 30 s hangs.
 */
#include <errno.h>
#include <fnmatch.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "scenario.h"
#include "src/futex/atomic.h"

#define HANGS_AFTER 30

extern const struct x_scenario *__start_x_scenarios[];
extern const struct x_scenario *__stop_x_scenarios[];

static const struct x_scenario *scenario;
static unsigned passed, round_now;
static uint64_t seed = 1;
static uint32_t go, handled;

static uint64_t random_next(void)
{
	uint64_t x = vez__fetch_add(&seed, UINT64_C(0x9e3779b97f4a7c15), relaxed);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	return x ^ (x >> 27);
}

static void give_up(const char *text)
{
	fprintf(stderr, "FAIL   %s, round %u: %s\n", scenario->name, round_now, text);
	printf("%u passed, 1 failed\n", passed);
	fflush(stdout);
	_exit(1);
}

static void on_alarm(int signo)
{
	static const char text[] = "a scenario hangs\n";
	(void)signo;
	if (write(2, text, sizeof text - 1) > 0)
		write(2, scenario->name, strlen(scenario->name));
	_exit(3);
}

void x_failed(const char *file, int line, const char *condition)
{
	char text[300];
	snprintf(text, sizeof text, "%s:%d: %s", file, line, condition);
	give_up(text);
}

void x_outcome(unsigned n)
{
	char text[40];
	snprintf(text, sizeof text, "outcome %u", n);
	if (!(scenario->outcomes >> n & 1))
		give_up(text);
}

void x_look(void)
{
}

void x_yield(void)
{
	sched_yield();
}

void x_looked(void)
{
}

void x_dead(void *object, size_t size)
{
	memset(object, 0xdb, size);
}

void x_alive(void *object, size_t size)
{
	(void)object;
	(void)size;
}

vez_deadline_t x_soon(void)
{
	return vez_after_us((int64_t)(1 + random_next() % 200));
}

void x_spin(unsigned pauses)
{
	(void)pauses;
}

void x_name(const void *object, size_t size, const char *name)
{
	(void)object;
	(void)size;
	(void)name;
}

/* The library's own thread is the alarm clock here. */
void x_make_alarm(void)
{
}

void x_alarm(void)
{
}

static struct {
	int fd;
	unsigned ticks;
} eventfds[X_EVENTFDS];

int x_eventfd(unsigned i)
{
	if (eventfds[i].fd == 0)
		eventfds[i].fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	x_ticked(i);
	vez__store(&eventfds[i].ticks, 0, relaxed);
	return eventfds[i].fd;
}

unsigned x_ticked(unsigned i)
{
	uint64_t more = 0;
	if (read(eventfds[i].fd, &more, sizeof more) < 0)
		more = 0;
	return vez__fetch_add(&eventfds[i].ticks, (unsigned)more, relaxed) + (unsigned)more;
}

void x_eventfd_dead(unsigned i)
{
	(void)i;
}

bool x_raise(int signo)
{
	struct sigaction action;
	sigaction(signo, NULL, &action);
	return action.sa_handler != SIG_DFL && raise(signo) == 0;
}

static void on_signal(int signo)
{
	int saved = errno;
	(void)signo;
	scenario->signal();
	vez__store(&handled, 1, release);
	errno = saved;
}

static void pause_randomly(void)
{
	for (uint64_t n = random_next() % 200; n > 0; n--)
		vez__pause();
}

static void *thread_main(void *arg)
{
	size_t id = (size_t)arg;
	while (!vez__load(&go, acquire))
		sched_yield();
	pause_randomly();
	scenario->thread[id]();
	while (id == 0 && scenario->signal && !vez__load(&handled, acquire))
		sched_yield();
	return NULL;
}

static void run_round(void)
{
	pthread_t threads[X_THREADS];
	size_t count = 0;
	vez__store(&go, 0, relaxed);
	vez__store(&handled, 0, relaxed);
	scenario->setup();
	for (; count < X_THREADS && scenario->thread[count]; count++)
		if (pthread_create(&threads[count], NULL, thread_main, (void *)count) != 0)
			give_up("no thread");
	vez__store(&go, 1, release);
	if (scenario->signal) {
		pause_randomly();
		pthread_kill(threads[0], SIGUSR1);
	}
	for (size_t i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	if (scenario->check)
		scenario->check();
}

static bool left_out(void)
{
#ifdef VEZ__TSAN
	return scenario->signal || scenario->open;
#else
	return false;
#endif
}

static void run_scenario(unsigned rounds)
{
	if (left_out()) {
		printf("-      %-30s left out\n", scenario->name);
		return;
	}
	for (round_now = 0; round_now < rounds; round_now++) {
		alarm(HANGS_AFTER);
		run_round();
	}
	alarm(0);
	printf("ok     %-30s %u rounds\n", scenario->name, rounds);
	fflush(stdout);
	passed++;
}

static void catch(int signo, void (*handler)(int))
{
	struct sigaction sa;
	memset(&sa, 0, sizeof sa);
	sa.sa_handler = handler;
	sigaction(signo, &sa, NULL);
}

int main(int argc, char **argv)
{
	const char *pattern = "*";
	unsigned rounds = 300;
	bool list = false;
	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], "--scenario=", 11) == 0)
			pattern = argv[i] + 11;
		else if (strncmp(argv[i], "--rounds=", 9) == 0)
			rounds = (unsigned)strtoul(argv[i] + 9, NULL, 0);
		else if (strncmp(argv[i], "--seed=", 7) == 0)
			seed = strtoull(argv[i] + 7, NULL, 0);
		else if (strcmp(argv[i], "--list") == 0)
			list = true;
		else
			return fprintf(stderr, "usage: %s [--list] [--scenario=PATTERN] [--rounds=N] [--seed=S]\n",
				       argv[0]), 2;
	}
	catch(SIGALRM, on_alarm);
	catch(SIGUSR1, on_signal);
	for (const struct x_scenario **s = __start_x_scenarios; s < __stop_x_scenarios; s++) {
		scenario = *s;
		if (fnmatch(pattern, scenario->name, 0) != 0)
			continue;
		if (list)
			printf("%s\n", scenario->name);
		else
			run_scenario(rounds);
	}
	if (!list)
		printf("%u passed, 0 failed\n", passed);
	return 0;
}
