/* SPDX-License-Identifier: MIT */
/* What the tests of vez.hpp share: a check that says which one failed, threads, and waiting without sleeping. */
#ifndef VEZ_TESTS_HPP_TEST_H
#define VEZ_TESTS_HPP_TEST_H

#include <vez.hpp>

#include <sched.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

inline std::atomic<int> failures{ 0 };

inline void checked(bool holds, const char *file, int line, const char *what)
{
	if (holds)
		return;
	std::fprintf(stderr, "%s:%d: %s\n", file, line, what);
	failures++;
}

#define CHECK(...) checked(static_cast<bool>(__VA_ARGS__), __FILE__, __LINE__, #__VA_ARGS__)

/* The errno number of the std::system_error that f throws, or 0. */
template <class F> int thrown_by(F f)
{
	try {
		f();
	} catch (const std::system_error &e) {
		return e.code().category() == vez::error_category() ? e.code().value() : -1;
	}
	return 0;
}

/* What f throws, if that is an int. */
template <class F> int int_thrown_by(F f)
{
	try {
		f();
	} catch (int thrown) {
		return thrown;
	}
	return 0;
}

template <class F> void wait_until(F f)
{
	while (!f())
		sched_yield();
}

/* Joined at the end of its scope. */
class thread {
	std::thread t_;

public:
	template <class F> explicit thread(F f) : t_(std::move(f)) {}
	~thread() { join(); }
	void join()
	{
		if (t_.joinable())
			t_.join();
	}
};

#endif
