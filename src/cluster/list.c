/* SPDX-License-Identifier: MIT */
/*
 * The requests of an object as the servers list them.
 *
 * State: a request is the node "<n>-<session>-<id>-<place>": how many permits it takes, or the number of its result
 *  (result.c); the session and the request in it (both in hexadecimal); "c" and what is called, in hexadecimal, and a
 *  minus sign, if that is short (slip.c); and ten decimal digits, or a minus sign and ten, which the servers have
 *  appended.
 * Invariants
 *  L1 places are handed out in order by the servers, and wrap after 2^31: less means that the difference, modulo 2^32,
 *     is negative.
 *  L2 a session's number and the request's together are never used again: a name is known to be one's own.
 */
#include "list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void vez__entry_name(char name[VEZ__NODE], uint32_t n, uint64_t session, uint64_t id)
{
	snprintf(name, VEZ__NODE, "%" PRIu32 "-%" PRIx64 "-%" PRIx64 "-", n, session, id);
}

void vez__entry_name_call(char name[VEZ__CALL_NODE], uint32_t n, uint64_t session, uint64_t id, const void *called,
			  size_t size)
{
	const unsigned char *p = called;
	vez__entry_name(name, n, session, id);
	char *at = name + strlen(name);
	*at++ = 'c';
	for (size_t i = 0; i < size; i++)
		at += sprintf(at, "%02x", p[i]);
	strcpy(at, "-");
}

static unsigned digit(char c)
{
	return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a' + 10);
}

void vez__entry_called(const struct vez__entry *e, const char *name, void *called)
{
	const char *at = name + e->called_at;
	unsigned char *p = called;
	for (size_t i = 0; i < e->called_size; i++)
		p[i] = (unsigned char)(digit(at[2 * i]) << 4 | digit(at[2 * i + 1]));
}

/* What is called, if that is at *at; it is passed over. */
static bool called(const char **at, const char *name, struct vez__entry *e)
{
	e->called_at = e->called_size = 0;
	if (**at != 'c')
		return true;
	size_t digits = strspn(*at + 1, "0123456789abcdef");
	if (digits % 2 != 0 || digits > (size_t)2 * VEZ__INSIDE || (*at)[1 + digits] != '-')
		return false;
	e->called_at = (size_t)(*at + 1 - name);
	e->called_size = digits / 2;
	*at += digits + 2;
	return true;
}

/* The number at *at, up to a minus sign, which is passed over. */
static bool field(const char **at, int base, uint64_t most, uint64_t *number)
{
	char *end;
	if (!((**at >= '0' && **at <= '9') || (**at >= 'a' && **at <= 'f')))
		return false;
	*number = strtoull(*at, &end, base);
	if (end == *at || *end != '-' || *number > most)
		return false;
	*at = end + 1;
	return true;
}

bool vez__entry_parse(struct vez__entry *e, const char *name)
{
	const char *at = name;
	char *end;
	uint64_t n;
	if (!field(&at, 10, UINT32_MAX, &n) || !field(&at, 16, UINT64_MAX, &e->session) ||
	    !field(&at, 16, UINT64_MAX, &e->id) || !called(&at, name, e))
		return false;
	long long number = strtoll(at, &end, 10);
	if (end == at || *end || number < INT32_MIN || number > INT32_MAX)
		return false;
	e->n = (uint32_t)n;
	e->number = (int32_t)number;
	e->name = name;
	return true;
}

static int by_place(const void *a, const void *b)
{
	int32_t x = ((const struct vez__entry *)a)->number, y = ((const struct vez__entry *)b)->number;
	return x == y ? 0 : vez__before(x, y) ? -1 : 1;
}

struct vez__entry *vez__entries_read(const struct String_vector *names, size_t *count,
				     bool (*gone)(void *arg, uint64_t session), void *arg)
{
	struct vez__entry *e = calloc((size_t)names->count + 1, sizeof *e);
	uint64_t sum = 0;
	size_t n = 0;
	if (!e)
		abort();
	for (int32_t i = 0; i < names->count; i++)
		if (vez__entry_parse(&e[n], names->data[i]) && !(gone && gone(arg, e[n].session)))
			n++;
	qsort(e, n, sizeof *e, by_place);
	for (size_t i = 0; i < n; i++)
		e[i].sum = sum += e[i].n;
	*count = n;
	return e;
}

size_t vez__entries_find(const struct vez__entry *e, size_t count, int32_t number)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (vez__before(e[middle].number, number))
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && e[low].number == number ? low : count;
}
