#!/bin/sh
# SPDX-License-Identifier: MIT
# A CMake project finds what is installed, wherever that lies, in C and C++, shared and static; and is told when it asks
# for a version that is not there.
#
# Seen to fail: a library, a header folder or a file of the configuration elsewhere; a version that suits everybody; a
# path that is not relative.
cd "$(dirname "$0")/.."
. tests/lib/prelude.sh
if ! command -v cmake >/dev/null 2>&1; then
	echo "skip: cmake is not here"
	exit 0
fi
version=$(sed -n 's/^VERSION := //p' Makefile)

# The make that runs the tests must not lend these its options.
unset MAKEFLAGS MAKELEVEL MFLAGS

mkdir "$tmp/project"
cat >"$tmp/project/program.c" <<'END'
#include <vez.h>
int main(void)
{
	vez_sem_t sem = VEZ_SEM_INITIALIZER(1);
	return vez_sem_acquire(&sem, 1) != 0 || vez_sem_try_acquire(&sem, 1) != EBUSY;
}
END
cp "$tmp/project/program.c" "$tmp/project/program.cc"
cat >"$tmp/project/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.10)
project(program C CXX)
set(CMAKE_CXX_STANDARD 17)
find_package(vez ${ASKED} REQUIRED)
find_package(vez REQUIRED)
add_executable(shared program.c)
target_link_libraries(shared vez::vez)
add_executable(cxx program.cc)
target_link_libraries(cxx vez::vez)
add_executable(static program.c)
target_link_libraries(static vez::static)
END

# configure WHERE VERSION: looks anew, but for the compilers
configure() {
	cmake -S "$tmp/project" -B "$tmp/built" -Uvez_DIR -DCMAKE_PREFIX_PATH="$1" -DASKED="$2" >"$tmp/log" 2>&1
}

# try_in STAGE PREFIX LIBDIR INCLUDEDIR: installs it, moves the whole, and builds on it
try_in() {
	quiet make -s BUILD="$tmp/build" DESTDIR="$1" PREFIX="$2" LIBDIR="$3" INCLUDEDIR="$4" install
	mv "$1" "$1-moved"
	configure "$1-moved$2" "$version" || { cat "$tmp/log"; die "not found below $2"; }
	quiet cmake --build "$tmp/built"
	for program in shared cxx static; do
		"$tmp/built/$program" || die "$program does not run"
		needs=$(readelf -d "$tmp/built/$program" | grep -c 'NEEDED.*libvez.so.0.2' || true)
		case "$program $needs" in
		"shared 1" | "cxx 1" | "static 0") ;;
		*) die "$program needs libvez.so.0.2 $needs times" ;;
		esac
	done
}

try_in "$tmp/plain" /opt/vez /opt/vez/lib /opt/vez/include
for good in "${version%.*}" "${version%.*}.0" 0; do
	configure "$tmp/plain-moved/opt/vez" "$good" || die "does not suit who asks for $good"
done
for bad in 99 "${version%.*}.99" 0.0.1; do
	! configure "$tmp/plain-moved/opt/vez" "$bad" || die "suits who asks for $bad"
	grep -q 'with requested version' "$tmp/log" || die "$(cat "$tmp/log")"
done

# As a distribution lays it out.
architecture=$(gcc -print-multiarch)
try_in "$tmp/debian" /usr "/usr/lib/$architecture" /usr/include
