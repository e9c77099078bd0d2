/* SPDX-License-Identifier: MIT */
/* vez.hpp: what ends the program. dies CASE is to abort with a line on stderr; tests/hpp.sh knows which. */
#include "test.h"

static vez::immortal<vez::mutex> held_mutex;
static vez_request_t pending;

static void dies(const std::string &what)
{
	if (what == "hook") {
		vez::cancel_token t;
		vez::cancel_hook h(t, [] { throw std::runtime_error("why"); });
		t.fire();
	} else if (what == "unknown") {
		vez::cancel_token t;
		vez::cancel_hook h(t, [] { throw 1; });
		t.fire();
	} else if (what == "request") {
		vez::semaphore s(0);
		vez::request r([](int) { throw std::runtime_error("why"); });
		(void)s.acquire_async(r);
		s.release();
	} else if (what == "async-body" || what == "async-guard") {
		vez::monitor m;
		bool in_guard = what == "async-guard";
		vez::call_request c(
			[=] {
				if (in_guard)
					throw std::runtime_error("why");
				return true;
			},
			[] { throw std::runtime_error("why"); }, [](int) {});
		(void)c.start(m);
	} else if (what == "order") {
		struct order {
			bool operator()(int, int) const { throw std::runtime_error("why"); }
		};
		vez::sched<int, order> s;
		s.enter(0);
		thread a([&] { s.enter(1); });
		wait_until([&] { return s.waiters() == 1; });
		thread b([&] { s.enter(2); });
		wait_until([&] { return s.waiters() == 2; });
		s.leave();
	} else if (what == "constraint" || what == "trigger") {
		int state = 0, one = 1;
		vez::operation<int, int> add("add", [](int &self, int &n) { self += n; });
		vez::object<int> o(state);
		if (what == "constraint") {
			vez::constraint c(o, add, [](int) -> bool { throw std::runtime_error("why"); });
			o.call(add, one);
		} else {
			vez::trigger t(o, add, [](int) { throw std::runtime_error("why"); });
			o.call(add, one);
		}
	} else if (what == "held object") {
		static int state = 0, one = 1;
		static vez::operation<int, int> add("add", [](int &self, int &n) { self += n; });
		vez::object<int> o(state);
		static vez::constraint c(o, add, [](int) { return false; });
		std::thread([&] { o.call(add, one); }).detach();
		wait_until([&] { return o.waiters() == 1; });
	} else if (what == "held mutex") {
		vez::mutex m;
		m.lock();
	} else if (what == "held rwlock") {
		vez::rwlock l;
		l.lock_shared();
	} else if (what == "held token") {
		static vez_cancel_hook_t hook;
		vez::cancel_token t;
		vez_cancel_attach(t.native_handle(), &hook, [](void *) {}, nullptr);
	} else if (what == "held cond") {
		vez::cond c;
		std::thread([&] {
			std::unique_lock<vez::mutex> l(*held_mutex);
			c.wait(l);
		}).detach();
		wait_until([&] { return c.waiters() == 1; });
	} else if (what == "held semaphore") {
		vez::semaphore s(0);
		vez_sem_acquire_async(s.native_handle(), 1, &pending);
	} else if (what == "held request") {
		static vez::immortal<vez::completions<vez::listed_request>> list;
		static vez::immortal<vez::semaphore> none(0u);
		vez::listed_request r(*list);
		(void)none->acquire_async(r);
	} else if (what == "held latch") {
		vez::latch l(1);
		vez_latch_wait_async(l.native_handle(), &pending);
	} else if (what == "held event") {
		vez::event e;
		vez_event_wait_async(e.native_handle(), &pending);
	} else if (what == "held barrier") {
		vez::barrier b(2);
		std::thread([&] { b.wait(); }).detach();
		wait_until([&] { return b.waiters() == 1; });
	} else if (what == "held queue") {
		static int item;
		vez::queue<int> q(1);
		vez_queue_take_async(q.native_handle(), &item, &pending);
	} else if (what == "held group") {
		vez::group g;
		g.enter(1);
	} else if (what == "held sched") {
		vez::sched<> s;
		s.enter();
	} else if (what == "held monitor") {
		vez::monitor m;
		m.lock();
	} else if (what == "upgrade") {
		vez::rwlock l;
		l.lock_shared();
		vez::upgrade_guard writing(l);
		l.undo_upgrade();
	} else if (what == "sched") {
		vez::sched<> s;
		vez::sched_guard in(s);
		s.leave();
	} else if (what == "permits") {
		vez::semaphore s(1, 1);
		vez::permits p(s);
		s.release();
	} else if (what == "group") {
		vez::group g;
		vez::group_guard in(g, 1);
		g.leave();
	} else if (what == "unlocked-twice") {
		vez::mutex m;
		std::lock_guard<vez::mutex> l(m);
		m.unlock();
	}
}

int main(int argc, char **argv)
{
	/* It is never destroyed. */
	vez::immortal<vez::mutex> held;
	held->lock();
	dies(argc > 1 ? argv[1] : "nothing");
	return 0;
}
