/* SPDX-License-Identifier: MIT */
/*
 * The session: a process's tie to the servers, its clock, and its end.
 *
 * State
 *  over        0 while it works; then VEZ_ELOST or VEZ_ECLOSED, for good. Inside
 *  connected   as the client's last event says; false, too, when the client refused a call. Inside
 *  resting     connected again, but nothing is sent before rests_until: those whose server went do not all come back to
 *              the next one at the same moment. Inside
 *  session     nanoseconds that the servers granted; 0 before the first connection. Inside
 *  heard       when the last call that was answered was sent; 0 before the first. Inside
 *  beating     heartbeats under way. Inside
 *  kept        the keeper has been started. closed: vez_cluster_close has returned. Constant from then on
 *  lines       objects that are open or have claims left: each keeps the session's memory. Inside
 * Invariants
 *  S1 the servers end the session no earlier than one session time after they have got the last packet; heard is before
 *     that. So until heard + session they have not; the library says that they may have nine tenths of it later.
 *  S2 nothing is sent when the session is over, and nothing is granted.
 *  S3 the lost token is fired by the keeper, once, after everything that waits has been ended.
 *  S4 the client is closed by the keeper, outside, after the last call was sent (S2). Its threads have ended when
 *     vez__calls_end runs.
 * Ordering: the monitor; the keeper's end happens before the return of vez_cluster_close (join).
 * Progress: the keeper sleeps on a timer of the boot clock and is poked. It asks the servers something every sixth of
 *  the session time: the client's own pings say nothing to who uses it. Once in a session time it has objects look
 *  at what is theirs (desk.c K3).
 * Lifetime: vez_cluster_close frees the session, or the last of its objects that is closed does.
 * fork: the child has neither threads nor a part in the session, and must not touch the client's memory: whatever it
 *  calls says EPERM.
 * Sources: the lease: C. Gray, D. Cheriton (1989).
 */
#include "session.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "call.h"
#include "line.h"
#include "object.h"
#include "peer.h"
#include "result.h"
#include "slip.h"

#define MS INT64_C(1000000)
#define DEFAULT_SESSION_MS 10000
#define BEATS 6       /* a session time */
#define MARGIN 10     /* of it are kept back: one part */
#define MOST_BEATING 8
#define REST 50       /* of it are rested at the most when it is connected again: one part */
#define LONGEST_REST (100 * MS)
/* How long a connected client goes by the addresses that it has found. Otherwise it looks the servers' names up each
 * time that it looks at its socket, with a dozen system calls: half of its processor time. */
#define RESOLVE_MS 10000

/* ---- inside and out ---- */

void vez__session_enter(vez_cluster_t *c)
{
	vez_monitor_enter(&c->monitor);
}

/* True: nothing is left that could touch the session again. */
static bool leave(vez_cluster_t *c)
{
	struct cds_list_head ended;
	vez__pump(c);
	CDS_INIT_LIST_HEAD(&ended);
	cds_list_splice(&c->ended, &ended);
	CDS_INIT_LIST_HEAD(&c->ended);
	bool last = c->closed && c->lines == 0;
	vez_monitor_exit(&c->monitor);
	if (!cds_list_empty(&ended))
		vez__claims_free(c, &ended);
	return last;
}

vez_cluster_t *vez__watch_enter(zhandle_t *zh, int type, int state, const char *path)
{
	vez_cluster_t *c = (vez_cluster_t *)zoo_get_context(zh);
	(void)state;
	(void)path;
	if (type == ZOO_SESSION_EVENT)
		return NULL;
	vez__session_enter(c);
	return c;
}

void vez__session_leave(vez_cluster_t *c)
{
	leave(c);
}

/* A request has left by deadline, token or cancellation. */
static void gave_up(vez_monitor_t *m, vez_room_t *room, vez_request_t *r)
{
	vez_cluster_t *c = (vez_cluster_t *)m;
	if (room == &c->waits)
		vez__claim_gave_up(vez_request_ptr(r));
	else if (room == &c->slips)
		vez__slip_gave_up(vez_request_ptr(r));
	else if (room == &c->asks)
		vez__ask_gave_up(vez_request_ptr(r));
	vez__pump(c);
	if (!cds_list_empty(&c->ended))
		vez__bell_ring(&c->bell);
}

/* Inside. */
static void end(vez_cluster_t *c, int code)
{
	if (c->over)
		return;
	c->over = code;
	c->connected = false;
	vez__asks_end(c, code, false);
	vez__lines_end(c, code);
	vez__slips_end(c, code);
	vez__things_end(c, code);
	vez__bell_ring(&c->bell);
}

void vez__session_expired(vez_cluster_t *c)
{
	end(c, VEZ_ELOST);
}

bool vez__session_lapsed(const vez_cluster_t *c)
{
	return c->heard && vez__boottime() >= c->heard + c->session - c->session / MARGIN;
}

static int begin(vez_cluster_t *c)
{
	if (!c->over && vez__session_lapsed(c))
		end(c, VEZ_ELOST);
	return c->over;
}

int vez__session_begin(vez_cluster_t *c)
{
	if (c->process != vez__process())
		return EPERM;
	vez__session_enter(c);
	int rc = begin(c);
	if (rc != 0)
		vez__session_leave(c);
	return rc;
}

void vez__session_heard(vez_cluster_t *c, int64_t sent)
{
	if (sent > c->heard)
		c->heard = sent;
}

/* ---- what the client says ---- */

static void note_connected(vez_cluster_t *c)
{
	bool again = c->session > 0;
	c->session = zoo_recv_timeout(c->zh) * MS;
	c->id = (uint64_t)zoo_client_id(c->zh)->client_id;
	c->connected = true;
	if (again) {
		int64_t bound = c->session / REST < LONGEST_REST ? c->session / REST : LONGEST_REST;
		c->resting = true;
		c->rests_until = vez__boottime() + (int64_t)vez__random((uint64_t)bound);
	}
	vez__asks_end(c, 0, true);
	vez__bell_ring(&c->bell);
}

static void on_event(zhandle_t *zh, int type, int state, const char *path, void *ctx)
{
	vez_cluster_t *c = ctx;
	(void)path;
	if (type != ZOO_SESSION_EVENT)
		return;
	vez__session_enter(c);
	if (!c->zh)
		c->zh = zh;
	if (c->over) {
	} else if (state == ZOO_CONNECTED_STATE) {
		note_connected(c);
	} else if (state == ZOO_EXPIRED_SESSION_STATE) {
		end(c, VEZ_ELOST);
	} else {
		c->connected = false;
		c->refused |= state == ZOO_AUTH_FAILED_STATE;
		if (c->refused)
			vez__asks_end(c, EACCES, true);
	}
	vez__session_leave(c);
}

/* ZooKeeper's client has nothing to say on the program's stderr. */
static void no_log(const char *message)
{
	(void)message;
}

/* ---- the keeper ---- */

static void beat_answered(void *arg, const struct vez__answer *a)
{
	vez_cluster_t *c = arg;
	(void)a;
	c->beating--;
}

/* Inside: does what is due. Returns when something will be next. */
static int64_t keep_time(vez_cluster_t *c, int64_t *beat, int64_t *round)
{
	int64_t now = vez__boottime();
	if (c->resting && now >= c->rests_until)
		c->resting = false;
	if (c->session == 0)
		return now + 1000 * MS;
	int64_t interval = c->session / BEATS;
	if (now >= *beat + interval) {
		*beat = now;
		if (c->connected && c->beating < MOST_BEATING) {
			c->beating++;
			vez__call_exists(c, beat_answered, c, c->root[0] ? c->root : "/");
		}
	}
	if (now >= *round + c->session) {
		*round = now;
		vez__things_look(c);
	}
	int64_t next = *beat + interval;
	int64_t lapse = c->heard ? c->heard + c->session - c->session / MARGIN : INT64_MAX;
	if (lapse < next)
		next = lapse;
	return c->resting && c->rests_until < next ? c->rests_until : next;
}

static void *keep(void *arg)
{
	vez_cluster_t *c = arg;
	int64_t beat = 0, round = 0, next = 0;
	zhandle_t *zh;
	bool over;
	do {
		vez__session_enter(c);
		zh = c->zh;
		if (begin(c) == 0)
			next = keep_time(c, &beat, &round);
		over = c->over;
		vez__session_leave(c);
		if (!over)
			vez__bell_wait(&c->bell, next);
	} while (!over);
	vez_cancel_fire(&c->lost);
	zookeeper_close(zh);
	vez__session_enter(c);
	c->has_event_thread = false;
	vez__calls_end(c);
	vez__session_leave(c);
	return NULL;
}

/* ---- open ---- */

static bool root_is_valid(const char *root)
{
	size_t length = strlen(root);
	if (strcmp(root, "/") == 0)
		return true;
	return root[0] == '/' && length < VEZ__ROOT && root[length - 1] != '/' && !strstr(root, "//") &&
	       !strstr(root, "/../") && !strstr(root, "/./");
}

static void init(vez_cluster_t *c, const vez_cluster_options_t *options)
{
	const char *root = options->root ? options->root : "/vez";
	vez_monitor_init(&c->monitor, gave_up);
	vez_cancel_init(&c->lost);
	CDS_INIT_LIST_HEAD(&c->calls);
	CDS_INIT_LIST_HEAD(&c->jobs);
	CDS_INIT_LIST_HEAD(&c->all_lines);
	CDS_INIT_LIST_HEAD(&c->peers);
	CDS_INIT_LIST_HEAD(&c->things);
	CDS_INIT_LIST_HEAD(&c->all_slips);
	CDS_INIT_LIST_HEAD(&c->unmade_slips);
	CDS_INIT_LIST_HEAD(&c->results);
	CDS_INIT_LIST_HEAD(&c->works);
	CDS_INIT_LIST_HEAD(&c->ended);
	c->process = vez__process();
	c->authenticated = options->auth != NULL;
	strcpy(c->root, strcmp(root, "/") == 0 ? "" : root);
}

static int start_client(vez_cluster_t *c, const vez_cluster_options_t *options)
{
	int64_t session = options->session_ms ? options->session_ms : DEFAULT_SESSION_MS;
	sigset_t before;
	vez__signals_block(&before);
	zhandle_t *zh = zookeeper_init2(options->servers, on_event, (int)session, NULL, c, 0, no_log);
	int rc = zh ? 0 : errno == ENOMEM ? ENOMEM : EINVAL;
	vez__signals_restore(&before);
	if (rc != 0)
		return rc;
	zoo_set_servers_resolution_delay(zh, RESOLVE_MS);
	vez__session_enter(c);
	if (!c->zh)
		c->zh = zh;
	vez__session_leave(c);
	if (options->auth)
		zoo_add_auth(zh, "digest", options->auth, (int)strlen(options->auth), NULL, NULL);
	return 0;
}

/* The session, its client and its keeper; nothing of it at the servers yet. */
static int start(vez_cluster_t **made, const vez_cluster_options_t *options)
{
	if (!options->servers || (options->root && !root_is_valid(options->root)) || options->session_ms < 0 ||
	    options->session_ms > INT_MAX)
		return EINVAL;
	vez_cluster_t *c = calloc(1, sizeof *c);
	if (!c)
		return ENOMEM;
	init(c, options);
	int rc = vez__bell_open(&c->bell);
	if (rc != 0) {
		free(c);
		return rc;
	}
	rc = start_client(c, options);
	if (rc == 0) {
		rc = vez__thread_start(&c->keeper, keep, c);
		c->kept = rc == 0;
		if (rc != 0)
			zookeeper_close(c->zh);
	}
	if (rc != 0) {
		vez__bell_close(&c->bell);
		free(c);
		return rc;
	}
	*made = c;
	return 0;
}

/* Asks for a node to be made; that it is there already is all right. */
static int make(vez_cluster_t *c, const char *path, int flags, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	struct vez__question q = { .kind = VEZ__ASK_CREATE, .path = path, .value = "", .flags = flags };
	struct vez__reply reply;
	int rc = vez__ask(c, &q, &reply, deadline, cancel);
	if (rc != 0 || reply.rc == ZNODEEXISTS)
		return rc;
	return vez__errno_of(reply.rc);
}

/* The root is there, and what is below it; and this session's node among those of the living. */
static int move_in(vez_cluster_t *c, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	char path[VEZ__PATH];
	struct vez__question q = { .kind = VEZ__ASK_EXISTS, .path = c->root[0] ? c->root : "/" };
	struct vez__reply reply;
	int rc = vez__ask(c, &q, &reply, deadline, cancel);
	if (rc == 0)
		rc = vez__errno_of(reply.rc);
	vez__results_path(c, path);
	if (rc == 0)
		rc = make(c, path, 0, deadline, cancel);
	vez__peers_path(c, path);
	if (rc == 0)
		rc = make(c, path, 0, deadline, cancel);
	vez__session_enter(c);
	vez__peer_path(c, c->id, path);
	vez__session_leave(c);
	return rc ? rc : make(c, path, ZOO_EPHEMERAL, deadline, cancel);
}

int vez_cluster_open(vez_cluster_t **made, const vez_cluster_options_t *options, vez_deadline_t deadline,
		     vez_cancel_t *cancel)
{
	vez_cluster_t *c;
	int rc = start(&c, options);
	if (rc != 0)
		return rc;
	rc = move_in(c, deadline, cancel);
	if (rc != 0)
		vez_cluster_close(c);
	else
		*made = c;
	return rc;
}

int vez_cluster_make_root(const vez_cluster_options_t *options, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	char path[VEZ__ROOT + 1];
	vez_cluster_t *c;
	int rc = start(&c, options);
	if (rc != 0)
		return rc;
	strcpy(path, c->root);
	strcat(path, "/");
	for (char *end = strchr(path + 1, '/'); rc == 0 && end; end = strchr(end + 1, '/')) {
		*end = '\0';
		rc = make(c, path, 0, deadline, cancel);
		*end = '/';
	}
	vez_cluster_close(c);
	return rc;
}

/* ---- its end ---- */

/* What a session's own thread calls must not wait for that thread. */
static bool runs_here(const vez_cluster_t *c)
{
	pthread_t self = pthread_self();
	return pthread_equal(self, c->keeper) || (c->has_event_thread && pthread_equal(self, c->event_thread));
}

void vez__session_leave_last(vez_cluster_t *c)
{
	if (!leave(c) || !cds_list_empty(&c->ended))
		return;
	vez__peers_free(c);
	vez__results_free(c);
	vez__things_free(c);
	vez_monitor_destroy(&c->monitor);
	vez_cancel_destroy(&c->lost);
	vez__bell_close(&c->bell);
	free(c);
}

int vez_cluster_close(vez_cluster_t *c)
{
	if (c->process != vez__process())
		return EPERM;
	vez__session_enter(c);
	bool here = runs_here(c);
	if (!here)
		end(c, VEZ_ECLOSED);
	vez__session_leave(c);
	if (here)
		return EDEADLK;
	vez__thread_join(c->keeper);
	vez__session_enter(c);
	c->closed = true;
	vez__session_leave_last(c);
	return 0;
}

/* ---- what it says ---- */

vez_cancel_t *vez_cluster_lost(vez_cluster_t *c)
{
	return &c->lost;
}

int vez_cluster_check(vez_cluster_t *c)
{
	int rc = vez__session_begin(c);
	if (rc == 0)
		vez__session_leave(c);
	return rc;
}

int64_t vez_cluster_session_ms(const vez_cluster_t *shared)
{
	vez_cluster_t *c = (vez_cluster_t *)shared;
	if (c->process != vez__process())
		return 0;
	vez__session_enter(c);
	int64_t ms = c->session / MS;
	vez__session_leave(c);
	return ms;
}
