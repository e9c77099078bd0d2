#!/bin/sh
# SPDX-License-Identifier: MIT
# scripts/check tells apart what passed, failed, hung, ran nothing, or was reported by a sanitizer.
#
# Seen to fail: a check without the limit, without the search for reports, without ASAN_OPTIONS, and one that believes
# Tested: 0; one that stops what goes on saying something, or what others keep from the processor; one that lets SIGINT
# be ignored, or leaves what a program has started, or what of that ignores SIGTERM; one that keeps to itself what was
# skipped, or runs no emulator.
cd "$(dirname "$0")/.."
. tests/lib/prelude.sh
mkdir "$tmp/classics" "$tmp/examples"

# program NAME: the shell script on standard input
program() {
	{ echo '#!/bin/sh'; cat; } >"$tmp/$1"
	chmod +x "$tmp/$1"
}

# expect LAST-LINE STATUS WORDS ARGUMENT...: what check says last, its exit status, and what is to be found in its
# output
expect() {
	last=$1 status=$2 words=$3
	shift 3
	got=0
	VEZ_CHECK_LIMIT=2 scripts/check "$@" >"$tmp/out" 2>&1 || got=$?
	if [ "$(tail -n 1 "$tmp/out")" != "$last" ] || [ "$got" != "$status" ] || ! grep -q -e "$words" "$tmp/out"; then
		fail "scripts/check $*: expected '$last', exit status $status, and '$words'; exit status $got and:" "$tmp/out"
	fi
}

synthesis='[====] Synthesis: Tested: %d | Passing: %d | Failing: %d | Crashing: %d \n'
# shellcheck disable=SC2059 # the format of Criterion's last line
criterion() {
	{ echo "cat <<'END'"; printf "$synthesis" "$2" "$3" "$4" "$5"; echo END; echo "exit $6"; } | program "$1"
}

criterion good 3 3 0 0 0
criterion bad 5 2 2 1 1
criterion none 0 0 0 0 0
criterion liar 3 3 0 0 1
echo 'exit 0' | program classics/good
echo 'echo why; exit 3' | program classics/bad
echo 'exit 0' | program examples/good
echo 'exit 0' | program good.sh
echo 'echo "skip: no such thing"' | program part.sh
echo 'while :; do sleep 1; done' | program hangs.sh
# shellcheck disable=SC2016 # the program's own words
echo 'for i in 1 2 3 4 5; do echo $i; sleep 1; done' | program slow.sh
# Uses the processor for a second, whenever it gets it.
cpu=$(sed -n 's/^Cpus_allowed_list:[^0-9]*\([0-9]*\).*/\1/p' /proc/self/status)
{ echo "taskset -cp $cpu \$\$ >/dev/null"; cat; } <<'END' | program busy.sh
second=$(getconf CLK_TCK) user=0 system=0
while [ $((user + system)) -lt "$second" ]; do
	read -r _ _ _ _ _ _ _ _ _ _ _ _ _ user system _ </proc/$$/stat
done
END
{ echo 'echo "skip: suite/test: why"'; tail -n +2 "$tmp/good"; } | program leaves
# shellcheck disable=SC2016 # the program's own words
{ echo '[ -n "${EMULATED:-}" ] || exit 1'; tail -n +2 "$tmp/good"; } | program emulated
ignored=$(grep SigIgn /proc/self/status)
echo "[ \"\$(grep SigIgn /proc/self/status)\" = '$ignored' ]" | program signals.sh
# Both sleep for a time that no other run of this test has.
program starts.sh <<END
setsid sleep 98765.$$ & setsid sh -c "trap '' TERM; exec sleep 98765.$$" & echo started; wait
END
echo 'echo "file.c:3:5: runtime error: shift exponent is negative"' | program classics/reported
# shellcheck disable=SC2016 # the program's own words
echo 'echo "1 passed, 9 failed"; echo "$1 passed, $2 failed"; exit $3' | program command

expect "3 passed, 0 failed" 0 "ok .*good: 3 passed" "$tmp/good"
expect "2 passed, 3 failed" 1 "FAIL .*bad" "$tmp/bad"
expect "0 passed, 1 failed" 1 "no test" "$tmp/none"
expect "3 passed, 1 failed" 1 "exit status 1" "$tmp/liar"
expect "3 passed, 1 failed" 1 "| why" "$tmp/classics/good" "$tmp/classics/bad" "$tmp/good.sh" "$tmp/examples/good"
# What failed is told once more behind what came after it. Seen to fail: without the file of failures.
sed '1,/^Once more/d' "$tmp/out" | grep -q '| why' || fail "the end of a run does not tell what failed" "$tmp/out"
expect "0 passed, 1 failed" 1 "hangs.sh.*hung" "$tmp/hangs.sh"
expect "0 passed, 1 failed" 1 "starts.sh.*hung" "$tmp/starts.sh"
if grep -qsw "98765[.]$$" /proc/[0-9]*/cmdline; then
	fail "what starts.sh started is still there"
fi
expect "2 passed, 0 failed" 0 "" "$tmp/slow.sh" "$tmp/signals.sh"

# Beside five that do nothing else, on one processor.
busy=""
for _ in 1 2 3 4 5; do
	taskset -c "$cpu" sh -c 'while :; do :; done' &
	busy="$busy $!"
done
expect "1 passed, 0 failed" 0 "" "$tmp/busy.sh"
# shellcheck disable=SC2086 # numbers
kill $busy
expect "1 passed, 1 failed" 1 "sanitizer" "$tmp/classics/reported"
expect "1 passed, 0 failed" 0 "skip .*part.sh: no such thing" "$tmp/part.sh"
expect "3 passed, 0 failed" 0 "skip .*leaves: suite/test: why" "$tmp/leaves"
EMULATOR="env EMULATED=1" expect "5 passed, 0 failed" 0 "" "$tmp/emulated" "$tmp/classics/good" "$tmp/good.sh"
expect "0 passed, 1 failed" 1 "no test" "$tmp/emulated"
expect "0 passed, 0 failed" 1 ""
expect "7 passed, 0 failed" 0 "command: 4 passed" "$tmp/good" -- "$tmp/command" 4 0 0
expect "7 passed, 2 failed" 1 "command" -- "$tmp/command" 4 0 0 -- "$tmp/command" 3 2 1
expect "4 passed, 1 failed" 1 "exit status 1" -- "$tmp/command" 4 0 1
expect "0 passed, 1 failed" 1 "ran nothing" -- "$tmp/command" 0 0 0
expect "0 passed, 1 failed" 1 "no sum" -- "$tmp/command" none 0 0

# The real reports: a leak, and an overflow that the program survives, in programs that would exit with 0.
cat >"$tmp/faulty.c" <<'END'
#include <stdlib.h>
#include <unistd.h>
static void *volatile sink;
static volatile int most = 0x7fffffff;
int main(int argc, char **argv)
{
	(void)argv;
	sink = malloc(100);
	sink = NULL;
	if (argc == 1)
		most = most + 1;
	return 0;
}
END
if gcc -fsanitize=address -o "$tmp/classics/leaks" "$tmp/faulty.c" 2>/dev/null; then
	ASAN_OPTIONS=detect_leaks=0 "$tmp/classics/leaks"
	expect "0 passed, 1 failed" 1 LeakSanitizer "$tmp/classics/leaks"
fi
if gcc -fsanitize=undefined -o "$tmp/classics/overflows" "$tmp/faulty.c" 2>/dev/null; then
	UBSAN_OPTIONS='' "$tmp/classics/overflows" 2>/dev/null
	expect "0 passed, 1 failed" 1 "runtime error" "$tmp/classics/overflows"
fi

[ "$failures" = 0 ]
