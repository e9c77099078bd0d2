#!/bin/sh
# SPDX-License-Identifier: MIT
# libvez.so has the probes of src/futex/probe.h, with so many arguments, where the header that makes them is; and each
# script for bpftrace asks for probes that exist.
#
# Seen to fail: a probe that is left out, one with an argument less, one of another name; a script that asks for
# another.
cd "$(dirname "$0")/.."
. tests/lib/prelude.sh

# The names in the comment's table.
sed -n 's/^ \*	vez:\([a-z]*\) .*/\1/p' src/futex/probe.h | sort >"$tmp/documented"
[ "$(wc -l <"$tmp/documented")" = 4 ] || fail "src/futex/probe.h documents: $(tr '\n' ' ' <"$tmp/documented")"

for script in scripts/*.bt; do
	grep -o 'usdt:[^ ]*:vez:[a-z]*' "$script" | sed 's/.*://' | sort -u >"$tmp/asked"
	[ -s "$tmp/asked" ] || fail "$script asks for no probe"
	comm -13 "$tmp/documented" "$tmp/asked" | grep . && fail "$script asks for these, which are not there"
done

if ! echo '#include <sys/sdt.h>' | $cc -E -x c - >/dev/null 2>&1; then
	echo "skip: <sys/sdt.h> is not here"
	[ "$failures" = 0 ]
	exit
fi

# NAME ARGUMENTS of each place, each once.
readelf -n "$lib/libvez.so" | awk '
	/Provider:/ { vez = $2 == "vez" }
	/Name:/ { name = $2 }
	vez && /Arguments:/ { print name, NF - 1 }' | sort -u >"$tmp/there"
printf '%s\n' 'giveup 4' 'grant 4' 'queue 4' 'wake 2' >"$tmp/wanted"
diff "$tmp/wanted" "$tmp/there" || fail "< wanted, > in libvez.so: probes and how many arguments they have"

[ "$failures" = 0 ]
