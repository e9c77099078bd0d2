/* SPDX-License-Identifier: MIT */
/*
 * Radio buttons (S. Frølund and G. Agha, "A Language Framework for Multi-Object Coordination", 1993): a button is
 * pressed only when it is off, and released only when it is on.
 *
 * Each button is a monitor, and a guard makes the two alternate. Everybody goes round the buttons in the same
 * direction, so that there is always one who can go on.
 * Seen to fail: is_off that is always true; is_on that is; press that leaves it off.
 */
#include "classic.h"

#define BUTTONS 3
#define PAIRS 4 /* of one who presses and one who releases */
#define ROUNDS 1000

static struct button {
	vez_monitor_t monitor;
	bool on;
	unsigned pressed, released; /* how often; inside */
} buttons[BUTTONS];

static bool is_off(void *button)
{
	return !((struct button *)button)->on;
}

static bool is_on(void *button)
{
	return ((struct button *)button)->on;
}

static void press(void *button)
{
	struct button *b = button;
	check(b->pressed++ == b->released);
	b->on = true;
}

static void release(void *button)
{
	struct button *b = button;
	check(++b->released == b->pressed);
	b->on = false;
}

static void *presser(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS * BUTTONS; i++) {
		struct button *b = &buttons[i % BUTTONS];
		check(vez_guarded_call((vez_guarded_t){ &b->monitor, is_off, press }, b) == 0);
	}
	return NULL;
}

static void *releaser(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS * BUTTONS; i++) {
		struct button *b = &buttons[i % BUTTONS];
		check(vez_guarded_call((vez_guarded_t){ &b->monitor, is_on, release }, b) == 0);
	}
	return NULL;
}

int main(void)
{
	pthread_t pressers[PAIRS], releasers[PAIRS];
	for (int i = 0; i < BUTTONS; i++)
		vez_monitor_init(&buttons[i].monitor, NULL);
	for (int i = 0; i < PAIRS; i++) {
		releasers[i] = start(releaser, NULL);
		pressers[i] = start(presser, NULL);
	}
	for (int i = 0; i < PAIRS; i++) {
		finish(pressers[i]);
		finish(releasers[i]);
	}
	for (int i = 0; i < BUTTONS; i++) {
		check(!buttons[i].on && buttons[i].released == PAIRS * ROUNDS);
		check(vez_monitor_destroy(&buttons[i].monitor) == 0);
	}
	return 0;
}
