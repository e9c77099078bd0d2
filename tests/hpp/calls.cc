/* SPDX-License-Identifier: MIT */
/*
 * vez.hpp: time, tokens, requests, calls, and exceptions that travel to the caller.
 *
 * Seen to fail: see tests/hpp.sh.
 */
#include "test.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <csignal>

static void test_deadlines()
{
	using vez::deadline;
	using std::chrono::steady_clock;

	auto t = steady_clock::now();
	CHECK(deadline(t).native() == t.time_since_epoch().count());
	CHECK(deadline(steady_clock::time_point::max()).native() == VEZ_FOREVER);
	CHECK(deadline(steady_clock::time_point::min()).native() == VEZ_NOW);
	CHECK(deadline(std::chrono::hours::max()).native() == VEZ_FOREVER);
	CHECK(deadline(std::chrono::duration<double>(1e30)).native() == VEZ_FOREVER);
	CHECK(deadline(std::chrono::duration<double>(-1e30)).native() < 0);
	CHECK(deadline(std::chrono::system_clock::time_point::max()).native() == VEZ_FOREVER);
	CHECK(deadline(std::chrono::system_clock::time_point::min()).native() == VEZ_NOW);
	CHECK(deadline::never().native() == VEZ_FOREVER && deadline::passed().native() == VEZ_NOW);
	CHECK(deadline::from_native(42).native() == 42);

	/* steady_clock is CLOCK_MONOTONIC; and nothing is rounded down. */
	vez_deadline_t before = vez_after_ms(1000), mine = deadline(1s).native(), after = vez_after_ms(1000);
	CHECK(before <= mine && mine <= after);
	auto third = std::chrono::duration<std::int64_t, std::ratio<1, 3'000'000'000>>(1);
	CHECK(deadline(steady_clock::time_point{} + std::chrono::nanoseconds(5)).native() == 5);
	CHECK(vez::detail::saturated_ns(third) == 1);
	vez_deadline_t wall = deadline(std::chrono::system_clock::now() + 10s).native();
	std::int64_t left = vez_deadline_remaining_ns(wall);
	CHECK(left > 5'000'000'000 && left <= 10'000'000'000);
}

/* A clock of the program's own: it begins before zero, and counts in halves of a second. */
struct own_clock {
	using rep = double;
	using period = std::ratio<1, 2>;
	using duration = std::chrono::duration<rep, period>;
	using time_point = std::chrono::time_point<own_clock>;
	static constexpr bool is_steady = false;
	static time_point now()
	{
		return time_point(duration(std::chrono::steady_clock::now().time_since_epoch()) - 100h * 24 * 365);
	}
};

/* Every clock's times are moments of the future that far away. */
template <class Clock> static void test_clock()
{
	vez::semaphore none(0);
	std::int64_t left = vez_deadline_remaining_ns(vez::deadline(Clock::now() + 10s).native());
	CHECK(left > 5'000'000'000 && left <= 10'000'000'000);
	auto until = Clock::now() + 3ms;
	CHECK(!none.try_acquire_until(until));
	CHECK(Clock::now() >= until);
	CHECK(vez::deadline(Clock::now() - 1s).native() <= vez_after_ns(0));
}

static void test_clocks()
{
	test_clock<std::chrono::system_clock>();
	test_clock<std::chrono::steady_clock>();
	test_clock<std::chrono::high_resolution_clock>();
	test_clock<own_clock>();
#if __cplusplus >= 202002L && __cpp_lib_chrono >= 201907L
	test_clock<std::chrono::file_clock>();
#endif
}

static void test_tokens()
{
	vez::semaphore none(0);
	vez::cancel_token parent;
	{
		vez::cancel_token child(vez::child_of{ parent });
		vez::status ended = vez::status::ok;
		thread waiter([&] { ended = none.acquire_until(vez::deadline::never(), child); });
		wait_until([&] { return none.waiters() == 1; });
		CHECK(!child.fired());
		parent.fire();
		waiter.join();
		CHECK(ended == vez::status::canceled);
		CHECK(child.fired() && parent.fired());
	}
	CHECK(parent.clear() && !parent.fired());
	parent.fire_at(vez::deadline::passed());
	CHECK(parent.fired());
	parent.clear();
	parent.fire_at(1ms);
	CHECK(none.acquire_until(vez::deadline::never(), parent) == vez::status::canceled);
	parent.clear();
	parent.on_signal(SIGUSR1);
	std::raise(SIGUSR1);
	CHECK(none.acquire_until(vez::deadline::never(), parent) == vez::status::canceled);
	CHECK(thrown_by([&] { parent.on_signal(SIGKILL); }) == EINVAL);

	vez_cancel_fire(vez::self_token().native_handle());
	CHECK(none.acquire_until(1h, vez::self_token()) == vez::status::canceled);
	vez_cancel_clear(vez::self_token().native_handle());
}

static void test_hooks()
{
	vez::cancel_token t;
	int ran = 0;
	{
		vez::cancel_hook hook(t, [&] { ran++; });
		t.fire();
		t.fire();
		CHECK(ran == 1);
	}
	{
		vez::cancel_hook at_once(t, [&] { ran++; });
		CHECK(ran == 2);
	}
	t.clear();
	{
		vez::cancel_hook gone(t, [&] { ran = 100; });
	}
	t.fire();
	CHECK(ran == 2);
	t.clear();
	{
		vez::cancel_hook taken_off(t, [&] { ran = 100; });
		CHECK(taken_off.try_detach() && !taken_off.try_detach());
		t.fire();
	}
	t.clear();
	{
		vez::cancel_hook late(t, [&] { ran++; });
		t.fire();
		CHECK(!late.try_detach());
	}
	CHECK(ran == 3);

	/* Its end waits for the function that is running. */
	t.clear();
	std::atomic<bool> inside{ false }, left{ false };
	{
		std::unique_ptr<thread> firing;
		{
			vez::cancel_hook slow(t, [&] {
				inside = true;
				std::this_thread::sleep_for(5ms);
				left = true;
			});
			firing = std::make_unique<thread>([&] { t.fire(); });
			wait_until([&] { return inside.load(); });
		}
		CHECK(left);
	}
}

static void test_stop_token()
{
#ifdef __cpp_lib_jthread
	vez::semaphore none(0);
	vez::status ended = vez::status::ok;
	{
		std::stop_source stopped;
		thread worker([&] {
			vez::stop_cancel_token token(stopped.get_token());
			ended = none.acquire_until(vez::deadline::never(), token);
		});
		wait_until([&] { return none.waiters() == 1; });
		stopped.request_stop();
	}
	CHECK(ended == vez::status::canceled);

	vez::cancel_token token;
	std::stop_source source;
	{
		vez::stop_link link(source.get_token(), token);
	}
	source.request_stop();
	CHECK(!token.fired());
	vez::stop_cancel_token late(source.get_token());
	CHECK(late.fired());
#elif __cplusplus >= 202002L
#error "a C++20 without std::stop_token is not what this tests"
#endif
}

static void test_requests()
{
	vez::semaphore s(0);
	std::vector<int> results;
	vez::request r([&](int result) { results.push_back(result); });
	CHECK(r.result() == EINPROGRESS);
	CHECK(s.acquire_async(r) == vez::status::queued);
	s.release();
	CHECK(results == std::vector<int>({ 0 }) && r.result() == 0);
	CHECK(r.wait() == vez::status::ok);

	r.reset();
	r.set_limits(1ms);
	CHECK(s.acquire_async(r) == vez::status::queued);
	CHECK(r.wait() == vez::status::ok);
	CHECK(results == std::vector<int>({ 0, ETIMEDOUT }));

	r.reset();
	CHECK(s.acquire_async(r) == vez::status::queued);
	CHECK(r.wait(1ms) == vez::status::timeout);
	CHECK(r.cancel());
	CHECK(!r.cancel());
	CHECK(results.back() == ECANCELED && results.size() == 3);

	/* Granted at once: nothing is called. */
	s.release();
	r.reset();
	CHECK(s.acquire_async(r) == vez::status::ok);
	CHECK(results.size() == 3);

	/* One that goes out of scope takes nothing; its function is called. */
	{
		vez::request gone([&](int result) { results.push_back(result); });
		CHECK(s.acquire_async(gone) == vez::status::queued);
	}
	CHECK(results.back() == ECANCELED && s.waiters() == 0);

	/* The end of a request waits for its function that is running on another thread. */
	std::atomic<bool> inside{ false }, left{ false };
	{
		std::unique_ptr<thread> releasing;
		{
			vez::request slow([&](int) {
				inside = true;
				std::this_thread::sleep_for(5ms);
				left = true;
			});
			CHECK(s.acquire_async(slow) == vez::status::queued);
			releasing = std::make_unique<thread>([&] { s.release(); });
			wait_until([&] { return inside.load(); });
		}
		CHECK(left);
	}

	/* By key. */
	std::string order;
	vez::request a([&](int) { order += 'a'; });
	vez::request b([&](int) { order += 'b'; });
	a.set_key(2);
	b.set_key(1);
	CHECK(s.acquire_async(a) == vez::status::queued);
	CHECK(s.acquire_async(b) == vez::status::queued);
	s.release(2);
	CHECK(order == "ba");

	/* The other objects. */
	vez::rwlock l;
	vez::request reading([&](int result) { results.push_back(result); });
	vez::request writing([&](int result) { results.push_back(result); });
	CHECK(l.lock_shared_async(reading) == vez::status::ok);
	CHECK(l.lock_async(writing) == vez::status::queued);
	l.unlock_shared();
	CHECK(writing.result() == 0);
	l.unlock();
	vez::event e;
	vez::latch gate(1);
	vez::group g;
	vez::queue<int> q(1);
	int item = 0;
	reading.reset();
	writing.reset();
	CHECK(e.wait_async(reading) == vez::status::queued);
	CHECK(gate.wait_async(writing) == vez::status::queued);
	e.set();
	gate.count_down();
	CHECK(reading.result() == 0 && writing.result() == 0);
	reading.reset();
	writing.reset();
	CHECK(g.enter_async(1, reading) == vez::status::ok);
	CHECK(g.enter_async(2, writing) == vez::status::queued);
	g.leave();
	CHECK(writing.result() == 0);
	g.leave();
	reading.reset();
	writing.reset();
	CHECK(q.take_async(item, reading) == vez::status::queued);
	CHECK(q.put_async(7, writing) == vez::status::ok);
	CHECK(item == 7);
}

/* What a list's consumer is to know of a job. */
struct job : vez::listed_request {
	int number;
	job(vez::completions<job> &list, int n) : listed_request(list), number(n) {}
};

static void test_lists()
{
	vez::semaphore s(0);
	int efd = eventfd(0, EFD_NONBLOCK);
	eventfd_t ticks = 0;
	vez::cancel_token stop;
	vez::completions<job> done(efd);
	job a(done, 1), b(done, 2), c(done, 3);
	CHECK(done.next() == nullptr && done.wait(1ms) == vez::status::timeout);
	CHECK(s.acquire_async(a) == vez::status::queued && s.acquire_async(b) == vez::status::queued);
	s.release(2);
	CHECK(eventfd_read(efd, &ticks) == 0 && ticks == 1);
	for (int n : { 1, 2 }) {
		job *next = done.next();
		CHECK(next != nullptr && next->number == n && next->result() == 0);
	}
	CHECK(done.next() == nullptr);
	c.set_limits(vez::deadline::never(), stop);
	CHECK(s.acquire_async(c) == vez::status::queued);
	stop.fire();
	CHECK(done.wait() == vez::status::ok);
	CHECK(done.next() == &c && c.result() == ECANCELED);

	/* Decided at once: it joins no list. */
	s.release();
	a.reset();
	CHECK(s.acquire_async(a) == vez::status::ok && done.next() == nullptr);
	CHECK(done.wait(1h, stop) == vez::status::canceled);
	close(efd);
}

static void test_calls()
{
	vez::monitor m;
	int count = 0;
	CHECK(m.call([&] { return ++count; }) == 1);
	int &same = m.call([&]() -> int & { return count; });
	CHECK(&same == &count);
	CHECK(*m.call([&] { return std::make_unique<int>(5); }) == 5);
	m.call([&] { count = 10; });
	CHECK(count == 10);
	CHECK(m.call_when([&] { return count == 10; }, [&] { return std::string("ten"); }) == "ten");
	CHECK(m.call_when_until([] { return false; }, [] {}, 1ms) == vez::status::timeout);
	vez::cancel_token t;
	t.fire();
	CHECK(m.call_when_until([] { return true; }, [] {}, 1h, t) == vez::status::canceled);
	CHECK(m.call_when_until([] { return true; }, [&] { count++; }, 1h) == vez::status::ok);
	CHECK(count == 11);

	/* From inside: an error, not an exception that leaves the body unseen. */
	int inner = 0;
	m.call([&] { inner = thrown_by([&] { m.call([] {}); }); });
	CHECK(inner == EDEADLK);

	/* Under a lock of the monitor, the others' bodies run when it is left, by this thread. */
	std::thread::id ran_by;
	{
		std::unique_ptr<thread> caller;
		std::unique_lock<vez::monitor> inside(m);
		std::atomic<bool> begun{ false };
		caller = std::make_unique<thread>([&] {
			begun = true;
			m.call_when([&] { return count == 12; }, [&] { ran_by = std::this_thread::get_id(); });
		});
		wait_until([&] { return begun.load(); });
		inside.unlock();
		while (ran_by == std::thread::id()) {
			inside.lock();
			count = 12;
			inside.unlock();
			sched_yield();
		}
	}
	CHECK(ran_by != std::thread::id());
}

/* An exception that leaves a body or guard which another thread runs. */
static void test_exceptions_of_calls()
{
	vez::monitor m;
	CHECK(int_thrown_by([&] { m.call([] { throw 1; }); }) == 1);
	CHECK(int_thrown_by([&] { m.call_when([] { return true; }, [] { throw 2; }); }) == 2);
	CHECK(int_thrown_by([&] { m.call_when([]() -> bool { throw 3; }, [] {}); }) == 3);
	bool ran = false;
	CHECK(int_thrown_by([&] {
		      (void)m.call_when_until([]() -> bool { throw 4; }, [&] { ran = true; }, 1h);
	      }) == 4);
	CHECK(!ran);

	/* Some thread waits with a guard that throws when the state has changed. Who changes it goes on unharmed, and
	 * so do its later calls. */
	std::atomic<int> state{ 0 }, asked{ 0 };
	int body_thrown = 0, guard_thrown = 0;
	std::thread::id guard_ran_by, body_ran_by;
	{
		thread body_caller([&] {
			body_thrown = int_thrown_by([&] {
				m.call_when(
					[&] {
						asked |= 1;
						return state == 1;
					},
					[&] {
						body_ran_by = std::this_thread::get_id();
						throw 5;
					});
			});
		});
		thread guard_caller([&] {
			guard_thrown = int_thrown_by([&] {
				m.call_when(
					[&]() -> bool {
						asked |= 2;
						if (state != 1)
							return false;
						guard_ran_by = std::this_thread::get_id();
						throw 6;
					},
					[] {});
			});
		});
		wait_until([&] { return asked == 3; });
		/* They are queued when this one has been inside. */
		m.call([] {});
		CHECK(m.call([&] { return state = 1; }) == 1);
	}
	CHECK(body_thrown == 5 && guard_thrown == 6);
	CHECK(body_ran_by != std::thread::id() && guard_ran_by != std::thread::id());
	CHECK(m.call([] { return 8; }) == 8);
}

static vez::monitor *gave_up_of;

/* A give-up rule, as the C interface wants it. */
static void test_give_up_rule()
{
	vez::monitor m([](vez_monitor_t *of, vez_room_t *, vez_request_t *) {
		if (gave_up_of != nullptr && of == gave_up_of->native_handle())
			gave_up_of = nullptr;
	});
	vez_room_t room = VEZ_ROOM_INITIALIZER;
	vez_request_t r = VEZ_REQUEST_INITIALIZER;
	gave_up_of = &m;
	m.lock();
	CHECK(vez_monitor_wait(m.native_handle(), &room, &r, vez_after_ms(1), nullptr) == ETIMEDOUT);
	CHECK(gave_up_of == nullptr);
}

static void test_call_requests()
{
	vez::monitor m;
	bool ready = false;
	int ran = 0, result = -1;
	vez::call_request later([&] { return ready; }, [&] { ran++; }, [&](int rc) { result = rc; });
	CHECK(later.start(m) == vez::status::queued);
	m.call([&] { ready = true; });
	CHECK(ran == 1 && result == 0);
	later.reset();
	CHECK(later.start(m) == vez::status::ok);
	CHECK(ran == 2);
	{
		vez::call_request never([] { return false; }, [&] { ran = 100; }, [&](int rc) { result = rc; });
		CHECK(never.start(m) == vez::status::queued);
	}
	CHECK(ran == 2 && result == ECANCELED);
}

/* As above, of what a call_request holds. */
static void test_end_of_call_request()
{
	vez::monitor m;
	std::atomic<bool> ready{ false }, inside{ false }, left{ false };
	std::unique_ptr<thread> changing;
	auto held = std::make_shared<int>(0);
	std::weak_ptr<int> still = held;
	{
		vez::call_request slow([&] { return ready.load(); },
				       [&, held = std::move(held)] {
					       inside = true;
					       std::this_thread::sleep_for(5ms);
					       left = !still.expired();
				       },
				       [](int) {});
		CHECK(slow.start(m) == vez::status::queued);
		changing = std::make_unique<thread>([&] { m.call([&] { ready = true; }); });
		wait_until([&] { return inside.load(); });
	}
	CHECK(left);
}

static void test_once()
{
	vez::once o;
	int ran = 0;
	CHECK(int_thrown_by([&] { o.call([] { throw 7; }); }) == 7);
	CHECK(thrown_by([&] { o.call([&] { o.call([] {}); }); }) == EDEADLK);
	o.call([&] { ran++; });
	o.call([&] { ran++; });
	CHECK(ran == 1);

	/* Who waits meanwhile is the next to try. */
	vez::once tried;
	int first = 0, second = 0;
	std::atomic<bool> inside{ false }, go{ false };
	{
		thread thrower([&] {
			first = int_thrown_by([&] {
				tried.call([&] {
					inside = true;
					wait_until([&] { return go.load(); });
					throw 9;
				});
			});
		});
		wait_until([&] { return inside.load(); });
		thread next([&] { tried.call([&] { second = 1; }); });
		go = true;
	}
	CHECK(first == 9 && second == 1);
}

static void test_exceptions_of_barriers()
{
	bool throws = true;
	vez::barrier b(2, [&] {
		if (throws)
			throw 11;
	});
	std::atomic<int> thrown{ 0 }, broken{ 0 }, passed{ 0 };
	auto come = [&] {
		try {
			b.wait();
			passed++;
		} catch (int e) {
			thrown += e;
		} catch (const std::system_error &e) {
			broken += e.code().value();
		}
	};
	{
		thread one(come), two(come);
	}
	CHECK(thrown == 11 && broken == ENOTRECOVERABLE);
	CHECK(b.broken());
	b.reset();
	throws = false;
	{
		thread one(come), two(come);
	}
	CHECK(passed == 2 && thrown == 11);

	vez::barrier alone(1, [] { throw 12; });
	CHECK(int_thrown_by([&] { (void)alone.wait_until(1h); }) == 12);
}

/* Seen to fail: the generic category. */
void test_error_category()
{
	vez::semaphore s(1);
	s.close();
	try {
		s.acquire();
		CHECK(false);
	} catch (const std::system_error &e) {
		CHECK(e.code() == std::error_code(VEZ_ECLOSED, vez::error_category()));
		CHECK(e.code() == std::error_condition(VEZ_ECLOSED, std::generic_category()));
		CHECK(std::string(e.what()).find(vez_strerror(VEZ_ECLOSED)) != std::string::npos);
	}
	CHECK(std::error_code(ETIMEDOUT, vez::error_category()) == std::errc::timed_out);
	CHECK(std::string(vez::error_category().name()) == "vez");
}

int main()
{
	test_error_category();
	test_deadlines();
	test_clocks();
	test_tokens();
	test_hooks();
	test_stop_token();
	test_requests();
	test_lists();
	test_calls();
	test_exceptions_of_calls();
	test_give_up_rule();
	test_call_requests();
	test_end_of_call_request();
	test_once();
	test_exceptions_of_barriers();
	return failures != 0;
}
