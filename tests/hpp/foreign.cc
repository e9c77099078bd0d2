/* SPDX-License-Identifier: MIT */
/* The C calls: a function that they call is left by an exception, or by the end of its thread. foreign WHAT CASE, WHAT
 * being throw or end, is to abort with a line on stderr, also where the caller catches everything; tests/foreign.sh
 * knows which cases there are. */
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vez.h>

static bool ends;

static void leave()
{
	if (ends)
		pthread_exit(nullptr);
	throw std::runtime_error("why");
}

static void leave_1(void *)
{
	leave();
}

static bool leave_guard(void *)
{
	leave();
	return true;
}

static int leave_int(void *)
{
	leave();
	return 0;
}

static void leave_2(void *, void *)
{
	leave();
}

static bool leave_rule(void *, void *)
{
	leave();
	return true;
}

static void leave_request(vez_request_t *, int, void *)
{
	leave();
}

static void leave_gave_up(vez_monitor_t *, vez_room_t *, vez_request_t *)
{
	leave();
}

static bool leave_order(const void *, const void *)
{
	leave();
	return true;
}

static void nothing(void *) {}
static void nothing_2(void *, void *) {}

static bool guard_open;

static bool is_open(void *)
{
	return guard_open;
}

static void open_it(void *)
{
	guard_open = true;
}

static void hook(bool fired)
{
	vez_cancel_t t = VEZ_CANCEL_INITIALIZER;
	vez_cancel_hook_t h;
	if (fired)
		vez_cancel_fire(&t);
	vez_cancel_attach(&t, &h, leave_1, nullptr);
	vez_cancel_fire(&t);
}

static void request()
{
	vez_sem_t s = VEZ_SEM_INITIALIZER(0);
	vez_request_t r;
	vez_request_init(&r, leave_request, nullptr);
	vez_sem_acquire_async(&s, 1, &r);
	vez_sem_release(&s, 1);
}

/* Filed, and run by a later call. */
static void filed(bool (*guard)(void *), void (*body)(void *))
{
	static vez_monitor_t m = VEZ_MONITOR_INITIALIZER(nullptr);
	vez_request_t r;
	vez_request_init(&r, nullptr, nullptr);
	vez_monitor_call_async(&m, guard, body, nullptr, &r);
	vez_monitor_call(&m, open_it, nullptr);
}

static void object(const std::string &what)
{
	static vez_operation_t bad = { "bad", leave_2 }, good = { "good", nothing_2 };
	vez_object_t o;
	vez_constraint_t c;
	vez_trigger_t t;
	vez_object_init(&o, nullptr, 0);
	if (what == "constraint")
		vez_constraint_add(&o, &good, leave_rule, nullptr, &c);
	if (what == "trigger")
		vez_trigger_add(&o, &good, leave_2, nullptr, &t);
	vez_object_call(&o, what == "operation" ? &bad : &good, nullptr);
}

static void gave_up()
{
	static vez_monitor_t m = VEZ_MONITOR_INITIALIZER(leave_gave_up);
	static vez_room_t room = VEZ_ROOM_INITIALIZER;
	vez_request_t r = VEZ_REQUEST_INITIALIZER;
	vez_monitor_enter(&m);
	vez_monitor_wait(&m, &room, &r, vez_after_ms(1), nullptr);
}

static void order()
{
	static vez_sched_t s;
	static int keys[2];
	vez_sched_init(&s, leave_order, 0);
	vez_sched_enter(&s, nullptr);
	for (int &key : keys) {
		static pthread_t t;
		pthread_create(&t, nullptr, [](void *arg) -> void * { return vez_sched_enter(&s, arg), arg; }, &key);
	}
	while (vez_sched_waiters(&s) < 2)
		sched_yield();
	vez_sched_leave(&s);
	for (;;)
		pause(); /* the one who compares may be a thread that is still about to wait */
}

static vez_mutex_t shared;
static bool asked; /* by whoever unlocks it, and only then left */

static bool leave_if_asked(void *)
{
	return asked ? leave_guard(nullptr) : false;
}

static void *await_guard(void *)
{
	vez_mutex_lock(&shared);
	vez_mutex_await(&shared, leave_if_asked, nullptr, VEZ_FOREVER, nullptr);
	return nullptr;
}

/* The thread that unlocks asks the guard of another one. */
static void unlock_asks()
{
	pthread_t t;
	pthread_create(&t, nullptr, await_guard, nullptr);
	while (vez_mutex_waiters(&shared) < 1)
		sched_yield();
	vez_mutex_lock(&shared);
	asked = true;
	vez_mutex_unlock(&shared);
}

static void locked(const std::string &what)
{
	vez_cond_t c = VEZ_COND_INITIALIZER;
	if (what == "lock-when") {
		vez_mutex_lock_when(&shared, leave_guard, nullptr, VEZ_NOW, nullptr);
		return;
	}
	vez_mutex_lock(&shared);
	if (what == "await")
		vez_mutex_await(&shared, leave_guard, nullptr, VEZ_NOW, nullptr);
	else
		vez_cond_wait_when(&c, &shared, leave_guard, nullptr, VEZ_NOW, nullptr);
}

static void *run(void *arg)
{
	const std::string &what = *static_cast<std::string *>(arg);
	vez_monitor_t m = VEZ_MONITOR_INITIALIZER(nullptr);
	vez_once_t once = VEZ_ONCE_INITIALIZER;
	vez_barrier_t b;
	try {
		if (what == "hook" || what == "hook-fired")
			hook(what == "hook-fired");
		else if (what == "request")
			request();
		else if (what == "body")
			vez_monitor_call(&m, leave_1, nullptr);
		else if (what == "guard")
			vez_monitor_call_when(&m, leave_guard, nothing, nullptr, VEZ_NOW, nullptr);
		else if (what == "filed-body")
			filed(is_open, leave_1);
		else if (what == "filed-guard")
			filed(leave_guard, nothing);
		else if (what == "once")
			vez_once(&once, leave_int, nullptr);
		else if (what == "action" && vez_barrier_init(&b, 1, leave_int, nullptr) == 0)
			vez_barrier_wait(&b, nullptr);
		else if (what == "gave-up")
			gave_up();
		else if (what == "order")
			order();
		else if (what == "unlock-asks")
			unlock_asks();
		else if (what == "await" || what == "lock-when" || what == "cond-when")
			locked(what);
		else
			object(what);
	} catch (const std::runtime_error &) {
	}
	return nullptr;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 0;
	std::string what = argv[2];
	pthread_t t;
	ends = argv[1] == std::string("end");
	if (pthread_create(&t, nullptr, run, &what) == 0)
		pthread_join(t, nullptr);
	return 1;
}
