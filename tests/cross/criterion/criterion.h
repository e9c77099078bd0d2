/* SPDX-License-Identifier: MIT */
/*
 * As much of Criterion's interface as the tests here use, for where Criterion cannot run: it starts each test as a new
 * program, which an emulator of another processor cannot do unless the system's kernel has been told of it. Here a test
 * is a child of the runner (runner.c), which is linked in place of the library.
 */
#ifndef CROSS_CRITERION_H
#define CROSS_CRITERION_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What Test and TestSuite say after the names. */
struct cross_extra {
	void (*init)(void);
	void (*fini)(void);
	double timeout; /* seconds */
	int signal;     /* that it must end with */
	int exit_code;
};

struct cross_test {
	const char *suite;
	const char *name; /* NULL: the suite itself */
	void (*run)(void);
	struct cross_extra extra;
	struct cross_test *next;
};

void cross_enter(struct cross_test *test);
_Noreturn void cross_failed(const char *file, int line, const char *condition, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#define CROSS_ENTER(id, suite_, name_, run_, ...) \
	__attribute__((constructor)) static void cross_enter_##id(void) \
	{ \
		static struct cross_test test_ = { \
			.suite = suite_, .name = name_, .run = run_, .extra = { __VA_ARGS__ } \
		}; \
		cross_enter(&test_); \
	}

#define Test(suite, test, ...) \
	static void cross_test_##suite##_##test(void); \
	CROSS_ENTER(suite##_##test, #suite, #test, cross_test_##suite##_##test, __VA_ARGS__) \
	static void cross_test_##suite##_##test(void)

#define TestSuite(suite, ...) CROSS_ENTER(suite, #suite, NULL, NULL, __VA_ARGS__) _Static_assert(1, "")

/* The message may be none. */
#define cr_assert(condition, ...) \
	((condition) ? (void)0 : cross_failed(__FILE__, __LINE__, #condition, " " __VA_ARGS__))
#define cr_assert_eq(a, b, ...) cr_assert((a) == (b), __VA_ARGS__)

#endif
