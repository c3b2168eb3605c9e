"""Programs in a bad moment (curl/odd.c): what goes wrong once must not stay so, nor spread."""

import subprocess
from pathlib import Path

import pytest

from provider import Answer

SOURCE = Path(__file__).with_name("curl") / "odd.c"


@pytest.fixture
def odd(compile_c):
    return compile_c(SOURCE, "-I", SOURCE.parent, "-I", SOURCE.parents[1] / "sock", "-lcurl", "-pthread", name="odd")


def words_of(done):
    assert (done.returncode, done.stderr) == (0, b""), done
    return done.stdout.decode().split()


def test_a_thread_cancelled_in_the_first_call(odd, breaker_env, provider):
    """open() and read() are cancellation points: no lock may be held there."""
    for run in (breaker_env.run_bare, breaker_env.run):
        assert words_of(run(odd, "cancel-first", provider.url())) == ["cancelled", "200"]


def test_a_thread_cancelled_in_a_reload(odd, breaker_env, provider):
    breaker_env.configure(failure_threshold=0)
    with subprocess.Popen(breaker_env.wrap(odd, "cancel-reload", provider.url()), env=breaker_env.environment,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as program:
        assert [program.stdout.readline() for _ in range(2)] == ["200\n", "ready\n"]
        breaker_env.configure(failure_threshold=0, degrade_threshold=0)
        program.stdin.write("go\n")
        assert program.stdout.readline() == "cancelled\n"
        provider.answer(Answer(500))
        breaker_env.configure(failure_threshold=2, open_seconds=60)
        program.stdin.write("go\n")
        assert program.stdout.readline() == "503\n"


@pytest.mark.parametrize("refused, status", [(False, "200"), (True, "503")], ids=["closed", "open"])
def test_the_smallest_stack(refused, status, odd, breaker_env, provider):
    assert words_of(breaker_env.run_bare(odd, "small-stack", provider.url())) == ["200"]
    if refused:
        breaker_env.command("force", "--create", "open", provider.key("m"))
    assert words_of(breaker_env.run(odd, "small-stack", provider.url())) == [status]


@pytest.mark.parametrize("ini", [True, False], ids=["with ini", "without"])
def test_descriptors_that_come_back(ini, odd, breaker_env, provider):
    """Neither the configuration nor the table is given up for good."""
    breaker_env.command("force", "--create", "open", provider.key("m"))
    env = {} if ini else {"BREAKER_CONFIG": ""}
    assert words_of(breaker_env.run(odd, "without-descriptors", provider.url(), env=env))[-1] == "503"


def test_no_fork_in_the_middle_of_a_search(odd, breaker_env, provider):
    """glibc does not wait for another thread's dlopen: the child would find half of it, and crash in its own."""
    assert words_of(breaker_env.run(odd, "fork", provider.url())) == ["whole"]
