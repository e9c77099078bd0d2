#!/bin/sh
# SPDX-License-Identifier: MIT
# VEZ_INSPECT=1 switches inspection on before main, with the shared and with the static library; nothing else does.
#
# Seen to fail: without the constructor; with one that takes any value; with one that runs only where the program calls
# vez_inspect_enable.
cd "$(dirname "$0")/.."
. tests/lib/prelude.sh

cat >"$tmp/program.c" <<'END'
#include <vez.h>

static vez_sem_t sem = VEZ_SEM_INITIALIZER(0);

/* The exit status is how many requests are listed: one waits. */
int main(void)
{
	vez_request_t r;
	vez_request_init(&r, NULL, NULL);
	if (vez_sem_acquire_async(&sem, 1, &r) != EINPROGRESS)
		return 99;
	return vez_inspect(stdout);
}
END

# expect PROGRAM STATUS [ASSIGNMENT]
expect() {
	got=0
	env ${3:+"$3"} "$1" >"$tmp/out" || got=$?
	[ "$got" = "$2" ] || { echo "$1 with '${3:-}' lists $got: $(cat "$tmp/out")"; exit 1; }
}

unset VEZ_INSPECT
$cc -std=c11 -Iinclude -o "$tmp/shared" "$tmp/program.c" -L"$lib" -lvez -Wl,-rpath,"$(realpath "$lib")"
$cc -std=c11 -Iinclude -pthread -o "$tmp/static" "$tmp/program.c" "$lib/libvez.a"
for program in "$tmp/shared" "$tmp/static"; do
	expect "$program" 1 VEZ_INSPECT=1
	expect "$program" 0
	expect "$program" 0 VEZ_INSPECT=
	expect "$program" 0 VEZ_INSPECT=0
done
