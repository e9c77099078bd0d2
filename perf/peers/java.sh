#!/bin/sh
# SPDX-License-Identifier: MIT
# The Java peer, behind the options of the others: the classes are beside it.
exec java -cp "$(dirname "$0")/java-classes" -XX:+UseSerialGC -XX:-UsePerfData -Xms128m Peers "$@"
