"""How calls over own sockets end, as programs end them: bodies that nobody reads, streams that are closed at
their last event."""

import pytest

from provider import Answer
from support import PYTHON

# One connection per call; what it does after the head is the mode's.
CLIENT = """
import http.client, select, socket, struct, sys
port, mode, calls = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for _ in range(calls):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.connect()
    if mode == "linger":  # the close is a reset
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.request("POST", "/v1/chat/completions", '{"model": "m", "messages": [], "stream": true}')
    if mode == "nothing":
        connection.sock.recv(1, socket.MSG_PEEK)  # it is there; nobody looks
        connection.sock.close()
        continue
    if mode.startswith("hung-up"):
        poll = select.poll()
        poll.register(connection.sock, 0)
        assert poll.poll(10_000)[0][1] & select.POLLHUP
        if mode == "hung-up-after":
            print(len(connection.sock.recv(10_000)) > 50)
        connection.sock.close()
        continue
    if mode == "impatient":
        connection.sock.settimeout(0.3)
    try:
        answer = connection.getresponse()
    except TimeoutError:
        print("closed")
        connection.close()
        continue
    if mode in ("wait", "linger"):
        # Unread: a short body came with the head, and is in the reader's hands; of a long one some is in the kernel.
        assert answer.length < 5000 or select.select([connection.sock], [], [], 10)[0]
    if mode == "events":
        while b"STOP" not in answer.fp.peek(1) and b"[DONE]" not in answer.fp.peek(1) and \\
                b"message_stop" not in answer.fp.peek(1) and answer.fp.read1(100):
            pass
    print(answer.status)
    answer.close()
    connection.close()
"""


@pytest.fixture
def ask(breaker_env, provider):
    def run(mode, calls=8):
        done = breaker_env.run(PYTHON, "-c", CLIENT, provider.port, mode, calls)
        assert (done.returncode, done.stderr) == (0, b""), done
        return done.stdout.decode().split()

    return run


@pytest.mark.parametrize("mode", ["at-once", "wait", "linger"])
@pytest.mark.parametrize("size", [10, 300_000])
def test_an_error_whose_body_nobody_reads_counts(mode, size, ask, breaker_env, provider):
    breaker_env.configure(open_seconds=60)
    provider.answer(Answer(500, body=b"x" * size))
    assert ask(mode) == ["500"] * 5 + ["503"] * 3
    assert breaker_env.calls(provider.key("m"))["failure"] == 5


def test_an_answer_that_nobody_looks_at_is_no_hang(ask, breaker_env, provider):
    """It came, and was thrown away: neutral, however old."""
    breaker_env.configure(open_seconds=60, hang_after=0)
    assert ask("nothing") == []
    calls = breaker_env.calls(provider.key("m"))
    assert calls["failure"] == 0, calls


@pytest.mark.parametrize("hang_after,ends", [(0.1, ["503"] * 2), (30, ["closed"] * 2)])
def test_who_waits_in_vain_tells_of_a_hang(hang_after, ends, ask, breaker_env, provider):
    breaker_env.configure(open_seconds=60, hang_after=hang_after)
    provider.answer(Answer(hang=True))
    assert ask("impatient", 7) == ["closed"] * 5 + ends


@pytest.mark.parametrize("mode, close", [("hung-up", "before-head"), ("hung-up-after", "mid-head"),
                                         ("hung-up-after", "mid-body")])
def test_a_reset_that_is_told_by_poll_alone(mode, close, ask, breaker_env, provider):
    """libuv takes a hang-up beside bytes for the end, and closes without another read."""
    breaker_env.configure(open_seconds=60)
    provider.answer(Answer(body=b"x" * 100, close=close, reset=True))
    ask(mode, 5)
    calls = breaker_env.calls(provider.key("m"))
    assert (calls["failure"], calls["neutral"], calls["success"]) == (5, 0, 0), calls


OPENAI = (b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n', b"data: [DONE]\n\n")
ANTHROPIC = (b'event: content_block_delta\ndata: {"type":"content_block_delta"}\n\n',
             b'event: message_stop\ndata: {"type":"message_stop"}\n\n')
# What only looks like it, from inside the text that the model wrote.
QUOTED = (b'data: {"choices":[{"delta":{"content":"\\ndata: [DONE]"}}]}\n\n',
          b'data: {"choices":[{"delta":{"content":"\\nevent: message_stop STOP"}}]}\n\n')


class Unfinished:
    """A chunked answer whose last chunk never comes."""

    @staticmethod
    def of(events):
        body = b"".join(b"%x\r\n%s\r\n" % (len(e), e) for e in events)
        return (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" + body)


@pytest.mark.parametrize("events, success", [(OPENAI, 3), (ANTHROPIC, 3), (QUOTED, 0)],
                         ids=["openai", "anthropic", "quoted"])
def test_a_stream_that_is_closed_at_its_last_event(events, success, breaker_env, ask, provider, monkeypatch):
    """As openai-python does: it closes at [DONE], whether or not the last chunk is there."""
    def reply(self, connection, request, answer):
        connection.sendall(Unfinished.of(events))
        self._wait_for_client(connection)
        return False

    monkeypatch.setattr(type(provider), "_reply", reply)
    assert ask("events", 3) == ["200"] * 3
    calls = breaker_env.calls(provider.key("m"))
    assert (calls["success"], calls["failure"]) == (success, 0), calls
