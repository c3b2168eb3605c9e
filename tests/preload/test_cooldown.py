"""Issue 5, item 4: a 429 parks the credential that got it, and nobody else; real curl processes and pycurl."""

import json
from pathlib import Path

import pytest

from fallbacks import NO_ZEROES, SECOND_KEY, Fallback, addressed
from provider import Answer, Provider
from support import PYTHON

CLIENT = Path(__file__).parent / "clients" / "client_keys.py"
CURL = Path(__file__).with_name("curl")
LIMITED = Answer(429, {"Retry-After": "17"})


def bearer(key):
    return "-H", f"Authorization: Bearer {key}"


def parked(answer):
    return answer.status == 429 and answer.refused


def test_one_application_is_limited_and_the_other_flows(provider, curl, breaker_env):
    provider.then(LIMITED)
    assert not parked(curl(provider.url(), "m", *bearer("a")))
    got = [curl(provider.url(), "m", *bearer(key)) for key in "abab"]
    assert [a.status for a in got] == [429, 200] * 2 and [a.refused for a in got] == [True, False] * 2
    assert provider.count() == 3
    body = json.loads(got[0].body)
    assert body["error"]["type"] == "rate_limit_error" and body["error"]["code"] == "cooling_down"
    (event,) = breaker_env.events(event="cooldown")
    assert event["key"] == provider.key("m") and event["cause"] == "status 429"
    assert breaker_env.state(provider.key("m")) == "closed"
    assert breaker_env.calls(provider.key("m"))["refused"] == 2
    assert all("Bearer" not in line for line in breaker_env.log.read_text().splitlines())


def test_a_batch_that_is_told_300_ms_is_not_parked(provider, curl):
    provider.answer(Answer(429, {"retry-after-ms": "300"}))
    got = [curl(provider.url(), "m", *bearer("a")) for _ in range(8)]
    assert [a.status for a in got] == [429] * 8 and not any(a.refused for a in got) and provider.count() == 8


@pytest.mark.parametrize("headers", [{"retry-after-ms": "5000"}, {"x-amz-retry-after": "5000"}, {"Retry-After": "2.5"},
                                     {"Retry-After": "Sun, 06 Nov 2095 08:49:37 GMT"}])
def test_what_says_when_to_come_again(headers, provider, curl):
    provider.then(Answer(429, headers))
    curl(provider.url(), "m", *bearer("a"))
    assert parked(curl(provider.url(), "m", *bearer("a"))) and not parked(curl(provider.url(), "m"))


def test_the_better_header_counts(provider, curl):
    provider.then(Answer(429, {"Retry-After": "60", "retry-after-ms": "300"}))
    curl(provider.url(), "m", *bearer("a"))
    assert curl(provider.url(), "m", *bearer("a")).status == 200


@pytest.mark.parametrize("one,two", [
    (bearer("a"), bearer("b")),
    (bearer("a"), ()),
    (("-H", "x-api-key: a"), ("-H", "x-api-key: b")),
    (("-H", "api-key: a"), ("-H", "api-key: b")),
    (("-H", "x-goog-api-key: a"), ("-H", "x-goog-api-key: b")),
    (("-u", "ab:c"), ("-u", "a:bc")),
    (("--oauth2-bearer", "a"), ("--oauth2-bearer", "b")),
    ((), ("-H", "x-api-key: a")),
    (("-H", "Ocp-Apim-Subscription-Key: a"), ("-H", "Ocp-Apim-Subscription-Key: b")),
    (("-H", "X-Auth-Token: a"), ("-H", "X-Auth-Token: b")),
    (("-H", "Helicone-Auth: a", "-H", "api-key: a"), ("-H", "Helicone-Auth: a", "-H", "api-key: b")),
    (("-b", "session=a"), ("-b", "session=b")),
])
def test_where_a_credential_stands(one, two, provider, curl):
    provider.then(LIMITED)
    curl(provider.url(), "m", *one)
    assert not parked(curl(provider.url(), "m", *two)) and parked(curl(provider.url(), "m", *one))


def test_in_the_query(provider, curl):
    provider.then(LIMITED)
    curl(provider.url() + "?key=a")
    assert parked(curl(provider.url() + "?alt=sse&key=a")) and not parked(curl(provider.url() + "?key=b"))


def test_in_the_query_by_another_name(provider, curl):
    """What cannot be told parks nobody."""
    provider.then(*[LIMITED] * 3)
    for query in ("?token=a", "?token=b", "?token=a"):
        assert not parked(curl(provider.url() + query))
    assert not parked(curl(provider.url()))


def test_in_the_url(provider, curl):
    provider.then(LIMITED)
    one, two = (provider.url().replace("://", f"://{user}@") for user in ("a:b", "c:d"))
    curl(one)
    assert parked(curl(one)) and not parked(curl(two)) and not parked(curl(provider.url()))


def test_in_a_parsed_url(provider, breaker_env, compile_c):
    provider.then(LIMITED)
    program = compile_c(CURL / "freed.c", "-I", CURL, "-lcurl", name="freed")
    done = breaker_env.run(program, "-u", provider.url(), "a", "a", "b", "a")
    assert done.stdout.split() == [b"429", b"429", b"200", b"429"] and provider.count() == 2, done


def signed(key, day):
    return "-H", (f"Authorization: AWS4-HMAC-SHA256 Credential={key}/202611{day}/us-east-1/bedrock/aws4_request, "
                  f"SignedHeaders=host;x-amz-date, Signature={day * 32}")


def test_one_user_of_aws_under_changing_signatures(provider, curl):
    provider.then(LIMITED)
    url = provider.url("/model/m/converse")
    curl(url, "m", *signed("AKIA1", "29"))
    assert parked(curl(url, "m", *signed("AKIA1", "30"))) and not parked(curl(url, "m", *signed("AKIA2", "30")))


def test_the_same_key_however_it_is_told(provider, curl):
    provider.then(LIMITED)
    curl(provider.url(), "m", *bearer("a"))
    assert parked(curl(provider.url(), "m", "-H", "x-api-key: a"))
    assert parked(curl(provider.url(), "m", "--oauth2-bearer", "a"))


def test_one_handle_with_several_keys(provider, breaker_env):
    provider.then(LIMITED)
    done = breaker_env.run(PYTHON, CLIENT, provider.url(), "a", "a", "b", "a", "", "b")
    assert done.returncode == 0, done
    got = [json.loads(line) for line in done.stdout.splitlines()]
    assert [a["status"] for a in got] == [429, 429, 200, 429, 200, 200] and provider.count() == 4
    for answer in (got[1], got[3]):
        assert {"Retry-After: 16", "Retry-After: 17", "Retry-After: 18"} & set(answer["head"])
        assert "cooling_down" in answer["body"]
        assert any(line.startswith("retry-after-ms: ") for line in answer["head"])
        assert not any(line.startswith("x-should-retry") for line in answer["head"])


def test_headers_that_are_freed_at_the_end_of_a_transfer(provider, breaker_env, compile_c):
    """The DONE message is read by nobody, and the handle removed after the list is gone."""
    provider.then(LIMITED)
    program = compile_c(CURL / "freed.c", "-I", CURL, "-lcurl", name="freed")
    done = breaker_env.run(program, provider.url(), "a", "a", "b", "a", env=NO_ZEROES)
    assert done.stdout.split() == [b"429", b"429", b"200", b"429"] and provider.count() == 2, done


def test_a_parked_call_goes_to_a_fallback(provider, curl, configure):
    with Provider() as other:
        configure(provider, Fallback("other", other))
        provider.then(LIMITED)
        got = [curl(provider.url(), "m", *bearer(key), env={"SECOND_KEY": SECOND_KEY}) for key in "aab"]
        assert [a.status for a in got] == [429, 200, 200] and (provider.count(), other.count()) == (2, 1)


def test_a_single_failure_parks_briefly(provider, curl, breaker_env):
    breaker_env.configure(cooldown_seconds=60)
    provider.then(Answer(503))
    assert curl(provider.url(), "m", *bearer("a")).status == 503
    assert parked(curl(provider.url(), "m", *bearer("b"))) and parked(curl(provider.url()))
    assert curl(provider.url(), "other").status == 200
    assert breaker_env.breakers()[provider.key("m")]["cooldowns"]["all"] is True
    assert ", all cooling down" in breaker_env.command("status").stdout


def test_status_and_reset(provider, curl, breaker_env):
    provider.then(LIMITED, LIMITED)
    curl(provider.url(), "m", *bearer("a"))
    curl(provider.url(), "m", *bearer("b"))
    row = breaker_env.breakers()[provider.key("m")]
    assert row["cooldowns"]["credentials"] == 2 and row["cooldowns"]["all"] is False and 10000 < row["cooldowns"]["longest_ms"] <= 17100
    assert ", 2 cooling down" in breaker_env.command("status").stdout
    words = "explain", "--model", "m", provider.url()
    assert "2 credentials of at most 4 that are known are cooling down" in breaker_env.command(*words).stdout
    breaker_env.command("reset", provider.key("m"))
    assert "cooling down" not in breaker_env.command(*words).stdout
    assert "cooldowns" not in breaker_env.breakers()[provider.key("m")]
    assert curl(provider.url(), "m", *bearer("a")).status == 200


SOCKETS = """
import http.client, json, sys
for key in sys.argv[2:]:
    wire = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
    wire.request("POST", "/v1/chat/completions", '{"model":"m"}', {"Authorization": "Bearer " + key} if key else {})
    answer = wire.getresponse()
    print(answer.status, answer.getheader("X-Breaker-State"), flush=True)
"""


def test_over_sockets_too(provider, curl, breaker_env):
    """For applications that start later, too. And a key is the same to curl."""
    def statuses(*keys):
        done = breaker_env.run(PYTHON, "-c", SOCKETS, provider.port, *keys)
        assert done.returncode == 0, done
        return done.stdout.decode().splitlines()

    provider.then(LIMITED)
    assert statuses("a", "a") == ["429 None", "429 cooling_down"]
    assert statuses("b", "", "a") == ["200 None", "200 None", "429 cooling_down"]
    assert parked(curl(provider.url(), "m", *bearer("a"))) and curl(provider.url(), "m", *bearer("b")).status == 200
    assert provider.count() == 4


def test_a_batch_over_sockets_is_not_parked_either(provider, breaker_env):
    provider.answer(Answer(429, {"retry-after-ms": "300"}))
    done = breaker_env.run(PYTHON, "-c", SOCKETS, provider.port, *["a"] * 8)
    assert done.stdout.decode().splitlines() == ["429 None"] * 8 and provider.count() == 8, done


SPENT = b'{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}'
RATE = b'{"error":{"message":"Rate limit reached for m","type":"requests","code":"rate_limit_exceeded"}}'
PROGRAM = """
import urllib.request as r, urllib.error, sys
request = r.Request(sys.argv[1], b'{"model":"m"}', {"Authorization": "Bearer " + sys.argv[2]})
try:
    with r.urlopen(request) as answer: answer.read(); print(answer.status)
except urllib.error.HTTPError as e:
    e.read() # which tells them apart
    print(e.code, "circuit" in str(e.headers) or "X-Breaker-State" in e.headers)
"""


@pytest.fixture(params=["curl", "sockets"])
def call(request, provider, curl, breaker_env):
    """call(KEY): one call with that key, by libcurl or not; its status, and is it our answer?"""
    def by_curl(key="a"):
        answer = curl(provider.url(), "m", *bearer(key))
        return answer.status, answer.refused

    def by_sockets(key="a"):
        told = breaker_env.run(PYTHON, "-c", PROGRAM, provider.url(), key).stdout.split()
        return int(told[0]), told[1:] == [b"True"]

    return by_curl if request.param == "curl" else by_sockets


@pytest.mark.parametrize("pieces", [1, 9])
def test_a_spent_quota_waits_longer_than_a_rate_limit(call, pieces, provider, breaker_env):
    """SmarterRouter#7: only its body tells them apart. Nobody knocks each minute for a month's quota."""
    headers = {"Content-Type": "application/json"}
    provider.answer(Answer(429, headers, RATE, chunked=pieces > 1, pieces=pieces))
    assert [call() for _ in range(2)] == [(429, False)] * 2
    provider.answer(Answer(429, headers, SPENT, chunked=pieces > 1, pieces=pieces))
    assert [call() for _ in range(3)] == [(429, False), (429, True), (429, True)]
    assert provider.count() == 3
    (event,) = breaker_env.events(event="cooldown")
    assert event["key"] == provider.key("m")


STREAM = {"Content-Type": "text/event-stream"}
DELTA = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'


def inside(error):
    return Answer(200, STREAM, DELTA + b"data: " + error + b"\n\n", chunked=True, pieces=3)


def test_a_limit_told_inside_a_stream_is_one(call, provider, breaker_env):
    """A good head, and then the limit: its credential waits, for our own time, since it names none."""
    breaker_env.configure(cooldown_seconds=60)
    provider.then(inside(RATE))
    assert [call("a"), call("a"), call("b")] == [(200, False), (429, True), (200, False)]
    (event,) = breaker_env.events(event="cooldown")
    assert event["cause"] == "stream" and event["detail"] == "a credential for 60.000 s"
    assert breaker_env.calls(provider.key("m"))["failure"] == 0 and provider.count() == 2


def test_a_quota_that_is_spent_inside_a_stream(call, provider, breaker_env):
    provider.then(inside(RATE), inside(SPENT))
    assert [call() for _ in range(3)] == [(200, False), (200, False), (429, True)]
    assert breaker_env.events(event="cooldown")[0]["detail"] == "a credential for 60.000 s"


def test_one_failed_connect_parks_the_host(provider, curl, breaker_env):
    breaker_env.configure(f"[target {provider.key()}]\n", cooldown_seconds=60)
    provider.refuse()
    assert curl(provider.url(), "m", *bearer("a")).code == 7
    provider.listen()
    got = [curl(provider.url(), "m", *bearer("b")), curl(provider.url(), "other"), curl(provider.url("/v1/files"))]
    assert all(parked(answer) for answer in got) and provider.accepted == 0
    (event,) = breaker_env.events(event="cooldown")
    assert (event["key"], event["cause"], event["detail"]) == (provider.key(), "connect", "all credentials for 60.000 s")
    row = breaker_env.breakers()[provider.key()]
    assert row["state"] == "closed" and row["cooldowns"]["credentials"] == 1 and row["calls"]["refused"] == 3
    breaker_env.command("reset", provider.key())
    assert curl(provider.url(), "m").status == 200


def test_a_handshake_that_is_cut_off_parks_it_too(tls_provider, authority, curl, breaker_env):
    breaker_env.configure(cooldown_seconds=60)
    trust = "--cacert", str(authority.ca)
    url = tls_provider.url(name="localhost")
    tls_provider.tls, tls = None, tls_provider.tls  # speaks no TLS: it hangs up
    assert curl(url, "m", *trust).code == 35
    tls_provider.tls = tls
    assert parked(curl(url, "m", *trust))
    assert [event["cause"] for event in breaker_env.events(event="cooldown")] == ["handshake"]


def test_it_is_off_unless_it_is_asked_for(provider, curl, breaker_env):
    for settings in ({}, {"cooldown_seconds": 60, "cooldown_on": "500"}):
        breaker_env.configure(**settings)
        provider.refuse()
        assert curl(provider.url()).code == 7
        provider.listen()
        assert curl(provider.url()).status == 200


def test_other_programs_are_refused_at_connect(provider, breaker_env):
    breaker_env.configure(f"[target {provider.key()}]\n", cooldown_seconds=60)
    provider.refuse()
    assert b"refused" in breaker_env.run(PYTHON, "-c", PROGRAM, provider.url(), "a").stderr
    provider.listen()
    assert b"refused" in breaker_env.run(PYTHON, "-c", PROGRAM, provider.url(), "b").stderr and provider.accepted == 0
    breaker_env.command("reset", provider.key())
    assert breaker_env.run(PYTHON, "-c", PROGRAM, provider.url(), "a").stdout == b"200\n"


@pytest.mark.parametrize("exhausted", ["503", "pass"])
def test_or_go_to_the_other_address(exhausted, provider, providers, breaker_env):
    second = providers()
    breaker_env.configure(addressed(provider.key(), second.key(), when_exhausted=exhausted), cooldown_seconds=60)
    provider.refuse()
    breaker_env.run(PYTHON, "-c", PROGRAM, provider.url(), "a")
    provider.listen()
    assert breaker_env.run(PYTHON, "-c", PROGRAM, provider.url(), "b").stdout == b"200\n"
    assert (provider.accepted, second.count()) == (0, 1)
    assert [event["cause"] for event in breaker_env.events(event="rerouted")] == ["cooling_down"]


def test_all_processes_learn_of_one_connect(provider, curl, configure, breaker_env):
    """With a fallback nobody tries the dead host again, and the caller of the first gets its answer, too."""
    with Provider() as other:
        configure(provider, Fallback("other", other), cooldown_seconds=60)
        provider.refuse()
        got = [curl(provider.url(), model, env={"SECOND_KEY": SECOND_KEY}) for model in "abc"]
        assert [a.status for a in got] == [200] * 3 and other.count() == 3
        assert breaker_env.calls(provider.key())["failure"] == 1
