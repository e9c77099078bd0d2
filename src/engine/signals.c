/* SPDX-License-Identifier: MIT */
/*
 * Tokens that a signal fires.
 *
 * State
 *  bound   of each signal: its token, or NULL; what it did before it had one. Written inside turn; the token by
 *          vez__cancel_bind
 *  came    a bit for each signal that came since the library's thread looked. Set by the handler, taken by that thread
 *  turn    a short lock: one thread at a time changes a signal's handler. It is held during that system call
 * Invariant: a token whose signals_ is not 0 is bound as often. While it is, its signals' handler is note.
 * Ordering: came (release, in note) pairs with the exchange in vez__signals_fire (acquire): what came before the signal
 *  comes before the fire. It comes before the bell that note rings, too: no signal is overlooked.
 * Lifetime: the handler touches only what is here, and the bell. The thread takes the token and marks it fired inside
 *  one vez__cancel_fire_of, and destroying a token unbinds it.
 */
#include "signals.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

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
} bound[SIGNALS];
static uint32_t came[WORDS];
static uint64_t turn;

static void take_turn(void)
{
	vez__hold();
	vez__lock_enter(&turn);
}

static void leave_turn(void)
{
	vez__lock_exit(&turn);
	vez__let_go();
}

static void note(int signo)
{
	vez__fetch_or(&came[signo / 32], UINT32_C(1) << signo % 32, release);
	vez__alarm_ring();
}

static vez_cancel_t *token_of(int signo)
{
	return bound[signo].token;
}

void vez__signals_fire(void)
{
	for (unsigned word = 0; word < WORDS; word++) {
		uint32_t bits = vez__load(&came[word], relaxed) ? vez__exchange(&came[word], 0, acquire) : 0;
		for (; bits; bits &= bits - 1)
			vez__cancel_fire_of(token_of, (int)word * 32 + __builtin_ctz(bits));
	}
}

/* In turn. */
static int take_over(int signo, vez_cancel_t *c)
{
	int rc = bound[signo].token ? 0 : vez__sys_handle(signo, note, &bound[signo].before);
	if (rc == 0)
		vez__cancel_bind(&bound[signo].token, c);
	return rc;
}

/* In turn. */
static void give_back(int signo)
{
	if (!bound[signo].token)
		return;
	vez__sys_unhandle(signo, &bound[signo].before);
	vez__fetch_and(&came[signo / 32], ~(UINT32_C(1) << signo % 32), relaxed);
	vez__cancel_bind(&bound[signo].token, NULL);
}

/* Those between the old signals and the real-time ones are the C library's. */
static bool can_be_handled(int signo)
{
	bool is_signal = signo > 0 && signo < SIGNALS && (signo < 32 || signo >= SIGRTMIN);
	return is_signal && signo != SIGKILL && signo != SIGSTOP;
}

int vez_cancel_on_signal(vez_cancel_t *c, int signo)
{
	int rc = 0;
	if (!can_be_handled(signo))
		return EINVAL;
	if (c)
		rc = vez__clock_start();
	if (rc != 0)
		return rc;
	take_turn();
	if (c)
		rc = take_over(signo, c);
	else
		give_back(signo);
	leave_turn();
	return rc;
}

void vez__signals_unbind(vez_cancel_t *c)
{
	take_turn();
	for (int signo = 1; signo < SIGNALS; signo++)
		if (bound[signo].token == c)
			give_back(signo);
	leave_turn();
}

/* All signals do what they did before. */
static void in_child(void)
{
	turn = 0;
	memset(came, 0, sizeof came);
	for (int signo = 1; signo < SIGNALS; signo++) {
		if (!bound[signo].token)
			continue;
		vez__sys_unhandle(signo, &bound[signo].before);
		bound[signo].token->signals_--;
		bound[signo].token = NULL;
	}
}

VEZ__AT_FORK(NULL, NULL, in_child)
