/* SPDX-License-Identifier: MIT */
/* Waits, and their processor time. */
#include "bill.h"

#include "futex/spin.h"
#include "thread.h"
#include "variant.h"

struct billed {
	struct thread thread;
	const struct billable *on;
	void *object;
	int rc;
	int64_t bill;
};

void spin_eagerly(void)
{
	static const enum vez__spin all[] = { VEZ__SPIN_LOCK, VEZ__SPIN_WORD, VEZ__SPIN_MUTEX };
	enum { PAUSES = 100000000 };
	__atomic_store_n(&vez__spin_limit, PAUSES, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < 3; i++)
		for (int times = 0; times < 64; times++)
			vez__spin_learn(all[i], PAUSES, true);
}

static void wait_billed(void *arg)
{
	struct billed *b = arg;
	spin_eagerly();
	int64_t before = own_cpu_ns();
	b->rc = b->on->wait(b->object);
	b->bill = own_cpu_ns() - before;
}

void burn(void)
{
	for (int64_t end = real_now() + BURN_NS; real_now() < end;)
		;
}

void check_waits_cost_nothing(const struct billable *on, void *object)
{
	enum { WAITERS = 8 };
	struct billed b[WAITERS];
	thread_pin_to_one_cpu();
	for (int i = 0; i < WAITERS; i++) {
		b[i] = (struct billed){ .on = on, .object = object, .rc = -1 };
		thread_start(&b[i].thread, wait_billed, &b[i]);
	}
	UNTIL(on->waiters(object) == WAITERS);
	burn();
	on->let_go(object, WAITERS);
	for (int i = 0; i < WAITERS; i++) {
		thread_join(&b[i].thread);
		EXPECT_EQ(b[i].rc, 0);
		EXPECT(b[i].bill < NEXT_TO_NOTHING_NS);
	}
}
