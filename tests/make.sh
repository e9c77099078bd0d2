#!/bin/sh
# SPDX-License-Identifier: MIT
# make prints one line for each file that it makes, V=1 the whole command, -s nothing; and CFLAGS and CPPFLAGS of its
# command line do not take the place of what an object needs.
#
# Seen to fail: a recipe without its short line; say that does not look for -s; a target's own CPPFLAGS without
# override; a header that is looked for behind a backslash.
cd "$(dirname "$0")/.."
. tests/lib/prelude.sh
# The make that runs this must not lend the others its options.
unset MAKEFLAGS MAKELEVEL MFLAGS V

# prints PATTERN ARGUMENT...: what make says is one line for each file, and each is like this
prints() {
	pattern=$1
	shift
	rm -rf "${tmp:?}/b"
	make BUILD="$tmp/b" CFLAGS=-O0 CPPFLAGS=-DNDEBUG "$@" "$tmp/b/obj/src/engine/error.o" "$tmp/b/obj/src/wakes/launch.o" \
		>"$tmp/out" 2>&1 || echo "make failed" >>"$tmp/out"
	if [ "$(wc -l <"$tmp/out")" != "${lines:-2}" ] || grep -vqE "$pattern" "$tmp/out"; then
		fail "make $*: expected ${lines:-2} lines like '$pattern', got:" "$tmp/out"
	fi
}

prints "^  CC    $tmp/b/obj/src/[a-z]*/[a-z]*\.o$"
prints "^[a-z].* -O0 .*-c -o $tmp/b/obj/src/[a-z]*/[a-z]*\.o src/[a-z]*/[a-z]*\.c$" V=1
lines=0 prints '^$' -s

# A header is here, or it is not.
# shellcheck disable=SC2016 # make's variables
found=$(make -s found \
	--eval='found: ; @echo "$(call if_header,stdio.h,stdio)$(call if_header,no.h,none)$(call if_cxx,no,none)"')
[ "$found" = stdio ] || fail "headers that are here: $found, not stdio alone"

# Whatever is made by a command has such a line: no recipe begins with a compiler or the like itself.
if sed -n '/^\t/s/^\t[@-]*//p' Makefile src/cluster/cluster.mk tests/explore/explore.mk |
	grep -E '^\$\((CC|CXX|AR|LD)\)|^(javac|scripts/man) '; then
	fail "a recipe that prints its whole command"
fi

[ "$failures" = 0 ]
