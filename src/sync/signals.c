/* SPDX-License-Identifier: MIT */
/*
 * Tokens that a signal fires.
 *
 * State
 *  bound   of each signal: its token, or NULL; what it did before it had one. Written inside turn; the token inside
 *          vez__cancel_enter, too
 *  came    a bit for each signal that came since the library's thread looked. Set by the handler, taken by that thread
 *  turn    who changes a signal's handler: that is a system call
 * Invariant: a token whose signals_ is not 0 is bound as often. While it is, its signals' handler is note.
 * Ordering: came (release, in note) pairs with the exchange in vez__signals_fire (acquire): what came before the signal
 *  comes before the fire. The bell that note rings is an event: no signal is overlooked.
 * Lifetime: the handler touches only what is here, and the bell. The thread takes the token and marks it fired inside
 *  one vez__cancel_enter, and destroying a token unbinds it.
 */
#include "signals.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "../futex/atomic.h"
#include "../futex/sys.h"
#include "alarm.h"
#include "cancel.h"
#include "vez/mutex.h"

#define SIGNALS 65
#define WORDS ((SIGNALS + 31) / 32)

static struct {
	vez_cancel_t *token;
	struct sigaction before;
} bound[SIGNALS];
static uint32_t came[WORDS];
static vez_mutex_t turn = VEZ_MUTEX_INITIALIZER;

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
static void bind(int signo, vez_cancel_t *c)
{
	vez__cancel_enter();
	if (bound[signo].token)
		bound[signo].token->signals_--;
	bound[signo].token = c;
	if (c)
		c->signals_++;
	vez__cancel_exit();
}

/* In turn. */
static int take_over(int signo, vez_cancel_t *c)
{
	int rc = bound[signo].token ? 0 : vez__sys_handle(signo, note, &bound[signo].before);
	if (rc == 0)
		bind(signo, c);
	return rc;
}

/* In turn. */
static void give_back(int signo)
{
	if (!bound[signo].token)
		return;
	vez__sys_unhandle(signo, &bound[signo].before);
	vez__fetch_and(&came[signo / 32], ~(UINT32_C(1) << signo % 32), relaxed);
	bind(signo, NULL);
}

/* Those between the old signals and the real-time ones are the C library's. */
static bool can_be_handled(int signo)
{
	return signo > 0 && signo < SIGNALS && signo != SIGKILL && signo != SIGSTOP && (signo < 32 || signo >= SIGRTMIN);
}

int vez_cancel_on_signal(vez_cancel_t *c, int signo)
{
	int rc = 0;
	if (!can_be_handled(signo))
		return EINVAL;
	if (c)
		rc = vez__alarm_start();
	if (rc != 0)
		return rc;
	vez_mutex_lock(&turn);
	if (c)
		rc = take_over(signo, c);
	else
		give_back(signo);
	vez_mutex_unlock(&turn);
	return rc;
}

void vez__signals_unbind(vez_cancel_t *c)
{
	vez_mutex_lock(&turn);
	for (int signo = 1; signo < SIGNALS; signo++)
		if (bound[signo].token == c)
			give_back(signo);
	vez_mutex_unlock(&turn);
}

void vez__signals_forget(void)
{
	memset(&turn, 0, sizeof turn);
	memset(came, 0, sizeof came);
	for (int signo = 1; signo < SIGNALS; signo++) {
		if (!bound[signo].token)
			continue;
		vez__sys_unhandle(signo, &bound[signo].before);
		bound[signo].token->signals_--;
		bound[signo].token = NULL;
	}
}
