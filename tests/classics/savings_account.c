/* SPDX-License-Identifier: MIT */
/*
 * The savings account (Herlihy and Shavit, The Art of Multiprocessor Programming, exercises to chapter 8): a withdrawal
 * waits until the balance suffices; preferred withdrawals go before ordinary ones; and a transfer waits for
 * another account.
 *
 * The balance is the permits of a semaphore, a withdrawal takes as many, and the key says which are preferred. A
 * transfer holds nothing while it waits, so that no circle of transfers can deadlock: it withdraws there, then
 * deposits here.
 * Seen to fail: with equal keys the ordinary withdrawal, which came first, is served first.
 */
#include "classic.h"

enum kind { PREFERRED, ORDINARY };

typedef vez_sem_t account; /* its permits are the balance */

static void deposit(account *a, uint32_t amount)
{
	check(vez_sem_release(a, amount) == 0);
}

static void withdraw(account *a, uint32_t amount, enum kind kind)
{
	check(vez_sem_acquire_key(a, amount, kind, VEZ_FOREVER, NULL) == 0);
}

static void transfer(account *to, account *from, uint32_t amount)
{
	withdraw(from, amount, ORDINARY);
	deposit(to, amount);
}

static account savings = VEZ_SEM_INITIALIZER(0);
static enum kind order[2];
static uint32_t served;

static void *withdrawal(void *arg)
{
	enum kind kind = (enum kind)(intptr_t)arg;
	withdraw(&savings, 100, kind);
	order[__atomic_fetch_add(&served, 1, __ATOMIC_ACQ_REL)] = kind;
	return NULL;
}

static void preferred_goes_first(void)
{
	pthread_t ordinary = start(withdrawal, (void *)(intptr_t)ORDINARY);
	await(vez_sem_waiters(&savings) == 1);
	pthread_t preferred = start(withdrawal, (void *)(intptr_t)PREFERRED);
	await(vez_sem_waiters(&savings) == 2);
	deposit(&savings, 60);
	check(vez_sem_waiters(&savings) == 2);
	deposit(&savings, 40);
	await(__atomic_load_n(&served, __ATOMIC_ACQUIRE) == 1);
	deposit(&savings, 100);
	finish(preferred);
	finish(ordinary);
	check(order[0] == PREFERRED && order[1] == ORDINARY && vez_sem_permits(&savings) == 0);
}

#define ACCOUNTS 4
#define TRANSFERS 2000

static account bank[ACCOUNTS];

static void *clerk(void *arg)
{
	size_t here = (size_t)arg;
	for (int i = 0; i < TRANSFERS; i++)
		transfer(&bank[here], &bank[(here + 1) % ACCOUNTS], 10);
	return NULL;
}

/* Everybody waits for the next one in the circle; the only money there is lies in one account. */
static void circle_of_transfers(void)
{
	pthread_t clerks[ACCOUNTS];
	for (size_t i = 0; i < ACCOUNTS; i++)
		clerks[i] = start(clerk, (void *)i);
	deposit(&bank[0], 10);
	for (size_t i = 0; i < ACCOUNTS; i++)
		finish(clerks[i]);
	uint32_t total = 0;
	for (size_t i = 0; i < ACCOUNTS; i++)
		total += vez_sem_drain(&bank[i]);
	check(total == 10);
}

int main(void)
{
	preferred_goes_first();
	circle_of_transfers();
	return 0;
}
