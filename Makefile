# libbreaker: a circuit breaker under existing programs.
#
#   make                      build/libbreaker.so, build/breaker
#   make demo                 shows it at work; installs what is missing first
#   make check                every test; installs what is missing first
#   make bench                ratios of this machine; BENCH_ARGS='--markdown README.md' puts them into the README
#   make install PREFIX=/usr DESTDIR=…
#
# DEVELOPER=1 makes warnings errors. SANITIZE=address,undefined or thread builds everything so.
# CC=clang works. BUILD=dir puts the results elsewhere.

VERSION  := 0.1.0
BUILD    ?= build
PREFIX   ?= /usr/local
DESTDIR  ?=
DEVELOPER ?=
SANITIZE ?=
PYTHON   ?= /usr/bin/python3
# What the dynamic loader puts for $LIB: lib/x86_64-linux-gnu on Debian, lib64 on Red Hat.
LIB      ?= $(shell m=$$($(CC) -print-multiarch 2>/dev/null); \
              if [ -n "$$m" ]; then echo lib/$$m; else echo lib64; fi)

CFLAGS   ?= -O2 -g
WARNINGS := -Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes -Wshadow -Wvla \
            $(if $(DEVELOPER),-Werror)
SANFLAGS := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer)
CPPFLAGS += -D_GNU_SOURCE -DBREAKER_VERSION='"$(VERSION)"' -Ishim -Ipreload
# Nothing between functions and jumps: a call's code is fetched anew by lines of the cache, padding
# too (test_tls_cost.py counts them). clang does not know all of it.
DENSE    := $(shell f='-falign-functions=1 -falign-jumps=1 -falign-labels=1 -falign-loops=1'; \
              $(CC) -Werror $$f -x c -S -o /dev/null /dev/null 2>/dev/null && echo "$$f")
# No LTO, which distributions set: it loses the symbol versions and preload/order.ld's sections.
BASE     := -std=gnu11 -fno-lto -fPIC -fvisibility=hidden -ffunction-sections -fdata-sections \
            $(DENSE) $(WARNINGS) $(SANFLAGS)
# The hooks run inside programs that may have no unwinder for our frames in mind: C++ exceptions
# thrown through libcurl pass over them (FIELD-NOTES 1.6), so they carry unwind tables.
# A fortified libc header defines what we define. utlist.h asserts, which would end the program.
PRELOAD_FLAGS := -fexceptions -U_FORTIFY_SOURCE -DNDEBUG
# glibc's argp reads argp_program_version of the program: it must be visible to it.
CLI_FLAGS     := -fvisibility=default
# Written as -l: so that the static archive is taken where a distribution ships both.
INIH     ?= -l:libinih.a

SHIM_SRC    := $(filter-out shim/cli/%,$(wildcard shim/*.c shim/*/*.c))
CLI_SRC     := $(wildcard shim/cli/*.c)
PRELOAD_SRC := $(wildcard preload/*.c)
UNIT_SRC    := $(wildcard tests/unit/test_*.c)
STRESS_SRC  := $(wildcard tests/stress/*.c)
# Those that take their time: check-kill.
KILL_SRC    := $(addprefix tests/stress/stress_,step.c storm.c)
BENCH_SRC   := $(wildcard tests/bench/*.c)
FUZZ_SRC    := $(wildcard tests/fuzz/*.c)
# What they look at, built anew for it: all of shim/, and of preload/ what reaches libcurl through the
# functions that it is given.
FUZZED_SRC  := $(SHIM_SRC) $(filter-out shim/cli/main.c,$(CLI_SRC)) preload/easymap.c $(wildcard preload/synth_*.c) \
               $(filter-out preload/curl_entries.c,$(wildcard preload/curl_*.c))
# Programs into which the hooks are linked: sanitizers see what passes between both (check-linked).
LINKED_SRC  := $(addprefix tests/preload/sock/,threads.c signals.c descriptors.c unseen.c events.c forks.c)

obj = $(patsubst %.c,$(BUILD)/%.o,$(1))
SHIM_OBJ    := $(call obj,$(SHIM_SRC))
CLI_OBJ     := $(call obj,$(CLI_SRC))
PRELOAD_OBJ := $(call obj,$(PRELOAD_SRC))
UNIT        := $(patsubst %.c,$(BUILD)/%,$(UNIT_SRC))
STRESS      := $(patsubst %.c,$(BUILD)/%,$(STRESS_SRC))
KILL        := $(patsubst %.c,$(BUILD)/%,$(KILL_SRC))
BENCH       := $(patsubst %.c,$(BUILD)/%,$(BENCH_SRC))
FUZZ        := $(patsubst %.c,$(BUILD)/%,$(FUZZ_SRC))
LINKED      := $(patsubst tests/preload/sock/%.c,$(BUILD)/tests/linked/%,$(LINKED_SRC)) \
               $(addprefix $(BUILD)/tests/linked/tls_,calls objects refused)

# What `make check` runs before the clients, two at a time: what tells most soonest is first, what takes longest is not last.
CHECKS := $(addprefix check-,static unit kill asan tsan clang O0 aarch64 fuzz)
# Of one that builds or runs much: how many jobs. Empty: as the calling make leaves room.
JOBS    ?= 2
AT_ONCE  = $(JOBS:%=-j%)

.PHONY: all demo check $(CHECKS) check-mutants check-clients check-sanitizers check-cross check-valgrind check-faults \
        check-frozen check-analyzers coverage bench soak install clean format unit stress benches fuzzers linked sdks
.DELETE_ON_ERROR:

all: $(BUILD)/libbreaker.so $(BUILD)/breaker

$(BUILD)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(BASE) $(if $(filter preload/%,$<),$(PRELOAD_FLAGS)) $(if $(filter shim/cli/%,$<),$(CLI_FLAGS)) -MMD -MP -c -o $@ $<

$(BUILD)/libshim.a: $(SHIM_OBJ)
	@rm -f $@
	$(AR) rcs $@ $^

# All of it as one object, in which what a healthy call needs lies together.
$(BUILD)/ordered.o: $(PRELOAD_OBJ) $(BUILD)/libshim.a preload/order.ld
	$(CC) $(CFLAGS) -r -nostdlib -Wl,-T,preload/order.ld -o $@ $(PRELOAD_OBJ) $(BUILD)/libshim.a

$(BUILD)/libbreaker.so: $(BUILD)/ordered.o preload/libbreaker.map
	$(CC) $(CFLAGS) $(SANFLAGS) -shared -Wl,-soname,libbreaker.so -Wl,--version-script=preload/libbreaker.map \
	    -Wl,--exclude-libs,ALL -Wl,--as-needed $(if $(SANITIZE),,-Wl,-z,defs) -Wl,-z,relro \
	    -Wl,--gc-sections $(LDFLAGS) -o $@ $(BUILD)/ordered.o $(INIH)

$(BUILD)/breaker: $(CLI_OBJ) $(BUILD)/libshim.a
	$(CC) $(CFLAGS) $(SANFLAGS) $(LDFLAGS) -o $@ $^ $(INIH)

$(BUILD)/tests/unit/%: tests/unit/%.c $(BUILD)/libshim.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -Itests/unit $(CFLAGS) -std=gnu11 $(WARNINGS) $(SANFLAGS) -MMD -MP -o $@ $< $(filter %.o,$^) $(BUILD)/libshim.a $(INIH) -lcmocka -pthread

# What a unit test needs of preload/, objects that hook and look up nothing.
$(filter $(BUILD)/tests/unit/test_sock_names%,$(UNIT)): $(call obj,preload/sock_names.c preload/sock_names_learn.c preload/sock_address.c preload/sock_lock.c)
$(BUILD)/tests/unit/test_sock_attempt: $(call obj,preload/sock_attempt.c preload/sock_lock.c)
$(BUILD)/tests/unit/test_sock_fallback: $(call obj,preload/sock_fallback.c preload/sock_address.c preload/sock_lock.c)
$(BUILD)/tests/unit/test_sock_pool: $(call obj,preload/sock_pool.c)
$(BUILD)/tests/unit/test_curl_options: $(call obj,preload/curl_options.c preload/curl_options_override.c)
# And of the command: `status` over whatever bytes there are, and what it shows of them.
$(BUILD)/tests/unit/test_hostile_slots $(BUILD)/tests/unit/test_cli_text: $(filter-out %/main.o,$(CLI_OBJ))

$(BUILD)/tests/stress/%: tests/stress/%.c $(BUILD)/libshim.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -std=gnu11 $(WARNINGS) $(SANFLAGS) $(STRESS_LINK) -MMD -MP -o $@ $< $(filter %.o,$^) $(BUILD)/libshim.a $(INIH) -lcmocka -pthread

# The command's own objects, begun where they turn to the table, by a clock that stands (killed_scenes.h). Bound
# at its start, or it would be the loader that is stepped through.
$(BUILD)/tests/stress/stress_step: $(filter-out %/main.o,$(CLI_OBJ))
$(BUILD)/tests/stress/stress_step: STRESS_LINK := -Wl,-z,now,--wrap=clock_system,--wrap=table_open,--wrap=table_attach

$(BUILD)/tests/bench/%: tests/bench/%.c $(BUILD)/libshim.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -std=gnu11 $(WARNINGS) -MMD -MP -o $@ $< $(BUILD)/libshim.a $(INIH) -lcurl $(BENCH_LIBS) -pthread

$(BUILD)/tests/bench/bench_tls: BENCH_LIBS := -lssl -lcrypto
$(BUILD)/tests/bench/bench_decision: BENCH_LIBS := -lhiredis

# libFuzzer is clang's, and it must see all that it drives compiled for it. Beside them stand full parsers
# that are compared with, as they are installed. Of how near two words are nobody learns what to try next,
# and telling it takes most of the time.
FUZZ_FLAGS := -O1 -g -std=gnu11 $(WARNINGS) -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
$(BUILD)/fuzzed/%.o: %.c Makefile
	@mkdir -p $(@D)
	clang $(CPPFLAGS) $(FUZZ_FLAGS) $(if $(filter %/distance.c,$<),,-fsanitize=fuzzer-no-link) -MMD -MP -c -o $@ $<

$(BUILD)/libfuzzed.a: $(patsubst %.c,$(BUILD)/fuzzed/%.o,$(FUZZED_SRC))
	@rm -f $@
	$(AR) rcs $@ $^

$(BUILD)/tests/fuzz/%: tests/fuzz/%.c $(BUILD)/libfuzzed.a Makefile
	@mkdir -p $(@D)
	clang $(CPPFLAGS) $(FUZZ_FLAGS) -fsanitize=fuzzer -MMD -MP -o $@ $< $(BUILD)/libfuzzed.a $(INIH) $(FUZZ_LIBS)

$(BUILD)/tests/fuzz/fuzz_model_scan $(BUILD)/tests/fuzz/fuzz_table: FUZZ_LIBS := -ljansson
$(BUILD)/tests/fuzz/fuzz_url: FUZZ_LIBS := -lcurl

# The hooks stand before the sanitizer's entries, as else before libc's. Without those of the loader: the
# sanitizer asks dlsym before it can bear code that it watches.
LINKED_HOOKS := $(filter-out %/dl_sym.o %/dl_open.o,$(PRELOAD_OBJ))
$(BUILD)/tests/linked/%: tests/preload/sock/%.c $(LINKED_HOOKS) $(BUILD)/libshim.a preload/libbreaker.map
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -std=gnu11 -w $(SANFLAGS) -Wl,--version-script=preload/libbreaker.map -MMD -MP -o $@ $< \
	    $(LINKED_HOOKS) $(BUILD)/libshim.a $(INIH) -pthread

$(BUILD)/tests/linked/tls_%: tests/preload/tls/%.c tests/preload/tls/tls.h $(LINKED_HOOKS) $(BUILD)/libshim.a preload/libbreaker.map
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -Itests/preload/sock $(CFLAGS) -std=gnu11 -w $(SANFLAGS) -Wl,--version-script=preload/libbreaker.map -MMD -MP \
	    -o $@ $< $(LINKED_HOOKS) $(BUILD)/libshim.a $(INIH) -lssl -lcrypto -pthread

$(BUILD)/tests/linked/server: tests/preload/sock/server.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -std=gnu11 -w -MMD -MP -o $@ $<

unit: $(UNIT)
stress: $(STRESS)
benches: $(BENCH)
fuzzers: $(FUZZ)
linked: $(LINKED) $(BUILD)/tests/linked/server $(BUILD)/breaker

# The providers' own SDKs, which tests/preload/sdk runs. Most of it is waiting for the registry.
sdks:
	@PYTHON=$(PYTHON) scripts/sdks $(BUILD)/sdk

# --- the README's two commands -------------------------------------------------------------------

demo:
	@scripts/deps demo
	@$(MAKE) --no-print-directory -s all
	@BREAKER_BUILD=$(abspath $(BUILD)) scripts/demo

check:
	@scripts/deps check
	@$(MAKE) --no-print-directory -j3 DEVELOPER=1 sdks all unit stress benches
	@$(MAKE) --no-print-directory -j2 --output-sync=recurse DEVELOPER=1 FUZZ_SECONDS=5 JOBS= $(CHECKS)
	@$(MAKE) --no-print-directory check-mutants
	@$(MAKE) --no-print-directory check-clients

# What the sources and the built objects must and must not contain.
check-static:
	@scripts/check-selftest
	@scripts/check-format
	@scripts/check-layers
	@scripts/check-headers
	@scripts/check-keys
	@scripts/check-bugs
	@scripts/check-security
	@scripts/check-imports $(BUILD)
	@scripts/check-exports $(BUILD)/libbreaker.so
	@scripts/check-glibc $(BUILD)/libbreaker.so
	@scripts/check-tail-jumps $(BUILD)/libbreaker.so
	@scripts/check-sizes

check-unit: unit stress
	@set -e; for t in $(UNIT) $(filter-out $(KILL),$(STRESS)); do echo "== $$t"; $$t; done

# Killed at every instruction, and for STORM_SECONDS at any.
STORM_SECONDS ?= 30
check-kill: stress
	@set -e; for t in $(KILL); do echo "== $$t"; STORM_SECONDS=$(STORM_SECONDS) $$t; done

# The explorers, the stepper and the storm find what they are there for. Two at a time by itself, and with nothing
# beside it: some faults show in a race alone, for which the storm needs its cores.
check-mutants: all
	@BREAKER_BUILD=$(abspath $(BUILD)) scripts/check-mutants

# clang, -O0 and aarch64: everything compiles, and the tail jumps stay jumps. Frames differ most between
# compilers: what lives on small stacks, in signal handlers and beside forks is run as clang makes it, too.
check-cross: check-clang check-O0 check-aarch64

check-clang:
	@$(MAKE) --no-print-directory -s $(AT_ONCE) DEVELOPER=1 CC=clang BUILD=$(BUILD)/clang all unit
	@scripts/check-tail-jumps $(BUILD)/clang/libbreaker.so
	@BREAKER_BUILD=$(abspath $(BUILD))/clang $(PYTHON) -m pytest -q -p no:cacheprovider tests/preload/test_sock_odd.py

check-O0:
	@$(MAKE) --no-print-directory -s $(AT_ONCE) DEVELOPER=1 CFLAGS='-O0 -g' BUILD=$(BUILD)/O0 all
	@scripts/check-tail-jumps $(BUILD)/O0/libbreaker.so

check-aarch64:
	@scripts/cross-headers $(BUILD)/aarch64/include
	@$(MAKE) --no-print-directory -s $(AT_ONCE) DEVELOPER=1 CC=aarch64-linux-gnu-gcc AR=aarch64-linux-gnu-ar \
	    BUILD=$(BUILD)/aarch64 CFLAGS='-O2 -g -isystem $(BUILD)/aarch64/include' \
	    INIH='$(BUILD)/aarch64/include/ini-stub.o' $(BUILD)/aarch64/libbreaker.so $(BUILD)/aarch64/breaker
	@OBJDUMP=aarch64-linux-gnu-objdump scripts/check-tail-jumps $(BUILD)/aarch64/libbreaker.so

# Stepping through the sanitizer's instructions says nothing of ours.
# Warnings are no errors here: gcc's flow warnings are wrong on instrumented code.
check-sanitizers: check-asan check-tsan

check-asan:
	@$(MAKE) --no-print-directory -s $(AT_ONCE) DEVELOPER= CFLAGS='-O1 -g -w' SANITIZE=address,undefined BUILD=$(BUILD)/asan unit stress linked
	@set -e; for t in $(patsubst $(BUILD)/%,$(BUILD)/asan/%,$(UNIT) $(filter-out %/stress_step,$(STRESS))); do echo "== $$t"; \
	    STORM_SECONDS=3 UBSAN_OPTIONS=halt_on_error=1 $$t; done
	@scripts/check-linked $(BUILD)/asan

check-tsan:
	@$(MAKE) --no-print-directory -s $(AT_ONCE) DEVELOPER= CFLAGS='-O1 -g -w' SANITIZE=thread BUILD=$(BUILD)/tsan unit linked
	@set -e; for t in $(patsubst $(BUILD)/%,$(BUILD)/tsan/%,$(UNIT)); do echo "== $$t"; $$t; done
	@scripts/check-linked $(BUILD)/tsan

# Each fuzzer for FUZZ_SECONDS, JOBS at a time, from the same seed and corpus: short, to see what is broken since
# yesterday. What it finds is kept beside it. FUZZ_SECONDS=3600 FUZZ_SEED=0 looks for more.
FUZZ_SECONDS ?= 60
FUZZ_SEED    ?= 1
check-fuzz:
	@scripts/deps check
	@$(MAKE) --no-print-directory -s $(AT_ONCE) fuzzers
	@$(MAKE) --no-print-directory -s $(AT_ONCE) $(addprefix check-fuzz-,$(patsubst tests/fuzz/fuzz_%.c,%,$(FUZZ_SRC)))

check-fuzz-%: $(BUILD)/tests/fuzz/fuzz_%
	@rm -rf $<.corpus; mkdir $<.corpus; \
	$< -max_total_time=$(FUZZ_SECONDS) -seed=$(FUZZ_SEED) -max_len=16384 -timeout=10 -verbosity=0 \
	    -print_final_stats=1 -dict=tests/fuzz/$*.dict -artifact_prefix=$<. \
	    $<.corpus tests/fuzz/corpus_$* >$<.log 2>&1 || { cat $<.log; exit 1; }; \
	sed -n 's/^stat::number_of_executed_units: */   inputs: /p' $<.log | sed 's|^|== $<|'

# Most of a test is waiting, for processes and for what is slow: two workers a core, and no more than four, since some
# of them count what others of the machine do to them.
WORKERS ?= $(shell echo $$(( $$(nproc) < 2 ? 2 : 4 )))

check-clients: all benches
	@BREAKER_BUILD=$(abspath $(BUILD)) $(PYTHON) -m pytest -q -p no:cacheprovider \
	    -n $(WORKERS) tests

# Not in check: minutes.
check-valgrind:
	@scripts/deps check
	@$(MAKE) --no-print-directory -s -j2 all
	@BREAKER_CHECK_VALGRIND=1 BREAKER_BUILD=$(abspath $(BUILD)) $(PYTHON) -m pytest -q -p no:cacheprovider \
	    tests/preload/test_curl_valgrind.py tests/preload/test_sock_valgrind.py tests/preload/test_tls_valgrind.py

# The clients' tests, in a container that is frozen for a moment every second (root).
check-frozen:
	@scripts/deps check
	@$(MAKE) --no-print-directory -s -j2 DEVELOPER=1 sdks all benches
	@BREAKER_BUILD=$(abspath $(BUILD)) scripts/check-frozen $(PYTHON) -m pytest -q -p no:cacheprovider -n $(WORKERS) tests

# Each call that libbreaker.so makes fails in turn, instead of some of each; and slots of more bytes.
check-faults:
	@scripts/deps check
	@$(MAKE) --no-print-directory -s -j2 all unit
	@HOSTILE_ROUNDS=20000 $(BUILD)/tests/unit/test_hostile_slots
	@BREAKER_CHECK_FAULTS=1 BREAKER_BUILD=$(abspath $(BUILD)) $(PYTHON) -m pytest -q -p no:cacheprovider \
	    -n $(WORKERS) tests/preload/test_faults.py

# Not in check, either: by a SIGKILL at every single instruction (an hour), and storms of SOAK_SECONDS each.
SOAK_SECONDS ?= 600
soak:
	@scripts/deps check
	@$(MAKE) --no-print-directory -s -j2 all stress
	@STEP_EVERY=1 $(BUILD)/tests/stress/stress_step
	@STORM_SECONDS=$(SOAK_SECONDS) $(BUILD)/tests/stress/stress_storm
	@BREAKER_CHECK_SOAK=$(SOAK_SECONDS) BREAKER_BUILD=$(abspath $(BUILD)) $(PYTHON) -m pytest -q -p no:cacheprovider \
	    tests/preload/test_kill_storm.py

# Not in check: two minutes of two cores.
check-analyzers:
	@scripts/deps analyzers
	@scripts/check-selftest analyzers
	@scripts/check-analyzers

# Not in check: a quarter of an hour. Which lines ran, by clang's counters, which stand in a file that all programs
# of a build map: what one counted before it was killed is there, too. A failed test fails this, or what did not run
# would be taken for what no test runs; but test_faults.py makes the counters' own calls fail as well.
COVERAGE   := $(abspath $(BUILD))/coverage
COVERED_BY ?= tests
# They count what a program calls, runs or maps, or name what the library exports.
UNCOUNTED  := $(addprefix --ignore=tests/,$(addprefix preload/test_,cost.py pair_cost.py private_memory.py sock_cost.py start_cost.py tls_cost.py) cli/test_bench.py) \
              --deselect='tests/preload/loader/test_loader.py::test_checks_of_the_library_pass[check-exports]'
COVERAGE_PYTEST = BREAKER_BUILD=$(COVERAGE) $(PYTHON) -m pytest -q -p no:cacheprovider -n $(WORKERS)
# valgrind does not read what clang writes by default. Where two processes count at once none is lost: clang counts few lines
# and takes the others for what is left of those.
COVERAGE_CFLAGS := -O1 -gdwarf-4 -w -fprofile-update=atomic -fprofile-instr-generate=$(COVERAGE)/profiles/%m%c.profraw -fcoverage-mapping \
                   -mllvm -runtime-counter-relocation

coverage:
	@scripts/deps coverage
	@$(MAKE) --no-print-directory -s sdks
	@rm -rf $(COVERAGE)/profiles; mkdir -p $(COVERAGE)/profiles; chmod 777 $(COVERAGE)/profiles; ln -sfn ../sdk $(COVERAGE)/sdk
	@clang $(COVERAGE_CFLAGS) -fPIC -c -o $(COVERAGE)/early.o tests/coverage/early.c
	@$(MAKE) --no-print-directory -s -j2 CC=clang BUILD=$(COVERAGE) CFLAGS='$(COVERAGE_CFLAGS)' LDFLAGS=$(COVERAGE)/early.o all unit stress
	@set -e; for t in $(patsubst $(BUILD)/%,$(COVERAGE)/%,$(UNIT) $(filter-out %/stress_step,$(STRESS))); do \
	    STORM_SECONDS=3 $$t >$(COVERAGE)/log 2>&1 || { cat $(COVERAGE)/log; exit 1; }; done
	@$(COVERAGE)/breaker run -- true; chmod 666 $(COVERAGE)/profiles/* # some tests run as another user
	@echo "left out, for the counters would be counted: $(UNCOUNTED)"
	@$(COVERAGE_PYTEST) $(UNCOUNTED) --ignore=tests/preload/test_faults.py $(COVERED_BY)
	@$(COVERAGE_PYTEST) tests/preload/test_faults.py >$(COVERAGE)/faults.log || echo "test_faults.py ran, and failed for the counters' own calls"
	@llvm=$$(dirname "$$(clang -print-prog-name=llvm-cov)"); cd $(COVERAGE); $$llvm/llvm-profdata merge -o profile profiles/*.profraw; \
	    $$llvm/llvm-cov export -format=lcov -instr-profile=profile libbreaker.so \
	    $(patsubst $(BUILD)/%,-object %,$(BUILD)/breaker $(UNIT) $(STRESS)) >lcov
	@scripts/check-coverage $(COVERAGE)/lcov

# Some ten minutes on two cores that have nothing else to do.
BENCH_ARGS ?=

bench:
	@scripts/deps bench
	@$(MAKE) --no-print-directory -s -j2 all benches
	@BREAKER_BUILD=$(abspath $(BUILD)) $(PYTHON) tests/bench/run $(BENCH_ARGS)

install: all
	install -D -m 755 $(BUILD)/breaker "$(DESTDIR)$(PREFIX)/bin/breaker"
	install -D -m 644 $(BUILD)/libbreaker.so "$(DESTDIR)$(PREFIX)/$(LIB)/breaker/libbreaker.so"
	install -D -m 644 docs/breaker.1 "$(DESTDIR)$(PREFIX)/share/man/man1/breaker.1"
	install -D -m 644 breaker.ini "$(DESTDIR)$(PREFIX)/share/doc/breaker/breaker.ini"

clean:
	rm -rf $(BUILD)

format:
	clang-format -i $(shell git ls-files 'shim/*.[ch]' 'preload/*.[ch]' 'tests/*.[ch]')

# Not those of the builds within it, which another make may be writing.
-include $(shell find $(addprefix $(BUILD)/,shim preload tests fuzzed) -name '*.d' 2>/dev/null)
