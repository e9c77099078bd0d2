/* SPDX-License-Identifier: MIT */
/* The tests. */
#ifndef TEST_H
#define TEST_H

struct test {
	const char *name;
	void (*run)(void);
};

extern const struct test session_tests[], mutex_tests[], sem_tests[], rwlock_tests[], event_tests[], fault_tests[],
	tool_tests[], part_tests[], monitor_tests[], synchronizer_tests[], barrier_tests[], remote_tests[];

#endif
