#!/bin/sh
# SPDX-License-Identifier: MIT
# vez.hpp, without a warning from both compilers, in C++17 and C++20: its objects, its calls, and what ends a program.
#
# hpp.sh all: each compiler with each standard. Without all, g++ with C++17 and clang++ with C++20 stand for the four,
# which take minutes to compile.
#
# Seen to fail: each call of C in vez.hpp left out, and each with another result; a status that says ok, a result that
# is not thrown, a time rounded down; an exception of a body, a guard, a once or an action that is dropped; a destructor
# that does not ask, or does not wait for a function that is running; a warning. tests/foreign.sh: what the calls of C do
# about exceptions.
cd "$(dirname "$0")/.."
. tests/lib/prelude.sh
lib=$build/lib/libvez.a

# build COMPILER STANDARD NAME
build() {
	# With an optimizing gcc 12, std::stop_source itself has a warning.
	case $2 in
	c++17) with=-O2 ;;
	*) with=-O0 ;;
	esac
	"$1" -std="$2" $with -g -Wall -Wextra -Wshadow -Wpedantic -Werror -Iinclude -pthread \
		-o "$tmp/$3" "tests/hpp/$3.cc" "$lib" || fail "$1 -std=$2: tests/hpp/$3.cc"
}

# dies CASE LINE: with SIGABRT, and this line on stderr
dies() {
	status=0
	{ (cd "$tmp" && exec timeout 20 ./dies "$1") 2>"$tmp/said" || status=$?; } 2>"$tmp/shell"
	[ "$status" = 134 ] || fail "dies $1: exit status $status"
	grep -qF "$2" "$tmp/said" || fail "dies $1: $(cat "$tmp/said")"
}

case ${1:-} in
all) pairs='g++:c++17 g++:c++20 clang++:c++17 clang++:c++20' ;;
*) pairs='g++:c++17 clang++:c++20' ;;
esac

compilers=
for pair in $pairs; do
	compiler=${pair%:*} standard=${pair#*:}
	command -v "$compiler" >/dev/null 2>&1 || continue
	case " $compilers " in *" $compiler "*) ;; *) compilers="${compilers:+$compilers }$compiler" ;; esac
	for name in objects calls rooms; do
		build "$compiler" "$standard" "$name"
		[ "$failures" = 0 ] || exit 1
		timeout 60 "$tmp/$name" || fail "$compiler -std=$standard: $name"
	done
done
[ -n "$compilers" ] || fail "no compiler for C++"
[ "${1:-}" = all ] || compilers=${compilers%% *}

for compiler in $compilers; do
	build "$compiler" c++17 dies
	[ "$failures" = 0 ] || exit 1
	"$tmp/dies" || fail "$compiler: dies of nothing"
	dies hook 'vez: an exception left a hook: why'
	dies unknown 'vez: an exception left a hook: an exception of unknown type'
	dies request "vez: an exception left a request's function: why"
	dies async-body 'vez: an exception left a body: why'
	dies async-guard 'vez: an exception left a guard: why'
	dies order 'vez: an exception left the order of a scheduler: why'
	dies constraint 'vez: an exception left a constraint: why'
	dies trigger 'vez: an exception left a trigger: why'
	dies 'held token' 'vez: vez::cancel_token: destroyed while in use'
	dies 'held request' 'vez: vez::listed_request: destroyed while in use'
	for type in mutex cond rwlock semaphore latch barrier event queue group sched monitor object; do
		dies "held $type" "vez: vez::$type: destroyed while in use"
	done
	dies permits 'vez: vez::permits: more permits than the maximum'
	dies group 'vez: vez::group_guard: not held'
	dies upgrade 'vez: vez::upgrade_guard: not held'
	dies sched 'vez: vez::sched_guard: not held'
	dies unlocked-twice 'vez_mutex_unlock'
done

# The examples in README.md.
awk -v dir="$tmp" '/^```cpp$/ { n++; out = dir "/readme-" n ".cc"; next }
	/^```/ { out = "" }
	out { print > out }' README.md
for example in "$tmp"/readme-*.cc; do
	[ -f "$example" ] || fail "README.md has no example in C++"
	g++ -std=c++17 -Wall -Wextra -Wshadow -Werror -Iinclude -pthread -o "$tmp/example" "$example" "$lib" ||
		fail "$(basename "$example")"
	timeout 20 "$tmp/example" >"$tmp/said" || fail "$(basename "$example") does not run"
done

# Included alone, and twice; and refused where it cannot work.
printf '#include <vez.hpp>\n#include <vez.hpp>\nint main() {}\n' >"$tmp/alone.cc"
g++ -std=c++17 -Wall -Wextra -Wshadow -Werror -Iinclude -fsyntax-only "$tmp/alone.cc" || fail "not alone"
! g++ -std=c++14 -Iinclude -fsyntax-only "$tmp/alone.cc" 2>"$tmp/said" || fail "C++14 is let through"
grep -q 'vez.hpp needs C++17' "$tmp/said" || fail "C++14 is not told why"

[ "$failures" = 0 ]
