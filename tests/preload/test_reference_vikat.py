"""docs/examples/vikat.ini: Vikat's documented breaker, call by call, each call a curl process of its own.

The file is taken as it is but for its two hosts, which are providers of the test. Its open time is waited for where
that is the point, and shorter elsewhere.
"""

import json
import threading
from pathlib import Path

import pytest

from fallbacks import SECOND_KEY
from provider import Answer, wait_until

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "vikat.ini"
QUICKLY = {"BREAKER_SET": "open_seconds=1\nprobe_lease=20"}
NO_FALLBACKS = {"BREAKER_ALLOW_FALLBACKS": "false"}


class Vikat:
    """The provider, what stands in for it, and calls of the model "m" to the first."""

    def __init__(self, breaker_env, curl, first, second):
        self.breaker_env, self.curl, self.first, self.second = breaker_env, curl, first, second
        second.answer(Answer(200, body=b'{"from":"the fallback"}'))
        breaker_env.environment["OPENROUTER_API_KEY"] = SECOND_KEY
        text = EXAMPLE.read_text()
        for old, new in (("https://openrouter.ai/api/v1", second.url("/api/v1", "localhost")),
                         ("https://api.openai.com/v1", first.url("/v1")),
                         ("[target api.openai.com]", f"[target {first.key()}]")):
            assert text.count(old) == 1
            text = text.replace(old, new)
        breaker_env.configure_raw(text)

    def call(self, model="m", env=None, path="/v1/chat/completions"):
        return self.curl(self.first.url(path), model, env=env)

    def state(self, model="m"):
        return self.breaker_env.state(self.first.key(model))

    def fail(self, number, model="m", env=None):
        self.first.answer(Answer(500), model=model)
        assert [self.call(model, env).status for _ in range(number)] == [500] * number


@pytest.fixture
def vikat(breaker_env, curl, provider, providers):
    return Vikat(breaker_env, curl, provider, providers())


def is_fallback(answer):
    return answer.status == 200 and answer.body == '{"from":"the fallback"}'


def test_the_file_is_good_and_says_what_was_published(breaker_env):
    breaker_env.environment["OPENROUTER_API_KEY"] = SECOND_KEY
    breaker_env.command("check", "--config", str(EXAMPLE))
    told = breaker_env.command("config", "--json", "--config", str(EXAMPLE), "api.openai.com/m").stdout
    settings = {key: one["value"] for key, one in json.loads(told)["settings"].items()}
    published = {"scope": "model", "failure_threshold": "5", "open_seconds": "30", "half_open_probes": "1",
                 "success_threshold": "1", "backoff": "1", "jitter": "0", "allow_fallbacks": "true", "rate_limit": "ignore"}
    assert {key: settings[key] for key in published} == published


def test_five_failures_and_the_fallback_succeeds(vikat):
    vikat.fail(4)
    assert vikat.state() == "closed"
    vikat.fail(1)
    assert vikat.state() == "open"
    assert is_fallback(vikat.call()) and is_fallback(vikat.call())
    assert vikat.first.count() == 5 and vikat.second.count(model="openai/m") == 2
    request = vikat.second.requests[0]
    assert request.path == "/api/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {SECOND_KEY}"
    row = vikat.breaker_env.breakers()[vikat.first.key("m")]
    assert 28_000 < row["retry_in_ms"] <= 30_100


def test_a_success_in_between_begins_anew(vikat):
    vikat.fail(4)
    vikat.first.answer(Answer(200), model="m")
    assert vikat.call().status == 200
    vikat.fail(4)
    assert vikat.state() == "closed" and vikat.second.count() == 0


def test_without_fallbacks_it_is_a_503(vikat):
    vikat.fail(5)
    answer = vikat.call(env=NO_FALLBACKS)
    assert answer.refused and vikat.first.count() == 5 and vikat.second.count() == 0
    assert is_fallback(vikat.call()), "another program may"


def test_nothing_spills_over(vikat):
    vikat.fail(5, "broken")
    vikat.first.answer(Answer(200), model="fine")
    for _ in range(6):
        assert is_fallback(vikat.call("broken"))
        assert vikat.call("fine").status == 200
    assert vikat.first.count(model="fine") == 6 and vikat.second.count() == vikat.second.count(model="openai/broken") == 6
    assert vikat.state("fine") == "closed" and vikat.breaker_env.state(vikat.first.key()) == "closed"
    # Nor from the fallback: it failing is no failure of the first.
    vikat.second.answer(Answer(500))
    assert [vikat.call("broken").status for _ in range(2)] == [500] * 2
    assert vikat.breaker_env.calls(vikat.first.key("broken"))["failure"] == 5


def test_rate_limits_never_reroute(vikat):
    told = {"Retry-After": "60", "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "60s"}
    vikat.first.answer(Answer(429, told))
    got = [vikat.call() for _ in range(8)]
    assert [(answer.status, answer.refused) for answer in got] == [(429, False)] * 8
    assert vikat.first.count() == 8 and vikat.second.count() == 0
    vikat.first.answer(Answer(200, told))
    assert vikat.call().status == 200 and vikat.state() == "closed" and vikat.first.count() == 9


def test_one_trial_and_its_success_closes(vikat):
    vikat.fail(5, env=QUICKLY)
    gate = threading.Event()
    vikat.first.answer(Answer(200, gate=gate), model="m")
    vikat.breaker_env.wait_due(vikat.first.key("m"))
    trial = vikat.breaker_env.start(*vikat.curl.command(vikat.first.url()), env=QUICKLY)
    vikat.first.wait_for(6)
    assert all(is_fallback(vikat.call(env=QUICKLY)) for _ in range(3)) and vikat.state() == "half_open"
    gate.set()
    assert vikat.curl.parse(trial.communicate(timeout=20)[0]).status == 200
    assert vikat.state() == "closed" and vikat.first.count() == 6
    vikat.fail(4)  # the whole threshold again
    assert vikat.state() == "closed"


def test_a_failed_trial_opens_for_the_same_time(vikat):
    vikat.fail(5, env=QUICKLY)
    for trials in (1, 2):
        vikat.breaker_env.wait_due(vikat.first.key("m"))
        assert vikat.call(env=QUICKLY).status == 500 and is_fallback(vikat.call(env=QUICKLY))
        assert vikat.first.count() == 5 + trials
        assert vikat.breaker_env.breakers()[vikat.first.key("m")]["retry_in_ms"] <= 1100


def test_the_host_counts_once(vikat):
    """Each curl is a replica of its own, and so are these five at once: one count, one trip."""
    gate = threading.Event()
    vikat.first.answer(Answer(500, gate=gate), model="m")
    replicas = [vikat.breaker_env.start(*vikat.curl.command(vikat.first.url())) for _ in range(5)]
    vikat.first.wait_for(5)
    gate.set()
    assert [vikat.curl.parse(one.communicate(timeout=20)[0]).status for one in replicas] == [500] * 5
    wait_until(lambda: vikat.state() == "open", what="the trip")
    assert is_fallback(vikat.call()) and vikat.first.count() == 5
    assert vikat.breaker_env.breakers()[vikat.first.key("m")]["opened"] == 1
