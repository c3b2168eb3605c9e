"""Issue 2, item 10: `breaker run -- ./batch.sh` covers all that the script starts; a bare LD_PRELOAD does too."""

import os
import subprocess
from pathlib import Path

import pytest

from provider import Answer
from support import PYTHON, chat

CLIENTS = Path(__file__).parent / "clients"
COVERED = ["plain", "pipe", "subshell", "substitution", "background", "timeout", "env", "nice", "exec", *["xargs"] * 8,
           "stdin", "find", "php", "python", "php-system", "python-subprocess", "setsid"]


def run_batch(breaker_env, provider, launcher=True):
    script = [CLIENTS / "batch.sh", provider.url(), PYTHON, CLIENTS]
    if launcher:
        done = breaker_env.run(*script)
    else:
        done = subprocess.run([str(s) for s in script], env=breaker_env.preloaded(), cwd=breaker_env.directory,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=50)
    assert (done.returncode, done.stderr) == (0, b"")
    return [line.split() for line in done.stdout.decode().splitlines()]


@pytest.mark.parametrize("launcher", [True, False], ids=["breaker run", "LD_PRELOAD"])
def test_batch_while_open(launcher, provider, breaker_env):
    breaker_env.configure(open_seconds=60)
    breaker_env.command("trip", "--create", provider.key("m"))
    lines = run_batch(breaker_env, provider, launcher)
    assert lines == [[name, "503"] for name in COVERED] + [["cleared", "200"]]
    assert provider.count() == 1, "only the child without an environment gets through"
    assert breaker_env.calls(provider.key("m"))["refused"] == len(COVERED)


@pytest.mark.parametrize("launcher", [True, False], ids=["breaker run", "LD_PRELOAD"])
def test_batch_while_well(launcher, provider, breaker_env):
    lines = run_batch(breaker_env, provider, launcher)
    assert lines == [[name, "200"] for name in [*COVERED, "cleared"]]
    assert provider.count() == len(COVERED) + 1
    assert breaker_env.calls(provider.key("m"))["success"] == len(COVERED)


def test_batch_while_failing(provider, breaker_env):
    """Whatever they are, the first five calls tell all others."""
    breaker_env.configure(open_seconds=60)
    provider.answer(Answer(500))
    lines = run_batch(breaker_env, provider)
    assert [status for _, status in lines] == ["500"] * 5 + ["503"] * (len(COVERED) - 5) + ["500"]
    assert provider.count() == 6


def test_preload_alone_has_the_same_defaults(provider, breaker_env):
    """No ini, no variables: five failures, thirty seconds, the user's own default table."""
    environment = {**breaker_env.bare, "LD_PRELOAD": str(breaker_env.library), "BREAKER_TABLE": str(breaker_env.table)}
    command = ["curl", "-s", "-D", "-", "-d", chat("m"), provider.url()]
    provider.answer(Answer(500))
    got = [subprocess.run(command, env=environment, capture_output=True, timeout=30).stdout for _ in range(7)]
    assert provider.count() == 5
    assert [b"X-Breaker-State: open" in g for g in got] == [False] * 5 + [True] * 2
    found = breaker_env.breakers()[provider.key("m")]
    assert 25_000 < found["retry_in_ms"] <= 33_100 + 100  # 30 s and a tenth of jitter


def test_a_relative_program_and_another_directory(provider, breaker_env, tmp_path):
    """The library's path in LD_PRELOAD is absolute: a cd does not lose it."""
    breaker_env.configure(open_seconds=60)
    breaker_env.command("trip", "--create", provider.key("m"))
    program = os.path.relpath(breaker_env.program, tmp_path)
    done = subprocess.run([program, "run", "--", "sh", "-c", 'cd /; exec "$@"', "sh", "curl", "-s", "-d", chat("m"),
                           provider.url()], env=breaker_env.environment, cwd=tmp_path, capture_output=True, timeout=30)
    assert b"circuit_open" in done.stdout and done.stderr == b""
