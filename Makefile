# SPDX-License-Identifier: MIT
# vez: synchronizers that wake exactly the right thread.
#
#   make                          the library: build/lib/libvez.so, build/lib/libvez.a, build/vez.pc
#   make perf [QUICK=1]           measures it against pthreads; installs what is missing where that is allowed
#                                 COUNTERS=1: only the counters, and fails if one is worse than it must be
#   make perf-plots               pictures of the headline, where gnuplot is there
#   make check                    every test; installs what is missing where that is allowed
#   make SAN=address,undefined check
#   make SAN=thread stress        the stress run alone, under the thread sanitizer
#   make cluster                  libvez-cluster, the synchronizers between machines; make install-cluster
#   make check-cluster            its tests, against a ZooKeeper server that they start
#   make explore                  every interleaving, up to a bound; make explore-mutants: shows that it finds faults
#   make install uninstall        PREFIX=/usr/local, DESTDIR=
#   make clean
#
# BUILD is where everything goes (default: build). A sanitizer's objects go to a folder of their own in it.

VERSION := 0.1.0
SOVERSION := 0

BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
SAN ?=
QUICK ?=
comma := ,

ifeq ($(origin CC),default)
CC := gcc
endif
CFLAGS ?= -O2 -g
WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith

# What is built where: B is this configuration's folder.
B := $(BUILD)$(if $(SAN),/san-$(subst $(comma),-,$(SAN)))
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer \
	$(if $(findstring undefined,$(SAN)),-fno-sanitize-recover=undefined))

# The queues are lists of liburcu inside structures that the public headers declare without it.
BASE := -std=c11 -D_GNU_SOURCE $(WARNINGS) -fno-strict-aliasing -pthread -Iinclude $(SANFLAGS)
DEPEND = -MMD -MP
COMPILE = $(CC) $(BASE) $(CPPFLAGS) $(CFLAGS) $(DEPEND)
LINK = $(CC) -pthread $(SANFLAGS) $(CFLAGS) $(LDFLAGS)

SRC := $(wildcard src/futex/*.c src/sync/*.c)
OBJ := $(SRC:%.c=$(B)/obj/%.o)
HEADERS := include/vez.h $(filter-out include/vez/cluster.h,$(wildcard include/vez/*.h))
LIB := $(B)/lib/libvez.so $(B)/lib/libvez.a $(B)/vez.pc

.PHONY: always all lib check check-programs stress explore explore-mutants perf perf-programs perf-plots \
	install uninstall clean needs-check needs-perf \
	cluster check-cluster needs-cluster install-cluster uninstall-cluster
.DELETE_ON_ERROR:
.SECONDARY:

all: lib
lib: $(LIB)

# ---- library ----

$(B)/obj/src/%.o: src/%.c
	@mkdir -p $(@D)
	$(COMPILE) -fPIC -fvisibility=hidden -c -o $@ $<

# Never unloaded: its thread, and what runs when a thread or the process ends, are in it.
$(B)/lib/libvez.so.$(VERSION): $(OBJ) src/libvez.map
	@mkdir -p $(@D)
	$(LINK) -shared -Wl,-soname,libvez.so.$(SOVERSION) -Wl,-z,nodelete -Wl,--version-script=src/libvez.map \
		$(if $(SAN),,-Wl$(comma)-z$(comma)defs) -o $@ $(OBJ)

$(B)/lib/libvez.so: $(B)/lib/libvez.so.$(VERSION)
	ln -sf libvez.so.$(VERSION) $(B)/lib/libvez.so.$(SOVERSION)
	ln -sf libvez.so.$(SOVERSION) $@

$(B)/lib/libvez.a: $(OBJ)
	@mkdir -p $(@D)
	rm -f $@
	$(AR) rcs $@ $(OBJ)

# Made anew whenever PREFIX or the like differs from last time.
$(B)/%.pc: src/%.pc.in Makefile always
	@mkdir -p $(@D)
	@sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' \
		-e 's|@VERSION@|$(VERSION)|' $< > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

# ---- install: one list, of source and destination, drives both ways ----

INSTALLED := $(foreach h,$(HEADERS),$(h):$(INCLUDEDIR)/$(h:include/%=%)) \
	$(B)/lib/libvez.a:$(LIBDIR)/libvez.a \
	$(B)/lib/libvez.so.$(VERSION):$(LIBDIR)/libvez.so.$(VERSION) \
	$(B)/vez.pc:$(LIBDIR)/pkgconfig/vez.pc
INSTALLED_LINKS := libvez.so.$(SOVERSION):libvez.so.$(VERSION) libvez.so:libvez.so.$(SOVERSION)

# install -m 644 SOURCE DESTINATION for "source:destination"
install_one = install -D -m 644 $(subst :, $(DESTDIR),$(1))
link_one = ln -sf $(lastword $(subst :, ,$(1))) $(DESTDIR)$(LIBDIR)/$(firstword $(subst :, ,$(1)))

install: lib
	$(foreach f,$(INSTALLED),$(call install_one,$(f)) &&) true
	$(foreach l,$(INSTALLED_LINKS),$(call link_one,$(l)) &&) true

uninstall:
	rm -f $(foreach f,$(INSTALLED),$(DESTDIR)$(lastword $(subst :, ,$(f))))
	rm -f $(foreach l,$(INSTALLED_LINKS),$(DESTDIR)$(LIBDIR)/$(firstword $(subst :, ,$(l))))
	-rmdir $(DESTDIR)$(INCLUDEDIR)/vez 2>/dev/null || true

# ---- tests ----
#
#   tests/NAME.c           a Criterion program for one component, linked with the static library, whose system calls it
#                          replaces (tests/lib/inject.c)
#   tests/classics/NAME.c  a complete program on the public interface, linked with the shared library; exit status 0
#   tests/loops/NAME.c     the same with an event loop; uv.c is skipped where libuv is not
#   tests/stress/*.c       one program without Criterion
#   tests/explore/*.c      one program: the library under the schedule explorer
#   tests/NAME.sh          a script; exit status 0

WRAPPED := vez__sys_futex_wait vez__sys_futex_wake vez__sys_futex_wake_op vez__sys_now vez__sys_cpus \
	vez__sys_thread
WRAP := $(WRAPPED:%=-Wl,--wrap=%)
UNIT := $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/*.c))
TESTLIB := $(patsubst %.c,$(B)/obj/%.o,$(wildcard tests/lib/*.c))
CLASSICS := $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/classics/*.c))
LOOPS = $(B)/tests/loops/epoll $(if $(HAS_UV),$(B)/tests/loops/uv)
HAS_UV = $(shell pkg-config --exists libuv 2>/dev/null && echo yes)
STRESS_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(wildcard tests/stress/*.c))
SCRIPTS := $(wildcard tests/*.sh)
WITH_LIB = -L$(B)/lib -lvez -Wl,-rpath,'$$ORIGIN/../lib:$$ORIGIN/../../lib'

$(B)/obj/tests/%.o: tests/%.c
	@mkdir -p $(@D)
	$(COMPILE) -Isrc -Itests/lib -c -o $@ $<

$(UNIT): $(B)/tests/%: $(B)/obj/tests/%.o $(TESTLIB) $(B)/lib/libvez.a
	@mkdir -p $(@D)
	$(LINK) $(WRAP) -o $@ $^ -lcriterion

$(CLASSICS): $(B)/tests/%: $(B)/obj/tests/%.o $(B)/lib/libvez.so
	@mkdir -p $(@D)
	$(LINK) -o $@ $< $(WITH_LIB)

$(B)/tests/loops/%: $(B)/obj/tests/loops/%.o $(B)/lib/libvez.so
	@mkdir -p $(@D)
	$(LINK) -o $@ $< $(WITH_LIB) $(if $(filter uv,$*),$(shell pkg-config --libs libuv))

$(B)/tests/stress: $(STRESS_OBJ) $(B)/lib/libvez.a
	@mkdir -p $(@D)
	$(LINK) -o $@ $^

-include tests/explore/explore.mk

check-programs: lib $(UNIT) $(CLASSICS) $(LOOPS) $(B)/tests/stress $(if $(SAN),,$(EXPLORE))

check: needs-check
	$(MAKE) check-programs
	$(if $(HAS_UV),,@echo "skip  tests/loops/uv: libuv is not here")
	BUILD=$(B) SAN=$(SAN) CC='$(CC)' scripts/check $(UNIT) $(CLASSICS) $(LOOPS) $(if $(SAN),,$(SCRIPTS)) -- \
		$(B)/tests/stress --rounds=$(or $(ROUNDS),2000) $(if $(SAN),,-- $(EXPLORE) $(EXPLORE_SHORT))

stress: lib $(B)/tests/stress
	$(B)/tests/stress $(if $(ROUNDS),--rounds=$(ROUNDS))

needs-check:
	@scripts/needs check
needs-perf:
	@scripts/needs perf

# ---- perf: one program per scenario, linked with the shared library; spin turns a knob inside: with the static one ----

PERF := $(patsubst perf/%.c,$(B)/perf/%,$(wildcard perf/*.c))
PERFLIB := $(patsubst %.c,$(B)/obj/%.o,$(wildcard perf/lib/*.c))

$(B)/obj/perf/%.o: perf/%.c
	@mkdir -p $(@D)
	$(COMPILE) -Iperf/lib -c -o $@ $<

$(B)/obj/perf/spin.o: BASE += -Isrc/futex

$(filter-out $(B)/perf/spin,$(PERF)): $(B)/perf/%: $(B)/obj/perf/%.o $(PERFLIB) $(B)/lib/libvez.so
	@mkdir -p $(@D)
	$(LINK) -o $@ $< $(PERFLIB) $(WITH_LIB) -lz -lm

$(B)/perf/spin: $(B)/obj/perf/spin.o $(B)/obj/perf/lib/perf.o $(B)/lib/libvez.a
	@mkdir -p $(@D)
	$(LINK) -Wl,--wrap=vez__sys_cpus -o $@ $^

perf-programs: lib $(PERF)

perf: needs-perf
	$(MAKE) perf-programs
	BUILD=$(B) scripts/perf-stat $(if $(COUNTERS),--counters-only,--headline $(if $(QUICK),--quick))

perf-plots: needs-perf
	$(MAKE) perf-programs
	BUILD=$(B) scripts/perf-plots

# ---- cluster: a library of its own, on libvez.so and ZooKeeper's client; nothing else here depends on it ----

CLUSTER_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(wildcard src/cluster/*.c))
CLUSTER_TEST_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(wildcard tests/cluster/*.c) src/cluster/list.c)
CLUSTER_LIB := $(B)/lib/libvez-cluster.so $(B)/vez-cluster.pc $(B)/bin/vez-cluster
CLUSTER_INSTALLED := include/vez/cluster.h:$(INCLUDEDIR)/vez/cluster.h \
	$(B)/lib/libvez-cluster.so.$(VERSION):$(LIBDIR)/libvez-cluster.so.$(VERSION) \
	$(B)/vez-cluster.pc:$(LIBDIR)/pkgconfig/vez-cluster.pc
CLUSTER_LINKS := libvez-cluster.so.$(SOVERSION):libvez-cluster.so.$(VERSION) \
	libvez-cluster.so:libvez-cluster.so.$(SOVERSION)

$(B)/lib/libvez-cluster.so.$(VERSION): $(CLUSTER_OBJ) src/libvez-cluster.map $(B)/lib/libvez.so
	@mkdir -p $(@D)
	$(LINK) -shared -Wl,-soname,libvez-cluster.so.$(SOVERSION) -Wl,--version-script=src/libvez-cluster.map \
		$(if $(SAN),,-Wl$(comma)-z$(comma)defs) -o $@ $(CLUSTER_OBJ) -L$(B)/lib -lvez -lzookeeper_mt

$(B)/lib/libvez-cluster.so: $(B)/lib/libvez-cluster.so.$(VERSION)
	ln -sf libvez-cluster.so.$(VERSION) $(B)/lib/libvez-cluster.so.$(SOVERSION)
	ln -sf libvez-cluster.so.$(SOVERSION) $@

$(B)/bin/vez-cluster: $(B)/obj/src/tool/vez-cluster.o $(B)/lib/libvez-cluster.so
	@mkdir -p $(@D)
	$(LINK) -o $@ $< -L$(B)/lib -lvez-cluster -lvez -Wl,-rpath-link,$(B)/lib -Wl,-rpath,'$$ORIGIN/../lib'

$(B)/tests/cluster: $(CLUSTER_TEST_OBJ) $(B)/lib/libvez-cluster.so
	@mkdir -p $(@D)
	$(LINK) -o $@ $(CLUSTER_TEST_OBJ) -L$(B)/lib -lvez-cluster -lvez -lzookeeper_mt -Wl,-rpath,'$$ORIGIN/../lib'

cluster: lib $(CLUSTER_LIB)

check-cluster: needs-cluster
	$(MAKE) cluster $(B)/tests/cluster
	BUILD=$(B) SAN=$(SAN) CC='$(CC)' VEZ_CHECK_LIMIT=900 TSAN_OPTIONS=suppressions=tests/cluster/tsan.supp \
		LSAN_OPTIONS=suppressions=tests/cluster/lsan.supp:print_suppressions=0 \
		scripts/check -- $(B)/tests/cluster $(ONLY)

needs-cluster:
	@scripts/needs cluster

install-cluster: install cluster
	$(foreach f,$(CLUSTER_INSTALLED),$(call install_one,$(f)) &&) true
	install -D -m 755 $(B)/bin/vez-cluster $(DESTDIR)$(PREFIX)/bin/vez-cluster
	$(foreach l,$(CLUSTER_LINKS),$(call link_one,$(l)) &&) true

uninstall-cluster: uninstall
	rm -f $(DESTDIR)$(PREFIX)/bin/vez-cluster
	rm -f $(foreach f,$(CLUSTER_INSTALLED),$(DESTDIR)$(lastword $(subst :, ,$(f))))
	rm -f $(foreach l,$(CLUSTER_LINKS),$(DESTDIR)$(LIBDIR)/$(firstword $(subst :, ,$(l))))
	-rmdir $(DESTDIR)$(INCLUDEDIR)/vez 2>/dev/null || true

clean:
	rm -rf $(BUILD)

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
