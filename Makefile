# libbreaker: a circuit breaker under existing programs.
#
#   make                      build/libbreaker.so, build/breaker
#   make demo                 shows it at work; installs what is missing first
#   make check                every test; installs what is missing first
#   make bench                ratios of this machine, for the README
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
BASE     := -std=gnu11 -fPIC -fvisibility=hidden -ffunction-sections -fdata-sections \
            $(WARNINGS) $(SANFLAGS)
# The hooks run inside programs that may have no unwinder for our frames in mind: C++ exceptions
# thrown through libcurl pass over them (FIELD-NOTES 1.6), so they carry unwind tables.
PRELOAD_FLAGS := -fexceptions
# glibc's argp reads argp_program_version of the program: it must be visible to it.
CLI_FLAGS     := -fvisibility=default
# Written as -l: so that the static archive is taken where a distribution ships both.
INIH     ?= -l:libinih.a

SHIM_SRC    := $(filter-out shim/cli/%,$(wildcard shim/*.c shim/*/*.c))
CLI_SRC     := $(wildcard shim/cli/*.c)
PRELOAD_SRC := $(wildcard preload/*.c)
UNIT_SRC    := $(wildcard tests/unit/test_*.c)
STRESS_SRC  := $(wildcard tests/stress/*.c)
BENCH_SRC   := $(wildcard tests/bench/*.c)

obj = $(patsubst %.c,$(BUILD)/%.o,$(1))
SHIM_OBJ    := $(call obj,$(SHIM_SRC))
CLI_OBJ     := $(call obj,$(CLI_SRC))
PRELOAD_OBJ := $(call obj,$(PRELOAD_SRC))
UNIT        := $(patsubst %.c,$(BUILD)/%,$(UNIT_SRC))
STRESS      := $(patsubst %.c,$(BUILD)/%,$(STRESS_SRC))
BENCH       := $(patsubst %.c,$(BUILD)/%,$(BENCH_SRC))

.PHONY: all demo check check-static check-unit check-clients check-sanitizers check-cross check-valgrind bench \
        install clean format unit stress benches
.DELETE_ON_ERROR:

all: $(BUILD)/libbreaker.so $(BUILD)/breaker

$(BUILD)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(BASE) $(if $(filter preload/%,$<),$(PRELOAD_FLAGS)) $(if $(filter shim/cli/%,$<),$(CLI_FLAGS)) -MMD -MP -c -o $@ $<

$(BUILD)/libshim.a: $(SHIM_OBJ)
	@rm -f $@
	$(AR) rcs $@ $^

$(BUILD)/libbreaker.so: $(PRELOAD_OBJ) $(BUILD)/libshim.a preload/libbreaker.map
	$(CC) $(CFLAGS) $(SANFLAGS) -shared -Wl,-soname,libbreaker.so -Wl,--version-script=preload/libbreaker.map \
	    -Wl,--exclude-libs,ALL -Wl,--as-needed $(if $(SANITIZE),,-Wl,-z,defs) -Wl,-z,relro \
	    -Wl,--gc-sections $(LDFLAGS) -o $@ $(PRELOAD_OBJ) $(BUILD)/libshim.a $(INIH)

$(BUILD)/breaker: $(CLI_OBJ) $(BUILD)/libshim.a
	$(CC) $(CFLAGS) $(SANFLAGS) $(LDFLAGS) -o $@ $^ $(INIH)

$(BUILD)/tests/unit/%: tests/unit/%.c $(BUILD)/libshim.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -Itests/unit $(CFLAGS) -std=gnu11 $(WARNINGS) $(SANFLAGS) -MMD -MP -o $@ $< $(BUILD)/libshim.a $(INIH) -lcmocka

$(BUILD)/tests/stress/%: tests/stress/%.c $(BUILD)/libshim.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -std=gnu11 $(WARNINGS) $(SANFLAGS) -MMD -MP -o $@ $< $(BUILD)/libshim.a $(INIH) -lcmocka -pthread

$(BUILD)/tests/bench/%: tests/bench/%.c $(BUILD)/libshim.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -std=gnu11 $(WARNINGS) -MMD -MP -o $@ $< $(BUILD)/libshim.a $(INIH) -lcurl -pthread

unit: $(UNIT)
stress: $(STRESS)
benches: $(BENCH)

# --- the README's two commands -------------------------------------------------------------------

demo:
	@scripts/deps demo
	@$(MAKE) --no-print-directory -s all
	@BREAKER_BUILD=$(abspath $(BUILD)) scripts/demo

check:
	@scripts/deps check
	@$(MAKE) --no-print-directory -j2 DEVELOPER=1 all unit stress benches
	@$(MAKE) --no-print-directory check-static
	@$(MAKE) --no-print-directory check-cross
	@$(MAKE) --no-print-directory check-unit
	@$(MAKE) --no-print-directory check-sanitizers
	@$(MAKE) --no-print-directory check-clients

# What the sources and the built objects must and must not contain.
check-static:
	@scripts/check-selftest
	@scripts/check-format
	@scripts/check-layers
	@scripts/check-headers
	@scripts/check-imports $(BUILD)
	@scripts/check-exports $(BUILD)/libbreaker.so
	@scripts/check-glibc $(BUILD)/libbreaker.so
	@scripts/check-tail-jumps $(BUILD)/libbreaker.so
	@scripts/check-sizes

check-unit: unit stress
	@set -e; for t in $(UNIT) $(STRESS); do echo "== $$t"; $$t; done

# clang, -O0 and aarch64: everything compiles, and the tail jumps stay jumps.
check-cross:
	@$(MAKE) --no-print-directory -s -j2 DEVELOPER=1 CC=clang BUILD=$(BUILD)/clang all unit
	@scripts/check-tail-jumps $(BUILD)/clang/libbreaker.so
	@$(MAKE) --no-print-directory -s -j2 DEVELOPER=1 CFLAGS='-O0 -g' BUILD=$(BUILD)/O0 all
	@scripts/check-tail-jumps $(BUILD)/O0/libbreaker.so
	@scripts/cross-headers $(BUILD)/aarch64/include
	@$(MAKE) --no-print-directory -s -j2 DEVELOPER=1 CC=aarch64-linux-gnu-gcc AR=aarch64-linux-gnu-ar \
	    BUILD=$(BUILD)/aarch64 CFLAGS='-O2 -g -isystem $(BUILD)/aarch64/include' \
	    INIH='$(BUILD)/aarch64/include/ini-stub.o' $(BUILD)/aarch64/libbreaker.so $(BUILD)/aarch64/breaker
	@OBJDUMP=aarch64-linux-gnu-objdump scripts/check-tail-jumps $(BUILD)/aarch64/libbreaker.so

# Warnings are no errors here: gcc's flow warnings are wrong on instrumented code.
check-sanitizers:
	@$(MAKE) --no-print-directory -s -j2 CFLAGS='-O1 -g -w' SANITIZE=address,undefined BUILD=$(BUILD)/asan unit stress
	@set -e; for t in $(patsubst $(BUILD)/%,$(BUILD)/asan/%,$(UNIT) $(STRESS)); do echo "== $$t"; \
	    UBSAN_OPTIONS=halt_on_error=1 $$t; done
	@$(MAKE) --no-print-directory -s -j2 CFLAGS='-O1 -g -w' SANITIZE=thread BUILD=$(BUILD)/tsan unit
	@set -e; for t in $(patsubst $(BUILD)/%,$(BUILD)/tsan/%,$(UNIT)); do echo "== $$t"; $$t; done

check-clients: all benches
	@BREAKER_BUILD=$(abspath $(BUILD)) $(PYTHON) -m pytest -q -p no:cacheprovider tests

# Not in check: minutes.
check-valgrind: all
	@scripts/deps check
	@BREAKER_CHECK_VALGRIND=1 BREAKER_BUILD=$(abspath $(BUILD)) $(PYTHON) -m pytest -q -p no:cacheprovider \
	    tests/preload/test_curl_valgrind.py

bench:
	@scripts/deps bench
	@$(MAKE) --no-print-directory -s -j2 all benches
	@BREAKER_BUILD=$(abspath $(BUILD)) $(PYTHON) tests/bench/run

install: all
	install -D -m 755 $(BUILD)/breaker "$(DESTDIR)$(PREFIX)/bin/breaker"
	install -D -m 644 $(BUILD)/libbreaker.so "$(DESTDIR)$(PREFIX)/$(LIB)/breaker/libbreaker.so"
	install -D -m 644 docs/breaker.1 "$(DESTDIR)$(PREFIX)/share/man/man1/breaker.1"
	install -D -m 644 breaker.ini "$(DESTDIR)$(PREFIX)/share/doc/breaker/breaker.ini"

clean:
	rm -rf $(BUILD)

format:
	clang-format -i $(shell git ls-files 'shim/*.[ch]' 'preload/*.[ch]' 'tests/*.[ch]')

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
