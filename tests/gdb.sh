#!/bin/sh
# SPDX-License-Identifier: MIT
# scripts/vez-gdb.py says of a core dump what vez_inspect would have said, with inspection on; with it off, what the
# stacks show; and shows each object's state in words. tests/tools/stuck.c is the program.
#
# Seen to fail: owners that are not read; hidden waits taken for shown ones; a core looked for at the queue's address;
# a member of another name; a type without a printer; threads that wait without a request, and are not looked for, or at
# another object, or (CC=clang) by a variable that is optimised away.
cd "$(dirname "$0")/.."
. tests/lib/prelude.sh

if ! command -v gdb >/dev/null 2>&1 || ! gdb -nx -batch -ex 'python print(1)' 2>/dev/null | grep -q 1; then
	echo "skip: gdb with Python is not here"
	exit 0
fi
$cc -std=c11 -D_GNU_SOURCE -g -Iinclude -pthread -o "$tmp/stuck" tests/tools/stuck.c \
	-L"$build/lib" -lvez -Wl,-rpath,"$(realpath "$build")/lib"

# core_of NAME [ASSIGNMENT]: the program's core, as gdb writes it
core_of() {
	env ${2:+"$2"} gdb -nx -batch -ex 'set debuginfod enabled off' -ex run -ex "generate-core-file $tmp/$1" "$tmp/stuck" \
		>"$tmp/log" 2>&1 </dev/null || true
	[ -f "$tmp/$1" ] && return
	if grep -qE 'ptrace|personality|startup with shell' "$tmp/log"; then
		echo "skip: gdb may not run programs here"
		exit 0
	fi
	cat "$tmp/log"
	exit 1
}

# ask CORE COMMAND...: what gdb says
ask() {
	core=$tmp/$1
	shift
	set -- "$@" ''
	while [ -n "$1" ]; do
		set -- "$@" -ex "$1"
		shift
	done
	shift
	gdb -nx -batch -ex 'set debuginfod enabled off' -ex 'source scripts/vez-gdb.py' "$@" "$tmp/stuck" "$core" \
		>"$tmp/said" 2>&1 </dev/null
}

# says PATTERN...: each is in what was said
says() {
	for pattern; do
		grep -qE "$pattern" "$tmp/said" && continue
		fail "not said: $pattern" "$tmp/said"
	done
}

unset VEZ_INSPECT
core_of inspected VEZ_INSPECT=1
ask inspected 'vez waits' 'vez deadlocks'
says '^vez: 6 requests wait$' '^vez: sem 0x[0-9a-f]+: thread [0-9]+ \(gdb.s [0-9]\), no deadline, no token$' \
	'^vez: event 0x[0-9a-f]+: async 0x[0-9a-f]+, no deadline' '^vez: deadlock of 2 threads$' \
	'^vez: mutex 0x[0-9a-f]+ "accounts": thread [0-9]+ .*, owner [0-9]+ ' \
	'^vez:   thread [0-9]+ .* waits for mutex 0x[0-9a-f]+, owner [0-9]+ '

core_of plain
ask plain 'vez waits' 'vez deadlocks' 'print accounts' 'print connections' 'print table' 'print opened' 'print latch' \
	'print barrier' 'print cond' 'print group' 'print sched' 'print once' 'print queue' 'print monitor' 'print room' \
	'print token' 'print list' 'print any' 'print object' 'print both' 'print request' 'print &accounts' \
	'print *&accounts' 'print &connections' 'print &barrier' 'print hook' 'print operation' 'print guarded' \
	'print constraint' 'print trigger' 'print unused'
# at TYPE: where the program's object of this type is
at() {
	sed -n "s/.*= (vez_$1_t \*) \(0x[0-9a-f]*\) .*/\1/p" "$tmp/said"
}
says '^vez: 5 requests wait$' "^vez: sem $(at sem): thread " '^vez: mutex 0x[0-9a-f]+: thread ' \
	"^vez: barrier $(at barrier): thread [0-9]+ .*; for a round" \
	'^vez: no deadlock; no owner is known' \
	'= mutex: locked, 1 waiting$' '= sem: 3 permits, 1 waiting$' '= rwlock: 1 read hold, 0 waiting$' \
	'= event: not set, manual, 1 waiting$' '= latch: 5 to go, 0 waiting$' '= barrier: 2 of 9 here, 2 waiting$' \
	'= cond: 0 waiting$' '= group: 1 member of group 6, 0 waiting$' '= sched: entered, 0 waiting$' \
	'= once: done, 0 waiting$' '= queue: 1 of 4 stored, .*, 0 waiting$' '= monitor: nobody inside, 0 waiting$' \
	'= room: 0 waiting$' '= cancel: fired$' '= completions: empty$' '= select: 0 filed, nobody has won$' \
	'= object: not in use, self 0x[0-9a-f]+, 0 waiting$' '= synchronizer: relates 1 object$' \
	'= request: queued, asynchronous$' '= cancel_hook: calls run when token 0x[0-9a-f]+ fires$' \
	'= operation: "act", act$' '= guarded: run, in monitor 0x[0-9a-f]+$' \
	'= constraint: may for "act", act of object 0x[0-9a-f]+$' \
	'= trigger: act for every operation of object 0x[0-9a-f]+$' '= constraint: of no object$'

# Every type of the headers.
types=$(sed -n 's/^} vez_\([a-z_]*\)_t;$/\1/p' include/vez/*.h)
ask plain "python print('without a printer:', [t for t in '$(echo "$types" | tr '\n' ' ')request'.split() if t not in DESCRIPTIONS])"
says '^without a printer: \[\]$'

[ "$failures" = 0 ]
