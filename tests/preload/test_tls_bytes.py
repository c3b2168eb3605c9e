"""Issue 6, item 4: over TLS too every byte goes through as it came, whatever is made of it."""

import hashlib
import json
import random

import pytest

from provider import Answer
from sock_programs import CLIENTS
from support import PYTHON
from tls_servers import trust

KINDS = ("http.client", "requests", "httpx", "aiohttp")
LARGE = random.Random(7).randbytes(10_000_000).hex().encode()
EVENTS = b"".join(b'data: {"choices":[{"delta":{"content":"%d"}}]}\n\n' % n for n in range(10_000)) + b"data: [DONE]\n\n"
ANSWERS = {
    "pooled": Answer(200),
    "large": Answer(200, body=LARGE),
    "stream": Answer(200, {"Content-Type": "text/event-stream"}, EVENTS, chunked=True, pieces=10_000),
    "concurrent": Answer(200, body=LARGE[:100_000], chunked=True, pieces=7),
}
CALLS = {"pooled": 200, "large": 1, "stream": 1, "concurrent": 50}


def digest(parts):
    return hashlib.sha256(b"".join(parts)).hexdigest()


@pytest.mark.parametrize("what", ANSWERS)
@pytest.mark.parametrize("kind", KINDS)
def test_bytes(kind, what, tls_provider, breaker_env, authority):
    tls_provider.answer(ANSWERS[what])
    done = breaker_env.run(PYTHON, CLIENTS / "tls_bulk.py", kind, what, tls_provider.url(name="localhost"),
                           env=trust(authority))
    assert (done.returncode, done.stderr) == (0, b""), done
    sent, came = done.stdout.decode().split()
    requests = sorted(tls_provider.seen(), key=lambda request: json.loads(request.body)["n"])
    assert digest(request.body for request in requests) == sent
    assert digest([ANSWERS[what].payload()] * CALLS[what]) == came
    calls = breaker_env.calls(tls_provider.key("m", "localhost"))
    assert (calls["success"], calls["failure"], calls["neutral"]) == (CALLS[what], 0, 0), calls


@pytest.mark.parametrize("kind", KINDS)
def test_fifty_at_once_are_refused(kind, tls_provider, breaker_env, authority):
    breaker_env.configure(open_seconds=60)
    breaker_env.command("trip", "--create", tls_provider.key("m", "localhost"))
    done = breaker_env.run(PYTHON, CLIENTS / "tls_bulk.py", kind, "concurrent", tls_provider.url(name="localhost"),
                           env=trust(authority))
    assert done.returncode == 0, done
    calls = breaker_env.calls(tls_provider.key("m", "localhost"))
    assert (calls["success"], calls["failure"], calls["refused"]) == (0, 0, 50), calls
    assert tls_provider.count() == 0
