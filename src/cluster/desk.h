/* SPDX-License-Identifier: MIT */
/* Objects whose calls one of the callers serves for all: what monitor, queue, barrier and latch have in common. */
#ifndef VEZ__CLUSTER_DESK_H
#define VEZ__CLUSTER_DESK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "object.h"
#include "slip.h"

#define VEZ__MOST_BLOCKED 512 /* calls that wait at one desk */

/* A call that is being served. */
struct vez__served {
	struct vez__desk *desk;
	struct vez__entry entry;
	struct vez__note note;
	char *value; /* what the note points into; NULL: it is gone */
	int value_length;
	int version;          /* how often the node had been set when it was read */
	struct vez__own own;  /* a call of no name of this process */
	bool blocked;  /* it waited before */
	bool answered; /* rc and result are what it gets */
	int rc;
	int result_length;
	void *result; /* as it is set in the result's node, after the call's number */
	char name[VEZ__CALL_NODE];
};

/* What is served together. */
struct vez__batch {
	struct vez__served *calls; /* in order: first those that waited before */
	size_t count;
	size_t considered; /* serve: so many of them; the others are unseen as before */
	size_t vanished;   /* that waited at a guard, and are gone */
	size_t weight;     /* bytes of results */
	struct vez__served *turn; /* serve: only its own process can go on, with this one; or NULL */
	unsigned char *state; /* VEZ_CLUSTER_STATE_MAX */
	size_t state_size;
	bool changed; /* serve: the state has been */
	bool more;    /* serve: some that wait could go, but not in this transaction */
	bool opens;   /* serve: what "closed" stands for is over */
};

struct vez__desk_rules {
	struct vez__slip_rules slip;
	/* Outside, on the thread that runs functions, and perhaps again with the same calls: what is not committed has
	 * never been. */
	void (*serve)(struct vez__desk *d, struct vez__batch *b);
};

/* Part of an object. */
struct vez__desk {
	struct vez__job job; /* first: looks */
	struct vez__work work;
	struct vez__thing thing;
	vez_cluster_t *c;
	const struct vez__desk_rules *rules;
	struct cds_list_head slips;
	struct vez__batch batch;
	int32_t seen;
	int32_t last_seen;
	int version;
	int said_length;
	void *said;
	unsigned flying;
	bool any_seen;
	bool wanted;
	bool busy;
	bool goes_on;
	bool summoned;
	bool outrun;
	bool had_seen;
	bool failed;
	bool more;
	bool arming;
	bool watched;
	bool relies;
	bool by_said;
	bool owes;
	bool duty_listed;
	bool duty_made;
	enum { VEZ__DUTY_UNKNOWN, VEZ__DUTY_ASKED, VEZ__DUTY_OTHERS, VEZ__DUTY_OWN, VEZ__DUTY_LEAVING } duty;
	unsigned duty_rests;
	uint32_t *blocked;
	size_t blocked_count;
	struct vez__desk *whole;
	struct vez__desk *looks_on;
	struct vez__desk *parts;
	size_t part_count;
	char path[VEZ__OBJECT_PATH];
	char state_path[VEZ__PATH];
	char duty_path[VEZ__PATH];
};

/* Opens the object of this kind and name, made with a node of that name below it, too, unless that is NULL; the desk is
 * part of memory that free frees. Frees it if it fails. */
int vez__desk_open(struct vez__desk *d, vez_cluster_t *c, const struct vez__desk_rules *rules, const char *kind,
		   const char *name, uint32_t number, const char *third, void (*free)(struct vez__thing *t),
		   vez_deadline_t deadline, vez_cancel_t *cancel);

/* Before it is opened: what is served at this desk changes the states of those, too, and those that wait there. Takes
 * over the parts, which are allocated, zeroed, and that many. Each looks on for one of desks, which are open. */
int vez__desk_parts(struct vez__desk *d, struct vez__desk *parts, struct vez__desk *const *desks, size_t count);

/* What the desk has; not the desk. */
void vez__desk_free(struct vez__desk *d);

/* EBUSY while a call of this desk's waits. */
int vez__desk_close(struct vez__desk *d);
bool vez__desk_used(struct vez__desk *d);

int vez__desk_call(struct vez__desk *d, const char *operation, const void *argument, size_t size,
		   struct vez__into into, vez_deadline_t deadline, vez_cancel_t *cancel);
int vez__desk_call_async(struct vez__desk *d, const char *operation, const void *argument, size_t size,
			 struct vez__into into, vez_request_t *r);

/* A call of no name, which only this process can run. */
int vez__desk_own_async(struct vez__desk *d, struct vez__own own, const void *argument, size_t size,
			struct vez__into into, vez_request_t *r);

/* Inside: a call that nobody waits for. */
void vez__desk_post(struct vez__desk *d, const char *operation, const void *argument, size_t size);

/* For serve: whether this call is of that operation; it gets that; whether the transaction is full. */
bool vez__served_is(const struct vez__served *s, const char *operation);
void vez__served_answer(struct vez__batch *b, struct vez__served *s, int rc, const void *bytes, size_t size);
/* Whether it is a call of no name. */
bool vez__served_is_own(const struct vez__served *s);
bool vez__batch_full(const struct vez__batch *b);

/* For slip rules: those of a desk. */
void vez__desk_making(struct vez__slip *s);
void vez__desk_left(struct vez__slip *s);
void vez__desk_marked(struct vez__slip *s);

#endif
