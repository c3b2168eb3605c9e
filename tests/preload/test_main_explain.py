"""breaker explain tells what then happens: it is asked before each call of a real client."""

import json
import re

import pytest

from provider import Answer
from support import chat


@pytest.fixture
def explain(breaker_env, tmp_path):
    """What it says of the chat call that the curl tool is about to make."""
    body = tmp_path / "body.json"

    def ask(url, model="m"):
        body.write_text(chat(model))
        before = breaker_env.table.read_bytes() if breaker_env.table.exists() else None
        found = json.loads(breaker_env.command("explain", "--json", url, "--body", str(body)).stdout)
        assert before == (breaker_env.table.read_bytes() if before else None)
        return found

    return ask


def test_what_it_says_is_what_happens(breaker_env, curl, provider, explain):
    breaker_env.configure(open_seconds=60)
    provider.answer(Answer(500))
    for count in range(5):
        found = explain(provider.url())
        assert found["verdict"]["action"] == "goes" and found["chain"][0]["model"]["streak"] == count
        assert curl(provider.url()).status == 500
    found = explain(provider.url())["verdict"]
    refused = curl(provider.url(), "m", "-i")
    assert (found["action"], found["key"], found["status"]) == ("refused", provider.key("m"), 503)
    told = int(re.search(r"^Retry-After: (\d+)", refused.body, re.M)[1])
    assert found["retry_after"]["min"] - 10 <= told <= found["retry_after"]["max"]
    assert explain(provider.url(), "other")["verdict"]["action"] == "goes"
    assert provider.count() == 5


def test_asking_takes_no_probe(breaker_env, curl, provider, explain, open_breaker):
    open_breaker(provider)
    breaker_env.wait_due(provider.key("m"))
    for _ in range(3):
        assert explain(provider.url())["verdict"]["reason"] == "probe_due"
    provider.answer(Answer(200), model="m")
    assert curl(provider.url()).status == 200
    assert explain(provider.url())["verdict"]["reason"] == "closed"


@pytest.mark.parametrize("path, covered", [("/index.html", False), ("/v1/chat/completions", True)])
def test_what_is_not_covered_leaves_no_key(breaker_env, curl, provider, explain, path, covered):
    provider.answer(Answer(500))
    curl(provider.url(path))
    curl(provider.url(path))
    assert explain(provider.url(path))["coverage"]["covered"] is covered
    assert bool(breaker_env.breakers()) is covered
