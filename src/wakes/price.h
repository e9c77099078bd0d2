/* SPDX-License-Identifier: MIT */
/*
 * What a wake in vain takes on this machine.
 */
#ifndef WAKES_PRICE_H
#define WAKES_PRICE_H

struct price {
	double cpu; /* seconds of processor time */
	double switches;
};

/* Measures it, for about a quarter of a second. */
struct price price_measure(void);

#endif
