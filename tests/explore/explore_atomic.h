/* SPDX-License-Identifier: MIT */
/*
 * Shared accesses under the schedule explorer: what src/futex/atomic.h is made of with -DVEZ_EXPLORE.
 *
 * Each access is a step at which the scheduler may switch, and carries its place in the source and its memory order.
 */
#ifndef VEZ__EXPLORE_ATOMIC_H
#define VEZ__EXPLORE_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

struct x__site {
	const char *file;
	const char *function;
	const char *what; /* the expression that names the word */
	const char *order_name;
	int line;
	int order;
};

#define X__SITE(p, order_token) \
	__extension__({ \
		static const struct x__site x__site_here = { \
			__FILE__, __func__, #p, #order_token, __LINE__, VEZ__ORDER_##order_token \
		}; \
		&x__site_here; \
	})

enum x__rmw { X__EXCHANGE, X__ADD, X__OR, X__AND };

uint64_t x__load(const void *p, unsigned size, const struct x__site *site);
void x__store(void *p, unsigned size, uint64_t value, const struct x__site *site);
uint64_t x__rmw(void *p, unsigned size, enum x__rmw op, uint64_t value, const struct x__site *site);
bool x__cas(void *p, unsigned size, void *expected, uint64_t desired, const struct x__site *site);

#define X__AS(p, value) ((__typeof__(*(p)))(value))
#define X__RMW(p, op, value, order) \
	__extension__({ \
		uint64_t x__old = x__rmw((p), sizeof *(p), op, (uint64_t)X__AS(p, value), X__SITE(p, order)); \
		X__AS(p, x__old); \
	})

#define vez__load(p, order) X__AS(p, x__load((p), sizeof *(p), X__SITE(p, order)))
#define vez__store(p, value, order) x__store((p), sizeof *(p), (uint64_t)X__AS(p, value), X__SITE(p, order))
#define vez__exchange(p, value, order) X__RMW(p, X__EXCHANGE, value, order)
#define vez__fetch_add(p, value, order) X__RMW(p, X__ADD, value, order)
#define vez__fetch_or(p, value, order) X__RMW(p, X__OR, value, order)
#define vez__fetch_and(p, value, order) X__RMW(p, X__AND, value, order)
#define vez__cas(p, expected, desired, order) \
	x__cas((p), sizeof *(p), (expected), (uint64_t)X__AS(p, desired), X__SITE(p, order))

/* For the explorer's own tests: the library has no fences. A scenario's setup says that there are some. */
void x__fences(void);
void x__fence(int order);

/* The loads of a waiting loop are steps themselves. */
void x__pause(void);
#define vez__pause() x__pause()

/* A handler may run here. */
void x__handlers(void);
#define vez__order_for_handlers() x__handlers()

#endif
