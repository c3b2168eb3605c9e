"""Issue 2, item 9: a bad breaker.ini lets calls pass; a bad reload keeps the last good. (Of tables: test_hostile_files.py.)"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from provider import Answer, wait_until
from support import PYTHON, chat

CLIENT = Path(__file__).parent / "clients" / "client_pycurl.py"


def bare_preload(breaker_env, *command, **changes):
    return subprocess.run([str(c) for c in command], env=breaker_env.preloaded(**changes), cwd=breaker_env.directory,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=30)


def assert_calls_pass(breaker_env, provider, number=8, **changes):
    """Every process calls through, silently, although all calls fail."""
    provider.answer(Answer(500))
    provider.clear()
    for _ in range(number):
        done = bare_preload(breaker_env, "curl", "-s", "-d", chat("m"), provider.url(), **changes)
        assert (done.returncode, done.stdout, done.stderr) == (0, Answer(500).payload(), b"")
    assert provider.count() == number


# --- breaker.ini ---------------------------------------------------------------------------------

BAD = {
    "unknown section": "[braeker]\nfailure_threshold = 3\n",
    "unknown key": "[breaker]\nfailure_treshold = 3\n",
    "not a number": "[breaker]\nfailure_threshold = three\n",
    "out of range": "[breaker]\nfailure_threshold = 100000\n",
    "duplicate": "[breaker]\nfailure_threshold = 3\nfailure_threshold = 3\n",
    "NUL": b"[breaker]\nfailure_threshold = 3\0\n",
    "long line": "[breaker]\n# " + "x" * 1_000_000 + "\nfailure_threshold = " + "3" * 1_000_000 + "\n",
    "no section": "failure_threshold = 3\n",
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_a_bad_ini_at_first_load_lets_calls_pass(text, provider, breaker_env):
    breaker_env.configure_raw(text)
    breaker_env.command("check", str(breaker_env.ini), code=1)
    assert_calls_pass(breaker_env, provider)


@pytest.mark.parametrize("mode", [0o666, 0o602, 0o620])
def test_an_ini_that_others_may_write(mode, provider, breaker_env):
    breaker_env.ini.chmod(mode)
    assert_calls_pass(breaker_env, provider)


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file away")
def test_an_ini_of_another_user(provider, breaker_env):
    os.chown(breaker_env.ini, 65534, 65534)
    assert_calls_pass(breaker_env, provider)


@pytest.mark.parametrize("text", [b"\xef\xbb\xbf[breaker]\nfailure_threshold = 3\nopen_seconds = 60\n",
                                  b"[breaker]\r\nfailure_threshold = 3\r\nopen_seconds = 60\r\n"], ids=["BOM", "CRLF"])
def test_bom_and_crlf_are_accepted(text, provider, curl, breaker_env):
    breaker_env.configure_raw(text)
    provider.answer(Answer(500))
    assert [curl(provider.url()).status for _ in range(4)] == [500, 500, 500, 503]


def test_a_breaker_ini_in_the_working_directory_is_not_read(provider, breaker_env):
    """A cloned repository must not be able to set anything."""
    breaker_env.configure(failure_threshold=1)
    provider.answer(Answer(500))
    assert breaker_env.ini.parent == breaker_env.directory
    for _ in range(3):
        bare_preload(breaker_env, "curl", "-s", "-d", chat("m"), provider.url(), BREAKER_CONFIG="")
    assert provider.count() == 3


def test_the_home_directorys_ini_is_read(provider, breaker_env):
    home = Path(breaker_env.environment["HOME"]) / ".config" / "breaker"
    home.mkdir(parents=True)
    breaker_env.configure(failure_threshold=1, open_seconds=60)
    breaker_env.ini.rename(home / "breaker.ini")
    environment = {k: v for k, v in breaker_env.preloaded().items() if k != "BREAKER_CONFIG"}
    provider.answer(Answer(500))
    for _ in range(3):
        subprocess.run(["curl", "-s", "-d", chat("m"), provider.url()], env=environment, capture_output=True, timeout=30)
    assert provider.count() == 1


def test_settings_of_the_environment_and_of_set(provider, curl, breaker_env):
    provider.answer(Answer(500))
    for _ in range(3):
        curl(provider.url(), env={"BREAKER_FAILURE_THRESHOLD": "2", "BREAKER_OPEN_SECONDS": "60"})
    assert provider.count() == 2
    breaker_env.command("reset", "--all")
    provider.clear()
    for _ in range(4):
        subprocess.run([breaker_env.program, "run", "--set", "failure_threshold=3", "--set", "open_seconds=60", "--", "curl",
                        "-s", "-d", chat("m"), provider.url()],
                       env={**breaker_env.environment, "BREAKER_FAILURE_THRESHOLD": "2"}, capture_output=True, timeout=30)
    assert provider.count() == 3


class Asker:
    """One long-lived process that calls when it is told to."""

    def __init__(self, breaker_env, url):
        self.process = breaker_env.start(PYTHON, CLIENT, "repl", stdin=subprocess.PIPE)
        self.url = url

    def __call__(self, model):
        self.process.stdin.write(f"{self.url} {model}\n".encode())
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())["status"]


def test_a_change_is_picked_up(provider, breaker_env):
    breaker_env.configure(failure_threshold=0)
    provider.answer(Answer(500))
    ask = Asker(breaker_env, provider.url())
    assert [ask("m") for _ in range(8)] == [500] * 8
    breaker_env.configure(failure_threshold=1, open_seconds=60)
    wait_until(lambda: ask("m") == 503, 5, "the new threshold")


@pytest.mark.parametrize("text", ["[breaker]\nfailure_threshold = many\n", "[nonsense", None],
                         ids=["bad value", "bad syntax", "gone"])
def test_a_bad_reload_keeps_the_last_good(text, provider, breaker_env):
    breaker_env.configure(failure_threshold=2, open_seconds=60)
    provider.answer(Answer(500))
    ask = Asker(breaker_env, provider.url())
    assert [ask("one") for _ in range(3)] == [500, 500, 503]
    if text is None:
        breaker_env.ini.chmod(0o666)
    else:
        breaker_env.configure_raw(text)
    wait_until(lambda: ask("one") == 503 and breaker_env.events(event="config"), 10, "the trouble in the log")
    assert [ask("two") for _ in range(3)] == [500, 500, 503], "the last good ini holds"
    breaker_env.configure(failure_threshold=3, open_seconds=60)
    wait_until(lambda: not (ask("spare") == 503), 5)
    models = iter(range(100))

    def three():
        model = f"new{next(models)}"
        return [ask(model) for _ in range(4)] == [500, 500, 500, 503]

    wait_until(three, 10, "the repaired ini in force")
