"""The C programs on libcurl that several files run (curl/client*.c)."""

from pathlib import Path

import pytest

CURL = Path(__file__).with_name("curl")


@pytest.fixture
def compile_client(compile_c):
    def compile_it(*flags):
        parts = sorted(CURL.glob("client_*.c"))
        return compile_c(CURL / "client.c", "-I", CURL, *parts, "-Wno-deprecated-declarations", *flags, "-lcurl",
                         "-pthread", name="client")

    return compile_it


@pytest.fixture
def client(compile_client):
    return compile_client()


@pytest.fixture
def shut(breaker_env, provider):
    """The model "shut" of the provider is refused."""
    breaker_env.configure(open_seconds=60)
    breaker_env.command("trip", "--create", provider.key("shut"))
