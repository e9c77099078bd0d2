#!/bin/sh
# SPDX-License-Identifier: MIT
# libvez-cluster exports what its header declares and nothing else, and libvez needs nothing of it; what is installed of
# it is enough to build on; uninstall leaves nothing behind.
#
# Seen to fail: a function declared and not defined; a .pc that does not name vez; a header that is not in the list; an
# uninstall that forgets a page.
set -eu
cd "$(dirname "$0")/../.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
stage="$tmp/a stage"
prefix=/opt/vez
lib=$stage$prefix/lib

# The make that runs the tests must not lend this one its options.
unset MAKEFLAGS MAKELEVEL MFLAGS
# Without the pages of libvez, which are another test's.
quiet_make() {
	make -s MAN= BUILD="$tmp/build" DESTDIR="$stage" PREFIX=$prefix "$@" >"$tmp/log" 2>&1 || { cat "$tmp/log"; exit 1; }
}

fail() {
	echo "$*"
	exit 1
}

# needed FILE: the libraries that it names
needed() {
	readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v '^ld-linux' | sort | tr '\n' ' '
}

# What has been compiled need not be compiled again.
mkdir -p "$tmp/build/obj"
cp -a "${BUILD:-build}/obj/src" "$tmp/build/obj/src"
quiet_make install
installed=$(cd "$stage" && find . -name '*cluster*')
[ -z "$installed" ] || fail "make install installs $installed"
[ "$(needed "$lib/libvez.so")" = "libc.so.6 " ] || fail "libvez.so needs $(needed "$lib/libvez.so")"

quiet_make install-cluster
for file in include/vez/cluster.h lib/libvez-cluster.so lib/libvez-cluster.so.0.2 lib/pkgconfig/vez-cluster.pc \
	bin/vez-cluster $(scripts/man --list cluster | sed 's|.*\.\(.\)$|share/man/man\1/&|'); do
	[ -f "$stage$prefix/$file" ] || fail "$file is not installed"
done
[ "$(needed "$lib/libvez-cluster.so")" = "libc.so.6 libvez.so.0.2 libzookeeper_mt.so.2 " ] ||
	fail "libvez-cluster.so needs $(needed "$lib/libvez-cluster.so")"

printf '#include <vez/cluster.h>\n' >"$tmp/all.c"
gcc -std=c11 -I"$stage$prefix/include" -E -P "$tmp/all.c" | tr '\n' ' ' | sed 's/[;{}]/\n/g' | grep -v '\<typedef\>' |
	grep -oE '\<vez_cluster_[a-z0-9_]+ *\(' | tr -d ' (' | sort -u >"$tmp/declared"
nm -D --defined-only "$lib/libvez-cluster.so" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
	sort -u >"$tmp/exported"
diff "$tmp/declared" "$tmp/exported" || fail "< declared by vez/cluster.h, > exported by libvez-cluster.so"
[ "$(wc -l <"$tmp/declared")" -gt 20 ] || fail "few functions are declared"

cat >"$tmp/program.c" <<'END'
#include <vez/cluster.h>
#include <stdio.h>

int main(void)
{
	vez_cluster_options_t options = { "127.0.0.1:1", NULL, NULL, 1000 };
	vez_cluster_t *c;
	puts(vez_cluster_open(&c, &options, vez_after_ms(1), NULL) == ETIMEDOUT ? "works" : "does not");
	return 0;
}
END
cp "$tmp/program.c" "$tmp/program.cc"
export PKG_CONFIG_LIBDIR="$tmp/pkgconfig"
[ "$(PKG_CONFIG_LIBDIR="$lib/pkgconfig" pkg-config --variable=prefix vez-cluster)" = $prefix ] ||
	fail "vez-cluster.pc names another prefix"
# As if it had been staged at its place, of which the name has no space.
mkdir "$tmp/pkgconfig"
ln -s "$stage$prefix" "$tmp/place"
for pc in vez vez-cluster; do
	sed "s|$prefix|$tmp/place|" "$lib/pkgconfig/$pc.pc" >"$tmp/pkgconfig/$pc.pc"
done
for compiler in "gcc -std=c11" "g++ -std=c++17"; do
	source=$tmp/program.c
	[ "${compiler%% *}" = gcc ] || source=$tmp/program.cc
	# shellcheck disable=SC2046,SC2086 # flags
	$compiler -Wall -Wextra -Werror -o "$tmp/program" "$source" $(pkg-config --cflags --libs vez-cluster) \
		-Wl,-rpath-link,"$tmp/place/lib" || fail "$compiler does not build"
	[ "$(LD_LIBRARY_PATH="$lib" "$tmp/program")" = works ] || fail "$compiler: what it builds does not work"
done

# The command finds its libraries from where it was installed.
version=$("$stage$prefix/bin/vez-cluster" --version)
[ "$version" = "vez-cluster $(pkg-config --modversion vez-cluster)" ] ||
	fail "vez-cluster has another version: $version"
quiet_make LIBDIR=$prefix/lib/here install-cluster
rm -f "$lib"/libvez*
"$stage$prefix/bin/vez-cluster" --version >"$tmp/version" || fail "vez-cluster does not find its libraries in lib/here"
quiet_make LIBDIR=$prefix/lib/here uninstall-cluster

quiet_make uninstall-cluster
left=$(find "$stage" ! -type d)
[ -z "$left" ] || fail "uninstall leaves $left"
[ ! -d "$stage$prefix/include/vez" ] || fail "uninstall leaves include/vez"
