"""Issue 3, item 6: what the socket layer costs where it has nothing to do, and where all is well, as counts.

Instructions and system calls are the same on each run; the ns are for `make bench`. Each count has a
twin that commits the deed, to show that it would be seen.
"""

import os
import re
import subprocess
from pathlib import Path

import callgrind
import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
# Of our own in a call on a descriptor that is nobody's: 5 ns at 3 GHz are 15 cycles, in each of which such code gets
# three instructions or more done. (A frame of ours that a system call returns to costs more: `make bench` tells.)
INSTRUCTIONS = 50
POST_INSTRUCTIONS = 4400, 6490  # of our own in a POST of 2 KB, on a kept connection and on one of its own
# Hooked, yet no call on a descriptor: loading a library, resolving a name, making a child.
NOT_ON_DESCRIPTORS = {"dlopen", "dlsym", "getaddrinfo", "vfork", "_Fork", "clone"}
# One look a second at the configuration is allowed.
LOOKS = {"newfstatat", "stat", "statx"}


def hooked():
    """The functions of libc that hooks.def names."""
    text = (REPOSITORY / "preload/hooks.def").read_text()
    return set(re.findall(r"^LIBC_HOOK\w*\((?:[^,()]+, *)?(\w+)[,)]", text, re.M))


def compiled(directory, name, source):
    library = directory / f"{name}.so"
    code = directory / f"{name}.c"
    code.write_text(source)
    subprocess.run([os.environ.get("CC", "cc"), "-D_GNU_SOURCE", "-shared", "-fPIC", "-O2", "-o", library, code],
                   check=True, timeout=50)
    return library


@pytest.fixture
def program(benches, breaker_env):
    """A bench program, with or without a library under it, maybe under a tracer, which itself runs bare."""

    def run(name, *args, preload=None, tracer=(), input=None):
        command = [*map(str, tracer), str(benches / name), *map(str, args)]
        environment = breaker_env.environment
        if preload and tracer:
            command[len(tracer):len(tracer)] = ["-E", f"LD_PRELOAD={preload}"]
        elif preload:
            environment = {**environment, "LD_PRELOAD": str(preload)}
        done = subprocess.run(command, env=environment, input=input, capture_output=True, text=True, timeout=50)
        if done.returncode == 77:
            pytest.skip("this machine cannot count instructions by single-stepping")
        assert done.returncode == 0 and not done.stderr, done
        return done.stdout

    return run


@pytest.fixture
def system_calls_of(tmp_path, program):
    """{name: calls} of a whole run, as strace -c counts them."""

    def count(*args, **options):
        report = tmp_path / "strace"
        program(*args, tracer=["strace", "-f", "-c", "-o", report], **options)
        rows = re.findall(r"^ *[\d.]+ +[\d.]+ +\d+ +(\d+) +(?:\d+ +)?([a-z_0-9]+)$", report.read_text(), re.M)
        assert rows, report.read_text()
        return {name: int(calls) for calls, name in rows if name != "total"}

    return count


def difference(few, many):
    return {name: many.get(name, 0) - few.get(name, 0) for name in {*few, *many}
            if many.get(name, 0) != few.get(name, 0)}


# --- descriptors that are nobody's -------------------------------------------------------------------


@pytest.fixture
def ways(program):
    """{way: the functions that one round of it calls}."""
    return {name: functions for name, *functions in
            (line.split() for line in program("bench_descriptor", "ways").splitlines())}


@pytest.fixture
def instructions_more(program):
    """{way: instructions of one round over the same through libc alone}."""

    def count(preload=None):
        out = program("bench_descriptor", "instructions", preload=preload)
        return {name: int(seen) - int(bare) for name, bare, seen in (line.split() for line in out.splitlines())}

    return count


def test_each_hooked_call_is_measured(ways):
    measured = {function for functions in ways.values() for function in functions}
    assert hooked() - NOT_ON_DESCRIPTORS, "hooks.def names none: it is written in another way"
    assert hooked() - NOT_ON_DESCRIPTORS <= measured


def test_a_call_that_is_let_pass_costs_few_instructions(ways, instructions_more, breaker_env):
    more = instructions_more(breaker_env.library)
    assert more.keys() == ways.keys()
    over = {name: count for name, count in more.items() if count > INSTRUCTIONS * len(ways[name])}
    assert not over, more


def test_hooked_calls_and_no_others_cost_instructions(ways, instructions_more, breaker_env):
    """Or the program compares libc with libc, and nothing above is true."""
    more = instructions_more(breaker_env.library)
    ours = hooked()
    assert {name for name, count in more.items() if count > 0} == \
        {name for name, functions in ways.items() if ours & set(functions)}


def test_without_us_nothing_differs(instructions_more):
    assert set(instructions_more().values()) == {0}


def test_a_costly_hook_would_be_seen(tmp_path, ways, instructions_more):
    costly = compiled(tmp_path, "costly", """
        #include <dlfcn.h>
        #include <unistd.h>
        ssize_t read(int fd, void *buffer, size_t count)
        {
            static ssize_t (*real)(int, void *, size_t);
            if (!real)
                *(void **)&real = dlsym(RTLD_NEXT, "read");
            for (int i = 0; i < 80; i++)
                __asm__ volatile("");
            return real(fd, buffer, count);
        }""")
    more = instructions_more(costly)
    reads = {name for name, functions in ways.items() if "read" in functions}
    assert {name for name, count in more.items() if count > INSTRUCTIONS} == reads and reads


# What stands behind us: notes who calls it, by where it returns to.
BEHIND = """
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int is_ours(void *address)
{
    Dl_info where;
    return dladdr(address, &where) && strstr(where.dli_fname, "libbreaker.so");
}
#define BEHIND(name)                                                                                 \\
    static unsigned long calls_##name, ours_##name;                                                  \\
    long behind_##name(long a, long b, long c, long d, long e, long f, long g) __asm__(#name);       \\
    long behind_##name(long a, long b, long c, long d, long e, long f, long g)                       \\
    {                                                                                                \\
        static long (*real)(long, long, long, long, long, long, long);                               \\
        if (!real)                                                                                   \\
            *(void **)&real = dlsym(RTLD_NEXT, #name);                                               \\
        calls_##name++;                                                                              \\
        ours_##name += is_ours(__builtin_return_address(0));                                         \\
        return real(a, b, c, d, e, f, g);                                                            \\
    }
%(definitions)s
__attribute__((destructor)) static void tell(void)
{
    FILE *out = fopen(getenv("BEHIND_TELLS"), "we");
%(reports)s
    fclose(out);
}
"""


def test_a_call_that_is_let_pass_is_a_jump(tmp_path, ways, program, breaker_env):
    """A frame of ours under a system call costs more than all else that a hook does."""
    functions = sorted(hooked() & {function for functions in ways.values() for function in functions})
    told = tmp_path / "told"
    behind = compiled(tmp_path, "behind", BEHIND % {
        "definitions": "\n".join(f"BEHIND({name})" for name in functions),
        "reports": "\n".join(f'    fprintf(out, "{name} %lu %lu\\n", calls_{name}, ours_{name});'
                             for name in functions)})
    breaker_env.environment["BEHIND_TELLS"] = str(told)
    program("bench_descriptor", "calls", 100, preload=f"{breaker_env.library}:{behind}")
    counts = {name: (int(calls), int(ours)) for name, calls, ours in map(str.split, told.read_text().splitlines())}
    assert counts.keys() == set(functions) and all(calls >= 100 for calls, _ in counts.values()), counts
    # Some are our own: the connect that the program makes is tracked, and its first write looked at.
    assert not {name: ours for name, (_, ours) in counts.items() if ours > 10}, counts


def test_a_call_that_is_let_pass_makes_no_further_system_call(system_calls_of, breaker_env):
    bare, ours = (difference(*(system_calls_of("bench_descriptor", "calls", count, preload=preload)
                               for count in (10, 310))) for preload in (None, breaker_env.library))
    assert bare["read"] >= 900 and ours == bare
    assert not breaker_env.table.exists()


def test_a_further_system_call_would_be_seen(tmp_path, system_calls_of):
    curious = compiled(tmp_path, "curious", """
        #include <dlfcn.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        int dup(int fd)
        {
            static int (*real)(int);
            if (!real)
                *(void **)&real = dlsym(RTLD_NEXT, "dup");
            syscall(SYS_gettid);
            return real(fd);
        }""")
    more = difference(*(system_calls_of("bench_descriptor", "calls", count, preload=curious) for count in (10, 310)))
    assert more["gettid"] == 600  # two ways call it


# --- a healthy call over a plain socket --------------------------------------------------------------


@pytest.fixture
def posts(program, provider):
    """bench_sock: `count` POSTs, over one connection or a new one each."""

    def run(count, preload=None, fresh=False, runner=program, **options):
        out = runner("bench_sock", provider.port, "/v1/chat/completions", *(["fresh"] if fresh else []),
                     preload=preload, input=f"{count}\n", **options)
        if runner is program:
            took, status, marked, connects = map(int, out.split())
            assert (status, marked, connects) == (200, 0, count if fresh else 1), out
        return out

    return run


# recv may be called once or twice for one answer, as the bytes come in.
COMES_IN_PIECES = {"recvfrom"}


@pytest.mark.parametrize("fresh", [False, True], ids=["kept connection", "new connections"])
def test_a_healthy_post_makes_no_further_system_call(fresh, posts, system_calls_of, provider, breaker_env):
    posts(1, breaker_env.library)  # makes the table
    bare, ours = (difference(*(posts(count, preload, fresh, runner=system_calls_of) for count in (20, 420)))
                  for preload in (None, breaker_env.library))
    assert breaker_env.calls(provider.key("bench"))["success"] == 441
    assert bare["sendto"] == 400
    more = {name: ours.get(name, 0) - bare.get(name, 0) for name in {*ours, *bare} - COMES_IN_PIECES - LOOKS}
    assert not any(more.values()), (ours, bare)


@pytest.mark.parametrize("fresh", [False, True], ids=["kept connection", "new connections"])
def test_a_healthy_post_allocates_nothing(fresh, posts, tmp_path, provider, breaker_env):
    counter = compiled(tmp_path, "counter", (REPOSITORY / "tests/bench/lib/count_allocations.c").read_text())
    told = tmp_path / "allocations"
    breaker_env.environment["COUNT_ALLOCATIONS"] = str(told)

    def allocations(count):
        posts(count, f"{breaker_env.library}:{counter}", fresh)
        return int(told.read_text())

    few = allocations(20)
    assert few > 0, "the counter counts: the program's stdio allocates"
    assert allocations(420) - few == 0
    assert breaker_env.calls(provider.key("bench"))["success"] == 440


@pytest.mark.time_limit(120)
@pytest.mark.parametrize("fresh", [False, True], ids=["kept connection", "new connections"])
def test_a_kept_post_costs_few_instructions(fresh, benches, tmp_path, provider, breaker_env):
    callgrind.check_posts(benches / "bench_sock", [provider.port, "/v1/chat/completions"], POST_INSTRUCTIONS, fresh,
                          provider, breaker_env, tmp_path)
