#!/bin/sh
# SPDX-License-Identifier: MIT
# vez-explore, as it is installed, explores scenarios of others: the semaphore of README.md passes, a fault in it is found,
# explained and replayed; what does not compile is said, and nothing is left behind.
#
# Seen to fail: an option that goes to the compiler; a folder that is left behind; accesses that are not reported (no
# -fsanitize=thread); an exit status that is the compiler's whatever the scenarios do; a semaphore that is not README's.
cd "$(dirname "$0")/.."
. tests/lib/prelude.sh

if [ ! -x "$build/bin/vez-explore" ]; then
	echo "skip: the explorer is not built for this machine"
	exit 0
fi

# As it is installed by default: bin beside lib and include.
mkdir "$tmp/bin" "$tmp/lib" "$tmp/folder"
cp "$build/bin/vez-explore" "$tmp/bin"
cp "$build/lib/libvez-explore.a" "$tmp/lib"
cp -R include "$tmp/include"
ln -s "$tmp/bin/vez-explore" "$tmp/folder/link"
export TMPDIR="$tmp/folder"

# explore STATUS ARGUMENT...
explore() {
	expected=$1 status=0
	shift
	"$tmp/bin/vez-explore" "$@" >"$tmp/out" 2>&1 || status=$?
	[ "$status" = "$expected" ] || fail "$*: exit status $status" "$tmp/out"
	[ "$(ls "$tmp/folder")" = link ] || fail "$*: $(ls "$tmp/folder") is left behind"
}

said() {
	grep -qE "$1" "$tmp/out" || fail "no \"$1\"" "$tmp/out"
}

example=examples/explore/semaphore.c

for cc in gcc clang; do
	command -v "$cc" >/dev/null 2>&1 || continue
	export CC="$cc"
	explore 0 "$example" -Wall -Wextra -Werror --quick
	said '^ok +excludes +'
	said '^4 passed, 0 failed$'
done
unset CC

explore 1 "$example" -DFORGETS --scenario='gives_*' --stop
said '^gives_up: deadlock: nobody can go on'
said '^0 passed, 1 failed$'
replay=$(sed -n 's/^ *\(--replay=.*\)/\1/p' "$tmp/out")
explore 1 "$example" -DFORGETS "$replay"
said '^gives_up: deadlock'
explore 0 "$example" --list
said '^excludes$'

# A lock that does not exclude is a race on what it guards.
sed 's/s->permits < n)/0)/' "$example" >"$tmp/broken.c"
explore 1 "$tmp/broken.c" --scenario=excludes --stop
said '^excludes: (race|assertion)'

echo 'this is no C' >"$tmp/none.c"
explore 2 "$tmp/none.c"
explore 2
explore 0 --version
[ "$("$tmp/folder/link" --cflags | grep -c -- "-I$tmp/bin/../include")" = 1 ] || fail "--cflags does not name the headers"

# With the library's own thread.
cat >"$tmp/alarm.c" <<'END'
#include <vez-explore.h>
#include <vez.h>

static vez_sem_t s;
static vez_request_t r;

static void make(void)
{
	x_make_alarm();
	vez_sem_init(&s, 0, 0, 0);
}

static void ask(void)
{
	vez_request_init(&r, NULL, NULL);
	vez_request_set_limits(&r, x_soon(), NULL);
	int rc = vez_sem_acquire_async(&s, 1, &r);
	x_assert(rc == EINPROGRESS || rc == ETIMEDOUT);
	x_assert(vez_request_wait(&r, VEZ_FOREVER, NULL) == 0);
	x_assert(vez_request_result(&r) == ETIMEDOUT);
}

X_SCENARIO(deadline, .setup = make, .thread = { ask, x_alarm });
END
explore 0 "$tmp/alarm.c"

# The example is README's, but for the fault.
awk '/^struct sem \{/ { on = 1 } /^int main/ { on = 0 } on && !/^$/' README.md >"$tmp/readme"
awk '/^struct sem \{/ { on = 1 } /^\/\* ---- scenarios/ { on = 0 } /^#ifndef/ || /^#endif/ { skip = 0; next }
	/^#else/ { skip = 1 } on && !skip && !/^$/' "$example" >"$tmp/example"
diff "$tmp/readme" "$tmp/example" >"$tmp/out" || fail "README.md (<) and $example (>) differ" "$tmp/out"

[ "$failures" = 0 ]
