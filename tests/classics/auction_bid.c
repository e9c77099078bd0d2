/* SPDX-License-Identifier: MIT */
/*
 * The auction (M. Grand, Patterns in Java: Read/Write Lock): many bidders look at the highest bid, a few raise it;
 * whoever looks sees a bid whole, and nobody's raise is lost.
 *
 * vez_rwlock_t: lookers share, a bidder is alone, neither starves. A bidder looks first and upgrades only to raise:
 * others may have raised in between, so it looks again.
 * Seen to fail: without the lock a looker sees an amount with another bidder's name.
 */
#include "classic.h"

#define LOOKERS 4
#define BIDDERS 3
#define HIGHEST 3000

static vez_rwlock_t lock = VEZ_RWLOCK_INITIALIZER;
static struct {
	int amount;
	int bidder; /* amount % BIDDERS */
} bid; /* under the lock */

static void *looker(void *arg)
{
	int last = 0;
	(void)arg;
	do {
		check(vez_rwlock_rdlock(&lock) == 0);
		check(bid.amount >= last && bid.bidder == bid.amount % BIDDERS);
		last = bid.amount;
		check(vez_rwlock_rdunlock(&lock) == 0);
	} while (last < HIGHEST);
	return NULL;
}

/* Bids the next amount that is this bidder's, if nobody has gone higher. */
static void *bidder(void *arg)
{
	int me = (int)(intptr_t)arg, amount;
	do {
		check(vez_rwlock_rdlock(&lock) == 0);
		amount = bid.amount;
		if (amount < HIGHEST && (amount + 1) % BIDDERS == me) {
			check(vez_rwlock_upgrade_until(&lock, VEZ_FOREVER, NULL) == 0);
			if (bid.amount == amount) {
				bid.amount = amount + 1;
				bid.bidder = me;
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
	check(bid.amount == HIGHEST && vez_rwlock_destroy(&lock) == 0);
	return 0;
}
