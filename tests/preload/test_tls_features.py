"""What else libssl can do in a connection's life (tls/handshakes.c, tls/carriers.c): each goes on with us as it does without,
and what is counted is what happened."""

import re

import pytest

from test_sock_odd import modes_of, words_of
from test_tls_odd import TLS, tls_program  # noqa: F401

# What of a mode's calls counts. Early data leaves before the peer has spoken, and a connection that began with it is left
# alone; what a BIO of libssl's own carries no hook sees.
CALLS = {"handshakes": {"resumed": 4, "early": 1, "renegotiated": 3, "authenticated-late": 3, "keys-updated": 3},
         "carriers": {"kernel-tls": 2, "not-retried": 2, "asynchronous": 2, "by-bio": 0, "paired": 2, "freed-elsewhere": 2,
                      "datagrams": 0}}


@pytest.fixture
def say(tls_program, breaker_env, authority):  # noqa: F811
    """What a program says of a mode, which is the same with us and without."""
    where = {"CERTIFICATE": str(authority.certificate), "KEY": str(authority.key)}

    def run(name, mode, **more):
        command, env = (tls_program(name), mode), {**where, **more}
        bare = words_of(breaker_env.run_bare(*command, env=env))
        assert words_of(breaker_env.run(*command, env=env)) == bare
        return bare

    return run


def counted(breaker_env):
    """{model: the calls of it}, whatever the port was."""
    return {key.partition("/")[2]: found["calls"] for key, found in breaker_env.breakers().items() if "/" in key}


def test_every_mode_is_run():
    for name, modes in CALLS.items():
        assert set(modes) == set(re.findall(r'\{"([a-z-]+)", ', (TLS / f"{name}.c").read_text()))


@pytest.mark.parametrize("name, mode", modes_of(CALLS))
def test_modes(name, mode, say, breaker_env):
    said, calls = say(name, mode), CALLS[name][mode]
    found = counted(breaker_env)
    assert set(found) == ({"m"} if calls else set()), found
    if calls:
        assert (found["m"]["success"], found["m"]["failure"], found["m"]["neutral"]) == (calls, 0, 0), found
    if mode == "kernel-tls" and said[-1] == "0":
        pytest.skip("harmless where it is asked for; this kernel has no TLS of its own (CONFIG_TLS), so it went no further")


@pytest.mark.parametrize("mode", ["asynchronous", "paired"])
def test_bound_at_the_start(mode, say, breaker_env):
    """The loader finds all of them before main()."""
    say("carriers", mode, LD_BIND_NOW="1")
    assert counted(breaker_env)["m"]["success"] == 2
