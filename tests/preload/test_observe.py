"""Issue 5, modes: with mode = observe all counts and nothing is refused; status and log tell what would have been."""

from provider import Answer


def test_all_pass_and_the_machine_runs(provider, curl, breaker_env):
    breaker_env.configure(mode="observe", open_seconds=60)
    provider.answer(Answer(500))
    got = [curl(provider.url()) for _ in range(12)]
    assert [a.status for a in got] == [500] * 12 and not any(a.refused for a in got)
    found = breaker_env.breakers()[provider.key("m")]
    assert (found["state"], found["opened"], found["mode"]) == ("open", 1, "observe")
    assert (found["calls"]["failure"], found["calls"]["refused"]) == (12, 7)
    assert [e["to"] for e in breaker_env.events(event="transition")] == ["degraded", "open"]
    (event,) = breaker_env.events(event="observed")
    assert (event["key"], event["cause"], event["refused_total"]) == (provider.key("m"), "open", 1)
    assert not breaker_env.events(event="refused")


def test_a_probe_of_an_observed_breaker_closes_it(provider, curl, breaker_env):
    breaker_env.configure(mode="observe", open_seconds=0.1)
    provider.answer(Answer(500))
    for _ in range(5):
        curl(provider.url())
    provider.answer(Answer(200))
    breaker_env.wait_due(provider.key("m"))
    assert curl(provider.url()).status == 200
    assert breaker_env.state(provider.key("m")) == "closed"


def test_refused_connects_are_observed(provider, curl, breaker_env):
    """Nor does a call that fails to connect go elsewhere."""
    breaker_env.configure(f"[fallback other]\nbase = {provider.url('/v1')}\n", mode="observe", fallback="other",
                          open_seconds=60)
    provider.refuse()
    assert [curl(provider.url()).code for _ in range(8)] == [7] * 8
    row = breaker_env.breakers()[provider.key()]
    assert row["state"] == "open" and row["calls"]["refused"] == 3 and row["calls"]["rerouted"] == 0
    assert not breaker_env.events(event="failover") and not breaker_env.events(event="rerouted")


def test_enforced_from_one_second_to_the_next(provider, curl, breaker_env):
    breaker_env.configure(mode="observe", open_seconds=60)
    provider.answer(Answer(500))
    for _ in range(6):
        assert curl(provider.url()).status == 500
    breaker_env.configure(open_seconds=60)
    assert curl(provider.url()).refused
