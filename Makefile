# SPDX-License-Identifier: MIT
# vez: synchronizers that wake exactly the right thread.
#
#   make                          the library: build/lib/libvez.so, build/lib/libvez.a, build/vez.pc; tools: build/bin
#                                 V=1: whole commands
#   make perf [QUICK=1]           measures it against pthreads; installs what is missing where that is allowed
#                                 COUNTERS=1: only the counters, and fails if one is worse than it must be
#   make perf-peers [QUICK=1]     measures it against other libraries: nsync, Abseil, C++20, TBB, Java
#   make perf-plots               pictures of the headline, where gnuplot is there
#   make check                    every test; installs what is missing where that is allowed
#   make SAN=address,undefined check
#   make SAN=thread stress        the stress run alone, under the thread sanitizer
#   make check-cross              the tests for aarch64 and riscv64, in an emulator; CROSS="aarch64": only that one
#   make explore                  every interleaving, up to a bound; make explore-mutants: shows that it finds faults
#   make check-ports              pigz and x264 on vez (examples/ports): same output, fewer switches; fetches them
#   make cluster                  libvez-cluster, the synchronizers between machines (src/cluster/README.md)
#   make check-cluster            its tests, against ZooKeeper servers that they start; make cluster-demo: an example
#   make install-cluster          installs it besides what make install does; uninstall-cluster: both are removed
#   make man                      the man pages: build/man
#   make install uninstall        PREFIX=/usr/local, DESTDIR=
#   make clean
#   make help                     prints this
#
# BUILD is where everything goes (default: build). A sanitizer's objects go to a folder of their own in it. CC=clang,
# CFLAGS and the like as everywhere.

VERSION := 0.2.0
SOVERSION := 0.2

BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
DATADIR ?= $(PREFIX)/share/vez
SAN ?=
QUICK ?=
V ?=
comma := ,

ifeq ($(origin CC),default)
CC := gcc
endif
# C++ is for the peers only.
ifeq ($(origin CXX),default)
CXX := $(if $(findstring clang,$(CC)),clang++,g++)
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
COMPILE = $(call say,CC)$(CC) $(BASE) $(CPPFLAGS) $(CFLAGS) $(DEPEND)
LINK = $(call say,LINK)$(CC) -pthread $(SANFLAGS) $(CFLAGS) $(LDFLAGS)

# What a recipe's line begins with: one short line stands for the command, which V=1 shows whole, and make -s not at all.
Q := $(if $(V),,@)
say = $(if $(V),,@$(if $(findstring s,$(firstword -$(MAKEFLAGS))),,printf '  %-5s %s\n' '$(1)' '$@';) )

SRC := $(sort $(wildcard src/futex/*.c src/engine/*.c src/sync/*.c src/inspect/*.c))
OBJ := $(SRC:%.c=$(B)/obj/%.o)
HEADERS := include/vez.h include/vez.hpp $(wildcard include/vez/*.h)
LIB := $(B)/lib/libvez.so $(B)/lib/libvez.a $(B)/vez.pc $(B)/vezConfig.cmake $(B)/vezConfigVersion.cmake
# Never with a sanitizer: the programs that they look into have not asked for one.
TOOLS := $(if $(SAN),,$(B)/bin/vez-wakes $(B)/lib/vez/libvez-wakes.so)
# Where it has been tried.
EXPLORER := $(if $(SAN),,$(if $(filter x86_64%,$(shell $(CC) -dumpmachine 2>/dev/null)),$(B)/lib/libvez-explore.a \
	$(B)/bin/vez-explore))
TOOLS += $(EXPLORER)

.PHONY: always all help lib tools man check check-programs check-cross cross-programs check-ports stress explore \
	explore-mutants perf perf-programs perf-plots perf-peers perf-peers-programs install uninstall clean needs-check \
	needs-cross needs-perf needs-peers
.DELETE_ON_ERROR:
.SECONDARY:

all: lib tools
lib: $(LIB)
tools: $(TOOLS)

help:
	@sed -n '2,/^$$/s/^# \{0,1\}//p' Makefile

# ---- library ----

# Whether the headers of probes and of valgrind are here decides what is built; the compiler's list of what an object
# depends on has no header that was not there.
$(B)/obj/probes: always
	@mkdir -p $(@D)
	@for header in sys/sdt.h valgrind/helgrind.h valgrind/drd.h; do \
		if echo "#include <$$header>" | $(CC) $(CPPFLAGS) -E -x c - >/dev/null 2>&1; then echo yes; else echo no; fi; \
	done >$@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

# Frames are described, whatever the processor and CFLAGS: who unwinds through one of them is told (src/futex/foreign.h).
$(B)/obj/src/%.o: src/%.c $(B)/obj/probes
	@mkdir -p $(@D)
	$(COMPILE) -fPIC -fvisibility=hidden -fno-semantic-interposition -fasynchronous-unwind-tables -c -o $@ $<

# Never unloaded: its thread, and what runs when a thread or the process ends, are in it. It calls its own functions
# directly, whatever a program defines by their names.
$(B)/lib/libvez.so.$(VERSION): $(OBJ) src/libvez.map
	@mkdir -p $(@D)
	$(LINK) -shared -Wl,-soname,libvez.so.$(SOVERSION) -Wl,-z,nodelete -Wl,-Bsymbolic-functions \
		-Wl,--version-script=src/libvez.map \
		$(if $(SAN),,-Wl$(comma)-z$(comma)defs) -o $@ $(OBJ)

$(B)/lib/libvez.so: $(B)/lib/libvez.so.$(VERSION)
	$(Q)ln -sf libvez.so.$(VERSION) $(B)/lib/libvez.so.$(SOVERSION)
	$(Q)ln -sf libvez.so.$(SOVERSION) $@

$(B)/lib/libvez.a: $(OBJ)
	@mkdir -p $(@D)
	@rm -f $@
	$(call say,AR)$(AR) rcs $@ $(OBJ)

# What tells build systems where vez is. Made anew whenever PREFIX or the like differs from last time.
$(B)/vez.pc $(B)/vezConfig.cmake $(B)/vezConfigVersion.cmake: $(B)/%: src/%.in Makefile always
	@mkdir -p $(@D)
	@sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' \
		-e 's|@VERSION@|$(VERSION)|' -e 's|@SOVERSION@|$(SOVERSION)|' \
		-e "s|@INCLUDEDIR_FROM_HERE@|$$(realpath -m --relative-to=$(LIBDIR)/cmake/vez $(INCLUDEDIR))|" \
		$< > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

# ---- vez-wakes: a launcher, and an object that it preloads; nothing of the library is in either ----

WAKES_INSIDE := preload table maps conds trace real
WAKES_OUTSIDE := launch images names elf price report json
WAKES_X86 := $(filter x86_64% i%86-%,$(shell $(CC) -dumpmachine 2>/dev/null))

$(B)/lib/vez/libvez-wakes.so: $(WAKES_INSIDE:%=$(B)/obj/src/wakes/%.o) src/wakes/x86.map
	@mkdir -p $(@D)
	$(LINK) -shared -Wl,-z,defs -Wl,--as-needed $(if $(WAKES_X86),-Wl$(comma)--version-script=src/wakes/x86.map) \
		-o $@ $(filter %.o,$^) -ldl

$(B)/bin/vez-wakes: $(WAKES_OUTSIDE:%=$(B)/obj/src/wakes/%.o)
	@mkdir -p $(@D)
	$(LINK) -Wl,--as-needed -o $@ $^ -ldl

# Where the object is from where the launcher is; made anew when that differs from last time.
$(B)/obj/wakes/where.h: Makefile always
	@mkdir -p $(@D)
	@printf '#define OBJECT "%s/vez/libvez-wakes.so"\n#define VERSION "%s"\n' \
		"$$(realpath -m --relative-to='$(BINDIR)' '$(LIBDIR)')" '$(VERSION)' >$@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

$(B)/obj/src/wakes/launch.o: override CPPFLAGS += -I$(B)/obj/wakes
$(B)/obj/src/wakes/launch.o: $(B)/obj/wakes/where.h

# ---- vez-explore: the schedule explorer for others; its library is made in tests/explore/explore.mk ----

$(B)/bin/vez-explore: src/vez-explore.in Makefile always
	@mkdir -p $(@D)
	@sed -e "s|@LIBDIR_FROM_BIN@|$$(realpath -m --relative-to='$(BINDIR)' '$(LIBDIR)')|" \
		-e "s|@INCLUDEDIR_FROM_BIN@|$$(realpath -m --relative-to='$(BINDIR)' '$(INCLUDEDIR)')|" \
		-e 's|@VERSION@|$(VERSION)|' $< >$@.new
	@chmod +x $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

# ---- install: one list, of source and destination, drives both ways ----

INSTALLED := $(foreach h,$(HEADERS),$(h):$(INCLUDEDIR)/$(h:include/%=%)) \
	$(B)/lib/libvez.a:$(LIBDIR)/libvez.a \
	$(B)/lib/libvez.so.$(VERSION):$(LIBDIR)/libvez.so.$(VERSION) \
	$(B)/vez.pc:$(LIBDIR)/pkgconfig/vez.pc \
	$(B)/vezConfig.cmake:$(LIBDIR)/cmake/vez/vezConfig.cmake \
	$(B)/vezConfigVersion.cmake:$(LIBDIR)/cmake/vez/vezConfigVersion.cmake
INSTALLED += $(if $(EXPLORER),include/vez-explore.h:$(INCLUDEDIR)/vez-explore.h \
	$(B)/lib/libvez-explore.a:$(LIBDIR)/libvez-explore.a)
INSTALLED_LINKS := libvez.so.$(SOVERSION):libvez.so.$(VERSION) libvez.so:libvez.so.$(SOVERSION)

# The manual, made from the headers: a page for each of them and for each function; and the tool's.
MAN := $(shell [ ! -x scripts/man ] || scripts/man --list)
man_file = man$(patsubst .%,%,$(suffix $(1)))/$(1)
INSTALLED += $(foreach p,$(MAN),$(B)/man/$(call man_file,$(p)):$(MANDIR)/$(call man_file,$(p)))

man: $(B)/man/.made
$(B)/man/.made: scripts/man README.md src/wakes/launch.c src/vez-explore.1.in $(HEADERS)
	@mkdir -p $(@D)
	$(call say,MAN)scripts/man $(B)/man
	@touch $@

# What tools read: what helgrind and DRD need not say; printers and commands for gdb, also where gdb looks for those of a
# library by itself, if PREFIX is its own.
GDBDIR ?= $(PREFIX)/share/gdb/auto-load
INSTALLED += scripts/vez.supp:$(DATADIR)/vez.supp scripts/vez-gdb.py:$(DATADIR)/vez-gdb.py \
	scripts/vez-gdb.py:$(GDBDIR)$(LIBDIR)/libvez.so.$(VERSION)-gdb.py

# What can be run: the tool, and the scripts for tracers (bpftrace -p PID /usr/local/share/vez/wait-times.bt).
INSTALLED_PROGRAMS := $(foreach s,$(wildcard scripts/*.bt),$(s):$(DATADIR)/$(notdir $(s))) \
	$(if $(TOOLS),$(B)/bin/vez-wakes:$(BINDIR)/vez-wakes $(B)/lib/vez/libvez-wakes.so:$(LIBDIR)/vez/libvez-wakes.so) \
	$(if $(EXPLORER),$(B)/bin/vez-explore:$(BINDIR)/vez-explore)
INSTALLED_FOLDERS := $(INCLUDEDIR)/vez $(LIBDIR)/vez $(LIBDIR)/cmake/vez $(DATADIR) $(GDBDIR)$(LIBDIR)

# install -m MODE SOURCE DESTINATION for "source:destination"
install_one = install -D -m $(2) $(subst :, "$(DESTDIR)",$(1))
link_one = ln -sf $(lastword $(subst :, ,$(1))) "$(DESTDIR)"$(LIBDIR)/$(firstword $(subst :, ,$(1)))

install: lib tools man
	$(Q)$(foreach f,$(INSTALLED),$(call install_one,$(f),644) &&) true
	$(Q)$(foreach f,$(INSTALLED_PROGRAMS),$(call install_one,$(f),755) &&) true
	$(Q)$(foreach l,$(INSTALLED_LINKS),$(call link_one,$(l)) &&) true

uninstall:
	$(Q)rm -f $(foreach f,$(INSTALLED) $(INSTALLED_PROGRAMS),"$(DESTDIR)"$(lastword $(subst :, ,$(f))))
	$(Q)rm -f $(foreach l,$(INSTALLED_LINKS),"$(DESTDIR)"$(LIBDIR)/$(firstword $(subst :, ,$(l))))
	-$(Q)rmdir $(INSTALLED_FOLDERS:%="$(DESTDIR)"%) 2>/dev/null || true

# ---- tests ----
#
#   tests/NAME.c           a Criterion program for one component, linked with the static library, whose system calls it
#                          replaces (tests/lib/inject.c)
#   tests/classics/NAME.c  a complete program on the public interface, linked with the shared library; exit status 0
#   examples/NAME.c        the same, for readers to copy from; uv.c is skipped where libuv is not
#   examples/explore/*.c   scenarios for vez-explore (tests/vez-explore.sh)
#   tests/stress/*.c       one program without Criterion
#   tests/explore/*.c      one program: the library under the schedule explorer
#   tests/NAME.sh          a script; exit status 0. Each begins with tests/lib/prelude.sh

WRAPPED := vez__sys_futex_wait vez__sys_futex_wake vez__sys_futex_wake_op vez__sys_now vez__sys_cpus \
	vez__sys_thread
WRAP := $(WRAPPED:%=-Wl,--wrap=%)
UNIT := $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/*.c))
TESTLIB := $(patsubst %.c,$(B)/obj/%.o,$(wildcard tests/lib/*.c))
CLASSICS := $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/classics/*.c))
EXAMPLES = $(patsubst %.c,$(B)/%,$(filter-out $(if $(HAS_UV),,examples/uv.c),$(wildcard examples/*.c)))
HAS_UV = $(shell pkg-config --exists libuv 2>/dev/null && echo yes)
STRESS_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(wildcard tests/stress/*.c))
SCRIPTS := $(wildcard tests/*.sh)
# Set by scripts/check-cross: what it runs in an emulator has a runner of our own.
CROSS ?=
RUNNER := $(if $(CROSS),$(B)/obj/tests/cross/runner.o)
WITH_LIB = -L$(B)/lib -lvez -Wl,-rpath,'$$ORIGIN/../lib:$$ORIGIN/../../lib'

$(B)/obj/tests/%.o: tests/%.c
	@mkdir -p $(@D)
	$(COMPILE) -Isrc -Itests/lib -c -o $@ $<

$(UNIT): $(B)/tests/%: $(B)/obj/tests/%.o $(TESTLIB) $(B)/lib/libvez.a $(RUNNER)
	@mkdir -p $(@D)
	$(LINK) $(WRAP) -o $@ $^ $(if $(RUNNER),,-lcriterion)

$(CLASSICS): $(B)/tests/%: $(B)/obj/tests/%.o $(B)/lib/libvez.so
	@mkdir -p $(@D)
	$(LINK) -o $@ $< $(WITH_LIB)

$(B)/obj/examples/%.o: examples/%.c
	@mkdir -p $(@D)
	$(COMPILE) -c -o $@ $<

$(B)/examples/%: $(B)/obj/examples/%.o $(B)/lib/libvez.so
	@mkdir -p $(@D)
	$(LINK) -o $@ $< $(WITH_LIB) $(if $(filter uv,$*),$(shell pkg-config --libs libuv))

$(B)/tests/stress: $(STRESS_OBJ) $(B)/lib/libvez.a
	@mkdir -p $(@D)
	$(LINK) -o $@ $^

-include tests/explore/explore.mk
-include src/cluster/cluster.mk

check-programs: lib tools $(UNIT) $(CLASSICS) $(EXAMPLES) $(B)/tests/stress $(if $(SAN),,$(EXPLORE))

cross-programs: lib tools $(UNIT) $(CLASSICS) $(EXAMPLES) $(B)/tests/stress

check: needs-check
	$(MAKE) check-programs
	$(if $(HAS_UV),,@echo "skip  examples/uv: libuv is not here")
	BUILD=$(B) SAN=$(SAN) CC='$(CC)' scripts/check $(UNIT) $(CLASSICS) $(EXAMPLES) $(if $(SAN),,$(SCRIPTS)) -- \
		$(B)/tests/stress --rounds=$(or $(ROUNDS),2000) $(if $(SAN),,-- $(EXPLORE) $(EXPLORE_SHORT))

check-cross: needs-cross
	BUILD=$(BUILD) scripts/check-cross $(CROSS)

# Not in check: it needs the network.
check-ports: lib
	BUILD=$(B) scripts/ports

stress: lib $(B)/tests/stress
	$(B)/tests/stress $(if $(ROUNDS),--rounds=$(ROUNDS))

needs-check:
	@CC='$(CC)' scripts/needs check
needs-cross:
	@CC= scripts/needs cross
needs-perf:
	@CC='$(CC)' scripts/needs perf
needs-peers:
	@CC='$(CC)' CXX='$(CXX)' scripts/needs peers

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

# ---- peers: one program per library, of those that are here; all of them do what run*.c do ----

PEERS = vez pthread $(call if_header,nsync.h,nsync) $(call if_cxx,semaphore,cxx) \
	$(call if_cxx,absl/synchronization/mutex.h,absl) $(call if_cxx,oneapi/tbb/mutex.h,tbb)
HASH := \#
if_header = $(shell echo '$(HASH)include <$(1)>' | $(CC) -E -x c - >/dev/null 2>&1 && echo $(2))
if_cxx = $(shell echo '$(HASH)include <$(1)>' | $(CXX) -std=c++20 -E -x c++ - >/dev/null 2>&1 && echo $(2))
PEERS_JAVA = $(shell command -v javac >/dev/null 2>&1 && echo $(B)/perf/peers/java)
PEER_OBJ := $(patsubst perf/peers/%.c,$(B)/obj/perf/peers/%.o,$(wildcard perf/peers/run*.c)) $(B)/obj/perf/lib/perf.o
PEER_LIBS_nsync := -lnsync
PEER_LIBS_absl = $(shell pkg-config --libs absl_synchronization)
PEER_LIBS_tbb := -ltbb
PEER_STD_cxx := -std=c++20
COMPILE_CXX = $(call say,CXX)$(CXX) $(or $(PEER_STD_$*),-std=c++17) -D_GNU_SOURCE -Wall -Wextra -Wpointer-arith -fno-strict-aliasing \
	-pthread -Iinclude -Iperf/lib $(SANFLAGS) $(CPPFLAGS) $(CFLAGS) $(DEPEND)

$(B)/obj/perf/peers/%.o: perf/peers/%.c
	@mkdir -p $(@D)
	$(COMPILE) -Iperf/lib -c -o $@ $<

$(B)/obj/perf/peers/%.o: perf/peers/%.cc
	@mkdir -p $(@D)
	$(COMPILE_CXX) -c -o $@ $<

$(B)/perf/peers/vez: $(B)/obj/perf/peers/vez.o $(PEER_OBJ) $(B)/lib/libvez.so
	@mkdir -p $(@D)
	$(LINK) -o $@ $(filter %.o,$^) -L$(B)/lib -lvez -Wl,-rpath,'$$ORIGIN/../../lib'

$(B)/perf/peers/pthread: $(B)/obj/perf/lib/impl_cond.o

$(B)/perf/peers/pthread $(B)/perf/peers/nsync: $(B)/perf/peers/%: $(B)/obj/perf/peers/%.o $(PEER_OBJ)
	@mkdir -p $(@D)
	$(LINK) -o $@ $^ $(PEER_LIBS_$*)

$(B)/perf/peers/cxx $(B)/perf/peers/absl $(B)/perf/peers/tbb: $(B)/perf/peers/%: $(B)/obj/perf/peers/%.o $(PEER_OBJ)
	@mkdir -p $(@D)
	$(call say,LINK)$(CXX) -pthread $(SANFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(PEER_LIBS_$*)

$(B)/perf/peers/java: perf/peers/java.sh perf/peers/Peers.java
	@mkdir -p $(@D)
	$(call say,JAVAC)javac -Xlint:all -d $(@D)/java-classes perf/peers/Peers.java
	$(Q)cp $< $@

perf-peers-programs:
	$(MAKE) $(PEERS:%=$(B)/perf/peers/%) $(PEERS_JAVA)

perf-peers: needs-peers
	$(MAKE) perf-peers-programs
	BUILD=$(B) scripts/perf-peers $(if $(QUICK),--quick)

clean:
	rm -rf $(BUILD)

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
