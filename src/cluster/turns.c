/* SPDX-License-Identifier: MIT */
/*
 * Whose turn it is in a line of readers and writers that alternate, as Hoare's policy has it.
 *
 * State: the requests in line (list.c); and the epoch, a node "epoch-<number>" beside them, which a writer that leaves
 *  has put in the place of the one before (line.c, N7). Its number is of the same count as the places: a reader whose
 *  place is before it stood in line when that writer left, and has been admitted.
 * Invariants
 *  T1 a reader holds if it has been admitted or no writer stands before it. A writer holds if nobody stands before it
 *     and no reader that has been admitted stands in line.
 *  T2 so a writer holds alone: another writer is not the first, and a reader behind it has a writer before it.
 *  T3 who holds goes on to hold, whoever comes, leaves or dies, and when the epoch moves. Who comes stands behind all
 *     others, and behind the epoch; who goes takes away a reason to wait; the epoch moves in the step in which the
 *     only one that holds goes, and admits all whom the one before had.
 *  T4 numbers wrap after 2^31: of requests that come so long after an epoch, it would say that they were there before.
 *     So it is removed much earlier, when nobody is left whom it has admitted: it says nothing then, nor will it.
 * Sources: C. A. R. Hoare, "Monitors" (1974).
 */
#include "turns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAR INT32_C(0x40000000)

/* False: it is no epoch's name. */
static bool epoch_number(const char *name, int32_t *number)
{
	const char *at = name + strlen(VEZ__EPOCH_PREFIX);
	char *end;
	if (strncmp(name, VEZ__EPOCH_PREFIX, strlen(VEZ__EPOCH_PREFIX)) != 0 || strlen(name) >= VEZ__EPOCH)
		return false;
	long long n = strtoll(at, &end, 10);
	if (end == at || *end || n < INT32_MIN || n > INT32_MAX)
		return false;
	*number = (int32_t)n;
	return true;
}

/* There is one at the most; of more, the last one counts. */
static void find_epoch(struct vez__turns *t, const struct String_vector *names)
{
	int32_t number;
	for (int32_t i = 0; i < names->count; i++) {
		if (!epoch_number(names->data[i], &number) || (t->epoch[0] && vez__before(number, t->number)))
			continue;
		t->number = number;
		strcpy(t->epoch, names->data[i]);
	}
}

void vez__turns_read(struct vez__turns *t, const struct String_vector *names, const struct vez__entry *e, size_t count)
{
	t->epoch[0] = '\0';
	find_epoch(t, names);
	t->writer = count;
	t->admitted = 0;
	for (size_t i = count; i-- > 0;)
		if (vez__writes(e[i].n))
			t->writer = i;
		else if (t->admitted == 0 && t->epoch[0] && vez__before(e[i].number, t->number))
			t->admitted = i + 1;
}

bool vez__turns_holds(const struct vez__turns *t, const struct vez__entry *e, size_t at)
{
	if (vez__writes(e[at].n))
		return at == 0 && t->admitted == 0;
	return at < t->admitted || at < t->writer;
}

size_t vez__turns_bound(const struct vez__turns *t, const struct vez__entry *e, size_t at)
{
	return vez__writes(e[at].n) && t->admitted > at ? t->admitted : at;
}

/* A reader that leaves can have let nobody go but the first writer. A writer: the readers behind it; and who is the
 * first writer then has to know those who have been admitted from behind it. */
bool vez__turns_concerns(const struct vez__turns *t, const struct vez__entry *e, size_t at, uint32_t n, int32_t number)
{
	if (!vez__writes(n))
		return at == t->writer && vez__turns_holds(t, e, at);
	if (!vez__before(number, e[at].number))
		return false;
	return vez__turns_holds(t, e, at) || (at == t->writer && t->admitted > at);
}

bool vez__turns_outlived(const struct vez__turns *t, int32_t number)
{
	return t->epoch[0] && t->admitted == 0 && (int32_t)((uint32_t)number - (uint32_t)t->number) > FAR;
}
