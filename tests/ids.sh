#!/bin/sh
# SPDX-License-Identifier: MIT
# The list of behaviours in tests/README.md and the ids in the tests agree: every id that a test or its comment names
# has one row, every row is named, and its last column lists the files that name it.
#
#   tests/ids.sh --write     corrects the last column
#
# Seen to fail: an id in a test's name that has no row; a row without a test; a row twice; a file too few in a row.
cd "$(dirname "$0")/.."
. tests/lib/prelude.sh
list=tests/README.md

# "id files" for each id, the files in their order.
used() {
	# shellcheck disable=SC2016 # marks of Markdown
	find tests -name '*.[ch]' -o -path 'tests/*.sh' ! -name ids.sh | sort | xargs awk '
		# These are standards of the language.
		BEGIN { no["C11"] = no["C17"] = 1 }
		{
			file = FILENAME
			sub(/^tests\//, "", file)
			sub(/[.][ch]$/, "", file)
			before = " "
			for (rest = $0; match(rest, /[A-Z]+[-_]?[0-9][0-9]/); rest = substr(rest, RSTART + RLENGTH)) {
				id = substr(rest, RSTART, RLENGTH)
				if (RSTART > 1)
					before = substr(rest, RSTART - 1, 1)
				after = substr(rest, RSTART + RLENGTH, 1)
				word = before ~ /[A-Za-z0-9]/ || after ~ /[A-Za-z0-9]/
				before = substr(id, length(id), 1)
				if (word || id in no || id !~ /^([A-K]|(ALL|ASY|BAR|CON|HND|LAT|LCK|QUE|RW|SEM|TOK)[-_])[0-9][0-9]$/)
					continue
				sub(/-/, "_", id)
				if (!seen[id, file]++)
					files[id] = files[id] (files[id] == "" ? "" : ", ") "`" file "`"
			}
		}
		END { for (id in files) print id "\t" files[id] }' | sort
}

# "id files" for each row.
listed() {
	awk -F ' *[|] *' '$2 ~ /^[A-Z]+_?[0-9][0-9]$/ { print $2 "\t" $4 }' "$list" | sort
}

used >"$tmp/used"
if [ "${1:-}" = --write ]; then
	awk -F ' *[|] *' 'NR == FNR { split($0, part, "\t"); files[part[1]] = part[2]; next }
		$2 in files { print "| " $2 " | " $3 " | " files[$2] " |"; next }
		{ print }' "$tmp/used" "$list" >"$tmp/list"
	cat "$tmp/list" >"$list"
fi
listed >"$tmp/listed"
if ! diff "$tmp/listed" "$tmp/used" >"$tmp/diff"; then
	echo "$list (<) and the tests (>) differ; tests/ids.sh --write corrects the last column:"
	cat "$tmp/diff"
	exit 1
fi
echo "$(wc -l <"$tmp/used") ids"
