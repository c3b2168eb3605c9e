"""Issue 4, right when 1: with the primary dead or failing every call of every client of libcurl succeeds through the
fallback, and the answers are the fallback's."""

import json
import re
import threading
from pathlib import Path

import pytest

from curl_lines import lines_of
from fallbacks import (EVENTS, GNUTLS, HEADERS, OPENSSL, PLAIN, SECOND_KEY, STREAM, Fallback, Remote, arrived, chat,
                       expected, in_order, trip_by_failures)
from provider import Answer
from support import PYTHON

CLIENTS = Path(__file__).with_name("clients")
ENVIRONMENT = {"SECOND_KEY": SECOND_KEY, "CLIENT_HEADERS": "\n".join(HEADERS)}
MODELS = ["fine", "shut"]
WAYS = [("dead", STREAM), ("failing", PLAIN)]


@pytest.fixture
def second(providers):
    return Fallback("second", providers(), model="fine:openai/gpt-4o, *:openai/{model}")


def renamed(model):
    return "openai/gpt-4o" if model == "fine" else f"openai/{model}"


# --- the clients ---------------------------------------------------------------------------------


CODE = "%{stderr}<%{http_code} %{url_effective}>"  # -Z shows a meter there, too


def curl_tool(*flags, at=False):
    """Two calls of one process, as each client here makes several."""

    def command(client, url, directory):
        words = ["curl", "-s", *flags]
        for number, model in enumerate(MODELS):
            body = directory / f"{model}.json"
            body.write_text(chat(model, messages=[{"content": '"model":"x"'}], stream=True))
            words += ["--next", "-s", *flags] if number else []
            words += [word for line in HEADERS for word in ("-H", line)]
            words += ["-w", CODE, "--data-binary" if at else "-d", f"@{body}" if at else body.read_text(), url]
        return words

    return command


def curl_parallel(client, url, directory):
    return ["curl", "-s", "-Z", *[word for line in HEADERS for word in ("-H", line)], "-d", chat("fine"), "-w", CODE,
            *[f"{url}?n={n}" for n in range(4)]]


def program(name, how):
    words = ["php", CLIENTS / "client.php"] if name == "php" else [PYTHON, CLIENTS / "client_pycurl.py"]
    return lambda client, url, directory: [*words, how, url, *MODELS, "fine"]


def c_program(mode):
    return lambda client, url, directory: [client, mode, url]


def answers_of(name, done):
    """(status, effective URL) of each call of a program that ended well."""
    assert done.returncode == 0, done
    if name.startswith("curl"):
        lines = re.findall(r"<(\d+) (\S+)>", done.stderr.decode())
        return [(int(status), url) for status, url in lines]
    if name.startswith("C "):
        assert all(line.code == 0 for line in lines_of(done)), done
        return [(line.status, line.url) for line in lines_of(done)]
    return [(answer["status"], answer["url"]) for answer in map(json.loads, done.stdout.splitlines())]


PROGRAMS = {
    "curl -d": curl_tool(), "curl --data-binary @": curl_tool(at=True), "curl -N": curl_tool("-N"),
    "curl --http1.1": curl_tool("--http1.1"), "curl --http1.0": curl_tool("--http1.0"), "curl -Z": curl_parallel,
    **{f"php {how}": program("php", how) for how in ("exec", "copy", "multi")},
    **{f"pycurl {how}": program("pycurl", how) for how in ("exec", "copy", "multi", "reset")},
    **{f"C {mode}": c_program(mode) for mode in ("fields", "copy", "curlu", "callbacks", "bound", "file", "multi-fields",
                                                 "multi-file", "socket-fields")},
}


@pytest.mark.parametrize("how,answer", WAYS, ids=[f"{how}-{'stream' if a is STREAM else 'plain'}" for how, a in WAYS])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_call_after_the_trip_succeeds(name, how, answer, breaker_env, client, curl, provider, second, configure,
                                            tmp_path):
    command = PROGRAMS[name](client, provider.url(), tmp_path)
    bare = breaker_env.run_bare(*command, env=ENVIRONMENT)
    direct = answers_of(name, bare)
    count = len(direct)
    assert count == provider.count() and {status for status, _ in direct} == {200}
    originals = [request.raw for request in provider.seen()]

    configure(provider, second, failover="off")
    trip_by_failures(breaker_env, curl, provider, MODELS, how)
    second.provider.answer(answer)
    done = breaker_env.run(*command, env=ENVIRONMENT)
    there = [(200, url.replace(provider.url("/v1"), second.base)) for _, url in direct]
    assert sorted(answers_of(name, done)) == sorted(there)
    assert (provider.count(), second.provider.count()) == (0, count)
    assert in_order(arrived(r.raw, second) for r in second.provider.seen()) == \
        in_order(expected(raw, second, rename=renamed) for raw in originals)
    if name == "curl -N":
        assert done.stdout == answer.payload() * count

    refusing = [provider.key()] if how == "dead" else [provider.key(m) for m in MODELS]
    tallies = [breaker_env.calls(key) for key in refusing]
    assert sum(t["rerouted"] for t in tallies) == count
    assert [(t["refused"], t["success"], t["failure"]) for t in tallies] == [(0, 0, 5)] * len(refusing)
    models = {"fine", "shut"} if "-Z" not in name else {"fine"}
    successes = {m: breaker_env.calls(second.key(renamed(m)))["success"] for m in models}
    assert successes == {m: sum(r.model == renamed(m) for r in second.provider.seen()) for m in models}
    assert breaker_env.state(second.key()) == "closed"


@pytest.mark.parametrize("client_name,how", [("pycurl", "upload"), ("php", "upload")])
def test_bodies_that_bindings_pull(client_name, how, breaker_env, provider, providers, client, tripped, tmp_path):
    """Neither gives libcurl a way back in its body."""
    command = program(client_name, how)(client, provider.url(), tmp_path)
    second = Fallback("second", providers(), model=None)
    tripped(provider, second)
    assert answers_of(client_name, breaker_env.run(*command, env=ENVIRONMENT)) == [(200, second.url())] * 3
    assert [r.model for r in second.provider.seen()] == ["fine", "shut", "fine"] and provider.accepted == 0


# --- failover inside a call ----------------------------------------------------------------------


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_call_ever_fails(name, breaker_env, client, provider, second, configure, tmp_path):
    """failover = connect, which is the default: the calls that find the primary dead get their answers as well."""
    configure(provider, second)
    second.provider.answer(STREAM)
    provider.refuse()
    command, count = PROGRAMS[name](client, provider.url(), tmp_path), 0
    for _ in range(4):
        answers = answers_of(name, breaker_env.run(*command, env=ENVIRONMENT))
        assert {status for status, _ in answers} == {200}
        assert {url.split("?")[0] for _, url in answers} == {second.url()}
        count += len(answers)
        assert second.provider.count() == count
    assert count >= 8 and breaker_env.state(provider.key()) == "open"
    for request in second.provider.seen():
        arrived(request.raw, second)
        assert b"sk-0f-the-primary" not in request.raw
    tally = breaker_env.calls(provider.key())
    assert (tally["refused"], tally["success"]) == (0, 0) and tally["failure"] >= 5
    if not re.search("-Z|multi|socket", name):
        assert tally["failure"] == 5


@pytest.mark.parametrize("library", [OPENSSL, GNUTLS])
@pytest.mark.parametrize("way", ["easy", "perform", "socket"])
def test_as_many_connects_are_tried_as_it_takes_to_trip(way, library, breaker_env, provider, second, configure):
    configure(provider, second)
    provider.refuse()
    with Remote(breaker_env, library) as curl:
        curl.made("a", URL=provider.url(), POSTFIELDS=chat("m"))
        tried = 0
        for _ in range(9):
            done = curl.perform(name="a") if way == "easy" else curl.perform_many(names=["a"], way=way)[0]
            assert (done.code, done.status, done.url, done.body) == (0, 200, second.url(), Answer().payload().decode())
            tried += done.opened.count(provider.port)
    assert tried == breaker_env.calls(provider.key())["failure"] == 5
    assert second.provider.count() == 9
    assert len({r.connection for r in second.provider.seen()}) == 1, "its connection is used again"


def test_the_curl_tool_tries_as_many_connects(breaker_env, provider, second, configure):
    configure(provider, second)
    provider.refuse()
    tried = 0
    for _ in range(8):
        done = breaker_env.run("curl", "-sv", "-d", chat("m"), provider.url(), env=ENVIRONMENT)
        assert done.returncode == 0 and done.stdout == Answer().payload()
        tried += done.stderr.decode().count(f"Trying 127.0.0.1:{provider.port}")
    assert (tried, second.provider.count()) == (5, 8)


def test_failover_off_fails(breaker_env, curl, provider, second, configure):
    configure(provider, second, failover="off")
    trip_by_failures(breaker_env, curl, provider)
    assert second.provider.accepted == 0


def test_a_call_that_was_sent_is_not_sent_again(breaker_env, curl, provider, second, configure):
    """failover is for connects: a request that may have been worked on is never made twice."""
    configure(provider, second)
    provider.answer(Answer(close="before-head"))
    assert curl(provider.url()).code == 52
    provider.answer(Answer(503))
    assert curl(provider.url()).status == 503
    assert second.provider.accepted == 0


# --- answers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [STREAM, PLAIN, Answer(404, {"X-Their": "own"}), Answer(429, {"Retry-After": "7"})],
                         ids=["stream", "plain", "404", "429"])
@pytest.mark.parametrize("way", ["easy", "perform", "socket"])
def test_the_answer_is_the_fallbacks(way, answer, breaker_env, provider, second, tripped):
    second.provider.answer(answer)
    tripped(provider, second)
    with Remote(breaker_env) as curl:
        curl.made("a", URL=provider.url(), POSTFIELDS=chat("m"))
        done = curl.perform(name="a") if way == "easy" else curl.perform_many(names=["a"], way=way)[0]
    assert (done.status, done.code, done.body) == (answer.status, 0, answer.payload().decode())
    assert (done.primary_port, done.connects) == (second.provider.port, 1)
    assert "X-Breaker" not in done.head
    for name in answer.headers:
        assert f"{name}: {answer.headers[name]}\r\n" in done.head


def test_a_stream_arrives_as_it_is_sent(breaker_env, provider, second, tripped):
    """No byte waits for a later one: half a stream shows while the server holds the rest."""
    gate = threading.Event()
    second.provider.answer(Answer(200, body=EVENTS, body_gate=gate))
    tripped(provider, second)
    process = breaker_env.start("curl", "-sN", "-d", chat("m"), provider.url(), env=ENVIRONMENT)
    assert process.stdout.read(1) == EVENTS[:1]
    gate.set()
    assert process.stdout.read() == EVENTS[1:] and process.wait(15) == 0


def test_the_log_names_where_it_went(breaker_env, curl, provider, second, tripped):
    tripped(provider, second)
    assert curl(provider.url(), env=ENVIRONMENT).status == 200
    (event,) = breaker_env.events(event="rerouted")
    assert (event["key"], event["to"], event["detail"]) == (provider.key(), second.key("openai/m"), "fallback second")
    assert SECOND_KEY not in breaker_env.log.read_text()
