"""Issue 4, right when 1: what arrives at a fallback differs from what the primary would have had in its base, host, model
and credentials alone, whatever way its body and its URL are given."""

import json
import re

import pytest

from curl_lines import lines_of
from fallbacks import (HEADERS, OPENSSL, SECOND_KEY, Bytes, Fallback, Remote, arrived, chat, expected, is_refused,
                       reasons)

ENVIRONMENT = {"SECOND_KEY": SECOND_KEY}


@pytest.fixture
def second(providers):
    return Fallback("second", providers(), model="fine:openai/gpt-4o, *:openai/{model}")


def renamed(model):
    return "openai/gpt-4o" if model == "fine" else f"openai/{model}"


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
            return curl.perform(name="a", multi=multi)

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
        done = curl.perform(name="a", multi=multi)
    assert (done.status, done.url) == (200, second.url())
    assert seen_at(second) == [("m", chat("m").encode())]


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
