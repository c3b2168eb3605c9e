"""Issue 5, item 5: real curl processes obey the environment form of a key, whatever a target says; for each kind of
value. (What is told of each key of each place: tests/cli/test_every_key.py.)"""

import json

import pytest

from fallbacks import SECOND_KEY, Fallback, target_of
from provider import Answer

OPENED = [503] * 2
# A key, its values in a target and in the environment; what the provider answers; what curl gets by each of the two.
ANSWERS = [
    ("failure_threshold", "5", "2", [500] * 7, [500] * 5 + OPENED, [500] * 2 + [503] * 5),
    ("failure_rate", "0", "0.5", [200, 500] * 11, [200, 500] * 11, [200, 500] * 10 + OPENED),
    ("failure_status", "500", "418, 501-502", [418, 501, 502] * 2 + [418], [418, 501, 502] * 2 + [418],
     [418, 501, 502, 418, 501] + OPENED),
    ("rate_limit", "ignore", "count", [429] * 7, [429] * 7, [429] * 5 + OPENED),
    ("mode", "enforce", "off", [500] * 7, [500] * 5 + OPENED, [500] * 7),
]


@pytest.fixture
def target_says(provider, breaker_env):
    return lambda text="", **keys: breaker_env.configure(target_of(provider.key(), **keys) + text, open_seconds=60)


@pytest.mark.parametrize("key, file, variable, given, by_file, by_variable", ANSWERS, ids=[case[0] for case in ANSWERS])
def test_what_counts(key, file, variable, given, by_file, by_variable, provider, curl, target_says):
    target_says(**{key: file})
    for model, environment, expected in (("m", {}, by_file), ("n", {f"BREAKER_{key.upper()}": variable}, by_variable)):
        got = []
        for status in given:
            provider.answer(Answer(status), model=model)
            got.append(curl(provider.url(), model, env=environment).status)
        assert got == expected


@pytest.mark.parametrize("variables, ends", [({}, [0] * 2), ({"BREAKER_TIMEOUT_AFTER": "0.05"}, [503] * 2)])
def test_a_duration(variables, ends, provider, curl, target_says):
    target_says(timeout_after=60)
    provider.answer(Answer(hang=True))
    got = [curl(provider.url(), "m", "-m", "0.4", env=variables) for _ in range(7)]
    assert [(answer.status, answer.code) for answer in got] == [(0, 28)] * 5 + [(s, 0 if s else 28) for s in ends]


@pytest.mark.parametrize("variables, told", [({}, True), ({"BREAKER_SHOULD_RETRY": "true"}, False)])
def test_yes_or_no(variables, told, provider, curl, breaker_env, target_says):
    target_says(should_retry="false")
    breaker_env.command("trip", "--create", provider.key("m"))
    answer = curl(provider.url(), "m", "-i", env=variables)
    assert answer.refused and ("x-should-retry: false" in answer.body) == told


@pytest.mark.parametrize("variables, code", [({}, "of-the-file"), ({"BREAKER_ERROR_CODE": "no-go"}, "no-go")])
def test_a_code(variables, code, provider, curl, breaker_env, target_says):
    target_says(error_code="of-the-file")
    breaker_env.command("trip", "--create", provider.key("m"))
    answer = curl(provider.url(), env=variables)
    assert answer.refused and json.loads(answer.body)["error"]["code"] == code


@pytest.mark.parametrize("variables, name", [({}, "one"), ({"BREAKER_FALLBACK": "two"}, "two"),
                                             ({"BREAKER_FALLBACK": ""}, None)])
def test_names(variables, name, provider, providers, curl, breaker_env, target_says):
    places = {name: Fallback(name, providers()) for name in ("one", "two")}
    target_says("".join(place.section() for place in places.values()), fallback="one")
    breaker_env.command("trip", "--create", provider.key("m"))
    answer = curl(provider.url(), env={"SECOND_KEY": SECOND_KEY, **variables})
    assert answer.refused == (name is None)
    assert [n for n, place in places.items() if place.provider.count()] == [name] * (name is not None)


@pytest.mark.parametrize("environment, by", [(False, "one"), (True, "two")])
def test_an_address(environment, by, provider, providers, curl, breaker_env, target_says):
    places = {name: providers() for name in ("one", "two")}
    target_says(fallback_address=places["one"].key())
    breaker_env.command("trip", "--create", provider.key())
    variables = {"BREAKER_FALLBACK_ADDRESS": places["two"].key()} if environment else {}
    assert curl(provider.url(), env=variables).status == 200
    assert [name for name, place in places.items() if place.count()] == [by]
