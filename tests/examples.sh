#!/bin/sh
# SPDX-License-Identifier: MIT
# Every example compiles, as C and as C++, and every complete one runs.
#
# README.md, that of src/cluster, and the headers are read for examples. In a README.md one is a fenced block that begins with ```c: a complete
# program if it has a main, else a unit that is compiled; ```c fragment is the inside of a function. In a header (and a
# man page's source) one is a comment's lines between "Example:" and a line that is empty or ends the comment; it is the
# inside of a function.
#
# Seen to fail: a misspelt function, a wrong argument, a program that returns 1 or hangs; a string that C++ has const.
cd "$(dirname "$0")/.."
. tests/lib/prelude.sh

# Each block of a README.md to a file of its own: N.c, or N.fragment.
for readme in README.md src/cluster/README.md; do
	awk -v out_of="$tmp/$(echo "$readme" | tr / -)-" '
		/^```c( |$)/ {
			n++
			out = out_of n ($0 ~ /fragment/ ? ".fragment" : ".c")
			printf "" > out
			next
		}
		/^```/ { if (out) close(out); out = ""; next }
		out { print > out }' "$readme"
done
for header in include/vez.h include/vez/*.h; do
	awk -v dir="$tmp" -v name="$(basename "$header" .h)" '
		/^ \* *Example:/ { n++; out = dir "/" name "-" n ".fragment"; printf "" > out; next }
		out && (/^ \* *$/ || /\*\//) { close(out); out = ""; next }
		out { sub(/^ \*/, ""); print > out }' "$header"
done

wrap_fragment() {
	printf '#include <%s.h>\n' vez stdio stdlib string
	printf 'void example(void);\nvoid example(void)\n{\n'
	cat "$1"
	printf '}\n'
}

flags="-D_GNU_SOURCE -Wall -Wextra -Werror -Iinclude -Isrc/cluster/include -pthread"
count=0
for example in "$tmp"/*.fragment "$tmp"/*.c; do
	[ -f "$example" ] || continue
	count=$((count + 1))
	name=$(basename "$example")
	source=$example
	case $example in
	*.fragment)
		source=$tmp/wrapped.c
		wrap_fragment "$example" >"$source"
		quiet="-Wno-unused"
		;;
	*) quiet="" ;;
	esac
	# shellcheck disable=SC2086 # flags
	if command -v g++ >/dev/null 2>&1; then
		g++ -x c++ -std=c++17 $flags $quiet -c -o "$tmp/o" "$source" 2>"$tmp/log" || fail "$name: is not C++" "$tmp/log"
	fi
	# shellcheck disable=SC2086 # flags
	if ! grep -q '\<main *(' "$source"; then
		$cc -std=c11 $flags $quiet -c -o "$tmp/o" "$source" 2>"$tmp/log" || fail "$name: does not compile" "$tmp/log"
	elif ! $cc -std=c11 $flags -o "$tmp/program" "$source" "$build/lib/libvez.a" 2>"$tmp/log"; then
		fail "$name: does not compile" "$tmp/log"
	elif echo "$name runs" && ! "$tmp/program" >"$tmp/log" 2>&1; then
		fail "$name: does not run" "$tmp/log"
	fi
done

echo "$count examples"
[ "$failures" = 0 ]
