"""Issue 7, fault injection: every call that libbreaker.so makes of libc and the loader is made to fail in turn. What the
application then sees is what it sees without us, or, where it was to be refused or led elsewhere, one of the ways in
which a call may end. Nothing is printed, no descriptor is lost.

Of each function one call fails, or it and all later ones. In `make check` that call is one of the first EVERY, then one
in STEP; BREAKER_CHECK_FAULTS=1 takes every one.
"""

import os
import platform
import re
import struct
import subprocess
from pathlib import Path

import pytest

from fallbacks import Fallback, addressed
from provider import Answer
from support import PYTHON

HERE = Path(__file__).parent
POSTS = HERE / "clients" / "posts.py"
EXHAUSTIVE = bool(os.environ.get("BREAKER_CHECK_FAULTS"))
EVERY, STEP = 2, 17

# Imports that are not made to fail, and why.
NEVER = {
    "cannot fail": """memchr memcmp memcpy memmem memmove mempcpy memrchr memset explicit_bzero strcasestr strchr strcmp strcspn
        strlen strncasecmp strncmp strnlen strpbrk strrchr strspn strstr strtol snprintf inet_aton inet_pton getenv getauxval
        getpid sched_yield sigaddset sigemptyset sigismember __ctype_b_loc __errno_location
        pthread_setcancelstate pthread_once""",
    "fails only for arguments that we do not pass": "clock_gettime pthread_mutex_init pthread_mutex_lock pthread_mutex_unlock",
    "nobody asks what came of it": "free fclose dlclose dlerror",
    "of the application's own stream, in its name": "fwrite fread",
    "data": "__environ __libc_single_threaded environ __progname program_invocation_short_name stdin stdout",
    "the compiler's and the linker's": "__stack_chk_fail __cxa_finalize __gmon_start__ _ITM_deregisterTMCloneTable "
                                       "_ITM_registerTMCloneTable",
}

# The loader does not stop to answer: it has no memory for one answer, or does not know of one object.
ONCE = ("dlvsym", "dladdr1", "dl_iterate_phdr")

pytestmark = [pytest.mark.time_limit(1800 if EXHAUSTIVE else 60),
              pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="faults/fault.c: no such machine")]


@pytest.fixture(scope="module")
def fault(compile_c):
    return compile_c(HERE / "faults" / "fault.c", "-O2", "-shared", "-fPIC", name="fault.so")


@pytest.fixture(scope="module")
def names(fault):
    done = subprocess.run([PYTHON, "-c", f"import ctypes; ctypes.CDLL({str(fault)!r}).fault_names()"], capture_output=True,
                          text=True, timeout=20)
    return done.stdout.split()


@pytest.fixture(scope="module")
def program(compile_c):
    return compile_c(HERE / "faults" / "client.c", "-I", HERE / "sock", "-I", HERE / "tls", "-lcurl", "-lssl", "-lcrypto",
                     "-pthread", name="fault-client")


def test_each_import_is_decided_on(build, names):
    done = subprocess.run(["nm", "-D", "--undefined-only", build / "libbreaker.so"], capture_output=True, text=True, check=True)
    imports = set(re.findall(r" [Uw] ([^@\s]+)", done.stdout))
    left = {name for group in NEVER.values() for name in group.split()}
    assert imports - set(names) - left == set(), "make them fail in faults/fault.c, or say here why not"
    assert left - imports == set(), "no longer imported"
    assert left & set(names) == set()


def seen(done):
    return done.returncode, done.stdout.decode(), done.stderr.decode()


class Faults:
    def __init__(self, breaker_env, fault, names, program, directory):
        self.breaker_env, self.names, self.program = breaker_env, names, program
        self.report = directory / "report"
        self.table = breaker_env.table
        self.preload = f"{breaker_env.library} {fault}"
        self.input, self.every = b"", EVERY

    def run(self, *words, function="none", nth=0, sticky=False):
        """(exit status, output, errors), how often each function was called, and who was made to fail."""
        self.report.write_bytes(bytes(4096))
        environment = self.breaker_env.preloaded(LD_PRELOAD=self.preload, LD_BIND_NOW="1", FAULT_FUNCTION=function,
                                                 FAULT_NTH=str(nth), FAULT_REPORT=str(self.report),
                                                 **({"FAULT_STICKY": "1"} if sticky else {}))
        done = subprocess.run([self.program, *map(str, words)], env=environment, input=self.input, capture_output=True,
                              timeout=40)
        caller, *calls = struct.unpack_from(f"<{1 + len(self.names)}q", self.report.read_bytes())
        return seen(done), dict(zip(self.names, calls)), caller

    def bare(self, *words):
        return seen(self.breaker_env.run_bare(self.program, *words, input=self.input))

    def each(self, *words, fresh=True):
        """(WHICH, what came of it) of each way to fail one of its calls."""
        clean, calls, _ = self.run(*words)
        assert clean[0] == 0 and clean[2] == "", clean
        failed = 0
        for function, number in calls.items():
            for nth in range(1, number + 1):
                for sticky in (False, True):
                    if sticky and function in ONCE or not (EXHAUSTIVE or self.is_chosen(nth, sticky)):
                        continue
                    if fresh:
                        self.table.unlink(missing_ok=True)
                    done, _, caller = self.run(*words, function=function, nth=nth, sticky=sticky)
                    failed += caller != 0
                    yield (function, f"{nth}{' and all after' if sticky else ''} of {number}", caller), done

        assert failed > 20, f"only {failed} calls were made to fail"

    def is_chosen(self, nth, sticky):
        return nth == 1 or not sticky and (nth <= self.every or nth % STEP == 0)

    def assert_none(self, wrong):
        """What went wrong, with the line of the call that was made to fail."""
        told = []
        for (function, which, caller), done in wrong:
            place = subprocess.run(["addr2line", "-s", "-f", "-i", "-e", self.breaker_env.library, hex(caller - 1)],
                                   capture_output=True, text=True).stdout.split() if caller else ["nobody"]
            told.append(f"{function} {which}, by {' '.join(place)}: {done}")
        assert not told, "\n".join(told)

    def assert_like(self, clean, lines, *words):
        """Each ends well and silently with lines like these, and keeps no descriptor more than without a fault."""
        kept = max(int(clean.split()[-1]), 2 if words[0] in ("curl", "read") else 0)  # synth_pair.h: of an answer of ours

        def is_like(function, done):
            code, output, error = done
            *said, descriptors = output.splitlines() or [""]
            # Whose socket it is cannot be told then: the connection of a refused call ends without an answer, and ends
            # of our own are left open, or they might be another's.
            if function in ("getsockopt", "getpeername"):
                said = [line.replace("shut status 0 0", "shut status 503 0") for line in said]
            return (code, error, len(said)) == (0, "", len(lines)) and all(map(re.fullmatch, lines, said)) \
                and int(descriptors.removeprefix("descriptors ")) <= kept + 2 * (function == "fstat")

        self.assert_none((which, done) for which, done in self.each(*words, fresh=False) if not is_like(which[0], done))


@pytest.fixture
def faults(breaker_env, fault, names, program, tmp_path):
    return Faults(breaker_env, fault, names, program, tmp_path)


FINE = r"fine status 200 \d+"
PROGRAMS = ("curl", "multi", "read", "socket", "tls")


@pytest.fixture
def server(provider, tls_provider):
    def choose(how):
        one = tls_provider if how == "tls" else provider
        one.answer(Answer(500), model="bad")
        one.answer(Answer(429, {"Retry-After": "5"}), model="busy")
        return one

    return choose


def port_of(server):
    return server.key().rpartition(":")[2]


@pytest.mark.parametrize("how", PROGRAMS)
def test_a_call_that_passes(how, server, faults):
    """The table and all else is made by the first of them."""
    words = [how, port_of(server(how)), "fine", "bad", "busy", "fine"]
    bare = faults.bare(*words)
    faults.assert_none((which, done) for which, done in faults.each(*words) if done != bare)


# How a call to a refused model may end: by our answer, or as if nobody refused it.
# Where libcurl cannot be handed our answer it cannot connect.
REFUSED = {"curl": r"shut (status (503 \d\d+|200 41)|Couldn't connect to server 0 0)", "socket": r"shut status (503|200) 0"}
REFUSED |= {"multi": REFUSED["curl"], "read": REFUSED["curl"], "tls": REFUSED["socket"]}


@pytest.mark.parametrize("how", PROGRAMS)
def test_a_call_that_is_refused(how, server, faults, breaker_env):
    one = server(how)
    breaker_env.configure(open_seconds=600)
    for name in ("127.0.0.1", "localhost"):
        breaker_env.command("trip", "--create", f"{name}:{port_of(one)}/shut")
    words = [how, port_of(one), "shut", "fine", "shut"]
    clean = faults.run(*words)[0][1]
    assert clean.count("status 503") == 2, clean
    faults.assert_like(clean, [REFUSED[how], FINE, REFUSED[how]], *words)


@pytest.mark.parametrize("how", ("curl", "socket", "tls"))
def test_a_host_that_is_refused(how, server, faults, breaker_env):
    """A connect is refused, or made."""
    one = server(how)
    breaker_env.configure(open_seconds=600)
    for name in ("127.0.0.1", "localhost"):
        breaker_env.command("trip", "--create", f"{name}:{port_of(one)}")
    words = [how, port_of(one), "shut", "shut"]
    clean = faults.run(*words)[0][1]
    line = r"shut (status (503|200) \d+|refused 0 0|Couldn't connect to server 0 0)"
    assert "status 200" not in clean
    faults.assert_like(clean, [line, line], *words)


@pytest.mark.parametrize("how", PROGRAMS)
def test_a_call_that_is_led_elsewhere(how, server, providers, authority, faults, breaker_env):
    """There, refused, or as if nobody refused it; the primary's credential stays with the primary."""
    one = server(how)
    other = providers(tls=authority.server()) if how == "tls" else providers()
    other.answer(Answer(200, body=b"elsewhere"))
    names = ("127.0.0.1", "localhost")
    targets = "".join(f"[target {name}:{port_of(one)}]\nfallback = second\n" for name in names)
    breaker_env.environment["SECOND_KEY"] = "sk-second"
    breaker_env.configure(f"{targets}{Fallback('second', other).section()}", open_seconds=600)
    for name in names:
        breaker_env.command("trip", "--create", f"{name}:{port_of(one)}/shut")
    words = [how, port_of(one), "shut", "fine", "shut"]
    clean = faults.run(*words)[0][1]
    assert how not in ("curl", "multi") or clean.count("shut status 200 9") == 2, clean
    line = r"shut (status (200 (9|41|0)|503 \d+)|Couldn't connect to server 0 0)"
    faults.assert_like(clean, [line, FINE, line], *words)
    assert other.count() > 0 or how not in ("curl", "multi")
    for request in other.seen():
        assert b"0f-the-primary" not in request.raw and b"0f-the-primary" not in str(request.headers).encode()


@pytest.mark.parametrize("how", ("curl", "socket", "named", "tls"))
def test_a_connect_that_is_led_elsewhere(how, server, providers, authority, faults, breaker_env):
    """To another address, refused, or as if nobody refused it."""
    one = server(how)
    other = providers(tls=authority.server()) if how == "tls" else providers()
    other.answer(Answer(200, body=b"elsewhere"))
    names = ("127.0.0.1", "localhost")
    there = other.key(name="localhost" if how == "named" else None)
    breaker_env.configure("".join(addressed(one.key(name=name), there) for name in names), open_seconds=600)
    for name in names:
        breaker_env.command("trip", "--create", one.key(name=name))
    words = [how, port_of(one), "shut", "shut"]
    (_, clean, _), calls, _ = faults.run(*words)
    assert clean.count("status 200 ") == other.count() == 2 and one.count() == 0, clean
    assert (calls["getaddrinfo"] > 0) == (how == "named"), calls
    line = r"shut (status (200 (9|41|0)|503 \d+)|refused 0 0|Couldn't connect to server 0 0)"
    faults.assert_like(clean, [line, line], *words)


@pytest.mark.parametrize("how", ("curl", "multi"))
def test_a_failure_that_is_led_elsewhere(how, provider, providers, faults, breaker_env):
    """In the same call; else the failure is the application's."""
    other = providers()
    other.answer(Answer(200, body=b"elsewhere"))
    target = f"[target {provider.key(name='localhost')}]\nfallback = second\n"
    breaker_env.configure(target + Fallback("second", other).section(), failure_threshold=0)
    breaker_env.environment["SECOND_KEY"] = "sk-second"
    provider.refuse()
    words = [how, port_of(provider), "fine", "fine"]
    clean = faults.run(*words)[0][1]
    assert clean.count("fine status 200 9") == 2, clean
    line = r"fine (status 200 9|Couldn't connect to server 0 0)"
    faults.assert_like(clean, [line, line], *words)


def test_a_libcurl_that_an_extension_brought(provider, faults):
    """Python's pycurl: loaded by dlopen, out of sight of everybody else."""
    faults.program, faults.input, faults.every = PYTHON, b"2\n", 1
    words = [POSTS, "pycurl", provider.url()]
    bare = faults.bare(*words)
    faults.assert_none((which, done) for which, done in faults.each(*words) if done != bare)
