"""Multis in a tangle (curl/tangle.c): what the application is told is what libcurl tells it without us."""

from pathlib import Path

import pytest

from provider import Answer
from slow_provider import NEVER

SOURCE = Path(__file__).with_name("curl") / "tangle.c"


@pytest.fixture
def tangle(compile_c):
    return compile_c(SOURCE, "-I", SOURCE.parent, "-lcurl", name="tangle")


def lines_of(done):
    assert (done.returncode, done.stderr) == (0, b""), done
    return done.stdout.decode().splitlines()


@pytest.mark.parametrize("how", ["0", "1"], ids=["removed", "cleaned up"])
@pytest.mark.parametrize("before", [(), ("valgrind", "-q", "--error-exitcode=9")], ids=["plain", "valgrind"])
def test_the_end_of_a_handle_that_we_do_not_know(how, before, tangle, breaker_env, provider):
    """A pushed one, or one for which there was no memory: its message goes with it."""
    assert lines_of(breaker_env.run(*before, tangle, "stranger", provider.url(), how)) == []


def test_a_timer_callback_that_says_no(tangle, breaker_env, provider):
    """At whichever call, that of our own re-adding included: the handle ends, and can be removed."""
    of_ours = 0
    for state in ("none", "open"):
        if state == "open":
            breaker_env.command("force", "--create", "open", provider.key("m"))
        for call in range(1, 10):
            told = lines_of(breaker_env.run(tangle, "timer", provider.url(), str(call)))
            assert told[-1] == "removed 0", (state, call, told)
            assert [line.split()[0] for line in told[:-1]] in (["done"], ["perform"], ["not"], ["perform", "done"]), \
                (state, call, told)
            of_ours += state == "open" and told[0] == "done pulled 42"
    assert of_ours, "no call was that of our own re-adding"


def test_a_cleanup_that_is_refused_changes_nothing(tangle, breaker_env, provider):
    told = [lines_of(run(tangle, "cleanup", provider.url())) for run in (breaker_env.run_bare, breaker_env.run)]
    assert told[0] == told[1] == ["cleanup 8", "done first 0", "done third 0"]
    assert breaker_env.calls(provider.key("m"))["success"] == 3


def test_a_body_is_refused_in_spite_of_a_cleanup_that_is(tangle, breaker_env, provider):
    assert lines_of(breaker_env.run(tangle, "cleanup-body", provider.url())) == ["cleanup 8", "done pulled 0", "status 200"]
    assert breaker_env.calls(provider.key("m"))["success"] == 1
    breaker_env.command("force", "open", provider.key("m"))
    assert lines_of(breaker_env.run(tangle, "cleanup-body", provider.url())) == ["cleanup 8", "done pulled 0", "status 503"]


def test_what_is_no_multi_costs_nothing(tangle, breaker_env, provider):
    assert lines_of(breaker_env.run(tangle, "no-multi", provider.url())) == []


@pytest.mark.parametrize("limits", [{"timeout_after": 1}, {"timeout_after": NEVER, "slow_first_byte": 1}], ids=["age", "first-byte"])
def test_waiting_in_the_queue_is_no_age(limits, tangle, breaker_env, provider):
    provider.answer(Answer(hang=True))
    breaker_env.configure(**limits)
    assert lines_of(breaker_env.run(tangle, "queue", provider.url())) == ["done first 28", "done second 28"]
    calls = breaker_env.calls(provider.key("m"))
    assert (calls["failure"], calls["neutral"]) == (1, 1)
