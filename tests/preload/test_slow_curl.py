"""Issue 5, slow calls of libcurl: a late first byte is a failure, however good the answer (slow_first_byte), and so is
a stream that was silent until its caller gave up (stall_after)."""

import pytest

from provider import Answer, chunk_of
from slow_provider import DELTA, DONE, EVENTS, HEAD, NEVER, cause
from sock_programs import CLIENTS
from support import PYTHON, chat
from test_stream_clients import program, told  # noqa: F401

PROGRAMS = ["curl", "pycurl", "pycurl-multi", "php-curl", "php-multi"]
BODIES = {"document": Answer(delay=0.5), "stream": Answer(200, EVENTS, DELTA + DONE, chunked=True, delay=0.5)}


@pytest.fixture
def slow(breaker_env, provider):
    """slow(HOW, SECONDS): slow_pycurl.py's word, `CODE STATUS`."""

    def run(how, seconds):
        done = breaker_env.run(PYTHON, CLIENTS / "slow_pycurl.py", how, provider.url(), "m", seconds)
        assert (done.returncode, done.stderr) == (0, b""), done
        return done.stdout.decode().strip()

    return run


# --- first bytes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_late_answers_open(name, body, program, provider, breaker_env):  # noqa: F811
    breaker_env.configure(slow_first_byte=0.2, failure_threshold=2, open_seconds=60)
    provider.answer(BODIES[body])
    client = program(name)
    for _ in range(2):
        assert client.ask(provider.url(), "m", "stream") == "status 200 -"
    assert client.ask(provider.url(), "m", "stream") == "status 503 circuit_open"
    assert told(breaker_env, provider.key("m")) == {"failure": 2}
    assert told(breaker_env, provider.key()) == {"success": 2}
    assert cause(breaker_env, provider.key("m")) == "slow_first_byte"


@pytest.mark.parametrize("limit", [0, NEVER])
@pytest.mark.parametrize("name", PROGRAMS)
def test_those_in_time_do_not(name, limit, program, provider, breaker_env):  # noqa: F811
    breaker_env.configure(slow_first_byte=limit)
    provider.answer(BODIES["stream"])
    assert program(name).ask(provider.url(), "m", "stream") == "status 200 -"
    assert told(breaker_env, provider.key("m")) == {"success": 1}


@pytest.mark.parametrize("status, result", [(404, {"neutral": 1}), (429, {"neutral": 1}), (500, {"failure": 1})])
def test_other_answers_say_what_they_say(status, result, curl, provider, breaker_env):
    breaker_env.configure(slow_first_byte=0.1)
    provider.answer(Answer(status, delay=0.3))
    assert curl(provider.url()).status == status
    assert told(breaker_env, provider.key("m")) == result
    if status == 500:
        assert cause(breaker_env, provider.key("m")) == "status"


def test_a_host_alone(curl, provider, breaker_env):
    breaker_env.configure(f"[target {provider.key()}]\nscope = host\n", slow_first_byte=0.1)
    provider.answer(Answer(delay=0.3))
    assert curl(provider.url()).status == 200
    assert told(breaker_env, provider.key()) == {"failure": 1}
    assert cause(breaker_env, provider.key()) == "slow_first_byte"


def test_what_is_no_llm_call(curl, provider, breaker_env):
    breaker_env.configure(f"[target {provider.key()}]\n", slow_first_byte=0.1)
    provider.answer(Answer(delay=0.3))
    assert curl(provider.url("/v1/files")).status == 200
    assert told(breaker_env, provider.key()) == {"success": 1}


@pytest.mark.parametrize("limit, result", [(0.2, {"failure": 1}), (NEVER, {"neutral": 1})])
@pytest.mark.parametrize("how", ["timeout", "multi-timeout", "remove"])
def test_no_first_byte_at_all(how, limit, result, slow, reply, provider, breaker_env):
    """Whatever timeout_after and hang_after say."""
    breaker_env.configure(slow_first_byte=limit, timeout_after=NEVER, hang_after=NEVER)
    reply()
    assert slow(how, 0.6) == ("-1 0" if how == "remove" else "28 0")
    assert told(breaker_env, provider.key("m")) == result
    if "failure" in result:
        assert cause(breaker_env, provider.key("m")) == "slow_first_byte"


@pytest.mark.parametrize("limit, result", [(0.2, {"failure": 1}), (0.7, {"neutral": 1})])
def test_a_first_byte_that_is_no_head(limit, result, slow, reply, provider, breaker_env):
    """It came, and waits of more than its own time are not for it."""
    breaker_env.configure(slow_first_byte=limit, timeout_after=NEVER, hang_after=NEVER)
    reply(0.4, b"HTTP")
    assert slow("timeout", 1) == "28 0"
    assert told(breaker_env, provider.key("m")) == result


def test_what_comes_of_a_redirect_is_not_told_apart(curl, reply, provider, breaker_env):
    """The one head that libcurl tells is not that of the answer that is waited for."""
    breaker_env.configure(slow_first_byte=0.2, timeout_after=NEVER, hang_after=NEVER)
    reply(b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /v2\r\nContent-Length: 0\r\n\r\n")
    got = curl(provider.url(), "m", "-L", "-m", "0.6")
    assert (got.code, got.status) == (28, 307)
    assert told(breaker_env, provider.key("m")) == {"neutral": 1}


def test_who_has_more_to_say_waits_for_nothing(slow, reply, provider, breaker_env):
    breaker_env.configure(slow_first_byte=0.2, timeout_after=NEVER)
    reply()
    assert slow("upload", 0.8) == "28 100"
    assert told(breaker_env, provider.key("m")) == {"neutral": 1}


def test_a_1xx_is_no_first_byte(slow, reply, provider, breaker_env):
    breaker_env.configure(slow_first_byte=0.2, timeout_after=NEVER)
    reply(b"HTTP/1.1 103 Early Hints\r\n\r\n")
    slow("timeout", 0.6)
    assert told(breaker_env, provider.key("m")) == {"failure": 1}
    assert cause(breaker_env, provider.key("m")) == "slow_first_byte"


@pytest.mark.parametrize("where, result", [("away", {"neutral": 1}), ("here", {"failure": 1})])
def test_a_redirect_to_a_slow_place(where, result, curl, provider, providers, breaker_env):
    breaker_env.configure(slow_first_byte=0.2)
    other = providers() if where == "away" else provider
    provider.then(Answer(307, {"Location": other.url()}))
    other.answer(Answer(delay=0.5))
    assert curl(provider.url(), "m", "-L").status == 200
    assert told(breaker_env, provider.key("m")) == result


def test_a_late_head_does_not_close(breaker_env, provider, reply):
    """A probe's good head closes the breaker while the stream goes on, but not one that came too late."""
    breaker_env.configure(slow_first_byte=0.2, open_seconds=60, probe_lease=60)
    key = provider.key("m")
    breaker_env.make_due(key)
    reply(0.5, HEAD + chunk_of(DELTA))
    process = breaker_env.start("curl", "-sN", "-d", chat("m"), provider.url())
    assert process.stdout.read(len(DELTA)) == DELTA
    assert breaker_env.state(key) == "half_open"
    provider.hang_up()
    process.communicate(timeout=20)
    assert breaker_env.state(key) == "open"


# --- stalls ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit, result", [(0.2, {"failure": 1}), (NEVER, {"neutral": 1}), (0, {"neutral": 1})])
@pytest.mark.parametrize("sent", [HEAD, HEAD + chunk_of(DELTA)], ids=["after the head", "in the body"])
@pytest.mark.parametrize("how", ["timeout", "multi-timeout", "remove"])
def test_a_stall(how, sent, limit, result, slow, reply, provider, breaker_env):
    breaker_env.configure(stall_after=limit, timeout_after=NEVER)
    reply(sent)
    assert slow(how, 0.6) == ("-1 200" if how == "remove" else "28 200")
    assert told(breaker_env, provider.key("m")) == result
    if "failure" in result:
        assert cause(breaker_env, provider.key("m")) == "stall"


def test_what_is_too_slow_for_libcurl(slow, reply, provider, breaker_env):
    breaker_env.configure(stall_after=0.2, timeout_after=NEVER)
    reply(HEAD + chunk_of(DELTA))
    assert slow("low-speed", 1) == "28 200"
    assert cause(breaker_env, provider.key("m")) == "stall"


def test_a_stream_that_goes_on_is_no_stall(slow, reply, provider, breaker_env):
    breaker_env.configure(stall_after=1, timeout_after=NEVER)
    reply(HEAD, *[part for _ in range(400) for part in (chunk_of(DELTA), 0.05)])
    assert slow("timeout", 2) == "28 200"
    assert told(breaker_env, provider.key("m")) == {"neutral": 1}


def test_a_stream_that_said_its_end(slow, reply, provider, breaker_env):
    breaker_env.configure(stall_after=0.2)
    reply(HEAD + chunk_of(DELTA + DONE))
    assert slow("timeout", 0.6) == "28 200"
    assert told(breaker_env, provider.key("m")) == {"success": 1}


@pytest.mark.parametrize("how", ["paused", "resumed", "slow"])
def test_the_applications_own_silence(how, slow, reply, provider, breaker_env):
    """Paused; paused, and no longer for so long; its callback took long."""
    breaker_env.configure(stall_after=0.6, slow_first_byte=NEVER, timeout_after=NEVER)
    reply(HEAD + chunk_of(DELTA))
    assert slow(how, 0.9) == "28 200"
    assert told(breaker_env, provider.key("m")) == {"neutral": 1}


def test_what_cannot_be_seen_is_no_stall(slow, reply, provider, breaker_env):
    """Where head lines come by the same callback."""
    breaker_env.configure(stall_after=0.1, timeout_after=NEVER)
    reply(HEAD + chunk_of(DELTA))
    assert slow("heads", 0.4) == "28 200"
    assert told(breaker_env, provider.key("m")) == {"neutral": 1}
