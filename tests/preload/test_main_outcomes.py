"""Issue 2, item 6: each rule of DESIGN "Outcomes" that libcurl can show."""

import socket
import threading
import time
from pathlib import Path

import pytest

from listeners import accepting
from provider import Answer, wait_until
from sock_programs import black_hole
from support import PYTHON, chat

CALLBACKS = Path(__file__).parent / "clients" / "client_callbacks.py"
# Starts of a row of calls: two failures, so that a success, a failure and a neutral end all show.
STREAK = 2


@pytest.fixture
def streak_of_two(provider, curl, breaker_env):
    def begin(model="m"):
        provider.then(*[Answer(500)] * STREAK)
        for _ in range(STREAK):
            assert curl(provider.url(), model).status == 500
        assert streak(breaker_env, provider.key(model)) == STREAK

    return begin


def assert_all_neutral(breaker_env, provider, number, model="m"):
    """The calls were seen, and spoke neither of the host nor of the model."""
    for key in (provider.key(), provider.key(model)):
        calls = breaker_env.calls(key)
        assert (calls["failure"], calls["neutral"], calls["success"]) == (0, number, 0), (key, calls)


def streak(breaker_env, key):
    found = breaker_env.breakers().get(key)
    return found["streak"] if found else 0


def assert_neutral(breaker_env, provider, model="m"):
    assert streak(breaker_env, provider.key(model)) == STREAK, "it counted or reset"
    assert breaker_env.calls(provider.key(model))["failure"] == STREAK


# --- statuses ------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 409, 413, 422, 429, 451, 501, 505])
def test_neutral_status(status, provider, curl, breaker_env, streak_of_two):
    streak_of_two()
    provider.answer(Answer(status))
    for _ in range(4):
        assert curl(provider.url()).status == status
    assert_neutral(breaker_env, provider)
    assert breaker_env.calls(provider.key("m"))["neutral"] == 4


@pytest.mark.parametrize("status", [408, 424, 498, 500, 502, 503, 504, 520, 524, 529, 530])
def test_failing_status(status, provider, curl, breaker_env):
    provider.answer(Answer(status))
    assert curl(provider.url()).status == status
    assert streak(breaker_env, provider.key("m")) == 1
    last = breaker_env.breakers()[provider.key("m")]["last_failure"]
    assert (last["class"], last["status"]) == ("status", status)
    assert streak(breaker_env, provider.key()) == 0


@pytest.mark.parametrize("answer", [Answer(200), Answer(201), Answer(204, body=b""), Answer(302, {"Location": "/x"}),
                                    Answer(304, body=b""), Answer(200, chunked=True), Answer(200, close="after")],
                         ids=["200", "201", "204", "302 not followed", "304", "chunked", "closed after"])
def test_success_ends_a_streak(answer, provider, curl, breaker_env, streak_of_two):
    streak_of_two()
    provider.answer(answer)
    assert curl(provider.url()).status == answer.status
    assert streak(breaker_env, provider.key("m")) == 0
    assert breaker_env.calls(provider.key("m"))["success"] == 1


def test_a_status_of_ones_own_choice(provider, curl, breaker_env):
    breaker_env.configure(failure_status="418, 500", open_seconds=60)
    provider.answer(Answer(418))
    got = [curl(provider.url()).status for _ in range(6)]
    assert got == [418] * 5 + [503]
    provider.answer(Answer(502))
    assert [curl(provider.url(), "other").status for _ in range(6)] == [502] * 6


def test_a_1xx_is_no_outcome(provider, breaker_env):
    provider.answer(Answer(500))
    breaker_env.run("curl", "-s", "-H", "Expect: 100-continue", "-d", chat("m"), provider.url())
    calls = breaker_env.calls(provider.key("m"))
    assert (calls["failure"], calls["success"]) == (1, 0)


def test_a_redirect_to_another_host_is_neutral(provider, providers, curl, breaker_env, streak_of_two):
    elsewhere = providers()
    elsewhere.answer(Answer(500))
    streak_of_two()
    provider.answer(Answer(307, {"Location": elsewhere.url("/elsewhere")}))
    assert curl(provider.url(), "m", "-L").status == 500
    assert_neutral(breaker_env, provider)


# --- broken exchanges ----------------------------------------------------------------------------


@pytest.mark.parametrize("answer,code", [
    (Answer(200, close="mid-body"), 18), (Answer(200, chunked=True, close="mid-body"), 18),
    (Answer(200, close="before-head"), 52), (Answer(200, close="before-head", reset=True), 56),
    (Answer(200, close="mid-head", reset=True), 56),
], ids=["mid body", "mid chunk", "before head", "reset", "mid head"])
def test_broken_exchange_is_the_models_failure(answer, code, provider, curl, breaker_env):
    breaker_env.configure(open_seconds=60)
    provider.answer(answer)
    got = [curl(provider.url()) for _ in range(7)]
    assert [a.code for a in got] == [code] * 5 + [0, 0] and all(a.refused for a in got[5:])
    found = breaker_env.breakers()[provider.key("m")]
    assert found["state"] == "open" and found["last_failure"]["class"] == "broken"
    assert breaker_env.state(provider.key()) == "closed"


def test_broken_body_of_a_neutral_head_is_neutral(provider, curl, breaker_env, streak_of_two):
    streak_of_two()
    provider.answer(Answer(404, close="mid-body"))
    curl(provider.url())
    assert_neutral(breaker_env, provider)


# --- the caller ends it --------------------------------------------------------------------------


@pytest.mark.parametrize("how,answer,code", [
    ("write-abort", Answer(200), 23),
    ("progress-abort", Answer(hang=True), 42),
    ("remove", Answer(hang=True), 0),
], ids=["write callback", "progress callback", "removed from its multi"])
def test_the_callers_own_end_is_neutral(how, answer, code, provider, breaker_env, streak_of_two):
    streak_of_two()
    provider.answer(answer)
    done = breaker_env.run(PYTHON, CALLBACKS, how, provider.url(), "m")
    assert done.stdout.split() == [str(code).encode()], done
    assert_neutral(breaker_env, provider)


@pytest.mark.parametrize("how,code", [("late-abort", 42), ("remove", 0)], ids=["progress callback", "removed"])
def test_the_callers_late_end_is_a_failure(how, code, provider, breaker_env):
    breaker_env.configure(hang_after=0.2 if how == "late-abort" else 0)
    provider.answer(Answer(hang=True))
    done = breaker_env.run(PYTHON, CALLBACKS, how, provider.url(), "m")
    assert done.stdout.split() == [str(code).encode()], done
    assert streak(breaker_env, provider.key("m")) == 1
    assert breaker_env.breakers()[provider.key("m")]["last_failure"]["class"] == "hang"


def test_a_young_timeout_is_neutral(provider, curl, breaker_env, streak_of_two):
    breaker_env.configure(timeout_after=5)
    streak_of_two()
    provider.answer(Answer(hang=True))
    assert curl(provider.url(), "m", "--max-time", "0.3").code == 28
    assert_neutral(breaker_env, provider)


def test_an_old_timeout_is_a_failure(provider, curl, breaker_env):
    breaker_env.configure(timeout_after=0.2, open_seconds=60)
    provider.answer(Answer(hang=True))
    got = [curl(provider.url(), "m", "--max-time", "0.4") for _ in range(6)]
    assert [a.code for a in got] == [28] * 5 + [0] and got[5].refused
    assert breaker_env.breakers()[provider.key("m")]["last_failure"]["class"] == "timeout"
    assert provider.count() == 5


def test_an_old_timeout_in_the_body_is_a_failure(provider, curl, breaker_env):
    breaker_env.configure(timeout_after=0.2)
    provider.answer(Answer(200, body_gate=threading.Event()))
    assert curl(provider.url(), "m", "--max-time", "0.4").code == 28
    assert streak(breaker_env, provider.key("m")) == 1


def test_a_paused_transfer_is_no_hang(provider, breaker_env, streak_of_two):
    breaker_env.configure(timeout_after=0.2)
    streak_of_two()
    provider.answer(Answer(200))
    done = breaker_env.run(PYTHON, CALLBACKS, "paused", provider.url(), "m")
    assert done.stdout.split() == [b"28"], done
    assert_neutral(breaker_env, provider)


# --- local trouble -------------------------------------------------------------------------------


def test_certificate_trouble_is_neutral(tls_provider, authority, curl, breaker_env):
    url, key = tls_provider.url(name="localhost"), tls_provider.key("m", name="localhost")
    assert curl(url, "m", "--cacert", authority.ca).status == 200
    for _ in range(7):
        assert curl(url).code == 60
    assert curl(url, "m", "--cacert", "/nonexistent").code == 77
    for k in (key, tls_provider.key(name="localhost")):
        calls = breaker_env.calls(k)
        assert streak(breaker_env, k) == 0 and calls["failure"] == 0, k
        assert (calls["success"], calls["neutral"]) == (1, 8), (k, calls)
    assert curl(url, "m", "--cacert", authority.ca).status == 200


@pytest.mark.parametrize("flag", ["-x", "--socks5"])
def test_a_refusing_proxy_is_neutral(flag, provider, providers, curl, breaker_env):
    proxy = providers()
    proxy.refuse()
    where = proxy.url("") if flag == "-x" else f"127.0.0.1:{proxy.port}"
    for _ in range(7):
        assert curl(provider.url(), "m", flag, where).code in (5, 7, 97)
    assert_all_neutral(breaker_env, provider, 7)
    assert curl(provider.url()).status == 200


def test_a_proxy_of_the_environment_that_refuses_is_neutral(provider, providers, curl, breaker_env):
    proxy = providers()
    proxy.refuse()
    for _ in range(7):
        assert curl(provider.url(), env={"http_proxy": proxy.url("")}).code in (5, 7)
    assert_all_neutral(breaker_env, provider, 7)


def test_a_proxy_that_denies_connect_is_neutral(provider, providers, curl, breaker_env):
    proxy = providers()
    proxy.answer(Answer(503, body=b""))
    for _ in range(7):
        assert curl(provider.url(), "m", "-p", "-x", proxy.url("")).code in (7, 56)  # 7 since 8.21
    assert proxy.count() == 7
    assert_all_neutral(breaker_env, provider, 7)


def test_dns_failure_is_neutral(curl, breaker_env):
    """A label too long for any resolver: fails without a packet."""
    host = "a" * 64 + ".test"
    for _ in range(7):
        assert curl(f"http://{host}/v1/chat/completions").code in (3, 6)
    for key in (f"{host}:80", f"{host}:80/m"):
        calls = breaker_env.calls(key)
        assert (calls["failure"], calls["neutral"], calls["success"]) == (0, 7, 0), (key, breaker_env.breakers())


def test_no_descriptors_is_neutral(provider, breaker_env):
    done = breaker_env.run(PYTHON, CALLBACKS, "no-descriptors", provider.url(), "m")
    assert done.stdout.split() == [b"7"], done
    assert provider.count(model="m") == 0
    calls = breaker_env.calls(provider.key())
    assert (calls["failure"], calls["neutral"]) == (0, 1), "our own trouble, not the provider's"


def test_never_left_the_queue_is_neutral(provider, breaker_env):
    breaker_env.configure(timeout_after=0, connect_hang_after=0)
    provider.answer(Answer(hang=True))
    done = breaker_env.run(PYTHON, CALLBACKS, "queued", provider.url(), "m")
    assert done.stdout.split() == [b"28"], done
    assert provider.count(model="m") == 0
    calls = breaker_env.calls(provider.key("m"))
    assert (calls["failure"], calls["neutral"], calls["success"]) == (0, 1, 0)


# --- the host ------------------------------------------------------------------------------------


def reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    connection.close()


def read_then_reset(connection):
    connection.recv(65536)
    reset(connection)


@pytest.mark.parametrize("act", [read_then_reset, lambda c: (c.recv(65536), c.close())], ids=["reset", "closed"])
def test_a_handshake_cut_off_is_the_hosts_failure(act, curl, breaker_env):
    breaker_env.configure(open_seconds=60)
    with accepting(act) as server:
        port = server.port
        url = f"https://127.0.0.1:{port}/v1/chat/completions"
        got = [curl(url, f"m{n}") for n in range(7)]
    assert all(a.code == 35 for a in got[:5]) and all(a.refused for a in got[5:]), got
    found = breaker_env.breakers()[f"127.0.0.1:{port}"]
    assert found["state"] == "open" and found["last_failure"]["class"] == "handshake"


def test_a_connect_that_hangs(curl, breaker_env):
    """A full accept queue drops the SYN; the caller's time-out decides."""
    breaker_env.configure(connect_hang_after=0.2, open_seconds=60)
    with black_hole() as port:
        url = f"http://127.0.0.1:{port}/v1/chat/completions"
        got = [curl(url, "m", "--connect-timeout", "0.4") for _ in range(6)]
    assert [a.code for a in got] == [28] * 5 + [0] and got[5].refused
    assert breaker_env.breakers()[f"127.0.0.1:{port}"]["last_failure"]["class"] == "connect_hang"


def test_a_young_connect_timeout_is_neutral(curl, breaker_env):
    breaker_env.configure(connect_hang_after=5)
    with black_hole() as port:
        assert curl(f"http://127.0.0.1:{port}/v1/chat/completions", "m", "--connect-timeout", "0.2").code == 28
    calls = breaker_env.calls(f"127.0.0.1:{port}")
    assert (calls["failure"], calls["neutral"]) == (0, 1)


def test_any_head_is_a_success_of_the_host(provider, curl, breaker_env):
    provider.refuse()
    for _ in range(2):
        assert curl(provider.url()).code == 7
    assert streak(breaker_env, provider.key()) == 2
    provider.listen()
    provider.answer(Answer(500))
    assert curl(provider.url()).status == 500
    assert streak(breaker_env, provider.key()) == 0 and streak(breaker_env, provider.key("m")) == 1


# --- late ends -----------------------------------------------------------------------------------


def test_a_success_admitted_before_the_streak_does_not_reset_it(provider, curl, breaker_env):
    gate = threading.Event()
    provider.then(Answer(200, gate=gate))
    early = breaker_env.start(*curl.command(provider.url()))
    provider.wait_for(1)
    admitted = time.monotonic()
    wait_until(lambda: time.monotonic() > admitted + 0.1)  # times are kept in ticks of 34 ms
    provider.then(Answer(500), Answer(500))
    assert [curl(provider.url()).status for _ in range(2)] == [500, 500]
    gate.set()
    assert curl.parse(early.communicate()[0]).status == 200
    assert streak(breaker_env, provider.key("m")) == 2
    assert breaker_env.calls(provider.key("m"))["success"] == 1
    assert curl(provider.url()).status == 200
    assert streak(breaker_env, provider.key("m")) == 0


def test_a_failure_of_before_the_trip_moves_nothing(provider, curl, breaker_env):
    breaker_env.configure(open_seconds=1)
    gate = threading.Event()
    provider.then(Answer(500, gate=gate))
    early = breaker_env.start(*curl.command(provider.url()))
    provider.wait_for(1)
    provider.then(*[Answer(500)] * 5)
    for _ in range(5):
        assert curl(provider.url()).status == 500
    breaker_env.wait_due(provider.key("m"))
    assert curl(provider.url()).status == 200
    before = breaker_env.breakers()[provider.key("m")]
    gate.set()
    assert curl.parse(early.communicate()[0]).status == 500
    after = breaker_env.breakers()[provider.key("m")]
    assert (after["state"], after["streak"], after["generation"]) == ("closed", 0, before["generation"])


def test_a_slow_probe_that_succeeds_after_its_lease_closes(provider, curl, breaker_env, open_breaker):
    open_breaker(provider)
    gate = threading.Event()
    provider.answer(Answer(200, gate=gate), model="m")
    breaker_env.wait_due(provider.key("m"))
    probe = breaker_env.start(*curl.command(provider.url()))
    provider.wait_for(1)
    breaker_env.wait_due(provider.key("m"))  # the lease is over
    gate.set()
    assert curl.parse(probe.communicate()[0]).status == 200
    assert breaker_env.state(provider.key("m")) == "closed"


def test_a_neutral_probe_gives_its_place_back(provider, curl, breaker_env, open_breaker):
    open_breaker(provider)
    breaker_env.configure(probe_lease=60)
    provider.answer(Answer(404), model="m")
    breaker_env.wait_due(provider.key("m"))
    assert [curl(provider.url()).status for _ in range(3)] == [404] * 3
    provider.answer(Answer(200), model="m")
    assert curl(provider.url()).status == 200
    assert breaker_env.state(provider.key("m")) == "closed"


def test_a_probe_that_failed_locally_is_handed_back(provider, providers, curl, breaker_env, open_breaker):
    open_breaker(provider)
    breaker_env.configure(probe_lease=60)
    proxy = providers()
    proxy.refuse()
    provider.answer(Answer(200), model="m")
    breaker_env.wait_due(provider.key("m"))
    assert curl(provider.url(), "m", "-x", proxy.url("")).code in (5, 7)
    assert curl(provider.url()).status == 200
    assert breaker_env.state(provider.key("m")) == "closed"


@pytest.mark.parametrize("status, told, seconds", [(503, "120", 120), (503, "0", 20), (500, "Fri, 31 Dec 1999 23:59:59 GMT", 20)])
def test_a_retry_after_lengthens_the_trip_that_it_causes(status, told, seconds, provider, curl, breaker_env):
    breaker_env.configure(open_seconds=20)
    provider.answer(Answer(status, headers={"Retry-After": told}))
    for _ in range(5):
        curl(provider.url())
    left = breaker_env.breakers()[provider.key("m")]["retry_in_ms"]
    assert (seconds - 15) * 1000 < left <= (seconds + 1) * 1000
