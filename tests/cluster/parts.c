/* SPDX-License-Identifier: MIT */
/* Parts that need no server: names of requests and their order; what is an answer; and the checker of histories,
 * which must see faults. */
#include "../../src/cluster/call.h"
#include "../../src/cluster/list.h"
#include "../../src/cluster/turns.h"
#include "lab.h"

#include "test.h"

static void check_order(char **names, int count, const char *first, const char *last)
{
	struct String_vector v = { count, names };
	size_t n;
	struct vez__entry *e = vez__entries_read(&v, &n, NULL, NULL);
	CHECK_EQ(n, count);
	CHECK(strcmp(e[0].name, first) == 0);
	CHECK(strcmp(e[n - 1].name, last) == 0);
	for (size_t i = 0; i < n; i++)
		CHECK_EQ(vez__entries_find(e, n, e[i].number), i);
	CHECK_EQ(e[n - 1].sum, 1 + 2 + 3);
	free(e);
}

/* Places wrap after 2147483647. Seen to fail: places that are compared as they are. */
static void places_wrap(void)
{
	char *plain[] = { "1-a-1-0000000010", "2-b-2-0000000009", "3-c-3-0000000011" };
	char *wraps[] = { "1-a-1--2147483648", "2-b-2-2147483647", "3-c-3--2147483647" };
	check_order(plain, 3, plain[1], plain[2]);
	check_order(wraps, 3, wraps[1], wraps[2]);
}

/* Seen to fail: a number that may be empty. */
static void names_of_requests(void)
{
	const char *bad[] = { "", "-", "closed", "1", "1-a", "1-a-1-", "1-a-1-x", "1-a-1-12x", "-1-a-1-0000000001",
			      "x-a-1-0000000001", "1--1-0000000001", "4294967296-a-1-0000000001",
			      "1-a-1-9999999999", " 1-a-1-0000000001", "epoch-0000000001" };
	char name[VEZ__NODE], whole[VEZ__NODE + 16];
	struct vez__entry e;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK(!vez__entry_parse(&e, bad[i]));
	vez__entry_name(name, UINT32_MAX, UINT64_MAX, UINT64_MAX);
	snprintf(whole, sizeof whole, "%s-2147483648", name);
	CHECK(strlen(whole) < VEZ__NODE);
	CHECK(vez__entry_parse(&e, whole));
	CHECK(e.n == UINT32_MAX && e.session == UINT64_MAX && e.id == UINT64_MAX && e.number == INT32_MIN);
	CHECK_EQ(e.called_at, 0);
}

/* What is called may be part of a name. Seen to fail: a digit that is taken for its number. */
static void names_of_calls(void)
{
	const char *bad[] = { "1-a-1-c", "1-a-1-c0-0000000001", "1-a-1-c0g-0000000001", "1-a-1-c00", "1-a-1-c00-",
			      "1-a-1-d00-0000000001" };
	char name[VEZ__CALL_NODE], whole[VEZ__CALL_NODE + 16];
	unsigned char called[VEZ__INSIDE], read[VEZ__INSIDE];
	struct vez__entry e;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK(!vez__entry_parse(&e, bad[i]));
	for (size_t i = 0; i < sizeof called; i++)
		called[i] = (unsigned char)(i * 7 + 250);
	for (size_t size = 0; size <= sizeof called; size++) {
		vez__entry_name_call(name, UINT32_MAX, UINT64_MAX, UINT64_MAX, called, size);
		snprintf(whole, sizeof whole, "%s-2147483648", name);
		CHECK(strlen(whole) < VEZ__CALL_NODE);
		CHECK(vez__entry_parse(&e, whole));
		CHECK(e.called_at > 0 && e.called_size == size && e.number == INT32_MIN);
		vez__entry_called(&e, whole, read);
		CHECK(memcmp(read, called, size) == 0);
	}
}

/* One letter for each in line: whether it holds (!) or not (-). */
static void check_turns(char **names, int count, const char *hold)
{
	struct String_vector v = { count, names };
	struct vez__turns t;
	size_t n;
	struct vez__entry *e = vez__entries_read(&v, &n, NULL, NULL);
	CHECK_EQ(n, strlen(hold));
	vez__turns_read(&t, &v, e, n);
	for (size_t i = 0; i < n; i++)
		CHECK_EQ(vez__turns_holds(&t, e, i), hold[i] == '!');
	free(e);
}

/* Readers that came before the epoch, and none that came after it, also where numbers wrap in between; of several
 * epochs the last one counts. Seen to fail: numbers that are compared as they are; the first epoch that is found; a
 * reader that is not admitted, or always; a writer that does not wait for who was admitted. */
static void turns(void)
{
	char *plain[] = { "9-a-1-0000000010", "1-b-2-0000000011", "9-c-3-0000000012", "1-d-4-0000000013",
			  "1-f-6-0000000015", "epoch-0000000009", "epoch-0000000014" };
	char *wraps[] = { "9-a-1-2147483646", "1-b-2-2147483647", "1-c-3--2147483648", "1-d-4--2147483646",
			  "epoch--2147483647", "epoch-2147483640" };
	char *before[] = { "9-a-1--2147483648", "1-b-2--2147483647", "epoch-2147483647" };
	char *readers[] = { "1-a-1-0000000001", "1-b-2-0000000002", "9-c-3-0000000003", "1-d-4-0000000004" };
	char *bad[] = { "9-a-1-0000000001", "1-b-2-0000000002", "epoch-", "epoch-x", "epoch-0000000009x" };
	check_turns(plain, 7, "-!-!-");
	check_turns(wraps, 6, "-!!-");
	check_turns(before, 3, "!-");
	check_turns(readers, 4, "!!--");
	check_turns(bad, 5, "!-");
}

/* An epoch goes when it is far behind, and nobody is left whom it has admitted. Seen to fail: one that never does; one
 * that does while a reader before it is there. */
static void epochs_outlived(void)
{
	char *far[] = { "1-a-1-0000000001", "epoch--1073741825" };
	char *near[] = { "1-a-1-0000000001", "epoch--1073741822" };
	char *none[] = { "1-a-1-0000000001", "1-b-2-0000000002" };
	char *used[] = { "1-a-1--2147483648", "epoch--2000000000" };
	char **all[] = { far, near, none, used };
	for (int i = 0; i < 4; i++) {
		struct String_vector v = { 2, all[i] };
		struct vez__turns t;
		size_t n;
		struct vez__entry *e = vez__entries_read(&v, &n, NULL, NULL);
		vez__turns_read(&t, &v, e, n);
		CHECK_EQ(vez__turns_outlived(&t, 1), i == 0);
		free(e);
	}
}

static void add(struct history *h, int64_t when, int client, enum happened what, uint64_t fence)
{
	h->records[h->count++] = (struct record){ when, fence, 1, client, 0, what };
}

static void add_of(struct history *h, uint32_t n, int client, uint64_t fence)
{
	h->records[h->count] = (struct record){ h->count, fence, n, client, 0, GOT };
	h->count++;
	h->records[h->count] = (struct record){ h->count, fence, n, client, 0, GIVES_BACK };
	h->count++;
}

/* Of readers and writers: what could not be held together has growing fences. Seen to fail: no look at fences where
 * there are several permits. */
static void checker_sees_fences(void)
{
	struct history *good = history_new(), *writer = history_new(), *reader = history_new();
	add_of(good, 8, 1, 5), add_of(good, 1, 2, 7), add_of(good, 1, 3, 6), add_of(good, 8, 4, 8);
	add_of(writer, 1, 2, 7), add_of(writer, 1, 3, 5), add_of(writer, 8, 4, 6);
	add_of(reader, 8, 2, 7), add_of(reader, 1, 3, 8), add_of(reader, 1, 4, 6);
	CHECK(history_fault(good, 8) == NULL);
	CHECK(history_fault(writer, 8) != NULL);
	CHECK(history_fault(reader, 8) != NULL);
}

/* Holds that overlap, a fence that falls, are seen; who lost its hold is not blamed. */
static void checker_sees_faults(void)
{
	struct history *good = history_new(), *both = history_new(), *falls = history_new(), *lost = history_new();
	add(good, 1, 1, GOT, 5), add(good, 2, 1, GIVES_BACK, 5);
	add(good, 3, 2, GOT, 6), add(good, 4, 2, GIVES_BACK, 6);
	add(both, 1, 1, GOT, 5), add(both, 2, 2, GOT, 6);
	add(both, 3, 1, GIVES_BACK, 5), add(both, 4, 2, GIVES_BACK, 6);
	add(falls, 1, 1, GOT, 6), add(falls, 2, 1, GIVES_BACK, 6);
	add(falls, 3, 2, GOT, 5), add(falls, 4, 2, LOST, 5);
	add(lost, 1, 1, GOT, 5), add(lost, 3, 2, GOT, 6), add(lost, 4, 2, GIVES_BACK, 6); /* the first was killed */
	CHECK(history_fault(good, 1) == NULL);
	CHECK(history_fault(both, 1) != NULL);
	CHECK(history_fault(both, 2) == NULL);
	CHECK(history_fault(falls, 1) != NULL);
	CHECK(history_fault(lost, 1) == NULL);
}

/* Seen to fail: a client without a socket taken for a server's answer, which lengthens the lease. */
static void no_answers(void)
{
	const int none[] = { ZCONNECTIONLOSS, ZOPERATIONTIMEOUT, ZSESSIONEXPIRED, ZSESSIONMOVED, ZCLOSING,
			     ZINVALIDSTATE, ZSYSTEMERROR, ZRUNTIMEINCONSISTENCY };
	const int some[] = { ZOK, ZNONODE, ZNODEEXISTS, ZBADVERSION, ZNOTEMPTY, ZNOAUTH, ZAUTHFAILED, ZMARSHALLINGERROR,
			     ZUNIMPLEMENTED, ZBADARGUMENTS, ZNOCHILDRENFOREPHEMERALS };
	for (size_t i = 0; i < sizeof none / sizeof *none; i++)
		CHECK(vez__unanswered(none[i]));
	for (size_t i = 0; i < sizeof some / sizeof *some; i++)
		CHECK(!vez__unanswered(some[i]));
}

const struct test part_tests[] = {
	{ "parts: places wrap", places_wrap },
	{ "parts: names of requests", names_of_requests },
	{ "parts: names of calls", names_of_calls },
	{ "parts: turns of readers and writers", turns },
	{ "parts: epochs that are outlived", epochs_outlived },
	{ "parts: what is no answer", no_answers },
	{ "parts: checker sees faults", checker_sees_faults },
	{ "parts: checker sees fences", checker_sees_fences },
	{ NULL, NULL },
};
