"""scope = host: one breaker for a host and all its models, under libcurl and under programs with sockets of their own."""

import json
import threading

import pytest

from provider import Answer, wait_until
from sock_programs import ALL, OPEN, REFUSED
from support import PYTHON

TOLD = {status: f"status {status} -" for status in (200, 404, 500, 503)}
FIVE = ["a", "b", "c", "d", "e"]
CLIENTS = ["http.client", "requests", "fetch", "node-http"]


def scoped(key, scope="host"):
    return f"[target {key}]\nscope = {scope}\n"


def streak(breaker_env, key):
    return breaker_env.breakers()[key]["streak"]


@pytest.fixture
def scoped_host(provider, breaker_env):
    """The key of the provider, a target of scope = host."""
    breaker_env.configure(scoped(provider.key()), open_seconds=60)
    return provider.key()


# --- libcurl ---------------------------------------------------------------------------------------


def test_five_models_open_their_host(provider, providers, curl, breaker_env, scoped_host):
    other = providers()
    provider.answer(Answer(500))
    assert [curl(provider.url(), model).status for model in FIVE] == [500] * 5
    refused = [curl(provider.url(), "f"), curl(provider.url("/v1/messages"), "g"), curl(provider.url("/v1/files"))]
    assert all(answer.status == 503 for answer in refused) and provider.count() == 5
    told = curl(provider.url(), "a", "-i").body
    assert f"X-Breaker-Key: {scoped_host}" in told.splitlines()
    found = breaker_env.breakers()
    assert found.keys() == {scoped_host}, "only the host's key"
    assert (found[scoped_host]["state"], found[scoped_host]["last_failure"]["status"]) == ("open", 500)
    assert (found[scoped_host]["calls"]["failure"], found[scoped_host]["calls"]["success"]) == (5, 0)
    # Another host is another matter, and keeps its models apart.
    other.answer(Answer(500), model="bad")
    assert [curl(other.url(), "bad").status for _ in range(6)] == [500] * 5 + [503]
    assert curl(other.url(), "good").status == 200
    assert breaker_env.state(other.key("bad")) == "open" and breaker_env.state(other.key()) == "closed"


def test_a_target_may_keep_its_models_apart(provider, curl, breaker_env):
    """For all hosts but one."""
    breaker_env.configure(scoped(provider.key(), "model"), scope="host", open_seconds=60)
    provider.answer(Answer(500))
    assert [curl(provider.url(), model).status for model in [*FIVE, "f"]] == [500] * 6
    assert breaker_env.breakers().keys() == {provider.key(), *map(provider.key, [*FIVE, "f"])}


@pytest.mark.parametrize("how", [{"BREAKER_SCOPE": "host"}, {"BREAKER_SET": "scope=host"}], ids=["variable", "--set"])
def test_without_a_file(how, provider, breaker_env, curl):
    provider.answer(Answer(500))
    assert [curl(provider.url(), model, env=how).status for model in [*FIVE, "f"]] == [500] * 5 + [503]


def test_connects_and_statuses_are_one_streak(provider, curl, breaker_env, scoped_host):
    provider.then(Answer(500), Answer(200, close="mid-body"))
    assert (curl(provider.url(), "a").status, curl(provider.url(), "b").code) == (500, 18)
    provider.refuse()
    assert [curl(provider.url(), model).code for model in ("c", "d")] == [7, 7]
    assert streak(breaker_env, scoped_host) == 4
    provider.listen()
    provider.then(Answer(404), Answer(429), Answer(503))
    assert [curl(provider.url(), model).status for model in ("x", "y")] == [404, 429]
    assert streak(breaker_env, scoped_host) == 4, "a 4xx says nothing of the host"
    assert curl(provider.url(), "e").status == 503 and curl(provider.url(), "f").refused
    assert breaker_env.calls(scoped_host)["failure"] == 5


def test_a_success_ends_the_streak(provider, curl, breaker_env, scoped_host):
    provider.then(*[Answer(500)] * 4, Answer(200), Answer(500))
    got = [curl(provider.url(), model).status for model in [*FIVE, "f"]]
    assert got == [500] * 4 + [200, 500] and streak(breaker_env, scoped_host) == 1


def test_one_probe_of_the_host(provider, curl, breaker_env, scoped_host):
    gate = threading.Event()
    provider.answer(Answer(500, gate=gate))
    breaker_env.command("trip", "--create", scoped_host)
    breaker_env.make_due(scoped_host)
    probe = breaker_env.start(*curl.command(provider.url(), "a"))
    provider.wait_for(1)
    assert all(curl(provider.url(), model).refused for model in FIVE)
    gate.set()
    assert curl.parse(probe.communicate(timeout=20)[0]).status == 500
    assert breaker_env.state(scoped_host) == "open" and provider.count() == 1
    breaker_env.make_due(scoped_host)
    provider.answer(Answer(200))
    assert curl(provider.url(), "b").status == 200 and breaker_env.state(scoped_host) == "closed"


# What is pulled by a read callback shows its model only while it is sent: nobody waits for it.
PULLED = """
import io, pycurl, sys
for model in sys.argv[2:]:
    body, got, handle = b'{"model": "%s"}' % model.encode(), io.BytesIO(), pycurl.Curl()
    for option, value in ((pycurl.URL, sys.argv[1]), (pycurl.POST, 1), (pycurl.POSTFIELDSIZE, len(body)),
                          (pycurl.READFUNCTION, io.BytesIO(body).read), (pycurl.WRITEFUNCTION, got.write)):
        handle.setopt(option, value)
    handle.perform()
    print(handle.getinfo(pycurl.RESPONSE_CODE))
"""


def test_a_pulled_body_is_not_waited_for(provider, breaker_env, scoped_host):
    provider.answer(Answer(500))
    done = breaker_env.run(PYTHON, "-c", PULLED, provider.url(), *FIVE, "f", "g")
    assert done.stdout.split() == [b"500"] * 5 + [b"503"] * 2, done
    assert provider.count() == 5 and not provider.partial and breaker_env.breakers().keys() == {scoped_host}


# --- sockets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CLIENTS)
def test_sockets_open_their_host(name, provider, breaker_env, talk, scoped_host):
    """Over a kept connection the head is refused; a new one is not made."""
    client, url = talk(name), provider.url()
    provider.answer(Answer(500))
    assert [client.ask(url, model) for model in FIVE] == [TOLD[500]] * 5
    assert len({r.connection for r in provider.seen()}) == 1
    assert client.ask(url, "f") == OPEN, "the kept connection"
    assert client.ask(url, "g", "close") == REFUSED
    assert provider.count() == 5 and provider.accepted == 1 and not provider.partial
    found = breaker_env.breakers()
    assert found.keys() == {scoped_host} and found[scoped_host]["state"] == "open"
    assert (found[scoped_host]["calls"]["failure"], found[scoped_host]["calls"]["success"]) == (5, 0)
    client.end()


@pytest.mark.parametrize("name", CLIENTS)
def test_new_connections_count_once_each(name, provider, breaker_env, talk, scoped_host):
    """The connect's own call is not one more: neither its first byte nor its end."""
    client, url = talk(name), provider.url()
    provider.then(*[Answer(500)] * 3, Answer(404))
    assert [client.ask(url, model, "close") for model in FIVE[:4]] == [TOLD[500]] * 3 + [TOLD[404]]
    assert streak(breaker_env, scoped_host) == 3
    provider.refuse()
    assert client.ask(url, "m", "close") == REFUSED
    assert streak(breaker_env, scoped_host) == 4
    provider.listen()
    provider.answer(Answer(503))
    assert client.ask(url, "e", "close") == TOLD[503]
    assert breaker_env.state(scoped_host) == "open"
    calls = breaker_env.calls(scoped_host)
    assert (calls["failure"], calls["success"]) == (5, 0), calls
    client.end()


@pytest.mark.parametrize("name", CLIENTS)
def test_the_request_decides_the_connects_probe(name, provider, breaker_env, talk, scoped_host):
    client, url = talk(name), provider.url()
    breaker_env.command("trip", "--create", scoped_host)
    for status, state in ((500, "open"), (404, "half_open"), (200, "closed")):
        breaker_env.make_due(scoped_host)
        accepted = provider.accepted
        provider.answer(Answer(status))
        assert client.ask(url, "m", "close") == TOLD[status]
        assert provider.accepted == accepted + 1
        assert breaker_env.state(scoped_host) == state, status
    client.end()


def test_while_the_probes_head_is_awaited_nobody_else_goes(provider, breaker_env, talk, curl, scoped_host):
    gate = threading.Event()
    provider.answer(Answer(500, body_gate=gate))
    breaker_env.command("trip", "--create", scoped_host)
    breaker_env.make_due(scoped_host)
    probe = breaker_env.start(*ALL["http.client"].argv, provider.url(), "1")
    provider.wait_for(1)
    other = talk("node-http")
    assert other.ask(provider.url(), "x") == REFUSED and curl(provider.url(), "y").refused
    gate.set()
    assert probe.communicate(timeout=20)[0].startswith(b"status 500")
    wait_until(lambda: breaker_env.state(scoped_host) == "open", what="the probe's failure")
    assert provider.count() == 1
    other.end()


def test_nothing_of_a_refused_request_leaves(provider, breaker_env, talk):
    """http.client sends its head before its body. A host that is no target: its connect is not judged."""
    provider.answer(Answer(500))
    for scope in ("host", "model"):
        breaker_env.configure(scope=scope, open_seconds=60)
        client = talk("http.client")
        assert client.ask_often(6, provider.url()) == [TOLD[500]] * 5 + [OPEN]
        assert client.ask(provider.url(), "m", "close") == OPEN
        client.end()
        assert provider.count() == 5
        if scope == "host":
            assert not provider.partial
            breaker_env.command("reset", provider.key())
            provider.clear()
    wait_until(lambda: len(provider.partial) == 2, what="the heads without a body")


def test_other_paths_succeed_by_their_first_byte(provider, breaker_env, talk, scoped_host):
    client = talk("http.client")
    provider.answer(Answer(500))
    for _ in range(4):
        assert client.ask(provider.url()) == TOLD[500]
    assert streak(breaker_env, scoped_host) == 4
    assert client.ask(provider.url("/v1/files")) == TOLD[500]
    found = breaker_env.breakers()[scoped_host]
    assert (found["state"], found["streak"], found["calls"]["success"]) == ("closed", 0, 1)
    client.end()


def test_sockets_and_curl_share_it(provider, breaker_env, talk, curl, scoped_host):
    python, node, url = talk("http.client"), talk("fetch"), provider.url()
    provider.answer(Answer(500))
    assert (python.ask(url, "a"), node.ask(url, "b"), curl(url, "c").status) == (TOLD[500], TOLD[500], 500)
    assert (python.ask(url, "d"), node.ask(url, "e")) == (TOLD[500], TOLD[500])
    assert (python.ask(url, "f"), node.ask(url, "g"), curl(url, "h").refused) == (OPEN, OPEN, True)
    assert provider.count() == 5 and breaker_env.breakers().keys() == {scoped_host}
    for client in (python, node):
        client.end()


# --- what the command tells ------------------------------------------------------------------------


def test_what_is_told_of_it(provider, breaker_env, curl, scoped_host):
    provider.answer(Answer(500))
    for model in FIVE:
        curl(provider.url(), model)
    curl(provider.url(), "f")
    assert {e["key"] for e in breaker_env.events()} == {scoped_host}
    trip = breaker_env.events(event="transition", to="open")
    assert [e["cause"] for e in trip] == ["status 500"], json.dumps(trip)
