"""Issue 5: one call in two fails, across processes; the share of failures opens what no streak would."""

import pytest

from provider import Answer

BY_TURNS = [500, 200] * 5  # ten calls


def by_turns(provider, number):
    provider.then(*(Answer(500 if i % 2 == 0 else 200) for i in range(number)))


def rated(breaker_env, **keys):
    breaker_env.configure(**{"open_seconds": 60, "failure_rate": 0.5, "min_calls": 11, **keys})


def test_one_call_in_two_fails_and_the_share_opens_the_breaker(provider, curl, breaker_env):
    rated(breaker_env)
    by_turns(provider, 20)
    got = [curl(provider.url()) for _ in range(20)]
    assert [a.status for a in got] == BY_TURNS + [500] + [503] * 9  # 6 of 11
    assert all(a.refused for a in got[11:]) and provider.count() == 11
    found = breaker_env.breakers()[provider.key("m")]
    assert found["state"] == "open" and found["opened"] == 1
    (step,) = breaker_env.events(event="transition", key=provider.key("m"))
    assert (step["from"], step["to"], step["cause"]) == ("closed", "open", "status 500")
    assert step["detail"] == "6 of 11 calls failed"


def test_the_same_without_a_rate_flows(provider, curl, breaker_env):
    breaker_env.configure(open_seconds=60)
    by_turns(provider, 20)
    assert [curl(provider.url()).status for _ in range(20)] == BY_TURNS * 2
    assert breaker_env.state(provider.key("m")) == "closed" and not breaker_env.events(event="transition")


def test_a_low_traffic_key_opens_by_its_streak(provider, curl, breaker_env):
    rated(breaker_env, min_calls=1000)
    provider.then(Answer(500), Answer(200))
    provider.answer(Answer(500))
    assert [curl(provider.url()).status for _ in range(9)] == [500, 200] + [500] * 5 + [503] * 2
    (_, step) = breaker_env.events(event="transition", key=provider.key("m"))
    assert step["from"] == "degraded" and step["to"] == "open" and "detail" not in step


def test_each_model_has_a_share_of_its_own(provider, curl, breaker_env):
    rated(breaker_env, min_calls=5)
    provider.answer(Answer(500), model="bad")
    provider.answer(Answer(200), model="good")
    got = [curl(provider.url(), "good" if i % 2 else "bad").status for i in range(14)]
    assert got[0::2] == [500] * 5 + [503] * 2 and got[1::2] == [200] * 7
    assert breaker_env.state(provider.key()) == "closed"


def test_status_shows_the_share_where_one_is_set(provider, curl, breaker_env):
    rated(breaker_env, window=90.5)
    by_turns(provider, 5)
    for _ in range(5):
        curl(provider.url())
    rows = breaker_env.breakers()
    assert rows[provider.key("m")]["rate"] == {"calls": 5, "failures": 3, "window": 90.5}
    assert rows[provider.key()]["rate"] == {"calls": 5, "failures": 0, "window": 90.5}
    head, *lines = breaker_env.command("status").stdout.splitlines()
    line = next(line for line in lines if line.startswith(provider.key("m")))
    assert line[head.index("RATE"):].startswith("3/5 in 90.5s  ")
    breaker_env.configure()
    assert "rate" not in breaker_env.breakers()[provider.key("m")]
    assert "RATE" not in breaker_env.command("status").stdout


@pytest.mark.parametrize("how", ["target", "environment"])
def test_where_the_rate_may_be_set(provider, curl, breaker_env, how):
    keys = {"failure_rate": 0.3, "window": 86400, "min_calls": 3}
    if how == "target":
        target = "\n".join(f"{key} = {value}" for key, value in keys.items())
        breaker_env.configure(f"[target {provider.key()}/m]\n{target}\n", open_seconds=60)
    else:
        breaker_env.configure(open_seconds=60)
        breaker_env.environment.update({f"BREAKER_{key.upper()}": str(value) for key, value in keys.items()})
    provider.then(Answer(200), Answer(500), Answer(200), Answer(500))
    assert [curl(provider.url()).status for _ in range(5)] == [200, 500, 200, 500, 503]


@pytest.mark.parametrize("setting", ["neutral_status = 499, 500-501", "neutral_status = 501\nneutral_status = 500"])
def test_a_gateways_500_for_a_long_prompt_is_neutral(provider, curl, breaker_env, setting):
    breaker_env.configure(f"[target {provider.key()}]\n{setting}\n", open_seconds=60)
    provider.answer(Answer(500))
    assert [curl(provider.url()).status for _ in range(8)] == [500] * 8
    assert breaker_env.calls(provider.key("m"))["neutral"] == 8
    provider.answer(Answer(502))
    assert [curl(provider.url()).status for _ in range(6)] == [502] * 5 + [503]
