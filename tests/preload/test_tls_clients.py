"""Issue 6: programs whose TLS is the system's libssl are covered as if they spoke in clear.

The clients are those of test_sock_clients.py, over https. What each says of a kind of trouble without us is what it must
say with us; what is counted of it is what is counted for curl.
"""

import ssl
import subprocess

import pytest

from provider import Answer, wait_until
from sock_programs import ALL, OPEN, REFUSED, TIMEOUT, Conversation, digest_of
from support import PYTHON
from test_sock_connect import cut, listener  # noqa: F401
from tls_servers import TLS, Tunnel, skip_other_node, trust

EVENTS = b"".join(b'data: {"choices":[{"delta":{"content":"%d"}}]}\n\n' % n for n in range(40)) + b"data: [DONE]\n\n"
STREAM = Answer(200, {"Content-Type": "text/event-stream"}, EVENTS, chunked=True, pieces=20)
TOLD = {status: f"status {status} -" for status in (200, 429, 500, 503)}
NAME = "localhost"


@pytest.fixture
def talk(breaker_env, authority):
    """talk(NAME, *FLAGS): that client under the breaker (bare=True: without), asked call by call."""

    def start(name, *flags, bare=False, env=None):
        skip_other_node(name, libssl=True)
        return Conversation(breaker_env.start(*ALL[name].argv, *flags, "-", bare=bare, stdin=subprocess.PIPE,
                                              env=trust(authority) if env is None else env))

    return start


def ways(name):
    """How calls travel: over a kept connection, and each over its own."""
    return [(), ("close",)] if TLS[name].kept else [()]


@pytest.mark.parametrize("name", TLS)
def test_bare(name, tls_provider, talk):
    """The clients are right without us."""
    client = talk(name, bare=True)
    url = tls_provider.url(name=NAME)
    for status in (500, 503, 429, 200):
        tls_provider.answer(Answer(status))
        assert client.ask(url) == TOLD[status]
    tls_provider.answer(STREAM)
    for how in ways(name):
        assert client.ask_often(2, url, "m", "stream", *how) == [TOLD[200]] * 2
        assert client.digest == digest_of(EVENTS)
    client.end()


@pytest.mark.parametrize("name", TLS)
def test_failures_open_it(name, tls_provider, breaker_env, talk):
    breaker_env.configure(open_seconds=60)
    url, key = tls_provider.url(name=NAME), tls_provider.key("m", NAME)
    for how in ways(name):
        breaker_env.command("reset", "--all")
        tls_provider.clear()
        client = talk(name)
        tls_provider.answer(Answer(200))
        assert client.ask_often(3, url, "m", *how) == [TOLD[200]] * 3
        assert client.digest == digest_of(Answer(200).payload())
        tls_provider.answer(Answer(500))
        assert client.ask_often(5, url, "m", *how) == [TOLD[500]] * 5
        assert client.ask_often(3, url, "m", *how) == [OPEN] * 3
        assert breaker_env.state(key) == "open"
        calls = breaker_env.calls(key)
        assert (calls["success"], calls["failure"], calls["refused"]) == (3, 5, 3), calls
        assert tls_provider.count() == 8
        # Another model of the host is none of this, on the same pool.
        tls_provider.answer(Answer(200))
        assert client.ask_often(2, url, "other", *how) == [TOLD[200]] * 2
        # And once it is closed again the client goes on.
        breaker_env.command("reset", key)
        assert client.ask_often(2, url, "m", *how) == [TOLD[200]] * 2
        client.end()


@pytest.mark.parametrize("name", TLS)
def test_streams(name, tls_provider, breaker_env, talk):
    """Unchanged, and one that breaks counts."""
    breaker_env.configure(open_seconds=60)
    url, key = tls_provider.url(name=NAME), tls_provider.key("m", NAME)
    client = talk(name)
    tls_provider.answer(STREAM)
    for how in ways(name):
        assert client.ask_often(2, url, "m", "stream", *how) == [TOLD[200]] * 2
        assert client.digest == digest_of(EVENTS)
    succeeded = breaker_env.calls(key)["success"]
    assert succeeded == 2 * len(ways(name))
    broken = Answer(200, {"Content-Type": "text/event-stream"}, EVENTS, chunked=True, close="mid-body")
    tls_provider.answer(broken)
    for _ in range(5):
        client.ask(url, "m", "stream", "close")
    assert client.ask(url, "m", "stream") == OPEN
    calls = breaker_env.calls(key)
    assert (calls["success"], calls["failure"]) == (succeeded, 5), calls


BROKEN = {"before its head": Answer(close="before-head"), "before its head, by a reset": Answer(close="before-head", reset=True),
          "in its head": Answer(close="mid-head"), "in its body": Answer(close="mid-body"),
          "in its body, by a reset": Answer(body=b"x" * 100_000, close="mid-body", reset=True)}


@pytest.mark.parametrize("name", TLS)
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
def test_answers_that_break_off(name, version, tls_provider, breaker_env, talk):
    """However the server goes: without a close_notify, or with a reset; and whether or not there are tickets before."""
    tls_provider.tls.maximum_version = version
    breaker_env.configure(failure_threshold=0)
    url, key = tls_provider.url(name=NAME), tls_provider.key("m", NAME)
    client = talk(name)
    for count, answer in enumerate(BROKEN.values(), 1):
        tls_provider.clear()
        tls_provider.answer(answer)
        client.ask(url, "m", "close")
        wait_until(lambda: breaker_env.calls(key)["failure"] >= count, what=f"failure {count}")
    calls = breaker_env.calls(key)
    assert calls["success"] == 0 and breaker_env.calls(tls_provider.key(name=NAME))["failure"] == 0, calls
    tls_provider.answer(Answer(body=b"to the end", headers={"Content-Length": "10"}, close="after"))
    assert client.ask(url, "m", "close") == TOLD[200]
    assert breaker_env.calls(key)["success"] == 1


# As uvloop does: it asks whether there is more, and never reads in vain.
ASKING = """
import socket, ssl, sys
port, ca = int(sys.argv[1]), sys.argv[2]
incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
tls = ssl.create_default_context(cafile=ca).wrap_bio(incoming, outgoing, server_hostname="localhost")
plain = socket.create_connection(("localhost", port))
while True:
    try:
        tls.do_handshake()
        break
    except ssl.SSLWantReadError:
        plain.sendall(outgoing.read())
        incoming.write(plain.recv(65536))
body = b'{"model": "m"}'
tls.write(b"POST /v1/chat/completions HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Length: %d\\r\\n\\r\\n%s" % (len(body), body))
plain.sendall(outgoing.read())
while records := plain.recv(65536):
    incoming.write(records)
    while incoming.pending or tls.pending():
        try:
            if not tls.read(100):
                break
        except ssl.SSLWantReadError:
            break
plain.close()
"""


@pytest.mark.parametrize("how, counted", [("mid-body", (0, 1)), ("after", (1, 0))])
def test_memory_that_is_asked(how, counted, tls_provider, breaker_env, authority):
    """What became of an answer is known by its last byte, though nobody asks the layer for another."""
    tls_provider.answer(Answer(body=b"x" * 50_000, close=how))
    done = breaker_env.run(PYTHON, "-c", ASKING, tls_provider.port, authority.ca)
    assert (done.returncode, done.stderr) == (0, b""), done
    calls = breaker_env.calls(tls_provider.key("m", NAME))
    assert (calls["success"], calls["failure"]) == counted, calls


@pytest.mark.parametrize("name", [name for name in TLS if TLS[name].kept])
def test_kept_connections_that_the_server_closed(name, tls_provider, breaker_env, talk):
    """Between two calls: nobody's failure, whether the client tries again by itself or not."""
    url, key = tls_provider.url(name=NAME), tls_provider.key("m", NAME)
    client = talk(name)
    for _ in range(3):
        client.ask(url)
        tls_provider.hang_up()
    client.ask(url)
    calls = breaker_env.calls(key)
    assert calls["failure"] == 0 and calls["success"] == tls_provider.count() >= 2, calls


@pytest.mark.parametrize("name", TLS)
def test_hangs(name, tls_provider, breaker_env, talk):
    """Closed by an impatient client, before there was a head."""
    breaker_env.configure(open_seconds=60, hang_after=0.5, timeout_after=0.5)
    url, key = tls_provider.url(name=NAME), tls_provider.key("m", NAME)
    client = talk(name, "--timeout", "1")
    tls_provider.answer(Answer(hang=True))
    # LWP and PHP end the answer's head or body by themselves when they have waited.
    said = client.ask_often(2, url, "m", "close")
    assert said == [TIMEOUT] * 2 or name in ("php", "lwp"), said
    wait_until(lambda: breaker_env.calls(key)["failure"] == 2, what="two failures")  # asyncio closes when it comes to it
    assert breaker_env.calls(key)["success"] == 0


@pytest.mark.parametrize("name", TLS)
def test_curl_and_the_client_share_it(name, tls_provider, breaker_env, talk, curl, authority):
    breaker_env.configure(open_seconds=60)
    url = tls_provider.url(name=NAME)
    client = talk(name)
    tls_provider.answer(Answer(500))
    for _ in range(3):
        assert client.ask(url) == TOLD[500]
    for _ in range(2):
        assert curl(url, "m", "--cacert", authority.ca).status == 500
    assert client.ask(url) == OPEN
    assert curl(url, "m", "--cacert", authority.ca).refused
    assert tls_provider.count() == 5


@pytest.mark.parametrize("name", TLS)
def test_a_host_that_is_refused(name, tls_provider, breaker_env, talk):
    breaker_env.configure(f"[target {tls_provider.key(name=NAME)}]\n", open_seconds=60)
    breaker_env.command("trip", "--create", tls_provider.key(name=NAME))
    client = talk(name)
    assert client.ask(tls_provider.url(name=NAME)) == REFUSED
    assert tls_provider.accepted == 0


@pytest.mark.parametrize("name", TLS)
def test_a_certificate_that_is_not_trusted(name, tls_provider, breaker_env, talk, tmp_path):
    """Local trouble: says nothing of the host. (httpx checks none without a file, so it gets one.)"""
    empty = tmp_path / "none.pem"
    empty.write_bytes(b"")
    key = tls_provider.key(name=NAME)
    breaker_env.configure(f"[target {key}]\n")
    variables = {} if not name.startswith("httpx") else {"SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt"}
    client = talk(name, env=variables)
    for _ in range(6):
        assert client.ask(tls_provider.url(name=NAME)).startswith("error other")
    calls = breaker_env.calls(key)
    assert calls["failure"] == 0 and breaker_env.state(key) == "closed", calls
    assert tls_provider.count() == 0


@pytest.mark.parametrize("name", ["requests", "httpx", "httpx-async"])
def test_through_a_proxy(name, tls_provider, breaker_env, talk, authority):
    """CONNECT: what is inside the tunnel is the host's, and nothing of it the proxy's."""
    breaker_env.configure(open_seconds=60)
    url = tls_provider.url(name=NAME)
    with Tunnel() as tunnel:
        client = talk(name, env={**trust(authority), "HTTPS_PROXY": f"http://127.0.0.1:{tunnel.port}"})
        tls_provider.answer(Answer(500))
        assert client.ask_often(5, url) == [TOLD[500]] * 5
        assert client.ask_often(2, url) == [OPEN] * 2
        assert client.ask(url, "other") == TOLD[500]
        client.end()
    assert set(tunnel.asked) == {tls_provider.port}
    assert set(breaker_env.breakers()) == {tls_provider.key(model, NAME) for model in (None, "m", "other")}


@pytest.mark.parametrize("name", TLS)
def test_handshakes_that_are_cut(name, listener, breaker_env, talk):  # noqa: F811
    """They are the host's failures, through memory BIOs as well."""
    server = listener(cut)
    key = f"{NAME}:{server.port}"
    breaker_env.configure(f"[target {key}]\n", open_seconds=60)
    client = talk(name)
    for _ in range(10):
        client.ask(f"https://{key}/v1/chat/completions", "m", "close")
    assert breaker_env.state(key) == "open" and server.accepted == 5
    assert breaker_env.breakers()[key]["last_failure"]["class"] == "handshake"


@pytest.mark.parametrize("name", ["http.client", "aiohttp"])
def test_one_breaker_for_the_host(name, tls_provider, breaker_env, talk):
    """scope = host: neither a handshake nor a first byte is a success in between, and the probe is the call itself."""
    key = tls_provider.key(name=NAME)
    breaker_env.configure(f"[target {key}]\nscope = host\n", open_seconds=60)
    client = talk(name)
    tls_provider.answer(Answer(500))
    for how in ((), ("close",), ("close",), (), ("close",)):
        assert client.ask(tls_provider.url(name=NAME), "m", *how) == TOLD[500]
    assert breaker_env.state(key) == "open" and breaker_env.calls(key)["failure"] == 5
    assert client.ask(tls_provider.url(name=NAME)) in (OPEN, REFUSED)
    breaker_env.make_due(key)
    assert client.ask(tls_provider.url(name=NAME), "m", "close") == TOLD[500]
    assert breaker_env.state(key) == "open"
    breaker_env.make_due(key)
    tls_provider.answer(Answer(200))
    assert client.ask(tls_provider.url(name=NAME), "m", "close") == TOLD[200]
    assert breaker_env.state(key) == "closed"
    assert set(breaker_env.breakers()) == {key}


@pytest.mark.parametrize("name", ["http.client", "aiohttp"])
def test_a_probe_of_the_host(name, tls_provider, breaker_env, talk):
    """The connect's grant is the first request's, which is counted once."""
    key = tls_provider.key(name=NAME)
    breaker_env.configure(f"[target {key}]\n")
    breaker_env.make_due(key)
    client = talk(name)
    assert client.ask_often(2, tls_provider.url(name=NAME)) == [TOLD[200]] * 2
    assert breaker_env.state(key) == "closed"
    calls = breaker_env.calls(key)
    assert (calls["success"], calls["failure"], calls["neutral"]) == (2, 0, 0), calls


@pytest.mark.parametrize("name", ["http.client", "aiohttp"])
def test_a_fallback_address(name, tls_provider, providers, breaker_env, talk, authority):
    """Diverted, what is inside is the fallback's, though the handshake names the host that was meant."""
    other = providers(tls=authority.server())
    key = tls_provider.key(name=NAME)
    breaker_env.configure(f"[target {key}]\nfallback_address = {other.key(name=NAME)}\n", open_seconds=60)
    breaker_env.command("trip", "--create", key)
    client = talk(name)
    assert client.ask_often(2, tls_provider.url(name=NAME), "m", "close") == [TOLD[200]] * 2
    assert (tls_provider.accepted, other.count()) == (0, 2)
    assert breaker_env.calls(other.key("m", NAME))["success"] == 2
    breaker_env.command("trip", other.key("m", NAME))
    assert client.ask(tls_provider.url(name=NAME), "m", "close") == OPEN
    assert other.count() == 2


FORKED = """
import os, sys, requests
url, body = sys.argv[1], '{"model":"m"}'
def calls(session, number):
    for _ in range(number):
        os.write(1, b"%d\\n" % session.post(url, data=body, timeout=10).status_code)
session = requests.Session()
calls(session, 1)
children = []
for _ in range(4):
    children.append(os.fork())
    if children[-1] == 0:
        calls(requests.Session(), 3)
        os._exit(0)
for child in children:
    assert os.waitpid(child, 0)[1] == 0
calls(session, 2)
"""


def test_children_of_a_fork_share_it(tls_provider, breaker_env, authority):
    """As servers with several workers do: each is followed on connections of its own, the parent goes on with its."""
    url = tls_provider.url(name=NAME)
    done = breaker_env.run(PYTHON, "-c", FORKED, url, env=trust(authority))
    assert done.stdout.split() == [b"200"] * 15 and tls_provider.count() == 15, done
    assert breaker_env.calls(tls_provider.key("m", NAME))["success"] == 15
    breaker_env.configure(open_seconds=60)
    tls_provider.clear()
    tls_provider.answer(Answer(500))
    done = breaker_env.run(PYTHON, "-c", FORKED, url, env=trust(authority))
    answers = done.stdout.split()
    assert answers[-2:] == [b"503"] * 2 and set(answers) == {b"500", b"503"} and len(answers) == 15, done
    assert answers.count(b"500") == tls_provider.count() <= 5 + 3  # those that were under way
