"""Our answers come through descriptors that stay open from call to call: the program's own are never touched, and
every answer is whole and for the call that asked (curl/answers.c)."""

from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("curl") / "answers.c"
MODES = ["close-all", "fork", "threads", "cut", "ignore-length", "large"]


@pytest.fixture
def answers(compile_c):
    return compile_c(SOURCE, "-I", SOURCE.parent, "-lcurl", "-pthread", name="answers")


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("mode", MODES)
def test_answers(mode, scheme, answers, breaker_env, provider):
    for number in range(20):
        breaker_env.command("force", "--create", "open", provider.key(f"m{number}"))
    breaker_env.command("force", "--create", "open", provider.key("%" * 250))
    done = breaker_env.run(answers, mode, provider.url().replace("http", scheme, 1))
    assert (done.returncode, done.stderr) == (0, b"")
    assert provider.count() == 0
