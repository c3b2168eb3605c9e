"""Issues 5 and 6: late first bytes and stalls of what goes over libssl; the twin of test_slow_sock.py."""

import pytest

from passing import LET_PASS
from provider import Answer, chunk_of
from slow_provider import DELTA, DONE, EVENTS, HEAD, cause
from support import PYTHON
from test_stream_clients import told
from tls_servers import trust

# Two calls over one connection. What it does after the request of the second: "read", or seconds to look away.
CLIENT = LET_PASS + """
import socket, ssl, sys
body = b'{"model":"m"}'
head = b"POST /v1/chat/completions HTTP/1.1\\r\\nHost: localhost:%d\\r\\nContent-Length: %d\\r\\n\\r\\n"
port, request = int(sys.argv[1]), head % (int(sys.argv[1]), len(body)) + body
def read_all(connection):
    text = b""
    while not text.endswith((b"0\\r\\n\\r\\n", b"}")):
        text += connection.recv(100000)
with ssl.create_default_context().wrap_socket(socket.create_connection(("127.0.0.1", port)),
                                              server_hostname="localhost") as connection:
    connection.sendall(request)
    read_all(connection)
    connection.sendall(request)
    for word in sys.argv[2:]:
        read_all(connection) if word == "read" else let_pass(float(word))
"""


@pytest.fixture
def steps(breaker_env, tls_provider, authority):
    def run(second, *words):
        tls_provider.then(Answer(), second)
        done = breaker_env.run(PYTHON, "-c", CLIENT, tls_provider.port, *words, env=trust(authority))
        assert (done.returncode, done.stderr) == (0, b""), done
        return told(breaker_env, tls_provider.key("m", "localhost"))

    return run


@pytest.mark.parametrize("answer", [Answer(delay=0.5), Answer(200, EVENTS, DELTA + DONE, chunked=True, delay=0.5)],
                         ids=["document", "stream"])
def test_a_late_answer_fails(answer, steps, tls_provider, breaker_env):
    breaker_env.configure(slow_first_byte=0.2)
    assert steps(answer, "read") == {"success": 1, "failure": 1}
    assert cause(breaker_env, tls_provider.key("m", "localhost")) == "slow_first_byte"


@pytest.mark.parametrize("answer", [Answer(), Answer(200, EVENTS, DELTA * 2000 + DONE, chunked=True, pieces=100)],
                         ids=["document", "stream"])
def test_who_looks_late_has_not_waited(answer, steps, breaker_env):
    breaker_env.configure(slow_first_byte=0.5)
    assert steps(answer, "1", "read") == {"success": 2}


# Looks late at what came, by its socket or by way of memory, where it takes far more at once than libssl is asked for.
LATE_CLIENT = LET_PASS + """
import socket, ssl, sys
port, body, context = int(sys.argv[1]), b'{"model":"m"}', ssl._create_unverified_context()
head = b"POST /v1/chat/completions HTTP/1.1\\r\\nHost: localhost:%d\\r\\nContent-Length: %d\\r\\n\\r\\n"
connection, come, go = socket.create_connection(("localhost", port), timeout=20), ssl.MemoryBIO(), ssl.MemoryBIO()
in_memory = sys.argv[2] == "memory"
tls = (context.wrap_bio(come, go, server_hostname="localhost") if in_memory else
       context.wrap_socket(connection, server_hostname="localhost", do_handshake_on_connect=False))
def carry(call, *words):
    while True:
        try:
            return call(*words)
        except ssl.SSLWantReadError:
            connection.sendall(go.read())
            come.write(connection.recv(1 << 20))
        finally:
            if in_memory:
                connection.sendall(go.read())
carry(tls.do_handshake)
carry(tls.write, head % (port, len(body)) + body)
let_pass(1.2)
carry(tls.read, 1000)
"""


@pytest.mark.parametrize("how", ["socket", "memory"])
def test_who_looks_late_at_a_stream_has_not_waited(how, reply, tls_provider, breaker_env):
    breaker_env.configure(slow_first_byte=0.5)
    reply(HEAD, *[part for _ in range(200) for part in (chunk_of(b":" + 2000 * b"a" + b"\n\n"), 0.02)])
    done = breaker_env.run(PYTHON, "-c", LATE_CLIENT, tls_provider.port, how)
    assert (done.returncode, done.stderr) == (0, b""), done
    assert told(breaker_env, tls_provider.key("m", "localhost")) == {"neutral": 1}
