"""Healthy calls cost nothing that can be counted: no system call, allocation, lock, or store to the word.

Ratios of time are for `make bench`; these hold on any machine. Each has a twin that commits the deed, to
show that it would be seen.
"""

import os
import re
import subprocess
from pathlib import Path

import callgrind
import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
# Of our own in a POST of 2 KB, on a kept connection and on one of its own.
POST_INSTRUCTIONS, TLS_POST_INSTRUCTIONS = (3960, 4210), (4310, None)
# One look a second at the configuration is allowed, and what the clocks need where no vDSO serves them.
LOOKS = {"newfstatat", "stat", "statx"}
# libcurl's own waiting: how often depends on how the bytes came in.
WAITING = {"poll", "ppoll", "recvfrom", "recvmsg", "read", "rt_sigaction", "rt_sigprocmask"}


@pytest.fixture
def witness(benches, breaker_env):
    program = benches / "bench_healthy"

    def run(*args, code=0, before=()):
        done = subprocess.run([*map(str, before), str(program), *map(str, args)], env=breaker_env.environment,
                              capture_output=True, text=True, timeout=50)
        if done.returncode == 77:
            pytest.skip("this machine cannot single-step stores")
        assert done.returncode == code, done.stderr
        return [int(word) for word in done.stdout.split()]

    return run


def system_calls(report):
    """strace -c's table as {name: calls}."""
    rows = re.findall(r"^ *[\d.]+ +[\d.]+ +\d+ +(\d+) +(?:\d+ +)?([a-z_0-9]+)$", report.read_text(), re.M)
    return {name: int(calls) for calls, name in rows if name != "total"}


@pytest.fixture
def system_calls_of(tmp_path):
    def count(run, *args):
        report = tmp_path / "strace"
        run(*args, before=["strace", "-f", "-c", "-o", report])
        calls = system_calls(report)
        assert calls.get("execve"), report.read_text()
        return calls

    return count


def difference(few, many):
    return {name: many.get(name, 0) - few.get(name, 0) for name in {*few, *many}
            if many.get(name, 0) != few.get(name, 0)}


# --- shim_open, shim_body, shim_admit, shim_settle ---------------------------------------------------


def test_no_system_call(witness, system_calls_of):
    witness("count", 1)  # makes the table
    few, many = (system_calls_of(witness, "count", n) for n in (1000, 300_000))
    more = difference(few, many)
    assert set(more) <= LOOKS and sum(more.values()) <= 30, more


def test_a_system_call_per_call_would_be_seen(witness, system_calls_of):
    witness("count", 1)
    few, many = (system_calls_of(witness, "count", n, "syscall") for n in (100, 1100))
    assert difference(few, many)["getppid"] == 1000


def test_no_allocation_and_no_lock(witness):
    mallocs, locks = witness("count", 200_000)
    assert mallocs == 0
    assert locks <= 10  # a look at the configuration, one a second


@pytest.mark.parametrize("deed, place", [("malloc", 0), ("lock", 1)])
def test_an_allocation_or_a_lock_would_be_seen(witness, deed, place):
    assert witness("count", 1000, deed)[place] >= 1000


def test_no_store_to_the_breakers_word(witness):
    """With the table mapped read-only, each store is noted: two counters of statistics a call, no more."""
    line0, statistics, other = witness("stores", 1000)
    assert (line0, statistics, other) == (0, 2000, 0)


def test_with_a_failure_rate_one_more_for_each_breaker(witness, breaker_env):
    """Into the buckets; the line that all cores share stays as it is."""
    breaker_env.configure(failure_rate=0.5)
    assert witness("stores", 1000) == [0, 2000, 2000]
    assert witness("count", 200_000)[0] == 0


def test_a_store_to_the_word_would_be_seen(witness):
    assert witness("stores", 1000, "word")[0] == 1000


# --- the same below libcurl, in a whole program ------------------------------------------------------


@pytest.fixture
def client(benches, breaker_env, provider):
    """bench_client: `count` POSTs over one connection or a new one each, with or without us, maybe under a tracer."""
    program = benches / "bench_client"

    def run(count, preload, fresh=False, url=None, before=()):
        env = breaker_env.preloaded() if preload else breaker_env.bare
        libraries = [str(lib) for lib in preload]
        if libraries:
            env = {**env, "LD_PRELOAD": ":".join(libraries)}
        tracer = [str(word) for word in before]
        if tracer:  # the tracer itself runs bare
            tracer += ["-E", "LD_PRELOAD=" + ":".join(libraries)] if libraries else []
            env = {k: v for k, v in env.items() if k != "LD_PRELOAD"}
        command = [*tracer, str(program), url or provider.url("/v1/chat/completions"), *(["fresh"] if fresh else [])]
        done = subprocess.run(command, env=env, input=f"{count}\n", capture_output=True, text=True, timeout=50)
        assert done.returncode == 0 and not done.stderr, done
        took, status, marked, connects = map(int, done.stdout.split())
        assert (status, marked, connects) == (200, 0, count if fresh else 1), done.stdout
        return done

    return run


@pytest.fixture
def trusted(authority, breaker_env):
    for environment in (breaker_env.bare, breaker_env.environment):
        environment["SSL_CERT_FILE"] = str(authority.ca)


FEW, MANY = 50, 550  # calls of two runs


@pytest.fixture
def more_system_calls(client, breaker_env, system_calls_of):
    """{name: calls} that the longer of two runs makes more under a preload than bare, but for a few."""

    def more(library, **options):
        bare, ours = (difference(*(system_calls_of(lambda *words, **tracer: client(*words, **options, **tracer), number, preload)
                                   for number in (FEW, MANY))) for preload in ((), (library,)))
        assert sum(bare.get(name, 0) for name in ("sendto", "connect")) >= MANY - FEW
        counts = {name: ours.get(name, 0) - bare.get(name, 0) for name in {*ours, *bare} - WAITING - LOOKS}
        return {name: calls for name, calls in counts.items() if abs(calls) > 10}

    return more


@pytest.mark.parametrize("fresh", [False, True], ids=["kept connection", "new connections"])
def test_libcurl_makes_no_further_system_call(fresh, more_system_calls, breaker_env, provider):
    assert not more_system_calls(breaker_env.library, fresh=fresh)
    assert breaker_env.calls(provider.key("bench"))["success"] == FEW + MANY


def test_libcurl_makes_no_further_system_call_over_tls(more_system_calls, breaker_env, tls_provider, trusted):
    assert not more_system_calls(breaker_env.library, url=tls_provider.url("/v1/chat/completions", name="localhost"))
    assert breaker_env.calls(tls_provider.key("bench", "localhost"))["success"] == FEW + MANY


def test_a_system_call_per_connection_would_be_seen(compile_c, more_system_calls):
    curious = compile_c("""
        #include <dlfcn.h>
        #include <sys/socket.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        int connect(int fd, const struct sockaddr *address, socklen_t length)
        {
            static int (*real)(int, const struct sockaddr *, socklen_t);
            if (!real)
                *(void **)&real = dlsym(RTLD_NEXT, "connect");
            syscall(SYS_gettid);
            return real(fd, address, length);
        }""", "-D_GNU_SOURCE", "-shared", "-fPIC", "-O2", name="curious.so")
    assert more_system_calls(curious, fresh=True) == {"gettid": MANY - FEW}


@pytest.fixture
def allocations_of(tmp_path, client, breaker_env):
    """How often a client's program allocated, told by a preload that counts."""
    library, told = tmp_path / "count.so", tmp_path / "allocations"
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O2", "-o", library,
                    REPOSITORY / "tests/bench/lib/count_allocations.c"], check=True, timeout=50)
    for environment in (breaker_env.bare, breaker_env.environment):
        environment["COUNT_ALLOCATIONS"] = str(told)

    def count(calls, preload):
        client(calls, (*preload, library))
        return int(told.read_text())

    return count


def test_libcurl_allocates_no_more(breaker_env, allocations_of):
    more = {}
    for preload in ((), (breaker_env.library,)):
        few, many = (allocations_of(n, preload) for n in (50, 1050))
        more[bool(preload)] = many - few
    assert more[False] > 1000  # libcurl's own: the counter counts
    assert abs(more[True] - more[False]) <= 20, more


@pytest.mark.time_limit(120)
@pytest.mark.parametrize("fresh", [False, True], ids=["kept connection", "new connections"])
def test_libcurls_post_costs_few_instructions(fresh, benches, tmp_path, provider, breaker_env):
    callgrind.check_posts(benches / "bench_client", [provider.url("/v1/chat/completions")], POST_INSTRUCTIONS, fresh,
                          provider, breaker_env, tmp_path)


@pytest.mark.time_limit(120)
def test_libcurls_post_over_tls_costs_few_instructions(benches, tmp_path, tls_provider, trusted, breaker_env):
    """What the layers below do besides is little: it is libcurl's, and they see that at once."""
    callgrind.check_posts(benches / "bench_client", [tls_provider.url("/v1/chat/completions", name="localhost")],
                          TLS_POST_INSTRUCTIONS, False, tls_provider, breaker_env, tmp_path, name="localhost")
