"""Issue 6: programs whose TLS is their own (Java, Node that is not Debian's) or another library's (wget's GnuTLS): their
host is judged by its connects and handshakes, and what is inside is nobody's business.

The clients are those of test_sock_clients.py, over https; what each says without us is what it must say with us. Java, and
Node's https on a kept connection, try again by themselves, so failures are the breaker's count and not the calls'. That an
open host refuses their connects and an open model does not: test_coverage.py.
"""

import ssl

import pytest

from provider import Answer, wait_until
from sock_programs import REFUSED, TIMEOUT, digest_of
from test_sock_connect import cut, hold, listed, listener  # noqa: F401
from test_tls_clients import BROKEN, EVENTS, NAME, STREAM, TOLD
from tls_servers import OTHER_TLS, skip_other_node, trust


@pytest.fixture
def ask(talk, authority):
    """ask(NAME, *FLAGS): that client, which trusts the test's authority; bare=True: without the breaker."""

    def start(name, *flags, env=None, **options):
        skip_other_node(name, libssl=False)
        return talk(name, *flags, env=trust(authority) if env is None else env, **options)

    return start


@pytest.fixture
def key(tls_provider, breaker_env):
    """The host's, which is listed."""
    key = tls_provider.key(name=NAME)
    breaker_env.configure(listed(key), open_seconds=60)
    return key


def ways(name):
    """How calls travel: over a kept connection, and each over its own."""
    return [(), ("close",)] if OTHER_TLS[name].kept else [()]


def told_of(client, name, provider):
    """What it says of all that a healthy host may answer."""
    said, url = [], provider.url(name=NAME)
    for how in ways(name):
        for status in (500, 503, 429, 200):
            provider.answer(Answer(status))
            said += [client.ask(url, "m", *how), client.digest]
        provider.answer(STREAM)
        said += [*client.ask_often(2, url, "m", "stream", *how), client.digest]
    return said


@pytest.mark.parametrize("bare, version", [(True, ssl.TLSVersion.TLSv1_3), (False, ssl.TLSVersion.TLSv1_2),
                                           (False, ssl.TLSVersion.TLSv1_3)], ids=["bare", "1.2", "1.3"])
@pytest.mark.parametrize("name", OTHER_TLS)
def test_healthy_traffic(name, bare, version, key, tls_provider, breaker_env, ask):
    """It works, and each connection is a success of the host's: statuses are not read, nor is any model."""
    tls_provider.tls.maximum_version = version
    client = ask(name, bare=bare)
    expected = []
    for _ in ways(name):
        for status in (500, 503, 429, 200):
            expected += [TOLD[status], digest_of(Answer(status).payload())]
        expected += [TOLD[200]] * 2 + [digest_of(EVENTS)]
    assert told_of(client, name, tls_provider) == expected
    client.end()
    calls = breaker_env.calls(key)
    assert (calls["success"], calls["failure"], calls["neutral"]) == (0 if bare else tls_provider.accepted, 0, 0), calls
    assert set(breaker_env.breakers()) == (set() if bare else {key})


@pytest.mark.parametrize("name", OTHER_TLS)
def test_a_host_that_nobody_listed(name, tls_provider, breaker_env, ask):
    assert ask(name).ask(tls_provider.url(name=NAME)) == TOLD[200]
    assert not breaker_env.breakers()


@pytest.mark.parametrize("name", OTHER_TLS)
def test_refused_connects(name, key, tls_provider, breaker_env, ask):
    tls_provider.refuse()
    client, url = ask(name), tls_provider.url(name=NAME)
    wait_until(lambda: client.ask(url, "m", "close") == REFUSED and breaker_env.state(key) == "open", what="it opens")
    found = breaker_env.breakers()[key]
    assert (found["calls"]["failure"], found["last_failure"]["class"]) == (5, "connect")
    tls_provider.listen()
    assert client.ask(url, "m", "close") == REFUSED and tls_provider.accepted == 0
    breaker_env.make_due(key)
    assert client.ask(url, "m", "close") == TOLD[200] and breaker_env.state(key) == "closed"


@pytest.mark.parametrize("name", OTHER_TLS)
def test_handshakes_that_are_cut(name, listener, breaker_env, ask):  # noqa: F811
    server = listener(cut)
    key = f"{NAME}:{server.port}"
    breaker_env.configure(listed(key), open_seconds=60)
    client = ask(name)
    for _ in range(10):
        assert client.ask(f"https://{key}/v1/chat/completions", "m", "close").startswith("error ")
    found = breaker_env.breakers()[key]
    assert (found["state"], found["calls"]["failure"], found["last_failure"]["class"]) == ("open", 5, "handshake")
    assert server.accepted == 5


@pytest.fixture
def impatient(ask, tls_provider):
    """A client that waits a third of a second, and has shaken hands before: the first ones of Java take longer."""

    def start(name):
        client = ask(name, "--timeout", "0.3")
        wait_until(lambda: client.ask(tls_provider.url(name=NAME), "m", "close") == TOLD[200], what="a call in time")
        return client

    return start


# What each says of a handshake that takes too long.
LATE = dict.fromkeys(OTHER_TLS, TIMEOUT) | {"wget": "error other:nothing"}


@pytest.mark.parametrize("name", OTHER_TLS)
def test_handshakes_that_hang(name, listener, breaker_env, impatient):  # noqa: F811
    """Given up by the program's own time-out."""
    server = listener(hold)
    key = f"{NAME}:{server.port}"
    breaker_env.configure(listed(key), open_seconds=60, failure_threshold=2, connect_hang_after=0.1)
    client, url = impatient(name), f"https://{key}/v1/chat/completions"
    assert client.ask_often(2, url, "m", "close") == [LATE[name]] * 2
    breaker_env.wait_state(key, "open")
    assert client.ask(url, "m", "close") == REFUSED
    found = breaker_env.breakers()[key]
    assert (found["calls"]["failure"], found["last_failure"]["class"]) == (2, "connect_hang")
    assert server.accepted == 2


@pytest.mark.parametrize("name", OTHER_TLS)
def test_handshakes_that_are_given_up_early(name, listener, breaker_env, impatient):  # noqa: F811
    server = listener(hold)
    key = f"{NAME}:{server.port}"
    breaker_env.configure(listed(key), open_seconds=60, failure_threshold=1, connect_hang_after=20)
    assert impatient(name).ask(f"https://{key}/v1/chat/completions", "m", "close") == LATE[name]
    wait_until(lambda: breaker_env.calls(key)["neutral"] == 1, what="it is counted")
    assert breaker_env.calls(key)["failure"] == 0


@pytest.mark.parametrize("name", OTHER_TLS)
def test_answers_that_break_off(name, key, tls_provider, breaker_env, ask):
    """The host has answered; what became of the answer is not seen."""
    client = ask(name)
    for answer in BROKEN.values():
        tls_provider.answer(answer)
        client.ask(tls_provider.url(name=NAME), "m", "close")
    client.end()
    calls = breaker_env.calls(key)
    assert calls["failure"] == 0 and calls["success"] == tls_provider.accepted >= len(BROKEN), calls


@pytest.mark.parametrize("name", OTHER_TLS)
def test_a_certificate_that_is_not_trusted(name, key, tls_provider, breaker_env, ask):
    """Local trouble: it is the host that answered."""
    client = ask(name, env={"SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt"} if name == "wget" else {})
    for _ in range(6):
        assert client.ask(tls_provider.url(name=NAME), "m", "close").startswith("error other")
    calls = breaker_env.calls(key)
    assert calls["failure"] == 0 and calls["success"] >= 6 and tls_provider.count() == 0, calls


@pytest.mark.parametrize("name", [name for name in OTHER_TLS if OTHER_TLS[name].kept])
def test_kept_connections_that_the_server_closed(name, key, tls_provider, breaker_env, ask):
    """Nobody's failure."""
    client = ask(name)
    for _ in range(3):
        client.ask(tls_provider.url(name=NAME))
        tls_provider.hang_up()
    client.ask(tls_provider.url(name=NAME))
    calls = breaker_env.calls(key)
    assert calls["failure"] == 0 and calls["success"] == tls_provider.accepted >= 2, calls
