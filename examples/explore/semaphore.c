/* SPDX-License-Identifier: MIT */
/*
 * Scenarios of a synchronizer of one's own: the semaphore of README.md, under the schedule explorer.
 *
 *	vez-explore semaphore.c              every interleaving, up to a bound: all scenarios pass
 *	vez-explore semaphore.c -DFORGETS    a semaphore whose rule for giving up serves nobody: it is found, and told
 *	                                     step by step, with a string by which --replay= runs that schedule again
 *
 * The fault is one that a test on real threads meets seldom: somebody who wants two permits gives up just when one has
 * been released, which would do for who is behind.
 */
#include <vez-explore.h>
#include <vez.h>

struct sem {
	vez_monitor_t monitor;
	vez_room_t room;
	uint64_t permits;
};

static void grant(struct sem *s)
{
	for (vez_request_t *r; (r = vez_room_first(&s->room)) && vez_request_value(r) <= s->permits;)
		if (vez_monitor_settle(&s->monitor, r, 0))
			s->permits -= vez_request_value(r);
}

static void gave_up(vez_monitor_t *m, vez_room_t *room, vez_request_t *r)
{
	(void)room, (void)r; /* whom it held back may go now */
#ifndef FORGETS
	grant((struct sem *)m);
#else
	(void)m;
#endif
}

static int acquire(struct sem *s, uint64_t n, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	vez_request_t r = VEZ_REQUEST_INITIALIZER;
	vez_request_set_value(&r, NULL, n);
	vez_monitor_enter(&s->monitor);
	if (vez_room_first(&s->room) || s->permits < n)
		return vez_monitor_wait(&s->monitor, &s->room, &r, deadline, cancel);
	s->permits -= n;
	vez_monitor_exit(&s->monitor);
	return 0;
}

static void release(struct sem *s, uint64_t n)
{
	vez_monitor_enter(&s->monitor);
	s->permits += n;
	grant(s);
	vez_monitor_exit(&s->monitor);
}

/* ---- scenarios ---- */

static struct sem s;
static int guarded; /* by the only permit; plain, so that the explorer reports who meets whom there */
static int rc;

static void make(void)
{
	x_alive(&s, sizeof s);
	X_NAME(s);
	vez_monitor_init(&s.monitor, gave_up);
	vez_room_init(&s.room);
	s.permits = 1;
	guarded = 0;
}

static void nothing_left(void)
{
	x_assert(s.permits == 1 && vez_room_length(&s.room) == 0);
	x_assert(vez_monitor_destroy(&s.monitor) == 0);
}

/* One permit is a lock. */
static void use(void)
{
	x_assert(acquire(&s, 1, VEZ_FOREVER, NULL) == 0);
	guarded++;
	release(&s, 1);
}

static void all_were_alone(void)
{
	x_assert(guarded == 3);
	nothing_left();
}

X_SCENARIO(excludes, .setup = make, .thread = { use, use, use }, .check = all_were_alone);

/* Who gives up holds nobody back: one who wants more than there will ever be, before one who wants what there is. */
static void want_two(void)
{
	x_assert(acquire(&s, 2, x_soon(), NULL) == ETIMEDOUT);
}

X_SCENARIO(gives_up, .setup = make, .thread = { want_two, use }, .check = nothing_left);

/* A grant that meets the deadline is one or the other. */
static void wait_a_little(void)
{
	rc = acquire(&s, 1, x_soon(), NULL);
	x_assert(rc == 0 || rc == ETIMEDOUT);
	if (rc == 0)
		release(&s, 1);
}

X_SCENARIO(grant_or_deadline, .setup = make, .thread = { use, wait_a_little }, .check = nothing_left);

/* Who was let go last may destroy it, though the thread that let it go has not returned. */
static void make_empty(void)
{
	make();
	s.permits = 0;
}

static void wait_and_destroy(void)
{
	x_assert(acquire(&s, 1, VEZ_FOREVER, NULL) == 0);
	x_dead(&s, sizeof s);
}

static void release_one(void)
{
	release(&s, 1);
}

X_SCENARIO(destroyed_by_who_was_let_go, .setup = make_empty, .thread = { wait_and_destroy, release_one });
