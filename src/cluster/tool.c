/* SPDX-License-Identifier: MIT */
/*
 * vez-cluster: runs a command while holding something that only so many on all machines may hold, as flock(1) does for
 * files of one machine.
 *
 * The command gets the fence of its hold in VEZ_CLUSTER_FENCE. If the hold is lost while it runs, it is told to end
 * (SIGTERM), and killed five seconds later. If this program dies, the command is told to end, too.
 *
 * One thread, which sleeps on what its request ticks, on signals, and on what the hold's token ticks.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vez.h"
#include "vez/cluster.h"
#include "where.h"

#define NOT_HAD 1
#define USAGE 2
#define FAILED 74
#define LOST 75
#define GRACE_MS 5000

enum kind { LOCK, SEM, READ, WRITE, BARRIER, LATCH, COUNT };

struct options {
	vez_cluster_options_t session;
	enum kind kind;
	const char *name;
	char **command;
	uint32_t permits, n;
	unsigned policy;
	vez_deadline_t deadline;
	bool make_root;
};

/* What is held, or waited for. */
struct object {
	enum kind kind;
	vez_cluster_mutex_t *mutex;
	vez_cluster_sem_t *sem;
	vez_cluster_rwlock_t *rwlock;
	vez_cluster_barrier_t *barrier;
	vez_cluster_latch_t *latch;
	vez_cluster_hold_t hold;
};

static const char usage[] =
	"usage: vez-cluster [OPTION...] lock|read|write|sem NAME -- COMMAND [ARGUMENT...]\n"
	"       vez-cluster [OPTION...] barrier|latch|count NAME [-- COMMAND [ARGUMENT...]]\n"
	"Runs the command while it holds, of all machines whose programs ask the same ZooKeeper servers, the mutex of\n"
	"this name (lock), a part of the readers and writers lock (read, write), or permits of the semaphore (sem).\n"
	"The command finds the hold's fence in VEZ_CLUSTER_FENCE, a number that grows from hold to hold: what it\n"
	"writes to can refuse a smaller one. It is ended, and after five seconds killed, if the hold is lost.\n"
	"Or it waits for the other parties (barrier), or until the latch is open (latch), or counts that down\n"
	"(count), and is then replaced by the command, if there is one.\n"
	"\n"
	"  -s SERVERS   host:port,host:port (VEZ_CLUSTER_SERVERS; 127.0.0.1:2181)\n"
	"  -r ROOT      the node below which everything is (/vez)\n"
	"  -p           makes that node if it is not there\n"
	"  -t MS        session time: how soon others may have what a dead program held (10000)\n"
	"  -w MS        waits no longer than that; then exit status 1\n"
	"  -n NUMBER    the semaphore's permits, the barrier's parties, the latch's count, the same for all (1)\n"
	"  -k NUMBER    how many permits are taken, or how far is counted down (1)\n"
	"  -o POLICY    fifo: readers and writers go in order; hoare: by Hoare's policy; the same for all (fifo)\n"
	"  --help, --version\n"
	"\n"
	"The exit status is the command's; 1: not had in time; 2: usage; 74: a failure; 75: the hold was lost, or the\n"
	"barrier is broken; 126, 127: the command cannot be run. VEZ_CLUSTER_AUTH=user:password authenticates at the\n"
	"servers.\n";

static void say(const char *what, int code)
{
	fprintf(stderr, "vez-cluster: %s: %s\n", what, code == VEZ_ELOST ? "the session is lost" :
		code == VEZ_EBROKEN ? "the barrier is broken" : strerror(code));
}

/* ---- arguments ---- */

static bool number(const char *text, long long most, long long *n)
{
	char *end;
	errno = 0;
	*n = strtoll(text, &end, 10);
	return errno == 0 && end != text && *end == '\0' && *n >= 0 && *n <= most;
}

static bool policy_of(const char *word, unsigned *policy)
{
	*policy = strcmp(word, "hoare") == 0 ? VEZ_RW_HOARE : VEZ_RW_FIFO;
	return *policy == VEZ_RW_HOARE || strcmp(word, "fifo") == 0;
}

static bool option(struct options *o, int letter)
{
	long long n = 0;
	switch (letter) {
	case 's':
		o->session.servers = optarg;
		return true;
	case 'r':
		o->session.root = optarg;
		return true;
	case 'p':
		o->make_root = true;
		return true;
	case 't':
		o->session.session_ms = number(optarg, INT_MAX, &n) ? n : -1;
		return o->session.session_ms > 0;
	case 'w':
		o->deadline = number(optarg, INT_MAX, &n) ? vez_after_ms(n) : 0;
		return o->deadline != 0;
	case 'n':
		o->permits = number(optarg, VEZ_CLUSTER_SEM_MAX, &n) ? (uint32_t)n : 0;
		return o->permits > 0;
	case 'k':
		o->n = number(optarg, VEZ_CLUSTER_SEM_MAX, &n) ? (uint32_t)n : 0;
		return o->n > 0;
	case 'o':
		return policy_of(optarg, &o->policy);
	case 'h':
		fputs(usage, stdout);
		exit(0);
	case 'V':
		puts("vez-cluster " VERSION);
		exit(0);
	default:
		return false;
	}
}

static bool kind_of(const char *word, enum kind *kind)
{
	static const char *const words[] = { "lock", "sem", "read", "write", "barrier", "latch", "count" };
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (strcmp(word, words[i]) == 0) {
			*kind = (enum kind)i;
			return true;
		}
	}
	return false;
}

static bool holds(enum kind kind)
{
	return kind <= WRITE;
}

static bool arguments(struct options *o, int argc, char **argv)
{
	static const struct option names[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	int letter;
	*o = (struct options){ .permits = 1, .n = 1, .policy = VEZ_RW_FIFO, .deadline = VEZ_FOREVER };
	o->session.servers = getenv("VEZ_CLUSTER_SERVERS");
	o->session.auth = getenv("VEZ_CLUSTER_AUTH");
	if (!o->session.servers)
		o->session.servers = "127.0.0.1:2181";
	while ((letter = getopt_long(argc, argv, "+s:r:pt:w:n:k:o:h", names, NULL)) != -1)
		if (!option(o, letter))
			return false;
	if (argc - optind < 2 || !kind_of(argv[optind], &o->kind))
		return false;
	o->name = argv[optind + 1];
	o->command = argv + optind + 2;
	if (o->command[0] && strcmp(o->command[0], "--") == 0)
		o->command++;
	return o->command[0] != NULL || !holds(o->kind);
}

/* ---- the object ---- */

static int open_object(struct object *x, vez_cluster_t *c, const struct options *o)
{
	x->kind = o->kind;
	switch (o->kind) {
	case LOCK:
		return vez_cluster_mutex_open(&x->mutex, c, o->name, o->deadline, NULL);
	case SEM:
		return vez_cluster_sem_open(&x->sem, c, o->name, o->permits, o->deadline, NULL);
	case BARRIER:
		return vez_cluster_barrier_open(&x->barrier, c, o->name, o->permits, o->deadline, NULL);
	case LATCH:
	case COUNT:
		return vez_cluster_latch_open(&x->latch, c, o->name, o->permits, o->deadline, NULL);
	default:
		return vez_cluster_rwlock_open_with(&x->rwlock, c, o->name, o->policy, o->deadline, NULL);
	}
}

static int ask_for(struct object *x, uint32_t n, vez_request_t *r)
{
	switch (x->kind) {
	case LOCK:
		return vez_cluster_mutex_lock_async(x->mutex, &x->hold, r);
	case SEM:
		return vez_cluster_sem_acquire_async(x->sem, n, &x->hold, r);
	case READ:
		return vez_cluster_rwlock_read_async(x->rwlock, &x->hold, r);
	case BARRIER:
		return vez_cluster_barrier_wait_async(x->barrier, NULL, r);
	case LATCH:
		return vez_cluster_latch_wait_async(x->latch, r);
	case COUNT:
		return vez_cluster_latch_count_down_async(x->latch, n, r);
	default:
		return vez_cluster_rwlock_write_async(x->rwlock, &x->hold, r);
	}
}

static void close_object(struct object *x)
{
	if (x->kind == LOCK)
		vez_cluster_mutex_close(x->mutex);
	else if (x->kind == SEM)
		vez_cluster_sem_close(x->sem);
	else if (x->kind == BARRIER)
		vez_cluster_barrier_close(x->barrier);
	else if (!holds(x->kind))
		vez_cluster_latch_close(x->latch);
	else
		vez_cluster_rwlock_close(x->rwlock);
}

/* ---- waiting ---- */

static int signals(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int next_signal(int sfd)
{
	struct signalfd_siginfo info;
	return read(sfd, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : 0;
}

/* Until it is had (0), or why not. A signal calls it off: 128 + its number, negative. */
static int take(struct object *x, const struct options *o, int efd, int sfd)
{
	struct pollfd fds[] = { { efd, POLLIN, 0 }, { sfd, POLLIN, 0 } };
	vez_request_t r;
	eventfd_t ticks;
	vez_request_init_eventfd(&r, efd);
	vez_request_set_limits(&r, o->deadline, NULL);
	int rc = ask_for(x, o->n, &r);
	while (rc == EINPROGRESS) {
		poll(fds, 2, -1);
		int signo = next_signal(sfd);
		if (signo != 0 && signo != SIGCHLD) {
			vez_request_cancel(&r);
			vez_request_wait(&r, VEZ_FOREVER, NULL);
			if (vez_request_result(&r) == 0 && holds(x->kind))
				vez_cluster_release(&x->hold);
			return -(128 + signo);
		}
		rc = vez_request_result(&r);
	}
	eventfd_read(efd, &ticks);
	return rc;
}

static pid_t start(char **command, uint64_t fence)
{
	char text[32];
	pid_t parent = getpid();
	sigset_t none;
	snprintf(text, sizeof text, "%llu", (unsigned long long)fence);
	setenv("VEZ_CLUSTER_FENCE", text, 1);
	sigemptyset(&none);
	pid_t child = fork();
	if (child != 0)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(LOST);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execvp(command[0], command);
	_exit(errno == ENOENT ? 127 : 126);
}

static void tick(void *arg)
{
	eventfd_write(*(int *)arg, 1);
}

/* Until the command has ended: its exit status. *lost: the hold was lost first. */
static int watch(pid_t child, int efd, int sfd, bool *lost)
{
	struct pollfd fds[] = { { efd, POLLIN, 0 }, { sfd, POLLIN, 0 } };
	vez_deadline_t kill_at = VEZ_FOREVER;
	int status;
	while (waitpid(child, &status, WNOHANG) == 0) {
		int64_t left = vez_deadline_remaining_ns(kill_at) / 1000000;
		poll(fds, 2, kill_at == VEZ_FOREVER ? -1 : (int)left + 1);
		int signo = next_signal(sfd);
		if (signo != 0 && signo != SIGCHLD)
			kill(child, signo);
		if (fds[0].revents && !*lost) {
			*lost = true;
			fds[0].fd = -1;
			kill(child, SIGTERM);
			kill_at = vez_after_ms(GRACE_MS);
		}
		if (vez_deadline_remaining_ns(kill_at) == 0)
			kill(child, SIGKILL);
	}
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int hold_and_run(struct object *x, const struct options *o, int efd, int sfd)
{
	vez_cancel_hook_t hook;
	bool lost = false;
	pid_t child = start(o->command, vez_cluster_hold_fence(&x->hold));
	if (child < 0) {
		say(o->command[0], errno);
		vez_cluster_release(&x->hold);
		return FAILED;
	}
	vez_cancel_attach(vez_cluster_hold_token(&x->hold), &hook, tick, &efd);
	int status = watch(child, efd, sfd, &lost);
	vez_cancel_detach(vez_cluster_hold_token(&x->hold), &hook);
	vez_cluster_release(&x->hold);
	if (lost)
		say(o->name, VEZ_ELOST);
	return lost ? LOST : status;
}

/* What is waited for has come: the session is not needed any more. */
static int run_after(vez_cluster_t *c, const struct options *o)
{
	sigset_t none;
	vez_cluster_close(c);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execvp(o->command[0], o->command);
	return errno == ENOENT ? 127 : 126;
}

static int run(vez_cluster_t *c, const struct options *o)
{
	struct object x;
	int rc = open_object(&x, c, o);
	if (rc != 0) {
		say(o->name, rc);
		vez_cluster_close(c);
		return rc == ETIMEDOUT ? NOT_HAD : FAILED;
	}
	int efd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), sfd = signals();
	rc = take(&x, o, efd, sfd);
	int status = rc < 0 ? -rc : rc == ETIMEDOUT ? NOT_HAD : rc == VEZ_EBROKEN ? LOST : FAILED;
	if (rc == 0)
		status = holds(x.kind) ? hold_and_run(&x, o, efd, sfd) : 0;
	else if (status == FAILED || status == LOST)
		say(o->name, rc);
	close_object(&x);
	if (rc == 0 && !holds(x.kind) && o->command[0])
		return run_after(c, o);
	vez_cluster_close(c);
	return status;
}

int main(int argc, char **argv)
{
	struct options o;
	vez_cluster_t *c;
	if (!arguments(&o, argc, argv)) {
		fputs(usage, stderr);
		return USAGE;
	}
	int rc = o.make_root ? vez_cluster_make_root(&o.session, o.deadline, NULL) : 0;
	if (rc == 0)
		rc = vez_cluster_open(&c, &o.session, o.deadline, NULL);
	if (rc != 0) {
		say(o.session.servers, rc);
		return rc == ETIMEDOUT ? NOT_HAD : FAILED;
	}
	return run(c, &o);
}
