#!/bin/sh
# SPDX-License-Identifier: MIT
# Every function that the public headers declare, those of libvez-cluster too, has a man page with its prototype; nothing
# that the headers say is missing there; pages refer to pages that exist; and mandoc finds no fault with them.
#
# Seen to fail: a page that is not made; a declaration or a paragraph that the script passes over; a section of
# README.md under another name; an initializer that vez.h does not list; a reference to a page that is not there; a
# macro that mdoc does not know.
cd "$(dirname "$0")/.."
. tests/lib/prelude.sh

cluster=src/cluster/include
scripts/man "$tmp/man"
scripts/man "$tmp/man" cluster
(cd "$tmp/man" && find . -type f | sed 's|.*/||' | LC_ALL=C sort) >"$tmp/there"
{ scripts/man --list; scripts/man --list cluster; } | LC_ALL=C sort >"$tmp/listed"
diff "$tmp/listed" "$tmp/there" || fail "< listed, > made"

# Declared: whatever a compiler takes for a function of vez after the headers have been read.
printf '#include <vez.h>\n#include <vez/cluster.h>\n' >"$tmp/all.c"
gcc -std=c11 -Iinclude -I$cluster -E -P "$tmp/all.c" | tr '\n' ' ' | sed 's/[;{}]/\n/g' | grep -v '\<typedef\>' |
	grep -oE '\<vez_[a-z0-9_]+ *\(' | tr -d ' (' | sort -u >"$tmp/declared"
[ "$(wc -l <"$tmp/declared")" -gt 100 ] || fail "few functions are declared: $(wc -l <"$tmp/declared")"
while read -r name; do
	page=$tmp/man/man3/$name.3
	if [ ! -f "$page" ]; then
		fail "$name has no page"
		continue
	fi
	if read -r so other <"$page" && [ "$so" = .so ]; then
		page=$tmp/man/$other
	fi
	grep -qxE "\.Nm $name( ,)?" "$page" || fail "$name is not in the names of $page"
	grep -qx "\.Fo $name" "$page" || fail "$name has no prototype in $page"
	grep -qE "^\.(It )?Fn $name( |$)" "$page" || fail "$name is not described in $page"
done <"$tmp/declared"

# words FILE: those of a text, each as often as it comes
words() {
	tr -cs 'A-Za-z_' '\n' <"$1" | awk 'length > 2 { n[$0]++ } END { for (w in n) print w, n[w] }'
}

# What a header says: its comments, but for private ones, rules, and what the pages say in other words.
for header in include/vez.h include/vez/*.h "$cluster"/vez/*.h; do
	name=$(basename "$header" .h)
	[ "$name" != base ] || continue
	page=man3/vez_$name.3
	[ "$name" != vez ] || page=man7/vez.7
	awk '/^\/\*/ && !/SPDX|Private|----/ { on = 1 }
		on { print }
		/\*\// { on = 0 }' "$header" |
		sed -e "s|vez/$name\.h - ||; s|vez\.h - all of vez: ||" -e 's|vez/\([a-z]*\)\.h|vez_\1|g' \
			-e 's/^ \* Errors on entry, in this/ * On entry, in this/' -e 's/^ \* Sources*: //' >"$tmp/said"
	sed -e 's/\\fB//g; s/\\fP//g; s/\\&//g; s/\\e/\\/g' "$tmp/man/$page" |
		tr '[:upper:]' '[:lower:]' >"$tmp/page"
	tr '[:upper:]' '[:lower:]' <"$tmp/said" >"$tmp/lower"
	words "$tmp/lower" >"$tmp/a"
	words "$tmp/page" >"$tmp/b"
	awk 'NR == FNR { there[$1] = $2; next }
		$2 > there[$1] + 0 { print $1, $2, there[$1] + 0 }' "$tmp/b" "$tmp/a" >"$tmp/lost"
	[ ! -s "$tmp/lost" ] || fail "$page lacks words of $header: $(tr '\n' ';' <"$tmp/lost")"
done

grep -oh '^#define VEZ_[A-Z]*_INITIALIZER\>' include/vez/*.h >"$tmp/initializers"
while read -r _ initializer; do
	grep -q "$initializer" include/vez.h || fail "include/vez.h does not list $initializer"
done <"$tmp/initializers"

for heading in '.Ss Words' '.Ss Static initializers' '.Ss What the results mean' '.Ss Which one for which problem' '.Ss Guarantees' '.Ss \&In C++' '.Sh EXAMPLES' '.Sh CAVEATS'; do
	lines=$(heading=$heading awk '$0 == ENVIRON["heading"] { on = 1; next } /^\.S[hs]/ { on = 0 } on' \
		"$tmp/man/man7/vez.7" | wc -l)
	[ "$lines" -gt 5 ] || fail "vez.7 has $lines lines under $heading: is the section of README.md there?"
done

grep -h '^\.Xr ' "$tmp"/man/*/* | while read -r _ name section _; do
	[ -f "$tmp/man/man$section/$name.$section" ] || echo "$name($section)"
done | sort -u >"$tmp/unknown"
[ ! -s "$tmp/unknown" ] || fail "pages refer to: $(tr '\n' ' ' <"$tmp/unknown")"

if ! command -v mandoc >/dev/null 2>&1; then
	echo "skip: mandoc is not here"
	[ "$failures" = 0 ]
	exit
fi
# It looks for the pages that are referred to among those of the system, where these are not.
grep -L '^\.so ' "$tmp"/man/*/* | xargs mandoc -Tlint 2>&1 |
	grep -v 'STYLE: referenced manual not found: Xr vez' >"$tmp/lint" || true
[ ! -s "$tmp/lint" ] || fail "$(cat "$tmp/lint")"

[ "$failures" = 0 ]
