# SPDX-License-Identifier: MIT
# libvez-cluster: a library of its own, on libvez.so and ZooKeeper's client. Nothing else depends on it.

CLUSTER_HEADER := src/cluster/include/vez/cluster.h
CLUSTER_SRC := $(filter-out src/cluster/tool.c,$(wildcard src/cluster/*.c))
CLUSTER_OBJ := $(CLUSTER_SRC:%.c=$(B)/obj/%.o)
CLUSTER_TEST_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(filter-out tests/cluster/serve.c,$(wildcard tests/cluster/*.c)) \
	src/cluster/list.c src/cluster/turns.c src/cluster/answer.c)
CLUSTER_SERVE_OBJ := $(patsubst %,$(B)/obj/tests/cluster/%.o,serve server lab)
CLUSTER_EXAMPLES := $(patsubst %.c,$(B)/%,$(wildcard examples/cluster/*.c))
CLUSTER_PERF_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(wildcard perf/cluster/*.c))
CLUSTER_LIB := $(B)/lib/libvez-cluster.so $(B)/vez-cluster.pc $(B)/bin/vez-cluster
CLUSTER_LACKS = $(shell CC='$(CC)' scripts/needs --lacks cluster)
CURATOR_LACKS = $(shell scripts/needs --lacks curator)
cluster_skip = @echo "skip  $@: $(CLUSTER_LACKS) cannot be installed here"
# For programs of this folder's tests and examples.
WITH_CLUSTER = -L$(B)/lib -lvez-cluster -lvez -Wl,-rpath-link,$(B)/lib

CLUSTER_MAN := $(shell [ ! -x scripts/man ] || scripts/man --list cluster)
CLUSTER_INSTALLED := $(CLUSTER_HEADER):$(INCLUDEDIR)/vez/cluster.h \
	$(B)/lib/libvez-cluster.so.$(VERSION):$(LIBDIR)/libvez-cluster.so.$(VERSION) \
	$(B)/vez-cluster.pc:$(LIBDIR)/pkgconfig/vez-cluster.pc \
	$(foreach p,$(CLUSTER_MAN),$(B)/man/$(call man_file,$(p)):$(MANDIR)/$(call man_file,$(p)))
CLUSTER_INSTALLED_PROGRAMS := $(B)/bin/vez-cluster:$(BINDIR)/vez-cluster
CLUSTER_INSTALLED_LINKS := libvez-cluster.so.$(SOVERSION):libvez-cluster.so.$(VERSION) \
	libvez-cluster.so:libvez-cluster.so.$(SOVERSION)

.PHONY: cluster perf-cluster cluster-man cluster-demo cluster-programs check-cluster check-cluster-here needs-cluster \
	needs-curator install-cluster uninstall-cluster

$(CLUSTER_OBJ) $(CLUSTER_TEST_OBJ) $(CLUSTER_SERVE_OBJ) $(B)/obj/src/cluster/tool.o \
	$(CLUSTER_EXAMPLES:$(B)/%=$(B)/obj/%.o) $(CLUSTER_PERF_OBJ): BASE += -Isrc/cluster/include

$(B)/lib/libvez-cluster.so.$(VERSION): $(CLUSTER_OBJ) src/cluster/libvez-cluster.map $(B)/lib/libvez.so
	@mkdir -p $(@D)
	$(LINK) -shared -Wl,-soname,libvez-cluster.so.$(SOVERSION) \
		-Wl,--version-script=src/cluster/libvez-cluster.map $(if $(SAN),,-Wl$(comma)-z$(comma)defs) -o $@ \
		$(CLUSTER_OBJ) -L$(B)/lib -lvez -lzookeeper_mt

$(B)/lib/libvez-cluster.so: $(B)/lib/libvez-cluster.so.$(VERSION)
	$(Q)ln -sf libvez-cluster.so.$(VERSION) $(B)/lib/libvez-cluster.so.$(SOVERSION)
	$(Q)ln -sf libvez-cluster.so.$(SOVERSION) $@

$(B)/vez-cluster.pc: src/cluster/vez-cluster.pc.in Makefile always
	@mkdir -p $(@D)
	@sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' \
		-e 's|@VERSION@|$(VERSION)|' $< > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

# It finds the libraries where it was built, and from where it is installed; CLUSTER_RUNPATH= leaves that to the system.
CLUSTER_RUNPATH ?= $$ORIGIN/../lib:$$ORIGIN/$(shell realpath -m --relative-to='$(BINDIR)' '$(LIBDIR)')
$(B)/bin/vez-cluster: $(B)/obj/src/cluster/tool.o $(B)/lib/libvez-cluster.so $(B)/obj/wakes/where.h
	@mkdir -p $(@D)
	$(LINK) -o $@ $< $(WITH_CLUSTER) $(if $(CLUSTER_RUNPATH),-Wl$(comma)-rpath$(comma)'$(CLUSTER_RUNPATH)')

$(B)/obj/src/cluster/tool.o: $(B)/obj/wakes/where.h
$(B)/obj/src/cluster/tool.o: override CPPFLAGS += -I$(B)/obj/wakes

cluster: lib $(CLUSTER_LIB)

cluster-man: $(B)/man/.made-cluster
$(B)/man/.made-cluster: scripts/man src/cluster/tool.c $(CLUSTER_HEADER)
	@mkdir -p $(@D)
	$(call say,MAN)scripts/man $(B)/man cluster
	@touch $@

# ---- tests, and an example: against a server that they start ----

$(B)/tests/cluster: $(CLUSTER_TEST_OBJ) $(B)/lib/libvez-cluster.so
	@mkdir -p $(@D)
	$(LINK) -o $@ $(CLUSTER_TEST_OBJ) $(WITH_CLUSTER) -lzookeeper_mt -Wl,-rpath,'$$ORIGIN/../lib'

$(B)/tests/cluster-serve: $(CLUSTER_SERVE_OBJ) $(B)/lib/libvez-cluster.so
	@mkdir -p $(@D)
	$(LINK) -o $@ $(CLUSTER_SERVE_OBJ) $(WITH_CLUSTER) -lzookeeper_mt -Wl,-rpath,'$$ORIGIN/../lib'

$(CLUSTER_EXAMPLES): $(B)/%: $(B)/obj/%.o $(B)/lib/libvez-cluster.so
	@mkdir -p $(@D)
	$(LINK) -o $@ $< $(WITH_CLUSTER) -Wl,-rpath,'$$ORIGIN/../../lib'

$(B)/perf/cluster: $(CLUSTER_PERF_OBJ) $(B)/obj/perf/lib/perf.o $(B)/lib/libvez-cluster.so
	@mkdir -p $(@D)
	$(LINK) -o $@ $(filter %.o,$^) $(WITH_CLUSTER) -lzookeeper_mt -Wl,-rpath,'$$ORIGIN/../lib'

# Apache Curator beside it, where that is here.
CURATOR_JARS := /usr/share/java/curator-recipes.jar:/usr/share/java/curator-framework.jar:$\
	/usr/share/java/curator-client.jar:/usr/share/java/zookeeper.jar
$(B)/perf/curator: perf/cluster/curator.sh perf/cluster/Curator.java
	@mkdir -p $(@D)/curator-classes
	$(call say,JAVAC)javac -Xlint:all,-path -d $(@D)/curator-classes -cp $(CURATOR_JARS) perf/cluster/Curator.java
	$(Q)cp $< $@

cluster-programs: cluster $(B)/tests/cluster $(B)/tests/cluster-serve $(B)/perf/cluster $(CLUSTER_EXAMPLES)

check-cluster: needs-cluster
	$(if $(CLUSTER_LACKS),$(cluster_skip),$(MAKE) check-cluster-here)

check-cluster-here:
	$(MAKE) cluster-programs
	BUILD=$(B) SAN=$(SAN) CC='$(CC)' TSAN_OPTIONS=suppressions=tests/cluster/tsan.supp:$(TSAN_OPTIONS) \
		LSAN_OPTIONS=suppressions=tests/cluster/lsan.supp:print_suppressions=0:$(LSAN_OPTIONS) \
		scripts/check $(if $(SAN)$(ONLY),,$(wildcard tests/cluster/*.sh)) -- $(B)/tests/cluster $(ONLY)

cluster-demo: needs-cluster
	$(if $(CLUSTER_LACKS),$(cluster_skip),$(MAKE) -s cluster-programs)
	$(if $(CLUSTER_LACKS),,@$(B)/tests/cluster-serve examples/cluster/demo.sh $(B))

# COUNTERS=1: fails if a counter is worse than it must be, and tells of no time.
perf-cluster: needs-cluster needs-curator
	$(if $(CLUSTER_LACKS),$(cluster_skip),$(MAKE) cluster-programs)
	$(if $(CURATOR_LACKS),@echo "skip  Curator: $(CURATOR_LACKS) cannot be installed here",$\
		$(if $(CLUSTER_LACKS),,$(MAKE) $(B)/perf/curator))
	$(if $(CLUSTER_LACKS),,BUILD=$(B) $(B)/tests/cluster-serve -m scripts/perf-cluster \
		$(if $(COUNTERS),--counters-only))

needs-cluster:
	@CC='$(CC)' scripts/needs cluster

needs-curator:
	@scripts/needs curator

# ---- install: besides what install does ----

install-cluster: install cluster cluster-man
	$(Q)$(foreach f,$(CLUSTER_INSTALLED),$(call install_one,$(f),644) &&) true
	$(Q)$(foreach f,$(CLUSTER_INSTALLED_PROGRAMS),$(call install_one,$(f),755) &&) true
	$(Q)$(foreach l,$(CLUSTER_INSTALLED_LINKS),$(call link_one,$(l)) &&) true

uninstall-cluster:
	$(Q)rm -f $(foreach f,$(CLUSTER_INSTALLED) $(CLUSTER_INSTALLED_PROGRAMS),\
		"$(DESTDIR)"$(lastword $(subst :, ,$(f))))
	$(Q)rm -f $(foreach l,$(CLUSTER_INSTALLED_LINKS),"$(DESTDIR)"$(LIBDIR)/$(firstword $(subst :, ,$(l))))
	$(Q)$(MAKE) uninstall
