#!/bin/sh
# SPDX-License-Identifier: MIT
# The public headers: what the contract promises, to C11 and C++17, with gcc and clang; each alone; what they do not
# include; and that they refuse a machine which is not supported.
#
# Seen to fail: a function of another type, one that is missing; a header without its own includes; one with _Atomic, or
# with <pthread.h>; a macro with a name of its own; a base.h without its #error.
cd "$(dirname "$0")/.."
. tests/lib/prelude.sh

# How much of the contract is there: see tests/contract/contract.c.
stage=6

headers=$(cd include && echo vez.h vez/*.h)

# compilers LANGUAGE: those that are here
compilers() {
	case $1 in
	c) candidates="gcc clang" ;;
	*) candidates="g++ clang++" ;;
	esac
	for c in $candidates; do
		if command -v "$c" >/dev/null 2>&1; then echo "$c"; fi
	done
}

# compile COMPILER LANGUAGE STANDARD FILE [FLAG...]
compile() {
	with="$1 -x $2 -std=$3" file=$4
	shift 4
	# shellcheck disable=SC2086 # words
	$with -Iinclude -Wall -Wextra -Wpedantic -Werror "$@" -c -o "$tmp/o" "$file" || fail "$file: $with"
}

# check_language LANGUAGE STANDARD
check_language() {
	language=$1 standard=$2
	[ -n "$(compilers "$language")" ] || fail "no compiler for $language"
	for compiler in $(compilers "$language"); do
		compile "$compiler" "$language" "$standard" tests/contract/contract.c -DSTAGE="$stage" \
			-Wno-unused -Wno-pedantic
		for header in $headers; do
			printf '#include <%s>\n' "$header" "$header" >"$tmp/alone"
			echo 'typedef int not_empty;' >>"$tmp/alone"
			compile "$compiler" "$language" "$standard" "$tmp/alone"
		done
	done
}

check_language c c11
check_language c++ c++17

# What a header includes must not bind its users to anything. The C library's own <pthread.h> types come with
# <sys/types.h> and <time.h>: they are not the header.
foreign='/(urcu|linux|asm|asm-generic)(/|\.h)|/(pthread|stdatomic|semaphore|threads)\.h$'
for header in $headers; do
	printf '#include <%s>\n' "$header" >"$tmp/alone.c"
	gcc -std=c11 -Iinclude -M "$tmp/alone.c" | tr -s ' ' '\n' >"$tmp/included"
	if grep -E "$foreign" "$tmp/included" >"$tmp/bad"; then
		# <errno.h> is made of the kernel's numbers.
		if grep -vE '/(linux|asm|asm-generic)/errno(-base)?\.h$' "$tmp/bad"; then
			fail "$header includes these"
		fi
	fi
	if grep -nE '_Atomic|volatile|__atomic_|__sync_' "include/$header"; then
		fail "$header: concurrency is the library's own affair"
	fi
done

# Every name that the headers define is vez's.
for header in $headers; do
	printf '#include <%s>\n' "$header" >"$tmp/alone.c"
	gcc -std=c11 -Iinclude -dD -E "$tmp/alone.c" |
		awk '/^# [0-9]+ "/ { ours = $3 ~ /^"include\// }
			ours && /^#define / { sub(/\(.*/, "", $2); print $2 }' |
		grep -vE '^(VEZ_|vez_)' >"$tmp/bad" && fail "$header defines: $(tr '\n' ' ' <"$tmp/bad")"
done

# A machine that is not supported is refused, in one sentence.
echo '#include <vez.h>' >"$tmp/alone.c"
! gcc -D__i386__ -std=c11 -Iinclude -fsyntax-only "$tmp/alone.c" 2>"$tmp/bad" || fail "32-bit x86 is not refused"
[ "$(grep 'error:' "$tmp/bad" | grep -c 'not for 32-bit x86')" = "$(grep -c 'error:' "$tmp/bad")" ] || fail "$(cat "$tmp/bad")"

[ "$failures" = 0 ]
