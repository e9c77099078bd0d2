#!/bin/sh
# SPDX-License-Identifier: MIT
# libvez.a linked into what is loaded, unloaded, and ended: a plugin that is closed while a thread and a signal still lead
# into it; a destructor that runs after the library's own; a constructor that forks before the library's own would run.
#
# Seen to fail: without stay in engine/clock.c (the plugin: SIGSEGV); a stop that leaves exists (late: filed, and never
# due); VEZ__AT_FORK with a constructor of no priority (early: the child's request is never due).
cd "$(dirname "$0")/.."
. tests/lib/prelude.sh
lib=$build/lib/libvez.a

cat >"$tmp/plugin.c" <<'END'
#include <signal.h>
#include <vez.h>

static vez_cancel_t token;

int use(void)
{
	vez_cancel_self();
	return vez_cancel_on_signal(&token, SIGUSR1);
}
END

cat >"$tmp/host.c" <<'END'
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>

static pthread_barrier_t used, closed;

static void *run(void *plugin)
{
	int (*use)(void);
	*(void **)&use = dlsym(plugin, "use");
	int rc = use();
	pthread_barrier_wait(&used);
	pthread_barrier_wait(&closed);
	return rc ? plugin : 0; /* and the thread's token is seen to */
}

int main(int argc, char **argv)
{
	pthread_t t;
	void *failed = 0, *plugin = dlopen(argv[argc - 1], RTLD_NOW);
	if (!plugin)
		return 1;
	pthread_barrier_init(&used, 0, 2);
	pthread_barrier_init(&closed, 0, 2);
	pthread_create(&t, 0, run, plugin);
	pthread_barrier_wait(&used);
	dlclose(plugin);
	pthread_barrier_wait(&closed);
	pthread_join(t, &failed);
	raise(SIGUSR1);
	return failed != 0;
}
END

# A request with a deadline, filed before main, in a child of then, and when the library has ended.
cat >"$tmp/ends.c" <<'END'
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vez.h>

static int expire(void)
{
	static vez_sem_t s;
	vez_request_t r;
	vez_request_init(&r, 0, 0);
	vez_request_set_limits(&r, vez_after_ms(20), 0);
	int rc = vez_sem_acquire_async(&s, 1, &r);
	if (rc == EINPROGRESS)
		rc = vez_request_wait(&r, vez_after_ms(10000), 0) == 0 ? vez_request_result(&r) : EINPROGRESS;
	return rc;
}

__attribute__((constructor(101))) static void early(void)
{
	int status;
	if (expire() != ETIMEDOUT)
		_exit(2);
	pid_t child = fork();
	if (child == 0)
		_exit(expire() == ETIMEDOUT ? 0 : 3);
	if (waitpid(child, &status, 0) != child || status != 0)
		_exit(4);
}

__attribute__((destructor(101))) static void late(void)
{
	int rc = expire();
	_exit(rc == EAGAIN || rc == ETIMEDOUT ? 0 : 5);
}

int main(void)
{
	return 6;
}
END

# run NAME PROGRAM ARGUMENT...
run() {
	name=$1 status=0
	shift
	timeout 60 "$@" || status=$?
	[ "$status" = 0 ] || fail "$name: exit status $status"
}

flags='-std=gnu11 -Wall -Wextra -Werror -Iinclude -pthread'
# shellcheck disable=SC2086 # several words
{
	$cc $flags -fPIC -shared -o "$tmp/plugin.so" "$tmp/plugin.c" "$lib"
	$cc $flags -o "$tmp/host" "$tmp/host.c" -ldl
	$cc $flags -o "$tmp/ends" "$tmp/ends.c" "$lib"
	run plugin "$tmp/host" "$tmp/plugin.so"
	run ends "$tmp/ends"
	# Where there is a static C library: not a word from the linker.
	if echo 'int main(void) { return 0; }' | $cc -static -x c -o "$tmp/static" - 2>/dev/null; then
		$cc $flags -static -o "$tmp/static" "$tmp/ends.c" "$lib" 2>"$tmp/said" || fail "$(cat "$tmp/said")"
		[ ! -s "$tmp/said" ] || fail "$(cat "$tmp/said")"
		run static "$tmp/static"
	fi
}
[ "$failures" = 0 ]
