/* SPDX-License-Identifier: MIT */
/*
 * vez.hpp - vez for C++17 and later: a header over the C calls, and nothing to link but libvez
 *
 * The classes are named after the C types and hold one each, in place; what a call does, its order, its costs and its
 * rules are said in vez/NAME.h. Objects can be neither copied nor moved. native_handle() is the C object, for what has
 * no member here: what makes an object again where it is, and vez_guarded_call, which is a lambda in C++. What belongs
 * to no object (vez_strerror, vez_deadline_remaining_ns, vez_inspect) is called as in C.
 *
 * Locks: vez::mutex and vez::rwlock are what std::lock_guard, std::scoped_lock, std::unique_lock and std::shared_lock
 * take; vez::monitor is what std::lock_guard takes. Guards for the rest are here: permits, group_guard, sched_guard,
 * upgrade_guard.
 *
 * Results: a form named as in the standard library returns void or bool: true, or false for what it asks for (a try_
 * that would block, a time that has passed). A form that takes a deadline and a token returns a status. Any other
 * result is a std::system_error with the errno number and the name of the C call, of vez::error_category(): what() says
 * it as vez_strerror does, and code() compares with std::errc.
 *
 * Time: where a vez::deadline is wanted, a duration, a time of std::chrono::steady_clock (which is CLOCK_MONOTONIC) and
 * one of any other clock will do. The last is converted when the call begins; steps of that clock after that are
 * not seen.
 *
 * Exceptions never pass through the library. One that leaves a body or guard of monitor::call and its kin, a guard of a
 * mutex or condition, an action of a barrier or a function of a once travels to the caller whose call it is, whichever
 * thread ran it. One that leaves what runs on behalf of nobody who waits (a hook, a request's function, an asynchronous
 * body or guard, the order of a scheduler, a constraint or a trigger) ends the program: a line on stderr, and
 * std::terminate. One that leaves an operation of an object travels to who called it.
 *
 * Destroy: an object that is destroyed while it is held, or while somebody waits, ends the program in the same way.
 * Objects of static storage are destroyed at exit though threads may still be using them: make those vez::immortal.
 */
#ifndef VEZ_HPP
#define VEZ_HPP

#if !defined(__cplusplus) || __cplusplus < 201703L
#error "vez.hpp needs C++17"
#endif

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#if __cplusplus >= 202002L && __has_include(<stop_token>)
#include <stop_token>
#endif

#include "vez.h"

namespace vez {

/* How a wait ended. queued: an asynchronous request waits. */
enum class status { ok, busy, timeout, canceled, closed, broken, queued };

namespace detail {

class category final : public std::error_category {
public:
	const char *name() const noexcept override { return "vez"; }
	std::string message(int rc) const override { return vez_strerror(rc); }
	std::error_condition default_error_condition(int rc) const noexcept override
	{
		return { rc, std::generic_category() };
	}
};

} /* namespace detail */

/* Of the results of C calls: numbers of errno, in the words of vez_strerror. Lives as long as the program. */
inline const std::error_category &error_category() noexcept;

namespace detail {

struct pinned {
	constexpr pinned() noexcept = default;
	pinned(const pinned &) = delete;
	pinned &operator=(const pinned &) = delete;
};

[[noreturn]] inline void die(const char *where, const char *what) noexcept
{
	std::fprintf(stderr, "vez: %s: %s\n", where, what);
	std::terminate();
}

/* Runs what nobody waits for. */
template <class F> auto or_die(const char *where, F &&f) noexcept -> decltype(f())
{
	try {
		return f();
	} catch (const std::exception &e) {
		die(where, e.what());
	} catch (...) {
		die(where, "an exception of unknown type");
	}
}

[[noreturn]] inline void fail(int rc, const char *call)
{
	throw std::system_error(rc, error_category(), call);
}

inline void check(int rc, const char *call)
{
	if (rc != 0)
		fail(rc, call);
}

/* For destructors, which cannot throw. */
inline void must(int rc, const char *where) noexcept
{
	if (rc != 0)
		die(where, rc == EBUSY ? "destroyed while in use" : "not held");
}

/* 0 or that one code. */
inline bool unless(int code, int rc, const char *call)
{
	if (rc != 0 && rc != code)
		fail(rc, call);
	return rc == 0;
}

inline status to_status(int rc, const char *call)
{
	switch (rc) {
	case 0: return status::ok;
	case EBUSY: return status::busy;
	case ETIMEDOUT: return status::timeout;
	case ECANCELED: return status::canceled;
	case VEZ_ECLOSED: return status::closed;
	case VEZ_EBROKEN: return status::broken;
	case EINPROGRESS: return status::queued;
	default: fail(rc, call);
	}
}

/* Nanoseconds, rounded up, so that nothing ends early. */
template <class Rep, class Period>
constexpr std::int64_t saturated_ns(const std::chrono::duration<Rep, Period> &d)
{
	using wide = std::chrono::duration<long double, std::nano>;
	if (!(wide(d) < wide(static_cast<long double>(INT64_MAX))))
		return INT64_MAX;
	if (wide(d) <= wide(static_cast<long double>(INT64_MIN)))
		return INT64_MIN;
	return std::chrono::ceil<std::chrono::duration<std::int64_t, std::nano>>(d).count();
}

/* What a function returned, until it is handed on. */
template <class R> class returned {
	std::optional<R> value_;

public:
	template <class F> void from(F &f) { value_.emplace(f()); }
	R take() { return std::move(*value_); }
};

template <class R> class returned<R &> {
	R *value_ = nullptr;

public:
	template <class F> void from(F &f) { value_ = std::addressof(f()); }
	R &take() { return *value_; }
};

template <> class returned<void> {
public:
	template <class F> void from(F &f) { f(); }
	void take() {}
};

/* What a wait waits for, asked by whichever thread unlocks. One that throws is over: its wait is to say so. */
template <class P> struct predicate_guard {
	P *predicate;
	std::exception_ptr thrown{};

	static bool ask(void *arg) noexcept
	{
		predicate_guard *g = static_cast<predicate_guard *>(arg);
		try {
			return g->thrown || static_cast<bool>((*g->predicate)());
		} catch (...) {
			g->thrown = std::current_exception();
			return true;
		}
	}

	void rethrow()
	{
		if (thrown)
			std::rethrow_exception(std::move(thrown));
	}
};

template <class P> using guard_of = predicate_guard<std::remove_reference_t<P>>;

} /* namespace detail */

/* ---- when a wait ends ---- */

class deadline {
	vez_deadline_t ns_;

	struct raw {
		vez_deadline_t ns;
	};
	constexpr explicit deadline(raw r) noexcept : ns_(r.ns) {}

	/* Two readings of one clock. */
	static vez_deadline_t from(std::int64_t then, std::int64_t now) noexcept
	{
		if (then == INT64_MAX || (now < 0 && then > INT64_MAX + now))
			return VEZ_FOREVER;
		return then <= now ? VEZ_NOW : vez_after_ns(then - now);
	}

public:
	/* That far from now. */
	template <class Rep, class Period>
	deadline(const std::chrono::duration<Rep, Period> &d) : ns_(vez_after_ns(detail::saturated_ns(d)))
	{
	}

	template <class Duration>
	constexpr deadline(const std::chrono::time_point<std::chrono::steady_clock, Duration> &t)
		: ns_(detail::saturated_ns(t.time_since_epoch()))
	{
	}

	template <class Clock, class Duration>
	deadline(const std::chrono::time_point<Clock, Duration> &t)
		: ns_(from(detail::saturated_ns(t.time_since_epoch()),
			   detail::saturated_ns(Clock::now().time_since_epoch())))
	{
	}

	static constexpr deadline from_native(vez_deadline_t ns) noexcept { return deadline(raw{ ns }); }
	static constexpr deadline never() noexcept { return deadline(raw{ VEZ_FOREVER }); }
	/* One attempt. */
	static constexpr deadline passed() noexcept { return deadline(raw{ VEZ_NOW }); }

	constexpr vez_deadline_t native() const noexcept { return ns_; }
};

/* ---- how a wait is called off ---- */

class cancel_token;
class basic_request;

/* A token, or none. */
class token_ref {
	vez_cancel_t *c_;

public:
	constexpr token_ref(std::nullptr_t = nullptr) noexcept : c_(nullptr) {}
	constexpr token_ref(vez_cancel_t *c) noexcept : c_(c) {}
	inline token_ref(cancel_token &t) noexcept;
	constexpr vez_cancel_t *native_handle() const noexcept { return c_; }
};

/* vez::cancel_token child(vez::child_of{ parent }): fires with its parent, and may fire alone. */
struct child_of {
	token_ref parent;
};

class cancel_token : detail::pinned {
	vez_cancel_t c_ = VEZ_CANCEL_INITIALIZER;

public:
	constexpr cancel_token() noexcept = default;
	explicit cancel_token(child_of c)
	{
		detail::check(vez_cancel_init_child(&c_, c.parent.native_handle()), "vez_cancel_init_child");
	}
	~cancel_token() { detail::must(vez_cancel_destroy(&c_), "vez::cancel_token"); }

	void fire() noexcept { vez_cancel_fire(&c_); }
	bool fired() const noexcept { return vez_cancel_fired(&c_); }
	bool clear() noexcept { return vez_cancel_clear(&c_); }
	/* Fires by itself then; deadline::never(): not any more. */
	void fire_at(deadline t) { detail::check(vez_cancel_fire_at(&c_, t.native()), "vez_cancel_fire_at"); }
	/* Fires when this signal comes. */
	void on_signal(int signo) { detail::check(vez_cancel_on_signal(&c_, signo), "vez_cancel_on_signal"); }

	/* Until it has fired. */
	void wait() { detail::check(vez_cancel_wait(&c_, VEZ_FOREVER), "vez_cancel_wait"); }
	bool try_wait_until(deadline t)
	{
		return detail::unless(ETIMEDOUT, vez_cancel_wait(&c_, t.native()), "vez_cancel_wait");
	}
	[[nodiscard]] inline status wait_async(basic_request &r);
	vez_cancel_t *native_handle() noexcept { return &c_; }
};

inline token_ref::token_ref(cancel_token &t) noexcept : c_(t.native_handle()) {}

/* The calling thread's own token. */
inline token_ref self_token() noexcept
{
	return vez_cancel_self();
}

/* Until this moment, or, with status::canceled, until the token fires. */
inline status sleep_until(deadline t, token_ref token = {})
{
	return detail::to_status(vez_sleep_until(t.native(), token.native_handle()), "vez_sleep_until");
}

/* A function that a fire calls, once; at once, if the token is fired. Going out of scope detaches it, and waits until
 * it has returned if it is running. */
template <class F> class cancel_hook : detail::pinned {
	F fn_;
	vez_cancel_t *token_;
	vez_cancel_hook_t hook_{};
	bool attached_;

	static void run(void *arg) noexcept
	{
		detail::or_die("an exception left a hook", [arg] { static_cast<cancel_hook *>(arg)->fn_(); });
	}

public:
	template <class G>
	cancel_hook(token_ref token, G &&fn) : fn_(std::forward<G>(fn)), token_(token.native_handle()), attached_(false)
	{
		attached_ = detail::unless(EALREADY, vez_cancel_attach(token_, &hook_, run, this), "vez_cancel_attach");
	}
	/* Without waiting. True: it has not run, and never will. */
	bool try_detach() noexcept
	{
		if (!attached_ || vez_cancel_try_detach(token_, &hook_) != 0)
			return false;
		attached_ = false;
		return true;
	}
	~cancel_hook()
	{
		if (attached_)
			(void)vez_cancel_detach(token_, &hook_);
	}
};

template <class G> cancel_hook(token_ref, G) -> cancel_hook<G>;

#ifdef __cpp_lib_jthread
/* Fires the token when a stop is requested, for as long as it is there. */
class stop_link : detail::pinned {
	struct fire {
		vez_cancel_t *c;
		void operator()() const noexcept { vez_cancel_fire(c); }
	};
	std::stop_callback<fire> callback_;

public:
	stop_link(const std::stop_token &stop, token_ref token) : callback_(stop, fire{ token.native_handle() }) {}
};

/* A token for a std::stop_token: what std::jthread hands to its function ends every wait that names this. */
class stop_cancel_token : public cancel_token {
	stop_link link_;

public:
	explicit stop_cancel_token(const std::stop_token &stop) : link_(stop, *this) {}
};
#endif

/* ---- objects of static storage that threads may still use at exit ---- */

/* Is made like T, and never destroyed. */
template <class T> class immortal : detail::pinned {
	union {
		T object_;
	};

public:
	template <class... Args>
	constexpr explicit immortal(Args &&...args) : object_(std::forward<Args>(args)...)
	{
	}
	~immortal() {}

	T &get() noexcept { return object_; }
	T &operator*() noexcept { return object_; }
	T *operator->() noexcept { return &object_; }
};

inline const std::error_category &error_category() noexcept
{
	static immortal<detail::category> kept; /* calls fail in destructors of static objects, too */
	return kept.get();
}

/* ---- operations that wait without a thread ---- */

template <class R> class completions;

/* What the _async members take. */
class basic_request : detail::pinned {
protected:
	vez_request_t r_;

	basic_request() noexcept {}
	~basic_request() = default;

	/* It begins with its only member. */
	static basic_request *of(vez_request_t *r) noexcept { return reinterpret_cast<basic_request *>(r); }
	template <class R> friend class completions;

public:
	/* Before it is queued. */
	void set_limits(deadline t, token_ref token = {}) noexcept
	{
		vez_request_set_limits(&r_, t.native(), token.native_handle());
	}
	void set_key(std::int64_t key) noexcept { vez_request_set_key(&r_, key); }

	/* Whether it was withdrawn by this call. */
	bool cancel() noexcept { return vez_request_cancel(&r_) == 0; }
	/* Until it is complete. */
	status wait(deadline t = deadline::never(), token_ref token = {})
	{
		return detail::to_status(vez_request_wait(&r_, t.native(), token.native_handle()), "vez_request_wait");
	}
	/* The errno number; EINPROGRESS until it is complete. */
	int result() const noexcept { return vez_request_result(&r_); }
	vez_request_t *native_handle() noexcept { return &r_; }
};

/* Calls fn(int result) when it completes, if it was queued; fn may queue it anew after reset(). Going out of scope
 * withdraws it, and waits until its function has returned: not while it is queued, if this is inside the function of
 * another request, a body or a monitor. */
template <class F> class request : public basic_request {
	F fn_;

	static void done(vez_request_t *, int result, void *arg) noexcept
	{
		detail::or_die("an exception left a request's function",
			       [=] { static_cast<request *>(arg)->fn_(result); });
	}

public:
	template <class G> explicit request(G &&fn) : fn_(std::forward<G>(fn)) { reset(); }
	~request()
	{
		/* Before fn_ goes. */
		if (vez_request_cancel(&r_) == EALREADY)
			(void)vez_request_wait(&r_, VEZ_FOREVER, nullptr);
	}
	/* As it was made: no key, no limits, ready to be queued. */
	void reset() noexcept { vez_request_init(&r_, done, this); }
};

template <class G> request(G) -> request<G>;

/* What has completed, in order, for one consumer: requests that are an R, which is derived from listed_request. */
template <class R> class completions : detail::pinned {
	vez_completions_t l_;

public:
	/* efd, unless it is -1, gets one tick whenever the list ceases to be empty. */
	explicit completions(int efd = -1) noexcept { vez_completions_init(&l_, efd); }
	/* Takes out the one that completed first; nullptr: there is none. */
	R *next() noexcept
	{
		vez_request_t *r = vez_completions_next(&l_);
		return r ? static_cast<R *>(basic_request::of(r)) : nullptr;
	}
	/* Until there is one. */
	status wait(deadline t = deadline::never(), token_ref token = {})
	{
		return detail::to_status(vez_completions_wait(&l_, t.native(), token.native_handle()),
					 "vez_completions_wait");
	}
	vez_completions_t *native_handle() noexcept { return &l_; }
};

/* Writes a tick to an eventfd when it completes. Going out of scope withdraws it, as a request. */
class eventfd_request : public basic_request {
	int efd_;

public:
	explicit eventfd_request(int efd) noexcept : efd_(efd) { reset(); }
	~eventfd_request()
	{
		if (vez_request_cancel(&r_) == EALREADY)
			(void)vez_request_wait(&r_, VEZ_FOREVER, nullptr);
	}
	void reset() noexcept { vez_request_init_eventfd(&r_, efd_); }
};

/* Joins a list when it completes, if it was queued: derive from it what the list's consumer is to know. It must not go
 * out of scope while it is queued, which ends the program, nor before it was taken out of the list. */
class listed_request : public basic_request {
	vez_completions_t *list_;

public:
	template <class R> explicit listed_request(completions<R> &list) noexcept : list_(list.native_handle())
	{
		reset();
	}
	~listed_request()
	{
		/* The one who put it into the list may not have returned yet, which is no matter. */
		if (result() == EINPROGRESS && vez_request_wait(&r_, VEZ_NOW, nullptr) == ETIMEDOUT)
			detail::die("vez::listed_request", "destroyed while in use");
	}
	void reset() noexcept { vez_request_init_completions(&r_, list_); }
};

inline status cancel_token::wait_async(basic_request &r)
{
	return detail::to_status(vez_cancel_wait_async(&c_, r.native_handle()), "vez_cancel_wait_async");
}

/* A wait for any of several. Its members are made after it, and each is handed to an _async call at once; what that
 * returns may be ignored. The first member that goes out of scope ends the wait, if wait() has not: all are
 * withdrawn. */
class select : detail::pinned {
	vez_select_t s_;
	vez_request_t *winner_ = nullptr;
	bool over_ = false;

	void end() noexcept
	{
		if (!over_)
			(void)vez_select_wait(&s_, VEZ_NOW, nullptr, nullptr);
		over_ = true;
	}

public:
	class member : public basic_request {
		select &of_;

	public:
		explicit member(select &s) noexcept : of_(s) { vez_select_case(&s.s_, &r_); }
		~member() { of_.end(); }
	};

	select() noexcept { vez_select_init(&s_); }

	/* Once. ok: a member was granted, and won() tells which; else its code, or that of this wait's own limits. */
	[[nodiscard]] status wait(deadline t = deadline::never(), token_ref token = {})
	{
		over_ = true;
		return detail::to_status(vez_select_wait(&s_, t.native(), token.native_handle(), &winner_),
					 "vez_select_wait");
	}
	/* Whether this member ended the wait. */
	bool won(const member &m) const noexcept
	{
		return winner_ && winner_ == const_cast<member &>(m).native_handle();
	}
};

/* ---- mutex, and conditions ---- */

class mutex : detail::pinned {
	vez_mutex_t m_ = VEZ_MUTEX_INITIALIZER;

public:
	constexpr mutex() noexcept = default;
	/* VEZ_FAIR, with one of VEZ_RECURSIVE and VEZ_ERRORCHECK. */
	explicit mutex(unsigned flags) { detail::check(vez_mutex_init(&m_, flags), "vez_mutex_init"); }
	~mutex() { detail::must(vez_mutex_destroy(&m_), "vez::mutex"); }

	void lock() { detail::check(vez_mutex_lock(&m_), "vez_mutex_lock"); }
	bool try_lock() { return detail::unless(EBUSY, vez_mutex_trylock(&m_), "vez_mutex_trylock"); }
	void unlock() { detail::check(vez_mutex_unlock(&m_), "vez_mutex_unlock"); }

	bool try_lock_until(deadline t)
	{
		return detail::unless(ETIMEDOUT, vez_mutex_lock_until(&m_, t.native(), nullptr),
				      "vez_mutex_lock_until");
	}
	template <class Rep, class Period> bool try_lock_for(const std::chrono::duration<Rep, Period> &d)
	{
		return try_lock_until(d);
	}
	[[nodiscard]] status lock_until(deadline t, token_ref token = {})
	{
		return detail::to_status(vez_mutex_lock_until(&m_, t.native(), token.native_handle()),
					 "vez_mutex_lock_until");
	}

	/* Locks when the guard is true. The thread that unlocks asks it, under the mutex; if it throws, the mutex is
	 * not locked. ok, or not locked. A std::unique_lock(m, std::adopt_lock) takes it over. */
	template <class P> void lock_when(P &&guard) { (void)lock_when_until(guard, deadline::never()); }
	template <class P> [[nodiscard]] status lock_when_until(P &&guard, deadline t, token_ref token = {})
	{
		detail::guard_of<P> g{ std::addressof(guard) };
		int rc = vez_mutex_lock_when(&m_, g.ask, &g, t.native(), token.native_handle());
		if (g.thrown && rc == 0)
			unlock();
		g.rethrow();
		return detail::to_status(rc, "vez_mutex_lock_when");
	}
	/* Lets it go until the guard is true, and has it again whatever comes. */
	template <class P> void await(P &&guard) { (void)await_until(guard, deadline::never()); }
	template <class P> [[nodiscard]] status await_until(P &&guard, deadline t, token_ref token = {})
	{
		detail::guard_of<P> g{ std::addressof(guard) };
		int rc = vez_mutex_await(&m_, g.ask, &g, t.native(), token.native_handle());
		g.rethrow();
		return detail::to_status(rc, "vez_mutex_await");
	}

	unsigned holds() const noexcept { return vez_mutex_holds(&m_); }
	std::size_t waiters() const noexcept { return vez_mutex_waiters(&m_); }
	using native_handle_type = vez_mutex_t *;
	native_handle_type native_handle() noexcept { return &m_; }
};

/* Used as std::condition_variable, with std::unique_lock<vez::mutex>. No spurious returns. */
class cond : detail::pinned {
	vez_cond_t c_ = VEZ_COND_INITIALIZER;

	template <class P> using if_predicate = std::enable_if_t<std::is_invocable_r_v<bool, P &>, int>;

public:
	using lock_type = std::unique_lock<mutex>;

	constexpr cond() noexcept = default;
	~cond() { detail::must(vez_cond_destroy(&c_), "vez::cond"); }

	void wait(lock_type &l) { detail::check(vez_cond_wait(&c_, held(l)), "vez_cond_wait"); }
	template <class P, if_predicate<P> = 0> void wait(lock_type &l, P predicate)
	{
		while (!predicate())
			wait(l);
	}

	[[nodiscard]] status wait_until(lock_type &l, deadline t, token_ref token)
	{
		return detail::to_status(vez_cond_wait_until(&c_, held(l), t.native(), token.native_handle()),
					 "vez_cond_wait_until");
	}
	/* ok: the predicate is true. */
	template <class P, if_predicate<P> = 0>
	[[nodiscard]] status wait_until(lock_type &l, deadline t, token_ref token, P predicate)
	{
		while (!predicate()) {
			status s = wait_until(l, t, token);
			if (s != status::ok)
				return predicate() ? status::ok : s;
		}
		return status::ok;
	}
	std::cv_status wait_until(lock_type &l, deadline t)
	{
		return wait_until(l, t, nullptr) == status::ok ? std::cv_status::no_timeout : std::cv_status::timeout;
	}
	template <class P, if_predicate<P> = 0> bool wait_until(lock_type &l, deadline t, P predicate)
	{
		return wait_until(l, t, nullptr, std::move(predicate)) == status::ok;
	}
	template <class Rep, class Period>
	std::cv_status wait_for(lock_type &l, const std::chrono::duration<Rep, Period> &d)
	{
		return wait_until(l, deadline(d));
	}
	template <class Rep, class Period, class P>
	bool wait_for(lock_type &l, const std::chrono::duration<Rep, Period> &d, P predicate)
	{
		return wait_until(l, deadline(d), std::move(predicate));
	}
	/* The predicate is asked when the condition is notified, by who notifies or unlocks: who waits is woken when it
	 * is true. */
	template <class P, if_predicate<P> = 0> void wait_when(lock_type &l, P predicate)
	{
		(void)wait_when_until(l, std::move(predicate), deadline::never());
	}
	template <class P, if_predicate<P> = 0>
	[[nodiscard]] status wait_when_until(lock_type &l, P predicate, deadline t, token_ref token = {})
	{
		detail::guard_of<P> g{ std::addressof(predicate) };
		int rc = vez_cond_wait_when(&c_, held(l), g.ask, &g, t.native(), token.native_handle());
		g.rethrow();
		return detail::to_status(rc, "vez_cond_wait_when");
	}
	/* The smallest key is notified first. */
	[[nodiscard]] status wait_key(lock_type &l, std::int64_t key, deadline t = deadline::never(),
				      token_ref token = {})
	{
		return detail::to_status(vez_cond_wait_key(&c_, held(l), key, t.native(), token.native_handle()),
					 "vez_cond_wait_key");
	}

	/* How many were notified. */
	std::size_t notify_one() noexcept { return vez_cond_signal(&c_); }
	std::size_t notify_all() noexcept { return vez_cond_broadcast(&c_); }
	std::size_t waiters() const noexcept { return vez_cond_waiters(&c_); }
	vez_cond_t *native_handle() noexcept { return &c_; }

private:
	static vez_mutex_t *held(lock_type &l)
	{
		if (!l.owns_lock())
			detail::fail(EPERM, "vez::cond");
		return l.mutex()->native_handle();
	}
};

/* ---- readers and writers ---- */

class rwlock : detail::pinned {
	vez_rwlock_t l_ = VEZ_RWLOCK_INITIALIZER;

public:
	constexpr rwlock() noexcept = default;
	/* VEZ_RW_HOARE, VEZ_RW_FIFO, VEZ_RW_READERS. */
	explicit rwlock(unsigned policy) { detail::check(vez_rwlock_init(&l_, policy), "vez_rwlock_init"); }
	~rwlock() { detail::must(vez_rwlock_destroy(&l_), "vez::rwlock"); }

	void lock() { detail::check(vez_rwlock_wrlock(&l_), "vez_rwlock_wrlock"); }
	bool try_lock() { return detail::unless(EBUSY, vez_rwlock_trywrlock(&l_), "vez_rwlock_trywrlock"); }
	void unlock() { detail::check(vez_rwlock_wrunlock(&l_), "vez_rwlock_wrunlock"); }
	bool try_lock_until(deadline t)
	{
		return detail::unless(ETIMEDOUT, vez_rwlock_wrlock_until(&l_, t.native(), nullptr),
				      "vez_rwlock_wrlock_until");
	}
	template <class Rep, class Period> bool try_lock_for(const std::chrono::duration<Rep, Period> &d)
	{
		return try_lock_until(d);
	}
	[[nodiscard]] status lock_until(deadline t, token_ref token = {})
	{
		return detail::to_status(vez_rwlock_wrlock_until(&l_, t.native(), token.native_handle()),
					 "vez_rwlock_wrlock_until");
	}
	[[nodiscard]] status lock_async(basic_request &r)
	{
		return detail::to_status(vez_rwlock_wrlock_async(&l_, r.native_handle()), "vez_rwlock_wrlock_async");
	}

	void lock_shared() { detail::check(vez_rwlock_rdlock(&l_), "vez_rwlock_rdlock"); }
	bool try_lock_shared() { return detail::unless(EBUSY, vez_rwlock_tryrdlock(&l_), "vez_rwlock_tryrdlock"); }
	void unlock_shared() { detail::check(vez_rwlock_rdunlock(&l_), "vez_rwlock_rdunlock"); }
	bool try_lock_shared_until(deadline t)
	{
		return detail::unless(ETIMEDOUT, vez_rwlock_rdlock_until(&l_, t.native(), nullptr),
				      "vez_rwlock_rdlock_until");
	}
	template <class Rep, class Period> bool try_lock_shared_for(const std::chrono::duration<Rep, Period> &d)
	{
		return try_lock_shared_until(d);
	}
	[[nodiscard]] status lock_shared_until(deadline t, token_ref token = {})
	{
		return detail::to_status(vez_rwlock_rdlock_until(&l_, t.native(), token.native_handle()),
					 "vez_rwlock_rdlock_until");
	}
	[[nodiscard]] status lock_shared_async(basic_request &r)
	{
		return detail::to_status(vez_rwlock_rdlock_async(&l_, r.native_handle()), "vez_rwlock_rdlock_async");
	}

	/* Whichever is held. */
	void unlock_any() { detail::check(vez_rwlock_unlock(&l_), "vez_rwlock_unlock"); }

	/* The writer becomes a reader: unlock_shared() is what it owes then. */
	void downgrade() { detail::check(vez_rwlock_downgrade(&l_), "vez_rwlock_downgrade"); }
	/* A reader writes until undo_upgrade(), and keeps its read hold. */
	[[nodiscard]] status upgrade_until(deadline t, token_ref token = {})
	{
		return detail::to_status(vez_rwlock_upgrade_until(&l_, t.native(), token.native_handle()),
					 "vez_rwlock_upgrade_until");
	}
	bool try_upgrade() { return detail::unless(EBUSY, vez_rwlock_try_upgrade(&l_), "vez_rwlock_try_upgrade"); }
	void undo_upgrade() { detail::check(vez_rwlock_undo_upgrade(&l_), "vez_rwlock_undo_upgrade"); }

	std::size_t waiters() const noexcept { return vez_rwlock_waiters(&l_); }
	using native_handle_type = vez_rwlock_t *;
	native_handle_type native_handle() noexcept { return &l_; }
};

/* A reader writes as long as this is there. */
class upgrade_guard : detail::pinned {
	rwlock &l_;

public:
	explicit upgrade_guard(rwlock &l) : l_(l)
	{
		detail::check(vez_rwlock_upgrade_until(l.native_handle(), VEZ_FOREVER, nullptr),
			      "vez_rwlock_upgrade_until");
	}
	~upgrade_guard() { detail::must(vez_rwlock_undo_upgrade(l_.native_handle()), "vez::upgrade_guard"); }
};

/* ---- semaphore ---- */

/* Used as std::counting_semaphore; every call may ask for several permits at once. */
class semaphore : detail::pinned {
	vez_sem_t s_;

	static constexpr std::uint32_t checked(std::uint32_t permits)
	{
		return permits <= VEZ_SEM_MAX ? permits : (detail::fail(EINVAL, "vez::semaphore"), 0);
	}

public:
	/* FIFO, with the largest maximum. */
	constexpr explicit semaphore(std::uint32_t permits) : s_ VEZ_SEM_INITIALIZER(checked(permits)) {}
	/* max 0: the largest. flags: 0, or VEZ_BARGING. */
	semaphore(std::uint32_t permits, std::uint32_t max, unsigned flags = 0)
	{
		detail::check(vez_sem_init(&s_, permits, max, flags), "vez_sem_init");
	}
	~semaphore() { detail::must(vez_sem_destroy(&s_), "vez::semaphore"); }

	void acquire(std::uint32_t n = 1) { detail::check(vez_sem_acquire(&s_, n), "vez_sem_acquire"); }
	bool try_acquire(std::uint32_t n = 1)
	{
		return detail::unless(EBUSY, vez_sem_try_acquire(&s_, n), "vez_sem_try_acquire");
	}
	bool try_acquire_until(deadline t, std::uint32_t n = 1)
	{
		return detail::unless(ETIMEDOUT, vez_sem_acquire_until(&s_, n, t.native(), nullptr),
				      "vez_sem_acquire_until");
	}
	template <class Rep, class Period>
	bool try_acquire_for(const std::chrono::duration<Rep, Period> &d, std::uint32_t n = 1)
	{
		return try_acquire_until(d, n);
	}
	[[nodiscard]] status acquire_until(deadline t, token_ref token = {}, std::uint32_t n = 1)
	{
		return detail::to_status(vez_sem_acquire_until(&s_, n, t.native(), token.native_handle()),
					 "vez_sem_acquire_until");
	}
	/* The smallest key is served first. */
	[[nodiscard]] status acquire_key(std::int64_t key, deadline t = deadline::never(), token_ref token = {},
					 std::uint32_t n = 1)
	{
		return detail::to_status(vez_sem_acquire_key(&s_, n, key, t.native(), token.native_handle()),
					 "vez_sem_acquire_key");
	}
	[[nodiscard]] status acquire_async(basic_request &r, std::uint32_t n = 1)
	{
		return detail::to_status(vez_sem_acquire_async(&s_, n, r.native_handle()), "vez_sem_acquire_async");
	}
	void release(std::uint32_t n = 1) { detail::check(vez_sem_release(&s_, n), "vez_sem_release"); }

	std::uint32_t drain() noexcept { return vez_sem_drain(&s_); }
	/* Those who wait, and later calls, get status::closed, or an exception where they return none. */
	void close() { detail::check(vez_sem_close(&s_), "vez_sem_close"); }
	std::uint32_t available() const noexcept { return vez_sem_permits(&s_); }
	std::size_t waiters() const noexcept { return vez_sem_waiters(&s_); }
	vez_sem_t *native_handle() noexcept { return &s_; }
};

/* n permits, taken as long as this is there. */
class permits : detail::pinned {
	semaphore &s_;
	std::uint32_t n_;

public:
	explicit permits(semaphore &s, std::uint32_t n = 1) : s_(s), n_(n) { s.acquire(n); }
	/* The caller has taken them. */
	permits(semaphore &s, std::uint32_t n, std::adopt_lock_t) noexcept : s_(s), n_(n) {}
	~permits()
	{
		if (vez_sem_release(s_.native_handle(), n_) != 0)
			detail::die("vez::permits", "more permits than the maximum");
	}
};

/* ---- latch, barrier, event ---- */

class latch : detail::pinned {
	vez_latch_t l_;

public:
	constexpr explicit latch(std::uint32_t count) noexcept : l_ VEZ_LATCH_INITIALIZER(count) {}
	~latch() { detail::must(vez_latch_destroy(&l_), "vez::latch"); }

	void count_down(std::uint32_t n = 1) { detail::check(vez_latch_count_down(&l_, n), "vez_latch_count_down"); }
	bool try_wait() { return try_wait_until(deadline::passed()); }
	void wait() { detail::check(vez_latch_wait(&l_), "vez_latch_wait"); }
	void arrive_and_wait(std::uint32_t n = 1)
	{
		count_down(n);
		wait();
	}
	bool try_wait_until(deadline t)
	{
		return detail::unless(ETIMEDOUT, vez_latch_wait_until(&l_, t.native(), nullptr),
				      "vez_latch_wait_until");
	}
	template <class Rep, class Period> bool try_wait_for(const std::chrono::duration<Rep, Period> &d)
	{
		return try_wait_until(d);
	}
	[[nodiscard]] status wait_until(deadline t, token_ref token = {})
	{
		return detail::to_status(vez_latch_wait_until(&l_, t.native(), token.native_handle()),
					 "vez_latch_wait_until");
	}
	[[nodiscard]] status wait_async(basic_request &r)
	{
		return detail::to_status(vez_latch_wait_async(&l_, r.native_handle()), "vez_latch_wait_async");
	}

	std::uint32_t count() const noexcept { return vez_latch_count(&l_); }
	std::size_t waiters() const noexcept { return vez_latch_waiters(&l_); }
	vez_latch_t *native_handle() noexcept { return &l_; }
};

/* The last to arrive runs the action. If that throws, the barrier breaks: who ran it gets the exception, the others
 * status::broken, or a std::system_error from wait(). */
class barrier : detail::pinned {
	vez_barrier_t b_;
	std::function<void()> action_;

	/* No errno number. */
	static constexpr int threw = -1;

	/* The action runs in a call of the thread that gets what it throws. */
	static std::exception_ptr &thrown() noexcept
	{
		static thread_local std::exception_ptr e;
		return e;
	}

	static int act(void *arg) noexcept
	{
		try {
			static_cast<barrier *>(arg)->action_();
			return 0;
		} catch (...) {
			thrown() = std::current_exception();
			return threw;
		}
	}

	static int rethrown(int rc)
	{
		if (rc == threw)
			std::rethrow_exception(std::exchange(thrown(), nullptr));
		return rc;
	}

public:
	explicit barrier(std::uint32_t parties)
	{
		detail::check(vez_barrier_init(&b_, parties, nullptr, nullptr), "vez_barrier_init");
	}
	barrier(std::uint32_t parties, std::function<void()> action) : action_(std::move(action))
	{
		detail::check(vez_barrier_init(&b_, parties, action_ ? act : nullptr, this), "vez_barrier_init");
	}
	~barrier() { detail::must(vez_barrier_destroy(&b_), "vez::barrier"); }

	/* The order of arrival, counted down: 0 came last. */
	std::uint32_t wait()
	{
		std::uint32_t index = 0;
		detail::check(rethrown(vez_barrier_wait(&b_, &index)), "vez_barrier_wait");
		return index;
	}
	/* timeout and canceled break the barrier. */
	[[nodiscard]] status wait_until(deadline t, token_ref token = {}, std::uint32_t *index = nullptr)
	{
		int rc = vez_barrier_wait_until(&b_, index, t.native(), token.native_handle());
		return detail::to_status(rethrown(rc), "vez_barrier_wait_until");
	}
	void reset() { detail::check(vez_barrier_reset(&b_), "vez_barrier_reset"); }
	bool broken() const noexcept { return vez_barrier_broken(&b_); }
	std::size_t waiters() const noexcept { return vez_barrier_waiters(&b_); }
	vez_barrier_t *native_handle() noexcept { return &b_; }
};

class event : detail::pinned {
	vez_event_t e_ = VEZ_EVENT_INITIALIZER;

public:
	/* Manual reset. */
	constexpr event() noexcept = default;
	/* VEZ_AUTO_RESET: a set lets one wait through. */
	explicit event(unsigned flags) { detail::check(vez_event_init(&e_, flags), "vez_event_init"); }
	~event() { detail::must(vez_event_destroy(&e_), "vez::event"); }

	void set() { detail::check(vez_event_set(&e_), "vez_event_set"); }
	void reset() { detail::check(vez_event_reset(&e_), "vez_event_reset"); }
	bool is_set() const noexcept { return vez_event_is_set(&e_); }

	void wait() { detail::check(vez_event_wait(&e_), "vez_event_wait"); }
	bool try_wait() { return try_wait_until(deadline::passed()); }
	bool try_wait_until(deadline t)
	{
		return detail::unless(ETIMEDOUT, vez_event_wait_until(&e_, t.native(), nullptr),
				      "vez_event_wait_until");
	}
	template <class Rep, class Period> bool try_wait_for(const std::chrono::duration<Rep, Period> &d)
	{
		return try_wait_until(d);
	}
	[[nodiscard]] status wait_until(deadline t, token_ref token = {})
	{
		return detail::to_status(vez_event_wait_until(&e_, t.native(), token.native_handle()),
					 "vez_event_wait_until");
	}
	[[nodiscard]] status wait_async(basic_request &r)
	{
		return detail::to_status(vez_event_wait_async(&e_, r.native_handle()), "vez_event_wait_async");
	}

	std::size_t waiters() const noexcept { return vez_event_waiters(&e_); }
	vez_event_t *native_handle() noexcept { return &e_; }
};

/* ---- bounded queue ---- */

/* Of items that can be copied byte by byte: for others, queue pointers. */
template <class T> class queue : detail::pinned {
	static_assert(std::is_trivially_copyable_v<T>, "vez::queue copies its items byte by byte");

	std::unique_ptr<unsigned char[]> storage_;
	vez_queue_t q_;

	/* A place for an item that is not there yet. */
	union slot {
		T item;
		slot() noexcept {}
	};

public:
	using value_type = T;

	/* capacity 0: each put meets its take. */
	explicit queue(std::size_t capacity)
		: storage_(capacity != 0 ? new unsigned char[bytes(capacity)] : nullptr)
	{
		detail::check(vez_queue_init(&q_, storage_.get(), sizeof(T), capacity), "vez_queue_init");
	}
	~queue() { detail::must(vez_queue_destroy(&q_), "vez::queue"); }

	/* false: the queue is closed. */
	[[nodiscard]] bool put(const T &item)
	{
		return detail::unless(VEZ_ECLOSED, vez_queue_put(&q_, std::addressof(item)), "vez_queue_put");
	}
	/* Nothing: the queue is closed, and empty. */
	[[nodiscard]] std::optional<T> take()
	{
		slot s;
		if (!detail::unless(VEZ_ECLOSED, vez_queue_take(&q_, &s), "vez_queue_take"))
			return std::nullopt;
		return s.item;
	}

	[[nodiscard]] status try_put(const T &item)
	{
		return detail::to_status(vez_queue_try_put(&q_, std::addressof(item)), "vez_queue_try_put");
	}
	[[nodiscard]] status try_take(T &item)
	{
		return detail::to_status(vez_queue_try_take(&q_, std::addressof(item)), "vez_queue_try_take");
	}
	[[nodiscard]] status put_until(const T &item, deadline t, token_ref token = {})
	{
		int rc = vez_queue_put_until(&q_, std::addressof(item), t.native(), token.native_handle());
		return detail::to_status(rc, "vez_queue_put_until");
	}
	[[nodiscard]] status take_until(T &item, deadline t, token_ref token = {})
	{
		int rc = vez_queue_take_until(&q_, std::addressof(item), t.native(), token.native_handle());
		return detail::to_status(rc, "vez_queue_take_until");
	}
	/* The item stays where it is until the request completes. */
	[[nodiscard]] status put_async(const T &item, basic_request &r)
	{
		return detail::to_status(vez_queue_put_async(&q_, std::addressof(item), r.native_handle()),
					 "vez_queue_put_async");
	}
	[[nodiscard]] status take_async(T &item, basic_request &r)
	{
		return detail::to_status(vez_queue_take_async(&q_, std::addressof(item), r.native_handle()),
					 "vez_queue_take_async");
	}

	void close() { detail::check(vez_queue_close(&q_), "vez_queue_close"); }
	std::size_t length() const noexcept { return vez_queue_length(&q_); }
	std::size_t waiters() const noexcept { return vez_queue_waiters(&q_); }
	std::size_t putters() const noexcept { return vez_queue_putters(&q_); }
	std::size_t takers() const noexcept { return vez_queue_takers(&q_); }
	vez_queue_t *native_handle() noexcept { return &q_; }

private:
	static std::size_t bytes(std::size_t capacity)
	{
		if (capacity > SIZE_MAX / sizeof(T))
			detail::fail(EINVAL, "vez::queue");
		return capacity * sizeof(T);
	}
};

/* ---- once ---- */

/* What call() has been given runs once. If it throws, that caller gets the exception, and the one that has waited
 * longest tries with its own. */
class once : detail::pinned {
	vez_once_t o_ = VEZ_ONCE_INITIALIZER;

	template <class F> struct attempt {
		F *fn;
		std::exception_ptr thrown;

		static int run(void *arg) noexcept
		{
			attempt *a = static_cast<attempt *>(arg);
			try {
				(void)(*a->fn)();
				return 0;
			} catch (...) {
				a->thrown = std::current_exception();
				return -1;
			}
		}
	};

public:
	constexpr once() noexcept = default;

	template <class F> void call(F &&fn)
	{
		using attempt_type = attempt<std::remove_reference_t<F>>;
		attempt_type a{ std::addressof(fn), nullptr };
		int rc = ::vez_once(&o_, attempt_type::run, &a);
		if (a.thrown)
			std::rethrow_exception(std::move(a.thrown));
		detail::check(rc, "vez_once");
	}
	vez_once_t *native_handle() noexcept { return &o_; }
};

/* ---- groups ---- */

class group : detail::pinned {
	vez_group_t g_ = VEZ_GROUP_INITIALIZER;

public:
	constexpr group() noexcept = default;
	~group() { detail::must(vez_group_destroy(&g_), "vez::group"); }

	void enter(std::uint32_t id) { detail::check(vez_group_enter(&g_, id), "vez_group_enter"); }
	bool try_enter(std::uint32_t id)
	{
		return detail::unless(EBUSY, vez_group_try_enter(&g_, id), "vez_group_try_enter");
	}
	[[nodiscard]] status enter_until(std::uint32_t id, deadline t, token_ref token = {})
	{
		return detail::to_status(vez_group_enter_until(&g_, id, t.native(), token.native_handle()),
					 "vez_group_enter_until");
	}
	[[nodiscard]] status enter_async(std::uint32_t id, basic_request &r)
	{
		return detail::to_status(vez_group_enter_async(&g_, id, r.native_handle()), "vez_group_enter_async");
	}
	void leave() { detail::check(vez_group_leave(&g_), "vez_group_leave"); }
	std::size_t waiters() const noexcept { return vez_group_waiters(&g_); }
	vez_group_t *native_handle() noexcept { return &g_; }
};

/* A member, as long as this is there. */
class group_guard : detail::pinned {
	group &g_;

public:
	group_guard(group &g, std::uint32_t id) : g_(g) { g.enter(id); }
	~group_guard() { detail::must(vez_group_leave(g_.native_handle()), "vez::group_guard"); }
};

/* ---- exclusive use, in an order that the user defines ---- */

/* Before()(a, b): whether the one that entered with a is to come before the one with b. It is made anew for each
 * question, and has no state. sched<>: in order of arrival, and nothing is said on entering. */
template <class T = void, class Before = std::less<T>> class sched : detail::pinned {
	vez_sched_t s_;

	static bool before(const void *a, const void *b) noexcept
	{
		return detail::or_die("an exception left the order of a scheduler", [=]() -> bool {
			return Before()(*static_cast<const T *>(a), *static_cast<const T *>(b));
		});
	}

	static constexpr auto order() noexcept
	{
		using function = bool (*)(const void *, const void *);
		if constexpr (std::is_void_v<T>)
			return function(nullptr);
		else
			return function(before);
	}

	template <class... What> static const void *what(const What &...w) noexcept
	{
		if constexpr (std::is_void_v<T>) {
			static_assert(sizeof...(w) == 0, "vez::sched<> is entered without a word");
			return nullptr;
		} else {
			/* A T in place: what would have to be converted would be gone when before() looks at it. */
			static_assert(sizeof...(w) == 1, "vez::sched<T> is entered with a T");
			const T *const place[] = { std::addressof(w)... };
			return place[0];
		}
	}

public:
	sched() { detail::check(vez_sched_init(&s_, order(), 0), "vez_sched_init"); }
	~sched() { detail::must(vez_sched_destroy(&s_), "vez::sched"); }

	/* enter(what), or, of sched<>, enter(). */
	template <class... What> void enter(const What &...w)
	{
		detail::check(vez_sched_enter(&s_, what(w...)), "vez_sched_enter");
	}
	template <class... What> bool try_enter(const What &...w)
	{
		return detail::unless(EBUSY, vez_sched_try_enter(&s_, what(w...)), "vez_sched_try_enter");
	}
	template <class... What> [[nodiscard]] status enter_until(deadline t, token_ref token, const What &...w)
	{
		return detail::to_status(vez_sched_enter_until(&s_, what(w...), t.native(), token.native_handle()),
					 "vez_sched_enter_until");
	}
	void leave() { detail::check(vez_sched_leave(&s_), "vez_sched_leave"); }
	/* The least time between one leave and the next enter. */
	template <class Rep, class Period> void min_gap(const std::chrono::duration<Rep, Period> &d)
	{
		detail::check(vez_sched_min_gap(&s_, detail::saturated_ns(d)), "vez_sched_min_gap");
	}
	std::size_t waiters() const noexcept { return vez_sched_waiters(&s_); }
	vez_sched_t *native_handle() noexcept { return &s_; }
};

/* Inside, as long as this is there. */
template <class Sched> class sched_guard : detail::pinned {
	Sched &s_;

public:
	template <class... What> explicit sched_guard(Sched &s, const What &...w) : s_(s) { s.enter(w...); }
	~sched_guard() { detail::must(vez_sched_leave(s_.native_handle()), "vez::sched_guard"); }
};

template <class Sched, class... What> sched_guard(Sched &, const What &...) -> sched_guard<Sched>;

/* ---- monitor: execution is handed to whoever is inside ---- */

/* One who waits in a room, on its stack, or without a thread. Derive from it what others are to know of its wish. */
class waiter : detail::pinned {
	vez_request_t r_ = VEZ_REQUEST_INITIALIZER;
	vez_request_t *by_ = &r_; /* its own, or that of wait_async */

	friend class monitor;
	vez_request_t *waits_by(vez_request_t *r = nullptr) noexcept
	{
		by_ = r ? r : &r_;
		vez_request_set_value(by_, this, 0);
		return by_;
	}

public:
	explicit waiter(std::int64_t key = 0) noexcept { set_key(key); }
	/* Before it waits, or before it is moved. */
	void set_key(std::int64_t key) noexcept { vez_request_set_key(by_, key); }
	vez_request_t *native_handle() noexcept { return by_; }
};

/* A room of a monitor, where a W waits. All but length() inside. */
template <class W = waiter> class room : detail::pinned {
	vez_room_t r_ = VEZ_ROOM_INITIALIZER;

	static W *of(vez_request_t *r) noexcept
	{
		return r ? static_cast<W *>(static_cast<waiter *>(vez_request_ptr(r))) : nullptr;
	}

public:
	constexpr room() noexcept = default;
	/* Who is served first, and after that one; or nullptr. */
	W *first() const noexcept { return of(vez_room_first(&r_)); }
	W *next(W &w) const noexcept { return of(vez_room_next(&r_, w.native_handle())); }
	std::size_t length() const noexcept { return vez_room_length(&r_); }
	vez_room_t *native_handle() noexcept { return &r_; }
};

class monitor : detail::pinned {
	vez_monitor_t m_ = VEZ_MONITOR_INITIALIZER(0);

	struct always {
		bool operator()() const noexcept { return true; }
	};

	/* Lives on the caller's stack until its body has run, or never will. */
	template <class G, class F> struct operation {
		G *guard;
		F *body;
		std::exception_ptr thrown{};
		detail::returned<std::invoke_result_t<F &>> value{};

		/* A guard that throws is over: its body's turn is to say so. */
		static bool may_run(void *arg) noexcept
		{
			operation *o = static_cast<operation *>(arg);
			try {
				return o->thrown || static_cast<bool>((*o->guard)());
			} catch (...) {
				o->thrown = std::current_exception();
				return true;
			}
		}

		static void run(void *arg) noexcept
		{
			operation *o = static_cast<operation *>(arg);
			if (o->thrown)
				return;
			try {
				o->value.from(*o->body);
			} catch (...) {
				o->thrown = std::current_exception();
			}
		}

		int rethrown(int rc)
		{
			if (thrown)
				std::rethrow_exception(std::move(thrown));
			return rc;
		}
	};

	template <class G, class F>
	using operation_of = operation<std::remove_reference_t<G>, std::remove_reference_t<F>>;

public:
	constexpr monitor() noexcept = default;
	/* gave_up as vez_monitor_init wants it: for rooms, by native_handle(). */
	explicit monitor(void (*gave_up)(vez_monitor_t *, vez_room_t *, vez_request_t *)) noexcept
	{
		vez_monitor_init(&m_, gave_up);
	}
	~monitor() { detail::must(vez_monitor_destroy(&m_), "vez::monitor"); }

	/* Enters and leaves. */
	void lock() noexcept { vez_monitor_enter(&m_); }
	void unlock() noexcept { vez_monitor_exit(&m_); }

	/* Inside: waits in the room until it is settled, and returns outside: the lock is no longer owned. The status
	 * is what it was settled with; another errno number is an exception. */
	template <class W>
	[[nodiscard]] status wait(std::unique_lock<monitor> &l, room<W> &where, W &w, deadline t = deadline::never(),
				  token_ref token = {})
	{
		if (l.mutex() != this || !l.owns_lock())
			detail::fail(EPERM, "vez::monitor::wait");
		l.release();
		vez_request_t *own = static_cast<waiter &>(w).waits_by();
		return detail::to_status(vez_monitor_wait(&m_, where.native_handle(), own, t.native(),
							  token.native_handle()),
					 "vez_monitor_wait");
	}
	/* The same without a thread: r completes when w is settled, or by its own limits, and has w's place by its own
	 * key. Both stay until then. */
	template <class W>
	[[nodiscard]] status wait_async(std::unique_lock<monitor> &l, room<W> &where, W &w, basic_request &r)
	{
		if (l.mutex() != this || !l.owns_lock())
			detail::fail(EPERM, "vez::monitor::wait_async");
		l.release();
		vez_request_t *by = static_cast<waiter &>(w).waits_by(r.native_handle());
		return detail::to_status(vez_monitor_wait_async(&m_, where.native_handle(), by),
					 "vez_monitor_wait_async");
	}
	/* Inside, for a request that need not wait: false, if its wait-for-any is won already. */
	bool settle_unqueued(basic_request &r, int result = 0) noexcept
	{
		return vez_monitor_settle_unqueued(&m_, r.native_handle(), result);
	}
	/* Inside, as the calls of C: w wakes with this result, 0 being status::ok; waits in another room; waits on
	 * without limits. */
	bool settle(waiter &w, int result = 0) noexcept { return vez_monitor_settle(&m_, w.native_handle(), result); }
	template <class W> bool move(W &w, room<W> &to) noexcept
	{
		return vez_monitor_move(&m_, to.native_handle(), w.native_handle());
	}
	bool keep(waiter &w) noexcept { return vez_monitor_keep(&m_, w.native_handle()); }

	/* Has the body run inside, by whichever thread, and returns what it returned. */
	template <class F> std::invoke_result_t<F &> call(F &&body)
	{
		using op = operation_of<always, F>;
		op o{ nullptr, std::addressof(body) };
		detail::check(o.rethrown(vez_monitor_call(&m_, op::run, &o)), "vez_monitor_call");
		return o.value.take();
	}

	/* The same, when the guard is true. */
	template <class G, class F> std::invoke_result_t<F &> call_when(G &&guard, F &&body)
	{
		using op = operation_of<G, F>;
		op o{ std::addressof(guard), std::addressof(body) };
		detail::check(o.rethrown(vez_monitor_call_when(&m_, op::may_run, op::run, &o, VEZ_FOREVER, nullptr)),
			      "vez_monitor_call_when");
		return o.value.take();
	}

	/* ok: it has run, and what it returned is dropped. Else it has not. */
	template <class G, class F>
	[[nodiscard]] status call_when_until(G &&guard, F &&body, deadline t, token_ref token = {})
	{
		using op = operation_of<G, F>;
		op o{ std::addressof(guard), std::addressof(body) };
		return detail::to_status(o.rethrown(vez_monitor_call_when(&m_, op::may_run, op::run, &o, t.native(),
									  token.native_handle())),
					 "vez_monitor_call_when");
	}

	vez_monitor_t *native_handle() noexcept { return &m_; }
};

/* A call that nobody waits for: start() hands it over, and done(int result) is called when the body has run, unless
 * start() said ok: then it has. */
template <class G, class F, class D> class call_request : public request<D> {
	G guard_;
	F body_;

	static bool may_run(void *arg) noexcept
	{
		return detail::or_die("an exception left a guard",
				      [arg] { return static_cast<bool>(static_cast<call_request *>(arg)->guard_()); });
	}

	static void run(void *arg) noexcept
	{
		detail::or_die("an exception left a body", [arg] { (void)static_cast<call_request *>(arg)->body_(); });
	}

public:
	call_request(G guard, F body, D done)
		: request<D>(std::move(done)), guard_(std::move(guard)), body_(std::move(body))
	{
	}
	~call_request()
	{
		/* Before the guard and the body go. */
		if (!this->cancel())
			(void)vez_request_wait(this->native_handle(), VEZ_FOREVER, nullptr);
	}
	[[nodiscard]] status start(monitor &m)
	{
		int rc = vez_monitor_call_async(m.native_handle(), may_run, run, this, this->native_handle());
		return detail::to_status(rc, "vez_monitor_call_async");
	}
};

/* ---- objects whose operations are constrained from outside ---- */

template <class Self, class Arg> class operation;

/* One call of an operation; constraints and triggers are shown its argument. It is on the caller's stack, but of
 * object::call_async, where the caller keeps it, and its argument, until the request completes. */
template <class Self, class Arg> struct operation_call {
	const operation<Self, Arg> *of;
	Arg *arg;
	std::exception_ptr thrown{};

	operation_call(const operation<Self, Arg> &op, Arg &a) noexcept : of(&op), arg(std::addressof(a)) {}
	/* Throws what the operation has thrown; else the result it is given. */
	int rethrown(int rc = 0)
	{
		if (thrown)
			std::rethrow_exception(std::move(thrown));
		return rc;
	}
};

/* An operation of objects whose state is a Self: fn(Self &, Arg &). It outlives the objects that it is called on. */
template <class Self, class Arg> class operation : detail::pinned {
	std::function<void(Self &, Arg &)> fn_;
	vez_operation_t op_;

	static void run(void *self, void *arg) noexcept
	{
		call *c = static_cast<call *>(arg);
		try {
			c->of->fn_(*static_cast<Self *>(self), *c->arg);
		} catch (...) {
			c->thrown = std::current_exception();
		}
	}

public:
	using call = operation_call<Self, Arg>;

	operation(const char *name, std::function<void(Self &, Arg &)> fn) : fn_(std::move(fn)), op_{ name, run } {}
	const vez_operation_t *native_handle() const noexcept { return &op_; }
};

template <class Self> class object : detail::pinned {
	vez_object_t o_;

public:
	/* flags: 0, or VEZ_SERIAL. */
	explicit object(Self &self, unsigned flags = 0)
	{
		detail::check(vez_object_init(&o_, std::addressof(self), flags), "vez_object_init");
	}
	~object() { detail::must(vez_object_destroy(&o_), "vez::object"); }

	/* Has it run, by whichever thread, when its constraints are true. If it throws, its triggers run all the
	 * same. */
	template <class Arg> void call(const operation<Self, Arg> &op, Arg &arg)
	{
		operation_call<Self, Arg> c(op, arg);
		detail::check(c.rethrown(vez_object_call(&o_, op.native_handle(), &c)), "vez_object_call");
	}
	/* false: it would have to wait for a constraint. */
	template <class Arg> bool try_call(const operation<Self, Arg> &op, Arg &arg)
	{
		operation_call<Self, Arg> c(op, arg);
		return detail::unless(EBUSY, c.rethrown(vez_object_try_call(&o_, op.native_handle(), &c)),
				      "vez_object_try_call");
	}
	template <class Arg>
	[[nodiscard]] status call_until(const operation<Self, Arg> &op, Arg &arg, deadline t, token_ref token = {})
	{
		operation_call<Self, Arg> c(op, arg);
		int rc = vez_object_call_until(&o_, op.native_handle(), &c, t.native(), token.native_handle());
		return detail::to_status(c.rethrown(rc), "vez_object_call_until");
	}
	/* Without waiting for constraints, and not of an object with VEZ_SERIAL. When it has run, c.rethrown() throws
	 * what it has thrown. */
	template <class Arg> [[nodiscard]] status call_async(operation_call<Self, Arg> &c, basic_request &r)
	{
		int rc = vez_object_call_async(&o_, c.of->native_handle(), &c, r.native_handle());
		return detail::to_status(rc, "vez_object_call_async");
	}
	std::size_t waiters() const noexcept { return vez_object_waiters(&o_); }
	vez_object_t *native_handle() noexcept { return &o_; }
};

/* Relates objects: synchronizer s{ a, b }. */
class synchronizer : detail::pinned {
	std::vector<vez_object_t *> objects_;
	vez_synchronizer_t s_;

public:
	template <class... Self>
	explicit synchronizer(object<Self> &...objects) : objects_{ objects.native_handle()... }
	{
		detail::check(vez_synchronizer_init(&s_, objects_.data(), objects_.size()), "vez_synchronizer_init");
	}
	~synchronizer() { (void)vez_synchronizer_destroy(&s_); }
	vez_synchronizer_t *native_handle() noexcept { return &s_; }
};

/* As long as this is there, the operation runs on the object only while guard(const Arg &) is true; the guard of one
 * that names a synchronizer may look at all of its objects. It goes before what it was added to. */
template <class Arg, class G> class constraint : detail::pinned {
	G guard_;
	vez_constraint_t c_{};

	template <class Self> static bool may_run(void *arg, void *call) noexcept
	{
		return detail::or_die("an exception left a constraint", [=] {
			const Arg &a = *static_cast<typename operation<Self, Arg>::call *>(call)->arg;
			return static_cast<bool>(static_cast<constraint *>(arg)->guard_(a));
		});
	}

public:
	template <class Self>
	constraint(object<Self> &o, const operation<Self, Arg> &op, G guard) : guard_(std::move(guard))
	{
		detail::check(vez_constraint_add(o.native_handle(), op.native_handle(), may_run<Self>, this, &c_),
			      "vez_constraint_add");
	}
	template <class Self>
	constraint(synchronizer &s, object<Self> &o, const operation<Self, Arg> &op, G guard) : guard_(std::move(guard))
	{
		detail::check(vez_synchronizer_constraint_add(s.native_handle(), o.native_handle(), op.native_handle(),
							      may_run<Self>, this, &c_),
			      "vez_synchronizer_constraint_add");
	}
	~constraint() { (void)vez_constraint_remove(&c_); }
};

/* As long as this is there, fn(const Arg &) runs after each run of the operation, as a part of it. */
template <class Arg, class F> class trigger : detail::pinned {
	F fn_;
	vez_trigger_t t_{};

	template <class Self> static void run(void *arg, void *call) noexcept
	{
		detail::or_die("an exception left a trigger", [=] {
			const Arg &a = *static_cast<typename operation<Self, Arg>::call *>(call)->arg;
			static_cast<trigger *>(arg)->fn_(a);
		});
	}

public:
	template <class Self>
	trigger(object<Self> &o, const operation<Self, Arg> &op, F fn) : fn_(std::move(fn))
	{
		detail::check(vez_trigger_add(o.native_handle(), op.native_handle(), run<Self>, this, &t_),
			      "vez_trigger_add");
	}
	template <class Self>
	trigger(synchronizer &s, object<Self> &o, const operation<Self, Arg> &op, F fn) : fn_(std::move(fn))
	{
		detail::check(vez_synchronizer_trigger_add(s.native_handle(), o.native_handle(), op.native_handle(),
							   run<Self>, this, &t_),
			      "vez_synchronizer_trigger_add");
	}
	~trigger() { (void)vez_trigger_remove(&t_); }
};

template <class Self, class Arg, class G>
constraint(object<Self> &, const operation<Self, Arg> &, G) -> constraint<Arg, G>;
template <class Self, class Arg, class G>
constraint(synchronizer &, object<Self> &, const operation<Self, Arg> &, G) -> constraint<Arg, G>;
template <class Self, class Arg, class F>
trigger(object<Self> &, const operation<Self, Arg> &, F) -> trigger<Arg, F>;
template <class Self, class Arg, class F>
trigger(synchronizer &, object<Self> &, const operation<Self, Arg> &, F) -> trigger<Arg, F>;

/* ---- inspection ---- */

/* What vez_inspect calls the object. */
template <class Object> void set_name(Object &object, const char *name)
{
	detail::check(vez_inspect_name(object.native_handle(), name), "vez_inspect_name");
}

} /* namespace vez */

#endif
