"""A scripted LLM provider: real HTTP/1.1 over a real loopback socket, on a port that the kernel chose.

In a test:

    with Provider() as provider:
        provider.answer(Answer(500))                 # everything fails ...
        provider.answer(Answer(200), model="other")  # ... but this model
        provider.refuse()                            # nobody listens; provider.listen() again
        provider.wait_for(5)                         # five whole requests arrived, or TimeoutError
        provider.count(model="m")

As a program: provider.py --port-file F [--control F] [--journal F]: the control file holds one
JSON object with members of Answer ({"status": 500}), read anew at each request; the journal gets
one JSON line per request.
"""

import argparse
import dataclasses
import json
import select
import socket
import ssl
import sys
import threading
import time
from pathlib import Path

from listeners import Acceptor, bound

LOOPBACK = "127.0.0.1"
DEADLINE = 15.0  # no wait of a test is longer unless it says so
REASONS = {100: "Continue", 200: "OK", 302: "Found", 307: "Temporary Redirect", 401: "Unauthorized",
           404: "Not Found", 429: "Too Many Requests", 500: "Internal Server Error",
           503: "Service Unavailable"}


def wait_until(predicate, timeout=DEADLINE, what="the condition"):
    """The first true value of predicate(); TimeoutError when there was none in time."""
    end = time.monotonic() + timeout
    pause = threading.Event()
    while True:
        value = predicate()
        if value:
            return value
        if time.monotonic() >= end:
            raise TimeoutError(f"{what}: not within {timeout} s")
        pause.wait(0.01)


@dataclasses.dataclass
class Answer:
    """What a request gets. Alone, `Answer(503)` is a JSON error of that status on a kept connection."""

    status: int = 200
    headers: dict = dataclasses.field(default_factory=dict)
    body: bytes | None = None
    chunked: bool = False
    pieces: int = 1  # a chunked body goes out in so many chunks, each a write of its own
    delay: float = 0  # seconds before the head
    gate: threading.Event | None = None  # the head waits until it is set
    body_gate: threading.Event | None = None  # the head goes out, the body waits
    hang: bool = False  # never answers; ends when the client does
    close: str | None = None  # "before-head" | "mid-head" | "mid-body" | "after"
    reset: bool = False  # that close is a RST
    digest: bool = False  # 401 with a Digest challenge until there is an Authorization
    expect: bool = True  # an Expect: 100-continue gets its 100

    def payload(self):
        if self.body is not None:
            return self.body
        if self.status < 400:
            return json.dumps({"object": "chat.completion", "ok": True}).encode()
        return json.dumps({"error": {"message": f"scripted {self.status}"}}).encode()


@dataclasses.dataclass
class Request:
    at: float  # time.monotonic() when it was whole
    connection: int
    method: str
    target: str
    headers: dict
    body: bytes
    model: str
    raw: bytes = b""  # the whole of it as it arrived

    @property
    def path(self):
        return self.target.split("?")[0]


class Gone(Exception):
    """The client closed."""


class Kept:
    """A stream whose bytes are kept until they are taken."""

    def __init__(self, stream):
        self.stream, self.parts = stream, []

    def readline(self, limit):
        self.parts.append(self.stream.readline(limit))
        return self.parts[-1]

    def read(self, size):
        self.parts.append(self.stream.read(size))
        return self.parts[-1]

    def taken(self):
        parts, self.parts = self.parts, []
        return b"".join(parts)

    def close(self):
        self.stream.close()


class Provider:
    def __init__(self, tls=None, host=LOOPBACK, port=0):
        """tls: an ssl.SSLContext of a server. port: another than the kernel's choice, that the caller holds."""
        self.host, self.tls = host, tls
        self.changed = threading.Condition()
        self.requests = []  # whole ones, in order of arrival
        self.partial = []  # request heads whose body never came to its end
        self.accepted = 0
        self._rules = []
        self._default = Answer()
        self._queue = []
        self._connections = set()
        self._stopping = threading.Event()
        self._acceptor = None
        self._reserve = bound(host, port)  # the port is ours while nobody listens
        self.port = self._reserve.getsockname()[1]
        self.listen()

    # --- what the test says ----------------------------------------------------------------------

    def answer(self, answer, path=None, model=None):
        """The answer from now on: to everything, or to one path or model (later rules first)."""
        with self.changed:
            if path is None and model is None:
                self._default = answer
            else:
                self._rules.insert(0, (path, model, answer))

    def then(self, *answers):
        """Answers for the next requests, one each, whatever they ask for; then the rules again."""
        with self.changed:
            self._queue.extend(answers)

    def listen(self):
        if self._acceptor:
            return
        listener = bound(self.host, self.port)
        listener.listen(512)
        self._acceptor = Acceptor(listener, self.take)

    def refuse(self):
        """From now on connects are refused, and no old connection lives on."""
        acceptor, self._acceptor = self._acceptor, None
        if acceptor:
            acceptor.close()
        self.hang_up()

    def hang_up(self):
        with self.changed:
            for connection in self._connections:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    # --- what the test sees ----------------------------------------------------------------------

    def url(self, path="/v1/chat/completions", name=None):
        return f"{'https' if self.tls else 'http'}://{name or self.host}:{self.port}{path}"

    def key(self, model=None, name=None):
        """The breaker's key of this provider, or of a model of it."""
        host = f"{name or self.host}:{self.port}"
        return host if model is None else f"{host}/{model}"

    def seen(self, path=None, model=None):
        with self.changed:
            return [r for r in self.requests
                    if (path is None or r.path == path) and (model is None or r.model == model)]

    def count(self, path=None, model=None):
        return len(self.seen(path, model))

    def clear(self):
        with self.changed:
            self.requests.clear()
            self.partial.clear()

    def wait_for(self, number, path=None, model=None, timeout=DEADLINE):
        with self.changed:
            if not self.changed.wait_for(lambda: self.count(path, model) >= number, timeout):
                raise TimeoutError(f"{self.count(path, model)} of {number} requests arrived")

    def wait_accepted(self, number, timeout=DEADLINE):
        with self.changed:
            if not self.changed.wait_for(lambda: self.accepted >= number, timeout):
                raise TimeoutError(f"{self.accepted} of {number} connections came")

    def close(self):
        self._stopping.set()
        self.refuse()
        self._reserve.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # --- inside ----------------------------------------------------------------------------------

    def take(self, connection):
        if connection.family != socket.AF_UNIX:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self.changed:
            self.accepted += 1
            number = self.accepted
            self._connections.add(connection)
            self.changed.notify_all()
        threading.Thread(target=self._serve, args=(connection, number), daemon=True).start()

    def _serve(self, plain, number):
        connection, stream = plain, None
        try:
            if self.tls:
                connection = self.tls.wrap_socket(plain, server_side=True)
                with self.changed:
                    self._connections.discard(plain)  # wrap_socket took its descriptor over
                    self._connections.add(connection)
            stream = Kept(connection.makefile("rb"))
            while self._exchange(connection, stream, number):
                pass
        except (Gone, OSError, ValueError):
            pass
        finally:
            with self.changed:
                self._connections.discard(plain)
                self._connections.discard(connection)
            if stream:
                stream.close()  # else the descriptor outlives the socket object
            connection.close()

    def _exchange(self, connection, stream, number):
        """One request and its answer; False when the connection is to close."""
        head = read_head(stream)
        if head is None:
            return False
        method, target, headers = head
        try:
            if headers.get("expect", "").lower() == "100-continue" and self._default.expect:
                connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            body = read_body(stream, headers)
        except (Gone, OSError):
            with self.changed:
                self.partial.append((method, target, headers))
                self.changed.notify_all()
            raise
        request = Request(time.monotonic(), number, method, target, headers, body, model_of(body), stream.taken())
        with self.changed:
            answer = self._choose(request)
            self.requests.append(request)
            self.changed.notify_all()
        self.journal(request)
        return self._reply(connection, request, answer) and not wants_close(head)

    def journal(self, request):
        """For a subclass that writes requests down."""

    def _choose(self, request):
        if self._queue:
            return self._queue.pop(0)
        for path, model, answer in self._rules:
            if path in (None, request.path) and model in (None, request.model):
                return answer
        return self._default

    def _reply(self, connection, request, answer):
        if answer.hang:
            self._wait_for_client(connection)
            return False
        if answer.delay:
            self._stopping.wait(answer.delay)
        if answer.gate:
            self._wait_gate(connection, answer.gate)
        if answer.close == "before-head":
            return self._drop(connection, answer)
        if answer.digest and "authorization" not in request.headers:
            answer = Answer(401, {"WWW-Authenticate":
                                  'Digest realm="r", nonce="n0", qop="auth", algorithm=MD5'}, b"")
        payload = answer.payload()
        head = head_of(answer, len(payload))
        if answer.close == "mid-head":
            connection.sendall(head[: len(head) // 2])
            return self._drop(connection, answer)
        if request.method == "HEAD":
            connection.sendall(head)
            return answer.close != "after"
        if answer.chunked and answer.pieces > 1:
            connection.sendall(head)
            for piece in pieces_of(payload, answer.pieces):
                connection.sendall(chunk_of(piece))
            connection.sendall(b"0\r\n\r\n")
            return answer.close != "after"
        if answer.chunked:
            payload = (chunk_of(payload) if payload else b"") + b"0\r\n\r\n"
        if answer.close == "mid-body":
            connection.sendall(head + payload[: len(payload) // 2])
            return self._drop(connection, answer)
        if answer.body_gate:
            connection.sendall(head + payload[:1])
            payload = payload[1:]
            self._wait_gate(connection, answer.body_gate)
            connection.sendall(payload)
        else:
            connection.sendall(head + payload)
        return answer.close != "after"

    def _drop(self, connection, answer):
        if answer.reset:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        return False

    def _wait_for_client(self, connection):
        """Until the client closes; what it still sends is thrown away."""
        while not self._stopping.is_set():
            if select.select([connection], [], [], 0.2)[0] and not connection.recv(65536):
                return

    def _wait_gate(self, connection, gate):
        while not gate.wait(0.02):
            if self._stopping.is_set():
                raise Gone
            if select.select([connection], [], [], 0)[0] and not connection.recv(1, socket.MSG_PEEK):
                raise Gone


def read_head(stream):
    """(method, target, headers in lower case); None at the end of the connection."""
    line = stream.readline(65536)
    if not line.endswith(b"\r\n"):
        return None
    method, target, version = line.decode("latin-1").rstrip().split(" ", 2)
    headers = {}
    if version == "HTTP/1.0":
        headers["connection"] = "close"
    while True:
        line = stream.readline(65536)
        if line == b"\r\n":
            return method, target, headers
        if not line.endswith(b"\r\n"):
            raise Gone
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()


def wants_close(head):
    return head[2].get("connection", "").lower() == "close"


def read_exactly(stream, size):
    data = stream.read(size)
    if len(data) != size:
        raise Gone
    return data


def read_body(stream, headers):
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return read_exactly(stream, int(headers.get("content-length", 0)))
    parts = []
    while True:
        line = stream.readline(1024)
        if not line.endswith(b"\r\n"):
            raise Gone
        size = int(line.split(b";")[0], 16)
        if size == 0:
            while stream.readline(65536) not in (b"\r\n", b""):
                pass
            return b"".join(parts)
        parts.append(read_exactly(stream, size))
        read_exactly(stream, 2)


def pieces_of(data, number):
    """About so many pieces, none of them empty."""
    size = max(1, len(data) // number)
    return [data[i:i + size] for i in range(0, len(data), size)]


def chunk_of(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


def model_of(body):
    try:
        model = json.loads(body).get("model")
        return model if isinstance(model, str) else ""
    except (ValueError, AttributeError, RecursionError):
        return ""


def head_of(answer, length):
    lines = [f"HTTP/1.1 {answer.status} {REASONS.get(answer.status, 'Scripted')}"]
    headers = {"Content-Type": "application/json", **answer.headers}
    if answer.chunked:
        headers["Transfer-Encoding"] = "chunked"
    elif answer.status >= 200 and answer.status not in (204, 304):
        headers.setdefault("Content-Length", str(length))
    if answer.close:
        headers["Connection"] = "close"
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def server_tls(certificate, key):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


# --- as a program --------------------------------------------------------------------------------


class ControlledProvider(Provider):
    def __init__(self, control, journal):
        self.control, self.journal_path = control, journal
        super().__init__()

    def _choose(self, request):
        if self.control and self.control.exists():
            return Answer(**json.loads(self.control.read_text()))
        return super()._choose(request)

    def journal(self, request):
        if self.journal_path:
            line = {"at": request.at, "method": request.method, "path": request.path,
                    "model": request.model}
            with self.changed, open(self.journal_path, "a") as file:
                file.write(json.dumps(line) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port-file", type=Path, required=True)
    parser.add_argument("--control", type=Path)
    parser.add_argument("--journal", type=Path)
    options = parser.parse_args()
    with ControlledProvider(options.control, options.journal) as provider:
        unfinished = options.port_file.with_suffix(".new")
        unfinished.write_text(f"{provider.port}\n")
        unfinished.rename(options.port_file)
        try:
            sys.stdin.read()  # ends with whoever started it
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
