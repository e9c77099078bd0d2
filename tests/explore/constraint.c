/* SPDX-License-Identifier: MIT */
/* Scenarios of objects, constraints and synchronizers (vez/constraint.h). Seen to fail with the faults
 * mutants/constraint-*. */
#include "vez/constraint.h"

#include <errno.h>

#include "scenario.h"
#include "src/futex/atomic.h"
#include "vez/sem.h"

enum { A, B, C, D, OBJECTS };

static vez_object_t o[OBJECTS];
static vez_object_t *const ab[] = { &o[A], &o[B] };
static vez_object_t *const bc[] = { &o[C], &o[B] };
static vez_synchronizer_t s, t;
static vez_constraint_t rule[2];
static vez_trigger_t trigger;
static vez_cancel_t token;
static vez_request_t r;
static int state[OBJECTS]; /* plain: whoever runs on related objects, or on one, is ordered with the others */
static int calls;
static int rc[X_THREADS];

/* ---- operations ---- */

static void add(void *self, void *arg)
{
	(void)arg;
	++*(int *)self;
}

static void take(void *self, void *arg)
{
	(void)arg;
	--*(int *)self;
}

static const vez_operation_t put_op = { "put", add };
static const vez_operation_t take_op = { "take", take };

static bool is_positive(void *arg, void *call)
{
	(void)call;
	return *(int *)arg > 0;
}

static bool never(void *arg, void *call)
{
	(void)arg;
	(void)call;
	return false;
}

/* ---- set-up and what is left ---- */

static void make_with(unsigned flags)
{
	X_NAME(o);
	X_NAME(s);
	X_NAME(t);
	X_NAME(token);
	X_NAME(r);
	x_alive(o, sizeof o);
	x_alive(&s, sizeof s);
	x_alive(&t, sizeof t);
	for (int i = 0; i < OBJECTS; i++) {
		state[i] = 0;
		x_assert(vez_object_init(&o[i], &state[i], flags) == 0);
	}
	vez_cancel_init(&token);
	calls = 0;
	for (int i = 0; i < X_THREADS; i++)
		rc[i] = -1;
}

static void make(void)
{
	make_with(0);
}

/* Takes from A wait until there is something. */
static void make_constrained(void)
{
	make();
	x_assert(vez_constraint_add(&o[A], &take_op, is_positive, &state[A], &rule[0]) == 0);
}

static void make_serial(void)
{
	make_with(VEZ_SERIAL);
	x_assert(vez_constraint_add(&o[A], &take_op, is_positive, &state[A], &rule[0]) == 0);
}

/* Takes from A wait until there is something in B. */
static void make_related(void)
{
	make();
	x_assert(vez_synchronizer_init(&s, ab, 2) == 0);
	x_assert(vez_synchronizer_constraint_add(&s, &o[A], &take_op, is_positive, &state[B], &rule[0]) == 0);
}

static void gone(void)
{
	for (int i = 0; i < OBJECTS; i++)
		x_assert(vez_object_destroy(&o[i]) == 0);
}

static void unrelated_and_gone(void)
{
	x_assert(vez_synchronizer_destroy(&s) == 0);
	gone();
}

static void put(int i)
{
	x_assert(vez_object_call(&o[i], &put_op, NULL) == 0);
}

static void take_from(int i)
{
	x_assert(vez_object_call(&o[i], &take_op, NULL) == 0);
}

static void put_a(void)
{
	put(A);
}

static void put_b(void)
{
	put(B);
}

static void take_a(void)
{
	take_from(A);
}

static void fire(void)
{
	vez_cancel_fire(&token);
}

/* ---- one object ---- */

static void three(void)
{
	x_assert(state[A] == 3);
	gone();
}

static void none_left(void)
{
	x_assert(state[A] == 0);
	gone();
}

static void take_a_twice(void)
{
	take_from(A);
	take_from(A);
}

static void put_b_twice(void)
{
	put(B);
	put(B);
}

static void put_a_twice(void)
{
	put(A);
	put(A);
}

X_SCENARIO(constraint_exclusion, .setup = make, .thread = { put_a, put_a, put_a }, .check = three, .stale = 1);
/* The constraint becomes true between the look at it and the queueing. */
X_SCENARIO(constraint_or_queue, .setup = make_constrained, .thread = { take_a, put_a }, .check = none_left, .stale = 1);

/* When a call that another one has run returns, the object may go, though that one has not left yet. */
static void take_and_destroy(void)
{
	take_from(A);
	x_assert(vez_object_destroy(&o[A]) == 0);
	x_dead(&o[A], sizeof o[A]);
}

X_SCENARIO(constraint_first_moment, .setup = make_constrained, .thread = { take_and_destroy, put_a }, .stale = 1);
X_SCENARIO(constraint_two, .setup = make_constrained, .thread = { take_a, take_a, put_a_twice }, .check = none_left);

static void take_limited(void)
{
	rc[0] = vez_object_call_until(&o[A], &take_op, NULL, x_soon(), &token);
	x_assert(rc[0] == 0 || rc[0] == ETIMEDOUT || rc[0] == ECANCELED);
}

static void taken_if_0(void)
{
	x_assert(state[A] == (rc[0] == 0 ? 0 : 1));
	gone();
}

X_SCENARIO(constraint_limited, .setup = make_constrained, .thread = { take_limited, put_a }, .check = taken_if_0);
X_SCENARIO(constraint_limited_fire, .setup = make_constrained, .thread = { take_limited, put_a, fire },
	   .check = taken_if_0);

/* Taken off while a call waits for it, and others change what it asks. */
static void take_off(void)
{
	x_assert(vez_constraint_remove(&rule[0]) == 0);
	x_dead(&rule[0], sizeof rule[0]);
}

static void make_constrained_anew(void)
{
	x_alive(&rule[0], sizeof rule[0]);
	make_constrained();
}

static void one_short(void)
{
	x_assert(state[A] == -1);
	gone();
}

static void two_short(void)
{
	x_assert(state[A] == -2);
	gone();
}

X_SCENARIO(constraint_remove_two, .setup = make_constrained_anew, .thread = { take_a, take_a, take_off },
	   .check = two_short);
X_SCENARIO(constraint_remove, .setup = make_constrained_anew, .thread = { take_a, take_off }, .check = one_short,
	   .stale = 1);
X_SCENARIO(constraint_remove_put, .setup = make_constrained_anew, .thread = { take_a, take_off, put_a },
	   .check = none_left);

/* A body that is run for a caller fires the token of that call, and of another one that waits. */
static void take_and_fire(void *self, void *arg)
{
	take(self, arg);
	vez_cancel_fire(&token);
}

static const vez_operation_t fire_op = { "take and fire", take_and_fire };

static void make_firing(void)
{
	make_constrained();
	x_assert(vez_constraint_add(&o[A], &fire_op, is_positive, &state[A], &rule[1]) == 0);
}

static void take_firing(void)
{
	rc[1] = vez_object_call_until(&o[A], &fire_op, NULL, VEZ_FOREVER, &token);
	x_assert(rc[1] == 0 || rc[1] == ECANCELED);
}

static void take_cancellable(void)
{
	rc[0] = vez_object_call_until(&o[A], &take_op, NULL, VEZ_FOREVER, &token);
	x_assert(rc[0] == 0 || rc[0] == ECANCELED);
}

static void fired_left(void)
{
	x_assert(state[A] == 1 - (rc[0] == 0) - (rc[1] == 0) && state[A] >= 0);
	gone();
}

static void fired_own(void)
{
	x_assert(rc[1] == 0 && state[A] == 0);
	gone();
}

static void put_and_fire(void)
{
	put(A);
	fire();
}

X_SCENARIO(constraint_fires_own, .setup = make_firing, .thread = { take_firing, put_a }, .check = fired_own);
X_SCENARIO(constraint_fires_other, .setup = make_firing, .thread = { take_firing, take_cancellable, put_and_fire },
	   .check = fired_left);

/* A body cancels a request that waits on the same object. */
static void take_and_cancel(void *self, void *arg)
{
	take(self, arg);
	rc[2] = vez_request_cancel(&r);
}

static const vez_operation_t cancel_op = { "take and cancel", take_and_cancel };

static void make_cancelling(void)
{
	make_constrained();
	x_assert(vez_constraint_add(&o[A], &cancel_op, is_positive, &state[A], &rule[1]) == 0);
	vez_request_init(&r, NULL, NULL);
	x_assert(vez_object_call_async(&o[A], &take_op, NULL, &r) == EINPROGRESS);
}

static void take_cancelling(void)
{
	x_assert(vez_object_call(&o[A], &cancel_op, NULL) == 0);
}

static void wait_taken(void)
{
	x_assert(vez_request_wait(&r, VEZ_FOREVER, NULL) == 0);
	rc[0] = vez_request_result(&r);
}

static void cancelled_or_taken(void)
{
	x_assert(rc[2] == 0 || rc[2] == EALREADY);
	x_assert(rc[0] == (rc[2] == 0 ? ECANCELED : 0));
	x_assert(state[A] == (rc[2] == 0 ? 1 : 0));
	gone();
}

X_SCENARIO(constraint_cancels, .setup = make_cancelling, .thread = { take_cancelling, wait_taken, put_a_twice },
	   .check = cancelled_or_taken);

/* The first of a serial object gives up: who comes later may go. */
X_SCENARIO(constraint_serial, .setup = make_serial, .thread = { take_limited, put_a }, .check = taken_if_0);
X_SCENARIO(constraint_serial_fire, .setup = make_serial, .thread = { take_limited, put_a, fire }, .check = taken_if_0);

/* ---- related objects ---- */

/* What is put into one is put into the other, as one step; both are used in opposite orders. */
static void add_to(void *arg, void *call)
{
	(void)call;
	x_assert(state[A] == state[B] || state[A] == state[B] + 1 || state[B] == state[A] + 1);
	++*(int *)arg;
}

static vez_trigger_t back;

static void make_mirrored(void)
{
	make();
	x_assert(vez_synchronizer_init(&s, ab, 2) == 0);
	x_assert(vez_synchronizer_trigger_add(&s, &o[A], &put_op, add_to, &state[B], &trigger) == 0);
	x_assert(vez_synchronizer_trigger_add(&s, &o[B], &put_op, add_to, &state[A], &back) == 0);
}

static void a_then_b(void)
{
	put(A);
	put(B);
}

static void b_then_a(void)
{
	put(B);
	put(A);
}

static void four_in_both(void)
{
	x_assert(state[A] == 4 && state[B] == 4);
	unrelated_and_gone();
}

static void five_in_both(void)
{
	x_assert(state[A] == 5 && state[B] == 5);
	unrelated_and_gone();
}

X_SCENARIO(synchronizer_opposite, .setup = make_mirrored, .thread = { a_then_b, b_then_a }, .check = four_in_both);
X_SCENARIO(synchronizer_opposite_three, .setup = make_mirrored, .thread = { a_then_b, b_then_a, put_b },
	   .check = five_in_both);

/* A constraint on one that asks another. */
static void one_in_b(void)
{
	x_assert(state[A] == -1 && state[B] == 1);
	unrelated_and_gone();
}

X_SCENARIO(synchronizer_or_queue, .setup = make_related, .thread = { take_a, put_b }, .check = one_in_b);

static void take_a_then_put_b(void)
{
	take_from(A);
	put(B);
}

static void two_in_b(void)
{
	x_assert(state[A] == -1 && state[B] == 2);
	unrelated_and_gone();
}

X_SCENARIO(synchronizer_wait, .setup = make_related, .thread = { take_a_then_put_b, put_b }, .check = two_in_b);

static void limited_left(void)
{
	x_assert(state[A] == (rc[0] == 0 ? -1 : 0) && state[B] == 1);
	unrelated_and_gone();
}

X_SCENARIO(synchronizer_limited, .setup = make_related, .thread = { take_limited, put_b }, .check = limited_left);
X_SCENARIO(synchronizer_limited_fire, .setup = make_related, .thread = { take_limited, put_b, fire },
	   .check = limited_left);

/* Two objects wait for what is in the other: whoever takes first leaves enough for both. */
static void make_crossed(void)
{
	make();
	x_assert(vez_synchronizer_init(&s, ab, 2) == 0);
	x_assert(vez_synchronizer_constraint_add(&s, &o[A], &take_op, is_positive, &state[B], &rule[0]) == 0);
	x_assert(vez_synchronizer_constraint_add(&s, &o[B], &take_op, is_positive, &state[A], &rule[1]) == 0);
}

static void take_b(void)
{
	take_from(B);
}

static void put_two_in_each(void)
{
	put_a_twice();
	put(B);
	put(B);
}

static void crossed(void)
{
	x_assert(state[A] == 1 && state[B] == 1);
	unrelated_and_gone();
}

X_SCENARIO(synchronizer_crossed, .setup = make_crossed, .thread = { take_a, take_b, put_two_in_each },
	   .check = crossed);

/* What is put into B goes to A, where calls wait: again and again, and also if they waited before the two were related.
 */
static void add_to_a(void *arg, void *call)
{
	(void)arg;
	(void)call;
	++state[A];
}

static void feed(void)
{
	x_assert(vez_synchronizer_init(&s, ab, 2) == 0);
	x_assert(vez_synchronizer_trigger_add(&s, &o[B], &put_op, add_to_a, NULL, &trigger) == 0);
}

static void make_fed(void)
{
	make_constrained();
	feed();
}

static void feed_and_put_b(void)
{
	feed();
	put(B);
}

static void fed(void)
{
	x_assert(state[A] == 0);
	unrelated_and_gone();
}

X_SCENARIO(synchronizer_twice, .setup = make_fed, .thread = { take_a_twice, put_b_twice }, .check = fed);
X_SCENARIO(synchronizer_inherits, .setup = make_constrained, .thread = { take_a, feed_and_put_b }, .check = fed);

/* ---- relations come and go ---- */

static void relate(void)
{
	x_assert(vez_synchronizer_init(&t, bc, 2) == 0);
}

static void relate_and_part(void)
{
	relate();
	x_assert(vez_synchronizer_destroy(&t) == 0);
	x_dead(&t, sizeof t);
}

static void relate_ab_and_part(void)
{
	x_assert(vez_synchronizer_init(&s, ab, 2) == 0);
	x_assert(vez_synchronizer_destroy(&s) == 0);
	x_dead(&s, sizeof s);
}

static void one_in_both(void)
{
	x_assert(state[A] == 1 && state[B] == 1);
	gone();
}

static void two_in_a(void)
{
	x_assert(state[A] == 2);
	gone();
}

X_SCENARIO(synchronizer_comes, .setup = make, .thread = { put_a, relate_ab_and_part }, .preemptions = 3);
X_SCENARIO(synchronizer_comes_two, .setup = make, .thread = { put_a, put_b, relate_ab_and_part }, .check = one_in_both);
X_SCENARIO(synchronizer_comes_same, .setup = make, .thread = { put_a, put_a, relate_ab_and_part }, .check = two_in_a);
X_SCENARIO(synchronizer_comes_both, .setup = make, .thread = { put_b, relate_and_part, relate_ab_and_part },
	   .check = gone);

/* Those of A and B are related already, by s, which goes while t, which shares B, stays: t is the domain of what it
 * relates. */
static void part_s(void)
{
	x_assert(vez_synchronizer_destroy(&s) == 0);
	x_dead(&s, sizeof s);
}

static void part_t(void)
{
	x_assert(vez_synchronizer_destroy(&t) == 0);
	x_dead(&t, sizeof t);
}

static void make_chain(void)
{
	make();
	x_assert(vez_synchronizer_init(&s, ab, 2) == 0);
	relate();
}

static void put_c(void)
{
	put(C);
}

static void chain_left(void)
{
	x_assert(state[B] == 1 && state[C] == 1);
	part_t();
	gone();
}

X_SCENARIO(synchronizer_parts, .setup = make_chain, .thread = { put_b, put_c, part_s }, .check = chain_left);
X_SCENARIO(synchronizer_part_both, .setup = make_chain, .thread = { put_b, part_s, part_t }, .check = gone);

/* Two groups, in each of which a call waits, become one, and part again; then the same with the other one's domain for
 * both. What is put into B goes to A, what is put into D to C, whichever group they are in. */
static vez_object_t *const cd[] = { &o[C], &o[D] };
static vez_object_t *const cb[] = { &o[B], &o[C] };
static vez_trigger_t feeds[2];
static vez_request_t takes[2];

static void feed_one(void *number, void *call)
{
	(void)call;
	++*(int *)number;
}

static void make_group(vez_synchronizer_t *of, vez_object_t *const *pair, int i)
{
	int *fed = &state[2 * i];
	x_assert(vez_constraint_add(pair[0], &take_op, is_positive, fed, &rule[i]) == 0);
	x_assert(vez_synchronizer_init(of, pair, 2) == 0);
	x_assert(vez_synchronizer_trigger_add(of, pair[1], &put_op, feed_one, fed, &feeds[i]) == 0);
	vez_request_init(&takes[i], NULL, NULL);
	x_assert(vez_object_call_async(pair[0], &take_op, NULL, &takes[i]) == EINPROGRESS);
}

static void make_two_groups(void)
{
	make();
	make_group(&s, ab, 0);
	make_group(&t, cd, 1);
}

static void relate_for_a_while(vez_object_t *const *pair)
{
	vez_synchronizer_t u;
	x_assert(vez_synchronizer_init(&u, pair, 2) == 0);
	x_assert(vez_synchronizer_destroy(&u) == 0);
}

static void merge_and_part(void)
{
	relate_for_a_while(bc);
	relate_for_a_while(cb);
}

static void put_b_and_d(void)
{
	put(B);
	put(D);
}

static void both_taken(void)
{
	for (int i = 0; i < 2; i++)
		x_assert(vez_request_result(&takes[i]) == 0);
	x_assert(state[A] == 0 && state[B] == 1 && state[C] == 0 && state[D] == 1);
	part_s();
	part_t();
	gone();
}

X_SCENARIO(synchronizer_merges, .setup = make_two_groups, .thread = { merge_and_part, put_b_and_d },
	   .check = both_taken, .preemptions = 2);

/* What holds two groups together was there first, and is the domain of both: it goes while calls wait in each of them,
 * and others are let go there; meanwhile another one comes that relates both again, or one of them to others. */
static vez_synchronizer_t u;
static vez_object_t *const ad[] = { &o[A], &o[D] };

static void make_bridged(void)
{
	make();
	X_NAME(u);
	x_alive(&u, sizeof u);
	x_assert(vez_synchronizer_init(&u, bc, 2) == 0);
	make_group(&s, ab, 0);
	make_group(&t, cd, 1);
}

static void part_u(void)
{
	x_assert(vez_synchronizer_destroy(&u) == 0);
	x_dead(&u, sizeof u);
}

static void relate_ad_for_a_while(void)
{
	relate_for_a_while(ad);
}

X_SCENARIO(synchronizer_domain_goes, .setup = make_bridged, .thread = { part_u, put_b_and_d }, .check = both_taken,
	   .preemptions = 2);
X_SCENARIO(synchronizer_domain_and_other, .setup = make_bridged,
	   .thread = { part_u, put_b_and_d, relate_ad_for_a_while }, .check = both_taken, .preemptions = 1,
	   .random = 5000);

/* A circle: whichever goes, the other two still relate all. What is put into C, and what is put into A, is counted in
 * A. */
static vez_object_t *const ca[] = { &o[C], &o[A] };

static void make_circle(void)
{
	make();
	X_NAME(u);
	x_alive(&u, sizeof u);
	x_assert(vez_synchronizer_init(&s, ab, 2) == 0);
	relate();
	x_assert(vez_synchronizer_init(&u, ca, 2) == 0);
	x_assert(vez_synchronizer_trigger_add(&u, &o[C], &put_op, add_to_a, NULL, &trigger) == 0);
}

static void part_s_then_t(void)
{
	part_s();
	part_t();
}

static void part_t_then_s(void)
{
	part_t();
	part_s();
}

static void two_in_a_one_in_c(void)
{
	x_assert(state[A] == 2 && state[C] == 1);
	part_u();
	gone();
}

X_SCENARIO(synchronizer_circle, .setup = make_circle, .thread = { part_s_then_t, put_a, put_c },
	   .check = two_in_a_one_in_c);
X_SCENARIO(synchronizer_circle_turned, .setup = make_circle, .thread = { part_t_then_s, put_a, put_c },
	   .check = two_in_a_one_in_c);

/* Who waits for a constraint of a synchronizer goes when that does. */
static void make_never(void)
{
	make();
	x_assert(vez_synchronizer_init(&s, ab, 2) == 0);
	x_assert(vez_synchronizer_constraint_add(&s, &o[A], &take_op, never, NULL, &rule[0]) == 0);
}

X_SCENARIO(synchronizer_goes, .setup = make_never, .thread = { take_a, part_s }, .check = one_short);
X_SCENARIO(synchronizer_goes_put, .setup = make_never, .thread = { take_a, part_s, put_b }, .check = one_short);

/* A call that comes when it has gone runs behind the one that waited for it. */
static void take_second(void *self, void *arg)
{
	x_assert(*(int *)self == -1);
	take(self, arg);
}

static const vez_operation_t second_op = { "take second", take_second };

static void make_never_filed(void)
{
	make();
	x_assert(vez_synchronizer_init(&s, ab, 2) == 0);
	x_assert(vez_synchronizer_constraint_add(&s, &o[A], NULL, never, NULL, &rule[0]) == 0);
	vez_request_init(&r, NULL, NULL);
	x_assert(vez_object_call_async(&o[A], &take_op, NULL, &r) == EINPROGRESS);
}

static void take_behind(void)
{
	x_assert(vez_object_call(&o[A], &second_op, NULL) == 0);
}

X_SCENARIO(synchronizer_goes_in_order, .setup = make_never_filed, .thread = { take_behind, part_s },
	   .check = two_short);

/* An object that it related may go as soon as destroy says so, though who lets it go has not returned. */
static void try_destroy_a(void)
{
	rc[0] = vez_object_destroy(&o[A]);
	x_assert(rc[0] == 0 || rc[0] == EBUSY);
	if (rc[0] == 0)
		x_dead(&o[A], sizeof o[A]);
}

static void rest_gone(void)
{
	for (int i = rc[0] == 0 ? B : A; i < OBJECTS; i++)
		x_assert(vez_object_destroy(&o[i]) == 0);
}

X_SCENARIO(synchronizer_goes_destroy, .setup = make_related, .thread = { try_destroy_a, part_s }, .check = rest_gone);

/* Somebody else's call on B runs the one that waits on A. When that returns, A may go with all that relates it, though
 * the other has not left yet. */
static void take_and_go(void)
{
	take_from(A);
	part_s();
	x_assert(vez_object_destroy(&o[A]) == 0);
	x_dead(&o[A], sizeof o[A]);
}

X_SCENARIO(synchronizer_first_moment, .setup = make_related, .thread = { take_and_go, put_b });

/* ---- without a thread ---- */

static void called(vez_request_t *done, int result, void *arg)
{
	(void)arg;
	x_assert(vez_request_result(done) == result);
	calls++;
	rc[0] = result;
}

static void take_async(void)
{
	vez_request_init(&r, called, NULL);
	vez_request_set_limits(&r, VEZ_FOREVER, &token);
	int filed = vez_object_call_async(&o[A], &take_op, NULL, &r);
	if (filed == EINPROGRESS) {
		x_assert(vez_request_wait(&r, VEZ_FOREVER, NULL) == 0 && calls == 1);
	} else {
		x_assert(calls == 0);
		rc[0] = filed;
	}
	x_assert(rc[0] == 0 || rc[0] == ECANCELED);
}

/* What a body completes is called when the object has been left. */
static vez_sem_t sem;
static vez_request_t told;

static void put_and_release(void *self, void *arg)
{
	add(self, arg);
	x_assert(vez_sem_release(&sem, 1) == 0);
}

static const vez_operation_t release_op = { "put and release", put_and_release };

static void put_when_told(vez_request_t *done, int result, void *arg)
{
	called(done, result, arg);
	put(A);
}

static void make_telling(void)
{
	make_constrained();
	X_NAME(sem);
	X_NAME(told);
	x_assert(vez_sem_init(&sem, 0, 0, 0) == 0);
	vez_request_init(&told, put_when_told, NULL);
	x_assert(vez_sem_acquire_async(&sem, 1, &told) == EINPROGRESS);
}

static void put_telling(void)
{
	x_assert(vez_object_call(&o[A], &release_op, NULL) == 0);
}

X_SCENARIO(constraint_body_completes, .setup = make_telling, .thread = { put_telling, take_a_twice },
	   .check = none_left);

/* Cancelled while it is let go. */
static void make_filed(void)
{
	make_constrained();
	vez_request_init(&r, NULL, NULL);
	x_assert(vez_object_call_async(&o[A], &take_op, NULL, &r) == EINPROGRESS);
}

/* Whoever completes it: its body has run. */
static void wait_and_look(void)
{
	wait_taken();
	x_assert(rc[0] != 0 || state[A] == 0);
}

static void cancel_it(void)
{
	rc[2] = vez_request_cancel(&r);
}

X_SCENARIO(constraint_cancelled, .setup = make_filed, .thread = { cancel_it, put_a, wait_and_look },
	   .check = cancelled_or_taken);
X_SCENARIO(constraint_async, .setup = make_constrained, .thread = { take_async, put_a }, .check = taken_if_0);
X_SCENARIO(constraint_async_fire, .setup = make_constrained, .thread = { take_async, put_a, fire },
	   .check = taken_if_0);
X_SCENARIO(synchronizer_async, .setup = make_related, .thread = { take_async, put_b, fire }, .check = limited_left);

/* The function of a completed call uses the objects: it is called when everything has been left, also A, where another
 * call waits and goes on waiting. */
static vez_request_t waiting;

static void use_again(vez_request_t *done, int result, void *arg)
{
	called(done, result, arg);
	put(A);
	put(B);
}

static void make_using(void)
{
	make();
	x_assert(vez_synchronizer_init(&s, ab, 2) == 0);
	x_assert(vez_synchronizer_constraint_add(&s, &o[A], &take_op, never, NULL, &rule[0]) == 0);
	x_assert(vez_synchronizer_constraint_add(&s, &o[B], &take_op, is_positive, &state[A], &rule[1]) == 0);
	vez_request_init(&waiting, NULL, NULL);
	x_assert(vez_object_call_async(&o[A], &take_op, NULL, &waiting) == EINPROGRESS);
	vez_request_init(&r, use_again, NULL);
	x_assert(vez_object_call_async(&o[B], &take_op, NULL, &r) == EINPROGRESS);
}

static void used(void)
{
	x_assert(calls == 1 && state[A] == 2 && state[B] == 1);
	x_assert(vez_request_cancel(&waiting) == 0);
	unrelated_and_gone();
}

X_SCENARIO(synchronizer_function, .setup = make_using, .thread = { put_a, put_b }, .check = used);

/* A call as a member of a wait-for-any: it has run, or taken nothing. */
static vez_request_t member[2];

static void make_choice(void)
{
	make_constrained();
	X_NAME(sem);
	X_NAME(member);
	x_assert(vez_sem_init(&sem, 0, 0, 0) == 0);
}

static void choose(void)
{
	vez_select_t any;
	vez_request_t *won;
	vez_select_init(&any);
	vez_object_call_async(&o[A], &take_op, NULL, vez_select_case(&any, &member[0]));
	vez_sem_acquire_async(&sem, 1, vez_select_case(&any, &member[1]));
	x_assert(vez_select_wait(&any, VEZ_FOREVER, NULL, &won) == 0);
	rc[0] = won == &member[0];
}

static void release(void)
{
	x_assert(vez_sem_release(&sem, 1) == 0);
}

static void chosen(void)
{
	x_assert(state[A] == (rc[0] ? 0 : 1) && vez_sem_permits(&sem) == (rc[0] ? 1 : 0));
	gone();
}

/* One that can be had at once, or by one who comes. */
static void chosen_call(void)
{
	x_assert(rc[0] && state[A] == 0);
	gone();
}

X_SCENARIO(constraint_choice_call, .setup = make_choice, .thread = { choose, put_a }, .check = chosen_call);
X_SCENARIO(constraint_choice, .setup = make_choice, .thread = { choose, put_a, release }, .check = chosen);

/* One whose deadline has passed, where the call can run at once. */
static void make_choice_late(void)
{
	x_make_alarm();
	make_choice();
	put(A);
}

static void choose_late(void)
{
	vez_select_t any;
	vez_request_t *won;
	vez_select_init(&any);
	vez_request_set_limits(vez_select_case(&any, &member[0]), VEZ_NOW, NULL);
	x_assert(vez_object_call_async(&o[A], &take_op, NULL, &member[0]) == 0);
	x_assert(vez_select_wait(&any, VEZ_FOREVER, NULL, &won) == 0 && won == &member[0]);
}

X_SCENARIO(constraint_choice_late, .setup = make_choice_late, .thread = { choose_late, put_a, x_alarm },
	   .preemptions = 1, .random = 2000);
