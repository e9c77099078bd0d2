/* SPDX-License-Identifier: MIT */
/* A call's node: what monitor, barrier, queue and remote procedures have in common on the caller's side. */
#ifndef VEZ__CLUSTER_SLIP_H
#define VEZ__CLUSTER_SLIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <urcu/list.h>

#include "call.h"
#include "list.h"
#include "vez/cluster.h"

struct vez__slip;

/* Where a result goes; or a number. Either may be NULL. */
struct vez__into {
	vez_cluster_bytes_t *bytes;
	uint32_t *number;
};

/* All inside, and all may be NULL. */
struct vez__slip_rules {
	void (*making)(struct vez__slip *s); /* what is asked from here on sees its node */
	void (*left)(struct vez__slip *s);   /* its node was removed, and had got no result */
	/* Nobody waits for it any more. False, or NULL: it is recalled; true: it stays until it has a result. */
	bool (*gave_up)(struct vez__slip *s);
	void (*there)(struct vez__slip *s); /* its node is known to be there */
	/* It has a result, which nobody waits for any more. */
	void (*wasted)(struct vez__slip *s, int rc, const void *result, size_t size);
	/* A recalled one, for which somebody waits: its node is gone, and had got no result. Has to end it. */
	void (*recalled)(struct vez__slip *s);
	/* It has got a mark: so who serves has told it that it has to see to itself. Once. */
	void (*marked)(struct vez__slip *s);
	bool silent; /* nothing will come of it: it is there until it is failed */
};

/* What only the process of a call can run for it. */
struct vez__own {
	bool (*guard)(const vez_cluster_step_t *step, void *arg);
	int (*body)(vez_cluster_step_t *step, void *arg); /* NULL: there is no such thing */
	void *arg;
};

enum vez__slip_node {
	VEZ__SLIP_ABSENT,
	VEZ__SLIP_MAKING,
	VEZ__SLIP_UNSURE,
	VEZ__SLIP_THERE,
	VEZ__SLIP_MISSED,
	VEZ__SLIP_GONE
};

struct vez__slip {
	struct vez__job job; /* first: does what is next */
	struct cds_list_head place; /* among the owner's */
	struct cds_list_head of_session;
	struct cds_list_head unmade;
	struct vez__slip *next;
	vez_cluster_t *c;
	const struct vez__slip_rules *rules;
	void *owner;
	const char *parent;
	vez_request_t *request;
	struct vez__into into;
	struct vez__own own;
	struct vez__result *result; /* where its result comes to; NULL: it is silent */
	size_t result_size;
	uint64_t id;
	int32_t number;
	unsigned flying;
	enum vez__slip_node node;
	enum { VEZ__SLIP_WAIT, VEZ__SLIP_RECALL, VEZ__SLIP_LEAVE } want;
	bool placed;  /* its name is known */
	bool waits;   /* at a guard that others do not ask for it again whenever that may have become true */
	bool marked;
	bool listens; /* it is to be told of its result */
	bool in_hand; /* its own process is committing its result, and will tell */
	bool listed;  /* in the line that was read last */
	bool begun;   /* its request has been queued */
	bool is_unmade;
	char name[VEZ__CALL_NODE];
	int size;
	unsigned char value[];
};

/* What a node says: of a call, what is called; of its result, what came of it, or a mark. */
enum vez__note_kind { VEZ__NOTE_NONE, VEZ__NOTE_CALL, VEZ__NOTE_RESULT, VEZ__NOTE_MARK };
struct vez__note {
	enum vez__note_kind kind;
	int rc;
	const char *operation;
	size_t operation_length;
	const void *bytes;
	size_t size;
};

/* Its kind; NONE: it is none of these. */
enum vez__note_kind vez__note_read(struct vez__note *n, const char *value, int length);

/* Numbers in bytes, the same on all machines. */
uint32_t vez__number_at(const void *bytes);
uint64_t vez__long_at(const void *bytes);
void vez__put_number(void *bytes, uint32_t n);
void vez__put_long(void *bytes, uint64_t n);

/* So many bytes, in memory of their own. */
void *vez__copy(const void *bytes, size_t size);

/* What is called, of an entry whose name says it; allocated. */
void *vez__note_called(const struct vez__entry *e, const char *name, int *length);

/* What says this result; allocated. And what says that there is a mark. */
void *vez__note_result(int rc, const void *bytes, size_t size, int *length);
#define VEZ__MARK "m"

/* Makes a call of this operation, with these bytes, below parent, and has it be the last of owned. EINPROGRESS: it will
 * complete. EMSGSIZE. */
int vez__slip_call_async(vez_cluster_t *c, const struct vez__slip_rules *rules, void *owner,
			 struct cds_list_head *owned, const char *parent, const char *operation,
			 const void *argument, size_t size, struct vez__into into, vez_request_t *r);
/* The same, of what only this process can run. */
int vez__slip_own_async(vez_cluster_t *c, const struct vez__slip_rules *rules, void *owner, struct cds_list_head *owned,
			const char *parent, struct vez__own own, const void *argument, size_t size,
			struct vez__into into, vez_request_t *r);
int vez__slip_call(vez_cluster_t *c, const struct vez__slip_rules *rules, void *owner, struct cds_list_head *owned,
		   const char *parent, const char *operation, const void *argument, size_t size,
		   struct vez__into into, vez_deadline_t deadline, vez_cancel_t *cancel);

/* Inside, for the owner: a call that nobody waits for. */
void vez__slip_post(vez_cluster_t *c, const struct vez__slip_rules *rules, void *owner, struct cds_list_head *owned,
		    const char *parent, const char *operation, const void *argument, size_t size);

/* ---- inside ---- */

/* The one of this session with that number, or NULL. */
struct vez__slip *vez__slip_find(vez_cluster_t *c, uint64_t id);

/* From here on it learns of its result by a watch. */
void vez__slip_listen(struct vez__slip *s);

/* Its node is gone, and this is its result. */
void vez__slip_answered(struct vez__slip *s, int rc, const void *bytes, size_t size);

/* What its result's node says. Where the call's node is not there, and this says no result, that was removed by its own
 * process, or never made. */
void vez__slip_told(struct vez__slip *s, const struct vez__note *n);

/* Its node is to be removed unless it has a result; rules->recalled decides then. */
void vez__slip_recall(struct vez__slip *s);

/* Has it be asked again what is next; it may be gone afterwards. */
void vez__slip_again(struct vez__slip *s);

/* The request of it ends with this code, and the node goes. */
void vez__slip_fail(struct vez__slip *s, int code);

/* ---- for the session; inside ---- */

void vez__slips_end(vez_cluster_t *c, int code);
void vez__slip_gave_up(struct vez__slip *s);

#endif
