/* SPDX-License-Identifier: MIT */
/*
 * Radio buttons (S. Frolund and G. Agha, "A Language Framework for Multi-Object Coordination", 1993): a button is
 * pressed only when it is off, and released only when it is on; and of several buttons one at most is on.
 *
 * First each button is a monitor, and guards make the two alternate. Then each is an object, which has constraints for
 * that, and a synchronizer relates them: a button is pressed only when the others are off; or, at last, when one is
 * pressed the others come out. Neither is written into the buttons.
 * Seen to fail: is_off and is_on that are always true; press that leaves it off; without the constraints, or the
 * synchronizer's, or with it around two of the objects; without the trigger.
 */
#include "classic.h"

#define BUTTONS 3
#define PAIRS 4 /* of one who presses and one who releases */
#define ROUNDS 500

static struct button {
	vez_monitor_t monitor;
	vez_object_t object;
	bool on;
	unsigned pressed, released; /* how often; inside */
} buttons[BUTTONS];

static unsigned how_many_on(void)
{
	unsigned n = 0;
	for (int i = 0; i < BUTTONS; i++)
		n += buttons[i].on;
	return n;
}

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

/* ---- who presses and who releases: all go round in the same direction, so that one can always go on ---- */

static void (*do_press)(struct button *), (*do_release)(struct button *);

static void *presser(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS * BUTTONS; i++)
		do_press(&buttons[i % BUTTONS]);
	return NULL;
}

static void *releaser(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS * BUTTONS; i++)
		do_release(&buttons[i % BUTTONS]);
	return NULL;
}

static void play(void (*pressing)(struct button *), void (*releasing)(struct button *))
{
	pthread_t pressers[PAIRS], releasers[PAIRS];
	do_press = pressing;
	do_release = releasing;
	for (int i = 0; i < BUTTONS; i++)
		buttons[i].pressed = buttons[i].released = 0;
	for (int i = 0; i < PAIRS; i++) {
		releasers[i] = start(releaser, NULL);
		pressers[i] = start(presser, NULL);
	}
	for (int i = 0; i < PAIRS; i++) {
		finish(pressers[i]);
		finish(releasers[i]);
	}
	for (int i = 0; i < BUTTONS; i++)
		check(!buttons[i].on && buttons[i].released == PAIRS * ROUNDS);
}

/* ---- guards ---- */

static void guarded_press(struct button *b)
{
	check(vez_guarded_call((vez_guarded_t){ &b->monitor, is_off, press }, b) == 0);
}

static void guarded_release(struct button *b)
{
	check(vez_guarded_call((vez_guarded_t){ &b->monitor, is_on, release }, b) == 0);
}

static void alternate_by_guards(void)
{
	for (int i = 0; i < BUTTONS; i++)
		vez_monitor_init(&buttons[i].monitor, NULL);
	play(guarded_press, guarded_release);
	for (int i = 0; i < BUTTONS; i++)
		check(vez_monitor_destroy(&buttons[i].monitor) == 0);
}

/* ---- constraints ---- */

static void press_body(void *button, void *call)
{
	(void)call;
	press(button);
}

static void release_body(void *button, void *call)
{
	(void)call;
	release(button);
}

static const vez_operation_t press_it = { "press", press_body };
static const vez_operation_t release_it = { "release", release_body };

static bool may_press(void *button, void *call)
{
	(void)call;
	return is_off(button);
}

static bool may_release(void *button, void *call)
{
	(void)call;
	return is_on(button);
}

static void object_press(struct button *b)
{
	check(vez_object_call(&b->object, &press_it, NULL) == 0);
}

static void object_release(struct button *b)
{
	check(vez_object_call(&b->object, &release_it, NULL) == 0);
}

static vez_object_t *const objects[BUTTONS] = { &buttons[0].object, &buttons[1].object, &buttons[2].object };
static vez_constraint_t off[BUTTONS], on[BUTTONS];

static void make_objects(void)
{
	for (int i = 0; i < BUTTONS; i++) {
		struct button *b = &buttons[i];
		check(vez_object_init(&b->object, b, 0) == 0);
		check(vez_constraint_add(&b->object, &press_it, may_press, b, &off[i]) == 0);
		check(vez_constraint_add(&b->object, &release_it, may_release, b, &on[i]) == 0);
	}
}

/* ---- a synchronizer: only when the others are off ---- */

static bool none_is_on(void *arg, void *call)
{
	(void)arg, (void)call;
	return how_many_on() == 0;
}

static void one_at_most(void *arg, void *call)
{
	(void)arg, (void)call;
	check(how_many_on() == 1);
}

/* Releases what it has pressed: nobody else can. */
static void *player(void *arg)
{
	size_t first = (size_t)arg;
	for (size_t i = first; i < first + ROUNDS * BUTTONS; i++) {
		object_press(&buttons[i % BUTTONS]);
		object_release(&buttons[i % BUTTONS]);
	}
	return NULL;
}

static size_t all_waiters(void)
{
	size_t n = 0;
	for (int i = 0; i < BUTTONS; i++)
		n += vez_object_waiters(objects[i]);
	return n;
}

static void one_by_constraint(void)
{
	pthread_t threads[2 * PAIRS];
	vez_synchronizer_t radio;
	vez_constraint_t alone[BUTTONS];
	vez_trigger_t seen[BUTTONS];
	check(vez_synchronizer_init(&radio, objects, BUTTONS) == 0);
	for (int i = 0; i < BUTTONS; i++) {
		check(vez_synchronizer_constraint_add(&radio, objects[i], &press_it, none_is_on, NULL, &alone[i]) == 0);
		check(vez_synchronizer_trigger_add(&radio, objects[i], &press_it, one_at_most, NULL, &seen[i]) == 0);
	}
	object_press(&buttons[0]);
	for (size_t i = 0; i < 2 * PAIRS; i++)
		threads[i] = start(player, (void *)i);
	await(all_waiters() == 2 * PAIRS);
	object_release(&buttons[0]);
	for (int i = 0; i < 2 * PAIRS; i++)
		finish(threads[i]);
	check(how_many_on() == 0);
	check(vez_synchronizer_destroy(&radio) == 0);
}

/* ---- a synchronizer: the others come out ---- */

static void look_body(void *self, void *call)
{
	(void)self, (void)call;
	check(how_many_on() <= 1);
}

static const vez_operation_t look = { "look", look_body };

static void others_come_out(void *button, void *call)
{
	(void)call;
	for (int i = 0; i < BUTTONS; i++)
		if (&buttons[i] != button && buttons[i].on)
			release(&buttons[i]);
}

static unsigned have_ended;

static void *radio_presser(void *arg)
{
	presser(arg);
	__atomic_fetch_add(&have_ended, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* Whoever wants the button that is on waits until another is pressed: until all have had theirs, this one presses them.
 * Says how often. */
static unsigned press_for_the_last(void)
{
	unsigned n = 0;
	for (int i = 0; __atomic_load_n(&have_ended, __ATOMIC_ACQUIRE) < 2 * PAIRS; i++) {
		int rc = vez_object_try_call(objects[i % BUTTONS], &press_it, NULL);
		check(rc == 0 || rc == EBUSY);
		n += rc == 0;
		check(vez_object_call(objects[i / BUTTONS % BUTTONS], &look, NULL) == 0);
		sched_yield();
	}
	return n;
}

static void one_by_trigger(void)
{
	pthread_t threads[2 * PAIRS];
	vez_synchronizer_t radio;
	vez_trigger_t out[BUTTONS];
	unsigned pressed = 0;
	check(vez_synchronizer_init(&radio, objects, BUTTONS) == 0);
	for (int i = 0; i < BUTTONS; i++) {
		buttons[i].pressed = buttons[i].released = 0;
		check(vez_synchronizer_trigger_add(&radio, objects[i], &press_it, others_come_out, &buttons[i],
						   &out[i]) == 0);
	}
	for (int i = 0; i < 2 * PAIRS; i++)
		threads[i] = start(radio_presser, NULL);
	awaiting("the radio's buttons");
	unsigned for_the_last = press_for_the_last();
	for (int i = 0; i < 2 * PAIRS; i++)
		finish(threads[i]);
	for (int i = 0; i < BUTTONS; i++)
		pressed += buttons[i].pressed;
	check(pressed == 2 * PAIRS * ROUNDS * BUTTONS + for_the_last && how_many_on() == 1);
	check(vez_synchronizer_destroy(&radio) == 0);
}

int main(void)
{
	alternate_by_guards();
	make_objects();
	play(object_press, object_release);
	one_by_constraint();
	one_by_trigger();
	for (int i = 0; i < BUTTONS; i++)
		check(vez_object_destroy(objects[i]) == 0);
	return 0;
}
