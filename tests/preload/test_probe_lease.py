"""probe_lease = call: a probe that hangs keeps its place for as long as its own caller waits for it, and 30 s at least."""

import pytest

from fallbacks import Fallback, Remote, chain, chat, target_of
from provider import Answer
from sock_programs import black_hole

# Of a lease that began just now on a busy machine.
SLACK = 20_000


@pytest.fixture
def hanging(provider, breaker_env):
    """hanging(KEY...): probes of these breakers are due, and who is let through gets no answer."""
    provider.answer(Answer(hang=True))

    def due(*keys, text="", **settings):
        breaker_env.configure(text, **{"probe_lease": "call", **settings})
        breaker_env.make_due(*(keys or (provider.key("m"),)))

    return due


def assert_lease(breaker_env, key, seconds):
    row = breaker_env.breakers()[key]
    assert row["state"] == "half_open"
    assert seconds * 1000 - SLACK < row["retry_in_ms"] <= seconds * 1000 + 100


@pytest.mark.parametrize("flags, seconds", [(["-m", "90"], 90), (["-m", "5"], 30), ([], 30), (["-m", "0"], 30),
                                            (["-m", "70.25"], 70.25)],
                         ids=["patient", "impatient", "without", "none", "milliseconds"])
def test_of_a_curl(flags, seconds, hanging, provider, breaker_env, curl):
    hanging()
    breaker_env.start(*curl.command(provider.url(), "m", *flags))
    provider.wait_for(1)
    assert_lease(breaker_env, provider.key("m"), seconds)
    assert curl(provider.url(), "m", "-m", "20").refused and provider.count() == 1


def test_of_a_body_that_is_pulled(hanging, provider, breaker_env, curl):
    """Its model is known while it is sent: the lease of that breaker begins then."""
    hanging()
    (breaker_env.directory / "body").write_text(chat("m"))
    breaker_env.start("curl", "-s", "-m", "90", "-X", "POST", "-T", "body", provider.url())
    provider.wait_for(1)
    assert_lease(breaker_env, provider.key("m"), 90)


def test_of_a_host(hanging, provider, breaker_env, curl):
    hanging(provider.key(), scope="host")
    breaker_env.start(*curl.command(provider.url(), "m", "-m", "90"))
    provider.wait_for(1)
    assert_lease(breaker_env, provider.key(), 90)
    assert curl(provider.url(), "another").refused


@pytest.mark.parametrize("environment, seconds", [({}, 50), ({"BREAKER_PROBE_LEASE": "call"}, 90)])
def test_a_number_is_not_the_calls(environment, seconds, hanging, provider, breaker_env, curl):
    """And is taken back by the word, as by any other value."""
    hanging(probe_lease=50)
    breaker_env.start(*curl.command(provider.url(), "m", "-m", "90"), env=environment)
    provider.wait_for(1)
    assert_lease(breaker_env, provider.key("m"), seconds)


@pytest.mark.parametrize("multi", [False, True], ids=["easy", "multi"])
@pytest.mark.parametrize("options, seconds", [({"TIMEOUT": 300, "TIMEOUT_MS": 90_000}, 90),
                                              ({"TIMEOUT_MS": 300_000, "TIMEOUT": 90}, 90),
                                              ({"TIMEOUT_MS": 300_000, "TIMEOUT": 0}, 30)],
                         ids=["ms last", "s last", "taken back"])
def test_the_last_of_both_options_counts(options, seconds, multi, hanging, provider, breaker_env):
    """They are one field of libcurl's."""
    hanging()
    with Remote(breaker_env) as curl:
        curl.made("a", URL=provider.url(), POSTFIELDS=chat("m"), **options)
        curl.send("perform", name="a", multi=multi)
        provider.wait_for(1)
        assert_lease(breaker_env, provider.key("m"), seconds)
        provider.hang_up()
        curl.answer()


@pytest.fixture
def second(provider):
    """The provider as a fallback."""
    return Fallback("second", provider, auth=None)


def test_of_a_fallback(hanging, provider, second, providers, breaker_env, curl):
    """The call that goes there is the probe of the fallback's breaker."""
    other = providers()
    hanging(second.key("openai/m"), text=chain(other, second), open_seconds=20)
    breaker_env.command("trip", "--create", other.key("m"))
    breaker_env.start(*curl.command(other.url(), "m", "-m", "90"))
    provider.wait_for(1)
    assert other.count() == 0
    assert_lease(breaker_env, second.key("openai/m"), 90)


def test_of_a_fallback_that_has_what_is_left(hanging, provider, second, breaker_env, curl):
    """Of the time, three seconds went by in a connect that hung."""
    with black_hole() as port:
        host = f"127.0.0.1:{port}"
        text = target_of(host, fallback="second", base=f"http://{host}/v1") + second.section()
        hanging(second.key("openai/m"), text=text, open_seconds=20)
        url = f"http://{host}/v1/chat/completions"
        breaker_env.start(*curl.command(url, "m", "-m", "90", "--connect-timeout", "3"))
        provider.wait_for(1)
        assert_lease(breaker_env, second.key("openai/m"), 87)
