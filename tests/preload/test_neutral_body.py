"""Issue 5, neutral_body: a 5xx by which a gateway tells of one conversation's length counts for nothing, whoever reads
it (FIELD-NOTES 7.13, mecatl#207); the gateway's other 5xx do."""

import gzip
import json
from pathlib import Path

import pytest

from provider import Answer
from support import PYTHON
from test_stream_clients import told

CLIENTS = Path(__file__).parent / "clients"
STREAM = Path(__file__).with_name("curl") / "stream.c"
TOO_LONG = json.dumps({"error": {"message": "This model's maximum context length is 8192 tokens.",
                                 "type": "server_error", "code": "context_length_exceeded"}}).encode()
TEXTS = "neutral_body = context_length_exceeded, maximum context length"
CURL = ["curl", "pycurl", "php-exec", "php-multi"]
SOCKETS = ["http.client", "requests", "aiohttp", "fetch", "php", "ruby"]


@pytest.fixture
def gateway(provider, breaker_env):
    """gateway(*KEYS, **KEYS of [breaker]): the provider as a target."""

    def configure(*lines, **keys):
        text = "\n".join(lines or (TEXTS,))
        breaker_env.configure(f"[target {provider.key()}]\n{text}\n", **{"open_seconds": 60, **keys})

    configure()
    return configure


@pytest.fixture
def ask(provider, breaker_env, curl, talk):
    """ask(NAME, number): the statuses that this client gets for so many calls."""
    running = {}

    def by_php(how, number):
        count = number if how == "multi" else 1  # a multi begins all at once: they know nothing of each other
        done = [breaker_env.run("php", CLIENTS / "client.php", how, provider.url(), *["m"] * count)
                for _ in range(number // count)]
        assert all(one.stderr == b"" for one in done), done
        return [json.loads(line)["status"] for one in done for line in one.stdout.splitlines()]

    def by_sockets(name, number):
        if name not in running:
            running[name] = talk(name)
        return [int(line.split()[1]) for line in running[name].ask_often(number, provider.url())]

    def ask_it(name, number):
        if name == "curl":
            return [curl(provider.url()).status for _ in range(number)]
        if name == "pycurl":
            done = breaker_env.run(PYTHON, CLIENTS / "sock_python.py", name, provider.url(), number, "m")
            return [int(line.split()[1]) for line in done.stdout.splitlines()]
        return by_php(name[4:], number) if name.startswith("php-") else by_sockets(name, number)

    return ask_it


@pytest.mark.parametrize("pieces", [1, len(TOO_LONG) // 3])
@pytest.mark.parametrize("name", CURL + SOCKETS)
def test_a_conversation_that_is_too_long_opens_nothing(name, pieces, provider, gateway, ask, breaker_env):
    key = provider.key("m")
    provider.answer(Answer(500, body=TOO_LONG, chunked=pieces > 1, pieces=pieces))
    assert ask(name, 8) == [500] * 8
    assert told(breaker_env, key) == {"neutral": 8} and breaker_env.state(key) == "closed"
    assert told(breaker_env, provider.key()) == {"success": 8}
    provider.answer(Answer(500))
    assert ask(name, 5) == [500] * 5 and breaker_env.state(key) == "open"
    assert ask(name, 1) == [503] and provider.count() == 13


@pytest.mark.parametrize("name", ["curl", "http.client"])
def test_without_the_key_it_opens(name, provider, gateway, ask):
    gateway("neutral_body =")
    provider.answer(Answer(500, body=TOO_LONG))
    assert ask(name, 7) == [500] * 5 + [503] * 2


@pytest.mark.parametrize("name", ["curl", "php-exec", "http.client"])
def test_a_probe_that_met_one_is_handed_back(name, provider, gateway, ask, breaker_env):
    key = provider.key("m")
    gateway(TEXTS, probe_lease=3600)
    breaker_env.make_due(key)
    provider.answer(Answer(500, body=TOO_LONG))
    assert ask(name, 3) == [500] * 3 and breaker_env.state(key) == "half_open"
    provider.then(Answer(200))
    assert ask(name, 1) == [200] and breaker_env.state(key) == "closed"


@pytest.mark.parametrize("name", ["curl", "http.client"])
def test_it_parks_nobody(name, provider, gateway, ask):
    gateway(TEXTS, cooldown_seconds=60)
    provider.then(*[Answer(503, body=TOO_LONG)] * 2, Answer(503))
    assert ask(name, 5) == [503, 503, 503, 429, 429] and provider.count() == 3


@pytest.mark.parametrize("flags,body,becomes", [
    ((), TOO_LONG, "neutral"),
    (("-i",), TOO_LONG, "neutral"),
    (("-N", "--compressed"), TOO_LONG, "neutral"),
    (("-f",), TOO_LONG, "failure"),  # libcurl leaves the body where it is
    (("--compressed",), gzip.compress(TOO_LONG, mtime=0), "neutral"),
    ((), gzip.compress(TOO_LONG, mtime=0), "failure"),
    ((), b" " * (4096 - len(TOO_LONG)) + TOO_LONG, "neutral"),
    ((), b" " * 4096 + TOO_LONG, "failure"),
    ((), TOO_LONG.upper(), "failure"),
    ((), b"", "failure"),
])
def test_what_of_the_body_is_read(flags, body, becomes, provider, gateway, breaker_env, curl):
    headers = {"Content-Encoding": "gzip"} if body[:2] == b"\x1f\x8b" else {}
    provider.answer(Answer(500, headers, body))
    breaker_env.run(*curl.command(provider.url(), "m", *flags))
    assert provider.count() == 1 and told(breaker_env, provider.key("m")) == {becomes: 1}


@pytest.mark.parametrize("headers,becomes", [({}, "neutral"), ({"Content-Encoding": "gzip"}, "failure")])
def test_over_sockets_an_encoded_body_is_not_read(headers, becomes, provider, gateway, breaker_env, talk):
    body = gzip.compress(TOO_LONG) if headers else TOO_LONG
    provider.answer(Answer(500, headers, body))
    assert talk("http.client").ask(provider.url()) == "status 500 -"
    assert told(breaker_env, provider.key("m")) == {becomes: 1}


@pytest.mark.parametrize("close,reset", [("mid-body", False), ("mid-body", True), ("after", False)])
@pytest.mark.parametrize("name", ["curl", "http.client"])
def test_however_its_connection_ends(name, close, reset, provider, gateway, breaker_env, curl, talk):
    """What came of the body says it."""
    provider.answer(Answer(500, body=TOO_LONG.ljust(2 * len(TOO_LONG)), close=close, reset=reset))
    if name == "curl":
        curl(provider.url())
    else:
        talk(name).ask(provider.url(), "m", "stream")
    assert told(breaker_env, provider.key("m")) == {"neutral": 1}


# Ways of libcurl to give the body; as in test_stream_curl.py, heads among its bytes leave nothing to be read.
@pytest.mark.parametrize("mode,becomes", [("plain", {"neutral": 1}), ("default", {"neutral": 2}),
                                          ("file", {"neutral": 2}), ("paused", {"neutral": 1}),
                                          ("with-heads", {"failure": 1}), ("heads-beside", {"failure": 1})])
def test_ways_to_be_given_the_body(mode, becomes, provider, gateway, breaker_env, compile_c):
    program = compile_c(STREAM, "-I", STREAM.parent, "-lcurl", name="stream")
    provider.answer(Answer(500, {"Date": "x"}, TOO_LONG, chunked=True, pieces=30))
    bare, ours = breaker_env.run_bare(program, mode, provider.url()), breaker_env.run(program, mode, provider.url())
    assert (bare.returncode, ours.returncode) == (0, 0) and bare.stdout == ours.stdout
    assert told(breaker_env, provider.key("m")) == becomes


@pytest.mark.parametrize("lines,environment", [
    (("neutral_body = no such text", "neutral_body = length is 8192"), {}),
    (("neutral_body = other",), {"BREAKER_NEUTRAL_BODY": "a, length is 8192"}),
    (("scope = host", "neutral_body = length is 8192"), {}),
])
def test_where_it_may_be_set(lines, environment, provider, gateway, breaker_env, curl):
    gateway(*lines)
    provider.answer(Answer(502, body=TOO_LONG))
    assert [curl(provider.url(), env=environment).status for _ in range(7)] == [502] * 7
    rows = {key: told(breaker_env, key) for key in breaker_env.breakers()}
    assert rows[provider.key("m") if "scope = host" not in lines else provider.key()] == {"neutral": 7}


def test_check_and_config_tell_of_it(provider, gateway, breaker_env):
    gateway("neutral_body = a b", "neutral_body = c,d")
    found = breaker_env.command("config", "--json", provider.key("m"))
    assert json.loads(found.stdout)["settings"]["neutral_body"]["value"] == "a b, c, d"
    gateway("neutral_body = a b", "neutral_body = c,,d")
    line = breaker_env.ini.read_text().splitlines().index("neutral_body = c,,d") + 1
    done = breaker_env.command("check", code=1)
    assert f"breaker.ini:{line}: neutral_body: expected texts of 1 to 128 bytes" in done.stdout + done.stderr
