/* SPDX-License-Identifier: MIT */
/*
 * Tokens that a signal fires.
 *
 * State
 *  bound   of each signal: its token, or NULL; what it did before vez took it; whether vez ever did. Written inside
 *          turn; the token by vez__cancel_bind
 *  came    a bit for each signal that came and has not fired a token yet. Set by the handler, taken inside kin
 *          (cancel.c)
 *  turn    a short lock: one thread at a time changes a signal's handler. It is held during that system call
 * Invariants
 *  G1 a token whose signals_ is not 0 is bound as often.
 *  G2 a token is bound before the handler is installed, and unbound after it was taken away: a signal that the handler
 *     sees has a token.
 *  G3 a bit is taken, and its token marked, in one stay inside kin: whoever finds the bit gone finds the token fired.
 *     So vez_cancel_on_signal first fires the old token for a signal that came before it.
 *  G4 the handler is others' to change, too: it is installed by every call that binds, and taken away only where it is
 *     still the one that handles the signal.
 * Ordering: came (release, in note) pairs with the exchange in take_token (acquire): what came before the signal comes
 *  before the fire. It comes before the bell that note rings, too: no signal is overlooked.
 * Lifetime: the handler touches only what is here, and the bell. The thread takes the token and marks it fired inside
 *  one vez__cancel_fire_of, and destroying a token unbinds it. When a thread ends its token is unbound, and the handler
 *  stays: the signal was not to end the process, and does nothing until it is given to another token, or to none.
 */
#include "signals.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "../fault.h"
#include "../futex/atomic.h"
#include "../futex/fork.h"
#include "../futex/lock.h"
#include "../futex/sys.h"
#include "alarm.h"
#include "cancel.h"
#include "clock.h"
#include "hold.h"

#define SIGNALS 65
#define WORDS ((SIGNALS + 31) / 32)

static struct {
	vez_cancel_t *token;
	struct sigaction before;
	bool taken;
} bound[SIGNALS];
static uint32_t came[WORDS];
static uint64_t turn;

static void note(int signo)
{
	vez__fetch_or(&came[signo / 32], UINT32_C(1) << signo % 32, release);
	vez__alarm_ring();
}

static bool has_come(int signo)
{
	return vez__load(&came[signo / 32], relaxed) & UINT32_C(1) << signo % 32;
}

static bool take_bit(int signo)
{
	uint32_t bit = UINT32_C(1) << signo % 32;
	return vez__fetch_and(&came[signo / 32], ~bit, acquire) & bit;
}

/* Inside kin. */
static vez_cancel_t *take_token(int signo)
{
	return take_bit(signo) ? bound[signo].token : NULL;
}

static void fire_if_it_came(int signo)
{
	if (has_come(signo))
		vez__cancel_fire_of(take_token, signo);
}

void vez__signals_fire(void)
{
	for (unsigned word = 0; word < WORDS; word++) {
		uint32_t bits = vez__load(&came[word], relaxed);
		for (; bits; bits &= bits - 1)
			fire_if_it_came((int)word * 32 + __builtin_ctz(bits));
	}
}

/* In turn. A signal for which there was no token has come to nobody. */
static int take_over(int signo, vez_cancel_t *c)
{
	if (!bound[signo].token)
		take_bit(signo);
	vez__cancel_bind(&bound[signo].token, c);
	bound[signo].taken = true;
	int rc = vez__sys_handle(signo, note, &bound[signo].before);
	if (rc != 0)
		vez__cancel_bind(&bound[signo].token, NULL);
	return rc;
}

/* In turn, which is left while what came until then fires: its hooks are others' functions. */
static void give_back(int signo)
{
	if (!bound[signo].taken)
		return;
	vez__sys_unhandle(signo, note, &bound[signo].before);
	while (bound[signo].token && has_come(signo)) {
		vez__unlock_holding(&turn);
		fire_if_it_came(signo);
		vez__lock_holding(&turn);
		vez__sys_unhandle(signo, note, &bound[signo].before);
	}
	if (bound[signo].token)
		vez__cancel_bind(&bound[signo].token, NULL);
}

/* Those between the old signals and the real-time ones are the C library's. That of a fault would come again and again:
 * its handler must not return. */
static bool can_be_handled(int signo)
{
	bool is_signal = signo > 0 && signo < SIGNALS && (signo < 32 || signo >= SIGRTMIN);
	return is_signal && signo != SIGKILL && signo != SIGSTOP && !vez__is_fault(signo);
}

int vez_cancel_on_signal(vez_cancel_t *c, int signo)
{
	int rc = 0;
	if (!can_be_handled(signo))
		return EINVAL;
	if (c)
		rc = vez__cancel_is_over(c) ? EAGAIN : vez__clock_start();
	if (rc != 0)
		return rc;
	if (c)
		fire_if_it_came(signo);
	vez__lock_holding(&turn);
	if (c)
		rc = take_over(signo, c);
	else
		give_back(signo);
	vez__unlock_holding(&turn);
	return rc;
}

void vez__signals_unbind(vez_cancel_t *c, bool gives_back)
{
	vez__lock_holding(&turn);
	for (int signo = 1; signo < SIGNALS; signo++) {
		if (bound[signo].token != c)
			continue;
		if (gives_back)
			vez__sys_unhandle(signo, note, &bound[signo].before);
		vez__cancel_bind(&bound[signo].token, NULL);
	}
	vez__unlock_holding(&turn);
}

/* All signals do what they did before. */
static void in_child(void)
{
	turn = 0;
	memset(came, 0, sizeof came);
	for (int signo = 1; signo < SIGNALS; signo++) {
		if (!bound[signo].taken)
			continue;
		vez__sys_unhandle(signo, note, &bound[signo].before);
		if (bound[signo].token)
			bound[signo].token->signals_--;
		bound[signo].token = NULL;
		bound[signo].taken = false;
	}
}

VEZ__AT_FORK(NULL, NULL, in_child)
