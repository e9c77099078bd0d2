/* SPDX-License-Identifier: MIT */
/*
 * The auction (M. Grand, Patterns in Java: Read/Write Lock): many bidders look at the highest bid, a few raise it;
 * whoever looks sees a bid whole, and nobody's raise is lost.
 *
 * vez_rwlock_t: lookers share, a bidder is alone, neither starves. A bidder looks first and upgrades only to raise:
 * others may have raised in between, so it looks again.
 * Seen to fail: without the read lock a looker sees an amount with another bidder's name; without the second look a
 * raise is lost, and the amount goes down.
 */
#include "classic.h"

#define LOOKERS 4
#define BIDDERS 3
#define HIGHEST 3000

static vez_rwlock_t lock = VEZ_RWLOCK_INITIALIZER;
static struct {
	int amount;
	int bidder;
	int number; /* amount * BIDDERS + bidder: tells a bid that is not whole */
} bid; /* under the lock */
static int raises[BIDDERS]; /* by each bidder */

static void *looker(void *arg)
{
	int last = 0;
	(void)arg;
	do {
		check(vez_rwlock_rdlock(&lock) == 0);
		check(bid.amount >= last && bid.number == bid.amount * BIDDERS + bid.bidder);
		last = bid.amount;
		check(vez_rwlock_rdunlock(&lock) == 0);
	} while (last < HIGHEST);
	return NULL;
}

/* Goes one higher, if nobody else has meanwhile. */
static void *bidder(void *arg)
{
	int me = (int)(intptr_t)arg, amount;
	do {
		check(vez_rwlock_rdlock(&lock) == 0);
		amount = bid.amount;
		if (amount < HIGHEST) {
			check(vez_rwlock_upgrade_until(&lock, VEZ_FOREVER, NULL) == 0);
			if (bid.amount == amount) {
				bid.amount = amount + 1;
				bid.bidder = me;
				bid.number = bid.amount * BIDDERS + me;
				raises[me]++;
			}
			check(vez_rwlock_undo_upgrade(&lock) == 0);
		}
		check(vez_rwlock_rdunlock(&lock) == 0);
		sched_yield();
	} while (amount < HIGHEST);
	return NULL;
}

int main(void)
{
	pthread_t lookers[LOOKERS], bidders[BIDDERS];
	for (int i = 0; i < LOOKERS; i++)
		lookers[i] = start(looker, NULL);
	for (intptr_t i = 0; i < BIDDERS; i++)
		bidders[i] = start(bidder, (void *)i);
	for (int i = 0; i < BIDDERS; i++)
		finish(bidders[i]);
	for (int i = 0; i < LOOKERS; i++)
		finish(lookers[i]);
	int total = 0;
	for (int i = 0; i < BIDDERS; i++)
		total += raises[i];
	check(bid.amount == HIGHEST && total == HIGHEST);
	check(vez_rwlock_destroy(&lock) == 0);
	return 0;
}
