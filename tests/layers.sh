#!/bin/sh
# SPDX-License-Identifier: MIT
# Two floors, one direction: who makes system calls, who touches shared words, who includes whom. And src/cluster, a
# library of its own on the public interface.
#
# Seen to fail: an __atomic_ builtin in sem.c; <linux/futex.h> in word.c; #include "../sync/engine.h" in futex.c; errno
# read in src/sync; vez_monitor_exit in cond.c; a pthread call; malloc; volatile; a source without a header; a
# header without a source; #include "../sync/engine.h" in src/cluster.
set -eu
cd "$(dirname "$0")/.."
failures=0

# none WHAT PATTERN FILE...: no line of these files, comments aside, matches
none() {
	what=$1 pattern=$2
	shift 2
	for file; do
		if gcc -fpreprocessed -dD -E -P "$file" 2>/dev/null | grep -nE "$pattern"; then
			echo "$file: $what"
			failures=$((failures + 1))
		fi
	done
}

cluster=$(find src/cluster -name '*.[ch]')
not_cluster_sys=$(echo "$cluster" | grep -v '/sys\.[ch]$')
all=$(find src/futex src/sync include -name '*.[ch]')
not_sys=$(echo "$all" | grep -v '^src/futex/sys\.c$')
not_atomic=$(echo "$all" | grep -v '^src/futex/atomic\.h$')
futex=$(find src/futex -name '*.[ch]')
sync=$(find src/sync -name '*.[ch]')
not_monitor=$(echo "$sync" | grep -v '/monitor\.c$')
not_inspect=$(echo "$all" | grep -vE '^src/sync/(inspect|report)\.c$')

# shellcheck disable=SC2086 # lists of files
{
	none "only src/futex/sys.c makes system calls" \
		'\<syscall *\(|\<(SYS|__NR|FUTEX)_|<linux/|<sys/syscall|clock_gettime|nanosleep|sched_yield' $not_sys
	none "shared words are touched through src/futex/atomic.h" '__atomic_|__sync_|_Atomic|stdatomic' $not_atomic
	none "shared words are touched through src/futex/atomic.h" '\<volatile\>' $not_atomic
	none "a fence is not modelled by the race detector" 'thread_fence' $all
	none "only src/futex/atomic.h orders for signal handlers" 'signal_fence' $not_atomic
	none "no synchronizer of another library" 'pthread_(mutex|cond|rwlock|spin|barrier)|\<sem_(wait|post)\>' $all
	none "only src/futex/sys.c makes threads and changes signal masks" 'pthread_(create|join|sigmask)' $not_sys
	none "src/futex knows nothing of synchronizers" 'include.*(sync/|vez\.h|vez/[ace-z])' $futex
	none "only src/futex reads errno" '\<errno\>[^.]' $sync
	none "vez's own monitors are entered and left by the engine" '\<vez_monitor_(enter|exit|wait|wait_async) *\(' \
		$not_monitor
	none "no wait allocates, but to be inspected" '\<(malloc|calloc|realloc|free|alloca) *\(' $not_inspect
	none "nobody waits for readers" 'urcu_|rcu_' $all
	none "src/cluster uses what every program can use" 'include.*"(\.\./|sync/|futex/)' $cluster
	none "no lock but vez's, no shared word" 'pthread_(mutex|cond)|__atomic_|__sync_|_Atomic|\<volatile\>' $cluster
	none "only src/cluster/sys.c calls the system" \
		'\<syscall *\(|clock_gettime|nanosleep|pthread_(create|join|sigmask)|\<(poll|read|write) *\(' $not_cluster_sys
}

# One basename everywhere: what is implemented in src/sync is declared in a header of its name, public or there; and
# what has a public header, but for base.h and deadline.h, is implemented there.
for source in src/sync/*.c; do
	name=$(basename "$source" .c)
	[ -f "include/vez/$name.h" ] || [ -f "src/sync/$name.h" ] ||
		{ echo "$source has no header"; failures=$((failures + 1)); }
done
for header in include/vez/*.h; do
	name=$(basename "$header" .h)
	case $name in base | deadline | cluster) continue ;; esac
	[ -f "src/sync/$name.c" ] || { echo "$header is not implemented"; failures=$((failures + 1)); }
done

[ "$failures" = 0 ]
