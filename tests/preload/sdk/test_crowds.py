"""Issue 6, item 4: fifty calls at once, in the ways in which servers make them: what each gets is an answer of the
provider or ours, none hangs, and once the breaker is open none of them reaches the provider."""

import json
import subprocess
from pathlib import Path

import pytest

CROWD = Path(__file__).with_name("crowd.py")
NUMBER = 50


@pytest.fixture
def crowd(sdk_python, breaker_env, api, names, named, sdk_environment):
    """crowd(KIND): the program; then ask(MODEL, HOW) tells how often each answer came."""

    def start(kind):
        command = [sdk_python, CROWD, kind, api.url("", named("openai"))]
        process = breaker_env.start(*(names(*command) if names else command), env=sdk_environment, stdin=subprocess.PIPE)

        def ask(model, how):
            process.stdin.write(f"{model} {NUMBER} {how}\n".encode())
            process.stdin.flush()
            line = process.stdout.readline()
            assert line, (process.wait(10), process.stderr.read().decode())
            return json.loads(line)

        return ask

    return start


@pytest.mark.parametrize("kind", ["threads", "asyncio", "uvloop", "gevent", "trio"])
def test_crowd(kind, crowd, api, breaker_env, named):
    breaker_env.configure(open_seconds=60)
    ask = crowd(kind)
    for how in ("whole", "stream"):
        model, healthy = f"503-{how}", f"healthy-{how}"
        key, api.healed = api.key(model, named("openai")), False
        assert ask(healthy, how) == {"hello": NUMBER}
        said = ask(model, how)
        reached = said.pop("503 scripted")
        assert said in ({}, {"503 circuit_open": NUMBER - reached}) and reached >= 5
        assert api.count(model=model) == breaker_env.calls(key)["failure"] == reached
        assert ask(model, how) == {"503 circuit_open": NUMBER}
        assert api.count(model=model) == reached
        assert ask(healthy, how) == {"hello": NUMBER}
        api.healed = True
        breaker_env.command("reset", key)
        assert ask(model, how) == {"hello": NUMBER}
        assert breaker_env.calls(key)["refused"] == 2 * NUMBER - reached
