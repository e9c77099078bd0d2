#!/bin/sh
# SPDX-License-Identifier: MIT
# What is installed is enough to build on, in C and C++, shared and static; and uninstall leaves nothing behind, wherever
# it was staged.
#
# Seen to fail: a header left out of the list; a .pc with another libdir; a missing link libvez.so.0.2; an uninstall that
# forgets one; a DESTDIR that is not quoted; a launcher that looks for its object in PREFIX/lib whatever LIBDIR is.
cd "$(dirname "$0")/.."
. tests/lib/prelude.sh
stage=$tmp/stage
prefix=/opt/vez

# The make that runs the tests must not lend this one its options.
unset MAKEFLAGS MAKELEVEL MFLAGS
quiet_make() {
	quiet make -s BUILD="$tmp/build" DESTDIR="$stage" PREFIX=$prefix "$@"
}

quiet_make install
installed=$(cd "$stage" && find . ! -type d | sort)

for header in vez.h vez.hpp $(cd include && echo vez/*.h); do
	[ -f "$stage$prefix/include/$header" ] || die "$header is not installed"
done

for page in $(scripts/man --list); do
	[ -f "$stage$prefix/share/man/man${page##*.}/$page" ] || die "$page is not installed"
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
[ "$(pkg-config --variable=prefix vez)" = $prefix ] || die "vez.pc names another prefix"
[ "$(pkg-config --variable=libdir vez)" = $prefix/lib ] || die "vez.pc names another libdir"
[ "$(pkg-config --variable=includedir vez)" = $prefix/include ] || die "vez.pc names another includedir"
[ "$(pkg-config --modversion vez)" = "$(sed -n 's/^VERSION := //p' Makefile)" ] || die "vez.pc names another version"
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
		"$1" -std="$2" -Wall -Wextra -Werror -o "$tmp/program" "$3" $with || die "$1: $kind does not build"
		ran=$(LD_LIBRARY_PATH="$stage$prefix/lib" "$tmp/program") || die "$1: $kind does not run"
		[ "$ran" = works ] || die "$1: $kind: $ran"
		needs=$(readelf -d "$tmp/program" | grep -c 'NEEDED.*libvez.so.0.2' || true)
		[ "$kind $needs" = "shared 1" ] || [ "$kind $needs" = "static 0" ] ||
			die "$1: $kind needs libvez.so.0.2 $needs times"
	done
}

try_build gcc c11 "$tmp/program.c"
try_build g++ c++17 "$tmp/program.cc"

cat >"$tmp/program.cc" <<'END'
#include <vez.hpp>
#include <iostream>

static vez::semaphore sem(2);

int main()
{
	using namespace std::chrono_literals;
	vez::permits both(sem, 2);
	if (sem.try_acquire() || sem.acquire_until(1ms, vez::self_token()) != vez::status::timeout)
		return 1;
	std::cout << "works\n";
}
END
try_build g++ c++17 "$tmp/program.cc"

# The tool finds its object from where it was installed, also where libraries have a folder of their own.
version=$("$stage$prefix/bin/vez-wakes" --version)
[ "$version" = "vez-wakes $(pkg-config --modversion vez)" ] || die "vez-wakes has another version: $version"
try_tool() {
	"$stage$prefix/bin/vez-wakes" "$tmp/program" 2>"$tmp/report" >/dev/null || die "vez-wakes: exit status"
	grep -q "^vez-wakes: nothing to gain" "$tmp/report" || die "vez-wakes: $(cat "$tmp/report")"
}
try_tool
quiet_make LIBDIR=$prefix/lib/here install
rm "$stage$prefix/lib/vez/libvez-wakes.so"
try_tool
quiet_make LIBDIR=$prefix/lib/here uninstall

# check_uninstall: of what is staged, nothing stays
check_uninstall() {
	quiet_make uninstall
	left=$(find "$stage" ! -type d)
	[ -z "$left" ] || die "uninstall leaves $left"
	[ ! -d "$stage$prefix/include/vez" ] || die "uninstall leaves include/vez"
}

check_uninstall
stage="$tmp/another stage"
quiet_make install
[ "$(cd "$stage" && find . ! -type d | sort)" = "$installed" ] || die "another DESTDIR gets other files"
check_uninstall
