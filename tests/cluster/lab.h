/* SPDX-License-Identifier: MIT */
/*
 * What the cluster's tests share: a real server on loopback, a look at what is on it, processes, a proxy that cuts
 * connections, and a history of what happened that is checked afterwards.
 */
#ifndef LAB_H
#define LAB_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>
#include <vez.h>
#include <vez/cluster.h>

#define CHECK(condition) \
	do { \
		if (!(condition)) \
			fail_at(__FILE__, __LINE__, #condition, 0, 0); \
	} while (0)
#define CHECK_EQ(a, b) \
	do { \
		long long a_ = (long long)(a), b_ = (long long)(b); \
		if (a_ != b_) \
			fail_at(__FILE__, __LINE__, #a " == " #b, a_, b_); \
	} while (0)
/* Waits until it is so. */
#define UNTIL(condition) \
	for (long long tries_ = 0; !(condition); a_moment()) \
		if (++tries_ > 120000) \
			fail_at(__FILE__, __LINE__, "at last " #condition, 0, 0)

_Noreturn void fail_at(const char *file, int line, const char *what, long long a, long long b);
void a_moment(void);

#define SECOND_NS INT64_C(1000000000)
#define SOON vez_after_ms(60000)

/* ---- the server ---- */

extern int server_port;
extern pid_t server_pid;

/* Runs body(arg) in a child: it and what it starts may start servers. When it has ended, or a signal says so, nothing
 * of them is left, neither a process nor a file. Returns its exit status. */
int guarded(int (*body)(void *arg), void *arg);

/* Set before a server is started: it runs with the options and the priority that servers usually have. */
extern bool server_is_measured;

/* Starts one in a new folder, with ticks of 100 ms: sessions of 200 ms are possible. Waits until it serves. */
void server_start(void);
void server_restart(void); /* the same data */
void server_stop(void);

/* Its answer to a command of four letters. */
void server_says(const char *command, char *answer, size_t size);
/* A number of its answer to mntr. */
long long server_figure(const char *name);

/* Three that are one service, with ticks of 200 ms; server_port is then that of one of them. */
#define MEMBERS 3
extern struct member {
	int port;
	pid_t pid;
} members[MEMBERS];

void ensemble_start(void);
int ensemble_leader(void); /* waits until there is one */
void ensemble_kill(int i);
void ensemble_restart(int i); /* does not wait until it serves */
bool ensemble_serves(int i);
void ensemble_stop(void);
const char *ensemble_servers(void); /* all of them, as an option of a session */
void start_three(void); /* ensemble_start; then the root's node is made */

/* How many questions this process has asked with the next one: each is two packets. */
extern int questions;
/* How many nodes are below this one; -1: it is not there. */
int nodes(const char *path);
void remove_node(const char *path);
void make_node(const char *path); /* one that stays */
/* The path of one below this one whose name begins so. False: there is none. */
bool node_below(const char *path, const char *begins, char found[512]);
/* How many are below the object's node: who holds and who waits. */
int in_line(const char *kind, const char *name);

/* ---- sessions ---- */

/* At the server, or at the proxy, or at any of the three. */
#define ENSEMBLE (-1)
vez_cluster_t *open_session(int64_t session_ms);
vez_cluster_t *open_session_at(int port, int64_t session_ms);
int try_open(vez_cluster_t **c, int port, const char *root, const char *auth, int64_t session_ms,
	     vez_deadline_t deadline, vez_cancel_t *cancel);
/* A name that no other test has used. */
const char *fresh(void);
/* How many threads this process has. */
int threads(void);
/* The same when those that end have ended, and a sanitizer has its own. */
int threads_at_rest(void);

/* ---- processes ---- */

/* Runs body(arg) in a child, which exits with its value. */
pid_t start_child(int (*body)(void *arg), void *arg);
int end_of(pid_t child); /* its exit status; 1000 + its signal */

/* Memory that children share. */
void *shared(size_t size);

/* Children that do the same, until they are told to end. */
enum { CLIENTS = 4, ALL_CLIENTS = -1 };

struct clients {
	int (*body)(void *arg);
	void *next;  /* the argument of the one that is started next; */
	size_t size; /* and behind it of those after it: each has so many bytes */
	size_t (*done)(const void *what, int client); /* how much one has done, or all have */
	const void *what;
	pid_t child[CLIENTS];
};

void clients_start(struct clients *k);
/* One after another is killed, whatever it is doing, when some more has been done; a new one takes its place. */
void clients_killed(struct clients *k, int kills);
/* The leader of the three servers is killed, and comes back when each of them has gone on; so many times. */
void clients_leader_killed(struct clients *k, int kills);
void clients_end(const struct clients *k); /* each with status 0 */

/* ---- a proxy in front of the server ---- */

enum cut { CUT_NEVER, CUT_BEFORE, CUT_AFTER, CUT_LATE };

/* Request types on the wire. */
enum { ON_DELETE = 2, ON_EXISTS = 3, ON_GET = 4, ON_SET = 5, ON_LIST = 8, ON_SYNC = 9, ON_MULTI = 14, ON_CREATE = 15 };

struct proxy {
	int port;
	pid_t pid;
	/* The next cuts requests of this type break the connection: before the server gets it, or when it has answered
	 * and the client has not got that; or the server gets it once deliver is set, and delivered, refused say so. */
	int type, cut, cuts, done;
	int deliver, delivered, refused;
	int target; /* the port to which it goes on; 0: server_port */
	int shut; /* nobody gets through */
	int last; /* nor does anybody from when it has delivered something */
	/* Of the last session that was opened through it. */
	int64_t session;
	char password[16];
};

/* Ends that session by a twin that has its number and its password. */
void end_session(const struct proxy *p);

struct proxy *proxy_start(void);

/* ---- history ---- */

enum happened { ASKED, GOT, GIVES_BACK, GAVE_UP, LOST, WROTE, REFUSED };

struct record {
	int64_t when;
	uint64_t fence;
	uint32_t n;
	int client;
	int round;
	enum happened what;
};

struct history {
	uint32_t count;
	struct record records[200000];
};

struct history *history_new(void);
void note(struct history *h, int client, int round, enum happened what, uint32_t n, uint64_t fence);
/* Never more than permits held at once by who was not stopped or killed; the fence of a hold is larger than those of
 * all before it that it excludes: all if it has every permit, or those that had. Says what is wrong, or returns NULL.
 * */
const char *history_fault(const struct history *h, uint32_t permits);
/* Of several clients: how many GOT. */
size_t history_count(const struct history *h, enum happened what);
size_t history_count_of(const struct history *h, enum happened what, int client);

#endif
