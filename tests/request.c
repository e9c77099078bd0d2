/* SPDX-License-Identifier: MIT */
/* A request's public fields, and its use for one wait after another. */
#include <errno.h>
#include <string.h>
#include <vez.h>

#include "thread.h"
#include "variant.h"

TestSuite(request, .timeout = 60);

/* Seen to fail: init that leaves the key. */
Test(request, ALL_init_makes_what_zero_bytes_are)
{
	vez_request_t made, zero, initialized = VEZ_REQUEST_INITIALIZER;
	memset(&made, 0xa5, sizeof made);
	memset(&zero, 0, sizeof zero);
	vez_request_init(&made, NULL, NULL);
	EXPECT_EQ(memcmp(&made, &zero, sizeof made), 0);
	EXPECT_EQ(memcmp(&initialized, &zero, sizeof zero), 0);
	EXPECT(vez_request_ptr(&made) == NULL);
	EXPECT_EQ(vez_request_word(&made), 0);
}

/* Seen to fail: set_value that keeps 32 bits. */
Test(request, ALL_values_are_kept)
{
	int here;
	vez_request_t r = VEZ_REQUEST_INITIALIZER;
	vez_request_set_value(&r, &here, UINT64_C(0xfedcba9876543210));
	vez_request_set_key(&r, INT64_MIN);
	EXPECT(vez_request_ptr(&r) == &here);
	EXPECT_EQ(vez_request_word(&r), UINT64_C(0xfedcba9876543210));
	vez_request_set_value(&r, NULL, 0);
	EXPECT(vez_request_ptr(&r) == NULL);
	EXPECT_EQ(vez_request_word(&r), 0);
}

struct waiter {
	struct thread thread;
	vez_monitor_t m;
	vez_room_t room;
	vez_request_t r;
	int results[3];
	int places[3];
};

static void wait_three_times(void *arg)
{
	struct waiter *w = arg;
	for (int i = 0; i < 3; i++) {
		vez_monitor_enter(&w->m);
		vez_request_set_value(&w->r, &w->places[i], 10 + (uint64_t)i);
		w->results[i] = vez_monitor_wait(&w->m, &w->room, &w->r, VEZ_FOREVER, NULL);
	}
}

/* Seen to fail: prepare that leaves DONE in the word: the second wait returns at once. */
Test(request, ALL_one_wait_after_another)
{
	EACH_VARIANT(v, ONE_FORM | FIFO_ONLY) {
		struct waiter w = { .m = VEZ_MONITOR_INITIALIZER(NULL) };
		thread_start(&w.thread, wait_three_times, &w);
		for (int i = 0; i < 3; i++) {
			UNTIL(vez_room_length(&w.room) == 1)
				;
			vez_monitor_enter(&w.m);
			vez_request_t *first = vez_room_first(&w.room);
			EXPECT(first == &w.r);
			EXPECT_EQ(vez_request_word(first), 10 + i);
			*(int *)vez_request_ptr(first) = i + 1;
			EXPECT(vez_monitor_settle(&w.m, first, 20 + i));
			vez_monitor_exit(&w.m);
		}
		thread_join(&w.thread);
		for (int i = 0; i < 3; i++) {
			EXPECT_EQ(w.results[i], 20 + i);
			EXPECT_EQ(w.places[i], i + 1);
		}
		EXPECT_EQ(vez_monitor_destroy(&w.m), 0);
	}
}
