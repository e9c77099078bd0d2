/* SPDX-License-Identifier: MIT */
/*
 * vez.hpp: every object, in every form of its calls.
 *
 * Seen to fail: see tests/hpp.sh.
 */
#include "test.h"

#include <numeric>
#include <shared_mutex>

/* Constant initialization: before anything runs. */
#if __cplusplus >= 202002L
#define CONSTINIT constinit
#else
#define CONSTINIT
#endif
CONSTINIT static vez::mutex static_mutex;
CONSTINIT static vez::semaphore static_semaphore(3);
CONSTINIT static vez::immortal<vez::latch> static_latch(2u);
CONSTINIT static vez::cond static_cond;
CONSTINIT static vez::rwlock static_rwlock;
CONSTINIT static vez::event static_event;
CONSTINIT static vez::once static_once;
CONSTINIT static vez::group static_group;
CONSTINIT static vez::monitor static_monitor;
CONSTINIT static vez::cancel_token static_token;

static void test_static_objects()
{
	static_event.set();
	static_once.call([] {});
	CHECK(static_event.is_set() && static_cond.waiters() == 0 && !static_token.fired());
	CHECK(static_group.try_enter(1) && static_rwlock.try_lock());
	static_group.leave();
	static_rwlock.unlock();
	CHECK(static_monitor.call([] { return 6; }) == 6);
}

static void test_mutex()
{
	std::lock_guard<vez::mutex> outer(static_mutex);
	vez::mutex m;
	{
		std::unique_lock<vez::mutex> l(m);
		CHECK(l.owns_lock());
		CHECK(!m.try_lock());
		CHECK(!m.try_lock_for(1ms));
		CHECK(!m.try_lock_until(std::chrono::steady_clock::now() - 1s));
		CHECK(m.lock_until(1ms) == vez::status::timeout);
		vez::cancel_token t;
		t.fire();
		CHECK(m.lock_until(1h, t) == vez::status::canceled);
	}
	CHECK(m.try_lock());
	m.unlock();
	CHECK(thrown_by([&] { m.unlock(); }) == EPERM);
	CHECK(m.lock_until(vez::deadline::passed()) == vez::status::ok);
	m.unlock();

	std::unique_lock<vez::mutex> timed(m, 1s);
	CHECK(timed.owns_lock());
	std::unique_lock<vez::mutex> late(m, std::chrono::system_clock::now() + 2ms);
	CHECK(!late.owns_lock());
	bool refused = false;
	try {
		(void)timed.try_lock_for(1ms);
	} catch (const std::system_error &e) { /* the guard's own: it has it */
		refused = e.code() == std::errc::resource_deadlock_would_occur;
	}
	CHECK(refused);
	timed.unlock();
	CHECK(timed.try_lock_for(1s) && !late.try_lock_for(1ms));
	timed.unlock();
	CHECK(late.try_lock_until(std::chrono::system_clock::now() + 1s));
	CHECK(!timed.try_lock_until(std::chrono::steady_clock::now() + 1ms));
	late.unlock();
	{
		vez::mutex other;
		std::scoped_lock both(m, other);
		CHECK(!m.try_lock() && !other.try_lock());
	}

	vez::mutex recursive(VEZ_RECURSIVE);
	recursive.lock();
	recursive.lock();
	CHECK(recursive.holds() == 2);
	recursive.unlock();
	recursive.unlock();

	vez::mutex strict(VEZ_ERRORCHECK);
	strict.lock();
	CHECK(thrown_by([&] { strict.lock(); }) == EDEADLK);
	strict.unlock();
	CHECK(thrown_by([] { vez::mutex bad(VEZ_RECURSIVE | VEZ_ERRORCHECK); }) == EINVAL);

	{
		std::unique_ptr<thread> waiter;
		std::lock_guard<vez::mutex> l(m);
		waiter = std::make_unique<thread>([&] { std::lock_guard<vez::mutex> inner(m); });
		wait_until([&] { return m.waiters() == 1; });
	}
	CHECK(m.waiters() == 0);

	/* It does exclude. */
	int count = 0;
	{
		std::vector<std::unique_ptr<thread>> threads;
		for (int i = 0; i < 4; i++)
			threads.push_back(std::make_unique<thread>([&] {
				for (int k = 0; k < 1000; k++) {
					std::lock_guard<vez::mutex> l(m);
					count++;
				}
			}));
	}
	CHECK(count == 4000);
}

/* Guards of a mutex and of a condition; whoever unlocks asks them, and what they throw is their wait's. */
static void test_guards()
{
	vez::mutex m;
	vez::cond c;
	int state = 0, seen = 0, thrown = 0;
	auto set = [&](int to) {
		std::lock_guard<vez::mutex> l(m);
		state = to;
		(void)c.notify_all();
	};
	{
		thread when([&] {
			m.lock_when([&] { return state == 1; });
			seen = state;
			m.unlock();
		});
		wait_until([&] { return m.waiters() == 1; });
		set(1);
	}
	CHECK(seen == 1);
	{
		thread awaits([&] {
			std::lock_guard<vez::mutex> l(m);
			m.await([&] { return state == 2; });
			seen = state;
		});
		wait_until([&] { return m.waiters() == 1; });
		set(2);
	}
	CHECK(seen == 2);
	{
		thread told([&] {
			std::unique_lock<vez::mutex> l(m);
			c.wait_when(l, [&] { return state == 3; });
			seen = state;
		});
		wait_until([&] { return c.waiters() == 1; });
		set(3);
	}
	CHECK(seen == 3);
	{
		auto throws_at_4 = [&] {
			if (state == 4)
				throw 4;
			return false;
		};
		thread when([&] {
			int n = int_thrown_by([&] { m.lock_when(throws_at_4); });
			std::lock_guard<vez::mutex> l(m); /* it was not locked */
			thrown += n;
		});
		thread awaits([&] {
			std::lock_guard<vez::mutex> l(m);
			thrown += int_thrown_by([&] { m.await(throws_at_4); });
		});
		thread told([&] {
			std::unique_lock<vez::mutex> l(m);
			thrown += int_thrown_by([&] { c.wait_when(l, throws_at_4); });
		});
		wait_until([&] { return m.waiters() == 2 && c.waiters() == 1; });
		set(4);
	}
	CHECK(thrown == 12);

	vez::cancel_token t;
	t.fire();
	CHECK(m.lock_when_until([] { return false; }, 1ms) == vez::status::timeout);
	CHECK(m.lock_when_until([] { return true; }, 1h, t) == vez::status::canceled);
	CHECK(m.lock_when_until([] { return true; }, vez::deadline::passed()) == vez::status::ok);
	CHECK(m.await_until([] { return false; }, 1ms) == vez::status::timeout);
	CHECK(m.await_until([] { return false; }, 1h, t) == vez::status::canceled);
	CHECK(m.await_until([] { return true; }, 1h, t) == vez::status::ok);
	m.unlock();
	CHECK(thrown_by([&] { m.await([] { return true; }); }) == EPERM);
	std::unique_lock<vez::mutex> l(m);
	CHECK(c.wait_when_until(l, [] { return false; }, 1ms) == vez::status::timeout);
	CHECK(c.wait_when_until(l, [] { return false; }, 1h, t) == vez::status::canceled);
	CHECK(l.owns_lock() && !m.try_lock());
	l.unlock();
	CHECK(thrown_by([&] { c.wait_when(l, [] { return true; }); }) == EPERM);
}

static void test_cond()
{
	vez::mutex m;
	vez::cond c;
	bool ready = false, seen = false;
	{
		thread waiter([&] {
			std::unique_lock<vez::mutex> l(m);
			c.wait(l, [&] { return ready; });
			seen = ready;
		});
		wait_until([&] { return c.waiters() == 1; });
		std::lock_guard<vez::mutex> l(m);
		ready = true;
		CHECK(c.notify_one() == 1);
	}
	CHECK(seen);

	std::unique_lock<vez::mutex> l(m);
	CHECK(c.wait_for(l, 1ms) == std::cv_status::timeout);
	CHECK(!c.wait_for(l, 1ms, [] { return false; }));
	CHECK(c.wait_for(l, 1ms, [] { return true; }));
	CHECK(c.wait_until(l, std::chrono::steady_clock::now()) == std::cv_status::timeout);
	CHECK(!c.wait_until(l, std::chrono::system_clock::now(), [] { return false; }));
	vez::cancel_token t;
	t.fire();
	CHECK(c.wait_until(l, 1h, t) == vez::status::canceled);
	CHECK(c.wait_until(l, 1h, t, [] { return false; }) == vez::status::canceled);
	CHECK(c.wait_until(l, 1h, t, [] { return true; }) == vez::status::ok);
	CHECK(c.wait_key(l, 5, 1ms) == vez::status::timeout);
	CHECK(l.owns_lock() && !m.try_lock());
	l.unlock();
	CHECK(thrown_by([&] { c.wait(l); }) == EPERM);

	/* The smaller key first. */
	std::vector<int> order;
	{
		auto by_key = [&](int key) {
			return [&, key] {
				std::unique_lock<vez::mutex> held(m);
				CHECK(c.wait_key(held, key) == vez::status::ok);
				order.push_back(key);
			};
		};
		thread second(by_key(2));
		wait_until([&] { return c.waiters() == 1; });
		thread first(by_key(1));
		wait_until([&] { return c.waiters() == 2; });
		CHECK(c.notify_all() == 2);
	}
	CHECK(order == std::vector<int>({ 1, 2 }));
}

static void test_rwlock()
{
	vez::rwlock l;
	{
		std::shared_lock<vez::rwlock> one(l);
		std::shared_lock<vez::rwlock> two(l, 1s);
		CHECK(one.owns_lock() && two.owns_lock());
		CHECK(!l.try_lock());
		CHECK(!l.try_lock_for(1ms));
		CHECK(!l.try_lock_until(std::chrono::steady_clock::now()));
		CHECK(l.lock_until(1ms) == vez::status::timeout);
		CHECK(l.try_lock_shared());
		l.unlock_shared();
		CHECK(!l.try_upgrade());
		CHECK(l.upgrade_until(1ms) == vez::status::timeout);
		two.unlock();
		{
			vez::upgrade_guard writing(l);
			CHECK(!l.try_lock_shared());
		}
		CHECK(l.try_lock_shared());
		l.unlock_shared();
		CHECK(l.try_upgrade());
		l.undo_upgrade();
		CHECK(thrown_by([&] { l.undo_upgrade(); }) == EPERM);
	}
	{
		std::unique_lock<vez::rwlock> writer(l);
		CHECK(!l.try_lock_shared());
		CHECK(!l.try_lock_shared_for(1ms));
		CHECK(!l.try_lock_shared_until(std::chrono::system_clock::now()));
		CHECK(l.lock_shared_until(1ms) == vez::status::timeout);
		vez::cancel_token t;
		t.fire();
		CHECK(l.lock_shared_until(1h, t) == vez::status::canceled);
		l.downgrade();
		writer.release();
		CHECK(l.try_lock_shared());
		l.unlock_shared();
		l.unlock_shared();
	}
	{
		std::shared_lock<vez::rwlock> reader(l, std::defer_lock);
		std::unique_lock<vez::rwlock> writer(l, std::defer_lock);
		CHECK(writer.try_lock_for(1s) && !reader.try_lock_for(1ms));
		CHECK(!reader.try_lock_until(std::chrono::system_clock::now() + 1ms));
		writer.unlock();
		CHECK(reader.try_lock_until(std::chrono::steady_clock::now() + 1s));
		CHECK(!writer.try_lock_until(std::chrono::steady_clock::now() + 1ms));
	}
	l.lock();
	l.unlock_any();
	l.lock_shared();
	l.unlock_any();
	CHECK(thrown_by([&] { l.unlock_any(); }) == EPERM);
	CHECK(l.try_lock());
	l.unlock();
	CHECK(thrown_by([&] { l.unlock(); }) == EPERM);
	CHECK(thrown_by([&] { l.unlock_shared(); }) == EPERM);
	CHECK(l.lock_until(1s) == vez::status::ok);
	l.unlock();
	CHECK(l.try_lock_until(vez::deadline::never()));
	l.unlock();
	CHECK(l.lock_shared_until(1s) == vez::status::ok);
	CHECK(l.upgrade_until(1s) == vez::status::ok);
	l.undo_upgrade();
	CHECK(l.try_lock_shared_for(1s));
	l.unlock_shared();
	l.unlock_shared();
	CHECK(thrown_by([] { vez::rwlock bad(77); }) == EINVAL);
	vez::rwlock fifo(VEZ_RW_FIFO);
	CHECK(fifo.try_lock());
	fifo.unlock();
}

static void test_semaphore()
{
	CHECK(static_semaphore.available() == 3);
	vez::semaphore s(2);
	{
		vez::permits both(s, 2);
		CHECK(s.available() == 0);
		CHECK(!s.try_acquire());
		CHECK(!s.try_acquire_for(1ms));
		CHECK(!s.try_acquire_until(std::chrono::steady_clock::now(), 2));
		CHECK(s.acquire_until(1ms) == vez::status::timeout);
		CHECK(s.acquire_key(3, 1ms) == vez::status::timeout);
	}
	CHECK(s.available() == 2);
	CHECK(s.try_acquire(2));
	{
		vez::permits adopted(s, 2, std::adopt_lock);
	}
	CHECK(s.try_acquire_for(1ms, 2));
	s.release(2);
	CHECK(s.acquire_until(1ms, nullptr, 2) == vez::status::ok);
	CHECK(s.drain() == 0);
	s.release();
	s.acquire();
	s.release(2);
	CHECK(s.drain() == 2);

	vez::cancel_token t;
	t.fire();
	CHECK(s.acquire_until(1h, t) == vez::status::canceled);
	{
		vez::status waited = vez::status::ok;
		thread waiter([&] { waited = s.acquire_until(vez::deadline::never()); });
		wait_until([&] { return s.waiters() == 1; });
		s.close();
		waiter.join();
		CHECK(waited == vez::status::closed);
	}
	CHECK(thrown_by([&] { s.acquire(); }) == ESHUTDOWN);
	CHECK(thrown_by([&] { (void)s.try_acquire(); }) == ESHUTDOWN);

	vez::semaphore most(1, 1);
	CHECK(thrown_by([&] { most.release(); }) == EOVERFLOW);
	CHECK(thrown_by([&] { most.acquire(2); }) == EINVAL);
	CHECK(thrown_by([] { vez::semaphore bad(2, 1); }) == EINVAL);
	CHECK(thrown_by([] { vez::semaphore bad(UINT32_MAX); }) == EINVAL);
	CHECK(thrown_by([] { vez::semaphore bad(1, 1, 1u << 20); }) == EINVAL);
}

/* Whoever waits is counted; and a wait waits. */
template <class Object, class Wait, class Go> static void test_waiting(Object &object, Wait wait, Go go)
{
	bool done = false;
	CHECK(object.waiters() == 0);
	{
		thread waiter([&] {
			wait();
			done = true;
		});
		for (long i = 0; i < 1000000 && object.waiters() == 0; i++)
			sched_yield();
		CHECK(object.waiters() == 1);
		go();
	}
	CHECK(done && object.waiters() == 0);
}

static void test_waiters()
{
	vez::rwlock l;
	l.lock();
	test_waiting(l, [&] { l.lock_shared(); }, [&] { l.unlock(); });
	l.unlock_shared();
	vez::semaphore s(0);
	test_waiting(s, [&] { CHECK(s.acquire_key(1) == vez::status::ok); }, [&] { s.release(); });
	vez::latch gate(1);
	test_waiting(gate, [&] { gate.wait(); }, [&] { gate.count_down(); });
	vez::event e;
	test_waiting(e, [&] { e.wait(); }, [&] { e.set(); });
	vez::group g;
	g.enter(1);
	test_waiting(g, [&] { CHECK(g.enter_until(2, 1h) == vez::status::ok); }, [&] { g.leave(); });
	g.leave();
	vez::sched<> turn;
	turn.enter();
	test_waiting(
		turn,
		[&] {
			CHECK(turn.enter_until(1h, nullptr) == vez::status::ok);
			turn.leave();
		},
		[&] { turn.leave(); });
	vez::queue<int> q(1);
	test_waiting(q, [&] { CHECK(q.take() == 5); },
		     [&] {
			     CHECK(q.takers() == 1 && q.putters() == 0);
			     CHECK(q.put_until(5, 1h) == vez::status::ok);
		     });
	CHECK(q.put(6));
	test_waiting(q, [&] { CHECK(q.put(7)); },
		     [&] {
			     CHECK(q.takers() == 0 && q.putters() == 1);
			     CHECK(q.take() == 6);
		     });
}

static void test_latch_and_event()
{
	CHECK(static_latch->count() == 2);
	vez::latch l(2);
	CHECK(!l.try_wait());
	CHECK(!l.try_wait_for(1ms));
	CHECK(l.wait_until(1ms) == vez::status::timeout);
	l.count_down();
	CHECK(l.count() == 1);
	{
		thread waiter([&] { l.wait(); });
		wait_until([&] { return l.waiters() == 1; });
		l.arrive_and_wait();
	}
	CHECK(l.try_wait());
	CHECK(l.wait_until(1ms) == vez::status::ok);

	vez::event e;
	CHECK(!e.is_set() && !e.try_wait() && !e.try_wait_for(1ms));
	CHECK(e.wait_until(1ms) == vez::status::timeout);
	e.set();
	e.wait();
	CHECK(e.is_set() && e.try_wait());
	e.reset();
	CHECK(!e.is_set());
	vez::event bell(VEZ_AUTO_RESET);
	bell.set();
	CHECK(bell.try_wait() && !bell.try_wait());
	CHECK(thrown_by([] { vez::event bad(1u << 20); }) == EINVAL);
	vez::cancel_token t;
	t.fire();
	CHECK(bell.wait_until(1h, t) == vez::status::canceled);
	CHECK(l.wait_until(1h, t) == vez::status::canceled);
}

static void test_barrier()
{
	int rounds = 0;
	std::atomic<std::uint32_t> indices{ 0 };
	vez::barrier b(3, [&] { rounds++; });
	{
		std::vector<std::unique_ptr<thread>> threads;
		for (int i = 0; i < 3; i++)
			threads.push_back(std::make_unique<thread>([&] { indices += b.wait() + 1; }));
	}
	CHECK(rounds == 1);
	CHECK(indices == 1 + 2 + 3);

	CHECK(b.wait_until(1ms) == vez::status::timeout);
	CHECK(b.broken());
	CHECK(b.wait_until(1ms) == vez::status::broken);
	CHECK(thrown_by([&] { b.wait(); }) == ENOTRECOVERABLE);
	b.reset();
	CHECK(!b.broken());

	vez::barrier alone(1);
	std::uint32_t index = 7;
	CHECK(alone.wait_until(vez::deadline::never(), nullptr, &index) == vez::status::ok);
	CHECK(index == 0);
	CHECK(alone.wait() == 0);
	CHECK(thrown_by([] { vez::barrier bad(0); }) == EINVAL);
}

struct item {
	int number;
	char letter;
	explicit item(int n) : number(n), letter('x') {}
};

static void test_queue()
{
	vez::queue<item> q(2);
	CHECK(q.put(item(1)));
	CHECK(q.try_put(item(2)) == vez::status::ok);
	CHECK(q.length() == 2);
	CHECK(q.try_put(item(3)) == vez::status::busy);
	CHECK(q.put_until(item(3), 1ms) == vez::status::timeout);
	CHECK(q.take()->number == 1);
	item it(0);
	CHECK(q.try_take(it) == vez::status::ok);
	CHECK(it.number == 2 && it.letter == 'x');
	CHECK(q.try_take(it) == vez::status::busy);
	CHECK(q.take_until(it, 1ms) == vez::status::timeout);
	vez::cancel_token t;
	t.fire();
	CHECK(q.take_until(it, 1h, t) == vez::status::canceled);
	CHECK(q.put(item(4)));
	q.close();
	CHECK(!q.put(item(5)));
	CHECK(q.try_put(item(5)) == vez::status::closed);
	CHECK(q.take()->number == 4);
	CHECK(!q.take());

	/* A rendezvous. */
	vez::queue<int> meet(0);
	long sum = 0;
	{
		thread taker([&] {
			while (auto got = meet.take())
				sum += *got;
		});
		for (int i = 1; i <= 100; i++)
			CHECK(meet.put(i));
		meet.close();
	}
	CHECK(sum == 5050);
	CHECK(thrown_by([] { vez::queue<item> bad(SIZE_MAX / 2); }) == EINVAL);
}

static void test_group()
{
	vez::group g;
	{
		vez::group_guard one(g, 1);
		CHECK(g.try_enter(1));
		g.leave();
		CHECK(!g.try_enter(2));
		CHECK(g.enter_until(2, 1ms) == vez::status::timeout);
	}
	CHECK(g.try_enter(2));
	g.leave();
	CHECK(thrown_by([&] { g.leave(); }) == EPERM);
}

static void test_sched()
{
	std::vector<int> order;
	vez::sched<int, std::greater<int>> s;
	{
		std::vector<std::unique_ptr<thread>> threads;
		vez::sched_guard inside(s, 0);
		CHECK(thrown_by([&] { s.enter(1); }) == EDEADLK);
		for (int job : { 2, 3, 1 }) {
			threads.push_back(std::make_unique<thread>([&, job] {
				vez::sched_guard turn(s, job);
				order.push_back(job);
			}));
			wait_until([&] { return s.waiters() == threads.size(); });
		}
		thread late([&] { CHECK(!s.try_enter(9)); });
		late.join();
		thread timed([&] { CHECK(s.enter_until(1ms, nullptr, 9) == vez::status::timeout); });
		timed.join();
		/* The guard goes before the threads that it holds back are joined. */
	}
	CHECK(order == std::vector<int>({ 3, 2, 1 }));
	CHECK(thrown_by([&] { s.leave(); }) == EPERM);

	vez::sched<> fifo;
	fifo.enter();
	fifo.leave();
	fifo.min_gap(1h);
	CHECK(fifo.try_enter() == false);
	CHECK(fifo.enter_until(1ms, nullptr) == vez::status::timeout);
	CHECK(thrown_by([&] { fifo.min_gap(-1s); }) == EINVAL);
}

static void test_names()
{
	vez::semaphore s(0);
	vez_inspect_enable(true);
	vez::set_name(s, "a semaphore of C++");
	char *text = nullptr;
	std::size_t size = 0;
	std::FILE *out = open_memstream(&text, &size);
	{
		thread waiter([&] { s.acquire(); });
		wait_until([&] { return vez_inspect(nullptr) == 1; });
		vez_inspect(out);
		s.release();
	}
	std::fclose(out);
	CHECK(std::string(text).find("\"a semaphore of C++\"") != std::string::npos);
	std::free(text);
	vez_inspect_name(s.native_handle(), nullptr);
	vez_inspect_enable(false);
}

int main()
{
	test_static_objects();
	test_mutex();
	test_guards();
	test_cond();
	test_rwlock();
	test_semaphore();
	test_waiters();
	test_latch_and_event();
	test_barrier();
	test_queue();
	test_group();
	test_sched();
	test_names();
	return failures != 0;
}
