#!/bin/sh
# SPDX-License-Identifier: MIT
# scripts/check tells apart what passed, failed, hung, ran nothing, or was reported by a sanitizer.
#
# Seen to fail: a check without the limit, without the search for reports, without ASAN_OPTIONS, and one that believes
# Tested: 0.
set -eu
cd "$(dirname "$0")/.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/classics" "$tmp/examples"
failures=0

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
		echo "scripts/check $*: expected '$last', exit status $status, and '$words'; exit status $got and:"
		sed 's/^/    /' "$tmp/out"
		failures=$((failures + 1))
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
echo 'while :; do sleep 1; done' | program hangs.sh
echo 'echo "file.c:3:5: runtime error: shift exponent is negative"' | program classics/reported
# shellcheck disable=SC2016 # the program's own words
echo 'echo "1 passed, 9 failed"; echo "$1 passed, $2 failed"; exit $3' | program command

expect "3 passed, 0 failed" 0 "ok .*good: 3 passed" "$tmp/good"
expect "2 passed, 3 failed" 1 "FAIL .*bad" "$tmp/bad"
expect "0 passed, 1 failed" 1 "no test" "$tmp/none"
expect "3 passed, 1 failed" 1 "exit status 1" "$tmp/liar"
expect "3 passed, 1 failed" 1 "| why" "$tmp/classics/good" "$tmp/classics/bad" "$tmp/good.sh" "$tmp/examples/good"
expect "0 passed, 1 failed" 1 "hangs.sh.*hung" "$tmp/hangs.sh"
expect "1 passed, 1 failed" 1 "sanitizer" "$tmp/classics/reported"
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
