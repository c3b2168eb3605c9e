"""Issue 6, item 2: programs of two SDKs and the curl tool share one breaker."""

import pytest

from support import chat


@pytest.fixture
def curl_tool(breaker_env, names, sdk_environment):
    """The curl tool: status and body of one POST."""

    def post(url, model):
        command = ["curl", "-s", "-w", "\n%{http_code}", "-d", chat(model), url]
        done = breaker_env.run(*(names(*command) if names else command),
                               env={"CURL_CA_BUNDLE": sdk_environment["SSL_CERT_FILE"]})
        body, _, status = done.stdout.decode().rpartition("\n")
        return int(status), body

    return post


def test_one_breaker(program, api, breaker_env, named, curl_tool):
    """Three attempts of one SDK, a call of another and one of curl are five failures; then nobody is let through."""
    breaker_env.configure(open_seconds=60)
    host = named("openai")
    model, key, url = "500-shared", api.key("500-shared", host), api.url(name=host)
    openai, langchain = program("openai"), program("langchain-openai", host)
    assert openai.ask(model)["status"] == 500
    assert curl_tool(url, model)[0] == 500
    assert api.count(model=model) == 4 and breaker_env.state(key) == "degraded"
    assert "libbreaker" in langchain.ask(model)["said"]  # its second attempt
    assert api.count(model=model) == 5 and breaker_env.calls(key)["failure"] == 5
    assert openai.ask(model)["code"] == openai.ask(model, is_async=True, stream=True)["code"] == "circuit_open"
    status, body = curl_tool(url, model)
    assert status == 503 and "circuit_open" in body
    assert langchain.ask("healthy-other")["text"] == "hello"
    assert api.count(model=model) == 5
    api.healed = True
    breaker_env.make_due(key)
    assert langchain.ask(model)["text"] == "hello"  # the probe
    assert breaker_env.state(key) == "closed"
    assert openai.ask(model)["text"] == "hello" and curl_tool(url, model)[0] == 200
