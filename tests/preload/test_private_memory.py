"""Issue 7: the private memory that a process pays for us after a call. Pages, so the load of the machine does not matter.

Two processes of each kind are alive: what they share of the library's own file is nobody's. The table is a shared
mapping, and no page of it counts.
"""

import re
import subprocess
from pathlib import Path

import pytest

from tls_servers import trust

HELPERS = Path(__file__).resolve().parents[1] / "bench/lib"
KIB = 200
PATH = "/v1/chat/completions"


def private_kib(process):
    text = Path(f"/proc/{process.pid}/smaps").read_text()
    mappings = re.findall(r"^[0-9a-f]+-[0-9a-f]+ ...(.) (.*?)^VmFlags", text, re.M | re.S)
    assert len(mappings) > 5, text
    return sum(int(kib) for kind, rest in mappings if kind == "p"
               for kib in re.findall(r"^Private_(?:Clean|Dirty): +(\d+) kB$", rest, re.M))


@pytest.fixture
def private(breaker_env, authority):
    """KiB of a process that has made some calls, and waits for more; the least of two that are alive together."""

    def measure(command, environment):
        processes = []
        try:
            for _ in range(2):
                processes.append(subprocess.Popen([str(word) for word in command], text=True, stdin=subprocess.PIPE,
                                                  stdout=subprocess.PIPE, env={**environment, **trust(authority)}))
                processes[-1].stdin.write("2\n")
                processes[-1].stdin.flush()
                took, status, marked, connects = processes[-1].stdout.readline().split()
                assert (status, marked, connects) == ("200", "0", "1")
            return min(map(private_kib, processes))
        finally:
            for process in processes:
                process.communicate(timeout=50)

    return lambda *command: (measure(command, breaker_env.bare), measure(command, breaker_env.preloaded()))


def check(private, breaker_env, key, *command):
    bare, ours = private(*command)
    assert breaker_env.calls(key)["success"] == 4
    assert 0 < ours - bare <= KIB, (bare, ours)


def test_libcurl(private, breaker_env, benches, provider):
    check(private, breaker_env, provider.key("bench"), benches / "bench_client",
          f"http://127.0.0.1:{provider.port}{PATH}")


def test_sockets(private, breaker_env, benches, provider):
    check(private, breaker_env, provider.key("bench"), benches / "bench_sock", provider.port, PATH)


def test_python_over_tls(private, breaker_env, tls_provider):
    check(private, breaker_env, tls_provider.key("bench", "localhost"), "/usr/bin/python3", "-u",
          HELPERS / "post_tls.py", tls_provider.port, PATH)
