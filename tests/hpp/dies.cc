/* SPDX-License-Identifier: MIT */
/* vez.hpp: what ends the program. dies CASE is to abort with a line on stderr; tests/hpp.sh knows which. */
#include "test.h"

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
	} else if (what == "held-mutex") {
		vez::mutex m;
		m.lock();
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

/* It is still held at exit, and by nobody destroyed. */
static vez::immortal<vez::mutex> held;

int main(int argc, char **argv)
{
	held->lock();
	dies(argc > 1 ? argv[1] : "nothing");
	return 0;
}
