"""The C programs on libssl, and a real client of each kind, under valgrind: nothing of ours is read or written that is not
there. Minutes, so not in `make check`: `make check-valgrind`."""

import re

import pytest

from sock_programs import ALL
from test_sock_odd import modes_of
from test_sock_valgrind import VALGRIND, assert_clean
from test_tls_odd import CALLS, NAME, REFUSED, shut, surroundings, tls_program  # noqa: F401
from tls_servers import trust

# What is asked of a blocking system call's number, while valgrind makes it in its own way.
NOT_HERE = {"duplex"}


@pytest.mark.parametrize("name, mode", [(name, mode) for name, mode in modes_of({**CALLS, "refused": REFUSED})
                                        if mode not in NOT_HERE])
@pytest.mark.time_limit(120)
def test_programs(name, mode, tls_program, breaker_env, shut, surroundings):  # noqa: F811
    assert_clean(breaker_env.run(*VALGRIND, "--leak-check=full", "--errors-for-leak-kinds=definite", tls_program(name), mode,
                                 shut.port, env=surroundings, timeout=100))


@pytest.mark.parametrize("name, mode", [("handshakes", "early"), ("handshakes", "renegotiated"), ("carriers", "paired"),
                                        ("carriers", "datagrams")])
@pytest.mark.time_limit(120)
def test_features(name, mode, tls_program, breaker_env, surroundings):  # noqa: F811
    assert_clean(breaker_env.run(*VALGRIND, "--leak-check=full", "--errors-for-leak-kinds=definite", tls_program(name), mode,
                                 env=surroundings, timeout=100))


@pytest.mark.parametrize("name", ["http.client", "httpx-async", "ruby", "lwp", "php"])
@pytest.mark.time_limit(180)
def test_clients(name, breaker_env, shut, authority):  # noqa: F811
    """Two calls that go through, two that are refused. What the program itself does there is its own."""
    for model in ("m", "shut"):
        done = breaker_env.run("valgrind", "--fullpath-after=", *ALL[name].argv, shut.url(name=NAME), "2", model,
                               env={**trust(authority), "PYTHONMALLOC": "malloc"}, timeout=150)
        ours = re.findall(rb"(?:at|by) 0x[^\n]*/(?:preload|shim)/[a-z_/]+\.c:[^\n]*", done.stderr)
        assert not ours, b"\n".join(ours).decode(errors="replace")[-4000:]
        assert b"ERROR SUMMARY" in done.stderr and (b"circuit_open" in done.stdout) == (model == "shut"), done
    assert [request.model for request in shut.seen()] == ["m", "m"]
