"""Issue 4, right when 1: with the primary dead or failing every call of libcurl succeeds through the fallback, and what
arrives there differs from what the primary would have had in its base, host, model and credentials alone."""

import json
import re
import threading
from pathlib import Path

import pytest

from curl_lines import lines_of
from fallbacks import (EVENTS, GNUTLS, OPENSSL, PLAIN, SECOND_KEY, STREAM, Bytes, Fallback, Remote, arrived, chain, chat,
                       expected, in_order, is_refused, reasons, trip_by_failures)
from provider import Answer
from support import PYTHON

CLIENTS = Path(__file__).with_name("clients")
HEADERS = ["Content-Type: application/json", "Authorization: Bearer sk-0f-the-primary", "X-App: one; two",
           "OpenAI-Organization: org-1", "Idempotency-Key: 7", "x-lower: kept"]
ENVIRONMENT = {"SECOND_KEY": SECOND_KEY, "CLIENT_HEADERS": "\n".join(HEADERS)}
MODELS = ["fine", "shut"]
WAYS = [("dead", STREAM), ("failing", PLAIN)]


@pytest.fixture
def second(providers):
    return Fallback("second", providers(), model="fine:openai/gpt-4o, *:openai/{model}")


@pytest.fixture
def configure(breaker_env):
    def configure_it(primary, *fallbacks, **keys):
        breaker_env.configure(chain(primary, *fallbacks, **keys), open_seconds=60)

    return configure_it


@pytest.fixture
def tripped(breaker_env, configure):
    """The primary refuses, told by hand; it is alive."""

    def trip_it(primary, *fallbacks, key=None, **keys):
        configure(primary, *fallbacks, **keys)
        breaker_env.command("trip", "--create", key or primary.key())

    return trip_it


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


# --- bodies --------------------------------------------------------------------------------------


def compare(breaker_env, provider, second, tripped, *, rename=renamed, target=None, prepare=None, library=OPENSSL,
            **options):
    """One call without us, then the same through the fallback; both libcurl's, byte for byte."""
    options = {"URL": provider.url(), "HTTPHEADER": HEADERS, **options}
    results = []
    for bare in (True, False):
        if not bare:
            tripped(provider, second)
        with Remote(breaker_env, library, bare=bare) as curl:
            curl.made("a", **options)
            if prepare:
                prepare(curl)
            before = curl.theirs(name="a")
            results.append(curl.perform(name="a"))
            assert curl.theirs(name="a") == before
    assert [r.status for r in results] == [200, 200], (results[1], reasons(breaker_env))
    assert (provider.count(), second.provider.count()) == (1, 1)
    raw = provider.seen()[0].raw
    request = arrived(second.provider.seen()[0].raw, second)
    assert request == expected(raw, second, target=target, rename=rename)
    return results[1], Bytes(raw), request


BODIES = {
    "first": '{"model":"fine","messages":[{"content":"\\"model\\":\\"no\\""}],"n":1}',
    "middle": '{"a":{"model":1},"model" : "fine" , "b":[{"x":2}]}',
    "last": '{"messages":[],"n":1.50,"model":\t"fine"\r\n}\n',
    "unicode": '{"model":"m\u00c3\u00a9","u":"\u00e2\u0082\u00ac"}',  # UTF-8, as latin-1
    "slashes": '{"model":"org/fine","n":1}',
    "written in escapes": '{"model":"f\\u0069ne","n":1}',
    "escaped slash": '{"model":"a\\/b"}',
    "blanks": '  {"model":"with blanks in it"}  ',
    "the same length": '{"model":"fine"}',
}


@pytest.mark.parametrize("way", ["POSTFIELDS", "COPYPOSTFIELDS"])
@pytest.mark.parametrize("body", BODIES)
def test_nothing_but_the_model_changes_in_a_body(body, way, breaker_env, provider, second, tripped):
    body = BODIES[body]
    options = {"POSTFIELDSIZE": len(body), way: body}
    value = re.search(r'"model"\s*:\s*("(?:[^"\\]|\\.)*")', body)
    new = renamed(json.loads(value[1].encode("latin-1")))
    _, original, got = compare_bodies(breaker_env, provider, second, tripped, options)
    start, end = value.span(1)
    head, tail = original.body[:start], original.body[end:]
    assert got.body.startswith(head) and got.body.endswith(tail)
    assert json.loads(got.body[len(head):len(got.body) - len(tail)]) == new
    assert int(got.values("content-length")[0]) == len(got.body)


def compare_bodies(breaker_env, provider, second, tripped, options, library=OPENSSL):
    """As compare(), the bodies left to the caller."""
    results = []
    for bare in (True, False):
        if not bare:
            tripped(provider, second)
        with Remote(breaker_env, library, bare=bare) as curl:
            results.append(curl.call(**{"URL": provider.url(), "HTTPHEADER": HEADERS, **options}))
    assert [r.status for r in results] == [200, 200]
    assert (provider.count(), second.provider.count()) == (1, 1)
    original, got = Bytes(provider.seen()[0].raw), Bytes(second.provider.seen()[0].raw)
    return results[1], original, got


@pytest.mark.parametrize("model", ['qu"ote', "back\\slash", "\U0001f600", "a,b:c", "%s%n", "${HOME}"])
def test_odd_names_of_models_in_the_body(model, breaker_env, provider, second, tripped):
    """As the application wrote it, escaped or not; what arrives means the same name behind the new prefix."""
    body = json.dumps({"n": 1, "model": model, "z": [True]})
    _, _, got = compare_bodies(breaker_env, provider, second, tripped, {"POSTFIELDS": body})
    assert json.loads(got.body) == {"n": 1, "model": f"openai/{model}", "z": [True]}
    assert got.body.startswith(b'{"n": 1, "model": "') and got.body.endswith(b'", "z": [true]}')


@pytest.mark.parametrize("model", ["tab\t", "null\u0000", "line\n"])
def test_a_name_that_nobody_can_read_is_none(model, breaker_env, curl, provider, second, tripped):
    """Control characters are in no model's name: what such a request asks for is not known, nor what it would be there."""
    tripped(provider, second)
    assert curl(provider.url(), model, env=ENVIRONMENT).refused
    assert any("second" in reason for reason in reasons(breaker_env))
    assert (provider.accepted, second.provider.accepted) == (0, 0)


def test_a_name_with_quotes_is_put_in_as_json(breaker_env, provider, providers, tripped):
    second = Fallback("second", providers(), model=r'*:a"b\c/{model}')
    _, _, got = compare_bodies(breaker_env, provider, second, tripped, {"POSTFIELDS": chat("fine")})
    assert json.loads(got.body) == {"model": 'a"b\\c/fine'}


@pytest.mark.parametrize("way", ["POSTFIELDS", "COPYPOSTFIELDS"])
@pytest.mark.parametrize("last", [False, True], ids=["model first", "model last"])
def test_six_megabytes(last, way, breaker_env, provider, second, tripped, tmp_path):
    filler = '"image":"' + "A" * 6_000_000 + '"'
    body = ("{" + filler + ',"model":"fine"}') if last else ('{"model":"fine",' + filler + "}")
    file = tmp_path / "body"
    file.write_text(body)
    compare(breaker_env, provider, second, tripped, **{"POSTFIELDSIZE_LARGE": len(body), way: {"file": str(file)}})


def test_a_body_with_nul_bytes(breaker_env, provider, second, tripped):
    """A NUL inside is data: all of POSTFIELDSIZE goes."""
    body = '{"model":"fine","x":"a\u0000b\u0000"}'
    compare(breaker_env, provider, second, tripped, POSTFIELDS=body, POSTFIELDSIZE=len(body))


def test_only_as_many_bytes_as_are_told(breaker_env, provider, second, tripped):
    body = chat("fine")
    compare(breaker_env, provider, second, tripped, POSTFIELDS=body + "not sent", POSTFIELDSIZE=len(body))


@pytest.mark.parametrize("options", [
    {"CUSTOMREQUEST": "POST"}, {"ACCEPT_ENCODING": "gzip"}, {"USERAGENT": "app/1"}, {"REFERER": "http://a.example/"},
    {"HTTPHEADER": ["Host: something.else", "Expect:", "X-Empty;", "Accept:"]},
    {"HTTPHEADER": ["Transfer-Encoding: chunked", "X-One: 1"]},
    {"HTTPHEADER": ["X-Same: 1", "X-Same: 2", "Content-Type: application/json; charset=utf-8"]},
], ids=lambda o: repr(o)[:40])
def test_everything_else_that_was_set_is_kept(options, breaker_env, provider, second, tripped):
    compare(breaker_env, provider, second, tripped, POSTFIELDS=chat("fine"), **options)


def test_a_content_length_of_the_applications_own(breaker_env, provider, second, tripped):
    """It tells of the new body, wherever among the lines."""
    body = chat("fine")
    options = {"POSTFIELDS": body, "HTTPHEADER": [f"Content-Length: {len(body)}", "X-One: 1"]}
    _, _, got = compare_bodies(breaker_env, provider, second, tripped, options)
    assert got.values("content-length") == [b"%d" % len(got.body)] and got.values("x-one") == [b"1"]
    assert got.body == chat(renamed("fine")).encode()


def test_without_a_model_key_the_body_stays(breaker_env, provider, providers, tripped):
    second = Fallback("second", providers(), model=None)
    compare(breaker_env, provider, second, tripped, POSTFIELDS=chat("fine"), rename=None)


def test_a_model_that_no_item_names_goes_nowhere(breaker_env, curl, provider, providers, tripped):
    second = Fallback("second", providers(), model="gpt-4o:openai/gpt-4o")
    tripped(provider, second)
    assert curl(provider.url(), "other", env=ENVIRONMENT).refused
    assert curl(provider.url(), "gpt-4o", env=ENVIRONMENT).status == 200
    assert [r.model for r in second.provider.seen()] == ["openai/gpt-4o"]
    assert any("second" in reason for reason in reasons(breaker_env))


# --- URLs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("target,there", [
    ("/v1/chat/completions?a=b&c", "/api/v1/chat/completions?a=b&c"),
    ("/v1/chat/completions?key=s3cret&a=b", "/api/v1/chat/completions?a=b"),
    ("/v1/chat/completions?a=b&api-key=s3cret", "/api/v1/chat/completions?a=b"),
    ("/v1/responses?x=%20%2F", "/api/v1/responses?x=%20%2F"),
    ("/v1/embeddings#fragment", "/api/v1/embeddings"),
])
def test_suffix_and_query_are_kept(target, there, breaker_env, provider, second, tripped):
    tripped(provider, second)
    with Remote(breaker_env) as curl:
        done = curl.call(URL=provider.url(target), POSTFIELDS=chat("fine"))
    assert done.status == 200
    assert [r.target for r in second.provider.seen()] == [there]
    assert done.url.split("#")[0] == second.provider.url(there, second.host)


def test_without_a_base_the_usual_one_is_replaced(breaker_env, provider, second, tripped):
    tripped(provider, second, base=None)
    with Remote(breaker_env) as curl:
        assert curl.call(URL=provider.url(), POSTFIELDS=chat("fine")).url == second.url()
        assert curl.call("b", URL=provider.url("/v1/embeddings"), POSTFIELDS=chat("fine")).url == second.url("/embeddings")


def test_an_url_outside_the_base_goes_nowhere(breaker_env, provider, second, tripped):
    tripped(provider, second)
    with Remote(breaker_env) as curl:
        assert is_refused(curl.call(URL=provider.url("/v2/chat"), POSTFIELDS=chat("fine")))
        assert is_refused(curl.call("b", URL=provider.url("/v10/chat/completions"), POSTFIELDS=chat("fine")))
    assert second.provider.accepted == 0


@pytest.mark.parametrize("target,options", [
    ("/v1/models", {}), ("/v1/files", {"POSTFIELDS": "x=1"}), ("/v1/chat/completions", {"HTTPGET": 1}),
    ("/v1/batches/1", {"CUSTOMREQUEST": "DELETE"}), ("/v1/files/1", {"NOBODY": 1}),
])
def test_what_is_no_llm_call_gets_the_503(target, options, breaker_env, provider, second, tripped):
    tripped(provider, second)
    with Remote(breaker_env) as curl:
        done = curl.call(URL=provider.url(target), **options)
    assert done.status == 503 and "X-Breaker-State" in done.head
    assert (provider.accepted, second.provider.accepted) == (0, 0)
    assert breaker_env.calls(provider.key())["refused"] == 1


PATHS = {
    "azure": ("/openai/deployments/gpt-4o/chat/completions?api-version=2024-06-01", '{"messages":[]}', "",
              "gpt-4o:east", "/openai/deployments/east/chat/completions?api-version=2024-06-01"),
    "azure with a key": ("/openai/deployments/gpt%2D4o/embeddings?api-key=s3cret&api-version=1", "{}", "",
                         "*:{model}-2", "/openai/deployments/gpt-4o-2/embeddings?api-version=1"),
    "bedrock": ("/model/anthropic.claude-v2%3A1/converse", "{}", "", "*:eu.{model}",
                "/model/eu.anthropic.claude-v2:1/converse"),
    "bedrock stream": ("/model/a%2Fb/invoke-with-response-stream", "{}", "", "*:c/d",
                       "/model/c%2Fd/invoke-with-response-stream"),
    "gemini": ("/v1beta/models/gemini-pro:streamGenerateContent?alt=sse&key=s3cret", '{"contents":[]}', "",
               "*:{model}-002", "/v1beta/models/gemini-pro-002:streamGenerateContent?alt=sse"),
    "gemini unchanged": ("/v1beta/models/gemini-pro:generateContent?key=s3cret", "{}", "", None,
                         "/v1beta/models/gemini-pro:generateContent"),
    "gemini elsewhere": ("/v1beta/models/m:countTokens", "{}", "/proxy", "*:n", "/proxy/v1beta/models/n:countTokens"),
}


@pytest.mark.parametrize("shape", PATHS)
def test_models_in_the_path(shape, breaker_env, provider, providers, configure):
    target, body, path, model, there = PATHS[shape]
    second = Fallback("second", providers(), path=path, model=model, auth="x-goog-api-key: ${SECOND_KEY}")
    configure(provider, second, base="")
    breaker_env.command("trip", "--create", provider.key())
    with Remote(breaker_env) as curl:
        done = curl.call(URL=provider.url(target), POSTFIELDS=body, HTTPHEADER=["api-key: s3cret", "X-One: 1"])
    assert done.status == 200, reasons(breaker_env)
    request = second.provider.seen()[0]
    assert request.target == there and request.body == body.encode() and b"s3cret" not in request.raw
    assert done.url == second.provider.url(there, second.host)
    assert request.headers["x-goog-api-key"] == SECOND_KEY and request.headers["x-one"] == "1"


# --- bodies that libcurl pulls -------------------------------------------------------------------


def seen_at(fallback):
    return [(r.model, r.body) for r in fallback.provider.seen()]


@pytest.mark.parametrize("way", ["POST", "UPLOAD"])
@pytest.mark.parametrize("sized", [True, False], ids=["sized", "chunked"])
@pytest.mark.parametrize("multi", [False, True], ids=["easy", "multi"])
class TestPulledBodies:
    BODY = chat("m", ("messages", ["x" * 3000]))
    CHANGED = chat("openai/m", ("messages", ["x" * 3000]))

    def call(self, breaker_env, provider, way, sized, multi, seek):
        with Remote(breaker_env) as curl:
            curl.made("a", URL=provider.url(), HTTPHEADER=HEADERS)
            curl.source(name="a", body=self.BODY, seek=seek, sized=sized, way=way, piece=700)
            return curl.perform_many(names=["a"])[0] if multi else curl.perform(name="a")

    @pytest.mark.parametrize("seek", [False, True], ids=["no seek", "seek"])
    def test_unchanged(self, seek, way, sized, multi, breaker_env, provider, providers, tripped):
        """No model is to be changed: it need not be read twice, either."""
        second = Fallback("second", providers(), model=None)
        tripped(provider, second)
        done = self.call(breaker_env, provider, way, sized, multi, seek)
        assert (done.status, done.url) == (200, second.url())
        assert seen_at(second) == [("m", self.BODY.encode())] and provider.accepted == 0

    @pytest.mark.parametrize("key", ["host", "model"])
    def test_changed_and_seekable(self, key, way, sized, multi, breaker_env, provider, second, tripped):
        tripped(provider, second, key=provider.key("m" if key == "model" else None))
        done = self.call(breaker_env, provider, way, sized, multi, True)
        assert (done.status, done.url) == (200, second.url()), reasons(breaker_env)
        assert seen_at(second) == [("openai/m", self.CHANGED.encode())] and provider.count() == 0

    def test_changed_and_not_seekable_goes_to_the_next(self, way, sized, multi, breaker_env, provider, providers, second,
                                                       tripped):
        third = Fallback("third", providers(), model=None)
        tripped(provider, second, third)
        done = self.call(breaker_env, provider, way, sized, multi, False)
        assert (done.status, done.url) == (200, third.url())
        assert seen_at(third) == [("m", self.BODY.encode())] and second.provider.count() == 0
        assert any("second" in reason for reason in reasons(breaker_env))

    def test_changed_and_not_seekable_and_no_next(self, way, sized, multi, breaker_env, provider, second, tripped):
        tripped(provider, second)
        assert is_refused(self.call(breaker_env, provider, way, sized, multi, False))
        assert (provider.count(), second.provider.count()) == (0, 0)
        assert any("second" in reason for reason in reasons(breaker_env))

    def test_a_model_that_shows_while_it_is_sent(self, way, sized, multi, breaker_env, provider, providers, tripped):
        """Half of it is gone, and cannot be had again: the whole of it arrives in one place, or in none."""
        second = Fallback("second", providers(), model=None)
        tripped(provider, second, key=provider.key("m"))
        done = self.call(breaker_env, provider, way, sized, multi, False)
        assert provider.count() == 0
        if done.status == 200:
            assert seen_at(second) == [("m", self.BODY.encode())]
        else:
            assert is_refused(done) and second.provider.count() == 0 and reasons(breaker_env)


@pytest.mark.parametrize("header", ["X-One: 1", "Expect: 100-continue", "Transfer-Encoding: chunked"])
@pytest.mark.parametrize("key", ["host", "model"])
def test_files_that_curl_uploads(key, header, breaker_env, provider, second, tripped, tmp_path):
    file = tmp_path / "body.json"
    file.write_text(chat("m", ("messages", ["x" * 30000])))
    tripped(provider, second, key=provider.key("m" if key == "model" else None))
    done = breaker_env.run("curl", "-s", "-w", "%{stderr}%{http_code} %{url_effective}", "-T", file, "-X", "POST",
                           "-H", header, provider.url(), env=ENVIRONMENT)
    assert done.stderr.decode() == f"200 {second.url()}", reasons(breaker_env)
    assert seen_at(second) == [("openai/m", chat("openai/m", ("messages", ["x" * 30000])).encode())]
    assert provider.count() == 0


@pytest.mark.parametrize("way", ["POST", "UPLOAD"])
@pytest.mark.parametrize("multi", [False, True], ids=["easy", "multi"])
def test_a_pulled_body_of_a_call_whose_connect_fails(way, multi, breaker_env, provider, providers, configure):
    """Nothing of it was read when the connect failed."""
    second = Fallback("second", providers(), model=None)
    configure(provider, second)
    provider.refuse()
    with Remote(breaker_env) as curl:
        curl.made("a", URL=provider.url())
        curl.source(name="a", body=chat("m"), way=way)
        done = curl.perform_many(names=["a"])[0] if multi else curl.perform(name="a")
    assert (done.status, done.url) == (200, second.url())
    assert seen_at(second) == [("m", chat("m").encode())]


@pytest.mark.parametrize("client_name,how", [("pycurl", "upload"), ("php", "upload")])
def test_bodies_that_bindings_pull(client_name, how, breaker_env, provider, providers, client, tripped, tmp_path):
    """Neither gives libcurl a way back in its body."""
    command = program(client_name, how)(client, provider.url(), tmp_path)
    second = Fallback("second", providers(), model=None)
    tripped(provider, second)
    assert answers_of(client_name, breaker_env.run(*command, env=ENVIRONMENT)) == [(200, second.url())] * 3
    assert [r.model for r in second.provider.seen()] == ["fine", "shut", "fine"] and provider.accepted == 0


# --- multipart -----------------------------------------------------------------------------------

PARTS = [["file", "RIFF\u0000sound", "a.wav"], ["model", "whisper-1", None], ["language", "en", None]]
AUDIO = "/v1/audio/transcriptions"


def parts_of(request):
    boundary = re.search(r"boundary=(\S+)", request.headers["content-type"])[1]
    return request.body.replace(boundary.encode(), b"BOUNDARY")


def upload_parts(breaker_env, provider, bare=False):
    with Remote(breaker_env, bare=bare) as curl:
        curl.made("a", URL=provider.url(AUDIO), HTTPHEADER=["Authorization: Bearer sk-0f-the-primary"])
        curl.mime(name="a", parts=PARTS)
        return curl.perform(name="a")


@pytest.mark.parametrize("key", ["host", "model"])
def test_a_form_whose_model_stays(key, breaker_env, provider, providers, tripped):
    second = Fallback("second", providers(), model=None)
    upload_parts(breaker_env, provider, bare=True)
    tripped(provider, second, key=provider.key("whisper-1" if key == "model" else None))
    done = upload_parts(breaker_env, provider)
    assert (done.status, done.url) == (200, second.url("/audio/transcriptions")), reasons(breaker_env)
    assert parts_of(second.provider.seen()[0]) == parts_of(provider.seen()[0])
    assert b"sk-0f-the-primary" not in second.provider.seen()[0].raw and provider.count() == 1


def test_a_form_whose_model_would_change(breaker_env, provider, providers, second, tripped):
    """Changed, or taken to the next: never there under the primary's name."""
    third = Fallback("third", providers(), model=None)
    tripped(provider, second, third)
    done = upload_parts(breaker_env, provider)
    assert done.status == 200 and provider.count() == 0
    if second.provider.count():
        assert b"\r\n\r\nopenai/whisper-1\r\n" in second.provider.seen()[0].body
    else:
        assert b"\r\n\r\nwhisper-1\r\n" in third.provider.seen()[0].body
        assert any("second" in reason for reason in reasons(breaker_env))


@pytest.mark.parametrize("mode", ["mime", "form"])
def test_forms_of_the_c_programs(mode, breaker_env, client, provider, providers, tripped):
    second = Fallback("second", providers(), model=None)
    tripped(provider, second)
    lines = lines_of(breaker_env.run(client, mode, provider.url(AUDIO), env=ENVIRONMENT))
    assert [(line.code, line.status, line.url) for line in lines] == [(0, 200, second.url("/audio/transcriptions"))] * 3
    assert second.provider.count() == 3 and provider.accepted == 0


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
    text = breaker_env.log.read_text()
    assert "second" in text or second.key("openai/m") in text
    assert SECOND_KEY not in text
