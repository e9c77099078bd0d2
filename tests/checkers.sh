#!/bin/sh
# SPDX-License-Identifier: MIT
# J07: ThreadSanitizer, helgrind and DRD believe a correct program that links the library as it was built, and find the
# faults that are planted in it. tests/tools/handovers.c is that program. Under ThreadSanitizer a signal's token fires,
# too, though all threads wait in vez.
#
# Seen to fail: an acquire or a release that is not told; a fast path taken under a checker; FUTEX_WAKE_OP that is not
# told; helgrind not made to forget the last access; a lock not told to be taken, or to be given up; waits that are not
# bounded (the signal is not handled in 30 s); a thread that nobody joins, and that is not detached; a wake's own
# function that helgrind's false reports are not known by.
cd "$(dirname "$0")/.."
. tests/lib/prelude.sh
ran=0

# compile COMPILER OUT OPTION...
compile() {
	compiler=$1 out=$2
	shift 2
	"$compiler" -std=c11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Wshadow -Werror -Iinclude -pthread "$@" -o "$out" \
		tests/tools/handovers.c -L"$build/lib" -lvez -Wl,-rpath,"$(realpath "$build")/lib"
}

# run COMMAND...: its status; 66: something was reported
run() {
	status=0
	TSAN_OPTIONS=exitcode=66 timeout 300 "$@" >"$tmp/log" 2>&1 || status=$?
}

# report FUNCTION: one of helgrind's; the function is where the previous access was
report() {
	printf '==7== Possible data race during write of size 4 at 0x568DCE8 by thread #3\n==7==    at 0x10C16A: run (a.c:2)\n'
	printf '==7== This conflicts with a previous read of size 4 by thread #9\n==7==    at 0x4862984: %s (b.c:1)\n' "$1"
}

# Whether all that was reported meets the address of a wake: helgrind takes it for a read of the word, whose thread may
# use that memory for something else by then. It cannot be told otherwise; README.md says so.
only_wakes() {
	awk '/This conflicts with a previous/ { reports++; looks = 1 }
		looks && / at 0x/ { wakes += / (syscall|vez__sys_futex_wake|vez__sys_futex_wake_op) \(/; looks = 0 }
		END { exit !(reports > 0 && reports == wakes) }' "$tmp/log"
}

for function in syscall vez__sys_futex_wake vez__sys_futex_wake_op; do
	report "$function" >"$tmp/log"
	only_wakes || fail "a wake is not known: $function" "$tmp/log"
	[ "$function" = syscall ] || grep -q "^int $function(" src/futex/sys.h || fail "no such function: $function"
	report use_monitor >>"$tmp/log"
	! only_wakes || fail "beside the wake there is a race: $function" "$tmp/log"
done

# believes NAME COMMAND...: the correct program; and a race
believes() {
	name=$1
	shift
	ran=$((ran + 1))
	run "$@"
	[ "$status" = 0 ] || only_wakes || fail "$name: the correct program: exit status $status" "$tmp/log"
	run "$@" race
	if [ "$status" != 66 ] || ! grep -qE ' race|Conflicting' "$tmp/log"; then
		fail "$name: a race is not reported" "$tmp/log"
	fi
}

for compiler in gcc clang; do
	if ! echo 'int main(void) { return 0; }' | "$compiler" -fsanitize=thread -x c -o /dev/null - 2>/dev/null; then
		echo "skip: ThreadSanitizer of $compiler: it is not here"
		continue
	fi
	compile "$compiler" "$tmp/program" -fsanitize=thread
	believes "ThreadSanitizer of $compiler" "$tmp/program"
	run "$tmp/program" exits
	[ "$status" = 0 ] ||
		fail "ThreadSanitizer of $compiler: the library's thread at exit: exit status $status" "$tmp/log"
	run "$tmp/program" inversion
	grep -q 'lock-order-inversion' "$tmp/log" ||
		fail "ThreadSanitizer of $compiler: an inversion is not reported" "$tmp/log"
	run "$tmp/program" unlock
	grep -q 'unlock of an unlocked' "$tmp/log" || fail "ThreadSanitizer of $compiler: an unlock is not reported" "$tmp/log"
done

# It is told where the library was built with valgrind's headers.
if command -v valgrind >/dev/null 2>&1 && echo '#include <valgrind/drd.h>' | gcc -E -x c - >/dev/null 2>&1; then
	compile gcc "$tmp/program"
	for tool in helgrind drd; do
		believes $tool valgrind -q --tool=$tool --fair-sched=yes --error-exitcode=66 \
			--suppressions=scripts/vez.supp "$tmp/program"
	done
else
	echo "skip: helgrind and DRD: valgrind or its headers are not here"
fi

[ "$failures" = 0 ]
