"""Calls of the system that few programs make on a connection (sock/unusual_*.c): each behaves with us as it does without, and
the connection stays in sight where it can."""

import re
import subprocess
import threading

import pytest

from recorder import Recorder
from test_sock_odd import SOCK, modes_of, words_of

# What of a mode's calls counts.
MODES = {"unusual_reads": {"fortified": 3, "empty-parts": 3, "messages": 4, "dup3": 3, "far-apart": 3},
         "unusual_writes": {"short-messages": 2, "whole-file": 2, "little-of-a-file": 2, "unreadable-file": 1,
                            "overlong-part": 0, "no-tunnel": 0}}
OTHERS = {"unusual_reads": {"given-up", "given-up-far", "patient"}, "unusual_writes": {"unasked-write", "unasked-shutdown"}}


def answer(request):
    if request.method == "CONNECT":
        return [b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n"]
    return [b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{"ok":true}']


@pytest.fixture
def shut(breaker_env):
    with Recorder(answer) as running:
        breaker_env.configure(open_seconds=60)
        breaker_env.command("trip", "--create", running.key("shut"))
        yield running


@pytest.fixture
def unusual(compile_c):
    def make(name):
        return compile_c(SOCK / f"{name}.c", "-I", SOCK, "-w", "-O2", "-D_FORTIFY_SOURCE=2", name=name)

    return make


def test_every_mode_is_run():
    for name, modes in MODES.items():
        assert set(modes) | OTHERS[name] == set(re.findall(r'\{"([a-z0-9-]+)", ', (SOCK / f"{name}.c").read_text()))


def test_the_program_is_fortified(unusual):
    code = unusual("unusual_reads").read_bytes()
    assert all(name in code for name in (b"\0__read_chk\0", b"\0__recv_chk\0", b"\0__recvfrom_chk\0"))


@pytest.mark.parametrize("name, mode", modes_of(MODES))
def test_unusual(name, mode, unusual, breaker_env, shut):
    command, good = (unusual(name), mode, shut.port), MODES[name][mode]
    assert words_of(breaker_env.run_bare(*command)) == words_of(breaker_env.run(*command)) == ["fine", str(good)]
    calls = breaker_env.calls(shut.key("m"))
    assert (calls["success"], calls["failure"], calls["refused"]) == (good, 0, 0), calls
    assert all(key.startswith(shut.key()) for key in breaker_env.breakers())
    assert breaker_env.calls(shut.key("shut"))["refused"] == 0


@pytest.mark.parametrize("mode, calls", [("unasked-write", 2), ("unasked-shutdown", 0)])
def test_connects_that_nobody_asks_for(mode, calls, unusual, breaker_env, shut):
    """They came about long ago: no hang, and what is written asks the peer."""
    breaker_env.configure(match="all", connect_hang_after=0.3)
    command = (unusual("unusual_writes"), mode, shut.port)
    assert words_of(breaker_env.run_bare(*command)) == words_of(breaker_env.run(*command)) == ["fine", str(calls)]
    assert breaker_env.calls(shut.key("m"))["success"] == calls
    host = breaker_env.calls(shut.key())
    assert (host["success"] > 0, host["failure"]) == (calls > 0, 0), host


@pytest.mark.parametrize("told", [True, False], ids=["kernel tells", "kernel does not tell"])
@pytest.mark.parametrize("mode, wait, calls", [("given-up", 10, 0), ("given-up-far", 10, 0), ("patient", 0.5, 1)])
def test_where_the_kernel_tells_nothing_of_a_connection(mode, wait, calls, told, unusual, compile_c, breaker_env):
    """Sandboxes that are a kernel of their own need not know TCP_INFO: a hang and a late answer are what the program saw."""
    behind = compile_c(SOCK / "untold.c", "-shared", "-fPIC", name="untold.so")
    breaker_env.configure(hang_after=0.5, slow_first_byte=0.3)
    over = threading.Event()
    with Recorder(lambda request: over.wait(wait) and [] or answer(request)) as server:
        preload = str(breaker_env.library) if told else f"{breaker_env.library}:{behind}"
        done = subprocess.run([unusual("unusual_reads"), mode, str(server.port)], env=breaker_env.preloaded(LD_PRELOAD=preload),
                              cwd=breaker_env.directory, capture_output=True, timeout=30)
        over.set()
        assert words_of(done) == ["fine", str(calls)]
        counted = breaker_env.calls(server.key("m"))
        assert (counted["success"], counted["failure"], counted["neutral"]) == (0, 1, 0), counted
