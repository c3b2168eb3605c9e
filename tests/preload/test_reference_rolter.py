"""docs/examples/rolter.ini: Rolter's breakers and cool-downs, call by call, each call a curl process of its own.

The file is taken as it is but for its hosts, which are providers of the test. Its open time and its cool-downs are as
it says where they are the point, and shorter or off elsewhere.
"""

import json
import threading
from pathlib import Path

import pytest

from fallbacks import SECOND_KEY
from provider import Answer, wait_until

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "rolter.ini"
BREAKERS_ALONE = {"BREAKER_COOLDOWN_SECONDS": "0"}
QUICKLY = {**BREAKERS_ALONE, "BREAKER_OPEN_SECONDS": "1"}
FROM_SECOND = '{"from":"the second"}'


class Rolter:
    """A route of two targets, a target without a breaker, and a route of one; calls of the model "m" to the first."""

    def __init__(self, breaker_env, curl, first, second, listed, single):
        self.breaker_env, self.curl = breaker_env, curl
        self.first, self.second, self.listed, self.single = first, second, listed, single
        second.answer(Answer(200, body=FROM_SECOND.encode()))
        breaker_env.environment["OPENROUTER_API_KEY"] = SECOND_KEY
        text = EXAMPLE.read_text()
        for old, new in (("https://openrouter.ai/api/v1", second.url("/api/v1")),
                         ("https://api.openai.com/v1", first.url("/v1")),
                         ("[target api.openai.com]", f"[target {first.key()}]"),
                         ("[target openrouter.ai]", f"[target {second.key()}]"),
                         ("[target api.mistral.ai]", f"[target {listed.key()}]"),
                         ("[target gpu1.internal:8000]", f"[target {single.key()}]")):
            assert text.count(old) == 1
            text = text.replace(old, new)
        breaker_env.configure_raw(text)

    def call(self, *flags, to=None, env=BREAKERS_ALONE, model="m"):
        return self.curl((to or self.first).url(), model, *flags, env=env)

    def start(self, *flags, to=None, env=QUICKLY):
        return self.breaker_env.start(*self.curl.command((to or self.first).url(), "m", *flags), env=env)

    def ended(self, process):
        return self.curl.parse(process.communicate(timeout=20)[0])

    def row(self, of=None):
        return self.breaker_env.breakers().get((of or self.first).key(), {})

    def state(self, of=None):
        return self.breaker_env.state((of or self.first).key())

    def fail(self, number, status=500, to=None, env=BREAKERS_ALONE):
        (to or self.first).answer(Answer(status))
        assert [self.call(to=to, env=env).status for _ in range(number)] == [status] * number

    def wait_due(self, of=None):
        self.breaker_env.wait_due((of or self.first).key())

    def wait_until_it_cooled_down(self):
        wait_until(lambda: "cooldowns" not in self.row(), what="the end of the cool-down")


@pytest.fixture
def rolter(breaker_env, curl, provider, providers):
    return Rolter(breaker_env, curl, provider, providers(), providers(), providers())


def is_second(answer):
    return answer.status == 200 and answer.body == FROM_SECOND


def test_the_file_is_good_and_says_what_was_published(breaker_env):
    breaker_env.environment["OPENROUTER_API_KEY"] = SECOND_KEY
    breaker_env.command("check", "--config", str(EXAMPLE))
    told = breaker_env.command("config", "--json", "--config", str(EXAMPLE), "api.openai.com").stdout
    settings = {key: one["value"] for key, one in json.loads(told)["settings"].items()}
    published = {"scope": "host", "failure_threshold": "5", "open_seconds": "30", "half_open_probes": "1",
                 "success_threshold": "1", "probe_lease": "call", "backoff": "1", "jitter": "0", "when_exhausted": "pass",
                 "failure_status": "500-599", "rate_limit": "cooldown, count", "cooldown_on": "429, 500-599, connect"}
    assert {key: settings[key] for key in published} == published


# --- off unless it is enabled --------------------------------------------------------------------


def test_a_target_without_a_threshold_has_no_breaker(rolter):
    rolter.fail(12, to=rolter.listed)
    rolter.listed.refuse()
    assert [rolter.call(to=rolter.listed).code for _ in range(3)] == [7] * 3
    row = rolter.row(rolter.listed)
    assert (row["state"], row["streak"], row["calls"]["failure"], row["opened"]) == ("closed", 15, 15, 0)


def test_what_is_not_listed_is_left_alone(rolter, providers):
    stranger = providers()
    rolter.fail(8, to=stranger)
    assert stranger.count() == 8 and stranger.key() not in rolter.breaker_env.breakers()


def test_a_threshold_of_zero_and_mode_off_disable_it(rolter):
    for setting in ("failure_threshold=0", "mode=off"):
        rolter.fail(8, env={**BREAKERS_ALONE, "BREAKER_SET": setting})
        assert rolter.state() == "closed" and rolter.second.count() == 0


# --- what counts, and for how long it is open ----------------------------------------------------


@pytest.mark.parametrize("status", [429, 500, 501, 503, 529, 599])
def test_these_count(status, rolter):
    rolter.fail(4, status)
    assert rolter.state() == "closed"
    rolter.fail(1, status)
    assert rolter.state() == "open" and is_second(rolter.call()) and rolter.first.count() == 5


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 422])
def test_these_do_not(status, rolter):
    rolter.fail(7, status)
    assert rolter.state() == "closed" and rolter.row()["calls"]["failure"] == 0


def test_rate_limits_failures_and_failed_connects_count_together(rolter):
    rolter.fail(2, 429)
    rolter.first.refuse()
    assert is_second(rolter.call()) and rolter.row()["streak"] == 3  # the next of the route takes a failed connect
    rolter.first.listen()
    rolter.fail(1, 503)
    assert rolter.state() == "closed"
    rolter.fail(1, 429)
    row = rolter.row()
    assert row["state"] == "open" and row["calls"]["failure"] == 5 and 27_000 < row["retry_in_ms"] <= 30_100
    assert rolter.breaker_env.breakers().keys() == {rolter.first.key(), rolter.second.key()}  # none of a model


def test_a_success_in_between_begins_anew(rolter):
    for _ in range(2):
        rolter.fail(4, 503)
        rolter.first.answer(Answer(200))
        assert rolter.call().status == 200 and rolter.row()["streak"] == 0
    assert rolter.state() == "closed"


# --- the probe ---------------------------------------------------------------------------------


def test_exactly_one_probe_and_the_others_skip_the_target(rolter):
    rolter.fail(5, env=QUICKLY)
    assert is_second(rolter.call(env=QUICKLY))
    gate = threading.Event()
    rolter.first.answer(Answer(200, gate=gate))
    rolter.wait_due()
    probe = rolter.start()
    rolter.first.wait_for(6)
    assert all(is_second(rolter.call(env=QUICKLY, model=f"m{i}")) for i in range(4)) and rolter.state() == "half_open"
    gate.set()
    assert rolter.ended(probe).status == 200 and rolter.state() == "closed" and rolter.first.count() == 6


@pytest.mark.parametrize("how", [429, 500, "refused"])
def test_a_failed_probe_opens_for_the_same_time(how, rolter):
    rolter.fail(5, env=QUICKLY)
    if how == "refused":
        rolter.first.refuse()
    else:
        rolter.first.answer(Answer(how))
    for times in (2, 3):
        rolter.wait_due()
        answer = rolter.call(env=QUICKLY)
        assert is_second(answer) if how == "refused" else answer.status == how
        row = rolter.row()
        assert row["state"] == "open" and row["opened"] == times and row["retry_in_ms"] <= 1100


@pytest.mark.parametrize("open_seconds, upstream, lease", [(1, 20, 30), (45, 20, 45), (1, 90, 90)])
def test_a_probe_that_never_answers_holds_its_place_for_the_longest(open_seconds, upstream, lease, rolter):
    env = {**BREAKERS_ALONE, "BREAKER_OPEN_SECONDS": str(open_seconds)}
    rolter.first.answer(Answer(hang=True))
    rolter.breaker_env.make_due(rolter.first.key())
    rolter.start("--max-time", str(upstream), env=env)
    rolter.first.wait_for(1)
    row = rolter.row()
    assert row["state"] == "half_open" and (lease - 10) * 1000 < row["retry_in_ms"] <= lease * 1000 + 100
    assert is_second(rolter.call(env=env)) and rolter.first.count() == 1


def test_and_then_another_one_has_it(rolter):
    env = {**QUICKLY, "BREAKER_PROBE_LEASE": "1"}
    rolter.first.answer(Answer(hang=True))
    rolter.breaker_env.make_due(rolter.first.key())
    rolter.start(env=env)
    rolter.first.wait_for(1)
    rolter.first.answer(Answer(200))
    rolter.wait_due()
    assert rolter.call(env=env).status == 200 and rolter.first.count() == 2 and rolter.state() == "closed"


def test_one_that_never_reached_the_target_gives_it_up_at_once(rolter, providers):
    nowhere = providers()
    nowhere.refuse()
    rolter.breaker_env.make_due(rolter.first.key())
    assert rolter.call("--proxy", nowhere.url("")).code == 7  # as the probe: its proxy is gone, not the target
    row = rolter.row()
    assert (row["state"], row["retry_in_ms"], row["calls"]["neutral"]) == ("half_open", 0, 1)
    assert rolter.call().status == 200 and rolter.first.count() == 1 and rolter.state() == "closed"


# --- when there is nothing else to take -----------------------------------------------------------


def test_it_fails_open_when_every_target_of_the_route_is_open(rolter):
    rolter.fail(5)
    rolter.second.answer(Answer(503))
    assert [rolter.call().status for _ in range(5)] == [503] * 5 and rolter.second.count() == 5
    assert rolter.state() == rolter.state(rolter.second) == "open"
    rolter.first.answer(Answer(200, body=b'{"from":"the first"}'))
    got = [rolter.call() for _ in range(3)]
    assert [answer.body for answer in got] == ['{"from":"the first"}'] * 3
    assert (rolter.first.count(), rolter.second.count()) == (8, 5)
    assert rolter.state() == "open"  # what goes out so decides nothing


@pytest.mark.parametrize("exhausted", ["503", "pass"])
def test_the_one_probe_of_a_route_of_one_target_is_a_setting(exhausted, rolter):
    env = {**QUICKLY, **({"BREAKER_WHEN_EXHAUSTED": exhausted} if exhausted == "pass" else {})}
    gate = threading.Event()
    rolter.single.answer(Answer(200, gate=gate))
    rolter.breaker_env.make_due(rolter.single.key())
    probe = rolter.start(to=rolter.single, env=env)
    rolter.single.wait_for(1)
    rolter.single.answer(Answer(200))
    beside = [rolter.call(to=rolter.single, env=env) for _ in range(3)]
    assert [answer.refused for answer in beside] == [exhausted == "503"] * 3
    assert rolter.single.count() == (1 if exhausted == "503" else 4) and rolter.state(rolter.single) == "half_open"
    gate.set()
    assert rolter.ended(probe).status == 200 and rolter.state(rolter.single) == "closed"


def test_how_many_may_probe_is_one_too(rolter):
    env = {**QUICKLY, "BREAKER_HALF_OPEN_PROBES": "2"}
    gate = threading.Event()
    rolter.single.answer(Answer(200, gate=gate))
    rolter.breaker_env.make_due(rolter.single.key())
    probes = [rolter.start(to=rolter.single, env=env) for _ in range(2)]
    rolter.single.wait_for(2)
    assert rolter.call(to=rolter.single, env=env).refused
    gate.set()
    assert [rolter.ended(probe).status for probe in probes] == [200] * 2


# --- cool-downs ----------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [429, 501, 503, "refused"])
def test_a_single_failure_parks_the_target_briefly(how, rolter):
    if how == "refused":
        rolter.first.refuse()
        assert is_second(rolter.call(env={}))
        rolter.first.listen()
    else:
        rolter.first.then(Answer(how))
        assert rolter.call(env={}).status == how
    before = rolter.first.accepted
    assert is_second(rolter.call(env={})) and is_second(rolter.call(env={})) and rolter.first.accepted == before
    row = rolter.row()
    assert row["state"] == "closed" and row["streak"] == 1 and 0 < row["cooldowns"]["longest_ms"] <= 5100
    (event,) = rolter.breaker_env.events(event="cooldown")
    assert event["detail"].endswith(" for 5.000 s")


def test_failures_that_add_up_across_cooldowns_trip(rolter):
    env = {"BREAKER_COOLDOWN_SECONDS": "0.5"}
    for times, how in enumerate([503, 429, "refused", 500, 503], 1):
        if how == "refused":
            rolter.first.refuse()
            assert is_second(rolter.call(env=env))
            rolter.first.listen()
        else:
            rolter.first.then(Answer(how))
            assert rolter.call(env=env).status == how
        assert rolter.row()["calls"]["failure"] == times
        assert is_second(rolter.call(env=env))
        rolter.wait_until_it_cooled_down()
    assert rolter.state() == "open" and is_second(rolter.call(env=env)) and rolter.first.count() == 4


def test_a_route_that_is_parked_fails_open_too(rolter):
    rolter.first.then(Answer(503))
    rolter.second.then(Answer(503))
    assert [rolter.call(env={}).status for _ in range(2)] == [503, 503]
    assert rolter.call(env={}).status == 200 and (rolter.first.count(), rolter.second.count()) == (2, 1)


def test_a_cooldown_that_is_longer_than_the_open_time_holds_the_probe(rolter):
    env = {"BREAKER_COOLDOWN_SECONDS": "60", "BREAKER_OPEN_SECONDS": "0.3", "BREAKER_FAILURE_THRESHOLD": "1"}
    rolter.first.then(Answer(503))
    assert rolter.call(env=env).status == 503 and rolter.state() == "open"
    rolter.wait_due()
    assert is_second(rolter.call(env=env)) and rolter.state() == "open" and rolter.first.count() == 1
