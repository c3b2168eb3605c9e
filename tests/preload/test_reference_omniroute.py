"""docs/examples/omniroute.ini: OmniRoute's provider breakers, call by call, each call a curl process of its own.

The file is taken as it is but for the hosts of the calls, which are providers of the test.
"""

import json
import threading
from pathlib import Path

import pytest

from provider import Answer

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "omniroute.ini"
OAUTH, API_KEY, LOCAL, TRACKED = "chatgpt.com", "api.openai.com", "localhost:11434", "openrouter.ai"
SOON = {"BREAKER_OPEN_SECONDS": "1", "BREAKER_PROBE_LEASE": "20"}


class Gateway:
    """Calls to a provider that the file has under another name."""

    def __init__(self, breaker_env, curl, provider):
        self.breaker_env, self.curl, self.provider, self.key = breaker_env, curl, provider, provider.key()

    def stands_for(self, host):
        text = EXAMPLE.read_text()
        assert text.count(f"[target {host}]") == 1
        self.breaker_env.configure_raw(text.replace(f"[target {host}]", f"[target {self.key}]"))

    def call(self, model="m", env=None):
        return self.curl(self.provider.url(), model, env=env)

    def fail(self, number, env=None):
        self.provider.answer(Answer(503))
        got = [self.call(f"m{i}", env) for i in range(number)]
        assert [(answer.status, answer.refused) for answer in got] == [(503, False)] * number

    @property
    def state(self):
        return self.breaker_env.state(self.key)


@pytest.fixture
def gateway(breaker_env, curl, provider):
    return Gateway(breaker_env, curl, provider)


def test_the_file_is_good_and_says_what_was_published(breaker_env):
    breaker_env.command("check", "--config", str(EXAMPLE))
    told = breaker_env.command("config", "--json", "--config", str(EXAMPLE), OAUTH).stdout
    settings = {key: one["value"] for key, one in json.loads(told)["settings"].items()}
    published = {"failure_threshold": "8", "degrade_threshold": "4", "open_seconds": "60", "scope": "host",
                 "failure_status": "408, 500, 502-504", "half_open_probes": "1", "success_threshold": "1",
                 "error_code": "provider-circuit-open"}
    assert {key: settings[key] for key in published} == published


@pytest.mark.parametrize("host, degrade, threshold, seconds", [(OAUTH, 4, 8, 60), (API_KEY, 6, 12, 30),
                                                               (LOCAL, 1, 2, 15)])
def test_thresholds_are_of_the_kind_of_provider(host, degrade, threshold, seconds, gateway):
    gateway.stands_for(host)
    gateway.fail(degrade - 1)
    assert gateway.state == "closed"
    gateway.fail(1)
    assert gateway.state == "degraded"
    gateway.fail(threshold - degrade - 1)
    assert gateway.state == "degraded"
    gateway.fail(1)
    row = gateway.breaker_env.breakers()[gateway.key]
    assert row["state"] == "open" and (seconds - 3) * 1000 < row["retry_in_ms"] <= seconds * 1000 + 100
    assert gateway.call("another").refused and gateway.provider.count() == threshold


@pytest.mark.parametrize("status", [408, 500, 502, 503, 504])
def test_these_count(status, gateway):
    gateway.stands_for(LOCAL)
    gateway.provider.answer(Answer(status))
    assert [gateway.call().status for _ in range(2)] == [status] * 2
    assert gateway.state == "open"


@pytest.mark.parametrize("status", [401, 403, 404, 429, 501, 529])
def test_these_never_do(status, gateway):
    gateway.stands_for(LOCAL)
    gateway.provider.answer(Answer(status))
    assert [gateway.call().status for _ in range(4)] == [status] * 4
    assert gateway.state == "closed" and gateway.breaker_env.calls(gateway.key)["failure"] == 0


def test_the_503_carries_the_published_code(gateway):
    gateway.stands_for(LOCAL)
    gateway.fail(2)
    answer = gateway.call()
    assert answer.refused and json.loads(answer.body)["error"]["code"] == "provider-circuit-open"


def test_a_success_sets_the_failures_to_zero(gateway):
    gateway.stands_for(OAUTH)
    gateway.fail(7)
    gateway.provider.answer(Answer(200))
    assert gateway.call().status == 200 and gateway.state == "closed"
    assert gateway.breaker_env.breakers()[gateway.key]["streak"] == 0
    gateway.fail(7)
    assert gateway.state == "degraded"


def test_exactly_one_request_in_half_open(gateway):
    gateway.stands_for(LOCAL)
    gateway.fail(2, SOON)
    gate = threading.Event()
    gateway.provider.answer(Answer(200, gate=gate))
    gateway.breaker_env.wait_due(gateway.key)
    one = gateway.breaker_env.start(*gateway.curl.command(gateway.provider.url()), env=SOON)
    gateway.provider.wait_for(3)
    assert gateway.state == "half_open" and all(gateway.call(f"m{i}", SOON).refused for i in range(3))
    gate.set()
    assert gateway.curl.parse(one.communicate(timeout=20)[0]).status == 200
    assert gateway.state == "closed" and gateway.provider.count() == 3


def test_zero_tracks_and_never_opens(gateway):
    gateway.stands_for(TRACKED)
    gateway.fail(15)
    row = gateway.breaker_env.breakers()[gateway.key]
    assert (row["state"], row["streak"], row["calls"]["failure"], row["opened"]) == ("degraded", 15, 15, 0)


def test_the_environment_wins(gateway):
    gateway.stands_for(OAUTH)
    env = {"BREAKER_FAILURE_THRESHOLD": "3", "BREAKER_DEGRADE_THRESHOLD": "2", "BREAKER_OPEN_SECONDS": "7"}
    gateway.fail(3, env)
    row = gateway.breaker_env.breakers()[gateway.key]
    assert row["state"] == "open" and 5000 < row["retry_in_ms"] <= 7100
    assert gateway.call(env=env).refused
    steps = [event["to"] for event in gateway.breaker_env.events(event="transition", key=gateway.key)]
    assert steps == ["degraded", "open"]


def test_the_list_of_their_health(gateway):
    gateway.stands_for(LOCAL)
    gateway.fail(2)
    row = gateway.breaker_env.breakers()[gateway.key]
    assert row["key"] == gateway.key and row["state"] == "open" and row["calls"]["failure"] == 2
    assert row["last_failure"]["status"] == 503 and 0 <= row["last_failure"]["age_ms"] < 15_000
    assert 10_000 < row["retry_in_ms"] <= 15_100
