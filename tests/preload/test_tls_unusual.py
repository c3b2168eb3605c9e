"""What few clients do with libssl (tls/unusual.c): each behaves with us as it does without, and its calls of "m" count."""

import re
import ssl
import subprocess

import pytest

from provider import wait_until
from recorder import Recorder
from test_tls_odd import NAME, TLS, shut, surroundings, tls_program, words_of  # noqa: F401

# What of a mode's calls counts; those that have another server or are refused have tests of their own.
MODES = {"dotted": 1, "after-nothing": 0, "begun-again": 5, "vforked": 2, "empty-write": 2,
         "late-early-data": 1, "no-object": 1, "own-handle": 1, "other-namespace": 1, "unclaimed": 1}
OTHERS = {"implicit-unblocked", "refused-by-parts", "one-answer", "ended-before"}


def test_every_mode_is_run():
    assert set(MODES) | OTHERS == set(re.findall(r'\{"([a-z-]+)", ', (TLS / "unusual.c").read_text()))


@pytest.mark.parametrize("mode", MODES)
def test_unusual(mode, tls_program, breaker_env, shut):  # noqa: F811
    command = (tls_program("unusual"), mode, shut.port)
    assert words_of(breaker_env.run_bare(*command)) == words_of(breaker_env.run(*command))
    calls = breaker_env.calls(shut.key("m", NAME))
    assert (calls["success"], calls["failure"], calls["refused"]) == (MODES[mode], 0, 0), calls
    assert breaker_env.calls(shut.key("unseen", NAME))["success"] == 0


def test_whose_a_dotted_name_is(tls_program, breaker_env, shut):  # noqa: F811
    breaker_env.run(tls_program("unusual"), "dotted", shut.port)
    host = breaker_env.calls(shut.key(name=NAME))
    assert (host["success"], host["failure"]) == (1, 0), host


def test_refused_by_parts(tls_program, breaker_env, shut):  # noqa: F811
    """One byte makes it bring what it has read to libssl, which is not asked for that."""
    assert words_of(breaker_env.run(tls_program("unusual"), "refused-by-parts", shut.port)) == ["503"]
    assert shut.count() == 0 and breaker_env.calls(shut.key("shut", NAME))["refused"] == 1


@pytest.mark.parametrize("first", [True, False], ids=["in front", "behind"])
def test_no_object_and_a_wrapper(first, compile_c, tls_program, breaker_env, shut):  # noqa: F811
    """There is no object to go by: what stands behind us is called, and never the wrapper that has called us."""
    wrapper = compile_c(TLS / "wrapper.c", "-shared", "-fPIC", name="wrapper.so")
    pair = [str(wrapper), str(breaker_env.library)]
    command = [str(word) for word in (tls_program("unusual"), "no-object", shut.port)]
    alone, both = (words_of(subprocess.run(command, env={**breaker_env.environment, "LD_PRELOAD": preload},
                                           cwd=breaker_env.directory, capture_output=True, stdin=subprocess.DEVNULL,
                                           timeout=50))
                   for preload in (pair[0], " ".join(pair if first else pair[::-1])))
    assert alone == ["200", "wrapped", "0", "0"]
    assert both == alone if first else both[0] == "200"
    assert breaker_env.calls(shut.key("m", NAME))["success"] == 1


@pytest.mark.parametrize("how", ["weak", "scope", "handle"])
def test_no_libssl_anywhere(how, compile_c, breaker_env):
    """Who asks whether there is a libssl, weakly or by name, finds our entries: they fail, and do nothing else."""
    program = compile_c(TLS / "without.c", "-w", name="without")
    assert words_of(breaker_env.run_bare(program, how)) == ["absent"]
    assert words_of(breaker_env.run(program, how)) == ["-1"] * 5 + ["0"] * 5


class TlsRecorder(Recorder):
    """Ends its connections without a close_notify."""

    def __init__(self, answer, authority):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(authority.certificate, authority.key)
        super().__init__(answer)

    def _serve(self, connection, number):
        try:
            connection.plain = self.context.wrap_socket(connection.plain, server_side=True)
        except OSError:
            return
        super()._serve(connection, number)


class Held(TlsRecorder):
    """Every other connection only lets the one before begin."""

    def _serve(self, connection, number):
        if number % 2:
            wait_until(lambda: len(self.connections) > number, what="the next connection")
            super()._serve(connection, number)


def compare(program, mode, answer, authority, breaker_env, kind=TlsRecorder):
    """What it says of this answer, with us as without, and what counts."""
    with kind(answer, authority) as server:
        command = (program, mode, server.port)
        said = words_of(breaker_env.run_bare(*command))
        assert said == words_of(breaker_env.run(*command))
        calls = breaker_env.calls(f"{NAME}:{server.port}/m")
        return said, (calls["success"], calls["failure"], calls["neutral"])


def test_a_handshake_of_the_first_write(tls_program, authority, breaker_env):  # noqa: F811
    good = [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"]
    said, counted = compare(tls_program("unusual"), "implicit-unblocked", lambda request: good, authority, breaker_env, Held)
    assert (said, counted) == (["200"] * 4, (4, 0, 0))


def test_an_answer_that_is_none(tls_program, authority, breaker_env):  # noqa: F811
    """It is not HTTP: the call failed, and what comes after passes."""
    said, counted = compare(tls_program("unusual"), "one-answer", lambda request: [b"nonsense\r\n\r\n"], authority, breaker_env)
    assert (said, counted) == (["nonsense"], (0, 1, 0))


@pytest.mark.parametrize("length, counted", [(100, (0, 1, 0)), (2, (1, 0, 0))], ids=["cut", "whole"])
def test_an_end_that_comes_before_the_answer(length, counted, tls_program, authority, breaker_env):  # noqa: F811
    """The connection has ended, but the answer is only now made out of its records: with that it is over."""
    def answer(request):
        return [b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n{}" % length]

    def answer_and_close(request):
        request.headers["connection"] = "close"
        return answer(request)

    said, told = compare(tls_program("unusual"), "ended-before", answer_and_close, authority, breaker_env)
    assert (said[-1], told) == ("{}", counted)
