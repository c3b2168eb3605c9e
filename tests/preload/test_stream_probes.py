"""DESIGN, Streams: a good head settles a probe, nobody waits for a stream's end; until one call ends cleanly the breaker
stays on trial, and the probe's own stream opens it again when it breaks."""

import threading

import pytest

from fallbacks import Fallback, chain
from provider import Answer, chunk_of, wait_until
from sock_programs import ALL, MEASURE
from support import chat

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
DELTA = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'
ERROR = b'data: {"error":{"type":"server_error"}}\n\n'
DONE = b"data: [DONE]\n\n"


class Stream:
    """What the provider says to the model "m": a good head, an event, and, once `go` is set, `rest`."""

    def __init__(self):
        self.rest, self.go = DONE, threading.Event()

    def reply(self, provider, connection, request, answer):
        connection.sendall(HEAD + chunk_of(DELTA))
        provider._wait_gate(connection, self.go)
        if self.rest is None:
            return False
        connection.sendall(chunk_of(self.rest) + chunk_of(b""))
        return True


@pytest.fixture
def stream(provider, monkeypatch):
    """Read at each request: a test may set another `reply`."""
    made, plain = Stream(), type(provider)._reply

    def reply(self, connection, request, answer):
        if request.model != "m" or made.go.is_set():
            return plain(self, connection, request, answer)
        return made.reply(self, connection, request, answer)

    monkeypatch.setattr(type(provider), "_reply", reply)
    yield made
    made.go.set()


@pytest.fixture(params=["curl", "pycurl", "http.client", "fetch"])
def probe(request, breaker_env, provider, stream):
    """A probe under way, its head and first event read."""
    breaker_env.configure(open_seconds=60, probe_lease=60)
    key = provider.key("m")
    breaker_env.make_due(key)
    if request.param == "curl":
        process = breaker_env.start("curl", "-sN", "-d", chat("m"), provider.url())
    else:
        argv = (ALL | MEASURE)[request.param].argv
        process = breaker_env.start(*argv, "--stream", provider.url(), "1", "m")
    wait_until(lambda: breaker_env.state(key) not in ("open", "half_open"), what="closed by the head")
    return process


def finish(process, stream, rest):
    stream.rest = rest
    stream.go.set()
    process.communicate(timeout=20)


def test_others_go_while_it_streams(probe, breaker_env, provider, stream):
    key = provider.key("m")
    found = breaker_env.breakers()[key]
    assert found["streak"] == 4 and found["calls"]["success"] == 0
    assert [e["to"] for e in breaker_env.events(event="transition", key=key)][-2:] == ["half_open", "closed"]
    finish(probe, stream, DONE)
    found = breaker_env.breakers()[key]
    assert (found["streak"], found["calls"]["success"], found["calls"]["failure"]) == (0, 1, 0)


@pytest.mark.parametrize("rest", [None, ERROR], ids=["lost", "error"])
def test_its_own_break_opens_again(rest, probe, breaker_env, provider, stream):
    finish(probe, stream, rest)
    assert breaker_env.state(provider.key("m")) == "open"
    assert breaker_env.calls(provider.key("m"))["failure"] == 1


def test_another_failure_opens_again(probe, breaker_env, provider, stream, curl):
    stream.reply = lambda provider, connection, request, answer: connection.sendall(
        b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n") or True
    assert curl(provider.url()).status == 500
    assert breaker_env.state(provider.key("m")) == "open"
    finish(probe, stream, DONE)
    assert breaker_env.state(provider.key("m")) == "open"  # of an older generation


def test_a_caller_that_leaves_keeps_it_on_trial(probe, breaker_env, provider, stream):
    probe.terminate()
    probe.communicate(timeout=20)
    assert breaker_env.breakers()[provider.key("m")]["streak"] == 4


def test_the_stream_of_a_fallback(breaker_env, curl, provider, providers):
    """What it says is said of the fallback."""
    second = Fallback("second", providers())
    breaker_env.configure(chain(provider, second), open_seconds=60)
    breaker_env.command("trip", "--create", provider.key("m"))
    second.provider.answer(Answer(200, {"Content-Type": "text/event-stream"}, DELTA + ERROR, chunked=True))
    for _ in range(5):
        assert curl(provider.url(), env={"SECOND_KEY": "x"}).body == (DELTA + ERROR).decode()
    assert breaker_env.state(second.key("openai/m")) == "open"
    assert breaker_env.calls(second.key("openai/m"))["failure"] == 5
    assert curl(provider.url(), env={"SECOND_KEY": "x"}).refused


@pytest.mark.parametrize("mode", ["multi-fields", "multi-read", "socket-fields", "socket-read"])
def test_every_way_of_a_multi(mode, client, breaker_env, provider):
    provider.answer(Answer(200, {"Content-Type": "text/event-stream"}, DELTA * 9 + ERROR, chunked=True, pieces=7))
    breaker_env.configure(failure_threshold=0)
    done = breaker_env.run(client, mode, provider.url())
    assert done.returncode == 0, done
    calls = [b["calls"] for key, b in breaker_env.breakers().items() if "/" in key]
    assert provider.count() > 1
    assert sum(c["failure"] for c in calls) == provider.count() and sum(c["success"] for c in calls) == 0
