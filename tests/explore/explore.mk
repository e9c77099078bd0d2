# SPDX-License-Identifier: MIT
# The schedule explorer: the library, the scenarios and the engine in one program. README.md here says how it works.

EXPLORE := $(B)/tests/explore
EXPLORE_SHORT := --quick --jobs=$(shell nproc)

# The compiler reports every plain access as it does for ThreadSanitizer, to functions of the engine. Addresses are
# fixed so that a replay is the same in every run.
X_FLAGS := -DVEZ_EXPLORE -Itests/explore -Isrc -I. -fno-pie -fsanitize=thread -U__SANITIZE_THREAD__ -Dmemset=x__memset \
	-Dmemcpy=x__memcpy -fno-omit-frame-pointer -U_FORTIFY_SOURCE -fno-lto $(if $(findstring clang,$(CC)),,-Wno-tsan)
X_SCENARIOS := $(filter-out tests/explore/threads.c,$(wildcard tests/explore/*.c))
X_LIB := $(filter-out src/futex/sys.c src/engine/record.c src/inspect/%,$(SRC))
X_ENGINE := $(wildcard tests/explore/engine/*.c)
X_OBJ := $(X_LIB:%.c=$(B)/obj/explore/%.o) $(X_SCENARIOS:%.c=$(B)/obj/explore/%.o) $(X_ENGINE:%.c=$(B)/obj/explore/%.o)

$(B)/obj/explore/tests/explore/engine/%.o: tests/explore/engine/%.c
	@mkdir -p $(@D)
	$(COMPILE) -DVEZ_EXPLORE -Itests/explore -I. -fno-pie -fno-omit-frame-pointer -c -o $@ $<

$(B)/obj/explore/%.o: %.c
	@mkdir -p $(@D)
	$(COMPILE) $(X_FLAGS) -c -o $@ $<

# The functions of src/futex tell themselves from others: engine/sched.c says why.
$(B)/obj/explore/src/futex/%.o: src/futex/%.c
	@mkdir -p $(@D)
	$(COMPILE) $(X_FLAGS) -c -o $@ $<
	$(Q)objcopy --redefine-sym __tsan_func_entry=x__futex_func_entry \
		--redefine-sym __tsan_func_exit=x__futex_func_exit $@

# For others: everything but the scenarios.
$(B)/lib/libvez-explore.a: $(X_LIB:%.c=$(B)/obj/explore/%.o) $(X_ENGINE:%.c=$(B)/obj/explore/%.o)
	@mkdir -p $(@D)
	@rm -f $@
	$(call say,AR)$(AR) rcs $@ $^

$(EXPLORE): $(X_OBJ)
	@mkdir -p $(@D)
	$(LINK) -no-pie -o $@ $^

explore: $(EXPLORE)
	$(EXPLORE) --jobs=$(or $(JOBS),$(shell nproc))

explore-mutants: $(EXPLORE)
	tests/explore/mutants/run $(B) $(MUTANTS)

# ---- the same scenarios on real threads; SAN=thread too ----

X_THREADS := $(B)/tests/explore-threads
X_THREADS_OBJ := $(patsubst %.c,$(B)/obj/threads/%.o,$(filter-out tests/explore/litmus.c,$(X_SCENARIOS)) \
	tests/explore/threads.c)

$(B)/obj/threads/%.o: %.c
	@mkdir -p $(@D)
	$(COMPILE) -Itests/explore -Isrc -I. -c -o $@ $<

$(X_THREADS): $(X_THREADS_OBJ) $(B)/lib/libvez.a
	@mkdir -p $(@D)
	$(LINK) -o $@ $^

.PHONY: explore-threads
explore-threads: $(X_THREADS)
	$(X_THREADS)
