"""The SDKs' Python, the two ways to a provider that speaks their APIs, and a program of an SDK to be asked call by call."""

import hashlib
import json
import subprocess
from pathlib import Path

import pytest

from provider import server_tls
from sdk_provider import ApiProvider
from sock_programs import Names
from support import PYTHON
from tls_servers import make_certificate, trust

HERE = Path(__file__).parent
# The names that the providers have, so that dialects and known hosts are what they are outside.
HOSTS = {"openai": "api.openai.com", "anthropic": "api.anthropic.com", "google-genai": "generativelanguage.googleapis.com",
         "mistralai": "api.mistral.ai", "cohere": "api.cohere.com", "groq": "api.groq.com",
         "boto3": "bedrock-runtime.us-east-1.amazonaws.com", "litellm": "api.deepseek.com",
         "langchain-openai": "openrouter.ai"}


@pytest.fixture(scope="session")
def sdk_python(build):
    """The Python that has the SDKs (scripts/sdks, which make check runs)."""
    directory = build / "sdk"
    version = subprocess.run([PYTHON, "--version"], capture_output=True, timeout=20).stdout
    wanted = hashlib.sha256((HERE / "requirements.txt").read_bytes() + version).hexdigest()
    made = directory / "made-of"
    if made.exists() and made.read_text().strip() == wanted:
        return directory / "bin" / "python"
    why = directory / "why-not"
    pytest.skip(why.read_text().strip() if why.exists() else f"no SDKs: run scripts/sdks {directory}")


@pytest.fixture
def names(tmp_path):
    """Makes commands for which the providers' names are this machine; None where that cannot be."""
    names = Names(tmp_path, f"127.0.0.1 localhost {' '.join(HOSTS.values())}\n")
    return names if names.prefix else None


@pytest.fixture(params=["http", "https"])
def transport(request):
    return request.param


@pytest.fixture(scope="session")
def sdk_tls(authority, tmp_path_factory):
    """A server that has the providers' names."""
    names = ["localhost", *HOSTS.values()]
    return server_tls(*make_certificate(authority, tmp_path_factory.mktemp("sdk"), *names))


@pytest.fixture
def api(transport, sdk_tls):
    with ApiProvider(tls=sdk_tls if transport == "https" else None) as running:
        yield running


class Program:
    """A running program of an SDK: `ask` for a call, get what became of it."""

    def __init__(self, process, url):
        self.process, self.url = process, url

    def ask(self, model, way="chat", stream=False, is_async=False, **order):
        order = {"url": self.url, "model": model, "way": way, "stream": stream, "async": is_async, "timeout": 20, **order}
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the program ended: {self.process.wait(10)}: {self.process.stderr.read().decode()}"
        return json.loads(line)

    def end(self):
        _, said = self.process.communicate(timeout=20)
        assert (self.process.returncode, said) == (0, b"")


@pytest.fixture
def sdk_environment(authority):
    """They trust the test's authority, and look nothing up by themselves."""
    return {**trust(authority), "AWS_CA_BUNDLE": str(authority.ca), "AWS_EC2_METADATA_DISABLED": "true",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True"}


@pytest.fixture
def named(names):
    """named(SDK): the name of its provider, where names can be given; else localhost."""
    return lambda sdk: HOSTS[sdk] if names else "localhost"


@pytest.fixture
def program(sdk_python, breaker_env, api, names, named, sdk_environment):
    """program(SDK): a program that uses it, under the breaker, and asks its own provider, or that of this name."""

    def start(sdk, host=None):
        command = [sdk_python, HERE / "sdk_program.py", sdk]
        process = breaker_env.start(*(names(*command) if names else command), env=sdk_environment,
                                    stdin=subprocess.PIPE)
        return Program(process, api.url("", name=host or named(sdk)))

    return start
