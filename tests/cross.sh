#!/bin/sh
# SPDX-License-Identifier: MIT
# The runner that stands in for Criterion in an emulator tells apart what passes, fails, crashes and hangs, ends what a
# test has started, and skips what its list names; each pattern of the list that scripts/check-cross uses stands for a
# test.
#
# Seen to fail: a runner that takes every end for a pass, that leaves what a test has started, whose limit is none, and
# that skips nothing; a pattern in tests/cross/skipped that names no test.
cd "$(dirname "$0")/.."
. tests/lib/prelude.sh

cat >"$tmp/t.c" <<'END'
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static int ready;

static void prepare(void)
{
	ready = 1;
}

TestSuite(good, .timeout = 60, .init = prepare);
TestSuite(bad, .timeout = 60);

Test(good, passes)
{
	cr_assert(ready);
	cr_assert(ready, "%d", ready);
	cr_assert_eq(ready++, 1, "never told");
}

Test(good, begins_anew)
{
	cr_assert_eq(ready, 1);
}

Test(good, aborts, .signal = SIGABRT)
{
	abort();
}

Test(bad, fails)
{
	cr_assert(ready == 3, "ready is %d", ready);
}

static void *fail_here(void *arg)
{
	cr_assert(arg != NULL);
	return arg;
}

Test(bad, fails_in_a_thread)
{
	pthread_t t;
	pthread_create(&t, NULL, fail_here, NULL);
	pause();
}

Test(bad, crashes)
{
	raise(SIGSEGV);
}

Test(bad, aborts_not, .signal = SIGABRT)
{
}

Test(bad, hangs, .timeout = 0.2)
{
	if (fork() == 0)
		execlp("sleep", "sleep", "98764", (char *)NULL);
	pause();
}
END
# shellcheck disable=SC2086 # a command and its options
$cc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -Itests/cross -pthread -o "$tmp/t" "$tmp/t.c" tests/cross/runner.c ||
	fail "it is not built"

# expect STATUS LINE ARGUMENT...: the exit status, and a line of what it says
expect() {
	wanted=$1 line=$2 status=0
	shift 2
	timeout 60 "$tmp/t" "$@" >"$tmp/out" 2>&1 || status=$?
	if [ "$status" != "$wanted" ] || ! grep -qF "$line" "$tmp/out"; then
		fail "$*: expected exit status $wanted and '$line'; exit status $status and:" "$tmp/out"
	fi
}

expect 0 'Tested: 3 | Passing: 3 | Failing: 0 | Crashing: 0' --verbose --filter='good/*'
expect 0 '[PASS] good::aborts' --filter='good/ab*'
expect 1 'Tested: 8 | Passing: 3 | Failing: 3 | Crashing: 2'
for line in 'ready == 3: ready is 0' 'arg != NULL' 'bad::crashes: ended by signal 11' 'bad::hangs: Timed out' \
	'bad::aborts_not: exit status 0'; do
	expect 1 "$line"
done
if grep -qs '9876[4]' /proc/[0-9]*/cmdline; then
	fail "what a test has started is still there"
fi
printf '# none\nbad/*  they are bad\ngood/p*\tit is good\n' >"$tmp/list"
export CROSS_SKIP="$tmp/list"
expect 0 'Tested: 2 | Passing: 2' --verbose
expect 0 'skip: good/passes: it is good'
expect 0 'skip: bad/hangs: they are bad'
CROSS_SKIP="$tmp/none"
expect 2 'No such file'

# The list, and the tests that there are.
sed -n 's/^Test(\([a-z]*\), \([A-Za-z0-9_]*\).*/\1\/\2/p' tests/*.c >"$tmp/tests"
printf '%s\n' tests/classics/*.c examples/*.c | sed 's/\.c$//' >>"$tmp/tests"
while read -r pattern why; do
	case $pattern in '' | '#'*) continue ;; esac
	[ -n "$why" ] || fail "tests/cross/skipped: no reason for $pattern"
	found=no
	while read -r name; do
		# shellcheck disable=SC2254 # a pattern
		case $name in $pattern) found=yes ;; esac
	done <"$tmp/tests"
	[ "$found" = yes ] || fail "tests/cross/skipped: no test is $pattern"
done <tests/cross/skipped

[ "$failures" = 0 ]
