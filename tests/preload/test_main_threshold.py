"""Issue 2, items 1, 2 and 3: one breaker for all processes, one probe for all, models apart, the host for all."""

import concurrent.futures
import os
import signal
import subprocess
import threading

import pytest

from support import chat
from provider import Answer, wait_until

CURL_REFUSED = 7


def many(curl, breaker_env, url, number, at_once, model="m"):
    """So many `breaker run -- curl` processes, some at a time; their answers."""
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(lambda _: curl(url, model), range(number)))


def crowd(breaker_env, curl, url, number, model="m"):
    """So many processes, each ready to start curl; they all start at the same moment."""
    waiting, go = os.pipe()
    command = ["sh", "-c", 'read _; exec "$@"', "sh", *curl.command(url, model)]
    processes = [breaker_env.start(*command, stdin=waiting) for _ in range(number)]
    os.close(waiting)
    os.close(go)
    return processes


def answers(curl, processes):
    return [curl.parse(p.communicate(timeout=40)[0]) for p in processes]


# --- 1. the threshold ----------------------------------------------------------------------------


def test_serial_processes_share_five_failures(provider, curl, breaker_env):
    breaker_env.configure(open_seconds=60)
    provider.answer(Answer(500))
    got = [curl(provider.url()) for _ in range(40)]
    assert [a.status for a in got] == [500] * 5 + [503] * 35
    assert all(a.refused for a in got[5:])
    assert provider.count() == 5
    assert provider.accepted == 5, "a refused call opened a connection"
    found = breaker_env.breakers()[provider.key("m")]
    assert found["state"] == "open" and found["opened"] == 1
    assert (found["calls"]["failure"], found["calls"]["refused"]) == (5, 35)
    assert found["last_failure"]["class"] == "status" and found["last_failure"]["status"] == 500


def test_parallel_processes_share_five_failures(provider, curl, breaker_env):
    breaker_env.configure(open_seconds=60)
    provider.answer(Answer(500))
    got = many(curl, breaker_env, provider.url(), 40, 8)
    arrived = provider.count()
    assert 5 <= arrived <= 5 + 7, "more than those that were in flight"
    assert [a.status for a in got].count(500) == arrived
    assert sum(a.refused for a in got) == 40 - arrived
    assert breaker_env.calls(provider.key("m"))["failure"] == arrived


def test_serial_processes_share_five_refused_connects(provider, curl, breaker_env):
    breaker_env.configure(open_seconds=60)
    provider.refuse()
    got = [curl(provider.url()) for _ in range(40)]
    assert [a.code for a in got] == [CURL_REFUSED] * 5 + [0] * 35
    assert all(a.refused for a in got[5:])
    breakers = breaker_env.breakers()
    assert breakers[provider.key()]["state"] == "open"
    assert breakers[provider.key()]["last_failure"]["class"] == "connect"
    assert breakers[provider.key()]["calls"]["failure"] == 5
    assert breaker_env.state(provider.key("m")) == "closed"


def test_parallel_processes_share_five_refused_connects(provider, curl, breaker_env):
    breaker_env.configure(open_seconds=60)
    provider.refuse()
    got = many(curl, breaker_env, provider.url(), 40, 8)
    reached = [a.code for a in got].count(CURL_REFUSED)
    assert 5 <= reached <= 5 + 7
    assert sum(a.refused for a in got) == 40 - reached


def test_threshold_of_the_ini_and_a_success_in_between(provider, curl, breaker_env):
    breaker_env.configure(failure_threshold=3, open_seconds=60)
    provider.then(Answer(500), Answer(500), Answer(200))
    provider.answer(Answer(500))
    got = [curl(provider.url()).status for _ in range(8)]
    assert got == [500, 500, 200, 500, 500, 500, 503, 503]
    assert provider.count() == 6


def test_degraded_is_shown_and_flows(provider, curl, breaker_env):
    provider.answer(Answer(500))
    assert [curl(provider.url()).status for _ in range(3)] == [500] * 3
    assert breaker_env.state(provider.key("m")) == "degraded"
    provider.answer(Answer(200))
    assert curl(provider.url()).status == 200
    assert breaker_env.state(provider.key("m")) == "closed"


# --- 2. the probe --------------------------------------------------------------------------------


def test_one_of_64_probes_and_its_success_closes(provider, curl, breaker_env, open_breaker):
    open_breaker(provider)
    breaker_env.configure(probe_lease=60)
    gate = threading.Event()
    provider.answer(Answer(200, gate=gate), model="m")
    breaker_env.wait_due(provider.key("m"))
    processes = crowd(breaker_env, curl, provider.url(), 64)
    provider.wait_for(1)
    wait_until(lambda: sum(p.poll() is not None for p in processes) == 63, 40, "63 refused")
    assert provider.count() == 1 and provider.accepted == 5 + 1
    assert breaker_env.state(provider.key("m")) == "half_open"
    gate.set()
    got = answers(curl, processes)
    assert [a.status for a in got].count(200) == 1 and sum(a.refused for a in got) == 63
    assert breaker_env.state(provider.key("m")) == "closed"
    assert [curl(provider.url()).status for _ in range(3)] == [200] * 3


def test_one_of_64_probes_and_its_failure_opens_again(provider, curl, breaker_env, open_breaker):
    open_breaker(provider)
    breaker_env.configure(probe_lease=60, open_seconds=60)
    gate = threading.Event()
    provider.answer(Answer(500, gate=gate), model="m")
    breaker_env.wait_due(provider.key("m"))
    processes = crowd(breaker_env, curl, provider.url(), 64)
    provider.wait_for(1)
    wait_until(lambda: sum(p.poll() is not None for p in processes) == 63, 40, "63 refused")
    gate.set()
    got = answers(curl, processes)
    assert [a.status for a in got].count(500) == 1 and sum(a.refused for a in got) == 63
    found = breaker_env.breakers()[provider.key("m")]
    assert found["state"] == "open" and found["opened"] == 2 and found["retry_in_ms"] > 50_000
    assert curl(provider.url()).refused
    assert provider.count() == 1


@pytest.mark.parametrize("loss", [signal.SIGKILL, signal.SIGSTOP], ids=["kill", "stop"])
def test_a_lost_probe_frees_its_place_after_the_lease(loss, provider, curl, breaker_env, open_breaker):
    open_breaker(provider)
    gate = threading.Event()
    provider.answer(Answer(200, gate=gate), model="m")
    breaker_env.wait_due(provider.key("m"))
    breaker_env.configure(probe_lease=2, open_seconds=1)
    probe = breaker_env.start(*curl.command(provider.url()))
    provider.wait_for(1)
    probe.send_signal(loss)
    if loss == signal.SIGKILL:
        probe.wait()
    assert curl(provider.url()).refused, "within the lease"
    breaker_env.wait_due(provider.key("m"))
    second = breaker_env.start(*curl.command(provider.url()))
    provider.wait_for(2)
    assert curl(provider.url()).refused, "a second lease, a second probe, no third"
    assert provider.count() == 2
    gate.set()
    assert answers(curl, [second])[0].status == 200
    assert breaker_env.state(provider.key("m")) == "closed"
    if loss == signal.SIGSTOP:
        probe.send_signal(signal.SIGCONT)
        assert answers(curl, [probe])[0].status == 200
        assert breaker_env.state(provider.key("m")) == "closed"


def test_a_probe_of_the_host_after_refused_connects(provider, curl, breaker_env):
    provider.refuse()
    for _ in range(5):
        assert curl(provider.url()).code == CURL_REFUSED
    assert curl(provider.url()).refused
    breaker_env.wait_due(provider.key())
    assert curl(provider.url()).code == CURL_REFUSED
    assert curl(provider.url()).refused
    breaker_env.wait_due(provider.key())
    provider.listen()
    assert [curl(provider.url()).status for _ in range(3)] == [200] * 3
    assert breaker_env.state(provider.key()) == "closed"


# --- 3. models and the host ----------------------------------------------------------------------


def test_another_model_flows_while_one_is_open(provider, curl, breaker_env, open_breaker):
    breaker_env.configure(open_seconds=60)
    open_breaker(provider, "broken")
    for _ in range(6):
        assert curl(provider.url(), "fine").status == 200
        assert curl(provider.url(), "broken").refused
    assert provider.count(model="fine") == 6 and provider.count(model="broken") == 0
    breakers = breaker_env.breakers()
    assert breakers[provider.key("broken")]["state"] == "open"
    assert breakers[provider.key("broken")]["level"] == "model"
    assert breakers[provider.key("broken")]["model"] == "broken"
    assert breaker_env.state(provider.key("fine")) == "closed"
    assert breaker_env.state(provider.key()) == "closed"


def test_a_refused_port_stops_all_models_of_the_host(provider, providers, curl, breaker_env):
    breaker_env.configure(open_seconds=60)
    other = providers()
    provider.refuse()
    for number in range(5):
        assert curl(provider.url(), f"m{number}").code == CURL_REFUSED
    provider.listen()
    for number in range(8):
        assert curl(provider.url(), f"m{number}").refused
    assert curl(provider.url("/v1/embeddings"), "never-seen").refused
    assert provider.count() == 0
    assert curl(other.url()).status == 200, "another port is another host"


def test_the_two_breakers_of_a_call_are_both_asked(provider, curl, breaker_env):
    """A grant of the host's that the model's breaker refuses goes back: the host is not wedged."""
    breaker_env.configure(open_seconds=60)
    assert curl(provider.url(), "fine").status == 200
    breaker_env.command("force", "--create", "open", provider.key("shut"))
    for _ in range(3):
        assert curl(provider.url(), "shut").refused
    assert curl(provider.url(), "fine").status == 200
    breaker_env.command("force", "none", provider.key("shut"))
    assert curl(provider.url(), "shut").status == 200


def test_a_shell_of_workers_learns_from_the_first_five(provider, breaker_env):
    """One launcher, many children: `xargs -P` of the issue's main job."""
    breaker_env.configure(open_seconds=60)
    provider.answer(Answer(500))
    done = breaker_env.run("sh", "-c", 'seq 40 | xargs -P8 -I{} curl -s -o /dev/null -w "%{http_code}\\n" -d "$1" "$2"',
                           "sh", chat("m"), provider.url())
    assert done.returncode == 0, done.stderr
    codes = done.stdout.decode().split()
    assert 5 <= provider.count() <= 12 and codes.count("500") == provider.count() and len(codes) == 40


def test_events_are_logged_once_each(provider, curl, breaker_env, open_breaker):
    open_breaker(provider)
    provider.answer(Answer(200), model="m")
    breaker_env.wait_due(provider.key("m"))
    assert curl(provider.url()).status == 200
    steps = [(e["from"], e["to"]) for e in breaker_env.events(event="transition", key=provider.key("m"))]
    assert steps == [("closed", "degraded"), ("degraded", "open"), ("open", "half_open"), ("half_open", "closed")]
    for event in breaker_env.events():
        assert event["program"] == "curl" and event["pid"] > 0 and event["time"]


def test_a_secret_is_in_no_table_and_no_log(provider, curl, breaker_env):
    provider.answer(Answer(500))
    for _ in range(7):
        curl(provider.url(), "m", "-H", "Authorization: Bearer sk-very-secret-0123456789")
    assert provider.requests[0].headers["authorization"] == "Bearer sk-very-secret-0123456789"
    assert b"very-secret" not in breaker_env.table.read_bytes()
    assert b"very-secret" not in breaker_env.log.read_bytes()
    shown = subprocess.run([breaker_env.program, "status"], env=breaker_env.environment, capture_output=True)
    assert provider.key("m").encode() in shown.stdout and b"very-secret" not in shown.stdout
