"""Issue 5, item 5: each key of options.def from each place that may set it: what `breaker config` says of it, and what
`breaker check` says of a bad value there. (Its effect: scripts/check-keys, tests/preload/test_environment.py.)"""

import json
import re
from pathlib import Path

import pytest

from config_lines import values

OPTIONS = Path(__file__).resolve().parents[2] / "shim" / "config" / "options.def"
FOUND = re.findall(r'^OPTION\((\w+), \w+, "(.*?)", .*?\b(GLOBAL|TARGET),', OPTIONS.read_text(), re.M | re.S)
DEFAULTS = {key: default for key, default, _ in FOUND}
TARGET_KEYS = [key for key, _, scope in FOUND if scope == "TARGET"]

# Of each key a value that is not its default, and one that is none.
SAMPLES = {
    "match": ("listed", "some"),
    "table": ("/nowhere/table", "table"),
    "log": ("/nowhere/log", "log"),
    "deepbind": ("keep", "drop"),
    "mode": ("observe", "watch"),
    "scope": ("host", "provider"),
    "failure_threshold": ("7", "501"),
    "failure_rate": ("0.25", "1.5"),
    "window": ("90", "0.5"),
    "min_calls": ("30", "0"),
    "degrade_threshold": ("2", "-1"),
    "open_seconds": ("12.5", "0"),
    "backoff": ("1.5", "0.5"),
    "open_max": ("600", "soon"),
    "jitter": ("0.2", "10%"),
    "half_open_probes": ("3", "16"),
    "success_threshold": ("2", "0"),
    "probe_lease": ("call", "never"),
    "timeout_after": ("8", "-8"),
    "hang_after": ("20", "20s"),
    "connect_hang_after": ("1", "90000"),
    "slow_first_byte": ("2.5", "late"),
    "stall_after": ("15", "-1"),
    "failure_status": ("418, 500-504", "500-400"),
    "neutral_status": ("501", "5xx"),
    "neutral_body": ("context_length_exceeded, too long", "too long,,none"),
    "rate_limit": ("cooldown, count", "count, ignore"),
    "cooldown_max": ("120", "1"),
    "quota_cooldown": ("3600", "1h"),
    "cooldown_seconds": ("4", "x"),
    "cooldown_on": ("503", "99"),
    "when_exhausted": ("pass", "502"),
    "should_retry": ("true", "maybe"),
    "error_code": ("provider-circuit-open", 'a "b"'),
    "fallback": ("spare", "spare,,spare"),
    "allow_fallbacks": ("false", "never"),
    "base": ("https://h.example/v1", "h.example/v1"),
    "allow_cleartext": ("true", "2"),
    "failover": ("off", "always"),
    "fallback_address": ("g.example:8443", "g.example"),
}
SPARE = "[fallback spare]\nbase = https://spare.example\n[target other.example]\nfallback = spare\n"


# A bad one costs nothing but a way round, so no command stops for it: told as that which carries it to programs.
LEFT_OUT = "base", "fallback_address"
PLACES = "breaker", "target", "environment", "set"  # the weakest first


def places_of(key):
    return [place for place in PLACES if place != "target" or key in TARGET_KEYS]


@pytest.fixture(params=DEFAULTS)
def key(request):
    """Each in turn; one that is new fails until it has its line above."""
    assert request.param in SAMPLES, f"{request.param} of options.def has no line in SAMPLES of {Path(__file__).name}"
    return request.param


class Configured:
    """A configuration that sets one key in the places named."""

    def __init__(self, breaker, ini, key, said):
        self.breaker, self.key = breaker, key
        lines = {place: f"{key} = {said[place]}\n" if place in said else "\n" for place in PLACES}
        path = ini(f"[breaker]\n{lines['breaker']}[target h.example]\n{lines['target']}{SPARE}")
        variable = f"BREAKER_{key.upper()}"
        self.origins = {"breaker": f"{path}:2", "target": f"{path}:4", "environment": variable, "set": "--set"}
        self.options = ["--config", str(path), *(["--set", f"{key}={said['set']}"] if "set" in said else [])]
        self.environment = {variable: said["environment"]} if "environment" in said else {}

    def __call__(self, *words, code=0):
        return self.breaker(*words, *self.options, code=code, **self.environment)

    def shown(self):
        """(value, origin) of the key, as both forms of `breaker config` have it."""
        words = ["config", "h.example"] if self.key in TARGET_KEYS else ["config"]
        text = values(self(*words).stdout)[self.key]
        found = json.loads(self(*words, "--json").stdout)["settings"][self.key]
        assert text == (found["value"], found["origin"])
        return text


@pytest.fixture
def configured(untouched, ini, key):
    return lambda **said: Configured(untouched, ini, key, said)


def test_config_shows_the_value_of_each_place_and_the_place(key, configured):
    sample, default = SAMPLES[key][0], DEFAULTS[key]
    assert sample != default and configured().shown() == (default, "default")
    for i, place in enumerate(places_of(key)):
        for winner, loser in ((sample, default), (default, sample)):
            one = configured(**dict.fromkeys(places_of(key)[:i], loser), **{place: winner})
            assert one.shown() == (winner, one.origins[place])


def test_check_tells_a_bad_value_with_its_place(key, configured):
    bad = SAMPLES[key][1]
    for place in places_of(key):
        one = configured(**{place: bad})
        origin, code = one.origins[place], 1
        if place == "set":
            origin, code = ("BREAKER_SET", 1) if key in LEFT_OUT else ("breaker: --set", 2)
        done = one("check", code=code)
        assert done.stdout == "" and done.stderr.startswith(f"{origin}: {key}: expected ")
        assert f'found "{bad}"' in done.stderr


# Not match: a target's is what it is of.
@pytest.mark.parametrize("key", [key for key in DEFAULTS if key not in (*TARGET_KEYS, "match")])
def test_check_tells_a_key_of_the_process_in_a_target(key, configured):
    one = configured(target=SAMPLES[key][0])
    assert one("check", code=1).stderr.startswith(f"{one.origins['target']}: {key}: ")


def test_each_sample_is_of_a_key():
    assert SAMPLES.keys() == DEFAULTS.keys()
