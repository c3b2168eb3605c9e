"""breaker explain: what it says of a call, in both outputs, and that it changes nothing."""

import json
import os
import re
import subprocess
import time
from pathlib import Path

import pytest

import table_layout as layout

REPOSITORY = Path(__file__).resolve().parents[2]
URL = "https://api.openai.com/v1/chat/completions"
LONG_HOST = "breaker: expected a host of at most 262 bytes with its port, found one of {}\n"
HOST, KEY = "api.openai.com", "api.openai.com/gpt-4o"
POST_PATHS = {  # URL: dialect, place, model by path
    "https://api.openai.com/v1/chat/completions": ("openai", "member", None),
    "https://api.anthropic.com/v1/messages": ("anthropic", "member", None),
    "https://x.openai.azure.com/openai/deployments/gpt%2D4o/chat/completions": ("openai", "path", "gpt-4o"),
    "https://generativelanguage.googleapis.com/v1beta/models/gemini-pro:generateContent":
        ("gemini", "path", "gemini-pro"),
    "https://bedrock-runtime.us-east-1.amazonaws.com/model/a%2Fb/invoke": ("bedrock", "path", "a/b"),
    "http://127.0.0.1:11434/api/chat": ("ollama", "member", None),
    "https://api.cohere.com/v2/chat": ("cohere", "member", None),
    "https://api.mistral.ai/v1/fim/completions": ("mistral", "member", None),
    "https://api.replicate.com/v1/predictions": ("openai", "member", None),
}


def verdict(explained):
    return explained["verdict"]["action"], explained["verdict"]["reason"], explained["verdict"]["key"]


def word(phase, time=0, count=0, generation=1, lease=1):
    return phase << 61 | generation << 46 | lease << 39 | count << 30 | time


def ticks(seconds=0):
    return (time.clock_gettime_ns(time.CLOCK_BOOTTIME) + int(seconds * 1e9) >> 25) & (1 << 30) - 1


@pytest.fixture
def put_word(breaker, open_table):
    """Makes the key, as the only one, and puts its breaker into a state."""

    def put(key, value):
        breaker("trip", "--create", key)
        table = open_table(breaker.table)
        table.put("<Q", table.only_slot() + layout.WORD, value)
        return table

    return put


# --- is it covered, and why ------------------------------------------------------------------------


def test_a_model_of_the_path_is_told_as_such(breaker):
    url = next(url for url, (_, place, _) in POST_PATHS.items() if place == "path")
    assert "\nmodel: gpt-4o (of the path)\n" in breaker("explain", url).stdout
    host = breaker("explain", url, BREAKER_SCOPE="host").stdout
    assert "\nmodel: gpt-4o (of the path); scope = host: it has no breaker of its own\n" in host


@pytest.mark.parametrize("url, expected", POST_PATHS.items(), ids=lambda v: v if isinstance(v, str) else "")
def test_the_path_tells_the_dialect_and_where_the_model_is(explain, url, expected):
    found = explain(url)
    assert found["request"]["method"] == "POST" and found["request"]["method_assumed"]
    assert (found["dialect"], found["model"]["place"], found["model"]["name"]) == expected
    assert found["coverage"]["covered"] and found["coverage"]["llm_shape"]
    assert found["model"]["known"] is (expected[1] == "path")
    assert found["model"]["member"] == (None if expected[1] == "path" else
                                        "version" if "replicate" in url else "model")


def test_without_an_llm_path_it_is_a_get(explain):
    found = explain("https://api.openai.com/v1/files")
    assert found["request"]["method"] == "GET" and found["coverage"]["reason"] == "known_host"
    assert found["model"] == {"place": "none", "member": None, "counts": False, "known": True, "name": None}
    assert found["chain"][0]["model"] is None and found["chain"][0]["host"]["key"] == HOST
    assert explain("https://api.openai.com/v1/files", "--model", "m")["request"]["method"] == "POST"
    found = explain(URL, "--method", "GET", "--model", "m")
    assert found["request"] == {"method": "GET", "method_assumed": False, "scheme": "https", "host": HOST,
                                "path": "/v1/chat/completions"}
    assert not found["coverage"]["llm_shape"] and found["chain"][0]["model"] is None
    assert "the body is not looked at" in found["remarks"][0]


def test_a_url_without_a_scheme_is_of_another_host_than_https(explain):
    found = explain("api.openai.com/v1/chat/completions")
    assert found["request"]["host"] == "api.openai.com:80" and "http is meant" in found["remarks"][0]
    assert explain("HTTP://api.openai.com/v1/chat/completions")["remarks"] == []
    assert explain(URL)["remarks"] == []


def test_why_it_is_covered_or_not(explain):
    shape, other = "http://gpu:8000/v1/chat/completions", "http://gpu:8000/index.html"
    assert explain(shape)["coverage"]["reason"] == "llm_shape"
    found = explain(other)
    assert (found["coverage"]["covered"], found["coverage"]["reason"]) == (False, "no_llm_call")
    assert verdict(found) == ("uncounted", "no_llm_call", None) and found["layers"] == []
    found = explain(shape, "--set", "match=listed")
    assert verdict(found) == ("uncounted", "not_listed", None)
    assert found["settings"]["match"] == {"value": "listed", "origin": "--set"}
    found = explain(other, "--set", "match=all")
    assert found["coverage"]["covered"] and found["coverage"]["reason"] == "match_all"
    assert found["verdict"]["to"] == "gpu:8000"


def test_which_targets_are_for_the_host(breaker, explain, ini):
    path = ini("[target other.example]\nopen_seconds = 1\n[target gpu:*]\nopen_seconds = 2\n"
               "[target big]\nmatch = gpu:8000/llama*\nopen_seconds = 4\n")
    found = explain("http://GPU.:8000/v1/chat/completions", "--model", "llama3", "--config", str(path))
    assert found["coverage"]["reason"] == "listed" and found["config"] == str(path)
    assert found["coverage"]["targets"] == [{"name": "gpu:*", "match": "gpu:*", "line": 3},
                                            {"name": "big", "match": "gpu:8000/llama*", "line": 5}]
    stop = found["chain"][0]
    assert stop["host"]["settings"]["open_seconds"] == {"value": "2", "origin": f"{path}:4"}
    assert stop["model"]["settings"]["open_seconds"] == {"value": "4", "origin": f"{path}:7"}
    text = breaker("explain", "http://gpu:8000/v1/chat/completions", "-m", "llama3", "--config", str(path)).stdout
    assert f"target gpu:* # {path}:3\n" in text and f"target big # {path}:5\n" in text
    assert re.search(rf"settings: as of the host, but\n  open_seconds +=  *4 +# {re.escape(str(path))}:7\n$", text)


def test_the_settings_are_those_of_config(breaker, explain, ini):
    path = ini("[target api.openai.com/gpt-4o]\nopen_seconds = 4\n")
    args = ("--config", str(path), "--set", "backoff=3")
    shown = breaker("config", KEY, *args, BREAKER_JITTER="0.5").stdout
    found = explain(URL, "--model", "gpt-4o", *args, BREAKER_JITTER="0.5")
    lines = {m[1]: {"value": m[2].strip(), "origin": m[3]}
             for m in re.finditer(r"^(\w+) *= (.*?) *# (.*)$", shown, re.M)}
    assert found["chain"][0]["model"]["settings"] == lines
    assert lines["jitter"]["origin"] == "BREAKER_JITTER" and lines["backoff"]["origin"] == "--set"


def test_a_setting_from_another_place_is_shown_though_its_value_is_the_same(breaker, ini):
    path = ini("[target gpu]\nopen_seconds = 4\n[target gpu/m]\nopen_seconds = 4\n")
    args = ("explain", "https://gpu/v1/chat/completions", "--config", str(path), "--model")
    assert re.search(rf"as of the host, but\n  open_seconds += 4 +# {re.escape(str(path))}:4\n$",
                     breaker(*args, "m").stdout)
    assert breaker(*args, "n").stdout.endswith("  settings: as of the host\n")


def test_off_for_the_host_or_for_the_model_alone(explain, ini):
    path = ini("[target a.example]\nmode = off\n[target b.example/m]\nmode = off\n")
    found = explain("https://a.example/v1/chat/completions", "--model", "m", "--config", str(path))
    assert verdict(found) == ("uncounted", "mode_off", "a.example") and not found["coverage"]["covered"]
    assert found["layers"] == []
    found = explain("https://b.example/v1/chat/completions", "--model", "m", "--config", str(path))
    assert verdict(found) == ("uncounted", "mode_off", "b.example/m")
    assert [layer["now"] for layer in found["layers"]][2] == "connects"
    found = explain("https://b.example/v1/chat/completions", "--model", "n", "--config", str(path))
    assert verdict(found) == ("goes", "closed", None)


def test_disabled(explain):
    found = explain(URL, "--model", "m", BREAKER_DISABLED="1")
    assert verdict(found) == ("uncounted", "disabled", None) and not found["coverage"]["covered"]
    assert found["coverage"]["disabled"] == "BREAKER_DISABLED is set" and found["layers"] == []


def test_with_scope_host_the_model_has_no_say(breaker, explain, ini):
    path = ini("[target api.openai.com]\nscope = host\n[target api.openai.com/gpt-4o]\nmode = off\n")
    breaker("force", "open", "--create", KEY)
    for args in ((), ("--model", "gpt-4o"), ("--model", "")):
        found = explain(URL, *args, "--config", str(path))
        assert verdict(found) == ("goes", "closed", None) and found["verdict"]["text"] == f"goes to {HOST}: closed"
        assert not found["model"]["counts"] and found["chain"][0]["model"] is None and found["remarks"] == []
    text = breaker("explain", URL, "--model", "gpt-4o", "--config", str(path)).stdout
    assert "model: gpt-4o (member model of the body); scope = host: it has no breaker of its own\n" in text
    assert explain("https://api.openai.com/v1/files", "--config", str(path))["coverage"]["reason"] == "listed"


# --- the model of a body ----------------------------------------------------------------------------

FORM = ('--xyz\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n{"model": "no"}\r\n'
        '--xyz\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper-1\r\n--xyz--\r\n')
BODIES = {
    '{"messages":[{"model":"no"}],"model":"gpt-4o"}': ("member", "gpt-4o"),
    '{"prompt":"' + "x" * 300_000 + '","model":"last"}': ("member", "last"),
    '{"model":"gpt\\u002d4o"}': ("member", "gpt-4o"),
    '{"prompt":"'.ljust(65536, "x") + '--","model":"after"}': ("member", "after"),  # the library's pieces are others
    '{"messages":[]}': ("member", "-"),
    "": ("member", "-"),
    "no JSON": ("member", "-"),
    '{"model":"' + "m" * 256 + '"}': ("member", "-"),
    '{"model":"a\\nb"}': ("member", "-"),
    FORM: ("form_field", "whisper-1"),
}


@pytest.mark.parametrize("body, expected", BODIES.items(), ids=lambda v: repr(v)[:30])
def test_the_model_is_read_from_a_body(breaker, explain, tmp_path, body, expected):
    file = tmp_path / "body"
    file.write_text(body)
    found = explain(URL, "--body", str(file))
    assert (found["model"]["place"], found["model"]["name"]) == expected
    assert found["chain"][0]["model"]["key"] == f"{HOST}/{expected[1]}"
    done = subprocess.run([breaker.program, "explain", "--json", URL, "--body", "-"], input=body, text=True,
                          env=breaker.environment, capture_output=True, timeout=30, check=True)
    assert json.loads(done.stdout)["model"] == found["model"]


def test_a_body_of_many_megabytes_in_small_pieces(breaker):
    process = subprocess.Popen([breaker.program, "explain", URL, "--body", "-"], env=breaker.environment,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdin.write(b'{"prompt":"')
    for _ in range(3000):
        process.stdin.write(b"y" * 10_001)
        process.stdin.flush()
    out, _ = process.communicate(b'","model":"far"}', timeout=50)
    assert process.returncode == 0 and f"key {HOST}/far\n".encode() in out


def test_a_model_that_cannot_be_a_key(explain):
    for model in ("", "m" * 256, "a\tb"):
        found = explain(URL, "--model", model)
        assert found["model"]["name"] == "-" and "cannot be a key" in found["remarks"][0]


def test_a_body_that_cannot_be_read(breaker, tmp_path):
    for place in (tmp_path / "nowhere", tmp_path):
        done = breaker("explain", URL, "--body", str(place), code=1)
        assert done.stdout == "" and done.stderr.startswith(f"breaker: --body: {place}: ")


def test_the_path_goes_before_what_is_said_of_the_body(explain):
    found = explain("https://x.openai.azure.com/openai/deployments/d1/chat/completions", "--model", "other")
    assert found["model"]["name"] == "d1" and "the path names the model" in found["remarks"][0]


def test_an_unknown_model_leaves_the_host_alone(breaker, explain):
    found = explain(URL)
    assert found["model"] == {"place": "member", "member": "model", "counts": True, "known": False, "name": None}
    assert found["chain"][0]["model"] is None
    assert verdict(found) == ("goes", "closed", None) and "give --model or --body" in found["verdict"]["text"]
    breaker("force", "open", "--create", HOST)
    assert verdict(explain(URL)) == ("refused", "forced_open", HOST)


# --- where it would go ------------------------------------------------------------------------------


def test_nothing_was_ever_counted(breaker, explain):
    found = explain(URL, "--model", "gpt-4o")
    assert verdict(found) == ("goes", "closed", None) and found["verdict"]["to"] == HOST
    assert found["verdict"]["status"] is None and found["verdict"]["retry_after"] is None
    assert found["table"] == {"path": str(breaker.table), "attached": False}
    assert [found["chain"][0][side]["seen"] for side in ("host", "model")] == [False, False]
    assert not breaker.table.exists() and not breaker.table.parent.exists()


def test_open_with_its_last_failure(breaker, explain, put_word):
    table = put_word(KEY, word(1, ticks(20)))
    slot = table.only_slot()
    table.put("<Q", slot + layout.LAST_FAILURE_NS, time.clock_gettime_ns(time.CLOCK_BOOTTIME) - 3_000_000_000)
    table.put("<I", slot + layout.LAST_FAILURE, 1 << 16 | 500)
    found = explain(URL, "--model", "gpt-4o")
    assert verdict(found) == ("refused", "open", KEY) and found["verdict"]["to"] is None
    assert found["verdict"]["status"] == 503
    wait = found["verdict"]["retry_after"]
    assert wait["min"] == wait["max"] and 5 <= wait["min"] <= 21
    text = breaker("explain", URL, "-m", "gpt-4o").stdout
    assert re.search(r"^now: refused with a synthetic 503, Retry-After \d+: api.openai.com/gpt-4o is open for "
                     r"[\d.]+s \(until 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ\), last failure: status 500, [\d.]+s ago$",
                     text, re.M)


def test_what_is_observed_passes(breaker, explain, put_word):
    put_word(KEY, word(1, ticks(20)))
    found = explain(URL, "--model", "gpt-4o", "--set", "mode=observe")
    assert verdict(found) == ("goes", "observed", KEY) and found["verdict"]["to"] == HOST
    assert found["coverage"]["covered"] and found["verdict"]["retry_after"] is None
    assert found["chain"][0]["model"]["mode"] == "observe" and found["chain"][0]["model"]["state"] == "open"
    text = breaker("explain", URL, "-m", "gpt-4o", "--set", "mode=observe").stdout
    assert f"now: goes to {HOST}: {KEY} is open, but mode = observe: the call moves its statistics only\n" in text


def test_its_state_is_that_of_status(breaker, explain, put_word):
    put_word(KEY, word(0, ticks(-5), 4))
    shown = breaker.breakers()[KEY]
    side = explain(URL, "--model", "gpt-4o")["chain"][0]["model"]
    assert {name: side[name] for name in shown} == shown
    assert shown["state"] == "degraded" and shown["streak"] == 4


def test_the_share_of_failures_is_that_of_status(breaker, explain, put_word):
    table = put_word(KEY, word(0, ticks(-5), 1))
    table.put("<Q", table.only_slot() + layout.RATE, ticks(-1) << 34 | 1 << 28 | 20 << 14 | 9)
    assert "rate" not in explain(URL, "--model", "gpt-4o")["chain"][0]["model"]
    breaker.environment["BREAKER_FAILURE_RATE"] = "0.5"
    chain = explain(URL, "--model", "gpt-4o")["chain"][0]
    assert chain["model"]["rate"] == {"calls": 20, "failures": 9, "window": 60}
    assert chain["host"]["rate"] == {"calls": 0, "failures": 0, "window": 60} and not chain["host"]["seen"]
    names = ("failure_rate", "window", "min_calls", "neutral_status", "neutral_body")
    assert {name: chain["model"]["settings"][name]["value"] for name in names} == \
        dict(zip(names, ("0.5", "60", "20", "", "")))
    text = breaker("explain", URL, "-m", "gpt-4o").stdout
    assert "state: closed, streak 1, failed 9/20 in 60s, last failure: -" in text


STATES = {
    "degraded": (word(0, 1, 4), ("goes", "degraded")),
    "due": (word(1, ticks(-1)), ("probe", "probe_due")),
    "open": (word(1, ticks(3600)), ("refused", "open")),
    "probe under way": (word(2, ticks(3600), 1), ("refused", "probe_under_way")),
    "grant given back": (word(2, ticks(3600), 0), ("probe", "probe_free")),
    "lease over": (word(2, ticks(-1), 1), ("probe", "probe_free")),
    "forced open": (word(3), ("refused", "forced_open")),
    "forced closed": (word(4), ("goes", "forced_closed")),
    "unknown": (word(7, 5, 5), ("goes", "closed")),
}


@pytest.mark.parametrize("key", (HOST, KEY))
@pytest.mark.parametrize("state", STATES)
def test_every_state_and_never_a_byte_changed(breaker, explain, put_word, state, key):
    value, expected = STATES[state]
    put_word(key, value)
    before, stamp = breaker.table.read_bytes(), os.stat(breaker.table).st_mtime_ns
    for _ in range(3):
        found = explain(URL, "--model", "gpt-4o")
        assert verdict(found)[:2] == expected
        assert (found["verdict"]["key"] == key) or expected == ("goes", "closed")
        breaker("explain", URL, "--model", "gpt-4o")
    assert breaker.table.read_bytes() == before and os.stat(breaker.table).st_mtime_ns == stamp


def test_a_probe_under_way_tells_of_a_short_wait(breaker, explain, put_word):
    put_word(KEY, word(2, ticks(3600), 1))
    found = explain(URL, "--model", "gpt-4o")
    assert found["verdict"]["retry_after"] == {"min": 1, "max": 3}
    assert "Retry-After 1 to 3: api.openai.com/gpt-4o is half-open, and a probe is under way" in \
        breaker("explain", URL, "-m", "gpt-4o").stdout
    assert verdict(explain(URL, "--model", "gpt-4o", "--set", "half_open_probes=2"))[0] == "probe"


def test_held_open_the_open_time_is_when_to_ask_again(explain, put_word):
    put_word(KEY, word(3))
    found = explain(URL, "--model", "gpt-4o", "--set", "open_seconds=44")
    assert found["verdict"]["retry_after"] == {"min": 45, "max": 45}  # 44 s in whole ticks, rounded up


def test_passing_while_open(explain, put_word):
    put_word(KEY, word(1, ticks(3600)))
    found = explain(URL, "--model", "gpt-4o", "--set", "when_exhausted=pass")
    assert verdict(found) == ("goes", "when_exhausted", KEY) and found["verdict"]["to"] == HOST


def test_the_host_refuses_before_the_model(breaker, explain):
    breaker("force", "open", "--create", KEY)
    breaker("force", "open", "--create", HOST)
    found = explain(URL, "--model", "gpt-4o")
    assert verdict(found) == ("refused", "forced_open", HOST)
    assert found["layers"][1]["now"] == "connect fails with ECONNREFUSED"


def test_a_refusing_host_is_met_at_connect_where_connects_are_judged(breaker, explain, ini):
    breaker("force", "open", "--create", "gpu:80")
    url, path = "http://gpu/v1/chat/completions", ini("[target gpu:80]\nopen_seconds = 4\n")
    found = explain(url, "--model", "m")
    assert [layer["now"] for layer in found["layers"]][:2] == [found["verdict"]["text"]] * 2
    found = explain(url, "--model", "m", "--config", str(path))
    assert verdict(found) == ("refused", "forced_open", "gpu:80")
    assert found["layers"][1]["now"] == "connect fails with ECONNREFUSED"


def test_who_sees_it(explain):
    def sees(url):
        return [layer["sees"] for layer in explain(url, "--model", "m")["layers"]]

    assert sees(URL) == ["the whole request", "the connect, then the whole request", "the host, at connect", "nothing"]
    assert sees("https://gpu/v1/chat/completions")[1] == "the whole request, no connect"
    assert sees("https://gpu/v1/chat/completions")[2].startswith("nothing: only the connect")
    assert sees("http://gpu/v1/chat/completions")[1] == "the whole request, no connect"
    assert sees("http://api.openai.com/v1/chat/completions")[1] == "the connect, then the whole request"


# --- odd URLs, and trouble --------------------------------------------------------------------------


@pytest.mark.parametrize("url, host, path", [
    ("API.OpenAI.com./v1/chat/completions", "api.openai.com:80", "/v1/chat/completions"),
    ("https://user:secret@api.openai.com:0443/v1/chat/completions?api-key=secret#x", HOST, "/v1/chat/completions"),
    ("http://[::1%25lo]:8000/v1/chat/completions", "[::1]:8000", "/v1/chat/completions"),
    ("https://api.openai.com", HOST, ""),
    ("https://" + "h" * 262 + "/v1/embeddings", "h" * 262, "/v1/embeddings"),
])
def test_odd_urls(breaker, explain, url, host, path):
    found = explain(url, "--model", "m")
    assert (found["request"]["host"], found["request"]["path"]) == (host, path)
    text = breaker("explain", url, "--model", "m").stdout
    assert "secret" not in text + json.dumps(found)


@pytest.mark.parametrize("scheme, port, sees", [
    ("ws", ":80", {"sockets": "the connect, then the request's head"}),
    ("WSS", "", {"libssl": "the connect, then the request's head", "other TLS": "the host, at connect"}),
    ("ftp", ":21", {"sockets": "the host, at connect"}), ("sftp", ":22", {"sockets": "the host, at connect"}),
    ("imaps", ":993", {"sockets": "the host, at connect"}),
])
def test_a_scheme_that_is_none_of_ours(breaker, explain, scheme, port, sees):
    """libcurl's calls are not counted; a program with its own sockets meets the host's breaker."""
    url, key = f"{scheme}://api.openai.com/v1/chat/completions", HOST + port
    found = explain(url, "--model", "m")
    assert verdict(found) == ("uncounted", "scheme", None) and not found["coverage"]["covered"]
    assert (found["request"]["host"], found["request"]["method"]) == (key, "GET")
    assert found["chain"][0]["url"] == url and found["chain"][0]["model"] is None
    layers = {layer["layer"]: layer for layer in found["layers"]}
    assert {name: layer["sees"] for name, layer in layers.items()} == {
        "libcurl": "nothing of this scheme", **sees, "static, Go, set-uid": "nothing"}
    for command, now in ((("force", "closed"), "connects"), (("force", "open"), "connect fails with ECONNREFUSED")):
        breaker(*command, "--create", key)
        layers = {layer["layer"]: layer["now"] for layer in explain(url)["layers"]}
        assert {layers[name] for name in sees} == {now} and layers["libcurl"] == "passes uncounted"
        text = breaker("explain", url).stdout
        assert ("\nnow: passes uncounted: not covered through libcurl, where only http and https are; a program with "
                f"its own sockets meets the host's breaker: {now}\n") in text
        assert f"GET (assumed) {scheme}://{key}/v1/chat/completions\n" in text


@pytest.mark.parametrize("changes, why", [
    ({}, "no known provider, no target is for the host, and no POST to the path of an LLM call"),
    ({"BREAKER_MATCH": "listed"}, "no target is for the host, and match = listed"),
])
def test_a_scheme_that_is_none_of_ours_at_a_host_that_is_not_judged(breaker, explain, changes, why):
    found = explain("ws://gpu:8000/v1/realtime", **changes)
    assert verdict(found) == ("uncounted", "scheme", None) and found["layers"] == []
    assert found["verdict"]["text"] == \
        f"passes uncounted: not covered: only http and https are through libcurl; by sockets: {why}"


def test_a_scheme_that_is_none_of_ours_where_nothing_is_judged(breaker, explain):
    url = "wss://api.openai.com/v1/realtime"
    found = explain(url, BREAKER_MODE="off")
    assert verdict(found) == ("uncounted", "mode_off", HOST) and found["layers"] == []
    assert verdict(explain(url, BREAKER_DISABLED="1")) == ("uncounted", "disabled", None)
    breaker.table.parent.mkdir()
    breaker.table.write_bytes(b"no table")
    found = explain(url, code=1)
    assert verdict(found) == ("uncounted", "scheme", None) and found["layers"] == []
    assert found["verdict"]["text"].endswith("by sockets: the table may not be used")


def test_where_connects_of_another_scheme_go_instead(breaker, explain):
    breaker("force", "open", "--create", HOST)
    now = explain("wss://api.openai.com/v1/realtime", "--set", "fallback_address=h2.example:443")["layers"][1]["now"]
    assert now.startswith("connects to h2.example instead, by fallback_address")


def test_a_scheme_whose_port_nobody_knows(breaker, explain):
    done = breaker("explain", "grpc://gpu/x", code=2)
    assert done.stdout == ""
    assert done.stderr == "breaker: expected a port, as in grpc://gpu:PORT: that of grpc is not known here\n"
    assert explain("grpc://gpu:50051/x")["request"]["host"] == "gpu:50051"


def test_dot_segments_are_told_of(explain):
    assert "dot segments" in explain("https://api.openai.com/x/../v1/chat/completions")["remarks"][0]
    assert explain("https://api.openai.com/x.../.y/v1/chat/completions")["remarks"] == []


@pytest.mark.parametrize("url", ["", "https://", "file:///etc/passwd", "https://a b/", "https://h:99999/",
                                 "http://a%2Fb/"])
def test_no_url(breaker, url):
    done = breaker("explain", url, code=2)
    assert done.stdout == "" and done.stderr == f"breaker: expected a URL with a host, found '{url}'\n"


def test_a_host_that_is_too_long(breaker):
    done = breaker("explain", "https://" + "h" * 263 + "/", code=2)
    assert (done.stdout, done.stderr) == ("", LONG_HOST.format(263))
    assert breaker("explain", "http://" + "h" * 262 + "/", code=2).stderr == LONG_HOST.format(265)


@pytest.mark.parametrize("args", [(), (URL, URL), (URL, "--model", "m", "--body", "-"), (URL, "--method", ""),
                                  (URL, "--method", "PO ST"), (URL, "--set", "open_seconds=soon"), (URL, "--nope")])
def test_wrong_usage(breaker, args):
    done = breaker("explain", *args, code=2)
    assert done.stdout == "" and done.stderr


def test_a_bad_configuration_is_told_as_check_tells_it(breaker, ini):
    path = ini("[breaker]\nopen_seconds = soon\nnonsense = 1\n")
    done = breaker("explain", URL, "--config", str(path), code=1)
    assert done.stdout == ""
    assert done.stderr == breaker("check", "--config", str(path), code=1).stderr


def test_a_table_that_is_refused(breaker, explain):
    breaker.table.parent.mkdir()
    breaker.table.write_bytes(b"no table")
    found = explain(URL, "--model", "m", code=1)
    assert verdict(found) == ("uncounted", "table_refused", None) and found["coverage"]["covered"]
    assert breaker.table.read_bytes() == b"no table"


def test_a_table_that_cannot_be_had(explain):
    found = explain(URL, "--model", "m", BREAKER_TABLE="/dev/null/table", code=1)
    assert verdict(found) == ("goes", "closed", None) and not found["table"]["attached"]
    assert found["remarks"] == ["no shared table can be had: each process counts alone"]


def test_nothing_that_acts_on_a_terminal(breaker, explain):
    args = ("https://h\u202e.example/\x1b[31m/v1/chat/completions", "--method", "POST", "--model", "m\u202e")
    assert not re.search("[\x1b\u202e]", breaker("explain", *args).stdout)
    assert explain(*args)["model"]["name"] == "m\u202e"


def test_the_man_page_names_every_member_of_the_json(explain):
    """And every word for an action, a reason and a place."""
    page = (REPOSITORY / "docs" / "breaker.1").read_text().replace("\\-", "-")
    section = page[page.index(".SH JSON OF EXPLAIN"):]
    found = explain(URL, "--model", "m")
    names = set(found) | set(found["request"]) | set(found["coverage"]) | set(found["model"]) | \
        set(found["verdict"]) | set(found["chain"][0]) | set(found["layers"][0])
    source = (REPOSITORY / "shim" / "cli" / "cmd_explain_names.c").read_text()
    names |= set(re.findall(r'\[(?:EXPLAIN|ROUTE|API|FALLBACK)_\w+\] = "(\w+)"', source))
    assert not {name for name in names if not re.search(rf"\b{name}\b", section)}
