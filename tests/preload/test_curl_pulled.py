"""Bodies from callbacks that do not just give them (curl/client_pulled.c), forms and requests that are not what they
seem: the model is that of what is sent, or there is none."""

import pytest

from curl_lines import FINE_SHUT_FINE, ends_of

THREE = [("fine", 0, 200), ("shut", 0, 200), ("fine", 0, 200)]


def success(breaker_env, provider, model):
    calls = breaker_env.calls(provider.key(model))
    assert (calls["failure"], calls["neutral"]) == (0, 0)
    return calls["success"]


@pytest.mark.parametrize("mode", ["resumed-seek", "resumed-ioctl"])
def test_a_body_that_begins_in_its_middle(mode, client, breaker_env, provider, shut):
    """By a seek, or by reading what stands before it; the range is the application's again behind a refusal."""
    assert ends_of(breaker_env.run_bare(client, mode, provider.url())) == THREE
    bare = [(r.headers["content-range"], r.body) for r in provider.seen(model="fine")]
    provider.clear()
    assert ends_of(breaker_env.run(client, mode, provider.url())) == FINE_SHUT_FINE
    assert [(r.headers["content-range"], r.body) for r in provider.seen()] == bare
    assert success(breaker_env, provider, "fine") == 2 and provider.key("-") not in breaker_env.breakers()


@pytest.mark.parametrize("key", ["shut", None], ids=["model", "host"])
@pytest.mark.parametrize("mode", ["kept-up", "pauses"])
def test_a_body_that_goes_on_or_waits(mode, key, client, breaker_env, provider):
    breaker_env.configure(open_seconds=60)
    breaker_env.command("trip", "--create", provider.key(key))
    assert ends_of(breaker_env.run(client, mode, provider.url())) == \
        (FINE_SHUT_FINE if key else [(model, 0, 503) for model in ("fine", "shut", "fine")])
    assert provider.count() == (2 if key else 0)
    assert breaker_env.calls(provider.key(key))["refused"] == (1 if key else 3)


@pytest.mark.parametrize("mode", ["multi-kept-up", "multi-pauses"])
def test_such_bodies_side_by_side_that_nobody_asks_for(mode, client, breaker_env, provider):
    breaker_env.command("force", "--create", "open", provider.key())
    lines = ends_of(breaker_env.run(client, mode, provider.url()))
    assert sorted(lines) == [("fine", 0, 503)] * 3 + [("shut", 0, 503)] * 3 and provider.accepted == 0


def test_a_body_that_its_callback_breaks_off(client, breaker_env, provider):
    assert [line[1:] for line in ends_of(breaker_env.run(client, "aborted", provider.url()))] == [(42, 0)] * 3
    assert {key: breaker_env.calls(key)["neutral"] for key in breaker_env.breakers()} == {provider.key(): 3}
    assert provider.count() == 0


@pytest.mark.parametrize("mode", ["form-buffer", "form-without", "mime-nested"])
def test_a_form_that_names_no_model(mode, client, breaker_env, provider, shut):
    assert ends_of(breaker_env.run(client, mode, provider.url("/v1/audio/transcriptions"))) == THREE
    assert success(breaker_env, provider, "-") == 3


def test_a_get_that_is_unset_is_none(client, breaker_env, provider, shut):
    assert ends_of(breaker_env.run(client, "get-off", provider.url())) == FINE_SHUT_FINE
    assert [r.method for r in provider.seen()] == ["POST"] * 2


def test_a_head_that_is_unset_is_a_get(client, breaker_env, provider, shut):
    """What POSTFIELDS holds is not sent: no model of it is asked for."""
    assert ends_of(breaker_env.run(client, "nobody-off", provider.url())) == THREE
    assert [r.method for r in provider.seen()] == ["GET"] * 3


def test_an_answer_that_is_paused_and_cleaned_up(client, breaker_env, provider, shut):
    """Without being removed from its multi: nothing is left of it, and nothing of ours is used after it. (libcurl loses
    the bytes that were held back.)"""
    done = breaker_env.run("valgrind", "-q", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=none",
                           client, "paused-away", provider.url())
    assert done.returncode == 0 and b"curl_synth" not in done.stderr, done.stderr.decode()
    assert breaker_env.calls(provider.key("shut"))["refused"] == 3 and provider.count() == 0
