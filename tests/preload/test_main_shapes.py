"""Issue 2, item 4: threads, fork, nested performs, moved handles, through pycurl (GnuTLS flavour, RTLD_LOCAL)."""

import json
import subprocess
import threading
from pathlib import Path

import pytest

from provider import Answer
from support import PYTHON

SHAPES = Path(__file__).parent / "clients" / "client_shapes.py"


def run_shape(breaker_env, *arguments):
    done = breaker_env.run(PYTHON, SHAPES, *arguments)
    assert (done.returncode, done.stderr) == (0, b""), done
    return [json.loads(line) for line in done.stdout.splitlines()]


def refused(answer):
    return answer["status"] == 503 and "circuit_open" in answer["body"]


def test_threads_with_their_own_handles(provider, breaker_env):
    breaker_env.configure(open_seconds=60)
    got = run_shape(breaker_env, "threads", provider.url(), "m")
    assert [a["status"] for a in got] == [200] * 32 and provider.count() == 32
    assert breaker_env.calls(provider.key("m"))["success"] == 32
    breaker_env.command("trip", provider.key("m"))
    got = run_shape(breaker_env, "threads", provider.url(), "m")
    assert len(got) == 32 and all(map(refused, got)) and provider.count() == 32


def test_threads_share_one_probe(provider, breaker_env, open_breaker):
    open_breaker(provider)
    breaker_env.configure(probe_lease=60)
    provider.answer(Answer(200, delay=1), model="m")
    breaker_env.wait_due(provider.key("m"))
    got = run_shape(breaker_env, "threads", provider.url(), "m")
    assert sum(a["status"] == 200 for a in got) == 1 and sum(map(refused, got)) == 31
    assert provider.count() == 1 and breaker_env.state(provider.key("m")) == "closed"


def test_a_ticket_settles_in_the_parent_only(provider, breaker_env):
    gate = threading.Event()
    provider.answer(Answer(500, gate=gate), model="m")
    process = breaker_env.start(PYTHON, SHAPES, "fork", provider.url(), "m", "fine", text=True)
    assert json.loads(process.stdout.readline())["status"] == 200  # the child's own call
    assert json.loads(process.stdout.readline())["body"] == "forked"
    calls = breaker_env.calls(provider.key("m"))
    assert calls["failure"] + calls["neutral"] + calls["success"] == 0, "the child settled its parent's call"
    gate.set()
    assert json.loads(process.stdout.readline())["status"] == 500
    assert process.wait() == 0
    calls = breaker_env.calls(provider.key("m"))
    assert (calls["failure"], calls["neutral"], calls["success"]) == (1, 0, 0)
    assert breaker_env.calls(provider.key("fine"))["success"] == 1


def test_a_probe_that_forks_keeps_its_grant(provider, breaker_env, open_breaker, curl):
    open_breaker(provider)
    breaker_env.configure(probe_lease=60)
    gate = threading.Event()
    provider.answer(Answer(200, gate=gate), model="m")
    breaker_env.wait_due(provider.key("m"))
    process = breaker_env.start(PYTHON, SHAPES, "fork", provider.url(), "m", "fine", text=True)
    assert json.loads(process.stdout.readline())["status"] == 200
    assert json.loads(process.stdout.readline())["body"] == "forked"
    assert curl(provider.url()).refused, "the child handed the probe back"
    gate.set()
    assert json.loads(process.stdout.readline())["status"] == 200
    assert process.wait() == 0 and breaker_env.state(provider.key("m")) == "closed"


@pytest.mark.parametrize("outer,inner", [("fine", "shut"), ("fine", "good"), ("shut", "fine"), ("shut", "shut2")])
def test_a_nested_perform_is_the_applications_own_call(outer, inner, provider, breaker_env):
    breaker_env.configure(open_seconds=60)
    for model in ("shut", "shut2"):
        breaker_env.command("trip", "--create", provider.key(model))
    got = run_shape(breaker_env, "nested", provider.url(), outer, inner)
    assert [(a["model"], refused(a)) for a in got] == [(inner, "shut" in inner), (outer, "shut" in outer)]
    assert provider.count() == sum("shut" not in m for m in (outer, inner))
    for model in (outer, inner):
        calls = breaker_env.calls(provider.key(model))
        assert (calls["refused"], calls["success"]) == ((1, 0) if "shut" in model else (0, 1))


def test_a_handle_moved_between_multis(provider, breaker_env):
    provider.then(Answer(hang=True))
    process = breaker_env.start(PYTHON, SHAPES, "moved", provider.url(), "m", stdin=subprocess.PIPE, text=True)
    assert json.loads(process.stdout.readline()) == "asked"
    provider.wait_for(1)  # or the answer that hangs is the second request's
    output, error = process.communicate("move\n", timeout=20)
    assert (process.returncode, error, json.loads(output)["status"]) == (0, "", 200) and provider.count() == 2
    calls = breaker_env.calls(provider.key("m"))
    assert (calls["neutral"], calls["success"], calls["failure"]) == (1, 1, 0)


def test_subprocesses_beside_running_calls(provider, breaker_env):
    """Python starts them by vfork: what runs there must not write into the parent."""
    provider.answer(Answer(200, delay=0.3))
    got = run_shape(breaker_env, "spawn", provider.url(), "m")
    assert [a["status"] for a in got] == [200] * 8
    assert breaker_env.calls(provider.key("m"))["success"] == 8


def test_php_children_by_proc_open(provider, breaker_env):
    script = 'for ($i = 0; $i < 5; $i++) { $p = proc_open(["true"], [], $pipes); echo proc_close($p); }'
    done = breaker_env.run("php", "-r", script)
    assert (done.stdout, done.stderr, done.returncode) == (b"00000", b"", 0)
