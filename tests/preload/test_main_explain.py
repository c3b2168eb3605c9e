"""breaker explain tells what then happens: it is asked before each call of a real client."""

import json
import re
import sys

import pytest

from listeners import accepting
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


# Reads until the server closes: then it has accepted.
OWN_SOCKET = """import socket, sys
try:
    connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 9)
except ConnectionRefusedError:
    sys.exit("refused")
while connection.recv(99):
    pass
"""


@pytest.mark.parametrize("scheme", ["ftp", "gopher", "ws"])
@pytest.mark.parametrize("match", ["a target", "all", "no target"])
def test_a_scheme_that_is_not_http(breaker_env, scheme, match):
    """libcurl's calls pass uncounted, whatever the host's breaker says; connects of a program's own sockets obey it."""
    accepted = []
    with accepting(lambda connection: (accepted.append(1), connection.close())) as listener:
        key = f"127.0.0.1:{listener.port}"
        breaker_env.configure(f"[target {key}]\n" if match == "a target" else "",
                              match="all" if match == "all" else "llm")
        breaker_env.command("force", "open", "--create", key)
        judged = match != "no target"
        found = json.loads(breaker_env.command("explain", "--json", f"{scheme}://{key}/v1/realtime").stdout)
        assert (found["verdict"]["action"], found["verdict"]["reason"]) == ("uncounted", "scheme")
        assert found["coverage"]["at_connect"] is judged
        meets = {layer["layer"]: layer["now"] for layer in found["layers"]}
        assert meets.get("sockets") == ("connect fails with ECONNREFUSED" if judged else None)
        assert ("ECONNREFUSED" in found["verdict"]["text"]) is judged
        own = breaker_env.run(sys.executable, "-c", OWN_SOCKET, listener.port)
        assert (own.returncode, len(accepted)) == ((1, 0) if judged else (0, 1)), own
        assert b"refused" in own.stderr or not judged
        if scheme != "ws":  # Debian's libcurl has no WebSockets yet
            breaker_env.run("curl", "-sS", "--max-time", "20", f"{scheme}://{key}/x")
            assert len(accepted) == (1 if judged else 2)
        if judged:  # counted by nothing but the refused connect
            calls = breaker_env.calls(key)
            assert (calls["refused"], sum(calls.values())) == (1, 1)


def test_a_connect_by_sockets_of_another_scheme_is_counted(breaker_env):
    """As explain says where the breaker is closed: it goes, and what comes first ends its row."""
    with accepting(lambda connection: (connection.sendall(b"220 ready\r\n"), connection.close())) as listener:
        key = f"127.0.0.1:{listener.port}"
        breaker_env.configure(f"[target {key}]\n")
        found = json.loads(breaker_env.command("explain", "--json", f"ftp://{key}/x").stdout)
        assert {layer["layer"]: layer["now"] for layer in found["layers"]}["sockets"] == "connects"
        assert breaker_env.run(sys.executable, "-c", OWN_SOCKET, listener.port).returncode == 0
        calls = breaker_env.calls(key)
        assert (calls["success"], sum(calls.values())) == (1, 1)
