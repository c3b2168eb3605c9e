"""The C programs on libcurl that several files run (curl/client*.c)."""

from pathlib import Path

import pytest

CURL = Path(__file__).with_name("curl")


@pytest.fixture
def client(compile_c):
    main = CURL / "client.c"
    parts = sorted(set(CURL.glob("client_*.c")) - {main})
    return compile_c(main, "-I", CURL, *parts, "-Wno-deprecated-declarations", "-lcurl", "-pthread", name="client")


@pytest.fixture
def shut(breaker_env, provider):
    """The model "shut" of the provider is refused."""
    breaker_env.configure(open_seconds=60)
    breaker_env.command("trip", "--create", provider.key("shut"))
