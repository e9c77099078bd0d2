#!/bin/sh
# SPDX-License-Identifier: MIT
# The functions that the public headers declare, those that libvez.so exports, and those that the version script lets
# through, are the same; and every global name of libvez.a begins with vez_.
#
# Seen to fail: a function declared and not defined; one exported and not declared; a version script with one name less,
# or one more; a helper that is not static.
cd "$(dirname "$0")/.."
. tests/lib/prelude.sh

# same A B WHAT
same() {
	diff "$1" "$2" >"$tmp/diff" || { cat "$tmp/diff"; fail "$3"; }
}

# Declared: whatever a compiler takes for a function of vez after the headers have been read.
echo '#include <vez.h>' >"$tmp/all.c"
gcc -std=c11 -Iinclude -E -P "$tmp/all.c" | tr '\n' ' ' | sed 's/[;{}]/\n/g' | grep -v '\<typedef\>' |
	grep -oE '\<vez_[a-z0-9_]+ *\(' | tr -d ' (' | sort -u >"$tmp/declared"

nm -D --defined-only "$lib/libvez.so" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u >"$tmp/exported"
same "$tmp/declared" "$tmp/exported" "< declared by a header, > exported by libvez.so"

nm -D --defined-only "$lib/libvez.so" | awk '$2 != "A" && $3 !~ /@@?VEZ_[0-9]/' >"$tmp/unversioned"
[ ! -s "$tmp/unversioned" ] || fail "without a version: $(cat "$tmp/unversioned")"

# Let through: of all functions that the objects define, hidden or not, those that match the script's patterns.
nm --defined-only "$lib/libvez.a" | awk 'NF == 3 && $2 ~ /[A-Z]/ { print $3 }' | sort -u >"$tmp/global"
sed -n '/global:/,/local:/p' src/libvez.map | grep -oE 'vez_[^;[:space:]]*' | sort -u >"$tmp/patterns"
while read -r name; do
	while read -r pattern; do
		# shellcheck disable=SC2254 # a pattern
		case $name in $pattern) echo "$name" ;; esac
	done <"$tmp/patterns"
done <"$tmp/global" | sort -u >"$tmp/let_through"
same "$tmp/declared" "$tmp/let_through" \
	"< declared by a header, > let through by src/libvez.map, to whose newest node what is new is to be added"
same "$tmp/patterns" "$tmp/let_through" "< named by src/libvez.map, > there"

# The probes' notes share one symbol, weak and hidden.
if grep -v '^vez_' "$tmp/global" | grep -vx '_\.stapsdt\.base'; then
	fail "global names of libvez.a that are not vez's"
fi

[ "$failures" = 0 ]
