"""Programs that open their connections and then fence themselves in by seccomp (fence/*.c), so that a system call which
they do not make by themselves ends them: from then on the library makes none, and the process runs uncovered."""

import os
import re
import threading
from pathlib import Path

import pytest

from fallbacks import target_of
from provider import Answer
from test_sock_odd import words_of

FENCE = Path(__file__).with_name("fence")
NAME = "localhost"
ROUNDS = int(os.environ.get("BREAKER_FENCE_ROUNDS", "2"))
# The statuses that each mode tells, and how many of its calls count: those outside of a fence.
MODES = {"strict": (2, 0), "strict-kept": (2, 1), "first": (2, 0), "kept": (3, 1), "by-seccomp": (2, 1),
         "by-syscall-of-prctl": (1, 0), "under-way": (2, 0), "duplicated": (3, 1), "within": (4, 1), "within-at-once": (1, 0),
         "child": (3, 2), "vfork-child": (2, 2), "failing": (3, 3), "others": (1, 1), "thrice": (3, 3), "inherited": (3, None),
         "all-threads": (2, 0), "all-threads-within": (2, 0)}


@pytest.fixture
def fenced(compile_c):
    def make(name, *flags):
        return compile_c(FENCE / f"{name}.c", "-I", FENCE, "-I", FENCE.with_name("sock"), "-I", FENCE.with_name("tls"), "-w",
                         "-pthread", *flags, name=name)

    return make


def assert_same(breaker_env, statuses, *command):
    """With us as without."""
    expected = ["200"] * statuses
    assert words_of(breaker_env.run_bare(*command)) == expected
    assert words_of(breaker_env.run(*command)) == expected


def assert_counted(breaker_env, key, successes):
    calls = breaker_env.calls(key)
    assert (calls["success"], calls["failure"], calls["refused"]) == (successes, 0, 0), calls


def test_every_mode_is_run():
    assert {*MODES, "probe", "refused", "busy-threads"} == set(re.findall(r'\{"([a-z-]+)", ', (FENCE / "fenced.c").read_text()))


@pytest.mark.parametrize("listed", [False, True], ids=["", "listed"])
@pytest.mark.parametrize("mode", MODES)
def test_fenced(mode, listed, fenced, provider, breaker_env):
    """Of a host that is listed the connect is judged, too."""
    statuses, counted = MODES[mode]
    provider.answer(Answer(delay=0.2 if mode.startswith("all-threads") else 0))
    if listed:
        breaker_env.configure(target_of(provider.key()))
    assert_same(breaker_env, statuses, fenced("fenced"), mode, provider.port)
    if counted is not None:  # what another program's fence leaves of it
        assert_counted(breaker_env, provider.key("m"), counted)


@pytest.mark.parametrize("attempt", range(ROUNDS))
def test_all_threads_at_work(attempt, fenced, provider, breaker_env):
    """A fence around all of them comes in the middle of what the library does for each."""
    breaker_env.configure(target_of(provider.key()))
    done = breaker_env.run(fenced("fenced"), "busy-threads", provider.port)
    assert words_of(done) == ["1"]
    calls = breaker_env.calls(provider.key("m"))
    assert calls["success"] >= 90 and calls["failure"] == calls["refused"] == 0, calls


def test_libseccomp(fenced, provider, breaker_env):
    assert_same(breaker_env, 1, fenced("fenced_libseccomp", "-lseccomp"), provider.port)
    assert_counted(breaker_env, provider.key("m"), 1)


@pytest.mark.parametrize("mode, statuses, counted", [("first", 2, 0), ("kept", 3, 1)])
def test_tls(mode, statuses, counted, fenced, tls_provider, breaker_env):
    assert_same(breaker_env, statuses, fenced("fenced_tls", "-lssl", "-lcrypto"), mode, tls_provider.port)
    assert_counted(breaker_env, tls_provider.key("m", NAME), counted)


@pytest.mark.parametrize("mode, told", [("easy", ["200"] * 3), ("multi", ["1", "200"]), ("early", ["0", "200"]),
                                        ("late", ["0", "200"])])
def test_libcurl(mode, told, fenced, provider, breaker_env):
    provider.answer(Answer(delay=0.2))
    command = (fenced("fenced_curl", "-lcurl"), mode, provider.url())
    assert words_of(breaker_env.run_bare(*command)) == told
    assert words_of(breaker_env.run(*command)) == told
    assert_counted(breaker_env, provider.key("m"), 0)


@pytest.mark.parametrize("mode, told", [("early", ["7", "0"]), ("late", ["0", "503"])])
def test_a_refused_call_of_libcurl(mode, told, fenced, provider, breaker_env):
    """Its answer comes through a socket of ours: there is none to be had in the fence, and an end to be left open."""
    breaker_env.configure(open_seconds=60)
    breaker_env.command("trip", "--create", provider.key("m"))
    assert words_of(breaker_env.run(fenced("fenced_curl", "-lcurl"), mode, provider.url())) == told
    assert provider.count() == 0


def test_a_refused_call_of_a_socket(fenced, provider, breaker_env, shut):
    assert words_of(breaker_env.run(fenced("fenced"), "refused", provider.port)) == ["0"]
    assert provider.count() == 0


@pytest.mark.parametrize("layer", ["socket", "libcurl"])
def test_a_probe_is_handed_back(layer, fenced, provider, breaker_env, curl):
    """At once: the next caller is the probe, while the fenced program still waits for its answer."""
    gate = threading.Event()
    provider.answer(Answer(gate=gate))
    breaker_env.make_due(provider.key("m"))
    command = ((fenced("fenced"), "probe", provider.port) if layer == "socket" else
               (fenced("fenced_curl", "-lcurl"), "multi", provider.url()))
    running = breaker_env.start(*command)
    assert running.stdout.readline() == b"1\n"  # the fence is up
    provider.wait_for(1)
    row = breaker_env.breakers()[provider.key("m")]
    assert (row["state"], row["retry_in_ms"]) == ("half_open", 0)
    provider.answer(Answer())
    assert curl(provider.url(), "m").status == 200
    assert breaker_env.state(provider.key("m")) == "closed"
    gate.set()
    out, error = running.communicate(timeout=20)
    assert (running.returncode, out, error) == (0, b"200\n", b"")
    assert_counted(breaker_env, provider.key("m"), 1)


# --- other rights ------------------------------------------------------------------------------------

# Whether what the library needs of files is there afterwards, where the first connection is made then.
DROPPED = ("root", "user", "root-and-user", "landlock", "memory", "files", "descriptors")


def test_every_right_is_dropped():
    assert set(DROPPED) == set(re.findall(r'\{"([a-z-]+)", ', (FENCE / "dropped.c").read_text()))


@pytest.mark.parametrize("when", ["early", "late"])
@pytest.mark.parametrize("right", DROPPED)
def test_other_rights(right, when, fenced, provider, breaker_env):
    """Of a program that gave up files, memory or its user: it goes on as it does without us."""
    if os.geteuid() != 0 and ("root" in right or "user" in right):
        pytest.skip("only root changes its root or user")
    command = (fenced("dropped"), right, when, provider.port)
    bare = breaker_env.run_bare(*command)
    if bare.returncode == 77:
        pytest.skip("this kernel has no landlock")
    assert words_of(bare) == words_of(breaker_env.run(*command)) == ["200"] * 3
    calls = breaker_env.calls(provider.key("m"))
    assert (calls["failure"], calls["refused"]) == (0, 0), calls
