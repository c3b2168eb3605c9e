"""Whose 429 it was is worked out when it comes, from headers that are the application's: a C program that changes or frees them."""

from pathlib import Path

import pytest

from fallbacks import NO_ZEROES
from provider import Answer

CURL = Path(__file__).with_name("curl")


@pytest.fixture
def statuses(compile_c, breaker_env, provider):
    """statuses(MODE, KEY...): of a call with each key."""
    program = compile_c(CURL / "keys.c", "-I", CURL, "-lcurl", name="keys")

    def run(mode, *keys):
        done = breaker_env.run(program, mode, provider.url(), *keys, env=NO_ZEROES)
        assert done.returncode == 0, done
        return [int(line) for line in done.stdout.split()]

    return run


@pytest.fixture(params=[b"", b'{"error":{"message":"slow down"}}'], ids=["no body", "a body"])
def limited(request, provider):
    provider.then(Answer(429, {"Retry-After": "17"}, request.param))


@pytest.mark.parametrize("mode", ["place", "options", "pulled", "parsed"])
def test_each_call_is_of_the_key_it_has(mode, limited, statuses, provider):
    assert statuses(mode, "aa", "aa", "bb", "aa") == [429, 429, 200, 429] and provider.count() == 2


@pytest.mark.parametrize("mode", ["set", "reset", "token"])
def test_a_key_that_is_changed_under_way_parks_nobody(mode, limited, statuses, provider, breaker_env):
    """What it was sent with may be gone."""
    assert statuses(mode, "aa", "aa", "other") == [429, 200, 200] and provider.count() == 3
    assert not breaker_env.events(event="cooldown") and breaker_env.calls(provider.key("m"))["success"] == 2


def test_a_transfer_that_is_left_in_the_middle(statuses, provider):
    """Its headers are gone: nobody looks at them."""
    provider.then(Answer(429, {"Retry-After": "17"}, b"slow down"))
    assert statuses("jump", "aa", "bb") == [429, 200]
