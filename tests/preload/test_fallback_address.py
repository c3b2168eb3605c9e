"""fallback_address for libcurl: the same URL, the same bytes, another place. (Other programs: test_sock_address.py.)"""

import pytest

from fallbacks import addressed
from provider import Answer, Provider

KEY = "Authorization: Bearer sk-of-the-application"


@pytest.fixture
def second(providers):
    provider = providers()
    provider.answer(Answer(200, body=b'{"from":"the second"}'))
    return provider


def test_after_the_trip_every_call_goes_there(breaker_env, provider, second, curl):
    breaker_env.configure(addressed(provider.key(), second.key(), failover="off"), failure_threshold=2, open_seconds=60)
    provider.refuse()
    assert [curl(provider.url(), "m").code for _ in range(2)] == [7, 7]
    for number in range(1, 4):
        done = curl(provider.url("/v1/chat/completions?key=s3cret"), "m", "-H", KEY)
        assert (done.status, done.body) == (200, '{"from":"the second"}')
        assert done.url == provider.url("/v1/chat/completions?key=s3cret")  # it is what was asked for
        assert second.count() == number
    request = second.seen()[-1]
    assert request.headers["host"] == provider.key() and request.headers["authorization"] == KEY.split(": ")[1]
    assert request.target == "/v1/chat/completions?key=s3cret" and request.model == "m"
    assert breaker_env.state(provider.key()) == "open"
    assert breaker_env.calls(second.key())["success"] == breaker_env.calls(second.key("m"))["success"] == 3
    (event,) = breaker_env.events(event="rerouted")
    assert (event["key"], event["to"], event["detail"]) == (provider.key(), second.key("m"), "fallback_address")


def test_a_connect_that_fails_goes_there_in_the_same_call(breaker_env, provider, second, curl):
    breaker_env.configure(addressed(provider.key(), second.key()), failure_threshold=3, open_seconds=60)
    provider.refuse()
    done = [curl(provider.url(), "m") for _ in range(5)]
    assert [(d.status, d.code) for d in done] == [(200, 0)] * 5 and second.count() == 5
    assert breaker_env.calls(provider.key())["failure"] == 3


def test_over_tls_the_name_stays(breaker_env, authority, curl):
    """The certificate is for the name that both serve; what is asked for by another name is not that."""
    with Provider(tls=authority.server()) as primary, Provider(tls=authority.server()) as second:
        breaker_env.configure(addressed(primary.key(name="localhost"), second.key()), failure_threshold=1, open_seconds=60)
        primary.refuse()
        for number in (1, 2):
            done = curl(primary.url(name="localhost"), "m", "--cacert", str(authority.ca))
            assert (done.status, done.code) == (200, 0) and second.count() == number
        assert second.seen()[-1].headers["host"] == primary.key(name="localhost")


def test_before_the_other_fallbacks_and_as_dead_as_they(breaker_env, provider, second, providers, curl):
    third = providers()
    text = addressed(provider.key(), second.key(), fallback="third") + f"[fallback third]\nbase = {third.url('/v1')}\n"
    breaker_env.configure(text, failure_threshold=1, open_seconds=60)
    provider.refuse()
    assert curl(provider.url(), "m").status == 200 and (second.count(), third.count()) == (1, 0)
    second.refuse()
    assert curl(provider.url(), "m").status == 200 and (second.count(), third.count()) == (1, 1)
    breaker_env.wait_state(second.key(), "open")
    assert curl(provider.url(), "m").status == 200 and third.count() == 2
    third.refuse()
    done = [curl(provider.url(), "m") for _ in range(2)]
    assert all(d.refused for d in done)
    assert [e["key"] for e in breaker_env.events(event="refused")] == [provider.key()]


def test_a_hard_stop_is_none(breaker_env, provider, second, curl):
    breaker_env.configure(addressed(provider.key(), second.key(), allow_fallbacks="false", when_exhausted="pass"),
                          open_seconds=60)
    breaker_env.command("trip", "--create", provider.key())
    assert curl(provider.url(), "m").refused and (provider.count(), second.count()) == (0, 0)


def test_what_it_redirects_goes_where_it_says(breaker_env, provider, second, providers, curl):
    elsewhere = providers()
    breaker_env.configure(addressed(provider.key(), second.key()), open_seconds=60)
    breaker_env.command("trip", "--create", provider.key())
    second.answer(Answer(307, {"Location": elsewhere.url()}))
    done = curl(provider.url(), "m", "-L")
    assert done.status == 200 and done.url == elsewhere.url()
    assert (provider.count(), second.count(), elsewhere.count()) == (0, 1, 1)
