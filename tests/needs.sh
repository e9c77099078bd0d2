#!/bin/sh
# SPDX-License-Identifier: MIT
# scripts/needs says what is missing and how to install it, installs it where it may, and shows what apt complains about.
#
# It runs where nothing is to be found but what each case puts there.
#
# Seen to fail: a compiler that is always gcc; a CC of several words that is looked for as one; apt-get update to
# /dev/null; a line without the update; a failure of apt that is not told on, or that stops what can do without.
cd "$(dirname "$0")/.."
. tests/lib/prelude.sh

for tool in sh sort tr sed grep mktemp rm env cat; do
	mkdir -p "$tmp/base"
	ln -s "$(command -v $tool)" "$tmp/base/$tool"
done

# fresh NAME...: only the base, and these, which succeed whatever they are asked
fresh() {
	rm -rf "${tmp:?}/bin"
	cp -a "$tmp/base" "$tmp/bin"
	for name; do printf '#!/bin/sh\nexit 0\n' >"$tmp/bin/$name"; done
	printf '#!/bin/sh\necho 1000\n' >"$tmp/bin/id"
	chmod +x "$tmp/bin/"*
}

# command_in NAME: a program, the script on standard input
command_in() {
	{ echo '#!/bin/sh'; cat; } >"$tmp/bin/$1"
	chmod +x "$tmp/bin/$1"
}

# expect STATUS PATTERN CC TARGET: what needs returns, and what its output has (or, with a !, has not)
expect() {
	got=0
	env -i PATH="$tmp/bin" ${VEZ_NO_INSTALL:+VEZ_NO_INSTALL=1} CC="$3" "$tmp/bin/sh" scripts/needs "$4" >"$tmp/out" 2>&1 ||
		got=$?
	found=yes
	grep -qE -e "${2#!}" "$tmp/out" || found=no
	case $2 in !*) wanted=no ;; *) wanted=yes ;; esac
	if [ "$got" != "$1" ] || [ "$found" != "$wanted" ]; then
		fail "CC='$3' needs $4: expected exit status $1 and '$2'; exit status $got and:" "$tmp/out"
	fi
}

fresh
expect 2 usage gcc nothing
expect 1 '^    sudo apt-get update && sudo apt-get install -y .*g\+\+ gcc .*libc6-dev .*pkg-config' gcc check
expect 1 'install -y clang ' clang check
expect 1 ' clang-19 ' "ccache clang-19 -m64" check
expect 1 ' ccache ' "ccache clang-19 -m64" check
expect 1 'gcc-riscv64-linux-gnu' riscv64-linux-gnu-gcc perf
expect 1 'no /opt/cc/bin/cc here' /opt/cc/bin/cc perf

fresh gcc pkg-config
for package in 'g\+\+' gcc; do
	expect 1 "install -y .*$package-aarch64-linux-gnu $package-riscv64-linux-gnu .*qemu-user\$" gcc cross
done
fresh gcc pkg-config qemu-aarch64 qemu-riscv64
for triplet in aarch64-linux-gnu riscv64-linux-gnu; do cp "$tmp/bin/gcc" "$tmp/bin/$triplet-gcc"; done
expect 1 'install -y g\+\+-aarch64-linux-gnu g\+\+-riscv64-linux-gnu$' gcc cross
for triplet in aarch64-linux-gnu riscv64-linux-gnu; do cp "$tmp/bin/gcc" "$tmp/bin/$triplet-g++"; done
expect 0 '!.' gcc cross
rm "$tmp/bin/qemu-riscv64"
expect 1 'install -y qemu-user$' gcc cross

fresh gcc g++ clang pkg-config python3 gzip perf mandoc valgrind gdb patch
expect 0 '!.' gcc check
expect 0 '!.' "gcc -m64" check
expect 0 '!.' "clang -O1" perf
rm "$tmp/bin/patch"
expect 0 'install -y patch$' gcc check
rm "$tmp/bin/g++"
expect 1 'install -y g\+\+ patch$' "gcc -m64" check

# libuv is not here; everything can do without.
fresh gcc g++ mandoc valgrind gdb patch
echo 'exit 1' | command_in pkg-config
expect 0 'install -y libuv1-dev$' gcc check

# Root may install, and is told how it went.
echo 'echo 0' | command_in id
# shellcheck disable=SC2016 # the stub's own words
echo 'echo "$@" >>'"$tmp/calls"'; case $1 in update) echo "W: Failed to fetch lists"; exit 100 ;; esac' | command_in apt-get
expect 0 'W: Failed to fetch' gcc check
grep -qx 'install -y libuv1-dev' "$tmp/calls" || fail "not installed"
# shellcheck disable=SC2016 # the stub's own words
echo '[ $1 = update ] || { echo "E: Unable to locate package"; exit 100; }' | command_in apt-get
expect 0 'E: Unable to locate' gcc check
rm "$tmp/bin/g++"
expect 1 'could not install it: g\+\+ libuv1-dev' gcc check
rm "$tmp/calls"
VEZ_NO_INSTALL=1 expect 1 '^    apt-get update && apt-get install -y g\+\+ libuv1-dev$' gcc check
[ ! -e "$tmp/calls" ] || fail "installed although that is forbidden"

[ "$failures" = 0 ]
