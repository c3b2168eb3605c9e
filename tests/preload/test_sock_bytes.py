"""Clear-text connections: byte for byte the same in both directions, and cut off where they must be.

Healthy: each program runs without us and with us against one server that keeps everything. The calls were counted, so
nothing was overlooked. Refused: the client gets our answer and the end of the stream, the server no whole request.
"""

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from recorder import Recorder
from support import PYTHON
from test_sock_odd import modes_of

CLIENTS = Path(__file__).with_name("clients")
SOCK = Path(__file__).with_name("sock")
BIG = 20_000_000
EVENTS = 10_000
SMALL, MEDIUM = 100, 500_000

# What client_raw.py writes (or reads) in a way of its own: how much prompt goes with it.
RAW = {"whole": SMALL, "written": SMALL, "one-byte": SMALL, "large-writes": MEDIUM, "splits": SMALL,
       "second-write": SMALL, "writev": MEDIUM, "sendmsg": MEDIUM, "chunked": MEDIUM, "sendfile": MEDIUM,
       "expect": SMALL, "last-byte": SMALL, "pipelined": SMALL, "asyncio": MEDIUM, "peek": SMALL, "recvmsg": SMALL,
       "readv": SMALL}
HTTP = {"whole": SMALL, "one-byte": SMALL, "large-writes": MEDIUM, "chunked": MEDIUM, "lines": SMALL}
NODE = {"whole": SMALL, "one-byte": SMALL, "large-writes": MEDIUM, "chunked": MEDIUM, "corked": MEDIUM,
        "expect": SMALL, "raw-pipelined": SMALL, "raw-corked": MEDIUM}


# --- the server's side -------------------------------------------------------------------------------


def answer_of(body, *fields):
    lines = ["HTTP/1.1 200 OK", "Content-Type: application/json", f"Content-Length: {len(body)}", *fields]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def plain(request):
    """Told apart by its request's length; each JSON ends in a newline."""
    return [answer_of(b'{"object":"chat.completion","length":%d}\n' % len(request.body))]


def byte_by_byte(request):
    return [bytes([byte]) for byte in plain(request)[0]]


def large(request):
    return [answer_of(bytes(range(256)) * (BIG // 256))]


def chunks(request):
    """Cut in the middle of sizes, of data and of the last chunk's end."""
    whole = (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"".join(
        b"%X;a=b\r\n%s\r\n" % (size, b"z" * size) for size in (1, 15, 16, 4096, 70000)) + b"0\r\n\r\n")
    ends = [0, 20, 47, 48, 49, 50, 70, 4200, 40000, len(whole) - 3, len(whole)]
    return [whole[a:b] for a, b in zip(ends, ends[1:])]


def small_chunks(request):
    return [b"HTTP/1.1 200 OK\r\nTransfer-", b"Encoding: chunked\r\n\r\n5;x\r", b"\nhello\r\n1", b"0\r\n",
            b"0123456789abcdef\r\n0\r", b"\n\r", b"\n"]


def events(request):
    yield b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    for number in range(EVENTS):
        event = b'data: {"id":%d,"choices":[{"delta":{"content":"word "}}]}\n\n' % number
        yield b"%x\r\n%s\r\n" % (len(event), event)
    event = b"data: [DONE]\n\n"
    yield b"%x\r\n%s\r\n0\r\n\r\n" % (len(event), event)


@pytest.fixture
def recorder():
    with Recorder(plain) as running:
        yield running


@pytest.fixture
def node():
    if not shutil.which("node"):
        pytest.skip("no node here")
    return "node"


# --- the client's side -------------------------------------------------------------------------------


def sha(data):
    return hashlib.sha256(data).hexdigest()


def written_by_client(breaker_env):
    return {name: sha((breaker_env.directory / name).read_bytes()) for name in ("sent", "received")
            if (breaker_env.directory / name).exists()}


def tell(run, breaker_env, recorder, command):
    """What came of a program: its output and all bytes of either direction, as both sides saw them."""
    for name in ("sent", "received"):
        (breaker_env.directory / name).unlink(missing_ok=True)
    done = run(*command)
    assert (done.returncode, done.stderr) == (0, b""), (done.returncode, done.stdout[-500:], done.stderr[-2000:])
    taken = [(sha(c.received), len(c.received), sha(c.sent), len(c.requests)) for c in recorder.take()]
    written = written_by_client(breaker_env)
    assert not written or (written["sent"], written["received"]) == (taken[0][0], taken[0][2])
    return done.stdout.decode(), taken, written


def assert_identical(breaker_env, recorder, *command, calls=3):
    bare = tell(breaker_env.run_bare, breaker_env, recorder, command)
    ours = tell(breaker_env.run, breaker_env, recorder, command)
    assert len(bare[1]) == 1 and bare[1][0][3] == calls, bare
    assert bare == ours
    counted = breaker_env.calls(recorder.key("m"))
    assert (counted["success"], counted["failure"], counted["neutral"]) == (calls, 0, 0), counted
    return bare


def raw(shape, recorder, size, *models):
    return PYTHON, CLIENTS / "client_raw.py", shape, recorder.port, size, *models


def http_client(shape, recorder, size, *models):
    return PYTHON, CLIENTS / "client_http.py", shape, recorder.port, size, *models


def net(node, shape, recorder, size, *models):
    return node, CLIENTS / "client_net.js", shape, recorder.port, size, *models


M3 = ("m", "m", "m")


# --- healthy -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", RAW)
def test_raw_writes(shape, breaker_env, recorder):
    told, _, written = assert_identical(breaker_env, recorder, *raw(shape, recorder, RAW[shape], *M3))
    assert told.split() == (["100", "200"] * 3 if shape == "expect" else ["200"] * 3)
    assert set(written) == {"sent", "received"}


@pytest.mark.parametrize("shape", HTTP)
def test_http_client(shape, breaker_env, recorder):
    assert_identical(breaker_env, recorder, *http_client(shape, recorder, HTTP[shape], *M3))


@pytest.mark.parametrize("shape", NODE)
def test_node(shape, node, breaker_env, recorder):
    assert_identical(breaker_env, recorder, *net(node, shape, recorder, NODE[shape], *M3))


@pytest.mark.parametrize("answer", [byte_by_byte, chunks, events, large], ids=lambda answer: answer.__name__)
def test_answers(answer, node, breaker_env, recorder):
    """20 MB, 10,000 events, and cuts at every place, read by all three."""
    recorder.answer = answer
    shape = "asyncio" if answer is large else "whole"
    for calls, command in enumerate((raw(shape, recorder, SMALL, "m"), http_client("whole", recorder, SMALL, "m"),
                                     net(node, "whole", recorder, SMALL, "m")), 1):
        bare = tell(breaker_env.run_bare, breaker_env, recorder, command)
        assert bare == tell(breaker_env.run, breaker_env, recorder, command)
        assert breaker_env.calls(recorder.key("m"))["success"] == calls


@pytest.mark.parametrize("shape", ["one-byte", "peek", "recvmsg", "readv"])
def test_answers_by_odd_reads(shape, breaker_env, recorder):
    recorder.answer = chunks
    assert_identical(breaker_env, recorder, *raw(shape, recorder, SMALL, "m"), calls=1)


def test_large_both_ways(node, breaker_env, recorder):
    """Non-blocking with a small send buffer: thousands of short writes."""
    recorder.answer = large
    for calls, command in enumerate((raw("asyncio", recorder, BIG, "m"), http_client("whole", recorder, BIG, "m"),
                                     net(node, "whole", recorder, BIG, "m")), 1):
        bare = tell(breaker_env.run_bare, breaker_env, recorder, command)
        assert bare[1][0][1] > BIG
        assert bare == tell(breaker_env.run, breaker_env, recorder, command)
        assert breaker_env.calls(recorder.key("m"))["success"] == calls


# --- refused -----------------------------------------------------------------------------------------


@pytest.fixture
def shut_recorder(breaker_env, recorder):
    breaker_env.configure(open_seconds=60)
    breaker_env.command("trip", "--create", recorder.key("shut"))
    return recorder


def assert_synthetic(data):
    head, _, body = bytes(data).partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    fields = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    assert status == "HTTP/1.1 503 Service Unavailable"
    assert (fields["x-breaker-state"], fields["connection"]) == ("open", "close"), fields
    assert int(fields["content-length"]) == len(body), data
    assert json.loads(body)["error"]["code"] == "circuit_open"


def run_refused(breaker_env, command):
    done = breaker_env.run(*command)
    assert (done.returncode, done.stderr) == (0, b""), (done.returncode, done.stdout[-500:], done.stderr[-2000:])
    return done.stdout


def assert_cut_off(breaker_env, recorder, whole=()):
    """One connection at most; only the requests of the models `whole` came to their end on it."""
    connections = recorder.take()
    assert len(connections) <= 1
    requests = [request for connection in connections for request in connection.requests]
    assert len(requests) == len(whole) and not [r for r in requests if b'"shut' in r.body]
    calls = breaker_env.calls(recorder.key("shut"))
    assert (calls["refused"], calls["success"], calls["failure"]) == (1, 0, 0), calls
    return connections[0] if connections else None


@pytest.mark.parametrize("before", [(), ("m",)], ids=["first", "kept"])
@pytest.mark.parametrize("shape", RAW)
def test_refused_raw_writes(shape, before, breaker_env, shut_recorder):
    told = run_refused(breaker_env, raw(shape, shut_recorder, RAW[shape], *before, "shut")).decode().split()
    continues = ["100"] if shape == "expect" else []
    assert told == [word for _ in before for word in (*continues, "200")] + [*continues, "503", "end"]
    connection = assert_cut_off(breaker_env, shut_recorder, before)
    sent, received = ((breaker_env.directory / name).read_bytes() for name in ("sent", "received"))
    if connection:
        assert sent.startswith(connection.received) and len(connection.received) < len(sent)
        assert received.startswith(connection.sent)
        received = received[len(connection.sent):]
    assert_synthetic(received)


@pytest.mark.parametrize("shape, size", [("pipelined", SMALL), ("pipelined", MEDIUM), ("pipelined-writev", SMALL),
                                         ("pipelined-sendmsg", SMALL), ("pipelined-asyncio", MEDIUM),
                                         ("pipelined-asyncio", BIG // 10)])
def test_refused_among_pipelined(shape, size, breaker_env, shut_recorder):
    """What was asked before is answered before, in however many writes it leaves; what comes after is not sent."""
    told = run_refused(breaker_env, raw(shape, shut_recorder, size, "m", "m", "shut", "m")).decode().split()
    assert told == ["200", "200", "503", "end"]
    connection = assert_cut_off(breaker_env, shut_recorder, ("m", "m"))
    received = (breaker_env.directory / "received").read_bytes()
    assert received.startswith(connection.sent)
    assert_synthetic(received[len(connection.sent):])


def assert_refused_by_http(out, breaker_env, recorder, before):
    lines = out.decode().splitlines()
    assert [line.split()[0] for line in lines[: len(before)]] == ["200"] * len(before)
    status, length, digest, state = lines[len(before)].split()
    assert (status, state) == ("503", "open")
    body = lines[len(before) + 1]
    assert (int(length), digest) == (len(body), sha(body.encode()))
    assert json.loads(body)["error"]["code"] == "circuit_open"
    assert_cut_off(breaker_env, recorder, before)


@pytest.mark.parametrize("before", [(), ("m",)], ids=["first", "kept"])
@pytest.mark.parametrize("shape", HTTP)
def test_refused_http_client(shape, before, breaker_env, shut_recorder):
    out = run_refused(breaker_env, http_client(shape, shut_recorder, HTTP[shape], *before, "shut"))
    assert_refused_by_http(out, breaker_env, shut_recorder, before)


@pytest.mark.parametrize("before", [(), ("m",)], ids=["first", "kept"])
@pytest.mark.parametrize("shape", [shape for shape in NODE if not shape.startswith("raw-")])
def test_refused_node(shape, before, node, breaker_env, shut_recorder):
    out = run_refused(breaker_env, net(node, shape, shut_recorder, NODE[shape], *before, "shut"))
    assert_refused_by_http(out, breaker_env, shut_recorder, before)


def test_refused_large(node, breaker_env, shut_recorder):
    """20 MB before the model: what went out before stays a part."""
    commands = (raw("asyncio", shut_recorder, BIG, "shut"), http_client("whole", shut_recorder, BIG, "shut"),
                net(node, "whole", shut_recorder, BIG, "shut"))
    for number, command in enumerate(commands, 1):
        assert b"503" in run_refused(breaker_env, command)
        assert not [c for c in shut_recorder.take() if c.requests]
        assert breaker_env.calls(shut_recorder.key("shut"))["refused"] == number


# --- refused, seen from C (sock/refused_*.c) ---------------------------------------------------------


@pytest.fixture
def refused(compile_c):
    def make(name):
        return compile_c(SOCK / f"{name}.c", "-I", SOCK, "-pthread", "-O2", "-D_FORTIFY_SOURCE=2", name=name)

    return make


WAITS = ["poll", "poll-before", "select", "epoll", "epoll-edge", "epoll-before", "epoll-edge-before", "epoll-exclusive"]
THREADS = ["reader-thread", "poller-thread", "epoller-thread"]
READS = ["read", "read-chk", "recv", "recv-chk", "recvfrom", "one-byte", "readv", "recvmsg", "recvmmsg", "peek",
         "wait-all", "dont-wait", "dup", "duped-before"]
WRITES = ["write", "writev", "send", "sendto", "sendmsg", "sendmmsg", "sendfile", "sendfile64", "non-blocking"]
AFTERWARDS = ["write-again", "shutdown-write", "errors", "odd-flags"]
REFUSED = {"refused_waits": [*WAITS, *THREADS], "refused_reads": READS, "refused_writes": [*WRITES, *AFTERWARDS]}


@pytest.mark.parametrize("kept", [False, True], ids=["first", "kept"])
@pytest.mark.parametrize("name, mode", modes_of(REFUSED))
def test_refused_in_c(name, mode, kept, refused, breaker_env, shut_recorder):
    """The program prints what it read, and complains of what it had to wait for."""
    out = run_refused(breaker_env, (refused(name), mode, shut_recorder.port, int(kept)))
    assert_synthetic(out)
    assert_cut_off(breaker_env, shut_recorder, ("m",) if kept else ())


BEHIND = ["behind-blocking", "behind-thread", "behind-poll", "behind-edge", "behind-level", "behind-one-shot"]


@pytest.mark.parametrize("answer", [plain, byte_by_byte, small_chunks], ids=lambda answer: answer.__name__)
@pytest.mark.parametrize("mode", BEHIND)
def test_refused_behind_in_c(mode, answer, refused, breaker_env, shut_recorder):
    """In one write with a good request: its answer comes first, however slowly, then ours."""
    shut_recorder.answer = answer
    out = run_refused(breaker_env, (refused("refused_waits"), mode, shut_recorder.port, 0))
    connection = assert_cut_off(breaker_env, shut_recorder, ("m",))
    assert out.startswith(connection.sent)
    assert_synthetic(out[len(connection.sent):])
