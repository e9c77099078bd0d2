/* SPDX-License-Identifier: MIT */
/* The session as the objects in it see it. */
#ifndef VEZ__CLUSTER_SESSION_H
#define VEZ__CLUSTER_SESSION_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <urcu/list.h>
#include <zookeeper/zookeeper.h>

#include "sys.h"
#include "vez/cluster.h"
#include "vez/monitor.h"

#define VEZ__PATH 512 /* bytes, of the longest path */
#define VEZ__ROOT 256
#define VEZ__SLOTS 1024

struct vez__claim;
struct vez__result;
struct vez__slip;

/* Everything inside the monitor but what is constant. */
struct vez_cluster {
	vez_monitor_t monitor; /* first */
	vez_room_t waits;      /* whose request's pointer is a claim */
	vez_room_t slips;      /* whose request's pointer is a slip */
	vez_room_t asks;       /* whose request's pointer is a question, or NULL: who waits for a connection */
	vez_cancel_t lost;
	zhandle_t *zh;
	int process;
	int over; /* 0, VEZ_ELOST, VEZ_ECLOSED */
	bool connected;
	bool resting;
	bool authenticated;
	bool refused;
	bool has_event_thread;
	bool kept;
	bool closed;
	pthread_t event_thread;
	pthread_t keeper;
	struct vez__bell bell;
	int64_t session;
	int64_t heard;
	int64_t rests_until;
	uint64_t id;
	uint64_t flying;
	uint64_t beating;
	uint64_t claims_made;
	size_t lines;
	struct cds_list_head calls;
	struct cds_list_head jobs;
	struct cds_list_head all_lines;
	struct cds_list_head peers;
	struct cds_list_head things;
	struct cds_list_head ended;
	struct vez__claim *by_id[VEZ__SLOTS];
	struct vez__slip *slip_by_id[VEZ__SLOTS];
	struct cds_list_head all_slips;
	struct cds_list_head unmade_slips;
	struct cds_list_head results;
	struct vez__result *free_results;
	struct vez__result *bare_results;
	size_t free_result_count;
	uint32_t results_made;
	struct cds_list_head works;
	char root[VEZ__ROOT];
};

/* Enters, whatever the session's state. */
void vez__session_enter(vez_cluster_t *c);

/* For a watch: enters. NULL, and not inside: it tells of the connection alone. */
vez_cluster_t *vez__watch_enter(zhandle_t *zh, int type, int state, const char *path);

/* Runs the jobs that can run, leaves, and frees what has ended. */
void vez__session_leave(vez_cluster_t *c);

/* Enters if the session is neither over nor another process's: 0. Otherwise why not, and not inside. */
int vez__session_begin(vez_cluster_t *c);

/* Inside: a server has answered what was sent at this moment. */
void vez__session_heard(vez_cluster_t *c, int64_t sent);

/* Inside: a server has said that the session has ended. The client itself believes that only when it connects. */
void vez__session_expired(vez_cluster_t *c);

/* Inside: whether the clock says that the servers may have ended the session. */
bool vez__session_lapsed(const vez_cluster_t *c);

/* The same; if the session is closed and its last object has gone, it goes, too. */
void vez__session_leave_last(vez_cluster_t *c);

#endif
