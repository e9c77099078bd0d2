#!/bin/sh
# SPDX-License-Identifier: MIT
# vez-wakes counts exactly, in programs whose counts are known: by site, whatever the process ends by, in children,
# libraries that are opened later, C11 and C++; and does not disturb the program.
#
# Seen to fail: an unlock, or a signal, that does not forget the last wake; no limit of time; a timeout that counts as
# a wake; a table that fork leaves to the child; a second image of one process that finds its file taken; cnd_wait, or
# clockwait, not counted; a call before the environment is there that settles that nothing is counted; conditions
# without a version; errno not kept; a file that is too long for the process; a waker that is never set anew; waiters
# that are not counted, or not after a timeout; an address beside the call; the innermost of inlined lines; no C++
# names; callers that are left out, or not told apart; another's function passed over; a folder left behind, also by a
# signal; a signal that is not ignored any more; quotes in JSON; an option that README or --help has alone; an example
# that waits on a condition; a static program without a word; a path that LD_PRELOAD takes for two.
cd "$(dirname "$0")/.."
. tests/lib/prelude.sh
wakes=$PWD/$build/bin/vez-wakes
case $build in /*) wakes=$build/bin/vez-wakes ;; esac
mkdir "$tmp/folder"
export TMPDIR="$tmp/folder"
flags="-std=c11 -D_GNU_SOURCE -g -O1 -Wall -Wextra -pthread"

# equal WHAT EXPECTED GOT
equal() {
	[ "$2" = "$3" ] || fail "$what: $1: expected $2, not $3"
}

# count ARGUMENT...: runs a program; the report in $tmp/json, its output in $tmp/out, its exit status in $status.
# At once is within ten seconds, so that a busy machine makes no difference, unless $within says else.
count() {
	what=$*
	status=0
	"$wakes" --json --within "${within-10000000}" --output "$tmp/json" "$@" >"$tmp/out" 2>&1 || status=$?
	[ -z "$(ls "$tmp/folder")" ] || fail "$what: $(ls "$tmp/folder") is left behind"
}

# value NAME: of the first such member in what is read
value() {
	sed -n "s/.*\"$1\": \"\{0,1\}\([^,\"}]*\).*/\1/p" | head -n 1
}

# sum NAME; process N NAME: of the N-th process that is listed
sum() {
	grep '^  "sum"' "$tmp/json" | value "$1"
}
process() {
	awk -v n="$1" '/^    \{"pid"/ { i++ } i == n' "$tmp/json" | value "$2"
}

# site KIND FUNCTION NAME: of the first such site
site() {
	awk -v kind="\"kind\": \"$1\"" -v name="\"function\": \"$2" \
		'index($0, kind) && index($0, name) { on = 1 } on; on && /"calls"/ { exit }' "$tmp/json" | value "$3"
}

# sums WAKES IN-VAIN
sums() {
	equal "exit status" "${3:-0}" "$status"
	equal wakes "$1" "$(sum wakes)"
	equal "in vain" "$2" "$(sum in_vain)"
}

# shellcheck disable=SC2086 # flags
compile() {
	out=$1
	shift
	$cc $flags -o "$tmp/$out" "$@" || { echo "$out does not compile"; exit 1; }
}

compile herd tests/wakes/herd.c
compile c11 tests/wakes/c11.c
compile quiet tests/wakes/quiet.c
compile early tests/wakes/early.c
compile plugin.so -shared -fPIC tests/wakes/plugin.c
g++ -std=c++17 -g -O0 -Wall -Wextra -pthread -o "$tmp/cxx" tests/wakes/cxx.cc
g++ -std=c++17 -g -O2 -Wall -Wextra -pthread -o "$tmp/cxx-fast" tests/wakes/cxx.cc

# ---- a herd of N: N - 1 are woken in vain each time, and N in the end for good ----

for size in 1 8; do
	count "$tmp/herd" $size 30
	sums $((size * 31)) $(((size - 1) * 30))
	equal waits $((size * 31)) "$(sum waits)"
	equal broadcasts 31 "$(sum broadcasts)"
	equal signals 0 "$(sum signals)"
done
equal "woken by the wake" 240 "$(site broadcast herd_wake_one woke)"
equal "in vain by the wake" 210 "$(site broadcast herd_wake_one in_vain)"
equal "woken by the end" 8 "$(site broadcast herd_end woke)"
equal "in vain by the end" 0 "$(site broadcast herd_end in_vain)"
equal "in vain in the wait" 210 "$(site wait herd_member in_vain)"
equal "processes" "" "$(process 2 pid)"

if command -v addr2line >/dev/null 2>&1; then
	line=$(grep -n 'the wait \*/' tests/wakes/herd.h | cut -d: -f1)
	case $(site wait herd_member source) in
	*herd.h:"$line") ;;
	*) fail "$what: the wait is in $(site wait herd_member source), not in herd.h:$line" ;;
	esac
fi

# Callers tell apart two herds that share their functions.
count "$tmp/herd" 4 10 closefrom
sums 107 70
equal "in vain by the wake" 70 "$(site broadcast herd_wake_one in_vain)"
count --callers 2 "$tmp/herd" 4 10 closefrom
sums 107 70
equal "in vain by the wake" 40 "$(site broadcast herd_wake_one in_vain)"
equal "from herd_run" 4 "$(grep -c '{"function": "herd_run"' "$tmp/json")"
equal "from main" 4 "$(grep -c '{"function": "main"' "$tmp/json")"

# Without what tells lines there are functions; without symbols there is the place in the file.
bare=$tmp/bare
mkdir "$bare"
what="without addr2line"
status=0
PATH=$bare "$wakes" --json --within 10000000 --output "$tmp/json" "$tmp/herd" 2 5 || status=$?
sums 12 5
equal source null "$(site wait herd_member source)"
PATH=$bare "$wakes" --json --within 10000000 --output "$tmp/json" "$tmp/cxx"
equal "in vain by wake" 75 "$(site broadcast 'farm::Herd::wake(int)' in_vain)"
strip -o "$tmp/stripped" "$tmp/herd"
count "$tmp/stripped" 2 5
sums 12 5
grep -q "\"function\": null.*\"file\": \"$tmp/stripped\", \"offset\": [1-9]" "$tmp/json" || fail "$what: no place"

# ---- never in vain, but for what is in between ----

for how in unlock signal; do
	count "$tmp/quiet" $how
	sums 50 0
done
count "$tmp/quiet" vain
sums 50 49
count "$tmp/quiet" other
sums 50 0
equal timeouts 50 "$(sum timeouts)"
within=100 count "$tmp/quiet" work
sums 50 0
count "$tmp/quiet" work
sums 50 49

# ---- whatever it ends by, and its children ----

count "$tmp/herd" 4 10 _exit
sums 44 30 3
count "$tmp/herd" 4 10 kill
sums 44 30 137
for how in fork clone; do
	count "$tmp/herd" 4 10 $how
	sums 107 70
	equal "child's" 40 "$(process 1 in_vain)"
	equal "own" 30 "$(process 2 in_vain)"
	equal "child's parent" "$(process 2 pid)" "$(process 1 parent)"
done
count "$tmp/herd" 4 10 exec
sums 107 70
equal "second image" 40 "$(process 1 in_vain)"
equal "first image" 30 "$(process 2 in_vain)"
equal "one process" "$(process 1 pid)" "$(process 2 pid)"
count sh -c "'$tmp/herd' 2 5 & '$tmp/herd' 2 5; wait"
sums 24 10

# ---- libraries, languages ----

count "$tmp/herd" 2 10 "$tmp/plugin.so"
sums 126 85
equal "in the library" 75 "$(grep -A1 "\"wait\".*\"file\": \"$tmp/plugin.so\"" "$tmp/json" | value in_vain)"
count "$tmp/c11"
sums 104 75
equal timeouts 10 "$(sum timeouts)"
equal "to nobody" 7 "$(sum to_nobody)"
equal "woken in member" 104 "$(site wait member wakes)"
for program in cxx cxx-fast; do
	count "$tmp/$program"
	sums 104 75
	equal timeouts 10 "$(sum timeouts)"
	equal "to nobody" 7 "$(sum to_nobody)"
	equal "in vain by wake" 75 "$(site broadcast 'farm::Herd::wake(int)' in_vain)"
done
if command -v addr2line >/dev/null 2>&1; then
	case $(site wait 'farm::Herd::member()' source) in
	*cxx.cc:*) ;;
	*) fail "$what: the wait is in $(site wait 'farm::Herd::member()' source)" ;;
	esac
fi

# ---- what could hurt who counts ----

for callers in 0 4; do
	count --callers $callers "$tmp/early"
	equal "exit status" 0 "$status"
	equal wakes 804 "$(sum wakes)"
	[ "$(sum in_vain)" -le 600 ] || fail "$what: $(sum in_vain) in vain"
done
if [ "$(uname -m)" = x86_64 ]; then
	compile old tests/wakes/old.c
	count "$tmp/old"
	sums 0 0
	equal signals 0 "$(sum signals)"
fi
compile libother.so -shared -fPIC tests/wakes/other.c
compile beside tests/wakes/herd.c -L"$tmp" -lother -Wl,-rpath,"$tmp"
count "$tmp/beside" 2 5
sums 12 5
equal "called beside" "6 broadcasts" "$(cat "$tmp/out")"
what="errno, where there is no folder"
object=${wakes%/bin/*}/lib/vez/libvez-wakes.so
ln -s "$(realpath "$object")" "$tmp/object.so" # the checkout's name may have a space
LD_PRELOAD=$tmp/object.so VEZ_WAKES_FOLDER=$tmp/none "$tmp/herd" 2 5 errno || fail "$what: exit status $?"
count sh -c "ulimit -f 1; exec '$tmp/herd' 2 5"
equal "exit status" 0 "$status"

# ---- programs of others: they have nothing to gain, and those of vez wait without conditions ----

head -c 20000000 /dev/zero | tr '\0' 'x' >"$tmp/big"
for program in "zstd -T2 -c" "xz -T2 -0 -c"; do
	command -v "${program%% *}" >/dev/null 2>&1 || continue
	# shellcheck disable=SC2086 # a program and its options
	within=20 count $program "$tmp/big"
	grep -q '"nothing_to_gain": true' "$tmp/json" || fail "$what: has something to gain"
done
for program in bounded_buffer single_resource security_journal; do
	[ -x "$build/tests/classics/$program" ] || continue
	count "$build/tests/classics/$program"
	equal "in vain" 0 "$(sum in_vain)"
done

# ---- what it cannot see, and what it says ----

if $cc -static -O1 -D_GNU_SOURCE -pthread -o "$tmp/static" tests/wakes/herd.c 2>/dev/null; then
	what="a static program"
	"$wakes" "$tmp/static" 2 5 >"$tmp/out" 2>&1 || fail "$what: its exit status"
	[ "$(cat "$tmp/out")" = "vez-wakes: cannot see into $tmp/static: it is statically linked" ] ||
		fail "$what: $(cat "$tmp/out")"
fi

# says STATUS WORDS COMMAND...
says() {
	expected=$1 words=$2
	shift 2
	what=$*
	status=0
	"$@" >"$tmp/out" 2>&1 || status=$?
	equal "exit status" "$expected" "$status"
	grep -q -e "$words" "$tmp/out" || fail "$what: does not say '$words': $(cat "$tmp/out")"
}
says 0 "^vez-wakes: nothing to gain: nobody was woken at a condition$" "$wakes" true
says 0 "^vez-wakes: nothing to gain: no wake was in vain$" "$wakes" "$tmp/quiet" unlock
says 0 "^vez-wakes: 6000 wakes, 3998 of them in vain (67 %), " "$wakes" --within 1e7 "$tmp/herd" 3 1999
says 0 "^ *1001 .* broadcast herd_wake_one" "$wakes" "$tmp/herd" 2 1001
for place in "$tmp/a b" "$tmp/c:d"; do
	mkdir -p "$place/bin" "$place/lib/vez"
	cp "$wakes" "$place/bin"
	cp "$object" "$place/lib/vez"
	says 0 "^ *1001 .* broadcast herd_wake_one" "$place/bin/vez-wakes" "$tmp/herd" 2 1001
	says 0 "^ *1001 .* broadcast herd_wake_one" env TMPDIR="$place" "$place/bin/vez-wakes" "$tmp/herd" 2 1001
	says 0 "^ *1001 .* broadcast herd_wake_one" env TMPDIR="$place" "$wakes" "$tmp/herd" 2 1001
	[ -z "$(ls "$tmp/folder")" ] || fail "$what: $(ls "$tmp/folder") is left behind"
done
says 5 "" "$wakes" sh -c 'exit 5'
says 143 "" "$wakes" sh -c 'kill $$'
says 0 "stays" sh -c 'trap "" HUP; exec "$@"' sh "$wakes" sh -c 'kill -HUP $$; echo stays'
says 127 "no-such-program: No such file" "$wakes" no-such-program
says 126 "Permission denied" "$wakes" "$PWD/README.md"
says 125 "usage" "$wakes"
says 125 "usage" "$wakes" --no-such-option true
says 125 "not such a number" "$wakes" --top 0 true
says 0 "^vez-wakes $(sed -n 's/^VERSION := //p' Makefile)$" "$wakes" --version

what="a report that nobody reads"
"$wakes" "$tmp/herd" 2 5 2>&1 | :
[ -z "$(ls "$tmp/folder")" ] || fail "$what: $(ls "$tmp/folder") is left behind"
what="a report of one site"
"$wakes" --top 1 "$tmp/cxx" 2>"$tmp/out"
equal "sites that wake" 1 "$(grep -cE ' (broadcast|signal) ' "$tmp/out")"
what="an output that is the program's alone"
equal "on standard output" "hello" "$("$wakes" echo hello 2>/dev/null)"
if command -v python3 >/dev/null 2>&1; then
	count "$tmp/cxx" 'a "quoted" \ word'
	python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$tmp/json" || fail "the JSON cannot be read"
fi

# ---- the examples of vez: nobody waits on a condition, and so nobody wakes in vain ----

# In libuv's pool, which is not vez's, threads do.
examples=0
for example in "$build"/examples/*; do
	if [ ! -x "$example" ] || [ ! -f "$example" ] || [ "$(basename "$example")" = uv ]; then
		continue
	fi
	count "$example"
	equal "exit status" 0 "$status"
	equal "in vain" 0 "$(sum in_vain)"
	equal waits 0 "$(sum waits)"
	examples=$((examples + 1))
done
what=examples
[ "$examples" = "$(find examples -maxdepth 1 -name '*.c' ! -name uv.c | wc -l)" ] || fail "$examples examples are built"

# ---- the options of README, of --help, and those that there are, are the same ----

"$wakes" --help >"$tmp/help"
sed -n 's/^  --/--/p' "$tmp/help" | sed 's/  .*//' | grep -o -e '--[a-z]*' | sort -u >"$tmp/said"
sed -n 's/.*{ "\([a-z]*\)", [a-z]*_argument.*/--\1/p' src/wakes/launch.c | sort -u >"$tmp/there"
what="options"
equal "in --help" "$(tr '\n' ' ' <"$tmp/there")" "$(tr '\n' ' ' <"$tmp/said")"
sed -n '/^## Tools/,/^## [^T]/p' README.md | sed '/valgrind/d' | grep -o -e '--[a-z][a-z]*' | sort -u >"$tmp/readme"
equal "of README that are none" "" "$(comm -13 "$tmp/said" "$tmp/readme")"
[ -s "$tmp/readme" ] || fail "README names no option"

[ "$failures" = 0 ]
