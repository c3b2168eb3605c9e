"""Options that change hands at an odd time (curl/late.c): what the program and the provider see is what they see
without us."""

import re
from pathlib import Path

import pytest

from provider import Answer

SOURCE = Path(__file__).with_name("curl") / "late.c"


@pytest.fixture
def late(compile_c):
    return compile_c(SOURCE, "-I", SOURCE.parent, "-lcurl", name="late")


def same(breaker_env, provider, *command):
    """Runs it bare, then covered: the same words and the same bodies at the provider. Returns the words."""
    seen = []
    for run in (breaker_env.run_bare, breaker_env.run):
        done = run(*command)
        assert (done.returncode, done.stderr) == (0, b""), done
        bodies = [re.sub(rb"-{20,}[0-9a-zA-Z]+", b"boundary", request.body) for request in provider.requests]
        seen.append((done.stdout, bodies))
        provider.requests.clear()
    assert seen[0] == seen[1]
    return seen[1][0].decode()


def test_read_data_set_while_it_is_read(late, breaker_env, provider):
    same(breaker_env, provider, late, "read-data", provider.url())
    assert breaker_env.calls(provider.key("m"))["success"] == 2


def test_a_copy_made_while_the_body_is_read(late, breaker_env, provider):
    same(breaker_env, provider, late, "copied", provider.url())
    assert breaker_env.calls(provider.key("m"))["success"] == 2


def test_a_copy_for_which_we_have_no_memory(late, breaker_env, provider):
    """It runs uncovered, and is the application's all the same: nothing of ours is left in it."""
    same(breaker_env, provider, late, "copied-starved", provider.url())
    assert breaker_env.calls(provider.key("m"))["success"] == 1


def test_the_model_of_a_copied_mime(late, breaker_env, provider):
    breaker_env.command("force", "--create", "open", provider.key("shut"))
    assert same(breaker_env, provider, late, "mime-copy", provider.url("/v1/audio/transcriptions")) == "copy 0 200\n"
    assert breaker_env.calls(provider.key("fine"))["success"] == 1


def test_the_model_of_a_part_that_got_another_content(late, breaker_env, provider):
    """It is not what it was; and nothing is put in its place on the way to a fallback, since it could not be put back."""
    breaker_env.command("force", "--create", "open", provider.key("shut"))
    url = provider.url("/v1/audio/transcriptions")
    assert same(breaker_env, provider, late, "mime-replaced", url) == "replaced 0 200\n"
    breaker_env.configure(f"[target {provider.key()}]\nfallback = other\n[fallback other]\nbase = http://localhost:1/v1\n"
                          "model = *:x/{model}\n")
    breaker_env.command("force", "--create", "open", provider.key())
    assert breaker_env.run(late, "mime-replaced", url).stdout == b"replaced 0 503\n"
    (event,) = breaker_env.events(event="refused", key=provider.key())
    assert event["detail"] == "other: its model would change, and is not known"


def test_another_request_of_the_same_handle(late, breaker_env, provider):
    """What is remembered of a request is forgotten with whatever tells it."""
    breaker_env.command("force", "--create", "open", provider.key("shut"))
    done = breaker_env.run(late, "methods", provider.url())
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode().splitlines() == [
        "post 0 503", "get 0 200", "post 0 503", "delete 0 200", "purge 0 200", "post 0 503", "other model 0 200",
        "other path 0 200", "post 0 503"]
    assert provider.key("-") not in breaker_env.breakers(), "a GET was taken for an LLM call"


def test_a_curlu_that_is_taken_away(late, breaker_env, provider):
    """Which URL libcurl takes then is its own affair: such a call runs uncovered."""
    bare = breaker_env.run_bare(late, "curlu", provider.url()).stdout.decode().splitlines()
    breaker_env.command("force", "--create", "open", provider.key("shut"))
    lines = breaker_env.run(late, "curlu", provider.url()).stdout.decode().splitlines()
    assert [lines[0], lines[1], lines[3]] == ["url 0 503", "curlu 0 503", "url 0 503"]
    # Newer ones find no URL (3); of a call that never was the last status is told.
    assert lines[2] == bare[2] if bare[2] == "neither 0 200" else lines[2] == "neither 3 503"


def test_a_body_that_is_not_sent_names_no_model(late, breaker_env, provider):
    breaker_env.command("force", "--create", "open", provider.key("shut"))
    done = breaker_env.run(late, "no-body", provider.url())
    assert done.stdout == b"head 0 200\n" and provider.requests[0].method == "PUT"


def test_a_redirect_within_a_place_that_PORT_names(late, breaker_env, provider):
    breaker_env.configure(open_seconds=60)
    provider.answer(Answer(307, headers={"Location": "/v2/chat/completions"}))
    provider.answer(Answer(500), path="/v2/chat/completions")
    done = breaker_env.run(late, "redirected", provider.url())
    assert done.stdout.decode().splitlines() == ["call 0 500"] * 5 + ["call 0 503"]


def test_an_error_buffer_set_after_add_handle(late, breaker_env, provider):
    url = provider.url().replace("http", "https", 1)  # plain http answers
    assert same(breaker_env, provider, late, "error-buffer", url) == "35 words\n"


def test_a_handle_for_which_we_had_no_memory(late, breaker_env, provider):
    """It runs uncovered, and is reset and cleaned up as any; the next one is covered."""
    breaker_env.command("force", "--create", "open", provider.key("shut"))
    done = breaker_env.run(late, "unknown", provider.url())
    assert (done.returncode, done.stdout.decode().splitlines()) == (0, ["unknown 0 200", "reset 0 200", "known 0 503"])
    assert [r.method for r in provider.seen()] == ["POST", "GET"]
