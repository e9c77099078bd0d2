#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/explore/mutants/run tells faults that are found from those that survive and those that cannot be tried. It runs
# in a copy of the project that has a toy: one function in src/futex, two scenarios and two tests of it, and patches
# that change it.
#
# Seen to fail: a runner without -F0; one that tries every scenario in the end; one that takes a name that is not there
# for a survivor; one that tries one fault at a time; one that tries all at once.
cd "$(dirname "$0")/.."
. tests/lib/prelude.sh
command -v patch >/dev/null || { echo "skip: patch is not here"; exit 0; }

mkdir -p "$tmp/tests/explore/mutants" "$tmp/build/obj"
cp -a Makefile include src "$tmp"
cp -a tests/lib "$tmp/tests"
cp -a tests/explore/explore.mk tests/explore/*.h tests/explore/engine "$tmp/tests/explore"
cp -a tests/explore/mutants/run "$tmp/tests/explore/mutants"
mkdir -p "$tmp/build/obj/explore/tests/explore" "$tmp/build/obj/tests"
for part in explore/src explore/tests/explore/engine src tests/lib; do
	[ ! -d "$build/obj/$part" ] || cp -a "$build/obj/$part" "$tmp/build/obj/${part%/*}"
done
[ "$build" = build ] || find "$tmp/build/obj" -name '*.d' -exec sed -i "s|^$build/obj/|build/obj/|" {} +
run=$tmp/tests/explore/mutants/run

cat >"$tmp/src/futex/toy.c" <<'END'
#include "toy.h"

#include "atomic.h"

int vez__toy(int x)
{
	int twice = 2 * x;
	int sum = twice + 1;
	return sum;
}
END
cat >"$tmp/src/futex/toy.h" <<'END'
int vez__toy(int x);
END
cat >"$tmp/tests/explore/toy.c" <<'END'
#include "scenario.h"
#include "src/futex/toy.h"

static void nothing(void)
{
}

static void odd(void)
{
	x_assert(vez__toy(3) % 2 == 1);
}

static void seven(void)
{
	x_assert(vez__toy(3) == 7);
}

X_SCENARIO(toy_odd, .setup = nothing, .thread = { odd }, .check = nothing);
X_SCENARIO(toy_seven, .setup = nothing, .thread = { seven }, .check = nothing);
END
cat >"$tmp/tests/toy.c" <<'END'
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "futex/toy.h"

TestSuite(toy, .timeout = 100);

Test(toy, ODD_odd)
{
	cr_assert(vez__toy(3) % 2 == 1);
}

Test(toy, ODD_seven)
{
	while (vez__toy(3) == 9)
		pause();
	cr_assert(vez__toy(3) == 7);
}

/* Fails when the same test has begun in the other program: x is 17 in one, 27 in the other. */
Test(toy, MEETS)
{
	char mine[200], others[200];
	int x = vez__toy(3);
	snprintf(mine, sizeof mine, "%s/met-%d", getenv("VEZ_TOYS"), x);
	snprintf(others, sizeof others, "%s/met-%d", getenv("VEZ_TOYS"), 44 - x);
	fclose(fopen(mine, "w"));
	while (access(others, F_OK) != 0)
		usleep(10000);
	cr_assert(0, "both have begun");
}
END

# fault NAME LINE REPLACEMENT: a patch that changes this line of the toy; its head is standard input
fault() {
	cat >"$tmp/tests/explore/mutants/$1.patch"
	sed "s|$2|$3|" "$tmp/src/futex/toy.c" >"$tmp/changed.c"
	(cd "$tmp" && diff -u --label a/src/futex/toy.c --label b/src/futex/toy.c src/futex/toy.c changed.c) \
		>>"$tmp/tests/explore/mutants/$1.patch" || true
}

# expect NAMES STATUS LAST-LINE WORDS...: exit status and last line of the run of these, and what else its output has
expect() {
	names=$1 status=$2 last=$3
	shift 3
	got=0
	# shellcheck disable=SC2086 # a list of names
	"$run" "$tmp/build" $names >"$tmp/out" 2>&1 </dev/null || got=$?
	missing=
	for words; do
		grep -q -e "$words" "$tmp/out" || missing="$missing '$words'"
	done
	if [ "$got" != "$status" ] || [ "$(tail -n 1 "$tmp/out")" != "$last" ] || [ -n "$missing" ]; then
		fail "mutants/run $names: expected exit status $status and '$last'${missing:+, and$missing}; $got and:" "$tmp/out"
	fi
}

head='nothing\nScenarios: '
# shellcheck disable=SC2059 # a head and what follows it
{
	printf "${head}toy_seven\n\n" | fault good '+ 1' '+ 3'
	printf "Scenarios: toy_o*\nScenarios: toy_s*\n\n" | fault lines '+ 1' '+ 3'
	printf "${head}toy_*\n\n" | fault survives 'int sum = twice + 1' 'int sum = 1 + twice'
	printf "${head}toy_odd\n\n" | fault elsewhere '+ 1' '+ 3'
	printf "${head}toy_seven\n\n" | fault fuzzy '+ 1' '+ 3'
	printf "${head}toy_seven\n\n" | fault compiles-not '+ 1' '+ nothing'
	printf "${head}toy_seven toy_nine\n\n" | fault nameless '+ 1' '+ 3'
	printf "nothing\n\n" | fault unnamed '+ 1' '+ 3'
	printf "nothing\nTests: toy ODD_s*\n\n" | fault tested '+ 1' '+ 5'
	printf "nothing\nTests: toy ODD_*\n\n" | fault hangs '+ 1' '+ 3'
	printf "nothing\nTests: toy ODD_odd\n\n" | fault other-test '+ 1' '+ 5'
	printf "nothing\nTests: toy EVEN_*\n\n" | fault no-test '+ 1' '+ 5'
	printf "nothing\nTests: joy ODD_*\n\n" | fault no-program '+ 1' '+ 5'
	printf "${head}toy_odd\nTests: toy ODD_seven\n\n" | fault either '+ 1' '+ 5'
}
# The first line of its context differs: that is fuzz.
sed -i 's/^ int vez__toy(int x)$/ int vez__toy(long x)/' "$tmp/tests/explore/mutants/fuzzy.patch"
(cd "$tmp" && patch -p1 --dry-run -s <tests/explore/mutants/fuzzy.patch >/dev/null) || { echo "not fuzzy"; exit 1; }

make -s -C "$tmp" BUILD=build build/tests/explore build/tests/toy
export VEZ_MUTANT_LIMIT=5
expect "" 1 "5 passed, 9 failed" \
	"^found *good .*toy_seven *assertion" "^found *lines .*toy_seven" \
	"^found *either .*toy ODD_seven" "^found *tested .*toy ODD_seven *test" "^found *hangs .*toy ODD_seven *hang" \
	"^SURVIVES survives$" "^SURVIVES elsewhere$" "^SURVIVES other-test$" \
	"^STALE *fuzzy: it does not apply" "^ .*Hunk #1 FAILED" "^STALE *compiles-not: it does not compile" "^ .*nothing" \
	"^STALE *nameless: no scenario is toy_nine" "^STALE *unnamed: it names neither" \
	"^STALE *no-test: no test of toy is EVEN_" "^STALE *no-program: there is no tests/joy.c"
expect "good" 0 "1 passed, 0 failed"
expect "no-such" 2 "mutants/run: there is no no-such.patch"

# So many are tried at a time as JOBS says: two that wait for each other need two.
printf "Tests: toy MEETS\n\n" | fault one '+ 1' '+ 11'
printf "Tests: toy MEETS\n\n" | fault other '+ 1' '+ 21'
export VEZ_TOYS="$tmp"
JOBS=2 VEZ_MUTANT_LIMIT=60 expect "one other" 0 "2 passed, 0 failed" "^found *one .*MEETS *test" "^found *other .*MEETS *test"
rm "$tmp"/met-*
JOBS=1 expect "one other" 0 "2 passed, 0 failed" "^found *one .*MEETS *hang"

sed -i 's/sum;/nothing;/' "$tmp/src/futex/toy.c"
expect "good" 2 "mutants/run: it does not build without a fault" "nothing"

[ "$failures" = 0 ]
