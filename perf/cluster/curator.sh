#!/bin/sh
# SPDX-License-Identifier: MIT
# Curator.java, behind the options of the other program: the classes are beside this one.
classes=$(dirname "$0")/curator-classes
for jar in curator-recipes curator-framework curator-client zookeeper guava slf4j-api slf4j-nop; do
	classes=$classes:/usr/share/java/$jar.jar
done
exec java -XX:+UseSerialGC -XX:-UsePerfData -cp "$classes" Curator "$@"
