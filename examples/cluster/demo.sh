#!/bin/sh
# SPDX-License-Identifier: MIT
# demo.sh BUILD: two processes take turns at a counter, at the servers that VEZ_CLUSTER_SERVERS names; and then two
# commands of a shell do. make cluster-demo runs it.
set -eu
build=$1
file=$(mktemp)
trap 'rm -f "$file"' EXIT

echo "Two processes add to one number, five times each, under a mutex that ZooKeeper keeps:"
"$build/examples/cluster/counter" "$VEZ_CLUSTER_SERVERS" "$file" 5 &
first=$!
"$build/examples/cluster/counter" "$VEZ_CLUSTER_SERVERS" "$file" 5
wait $first
number=$(cut -d " " -f 1 "$file")
echo "The number is $number."
[ "$number" = 10 ]

echo "The same in a shell: two commands, one after the other:"
# shellcheck disable=SC2016 # the inner shell's
says='echo "$0 runs, with fence $VEZ_CLUSTER_FENCE"; sleep 0.3; echo "$0 has ended"'
"$build/bin/vez-cluster" lock shell -- sh -c "$says" one &
first=$!
"$build/bin/vez-cluster" lock shell -- sh -c "$says" the-other
wait $first
