/* SPDX-License-Identifier: MIT */
/*
 * An object's node: found, or made.
 *
 * State: <root>/<kind>-<name>, persistent; its value is "vez 1 <kind> <number>", 1 being the layout of what is below.
 * Invariants: whoever opens an object has seen that value, its own or somebody else's; a node that belongs to an object
 *  from the beginning is made in the same step.
 * Ordering, progress: those of ask.c. Lifetime: the node stays.
 */
#include "object.h"

#include <stdio.h>
#include <string.h>

#include "ask.h"

int vez__name_check(const char *name)
{
	size_t length = strlen(name);
	if (length == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return EINVAL;
	for (const char *at = name; *at; at++)
		if (*at < ' ' || *at > '~' || *at == '/')
			return EINVAL;
	return length > 64 ? ENAMETOOLONG : 0;
}

/* It is there: does it say the same? */
static int compare(vez_cluster_t *c, const char *path, const char *value, vez_deadline_t deadline,
		   vez_cancel_t *cancel)
{
	struct vez__question q = { .kind = VEZ__ASK_GET, .path = path };
	struct vez__reply reply = { 0, "" };
	int rc = vez__ask(c, &q, &reply, deadline, cancel);
	if (rc != 0)
		return rc;
	if (reply.rc != ZOK)
		return reply.rc == ZNOAUTH ? EPROTO : vez__errno_of(reply.rc);
	return strcmp(reply.value, value) == 0 ? 0 : EPROTO;
}

int vez__object_open(vez_cluster_t *c, const char *kind, const char *name, uint32_t number, const char *below,
		     const char *other, char path[VEZ__OBJECT_PATH], vez_deadline_t deadline, vez_cancel_t *cancel)
{
	char value[VEZ__VALUE], second[VEZ__PATH], third[VEZ__PATH];
	int rc = vez__name_check(name);
	if (rc != 0)
		return rc;
	snprintf(path, VEZ__OBJECT_PATH, "%s/%s-%s", c->root, kind, name);
	snprintf(value, sizeof value, "vez 1 %s %u", kind, number);
	struct vez__question q = { .kind = VEZ__ASK_CREATE, .path = path, .value = value };
	if (below) {
		snprintf(second, sizeof second, "%s/%s", path, below);
		q.second = second;
	}
	if (other) {
		snprintf(third, sizeof third, "%s/%s", path, other);
		q.third = third;
	}
	struct vez__reply reply = { 0, "" };
	rc = vez__ask(c, &q, &reply, deadline, cancel);
	if (rc != 0)
		return rc;
	return reply.rc == ZNODEEXISTS ? compare(c, path, value, deadline, cancel) : vez__errno_of(reply.rc);
}

/* ---- what is open ---- */

int vez__thing_add(vez_cluster_t *c, struct vez__thing *t)
{
	int rc = vez__session_begin(c);
	if (rc != 0)
		return rc;
	cds_list_add_tail(&t->place, &c->things);
	c->lines++;
	return 0;
}

void vez__things_end(vez_cluster_t *c, int code)
{
	struct vez__thing *t;
	cds_list_for_each_entry(t, &c->things, place)
		if (t->end)
			t->end(t, code);
}

void vez__things_look(vez_cluster_t *c)
{
	struct vez__thing *t;
	cds_list_for_each_entry(t, &c->things, place)
		if (t->look)
			t->look(t);
}

void vez__things_free(vez_cluster_t *c)
{
	struct vez__thing *t, *next;
	cds_list_for_each_entry_safe(t, next, &c->things, place)
		t->free(t);
}
