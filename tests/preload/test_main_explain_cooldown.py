"""breaker explain goes by cool-downs as the library does: it is asked first, then the curl tool makes the call."""

import json
import re

import pytest

from fallbacks import PLAIN, SECOND_KEY, Fallback, addressed
from provider import Answer

LIMITED = Answer(429, {"Retry-After": "40"})
KEYED = {"SECOND_KEY": SECOND_KEY}


@pytest.fixture
def explain(breaker_env):
    breaker_env.environment.update(KEYED)

    def ask(url, model="m"):
        return json.loads(breaker_env.command("explain", "--json", url, "--model", model).stdout)

    return ask


def key(name):
    return "-H", f"Authorization: Bearer {name}"


def seconds_told(answer):
    return int(re.search(r"^Retry-After: (\d+)", answer.body, re.M)[1])


def test_a_key_that_cools_down_for_all_is_a_429(breaker_env, curl, provider, explain):
    breaker_env.configure(cooldown_seconds=50)
    provider.then(Answer(503))
    assert curl(provider.url()).status == 503
    found = explain(provider.url())
    refused = curl(provider.url(), "m", "-i")
    verdict = found["verdict"]
    assert (verdict["action"], verdict["reason"], verdict["key"]) == ("refused", "cooling_down", provider.key("m"))
    assert verdict["status"] == refused.status == 429 and verdict["to"] is None and verdict["waiting"] is None
    told = seconds_told(refused)
    assert verdict["retry_after"]["min"] == verdict["retry_after"]["max"] and told <= verdict["retry_after"]["max"] <= told + 10
    assert found["chain"][0]["action"] == "refused" and found["chain"][0]["reason"] == "cooling_down"
    text = breaker_env.command("explain", provider.url(), "--model", "m").stdout
    assert re.search(r"^now: refused with a synthetic 429, Retry-After \d+: " + re.escape(provider.key("m"))
                     + r" is cooling down for all credentials for [\d.]+s \(until \d{4}-.*Z\), last failure: status 503",
                     text, re.M)
    assert "note:" not in text and "all cooling down" in text
    assert explain(provider.url(), "other")["verdict"]["action"] == "goes" and curl(provider.url(), "other").status == 200


def test_a_host_that_cools_down(breaker_env, curl, provider, explain):
    breaker_env.configure(f"[target {provider.key()}]\n", cooldown_seconds=50)
    provider.refuse()
    curl(provider.url())
    found = explain(provider.url())
    assert (found["verdict"]["key"], found["verdict"]["status"]) == (provider.key(), 429)
    libcurl, sockets = found["layers"][0], found["layers"][1]
    assert libcurl["now"].startswith("refused with a synthetic 429") and "ECONNREFUSED" in sockets["now"]
    assert explain(provider.url("/v1/files"))["verdict"]["reason"] == "cooling_down"


def test_it_leads_to_a_fallback(breaker_env, curl, provider, providers, configure, explain):
    other = Fallback("other", providers())
    other.provider.answer(PLAIN)
    configure(provider, other, cooldown_seconds=50)
    provider.then(Answer(503))
    curl(provider.url(), env=KEYED)
    verdict = explain(provider.url())["verdict"]
    assert (verdict["action"], verdict["reason"], verdict["fallback"]) == ("rerouted", "cooling_down", "other")
    assert verdict["status"] is None and verdict["text"].startswith("goes to ")
    assert curl(provider.url(), env=KEYED).status == 200 and other.provider.count() == 1


def test_a_fallback_whose_own_key_waits_is_passed_over(breaker_env, curl, provider, providers, configure, explain):
    one, two = Fallback("one", providers()), Fallback("two", providers(), auth=None)
    two.provider.answer(PLAIN)
    one.provider.answer(LIMITED)
    configure(provider, one, two)
    breaker_env.command("force", "open", "--create", provider.key())
    assert explain(provider.url())["verdict"]["fallback"] == "one"
    assert curl(provider.url(), env=KEYED).status == 429
    found = explain(provider.url())
    assert found["verdict"]["fallback"] == "two" and found["chain"][1]["reason"] == "cooling_down"
    assert "cooling down for its credential" in found["chain"][1]["text"]
    assert curl(provider.url(), env=KEYED).status == 200 and (one.provider.count(), two.provider.count()) == (1, 1)
    two.provider.answer(LIMITED)  # it has no key: so has no other call there
    assert explain(provider.url())["verdict"]["fallback"] == "two" and curl(provider.url(), env=KEYED).status == 429
    assert explain(provider.url())["verdict"]["action"] == "refused" and curl(provider.url(), env=KEYED).refused


def test_and_to_the_other_address(breaker_env, curl, provider, providers, explain):
    second = providers()
    breaker_env.configure(addressed(provider.key(), second.key(), failover="off"), cooldown_seconds=50)
    provider.refuse()
    assert curl(provider.url()).code == 7
    found = explain(provider.url())
    assert found["verdict"]["fallback"] == "fallback_address" and "connects to " in found["layers"][1]["now"]
    assert curl(provider.url()).status == 200 and second.count() == 1


def test_whose_credential_waits_is_not_known(breaker_env, curl, provider, explain):
    provider.then(LIMITED, LIMITED)
    for name in "ab":
        curl(provider.url(), "m", *key(name))
    verdict = explain(provider.url())["verdict"]
    assert (verdict["action"], verdict["reason"], verdict["status"]) == ("goes", "closed", None)
    waiting = verdict["waiting"]
    assert (waiting["key"], waiting["credentials"], waiting["action"], waiting["fallback"]) == \
        (provider.key("m"), 2, "refused", None) and 30_000 < waiting["longest_ms"] <= 40_100
    text = breaker_env.command("explain", provider.url(), "--model", "m").stdout
    assert re.search(r"^now: goes to .*: closed; but 2 credentials of at most 4 that are known are cooling down at "
                     + re.escape(provider.key("m")) + r", the last for [\d.]+s: their calls are refused with a synthetic 429$",
                     text, re.M), text
    assert curl(provider.url(), "m", *key("a")).refused and curl(provider.url(), "m", *key("c")).status == 200


def test_and_where_they_go(breaker_env, curl, provider, providers, configure, explain):
    other = Fallback("other", providers())
    configure(provider, other)
    provider.then(LIMITED)
    curl(provider.url(), "m", *key("a"), env=KEYED)
    verdict = explain(provider.url())["verdict"]
    assert (verdict["action"], verdict["waiting"]["action"], verdict["waiting"]["fallback"]) == ("goes", "rerouted", "other")
    assert "but 1 credential of at most 4 that are known is cooling down at" in verdict["text"]
    assert curl(provider.url(), "m", *key("a"), env=KEYED).status == 200 and other.provider.count() == 1


def test_a_key_in_the_url_is_known(breaker_env, curl, provider, explain):
    provider.then(LIMITED)
    curl(provider.url() + "?key=a")
    assert explain(provider.url() + "?key=a")["verdict"]["status"] == 429
    assert "cooling down for its credential" in explain(provider.url() + "?key=a")["verdict"]["text"]
    found = explain(provider.url() + "?key=b")["verdict"]
    assert (found["action"], found["waiting"]) == ("goes", None)
    user = provider.url().replace("//", "//u:p@")
    provider.then(LIMITED)
    curl(user)
    assert explain(user)["verdict"]["status"] == 429 and curl(user).refused
    assert curl(provider.url() + "?key=a").refused and curl(provider.url() + "?key=b").status == 200


def test_where_nobody_is_kept(breaker_env, curl, provider, explain):
    breaker_env.configure(cooldown_seconds=50)
    provider.then(Answer(503), LIMITED)
    curl(provider.url())
    curl(provider.url(), "o", *key("a"))
    for settings, reason in (({"when_exhausted": "pass"}, "when_exhausted"), ({"mode": "observe"}, "observed")):
        breaker_env.configure(cooldown_seconds=50, **settings)
        verdict = explain(provider.url())["verdict"]
        assert (verdict["action"], verdict["reason"], verdict["key"]) == ("goes", reason, provider.key("m"))
        assert "is cooling down, but " in verdict["text"] and explain(provider.url(), "o")["verdict"]["waiting"] is None
        assert curl(provider.url()).status == 200
    breaker_env.configure(cooldown_seconds=50)
    breaker_env.command("force", "closed", provider.key("m"))
    assert explain(provider.url())["verdict"]["reason"] == "forced_closed" and curl(provider.url()).status == 200


def test_open_decides_and_the_longer_one_tells(breaker_env, curl, provider, explain):
    breaker_env.configure(cooldown_seconds=50, failure_threshold=1, open_seconds=20)
    provider.then(Answer(503))
    curl(provider.url())
    verdict = explain(provider.url())["verdict"]
    assert (verdict["reason"], verdict["status"]) == ("open", 503) and verdict["retry_after"]["min"] > 30
    assert seconds_told(curl(provider.url(), "m", "-i")) > 30
    breaker_env.configure(cooldown_seconds=50)
    breaker_env.command("trip", "--set", "open_seconds=0.1", provider.key("m"))
    breaker_env.command("reset", provider.key("m"))
    assert explain(provider.url())["verdict"]["action"] == "goes"


def test_a_probe_waits_for_the_cooldown(breaker_env, curl, provider, explain):
    breaker_env.configure(cooldown_seconds=50, failure_threshold=1, open_seconds=0.2)
    provider.then(Answer(503))
    curl(provider.url())
    breaker_env.wait_due(provider.key("m"))
    verdict = explain(provider.url())["verdict"]
    assert (verdict["action"], verdict["reason"], verdict["status"]) == ("refused", "cooling_down", 429)
    assert curl(provider.url()).status == 429 and provider.count() == 1
