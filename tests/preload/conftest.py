"""What several files share: the C programs on libcurl (curl/client*.c), clients to talk to, breakers that refuse,
with fallbacks, providers that take their time."""

import functools
import shutil
import subprocess
from pathlib import Path

import pytest

from fallbacks import chain
from sock_programs import CLIENTS, KNOWN, Conversation

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


@pytest.fixture(scope="session")
def java(made_once):
    """SockClient, compiled; None without a JDK of 11 or later."""
    if not (shutil.which("java") and shutil.which("javac")):
        return None

    def make(directory):
        done = subprocess.run(["javac", "--release", "11", "-d", directory, CLIENTS / "SockClient.java"],
                              capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr

    return ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-cp", made_once("java", make), "SockClient"]


@pytest.fixture
def program(java):
    """program(NAME): the client's command. Skips what is not here and not in scripts/deps either."""

    def find(name):
        if name != "java":
            return KNOWN[name].argv
        if not java:
            pytest.skip("no java and javac: too large for scripts/deps; default-jdk-headless has them")
        return java

    return find


@pytest.fixture
def talk(program, breaker_env):
    """talk(NAME, *FLAGS): that client on sockets of its own, under the breaker, to be asked call by call."""

    def start(name, *flags, **options):
        return Conversation(breaker_env.start(*program(name), *flags, "-", stdin=subprocess.PIPE, **options))

    return start


@pytest.fixture
def configure(breaker_env):
    """Fallbacks, and an open time that no test outlives."""

    def configure_it(primary, *fallbacks, **keys):
        breaker_env.configure(chain(primary, *fallbacks, **keys), open_seconds=60)

    return configure_it


@pytest.fixture
def tripped(breaker_env, configure):
    """The primary refuses, told by hand; it is alive. `key` names another breaker."""

    def trip_it(primary, *fallbacks, key=None, **keys):
        configure(primary, *fallbacks, **keys)
        breaker_env.command("trip", "--create", key or primary.key())

    return trip_it


@pytest.fixture
def refusing(provider, tripped):
    """The same of the one provider that most tests have."""
    return functools.partial(tripped, provider)


@pytest.fixture
def reply(provider, monkeypatch):
    """reply(PART, ...): what the provider sends, bytes or the seconds between two of them; then it waits for the
    client to go."""

    def set_it(*parts):
        def send(self, connection, request, answer):
            for part in parts:
                if isinstance(part, bytes):
                    connection.sendall(part)
                else:
                    self._stopping.wait(part)
            self._wait_for_client(connection)
            return False

        monkeypatch.setattr(type(provider), "_reply", send)

    return set_it
