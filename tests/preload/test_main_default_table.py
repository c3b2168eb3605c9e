"""The table that nobody named: /dev/shm/breaker-<uid>/table.v1, in a mount namespace with a /dev/shm of its own."""

import json
import os
import subprocess

import pytest

from provider import Answer
from support import chat

SMALL_SHM = "mount -t tmpfs -o size=2m tmpfs /dev/shm && {{ {script}; }}"


@pytest.fixture
def in_namespace(breaker_env):
    """Runs a shell script where /dev/shm is a small tmpfs of its own; BREAKER_TABLE is not set."""
    probe = subprocess.run(["unshare", "-m", "true"], capture_output=True)
    if os.geteuid() != 0 or probe.returncode != 0:
        pytest.skip("needs root and mount namespaces: " + probe.stderr.decode().strip())
    environment = {k: v for k, v in breaker_env.environment.items() if k != "BREAKER_TABLE"}

    def run(script):
        return subprocess.run(["unshare", "-m", "sh", "-c", SMALL_SHM.format(script=script)], env=environment,
                              cwd=breaker_env.directory, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=50)

    return run


def test_all_processes_of_a_user_share_it(in_namespace, breaker_env, provider):
    provider.answer(Answer(500))
    call = f"{breaker_env.program} run -- curl -s -o /dev/null -w '%{{http_code}} ' -d '{chat('m')}' {provider.url()}"
    done = in_namespace(f"""umask 000; for i in 1 2 3 4 5 6 7; do {call}; done; echo
        (cd / && env -u HOME {call}); echo
        stat -c '%a %u %F' /dev/shm/breaker-0 /dev/shm/breaker-0/table.v1
        {breaker_env.program} status --json""")
    assert (done.returncode, done.stderr) == (0, "")
    calls, elsewhere, directory, file, status = done.stdout.split("\n", 4)
    assert calls.split() == ["500"] * 5 + ["503"] * 2 and elsewhere.split() == ["503"]
    assert (directory, file) == ("700 0 directory", "600 0 regular file")
    told = json.loads(status)
    assert told["table"]["path"] == "/dev/shm/breaker-0/table.v1"
    assert {b["key"]: b["state"] for b in told["breakers"]}[provider.key("m")] == "open"
    assert provider.count() == 5


def test_another_user_has_another(in_namespace, breaker_env, provider):
    breaker_env.directory.chmod(0o711)
    breaker_env.ini.unlink()
    own = f"env -u BREAKER_CONFIG -u BREAKER_LOG HOME=/ {breaker_env.program}"
    done = in_namespace(f"""{own} trip --create {provider.key('m')} >/dev/null
        setpriv --reuid 65534 --regid 65534 --clear-groups {own} status --json
        setpriv --reuid 65534 --regid 65534 --clear-groups {own} trip --create other.org/m >/dev/null
        stat -c '%a %u' /dev/shm/breaker-65534/table.v1""")
    status, _, owner = done.stdout.strip().rpartition("\n")
    assert json.loads(status)["breakers"] == [] and owner == "600 65534", done
