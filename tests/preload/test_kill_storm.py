"""Real programs with the breaker under them, killed and stopped at random while they call: their table stays good.

Some seconds here; BREAKER_CHECK_SOAK=600 makes it ten minutes.
"""

import collections
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from passing import let_pass
from provider import Answer, Provider, wait_until

HERE = Path(__file__).parent
SECONDS = int(os.environ.get("BREAKER_CHECK_SOAK", 4))
CLIENTS = 6
MODELS = ["fine", "fails", "mixed", "breaks", "slow"]
MOODS = {"fails": [Answer(500)], "mixed": [Answer(200), Answer(500), Answer(404), Answer(429)],
         "breaks": [Answer(200, close="mid-body"), Answer(200, close="before-head"), Answer(200, close="mid-head", reset=True)],
         "slow": [Answer(200, delay=0.02), Answer(503, delay=0.02)]}


class Moody(Provider):
    """Counts, and keeps no request: there are many. `well`: everything is answered well."""

    def __init__(self):
        self.arrived, self.random, self.well = collections.Counter(), random.Random(1), False
        super().__init__()

    def _choose(self, request):
        self.requests.clear()
        self.arrived[request.model] += 1
        return Answer(200) if self.well else self.random.choice(MOODS.get(request.model, [Answer(200)]))


class Crowd:
    """Clients of both kinds, in turns; who is killed is replaced."""

    def __init__(self, programs, breaker_env, provider):
        self.kills, self.random = 0, random.Random(2)
        self.env, self.directory = breaker_env.preloaded(), breaker_env.directory
        self.commands = [[programs[0], str(provider.port), *MODELS], [programs[1], provider.url(), *MODELS]]
        self.clients = [self.start(i) for i in range(CLIENTS)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for client in self.clients:  # whom a law that broke left
            client.kill()

    def start(self, i):
        return subprocess.Popen(self.commands[i % 2], env=self.env, cwd=self.directory, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def strike(self):
        i = self.random.randrange(CLIENTS)
        client = self.clients[i]
        if self.random.random() < 0.4:
            client.send_signal(signal.SIGSTOP)
            let_pass(self.random.random() * 0.03)  # how long it is stopped
            client.send_signal(signal.SIGCONT)
            return
        client.kill()
        self.expect(client, -signal.SIGKILL)
        self.kills += 1
        self.clients[i] = self.start(i)

    @staticmethod
    def expect(client, code):
        out, err = client.communicate(timeout=30)  # closes its standard input
        assert (client.returncode, out, err) == (code, b"", b"")

    def end(self):
        for client in self.clients:
            self.expect(client, 0)


@pytest.mark.time_limit(SECONDS + 60)
def test_killed_and_stopped_while_they_call(breaker_env, compile_c, curl):
    programs = [compile_c(HERE / "sock/storm.c", "-I", HERE / "sock", name="storm"),
                compile_c(HERE / "curl/storm.c", "-I", HERE / "curl", "-lcurl", name="storm")]
    breaker_env.configure(open_seconds=0.1, probe_lease=0.2, rate_limit="cooldown")
    with Moody() as provider, Crowd(programs, breaker_env, provider) as crowd:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            crowd.strike()
            let_pass(crowd.random.random() * 0.02)  # the next moment
        crowd.end()
        check_what_is_left(breaker_env, provider, crowd.kills)
        provider.well = True
        check_fresh_calls(breaker_env, provider, curl)


def check_what_is_left(breaker_env, provider, kills):
    breakers = breaker_env.breakers()
    assert set(breakers) == {provider.key(), *map(provider.key, MODELS)}
    for model in MODELS:
        found = breakers[provider.key(model)]
        counted = sum(found["calls"][kind] for kind in ("success", "failure", "neutral"))
        assert provider.arrived[model] - kills <= counted <= provider.arrived[model], (model, kills, provider.arrived, found)
    fine = breakers[provider.key("fine")]
    assert (fine["state"], fine["calls"]["failure"], fine["calls"]["refused"]) == ("closed", 0, 0)
    assert breakers[provider.key()]["state"] == "closed"
    assert all(breakers[provider.key(model)]["opened"] > 0 for model in ("fails", "breaks"))
    assert kills > SECONDS * 2 and fine["calls"]["success"] > SECONDS * 10


def check_fresh_calls(breaker_env, provider, curl):
    """Whoever died with a grant, each breaker closes; and it opens again."""
    for model in MODELS:
        wait_until(lambda: curl(provider.url(), model).status == 200, what=model)
    for model in MODELS:
        assert breaker_env.state(provider.key(model)) in ("closed", "degraded")
        assert curl(provider.url(), model).status == 200
    provider.well = False
    for _ in range(5):
        assert not curl(provider.url(), "fails").refused
    assert curl(provider.url(), "fails").refused
