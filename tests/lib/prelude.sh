# shellcheck shell=sh disable=SC2034 # what the scripts use, each some of it
# SPDX-License-Identifier: MIT
# What each script of tests/ reads first, in the project's folder: it has a folder of its own, $tmp, which goes with it;
# knows which build it tests, and which compiler made that; counts what fails, and ends by [ "$failures" = 0 ].
set -eu
build=${BUILD:-build}
lib=$build/lib
cc=${CC:-gcc}
failures=0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM HUP

# fail WHAT [FILE]: says so, shows what the file has, and goes on
fail() {
	echo "$1"
	[ $# = 1 ] || sed 's/^/    /' "$2"
	failures=$((failures + 1))
}

# die WHAT: says so, and ends
die() {
	echo "$1"
	exit 1
}

# quiet COMMAND...: what it says is shown only if it fails, which is the end
quiet() {
	"$@" >"$tmp/log" 2>&1 || { cat "$tmp/log"; die "$*"; }
}
