"""Every way of using libcurl that the C programs know, under valgrind: nothing of ours is read or written that is not
there. Minutes, so not in `make check`: `make check-valgrind`."""

import re
from pathlib import Path

import pytest

CURL = Path(__file__).with_name("curl")
VALGRIND = ["valgrind", "-q", "--error-exitcode=9"]
# Thousands of handles, closed standard descriptors, a name that is not this machine's, a newer libcurl.
NOT_HERE = {"crowd", "closed", "signed", "notify", "version"}
MODES = sorted({mode for file in CURL.glob("client_*.c") for mode in re.findall(r'\{"([a-z0-9-]+)",', file.read_text())}
               | set(re.findall(r'\{"([a-z0-9-]+)",', (CURL / "client.c").read_text())))
OTHERS = {"late": ["read-data", "copied", "copied-starved", "mime-copy", "mime-replaced", "methods", "curlu", "no-body", "error-buffer"],
          "tangle": ["stranger", "timer", "cleanup", "cleanup-body", "no-multi"],
          "answers": ["fork", "cut", "ignore-length", "large"]}


def assert_clean(done):
    assert b"==" not in done.stderr, done.stderr.decode(errors="replace")[-4000:]


@pytest.fixture(params=[False, True], ids=["closed", "open"])
def opened(request, breaker_env, provider):
    breaker_env.configure(open_seconds=60)
    if request.param:
        for model in ("shut", "m", *(f"m{number}" for number in range(20))):
            breaker_env.command("trip", "--create", provider.key(model))


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode not in NOT_HERE])
def test_client(mode, opened, client, breaker_env, provider):
    path = "/v1/audio/transcriptions" if mode in ("mime", "form") else "/v1/chat/completions"
    assert_clean(breaker_env.run(*VALGRIND, client, mode, provider.url(path)))


@pytest.mark.parametrize("program, mode", [(program, mode) for program, modes in OTHERS.items() for mode in modes])
def test_others(program, mode, opened, compile_c, breaker_env, provider):
    made = compile_c(CURL / f"{program}.c", "-I", CURL, "-lcurl", "-pthread", name=program)
    number = ["4"] if program == "tangle" else []
    assert_clean(breaker_env.run(*VALGRIND, made, mode, provider.url(), *number))
