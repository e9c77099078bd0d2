# SPDX-License-Identifier: MIT
# libvez-cluster: a library of its own, on libvez.so and ZooKeeper's client. Nothing else depends on it.

CLUSTER_SRC := $(filter-out src/cluster/tool.c,$(wildcard src/cluster/*.c))
CLUSTER_OBJ := $(CLUSTER_SRC:%.c=$(B)/obj/%.o)
CLUSTER_TEST_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(wildcard tests/cluster/*.c) src/cluster/list.c)
CLUSTER_LIB := $(B)/lib/libvez-cluster.so $(B)/vez-cluster.pc $(B)/bin/vez-cluster
CLUSTER_INSTALLED := src/cluster/include/vez/cluster.h:$(INCLUDEDIR)/vez/cluster.h \
	$(B)/lib/libvez-cluster.so.$(VERSION):$(LIBDIR)/libvez-cluster.so.$(VERSION) \
	$(B)/vez-cluster.pc:$(LIBDIR)/pkgconfig/vez-cluster.pc

.PHONY: cluster check-cluster needs-cluster install-cluster uninstall-cluster

$(CLUSTER_OBJ) $(CLUSTER_TEST_OBJ) $(B)/obj/src/cluster/tool.o: BASE += -Isrc/cluster/include

$(B)/lib/libvez-cluster.so.$(VERSION): $(CLUSTER_OBJ) src/cluster/libvez-cluster.map $(B)/lib/libvez.so
	@mkdir -p $(@D)
	$(LINK) -shared -Wl,-soname,libvez-cluster.so.$(SOVERSION) \
		-Wl,--version-script=src/cluster/libvez-cluster.map $(if $(SAN),,-Wl$(comma)-z$(comma)defs) -o $@ \
		$(CLUSTER_OBJ) -L$(B)/lib -lvez -lzookeeper_mt

$(B)/lib/libvez-cluster.so: $(B)/lib/libvez-cluster.so.$(VERSION)
	@ln -sf libvez-cluster.so.$(VERSION) $(B)/lib/libvez-cluster.so.$(SOVERSION)
	@ln -sf libvez-cluster.so.$(SOVERSION) $@

$(B)/vez-cluster.pc: src/cluster/vez-cluster.pc.in Makefile always
	@mkdir -p $(@D)
	@sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' \
		-e 's|@VERSION@|$(VERSION)|' $< > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

$(B)/bin/vez-cluster: $(B)/obj/src/cluster/tool.o $(B)/lib/libvez-cluster.so
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

# One "install -m 644 SOURCE DESTINATION" a file; no name here has a space but, perhaps, DESTDIR.
install-cluster: install cluster
	$(foreach f,$(CLUSTER_INSTALLED),install -D -m 644 $(firstword $(subst :, ,$(f))) \
		'$(DESTDIR)$(lastword $(subst :, ,$(f)))' &&) true
	install -D -m 755 $(B)/bin/vez-cluster '$(DESTDIR)$(BINDIR)/vez-cluster'
	ln -sf libvez-cluster.so.$(VERSION) '$(DESTDIR)$(LIBDIR)/libvez-cluster.so.$(SOVERSION)'
	ln -sf libvez-cluster.so.$(SOVERSION) '$(DESTDIR)$(LIBDIR)/libvez-cluster.so'

uninstall-cluster: uninstall
	rm -f '$(DESTDIR)$(BINDIR)/vez-cluster' $(foreach l,so so.$(SOVERSION),'$(DESTDIR)$(LIBDIR)/libvez-cluster.$(l)')
	rm -f $(foreach f,$(CLUSTER_INSTALLED),'$(DESTDIR)$(lastword $(subst :, ,$(f)))')
