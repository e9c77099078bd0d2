#!/bin/sh
# SPDX-License-Identifier: MIT
# Floors: src/futex <- src/engine <- src/sync <- src/inspect. A file includes and calls only what is on its own floor or
# below it, and no two files call each other in a circle, but where a comment explains that. Then: who makes system calls,
# who touches shared words, who allocates. A tool, src/wakes, and a library on the
# public interface, src/cluster, stand beside them. What is in src itself, fault.h, is of no floor.
#
# Calls are those that the linker sees: names that one object defines and another one needs, hidden ones too.
#
# Seen to fail: vez_inspect called in record.c; vez__await called in settle.c (a circle); a function of sem.c called in
# filing.c; #include "../sync/call.h" in filing.c; an __atomic_ builtin in sem.c; <linux/futex.h> in word.c; errno read in
# src/sync; vez_monitor_exit in cond.c; a pthread call; malloc; volatile; a source without a header; a header without
# a source; src/futex/sys.h included in src/wakes, and in src/cluster.
cd "$(dirname "$0")/.."
. tests/lib/prelude.sh
floors="futex engine sync inspect"

# ---- who calls whom ----

# "FILE OTHER NAME": FILE needs NAME, which OTHER defines. A file is FLOOR/NAME.
for floor in $floors; do
	for source in src/"$floor"/*.c; do
		file=$floor/$(basename "$source" .c)
		nm -g "$build/obj/src/$file.o" | awk -v file="$file" '
			NF == 3 && $2 ~ /[A-Z]/ { print "defines", $3, file }
			$1 == "U" { print "needs", $2, file }'
	done
done >"$tmp/names"
awk '$1 == "defines" { by[$2] = $3 } { line[NR] = $0 }
	END { for (i = 1; i <= NR; i++) {
		split(line[i], w)
		if (w[1] == "needs" && w[2] in by && by[w[2]] != w[3])
			print w[3], by[w[2]], w[2]
	} }' "$tmp/names" | sort -u >"$tmp/calls"
[ "$(wc -l <"$tmp/calls")" -gt 100 ] || fail "the objects of the library tell of no calls: are they built?"

awk -v floors="$floors" 'BEGIN { n = split(floors, f); for (i = 1; i <= n; i++) height[f[i]] = i }
	{ split($1, a, "/"); split($2, b, "/"); if (height[b[1]] > height[a[1]]) print $1 " calls up: " $3 " of " $2 }' \
	"$tmp/calls" >"$tmp/up"
[ ! -s "$tmp/up" ] || fail "$(cat "$tmp/up")"

# Explained where they are declared: whoever leaves something to the library's thread makes sure that there is one, and a
# token that goes gives its signals back.
explained='vez__clock_(start|start_wanted|exists|stops|want|wanted)|vez__signals_unbind'
grep -vE " ($explained)\$" "$tmp/calls" | cut -d' ' -f1,2 | sort -u | tsort >/dev/null 2>"$tmp/circles" ||
	fail "files that call each other in a circle: $(tr '\n' ' ' <"$tmp/circles")"

# ---- who includes whom ----

# The code of every source, comments aside, once.
find src include -name '*.[ch]' | while read -r source; do
	mkdir -p "$tmp/code/$(dirname "$source")"
	gcc -fpreprocessed -dD -E -P "$source" >"$tmp/code/$source" 2>/dev/null
done
cd "$tmp/code"

# none WHAT PATTERN FILE...: no line of these files matches
none() {
	what=$1 pattern=$2
	shift 2
	! grep -nE "$pattern" "$@" /dev/null || fail "$what"
}

all=$(find src include -name '*.[ch]' | grep -vE '^src/(wakes|cluster)/')
cluster=$(find src/cluster -name '*.[ch]')
not_cluster_sys=$(echo "$cluster" | grep -vE '/(sys\.[ch]|tool\.c)$')
wakes=$(find src/wakes -name '*.[ch]')
not_sys=$(echo "$all" | grep -v '^src/futex/sys\.c$')
not_atomic=$(echo "$all" | grep -v '^src/futex/atomic\.h$')
futex=$(find src/futex -name '*.[ch]')
engine=$(find src/engine -name '*.[ch]')
sync=$(find src/sync -name '*.[ch]')
above_futex=$(echo "$all" | grep -v '^src/futex/')
not_monitor=$(echo "$all" | grep -vE '^(src/sync/monitor\.c|include/vez/monitor\.h)$')
not_inspect=$(echo "$all" | grep -vE '^src/(engine/record|inspect/[a-z]*)\.c$')

# shellcheck disable=SC2086 # lists of files
{
	none "src/futex includes nothing of the floors above, and of what users see only deadlines" \
		'include.*(engine/|sync/|inspect/|vez\.h|vez/[ace-z])' $futex
	none "src/engine includes nothing of the floors above" 'include.*"\.\./(sync|inspect)/' $engine
	none "src/sync includes nothing of the floor above" 'include.*"\.\./inspect/' $sync
	none "only src/futex/sys.c makes system calls" \
		'\<syscall *\(|\<(SYS|__NR|FUTEX)_|<linux/|<sys/syscall|clock_gettime|nanosleep|sched_yield' $not_sys
	none "shared words are touched through src/futex/atomic.h" '__atomic_|__sync_|_Atomic|stdatomic' $not_atomic
	none "shared words are touched through src/futex/atomic.h" '\<volatile\>' $not_atomic
	none "a fence is not modelled by the race detector" 'thread_fence' $all
	none "only src/futex/atomic.h orders for signal handlers" 'signal_fence' $not_atomic
	none "no synchronizer of another library" 'pthread_(mutex|cond|rwlock|spin|barrier)|\<sem_(wait|post)\>' $all
	none "only src/futex/sys.c makes threads and changes signal masks" 'pthread_(create|join|sigmask)' $not_sys
	none "only src/futex reads errno" '\<errno\>[^.]' $above_futex
	none "vez's own objects do not use the monitors of users" '\<vez_monitor_(enter|exit|wait|wait_async) *\(' $not_monitor
	none "no wait allocates, but to be inspected" '\<(malloc|calloc|realloc|free|alloca) *\(' $not_inspect
	none "nobody waits for readers" 'urcu_|rcu_' $all
	none "src/wakes has nothing of the library, nor the library of it" 'include.*(\.\./|vez)' $wakes
	none "src/wakes has nothing of the library, nor the library of it" 'include.*wakes' $all
	none "src/cluster uses what every program can use" 'include.*"(\.\./.*/|sync/|engine/|futex/)' $cluster
	none "no lock but vez's, no shared word" 'pthread_(mutex|cond)|__atomic_|__sync_|_Atomic|\<volatile\>' $cluster
	none "only src/cluster/sys.c calls the system" \
		'\<syscall *\(|clock_gettime|nanosleep|pthread_(create|join|sigmask)|\<(poll|read|write) *\(' $not_cluster_sys
}

# One basename everywhere: what a floor implements is declared in a header of its name, public or there; and what has a
# public header, but for base.h, is implemented on one of the floors.
for source in src/futex/*.c src/engine/*.c src/sync/*.c src/inspect/*.c; do
	name=$(basename "$source" .c)
	[ -f "include/vez/$name.h" ] || [ -f "${source%.c}.h" ] || [ "$name" = select ] || fail "$source has no header"
done
for header in include/vez/*.h; do
	name=$(basename "$header" .h)
	[ "$name" = base ] || ls src/*/"$name.c" >/dev/null 2>&1 || fail "$header is not implemented"
done

[ "$failures" = 0 ]
