"""breaker check and breaker config: what they say of good and bad configurations."""

import re
from pathlib import Path

import pytest

OPTIONS = Path(__file__).resolve().parents[2] / "shim" / "config" / "options.def"


def values(text):
    """{key: (value, origin)} of the lines of `breaker config`."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {m[1]: (m[2].strip(), m[3]) for m in (re.fullmatch(r"(\w+) *= (.*?) *# (.*)", line) for line in lines)}


@pytest.fixture
def untouched(breaker):
    """No table in the environment, so that nothing but the test sets a key."""
    del breaker.environment["BREAKER_TABLE"]
    return breaker


def test_check_without_any_file(untouched, home):
    done = untouched("check")
    assert done.stderr == "" and len(done.stdout.splitlines()) == 1


def test_check_tells_the_file_that_is_well(breaker, home, ini):
    path = home / ".config" / "breaker" / "breaker.ini"
    path.parent.mkdir(parents=True)
    path.write_text("[breaker]\nopen_seconds = 5\n")
    path.chmod(0o600)
    assert breaker("check").stdout == f"{path}: all is well\n"
    other = ini("[target a.example]\nfailure_threshold = 2\n")
    assert breaker("check", str(other)).stdout == f"{other}: all is well\n"
    assert breaker("check", BREAKER_CONFIG=str(other)).stdout == f"{other}: all is well\n"


def test_check_tells_every_problem_with_its_line(breaker, ini):
    path = ini("[breaker]\nopen_seconds = soon\n\nnonsense = 1\nfailure_threshold = 100000\n[unknown]\n")
    done = breaker("check", str(path), code=1)
    lines = done.stderr.splitlines()
    assert done.stdout == ""
    for start in (f"{path}:2: open_seconds: ", f"{path}:4: nonsense: ", f"{path}:5: failure_threshold: ",
                  f"{path}:6: "):
        assert any(line.startswith(start) for line in lines), (start, lines)
    assert all(re.match(re.escape(str(path)) + r":\d+: .+: .+", line) for line in lines)


def test_check_without_a_file_looks_at_the_environment_too(breaker, ini):
    path = ini("[breaker]\n")
    done = breaker("check", BREAKER_CONFIG=str(path), BREAKER_OPEN_SECONDS="soon", code=1)
    assert done.stderr.startswith("BREAKER_OPEN_SECONDS: ")
    breaker("check", str(path), BREAKER_OPEN_SECONDS="soon")


@pytest.mark.parametrize("text", ["[breaker]\nmode = \x1b[31mred\n", "[\x1b]0;title\x07]\n"])
def test_what_is_bad_is_shown_without_harm(breaker, ini, text):
    assert "\x1b" not in breaker("check", str(ini(text)), code=1).stderr


def test_check_of_files_that_may_not_be_read(breaker, ini, tmp_path):
    assert "/nowhere" in breaker("check", "/nowhere", code=1).stderr
    breaker("check", str(tmp_path), code=1)
    path = ini("[breaker]\n", mode=0o666)
    path.chmod(0o666)
    assert breaker("check", str(path), code=1).stderr.startswith(str(path))


def test_the_working_directory_is_never_looked_at(breaker, ini):
    ini("[breaker]\nnonsense = 1\n")
    breaker("check")


def test_config_shows_every_key_with_its_default(untouched):
    shown = values(untouched("config").stdout)
    defaults = dict(re.findall(r'^OPTION\((\w+), \w+, "(.*?)"', OPTIONS.read_text(), re.M))
    assert shown.keys() == defaults.keys()
    assert {origin for _, origin in shown.values()} == {"default"}
    assert shown["failure_threshold"][0] == "5" and shown["mode"][0] == "enforce"


def test_config_tells_where_each_value_came_from(untouched, ini):
    path = ini("[breaker]\nopen_seconds = 7\nbackoff = 3\njitter = 0\n[target h.example]\nbackoff = 4\n")
    done = untouched("config", "--config", str(path), "--set", "failure_threshold=9", BREAKER_JITTER="0.5")
    shown = values(done.stdout)
    assert done.stdout.startswith(f"# {path}\n")
    assert shown["open_seconds"] == ("7", f"{path}:2")
    assert shown["backoff"] == ("3", f"{path}:3")
    assert shown["jitter"] == ("0.5", "BREAKER_JITTER")
    assert shown["failure_threshold"] == ("9", "--set")
    target = values(untouched("config", "H.example/m", "--config", str(path)).stdout)
    assert target["backoff"] == ("4", f"{path}:6") and target["open_seconds"] == ("7", f"{path}:2")
    assert "table" not in target


@pytest.mark.parametrize("key, match, remark", [
    ("h.example", "llm", "covered: a target names the host"),
    ("h.example/m", "llm", "covered: a target names the host"),
    ("api.openai.com", "llm", "covered: a known provider"),
    ("api.openai.com:8443/m", "llm", "covered: a known provider"),
    ("api.openai.com", "listed", "not covered"),
    ("other.example:81", "llm", "only POSTs"),
    ("other.example", "all", "covered: match = all"),
])
def test_config_says_whether_a_host_is_covered(breaker, ini, key, match, remark):
    path = ini("[target h.example]\n")
    second = breaker("config", key, "--config", str(path), "--set", f"match={match}").stdout.splitlines()[1]
    assert second.startswith(f"# {key}: {remark}")


def test_config_of_a_bad_configuration(breaker, ini):
    path = ini("[breaker]\nnonsense = 1\n")
    done = breaker("config", "--config", str(path), code=1)
    assert done.stdout == "" and done.stderr.startswith(f"breaker: {path}:2: nonsense: ")
