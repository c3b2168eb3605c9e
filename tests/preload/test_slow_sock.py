"""Issue 5, slow calls of programs with sockets of their own: late first bytes and streams that stall; the twin of
test_slow_curl.py."""

import socket

import pytest

from listeners import Acceptor
from passing import LET_PASS, let_pass
from provider import Answer, chunk_of, wait_until
from slow_provider import DELTA, DONE, EVENTS, HEAD, NEVER, cause
from sock_programs import TIMEOUT
from support import PYTHON
from test_stream_clients import told

READERS = ["http.client", "requests", "httpx", "aiohttp"]  # whose --timeout ends a wait within the body, too
# What it does after the request, then after the head: "read", "close", or seconds to look away.
CLIENT = LET_PASS + """
import socket, sys
body = b'{"model":"m"}'
head = b"POST /v1/chat/completions HTTP/1.1\\r\\nHost: 127.0.0.1:%d\\r\\nContent-Length: %d\\r\\n\\r\\n"
port = int(sys.argv[1])
with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
    connection.sendall(head % (port, len(body)) + body)
    for word in sys.argv[2:]:
        if word == "read":
            connection.recv(1000)
        elif word == "close":
            break
        else:
            let_pass(float(word))
"""


# The kernel takes its upload at once.
UPLOADER = LET_PASS + """
import socket, sys
port, body = int(sys.argv[1]), b'{"model":"m","x":"' + b'a' * 3000000 + b'"}'
head = b"POST /v1/chat/completions HTTP/1.1\\r\\nHost: 127.0.0.1:%d\\r\\nContent-Length: %d\\r\\n\\r\\n"
connection = socket.socket()
connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8000000)
connection.connect(("127.0.0.1", port))
connection.sendall(head % (port, len(body)) + body)
connection.recv(1000) if sys.argv[2] == "read" else let_pass(float(sys.argv[2]))
"""


@pytest.fixture
def steps(breaker_env, provider):
    def run(*words):
        done = breaker_env.run(PYTHON, "-c", CLIENT, provider.port, *words)
        assert (done.returncode, done.stderr) == (0, b""), done

    return run


# --- first bytes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [Answer(delay=0.5), Answer(200, EVENTS, DELTA + DONE, chunked=True, delay=0.5)],
                         ids=["document", "stream"])
@pytest.mark.parametrize("name", [*READERS, "fetch", "ruby", "php"])
def test_late_answers_open(name, answer, talk, provider, breaker_env):
    breaker_env.configure(slow_first_byte=0.2, failure_threshold=2, open_seconds=60)
    provider.answer(answer)
    client = talk(name)
    assert client.ask_often(2, provider.url()) == ["status 200 -"] * 2
    assert client.ask(provider.url()) == "status 503 circuit_open"
    assert told(breaker_env, provider.key("m")) == {"failure": 2}
    assert told(breaker_env, provider.key()) == {"success": 2}
    assert cause(breaker_env, provider.key("m")) == "slow_first_byte"


@pytest.mark.parametrize("limit", [0, NEVER])
def test_those_in_time_do_not(limit, talk, provider, breaker_env):
    breaker_env.configure(slow_first_byte=limit)
    provider.answer(Answer(delay=0.5))
    assert talk("http.client").ask_often(2, provider.url()) == ["status 200 -"] * 2
    assert told(breaker_env, provider.key("m")) == {"success": 2}


@pytest.mark.parametrize("limit, result", [(0.2, {"failure": 1}), (NEVER, {"neutral": 1})])
@pytest.mark.parametrize("name", READERS)
def test_no_first_byte_at_all(name, limit, result, talk, reply, provider, breaker_env):
    breaker_env.configure(slow_first_byte=limit, hang_after=NEVER)
    reply()
    assert talk(name, "--timeout", "0.6").ask(provider.url(), "m", "close") == TIMEOUT
    wait_until(lambda: told(breaker_env, provider.key("m")), what="an end")
    assert told(breaker_env, provider.key("m")) == result
    if "failure" in result:
        assert cause(breaker_env, provider.key("m")) == "slow_first_byte"


def test_a_1xx_is_no_first_byte(steps, reply, provider, breaker_env):
    breaker_env.configure(slow_first_byte=0.2)
    reply(b"HTTP/1.1 103 Early Hints\r\n\r\n")
    steps("read", "0.4", "close")
    assert told(breaker_env, provider.key("m")) == {"failure": 1}
    assert cause(breaker_env, provider.key("m")) == "slow_first_byte"


def test_who_looks_late_has_not_waited(steps, provider, breaker_env):
    """The answer was there; the program had other things to do."""
    breaker_env.configure(slow_first_byte=0.5)
    steps("1", "read")
    assert told(breaker_env, provider.key("m")) == {"success": 1}


def test_who_looks_late_at_a_stream_has_not_waited(steps, reply, provider, breaker_env):
    """It goes on all the time, so the last that came says nothing of the first."""
    breaker_env.configure(slow_first_byte=0.5)
    reply(HEAD, *[part for _ in range(200) for part in (chunk_of(b":" + 400 * b"a" + b"\n\n"), 0.05)])
    steps("1.2", "read", "close")
    assert told(breaker_env, provider.key("m")) == {"neutral": 1}


@pytest.fixture
def slow_link():
    """Takes an upload in 1.2 s and more, and answers at once then; the port."""
    def serve(connection):
        with connection:
            got = b"a"
            while got and not got.endswith(b'"}'):
                got = connection.recv(20000)
                let_pass(0.008)  # a link's own time
            if got:
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
                connection.recv(1)

    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 20000)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    with Acceptor(listener, serve) as server:
        yield server.port


@pytest.mark.parametrize("how, result", [("read", {"success": 1}), ("0.8", {"neutral": 1})])
def test_an_upload_takes_its_time(how, result, slow_link, breaker_env):
    """The request waits for its answer once it has left, not once the kernel has it."""
    breaker_env.configure(slow_first_byte=0.5, hang_after=NEVER)
    assert breaker_env.run(PYTHON, "-c", UPLOADER, slow_link, how).returncode == 0
    assert told(breaker_env, f"127.0.0.1:{slow_link}/m") == result


def test_a_late_head_does_not_close(breaker_env, talk, provider, reply):
    """A probe's good head closes the breaker while the stream goes on, but not one that came too late."""
    breaker_env.configure(slow_first_byte=0.2, open_seconds=60, probe_lease=60)
    key = provider.key("m")
    breaker_env.make_due(key)
    reply(0.5, HEAD + chunk_of(DELTA) + chunk_of(DONE) + chunk_of(b""))
    assert talk("http.client").ask(provider.url(), "m", "stream") == "status 200 -"
    assert [e["to"] for e in breaker_env.events(event="transition", key=key)][-2:] == ["half_open", "open"]


# --- stalls ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit, result", [(0.2, {"failure": 1}), (NEVER, {"neutral": 1}), (0, {"neutral": 1})])
@pytest.mark.parametrize("sent", [HEAD, HEAD + chunk_of(DELTA)], ids=["after the head", "in the body"])
@pytest.mark.parametrize("name", READERS)
def test_a_stall(name, sent, limit, result, talk, reply, provider, breaker_env):
    breaker_env.configure(stall_after=limit)
    reply(sent)
    assert talk(name, "--timeout", "0.6").ask(provider.url(), "m", "stream", "close") == TIMEOUT
    wait_until(lambda: told(breaker_env, provider.key("m")), what="an end")
    assert told(breaker_env, provider.key("m")) == result
    if "failure" in result:
        assert cause(breaker_env, provider.key("m")) == "stall"


def test_a_stream_that_goes_on_is_no_stall(steps, reply, provider, breaker_env):
    breaker_env.configure(stall_after=1)
    reply(HEAD, *[part for _ in range(400) for part in (chunk_of(DELTA), 0.05)])
    steps(*["read"] * 35, "close")
    assert told(breaker_env, provider.key("m")) == {"neutral": 1}


def test_a_stream_that_said_its_end(talk, reply, provider, breaker_env):
    breaker_env.configure(stall_after=0.2)
    reply(HEAD + chunk_of(DELTA + DONE))
    assert talk("http.client", "--timeout", "0.6").ask(provider.url(), "m", "stream", "close") == TIMEOUT
    assert told(breaker_env, provider.key("m")) == {"success": 1}


@pytest.mark.parametrize("parts, result", [([HEAD, 0.2, chunk_of(DELTA)], {"neutral": 1}), ([HEAD], {"failure": 1})],
                         ids=["bytes that it did not read", "none"])
def test_who_does_not_look(parts, result, steps, reply, provider, breaker_env):
    """The peer was not silent where the kernel has bytes of it."""
    breaker_env.configure(stall_after=0.5)
    reply(*parts)
    steps("read", "1", "close")
    assert told(breaker_env, provider.key("m")) == result
