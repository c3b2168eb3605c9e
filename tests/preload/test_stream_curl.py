"""Watching what libcurl gives to the application (curl/stream.c): each way of it is as without us, pauses included."""

from pathlib import Path

import pytest

from provider import Answer, chunk_of
from test_stream_clients import told

SOURCE = Path(__file__).with_name("curl") / "stream.c"
DELTA = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'
ERROR = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n'
BODY = DELTA * 20 + ERROR
# mode: what is counted; of heads among the body's bytes only the transport's end tells.
MODES = {"plain": {"failure": 1}, "default": {"failure": 2}, "file": {"failure": 2}, "with-heads": {"success": 1},
         "heads-beside": {"success": 1}, "changed": {"failure": 2}, "duplicated": {"failure": 2},
         "altered": {"failure": 1}, "paused": {"failure": 1}, "untaken": {"neutral": 1}}


@pytest.fixture
def stream(compile_c):
    return compile_c(SOURCE, "-I", SOURCE.parent, "-lcurl", name="stream")


def both(breaker_env, *command):
    bare, ours = breaker_env.run_bare(*command), breaker_env.run(*command)
    assert (bare.returncode, ours.returncode) == (0, 0), (bare, ours)
    return bare.stdout, ours.stdout


def answer_of(body, pieces=1):
    return Answer(200, {"Content-Type": "text/event-stream", "Date": "x"}, body, chunked=True, pieces=pieces)


@pytest.mark.parametrize("pieces", [1, 30])
@pytest.mark.parametrize("mode", MODES)
def test_as_without_us(mode, pieces, stream, provider, breaker_env):
    provider.answer(answer_of(BODY, pieces))
    bare, ours = both(breaker_env, stream, mode, provider.url())
    if mode == "changed" and pieces > 1:  # where it is cut is the network's to say
        bare, ours = (text.splitlines()[:2] for text in (bare, ours))
    assert bare == ours
    assert told(breaker_env, provider.key("m")) == MODES[mode]


@pytest.mark.parametrize("body, result", [(BODY, "failure"), (DELTA + b"data: [DONE]\n\n", "success"),
                                          (DELTA, "neutral")], ids=["error", "done", "delta"])
def test_bytes_that_are_refused(body, result, stream, provider, breaker_env):
    """The application ends it at what it was shown, as many do at an error or at [DONE]: that was there all the same."""
    provider.answer(answer_of(body))
    assert both(breaker_env, stream, "refused", provider.url()) == (b"result 23\n" * 2,) * 2
    assert told(breaker_env, provider.key("m")) == {result: 2}


def test_heads_that_come_late(stream, provider, breaker_env, monkeypatch):
    """A trailer, for which the application set another place while the body came."""
    def reply(self, connection, request, answer):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTrailer: X-End\r\n"
                           b"Transfer-Encoding: chunked\r\n\r\n" + chunk_of(DELTA))
        connection.sendall(chunk_of(DELTA) + b"0\r\nX-End: 1\r\n\r\n")
        return True

    monkeypatch.setattr(type(provider), "_reply", reply)
    bare, ours = both(breaker_env, stream, "heads-late", provider.url())
    assert bare == ours and b"[X-End: 1" in ours
    assert told(breaker_env, provider.key("m")) == {"success": 1}


def test_our_answer_is_not_watched(stream, provider, breaker_env):
    breaker_env.configure(open_seconds=60)
    breaker_env.command("trip", "--create", provider.key("m"))
    done = breaker_env.run(stream, "plain", provider.url())
    assert b"result 0" in done.stdout and b"circuit_open" in done.stdout
    assert told(breaker_env, provider.key("m")) == {}


def test_what_is_no_llm_call_is_not_watched(stream, provider, breaker_env):
    provider.answer(answer_of(BODY))
    breaker_env.configure(f"[target {provider.key()}]\n")
    bare, ours = both(breaker_env, stream, "plain", provider.url("/v1/files"))
    assert bare == ours
    assert told(breaker_env, provider.key()) == {"success": 1}
