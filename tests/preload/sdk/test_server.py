"""Issue 6, item 5: a server of many workers, started as root and dropped to another user, that asks a provider with all
sorts of faults. All workers share one breaker; no answer is wrong, none hangs, and memory does not grow.

A few seconds here; BREAKER_CHECK_SOAK=600 makes it ten minutes of sixteen workers.
"""

import http.client
import json
import os
import random
import shutil
import signal
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from listeners import bound
from provider import DEADLINE, wait_until
from sdk_provider import ApiProvider
from servers import listening
from tls_servers import trust

HERE = Path(__file__).parent
SOAK = float(os.environ.get("BREAKER_CHECK_SOAK", 0))
SECONDS, WORKERS = (SOAK, 16) if SOAK else (8, 4)
CLIENTS = 8
NOBODY = 65534
MODELS = [f"model-{number}" for number in range(6)]
STATES = ["healthy", "healthy", "healthy", "500", "503", "529", "429", "broken", "cut", "hang"]
# What a program may see of them: the SDK's exceptions, and what is ours.
ERRORS = {"InternalServerError", "RateLimitError", "APIError", "APITimeoutError", "APIConnectionError",
          "RemoteProtocolError", "ReadError", "ReadTimeout"}
TARGETS = """
[target provider]
match = {host}
[target first]
match = {host}/500-first
open_seconds = 60
"""


class Moody(ApiProvider):
    """What a model gets changes as the test says."""

    pause = "2"  # shorter ones park nobody

    def __init__(self, **options):
        self.moods = {}
        super().__init__(**options)

    def state_of(self, model):
        return self.moods.get(model) or super().state_of(model)


@pytest.fixture
def moody(sdk_tls):
    with Moody(tls=sdk_tls) as running:
        yield running


@pytest.fixture
def open_directory():
    """One that the workers may use, whoever they are; pytest's own are root's alone."""
    directory = Path(tempfile.mkdtemp(prefix="breaker-server-"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


class Service:
    """The running server, to be asked by many."""

    def __init__(self, process, port):
        self.process, self.port = process, port

    def ask(self, model, stream=False):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)
        try:
            connection.request("GET", f"/{model}{'?stream' if stream else ''}")
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            return json.loads(answer.read())
        finally:
            connection.close()


@pytest.fixture
def service(sdk_python, breaker_env, moody, names, named, authority, open_directory):
    """gunicorn with its workers; as root they are nobody's, and so is the table."""
    held, host = bound(), named("openai")
    port = held.getsockname()[1]
    ca = open_directory / "ca.pem"
    shutil.copy(authority.ca, ca)
    (open_directory / "shm").mkdir(0o700)
    options = []
    if os.getuid() == 0:
        os.chown(open_directory / "shm", NOBODY, NOBODY)
        options = ["--user", NOBODY, "--group", NOBODY]
    breaker_env.ini = open_directory / "breaker.ini"
    breaker_env.configure(TARGETS.format(host=moody.key(name=host)), open_seconds=0.5, hang_after=0.5)
    breaker_env.ini.chmod(0o644)
    environment = {**dict.fromkeys(trust(authority), str(ca)), "PROVIDER": moody.url("", host), "PROVIDER_TIMEOUT": "1",
                   "BREAKER_TABLE": str(open_directory / "shm" / "table"), "BREAKER_CONFIG": str(breaker_env.ini)}
    command = [sdk_python, "-m", "gunicorn", "-k", "uvicorn_worker.UvicornWorker", "--preload", "--workers", WORKERS,
               *options, "--worker-tmp-dir", open_directory, "--graceful-timeout", 10, "--log-level", "warning",
               "--chdir", HERE, "--bind", f"127.0.0.1:{port}", "server_app:app"]
    process = breaker_env.start(*(names(*command) if names else command), env=environment, start_new_session=True)
    wait_until(lambda: process.poll() is not None or listening(port), 40, "gunicorn listens")
    assert process.poll() is None, process.stderr.read().decode()
    yield Service(process, port)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)  # workers do not end with a killed master
    held.close()


def is_right(said):
    """The whole text, or an error that there was, or ours."""
    if "text" in said:
        return said["text"] == "hello"
    return (said["error"] in ERRORS and said["status"] in (None, 200, 429, 500, 503, 529)
            and said["code"] in (None, "scripted", "circuit_open", "cooling_down"))


def change_moods(moody, stop):
    """A model's state every quarter of a second, and now and then nobody listens."""
    while not stop.wait(0.25):
        moody.moods[random.choice(MODELS)] = random.choice(STATES)
        if random.random() < 0.1:
            moody.refuse()
            stop.wait(0.2)
            moody.listen()


def ask_until(service, end):
    """(when, answer) of one client's calls."""
    told = []
    while time.monotonic() < end:
        start = time.monotonic()
        said = service.ask(random.choice(MODELS), random.random() < 0.5)
        assert is_right(said), said
        assert time.monotonic() - start < DEADLINE
        told.append((start, said))
    return told


def resident_by_process(told, since, until):
    """The most memory of each process that answered in that time."""
    most = {}
    for when, said in told:
        if since <= when < until:
            most[said["process"]] = max(most.get(said["process"], 0), said["resident"])
    return most


@pytest.mark.time_limit(int(SECONDS) + 120)
def test_server(service, moody):
    with ThreadPoolExecutor(CLIENTS) as pool:
        # Five failures of them all, and what was on its way then.
        said = list(pool.map(lambda _: service.ask("500-first"), range(10 * CLIENTS)))
        reached = [one for one in said if one["code"] == "scripted"]
        assert 5 <= len(reached) == moody.count(model="500-first") < 5 + CLIENTS
        assert {one["code"] for one in said if one not in reached} == {"circuit_open"}
        assert len({one["process"] for one in said if one not in reached}) > 1

        stop, start = threading.Event(), time.monotonic()
        moods = pool.submit(change_moods, moody, stop)
        try:
            told = [one for told in pool.map(lambda _: ask_until(service, start + SECONDS), range(CLIENTS - 1)) for one in told]
        finally:
            stop.set()
        moods.result()
    assert any(one.get("code") == "circuit_open" for _, one in told)
    moody.healed, moody.moods = True, {}
    for model in MODELS:
        wait_until(lambda: all(service.ask(model).get("text") == "hello" for _ in range(3)), what=f"{model} is well")
    if SOAK:
        early = resident_by_process(told, start + SECONDS / 4, start + SECONDS / 2)
        late = resident_by_process(told, start + 3 * SECONDS / 4, start + SECONDS)
        grown = {process: late[process] - early[process] for process in late if process in early}
        assert len(grown) == WORKERS and max(grown.values()) < 4096, grown
    service.process.send_signal(signal.SIGTERM)
    _, error = service.process.communicate(timeout=30)
    assert (service.process.returncode, error) == (0, b"")
