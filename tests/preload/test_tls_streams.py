"""Issue 6: errors inside streams are heard through TLS as in clear text (test_stream_clients.py)."""

import subprocess

import pytest

from provider import Answer
from sock_programs import OPEN, Conversation, digest_of
from test_stream_clients import BODIES
from tls_servers import TLS, skip_other_node, trust

NAME = "localhost"


@pytest.mark.parametrize("body", ["anthropic", "openai", "openrouter", "bedrock", "ollama"])
@pytest.mark.parametrize("name", TLS)
def test_errors(name, body, tls_provider, breaker_env, authority):
    """Five of them, cut at odd places; the good ones before are no failures, and then the program gets our answer."""
    skip_other_node(name, libssl=True)
    breaker_env.configure(open_seconds=60)
    client = Conversation(breaker_env.start(*TLS[name].argv, "-", stdin=subprocess.PIPE, env=trust(authority)))
    key = tls_provider.key("m", NAME)
    for which, result in ((f"{body}-good", "success"), (body, "failure")):
        path, content_type, content, _ = BODIES[which]
        tls_provider.answer(Answer(200, {"Content-Type": content_type}, content, chunked=True, pieces=37))
        for number in range(1, 6):
            assert client.ask(tls_provider.url(path, NAME), "m", "stream") == "status 200 -"
            assert client.digest == digest_of(content)
            assert breaker_env.calls(key)[result] == number
    assert client.ask(tls_provider.url(path, NAME), "m", "stream") == OPEN
    client.end()
