/* SPDX-License-Identifier: MIT */
/* vez.hpp: tokens that are waited for, sleeping, waits for any, rooms of monitors, objects with constraints. */
#include "test.h"

#include <sys/eventfd.h>
#include <unistd.h>

static void test_waiting_for_tokens()
{
	vez::cancel_token token;
	int result = -1;
	CHECK(!token.try_wait_until(1ms));
	{
		vez::request r([&](int rc) { result = rc; });
		CHECK(token.wait_async(r) == vez::status::queued);
		token.fire();
	}
	vez::cancel_token other;
	thread waits([&] { CHECK(thrown_by([&] { other.wait(); }) == 0); });
	/* It is refused while somebody waits, and otherwise changes nothing here. */
	wait_until([&] { return vez_cancel_destroy(other.native_handle()) == EBUSY; });
	other.fire();
	waits.join();
	CHECK(result == 0);
	CHECK(token.try_wait_until(vez::deadline::passed()));
	vez::request late([&](int) { result = 7; });
	CHECK(token.wait_async(late) == vez::status::ok && result == 0);
}

static void test_sleeping()
{
	vez::cancel_token token;
	auto until = std::chrono::steady_clock::now() + 2ms;
	CHECK(vez::sleep_until(until) == vez::status::ok);
	CHECK(std::chrono::steady_clock::now() >= until);
	thread fires([&] { token.fire(); });
	CHECK(vez::sleep_until(vez::deadline::never(), token) == vez::status::canceled);
}

static void test_eventfds()
{
	int efd = eventfd(0, EFD_NONBLOCK);
	eventfd_t ticks = 0;
	vez::cancel_token token;
	{
		vez::eventfd_request r(efd);
		CHECK(token.wait_async(r) == vez::status::queued);
		CHECK(eventfd_read(efd, &ticks) != 0);
		token.fire();
		CHECK(eventfd_read(efd, &ticks) == 0 && ticks == 1);
	}
	{
		vez::semaphore s(0);
		vez::eventfd_request never(efd);
		CHECK(s.acquire_async(never) == vez::status::queued);
	}
	close(efd);
}

static void test_select()
{
	vez::semaphore permits(0);
	vez::event stop;
	{
		vez::select any;
		vez::select::member permit(any), stopped(any);
		(void)permits.acquire_async(permit);
		(void)stop.wait_async(stopped);
		stop.set();
		CHECK(any.wait(1s) == vez::status::ok);
		CHECK(any.won(stopped) && !any.won(permit));
		CHECK(permit.result() == ECANCELED);
	}
	CHECK(permits.waiters() == 0);
	{
		vez::select any;
		vez::select::member permit(any);
		(void)permits.acquire_async(permit);
		CHECK(any.wait(1ms) == vez::status::timeout);
		CHECK(!any.won(permit));
	}
	{
		/* Nobody waits: the members withdraw themselves. */
		vez::select any;
		vez::select::member permit(any), other(any);
		(void)permits.acquire_async(permit);
		(void)permits.acquire_async(other);
	}
	CHECK(permits.waiters() == 0);
	vez::select none;
	CHECK(thrown_by([&] { (void)none.wait(); }) == EINVAL);
}

/* A customer waits for a chair, and is served there. */
struct customer : vez::waiter {
	int wish;
	explicit customer(int w, std::int64_t key = 0) : waiter(key), wish(w) {}
};

static void test_rooms()
{
	vez::monitor m;
	vez::room<customer> waiting, chair;
	std::vector<int> served;
	auto come = [&](int wish, std::int64_t key) {
		return [&, wish, key] {
			customer me(wish, key);
			std::unique_lock<vez::monitor> inside(m);
			CHECK(m.wait(inside, waiting, me, 1h) == vez::status::ok);
			CHECK(!inside.owns_lock());
		};
	};
	thread late(come(1, 2));
	wait_until([&] { return waiting.length() == 1; });
	thread early(come(2, 1));
	wait_until([&] { return waiting.length() == 2; });
	for (int i = 0; i < 2; i++) {
		std::unique_lock<vez::monitor> inside(m);
		customer *next = waiting.first();
		CHECK(i == 1 || waiting.next(*next)->wish == 1);
		CHECK(m.move(*next, chair) && m.keep(*next));
		CHECK(chair.first() == next && waiting.length() == 1u - static_cast<unsigned>(i));
		served.push_back(next->wish);
		CHECK(m.settle(*next));
		CHECK(!m.settle(*next));
	}
	late.join();
	early.join();
	CHECK(served == std::vector<int>{ 2, 1 });

	customer alone(3);
	std::unique_lock<vez::monitor> inside(m);
	CHECK(m.wait(inside, waiting, alone, 1ms) == vez::status::timeout);
	CHECK(thrown_by([&] { (void)m.wait(inside, waiting, alone, 1ms); }) == EPERM);
	thread odd([&] {
		customer me(4);
		std::unique_lock<vez::monitor> l(m);
		CHECK(thrown_by([&] { (void)m.wait(l, waiting, me); }) == ENOENT);
	});
	wait_until([&] { return waiting.length() == 1; });
	std::unique_lock<vez::monitor> again(m);
	CHECK(m.settle(*waiting.first(), ENOENT));
}

/* Who waits without a thread is told by a request; others see the wish all the same. */
static void test_rooms_without_a_thread()
{
	vez::monitor m;
	vez::room<customer> waiting, chair;
	std::vector<int> told;
	customer one(1), two(2);
	vez::request first([&](int result) { told.push_back(result); });
	vez::request second([&](int result) { told.push_back(result + 100); });
	first.set_key(5);
	second.set_key(4);
	{
		std::unique_lock<vez::monitor> inside(m);
		CHECK(m.wait_async(inside, waiting, one, first) == vez::status::queued);
		CHECK(!inside.owns_lock());
		CHECK(thrown_by([&] { (void)m.wait_async(inside, waiting, two, second); }) == EPERM);
		std::unique_lock<vez::monitor> again(m);
		CHECK(m.wait_async(again, waiting, two, second) == vez::status::queued);
	}
	{
		std::unique_lock<vez::monitor> inside(m);
		CHECK(waiting.first() == &two && waiting.next(two) == &one);
		CHECK(m.move(two, chair) && chair.first() == &two);
		CHECK(m.settle(one) && m.settle(*chair.first(), 7));
		CHECK(told.empty());
	}
	CHECK(told == std::vector<int>({ 0, 107 }));
	/* The same one, by its thread. */
	std::unique_lock<vez::monitor> inside(m);
	CHECK(m.wait(inside, waiting, two, 1ms) == vez::status::timeout);
	CHECK(second.result() == 7);

	vez::select any;
	vez::select::member here(any), late(any);
	m.lock();
	CHECK(m.settle_unqueued(here) && !m.settle_unqueued(late));
	m.unlock();
	CHECK(any.wait() == vez::status::ok && any.won(here));
}

/* Two accounts; what one may pay depends on both. */
static void test_objects()
{
	int mine = 10, yours = 0, total = 0;
	vez::operation<int, int> pay("pay", [](int &self, int &amount) {
		if (amount < 0)
			throw amount;
		self -= amount;
	});
	vez::operation<int, const char *> name("name", [](int &, const char *&n) { n = "account"; });
	vez::object<int> a(mine), b(yours);
	const char *called = nullptr;
	a.call(name, called);
	CHECK(std::string(called) == "account");
	{
		vez::synchronizer both(a, b);
		vez::constraint covered(both, a, pay, [&](const int &amount) { return amount < 0 || mine + yours >= amount; });
		vez::trigger sum(a, pay, [&](const int &amount) { total += amount; });
		vez::trigger again(both, b, pay, [&](const int &) { total += 100; });
		int four = 4, seven = 7, none = -3;
		a.call(pay, four);
		CHECK(mine == 6 && total == 4);
		CHECK(!a.try_call(pay, seven));
		CHECK(a.call_until(pay, seven, 1ms) == vez::status::timeout);
		CHECK(int_thrown_by([&] { a.call(pay, none); }) == -3);
		CHECK(int_thrown_by([&] { (void)a.try_call(pay, none); }) == -3);
		CHECK(int_thrown_by([&] { (void)a.call_until(pay, none, 1s); }) == -3);
		CHECK(total == 4 - 9);
		thread waits([&] { a.call(pay, seven); });
		wait_until([&] { return a.waiters() == 1; });
		yours = 0;
		int income = -1; /* throws: but it has run, and what waits is looked at */
		int more = 0;
		vez::operation<int, int> earn("earn", [](int &self, int &amount) { self += amount; });
		more = 5;
		b.call(earn, more);
		waits.join();
		CHECK(mine == -1 && yours == 5);
		CHECK(int_thrown_by([&] { b.call(pay, income); }) == -1);
	}
	int large = 50;
	a.call(pay, large); /* no constraint any more */
	CHECK(mine == -51);
	{
		vez::constraint own(a, pay, [](const int &amount) { return amount == 0; });
		CHECK(!a.try_call(pay, large));
	}
	CHECK(a.try_call(pay, large));
	{
		vez::trigger own(a, pay, [&](const int &) { total = 1000; });
		a.call(pay, large);
		CHECK(total == 1000);
	}
	total = 0;
	a.call(pay, large);
	CHECK(total == 0);
}

/* What an operation throws that nobody waits for is kept with the call. */
static void test_calls_without_a_thread()
{
	int state = 0, one = 1, result = -1;
	bool open = false;
	vez::operation<int, int> add("add", [](int &self, int &n) {
		if (n < 0)
			throw n;
		self += n;
	});
	vez::object<int> o(state);
	vez::request r([&](int rc) { result = rc; });
	{
		vez::constraint opened(o, add, [&](const int &) { return open; });
		vez::operation_call c(add, one);
		CHECK(o.call_async(c, r) == vez::status::queued);
		CHECK(state == 0 && result == -1);
		open = true;
	}
	CHECK(state == 1 && result == 0);
	int bad = -4;
	vez::operation_call c(add, bad);
	r.reset();
	CHECK(o.call_async(c, r) == vez::status::ok);
	CHECK(int_thrown_by([&] { c.rethrown(); }) == -4);
}

int main()
{
	test_waiting_for_tokens();
	test_sleeping();
	test_eventfds();
	test_select();
	test_rooms();
	test_rooms_without_a_thread();
	test_objects();
	test_calls_without_a_thread();
	return failures != 0;
}
