/* SPDX-License-Identifier: MIT */
/*
 * A server on epoll that works for 8 requests at a time, while 10,000 wait and no thread does. To copy: struct call and
 * what follows it up to serve; the clients below make it a program that can be run.
 *
 * A byte on a connection is a request; the server answers with 'd' (done), 'l' (too late: every fourth request has a
 * deadline) or 'c' (cancelled: the server was told to stop by SIGTERM). Each asks for a slot of a semaphore,
 * asynchronously. What is decided joins a list of completions, whose eventfd is one more descriptor of the loop. The
 * work itself is a timer's. The clients are a process of their own, with 100 TCP connections; they send the SIGTERM.
 *
 * Exit status 0: every request was answered once, never more than 8 were worked for, all but those with a deadline
 * waited at once, and there was no thread but the main one and the one that keeps deadlines.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vez.h>

#define CONNECTIONS 100
#define EACH 100
#define ALL (CONNECTIONS * EACH)
#define SLOTS 8
#define STOP_AFTER 2000 /* answers 'd', at 8 in a millisecond: 250 ms */
#define LIMIT_MS 200

#define MUST(what) ((what) ? (void)0 : fail(#what, __LINE__))

static _Noreturn void fail(const char *what, int line)
{
	fprintf(stderr, "line %d: not so: %s\n", line, what);
	exit(1);
}

/* ---- the server ---- */

struct call {
	vez_request_t request; /* the first member: what comes out of the list is the call */
	int connection;
};

static vez_sem_t slots = VEZ_SEM_INITIALIZER(0);
static vez_cancel_t stop = VEZ_CANCEL_INITIALIZER;
static vez_completions_t decided;
static struct call calls[ALL];
static unsigned asked, done, late, cancelled;
static struct call *working[SLOTS];
static unsigned at_work;

static void answer(const struct call *c, char how, unsigned *count)
{
	MUST(write(c->connection, &how, 1) == 1);
	++*count;
}

/* With a result of 0 a slot is taken. */
static void go_on(struct call *c, int result)
{
	if (result == 0) {
		MUST(at_work < SLOTS);
		working[at_work++] = c;
	} else if (result == ETIMEDOUT) {
		answer(c, 'l', &late);
	} else {
		MUST(result == ECANCELED);
		answer(c, 'c', &cancelled);
	}
}

static void ask(struct call *c, int connection)
{
	c->connection = connection;
	vez_request_init_completions(&c->request, &decided);
	vez_request_set_limits(&c->request, asked % 4 ? VEZ_FOREVER : vez_after_ms(LIMIT_MS), &stop);
	int rc = vez_sem_acquire_async(&slots, 1, &c->request);
	if (rc != EINPROGRESS)
		go_on(c, rc); /* at once */
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

/* The slots are given out when all have asked, so that all wait at once. */
static void open_slots(void)
{
	size_t waiting = vez_sem_waiters(&slots);
	printf("%zu requests wait, %u threads\n", waiting, threads());
	MUST(waiting >= ALL / 4 * 3 && threads() <= 2);
	vez_sem_release(&slots, SLOTS);
}

static void read_requests(int connection)
{
	char bytes[EACH];
	ssize_t n = read(connection, bytes, sizeof bytes);
	MUST(n > 0);
	for (; n > 0; n--) {
		MUST(asked < ALL);
		ask(&calls[asked], connection);
		if (++asked == ALL)
			open_slots();
	}
}

static void finish_work(void)
{
	unsigned n = at_work;
	at_work = 0;
	for (unsigned i = 0; i < n; i++)
		answer(working[i], 'd', &done);
	vez_sem_release(&slots, n);
}

/* After a tick the list is emptied: the next tick comes when it ceases to be empty. */
static void take_decided(void)
{
	for (vez_request_t *r; (r = vez_completions_next(&decided));)
		go_on((struct call *)r, vez_request_result(r));
}

static void watch(int loop, int fd)
{
	struct epoll_event e = { .events = EPOLLIN, .data.fd = fd };
	MUST(epoll_ctl(loop, EPOLL_CTL_ADD, fd, &e) == 0);
}

static void serve(int listener)
{
	struct itimerspec work = { { 0, 1000000 }, { 0, 1000000 } };
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	int ticks = eventfd(0, EFD_NONBLOCK);
	int loop = epoll_create1(0);
	uint64_t number;
	vez_completions_init(&decided, ticks);
	MUST(timerfd_settime(timer, 0, &work, NULL) == 0);
	watch(loop, listener);
	watch(loop, timer);
	watch(loop, ticks);
	while (done + late + cancelled < ALL) {
		struct epoll_event e;
		if (epoll_wait(loop, &e, 1, -1) != 1)
			continue; /* SIGTERM */
		if (e.data.fd == listener) {
			watch(loop, accept(listener, NULL, NULL));
		} else if (e.data.fd == timer && read(timer, &number, sizeof number) > 0) {
			finish_work();
		} else if (e.data.fd == ticks && read(ticks, &number, sizeof number) > 0) {
			take_decided();
		} else if (e.data.fd != timer && e.data.fd != ticks) {
			read_requests(e.data.fd);
		}
	}
}

/* ---- the clients ---- */

static void send_requests(struct pollfd *p, const struct sockaddr_in *address)
{
	static const char requests[EACH];
	p->fd = socket(AF_INET, SOCK_STREAM, 0);
	p->events = POLLIN;
	MUST(connect(p->fd, (const struct sockaddr *)address, sizeof *address) == 0);
	MUST(write(p->fd, requests, EACH) == EACH);
}

/* How many of the answers say 'd'. */
static unsigned read_answers(struct pollfd *p, unsigned *missing)
{
	char bytes[EACH + 1];
	unsigned good = 0;
	ssize_t n = read(p->fd, bytes, sizeof bytes);
	MUST(n > 0 && (size_t)n <= *missing);
	*missing -= (unsigned)n;
	if (*missing == 0)
		p->fd = -1; /* poll passes it over */
	while (n-- > 0)
		good += bytes[n] == 'd';
	return good;
}

static int clients(const struct sockaddr_in *address)
{
	struct pollfd connections[CONNECTIONS];
	unsigned missing[CONNECTIONS], good = 0, left = CONNECTIONS;
	bool told = false;
	for (int i = 0; i < CONNECTIONS; i++) {
		send_requests(&connections[i], address);
		missing[i] = EACH;
	}
	while (left > 0 && poll(connections, CONNECTIONS, -1) > 0) {
		for (int i = 0; i < CONNECTIONS; i++) {
			if (connections[i].fd < 0 || !connections[i].revents)
				continue;
			good += read_answers(&connections[i], &missing[i]);
			left -= missing[i] == 0;
		}
		if (good >= STOP_AFTER && !told)
			told = kill(getppid(), SIGTERM) == 0;
	}
	return left == 0 && told ? 0 : 1;
}

int main(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof address;
	int status, listener = socket(AF_INET, SOCK_STREAM, 0);
	MUST(bind(listener, (struct sockaddr *)&address, size) == 0 && listen(listener, CONNECTIONS) == 0);
	MUST(getsockname(listener, (struct sockaddr *)&address, &size) == 0);
	alarm(60);
	MUST(vez_cancel_on_signal(&stop, SIGTERM) == 0);
	pid_t child = fork();
	if (child == 0)
		_exit(clients(&address));
	serve(listener);
	MUST(waitpid(child, &status, 0) == child && status == 0);
	printf("%u done, %u late, %u cancelled\n", done, late, cancelled);
	MUST(done + late + cancelled == ALL && done >= STOP_AFTER && late > 0 && cancelled > 0);
	MUST(vez_sem_waiters(&slots) == 0 && vez_sem_permits(&slots) == SLOTS);
	MUST(vez_cancel_on_signal(NULL, SIGTERM) == 0);
	MUST(vez_cancel_destroy(&stop) == 0 && vez_sem_destroy(&slots) == 0);
	return 0;
}
