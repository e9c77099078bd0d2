#!/bin/sh
# SPDX-License-Identifier: MIT
# What the C calls call, left by an exception or by the end of its thread, ends the program with a sentence, also where
# the caller catches everything. CXX is the compiler; EMULATOR runs what it builds, where that is for another processor.
#
# Seen to fail: each call of a function without VEZ__FOREIGN around it.
cd "$(dirname "$0")/.."
. tests/lib/prelude.sh

"${CXX:-g++}" -std=c++17 -O2 -g -Wall -Wextra -Wshadow -Werror -Iinclude -pthread -o "$tmp/foreign" tests/hpp/foreign.cc \
	"$lib/libvez.a" || exit 1

# aborts LINE ARGUMENT...: with SIGABRT, and this line on stderr
aborts() {
	line=$1 status=0
	shift
	# shellcheck disable=SC2086 # a command and its options
	{ (cd "$tmp" && exec timeout "${EMULATOR:+1}20" ${EMULATOR:-} ./foreign "$@") 2>"$tmp/said" || status=$?; } \
		2>"$tmp/shell"
	[ "$status" = 134 ] || fail "foreign $*: exit status $status"
	grep -qF "$line" "$tmp/said" || fail "foreign $*: $(cat "$tmp/said")"
}

for case in hook hook-fired request body guard filed-body filed-guard once action gave-up order operation constraint \
	trigger await lock-when cond-when unlock-asks; do
	aborts 'vez: an exception left a function that vez has called' throw $case
	grep -qF 'what():  why' "$tmp/said" || fail "foreign throw $case: $(cat "$tmp/said")"
	aborts 'vez: a thread ended inside a function that vez has called' end $case
done

[ "$failures" = 0 ]
