"""C programs that do odd things with libssl (tls/*.c): each behaves with us as it does without, and its calls count.

As those of test_sock_odd.py they are strict themselves: errno and the error queue are kept by what succeeds.
"""

import re
from pathlib import Path

import pytest

from test_sock_odd import modes_of, words_of
from tls_servers import Tunnel

TLS = Path(__file__).with_name("tls")
NAME = "localhost"
# What of a mode's calls counts, where that is not all it prints.
CALLS = {"calls": {"plain": 3, "ex": 1, "implicit": 2, "implicit-read": 1, "whole-writes": 2, "partial-writes": 2, "memory": 3,
                   "memory-reads": 3, "memories": 20, "own-bio": 4, "pipelined": 3, "server-side": 0, "tunnel": 2, "socks": 1},
         "objects": {"clear": 2, "duplicate": 4, "moved": 2, "switched": 2, "close-first": 3, "free-first": 2, "forked": 3,
                     "inherited": 0, "threads": 80, "duplex": 1, "nothing": 1}}
REFUSED = {"plain": 0, "kept": 2, "bits": 0, "polled": 1, "switched": 2, "two-threads": 1, "duplex": 1, "memory": 1,
           "memory-reads": 1, "implicit": 0, "again": 1, "close-first": 0, "free-first": 0, "pipelined": 1}


@pytest.fixture
def tls_program(compile_c):
    def make(name):
        return compile_c(TLS / f"{name}.c", "-I", TLS, "-I", TLS.with_name("sock"), "-w", "-lssl", "-lcrypto", "-pthread",
                         name=f"tls-{name}")

    return make


@pytest.fixture
def shut(breaker_env, tls_provider):
    breaker_env.configure(open_seconds=600)  # valgrind is slow
    breaker_env.command("trip", "--create", tls_provider.key("shut", NAME))
    return tls_provider


@pytest.fixture
def surroundings(authority):
    with Tunnel() as tunnel:
        yield {"CERTIFICATE": str(authority.certificate), "KEY": str(authority.key), "PROXY": str(tunnel.port)}


def test_every_mode_is_run():
    for name, modes in {**CALLS, "refused": REFUSED}.items():
        assert set(modes) == set(re.findall(r'\{"([a-z-]+)", ', (TLS / f"{name}.c").read_text()))


@pytest.mark.parametrize("name, mode", modes_of(CALLS))
def test_calls(name, mode, tls_program, breaker_env, shut, surroundings):
    command = (tls_program(name), mode, shut.port)
    assert words_of(breaker_env.run_bare(*command, env=surroundings)) == \
        words_of(breaker_env.run(*command, env=surroundings))
    calls = breaker_env.calls(shut.key("m", NAME))
    assert (calls["success"], calls["failure"], calls["refused"]) == (CALLS[name][mode], 0, 0), calls
    assert breaker_env.calls(shut.key("unseen", NAME))["success"] == 0


@pytest.mark.parametrize("mode", REFUSED)
def test_refused(mode, tls_program, breaker_env, shut):
    done = breaker_env.run(tls_program("refused"), mode, shut.port)
    assert words_of(done) == ["fine", str(REFUSED[mode])]
    calls = breaker_env.calls(shut.key("m", NAME))
    assert (calls["success"], calls["failure"]) == (REFUSED[mode], 0), calls
    assert shut.count(model="shut") == 0 and breaker_env.calls(shut.key("shut", NAME))["refused"] > 0
