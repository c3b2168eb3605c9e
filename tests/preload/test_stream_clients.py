"""Issue 5: errors inside streams and JSON bodies count, whoever reads them; what the program gets is what came.

Each kind of body comes cut at odd places to programs on libcurl (easy and multi) and on sockets of their own.
"""

import json
import subprocess
import zlib

import pytest

from provider import Answer, chunk_of
from sock_programs import ALL, CLIENTS, MEASURE, Conversation, digest_of
from support import PYTHON, chat

EVENTS, FRAMES, LINES, JSON = ("text/event-stream", "application/vnd.amazon.eventstream", "application/x-ndjson",
                               "application/json")
DELTA = b'event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"text":"\\ndata: {\\"error\\": 1}"}}\n\n'
OPENAI_DELTA = b'data: {"choices":[{"delta":{"content":"an error occurred"}}]}\n\n'


def frame(payload, **headers):
    """One of application/vnd.amazon.eventstream; all headers are strings."""
    packed = b"".join(bytes([len(name) + 1]) + b":" + name.replace("_", "-").encode() + b"\7" +
                      len(value).to_bytes(2, "big") + value.encode() for name, value in headers.items())
    start = (len(packed) + len(payload) + 16).to_bytes(4, "big") + len(packed).to_bytes(4, "big")
    start += zlib.crc32(start).to_bytes(4, "big") + packed + payload
    return start + zlib.crc32(start).to_bytes(4, "big")


CHUNK = frame(b'{"bytes":"e30="}', event_type="chunk", message_type="event")
# name: path, Content-Type, body, what becomes of the call.
BODIES = {
    "anthropic": ("/v1/messages", EVENTS, DELTA * 20 + b'event: error\ndata: {"type":"error","error":'
                  b'{"type":"overloaded_error","message":"Overloaded"}}\n\n', "failure"),
    "anthropic-good": ("/v1/messages", EVENTS,
                       DELTA * 20 + b'event: message_stop\ndata: {"type":"message_stop"}\n\n', "success"),
    "openai": ("/v1/chat/completions", EVENTS, OPENAI_DELTA * 20 +
               b'data: {"error":{"message":"no","type":"server_error"}}\n\n', "failure"),
    "openai-good": ("/v1/chat/completions", EVENTS, OPENAI_DELTA * 20 + b"data: [DONE]\n\n", "success"),
    "openai-length": ("/v1/chat/completions", EVENTS, OPENAI_DELTA +
                      b'data: {"error":{"code":"context_length_exceeded"}}\n\n', "neutral"),
    "openai-rate": ("/v1/chat/completions", EVENTS,
                    b'data: {"error":{"code":"rate_limit_exceeded"}}\n\n', "neutral"),
    "openrouter": ("/api/v1/chat/completions", JSON, b'{"id":"x","error":{"code":502,"message":"no"}}', "failure"),
    "openrouter-good": ("/api/v1/chat/completions", JSON, b'{"id":"x","choices":[{"error":null}]}', "success"),
    "bedrock": ("/model/m/invoke-with-response-stream", FRAMES, CHUNK * 20 + frame(
        b'{"message":"no"}', exception_type="serviceUnavailableException", message_type="exception"), "failure"),
    "bedrock-good": ("/model/m/invoke-with-response-stream", FRAMES, CHUNK * 20, "success"),
    "ollama": ("/api/chat", LINES, b'{"message":{"content":"a"},"done":false}\n' * 20 + b'{"error":"no"}\n', "failure"),
    "ollama-good": ("/api/chat", LINES, b'{"message":{"content":"error"},"done":false}\n' * 20 + b'{"done":true}\n',
                    "success"),
}
FAILING = [name for name, body in BODIES.items() if body[3] == "failure"]


class Once:
    """A program that runs anew for each call. Its ask() is that of a Conversation."""

    def __init__(self, run, *command):
        self.run, self.command = run, command

    def ask(self, url, model="m", *_):
        done = self.run(*self.command, url, model)
        assert done.stderr == b"", done
        told = json.loads(done.stdout)
        self.digest = digest_of(told["body"].encode("latin-1"))
        return f"status {told['status']} {'circuit_open' if 'circuit_open' in told['body'] else '-'}"


class Tool(Once):
    """The curl tool, which writes as it reads."""

    def ask(self, url, model="m", *_):
        done = self.run("curl", "-sN", "-w", "%{stderr}%{http_code}", "-d", chat(model), url)
        self.digest, self.code = digest_of(done.stdout), done.returncode
        return f"status {done.stderr.decode()} {'circuit_open' if b'circuit_open' in done.stdout else '-'}"


PROGRAMS = ["curl", "pycurl", "pycurl-multi", "php-curl", "php-multi", "http.client", "requests", "httpx", "aiohttp",
            "fetch", "node-http", "php", "ruby"]


@pytest.fixture
def program(breaker_env):
    """program(NAME, bare=False): that client, to be asked call by call."""

    def start(name, bare=False):
        run = breaker_env.run_bare if bare else breaker_env.run
        if name == "curl":
            return Tool(run)
        if name == "pycurl-multi":
            return Once(run, PYTHON, CLIENTS / "stream_pycurl.py")
        if name.startswith("php-"):
            return Once(run, "php", CLIENTS / "stream_curl.php", name[4:])
        return Conversation(breaker_env.start(*(ALL | MEASURE)[name].argv, "-", bare=bare, stdin=subprocess.PIPE))

    return start


@pytest.fixture
def serve(provider):
    """serve(BODY, pieces): the provider's answer from now on, and the URL to ask."""

    def serve_it(name, pieces=37):
        path, content_type, body, _ = BODIES[name]
        provider.answer(Answer(200, {"Content-Type": content_type}, body, chunked=True, pieces=min(pieces, len(body))))
        return provider.url(path)

    return serve_it


def told(breaker_env, key):
    calls = breaker_env.calls(key)
    return {kind: calls[kind] for kind in ("success", "failure", "neutral") if calls[kind]}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_bodies(name, body, provider, serve, program, breaker_env):
    client, url = program(name), serve(body)
    assert client.ask(url, "m", "stream") == "status 200 -"
    assert client.digest == digest_of(BODIES[body][2])
    assert told(breaker_env, provider.key("m")) == {BODIES[body][3]: 1}
    if BODIES[body][3] == "failure":
        assert breaker_env.breakers()[provider.key("m")]["last_failure"]["class"] == "stream"
    assert told(breaker_env, provider.key()) == {"success": 1}


@pytest.mark.parametrize("name", ["curl", "pycurl-multi", "http.client"])
def test_a_byte_at_a_time(name, provider, serve, program, breaker_env):
    client, url = program(name), serve("anthropic", 100000)
    assert client.ask(url, "m", "stream") == "status 200 -"
    assert client.digest == digest_of(BODIES["anthropic"][2])
    assert told(breaker_env, provider.key("m")) == {"failure": 1}


@pytest.mark.parametrize("name", PROGRAMS)
def test_five_overloads_open(name, provider, serve, program, breaker_env):
    """litellm#24005: hundreds of them were logged as success."""
    breaker_env.configure(open_seconds=60)
    client, url = program(name), serve("anthropic")
    for _ in range(5):
        assert client.ask(url, "m", "stream") == "status 200 -"
    assert client.ask(url, "m", "stream") == "status 503 circuit_open"
    assert provider.count() == 5


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_long_conversation_opens_nothing(name, provider, serve, program, breaker_env):
    """mecatl#207: its context is too long, however often it is asked."""
    client, url = program(name), serve("openai-length")
    for _ in range(7):
        assert client.ask(url, "m", "stream") == "status 200 -"
    assert told(breaker_env, provider.key("m")) == {"neutral": 7}


# --- connections that are lost ---------------------------------------------------------------------


@pytest.fixture
def lost(provider, monkeypatch):
    """lost(EVENTS): the answer from now on; the connection is closed where the last chunk should come."""

    def lose(events):
        def reply(self, connection, request, answer):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                               b"Transfer-Encoding: chunked\r\n\r\n" + chunk_of(events))
            return False

        monkeypatch.setattr(type(provider), "_reply", reply)

    return lose


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("end, result", [(b"", "failure"), (b"data: [DONE]\n\n", "success")], ids=["before", "after"])
def test_lost(name, end, result, provider, lost, program, breaker_env):
    lost(OPENAI_DELTA * 20 + end)
    client = program(name)
    client.ask(provider.url(), "m", "stream")  # some say a status, some an error
    assert told(breaker_env, provider.key("m")) == {result: 1}
