#!/bin/sh
# SPDX-License-Identifier: MIT
# What is installed is enough to build on, in C and C++, shared and static; and uninstall leaves nothing behind.
#
# Seen to fail: a header left out of the list; a .pc with another libdir; a missing link libvez.so.0; an uninstall that
# forgets one.
set -eu
cd "$(dirname "$0")/.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
stage=$tmp/stage
prefix=/opt/vez

# The make that runs the tests must not lend this one its options.
unset MAKEFLAGS MAKELEVEL MFLAGS
quiet_make() {
	make -s BUILD="$tmp/build" DESTDIR="$stage" PREFIX=$prefix "$@" >"$tmp/log" 2>&1 || { cat "$tmp/log"; exit 1; }
}

fail() {
	echo "$*"
	exit 1
}

quiet_make install

for header in vez.h $(cd include && echo vez/*.h); do
	[ "$header" != vez/cluster.h ] || continue # of libvez-cluster
	[ -f "$stage$prefix/include/$header" ] || fail "$header is not installed"
done

cat >"$tmp/program.c" <<'END'
#include <vez.h>
#include <stdio.h>

static vez_sem_t sem = VEZ_SEM_INITIALIZER(2);

int main(void)
{
	if (vez_sem_acquire(&sem, 2) != 0 || vez_sem_try_acquire(&sem, 1) != EBUSY)
		return 1;
	if (vez_sem_acquire_until(&sem, 1, vez_after_ms(1), vez_cancel_self()) != ETIMEDOUT)
		return 2;
	puts(vez_sem_release(&sem, 2) == 0 ? "works" : "does not");
	return 0;
}
END
cp "$tmp/program.c" "$tmp/program.cc"

export PKG_CONFIG_LIBDIR="$stage$prefix/lib/pkgconfig"
[ "$(pkg-config --variable=prefix vez)" = $prefix ] || fail "vez.pc names another prefix"
[ "$(pkg-config --variable=libdir vez)" = $prefix/lib ] || fail "vez.pc names another libdir"
[ "$(pkg-config --variable=includedir vez)" = $prefix/include ] || fail "vez.pc names another includedir"
[ "$(pkg-config --modversion vez)" = "$(sed -n 's/^VERSION := //p' Makefile)" ] || fail "vez.pc names another version"
flags="$(pkg-config --define-variable=prefix="$stage$prefix" --define-variable=libdir="$stage$prefix/lib" \
	--define-variable=includedir="$stage$prefix/include" --cflags --libs vez)"

static_flags="$(pkg-config --define-variable=prefix="$stage$prefix" --define-variable=libdir="$stage$prefix/lib" \
	--define-variable=includedir="$stage$prefix/include" --static --cflags --libs vez)"

# try_build COMPILER STANDARD SOURCE: shared, then static
try_build() {
	for kind in shared static; do
		case $kind in
		shared) with=$flags ;;
		static) with=$(echo "$static_flags" | sed 's/-lvez/-Wl,-Bstatic -lvez -Wl,-Bdynamic/') ;;
		esac
		# shellcheck disable=SC2086 # flags
		"$1" -std="$2" -Wall -Wextra -Werror -o "$tmp/program" "$3" $with || fail "$1: $kind does not build"
		ran=$(LD_LIBRARY_PATH="$stage$prefix/lib" "$tmp/program") || fail "$1: $kind does not run"
		[ "$ran" = works ] || fail "$1: $kind: $ran"
		needs=$(readelf -d "$tmp/program" | grep -c 'NEEDED.*libvez.so.0' || true)
		[ "$kind $needs" = "shared 1" ] || [ "$kind $needs" = "static 0" ] ||
			fail "$1: $kind needs libvez.so.0 $needs times"
	done
}

try_build gcc c11 "$tmp/program.c"
try_build g++ c++17 "$tmp/program.cc"

quiet_make uninstall
left=$(find "$stage" ! -type d)
[ -z "$left" ] || fail "uninstall leaves $left"
[ ! -d "$stage$prefix/include/vez" ] || fail "uninstall leaves include/vez"
