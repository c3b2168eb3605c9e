"""The breaker bugs of others that whole programs show (FIELD-NOTES 7); the rest: tests/unit/test_field_bugs_*.c."""

from provider import Answer


def test_bug_also_reading_state_consumes_a_probe(provider, curl, breaker_env, open_breaker):
    """resilience4j#858: who looked at a breaker whose probe was due took the probe's place."""
    open_breaker(provider)
    provider.answer(Answer(200), model="m")
    key = provider.key("m")
    breaker_env.wait_due(key)
    before = breaker_env.table.read_bytes()
    for look in (["status"], ["status", "--json"], ["explain", key],
                 ["explain", "--json", key], ["config", key]):
        breaker_env.command(*look)
    assert breaker_env.table.read_bytes() == before and breaker_env.state(key) == "open"
    assert curl(provider.url()).status == 200 and breaker_env.state(key) == "closed"
