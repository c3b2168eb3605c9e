"""The host's breaker, for programs that open their own sockets: what a connect and the first byte after it
say, whatever is spoken on the connection."""

import json
import subprocess
from pathlib import Path

import pytest

from listeners import accepting
from provider import Answer, wait_until
from support import PYTHON, chat

LOOPBACK = "127.0.0.1"

# One line per call: what came of it, in the program's own words.
HTTPS = """
import http.client, ssl, sys
port, calls, timeout, ca = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
context = ssl.create_default_context(cafile=ca)
for _ in range(calls):
    connection = http.client.HTTPSConnection("localhost", port, timeout=timeout, context=context)
    try:
        connection.request("POST", "/v1/chat/completions", '{"model": "m", "messages": []}')
        print(connection.getresponse().status)
    except OSError as error:
        print("refused" if isinstance(error, ConnectionRefusedError) else
              "timeout" if isinstance(error, TimeoutError) else "cut")
    connection.close()
"""

RAW = """
import socket, sys
port, said = int(sys.argv[1]), sys.argv[2].encode().decode("unicode_escape").encode("latin-1")
for _ in range(int(sys.argv[3])):
    try:
        with socket.create_connection(("127.0.0.1", port), 10) as connection:
            connection.sendall(said)
            print(connection.recv(100).hex() or "closed")
    except OSError as error:
        print(type(error).__name__)
"""


def listed(*hosts):
    return "".join(f"[target {host}]\n" for host in hosts)


def lines_of(done):
    assert (done.returncode, done.stderr) == (0, b""), done
    return done.stdout.decode().split()


class Listener:
    """A server of one line: what it does with each connection is the test's."""

    def __init__(self, serve):
        self.serve, self.accepted, self.held = serve, 0, []
        self.acceptor = accepting(self._take)
        self.port = self.acceptor.port

    def _take(self, connection):
        self.accepted += 1
        self.serve(self, connection)

    def close(self):
        self.acceptor.close()
        for connection in self.held:
            connection.close()


@pytest.fixture
def listener():
    running = []

    def make(serve):
        running.append(Listener(serve))
        return running[-1]

    yield make
    for one in running:
        one.close()


def cut(_, connection):
    connection.recv(1000)
    connection.close()


def hold(listener, connection):
    listener.held.append(connection)


# --- TLS --------------------------------------------------------------------------------------------


@pytest.fixture
def https(breaker_env, authority):
    def call(port, calls, timeout=10, bare=False):
        run = breaker_env.run_bare if bare else breaker_env.run
        return lines_of(run(PYTHON, "-c", HTTPS, port, calls, timeout, authority.ca))

    return call


def test_healthy_tls_counts_once_for_the_host(breaker_env, tls_provider, https):
    breaker_env.configure(listed(tls_provider.key(name="localhost")))
    assert https(tls_provider.port, 3) == https(tls_provider.port, 3, bare=True) == ["200"] * 3
    assert tls_provider.count() == 6
    calls = breaker_env.calls(tls_provider.key(name="localhost"))
    assert (calls["success"], calls["failure"], calls["neutral"]) == (3, 0, 0)


def test_a_tls_host_that_nobody_listed_is_met_by_its_calls(breaker_env, tls_provider, https):
    breaker_env.configure()
    assert https(tls_provider.port, 3) == ["200"] * 3
    assert set(breaker_env.breakers()) == {tls_provider.key(name="localhost"), tls_provider.key("m", "localhost")}


def test_handshakes_that_are_cut_open_the_host(breaker_env, listener, https):
    server = listener(cut)
    key = f"localhost:{server.port}"
    breaker_env.configure(listed(key), open_seconds=60)
    assert https(server.port, 7) == ["cut"] * 5 + ["refused"] * 2
    assert server.accepted == 5
    assert breaker_env.breakers()[key]["last_failure"]["class"] == "handshake"


def test_handshakes_that_hang_open_the_host(breaker_env, listener, https):
    server = listener(hold)
    key = f"localhost:{server.port}"
    breaker_env.configure(listed(key), open_seconds=60, connect_hang_after=0.1)
    assert https(server.port, 7, 0.2) == ["timeout"] * 5 + ["refused"] * 2
    assert breaker_env.breakers()[key]["last_failure"]["class"] == "connect_hang"


def test_handshakes_that_were_cancelled_early_are_nothing(breaker_env, listener, https):
    server = listener(hold)
    key = f"localhost:{server.port}"
    breaker_env.configure(listed(key), open_seconds=60)
    assert https(server.port, 7, 0.05) == ["timeout"] * 7
    assert breaker_env.calls(key)["failure"] == 0


# --- other protocols, byte for byte -------------------------------------------------------------------

ANSWER = b"\x00\x01 whatever"


@pytest.mark.parametrize("said", [
    "PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n\\x00\\x00\\x00\\x04\\x00\\x00\\x00\\x00\\x00",
    "*1\\r\\n$4\\r\\nPING\\r\\n", "\\x00\\x01\\x02\\xff", "EHLO me\\r\\n"])
def test_other_protocols_are_the_hosts_business_only(said, breaker_env, listener):
    heard = []

    def echo(_, connection):
        heard.append(connection.recv(1000))
        connection.sendall(ANSWER)
        connection.close()

    server = listener(echo)
    key = f"{LOOPBACK}:{server.port}"
    breaker_env.configure(listed(key))
    assert lines_of(breaker_env.run(PYTHON, "-c", RAW, server.port, said, 3)) == [ANSWER.hex()] * 3
    assert heard == [said.encode().decode("unicode_escape").encode("latin-1")] * 3
    assert breaker_env.calls(key)["success"] == 3
    assert list(breaker_env.breakers()) in ([], [key])


def test_a_web_socket_is_left_alone_after_its_head(breaker_env, listener):
    heard = []

    def upgrade(_, connection):
        connection.recv(1000)
        connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        heard.append(connection.recv(1000))
        connection.sendall(ANSWER)
        connection.close()

    program = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 10) as connection:
    connection.sendall(b"GET /v1/realtime HTTP/1.1\\r\\nHost: x\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\n")
    assert connection.recv(1000).endswith(b"\\r\\n\\r\\n")
    connection.sendall(b"POST /v1/chat/completions HTTP/1.1\\r\\nHost: x:1\\r\\nContent-Length: 13\\r\\n\\r\\n")
    print(connection.recv(1000).hex())
"""
    server = listener(upgrade)
    breaker_env.configure(listed(f"{LOOPBACK}:{server.port}"))
    assert lines_of(breaker_env.run(PYTHON, "-c", program, server.port)) == [ANSWER.hex()]
    assert heard[0].startswith(b"POST") and not any("/" in key for key in breaker_env.breakers())


# --- one probe -----------------------------------------------------------------------------------------


def test_half_open_lets_one_through_of_all_processes(breaker_env, listener):
    """Twenty programs at once; the probe's fate is still open when all have asked."""
    server = listener(hold)
    key = f"{LOOPBACK}:{server.port}"
    breaker_env.configure(listed(key), open_seconds=0.2, probe_lease=60)
    breaker_env.command("trip", "--create", key)
    breaker_env.wait_due(key)
    programs = [breaker_env.start(PYTHON, "-c", RAW, server.port, "?", 1) for _ in range(20)]
    wait_until(lambda: sum(p.poll() is not None for p in programs) == 19, 30, "nineteen refusals")
    assert server.accepted == 1
    for connection in server.held:
        connection.sendall(b"!")
    told = sorted(p.communicate(timeout=20)[0].decode().strip() for p in programs)
    assert told == ["21"] + ["ConnectionRefusedError"] * 19
    assert breaker_env.state(key) == "closed"


def test_a_probe_that_says_nothing_gives_its_place_back(breaker_env, listener):
    server = listener(lambda _, connection: connection.close())
    key = f"{LOOPBACK}:{server.port}"
    breaker_env.configure(listed(key), open_seconds=0.2, probe_lease=60)
    breaker_env.command("trip", "--create", key)
    breaker_env.wait_due(key)
    for _ in range(3):  # a port scan, say: connects and closes
        subprocess.run(breaker_env.wrap(PYTHON, "-c", "import socket, sys; "
                       f"socket.create_connection(('{LOOPBACK}', {server.port})).close()"),
                       env=breaker_env.environment, check=True, timeout=20)
    assert server.accepted == 3 and breaker_env.state(key) == "half_open"


# --- names that cannot be resolved -------------------------------------------------------------------------


def test_trouble_with_names_is_neutral(breaker_env, compile_c):
    """A resolver that says EAI_AGAIN to everything (FIELD-NOTES 3.3)."""
    resolver = compile_c(Path(__file__).with_name("sock") / "resolver.c", "-shared", "-fPIC", name="resolver.so")
    program = """
import http.client
for _ in range(7):
    try:
        http.client.HTTPConnection("error-3", 80, timeout=10).request("POST", "/v1/chat/completions", "{}")
    except OSError as error:
        print(error.errno)
"""
    breaker_env.configure(match="all")
    done = breaker_env.run(PYTHON, "-c", program, env={"LD_PRELOAD": str(resolver)})
    assert lines_of(done) == ["-3"] * 7
    assert sum(b["calls"]["failure"] for b in breaker_env.status()["breakers"]) == 0


# --- and libcurl's own sockets ---------------------------------------------------------------------------


def test_libcurls_sockets_are_counted_once(breaker_env, provider, curl):
    breaker_env.configure(listed(provider.key()))
    for _ in range(3):
        assert curl(provider.url()).status == 200
    assert breaker_env.calls(provider.key())["success"] == 3
    assert breaker_env.calls(provider.key("m"))["success"] == 3
    provider.refuse()
    for _ in range(5):
        assert curl(provider.url()).code == 7
    assert breaker_env.calls(provider.key())["failure"] == 5
    assert curl(provider.url()).refused


def test_a_name_and_a_request_may_differ(breaker_env, provider):
    """The connect is for the name, the request for its Host."""
    program = f"""
import http.client
connection = http.client.HTTPConnection("{LOOPBACK}", {provider.port}, timeout=10)
connection.request("POST", "/v1/chat/completions", {chat("m")!r}, {{"Host": "gateway.example:8000"}})
print(connection.getresponse().status)
"""
    breaker_env.configure(listed(provider.key()))
    assert lines_of(breaker_env.run(PYTHON, "-c", program)) == ["200"]
    assert breaker_env.calls("gateway.example:8000/m")["success"] == 1
    assert breaker_env.calls(provider.key())["success"] == 1
    provider.answer(Answer(500))
    for _ in range(5):
        breaker_env.run(PYTHON, "-c", program)
    assert breaker_env.state("gateway.example:8000/m") == "open"
    assert json.loads(breaker_env.command("status", "--json").stdout)["breakers"]
