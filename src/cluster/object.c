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

static int check_name(const char *name)
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
		     char path[VEZ__OBJECT_PATH], vez_deadline_t deadline, vez_cancel_t *cancel)
{
	char value[VEZ__VALUE], second[VEZ__PATH];
	int rc = check_name(name);
	if (rc != 0)
		return rc;
	snprintf(path, VEZ__OBJECT_PATH, "%s/%s-%s", c->root, kind, name);
	snprintf(value, sizeof value, "vez 1 %s %u", kind, number);
	struct vez__question q = { .kind = VEZ__ASK_CREATE, .path = path, .value = value };
	if (below) {
		snprintf(second, sizeof second, "%s/%s", path, below);
		q.second = second;
	}
	struct vez__reply reply = { 0, "" };
	rc = vez__ask(c, &q, &reply, deadline, cancel);
	if (rc != 0)
		return rc;
	return reply.rc == ZNODEEXISTS ? compare(c, path, value, deadline, cancel) : vez__errno_of(reply.rc);
}
