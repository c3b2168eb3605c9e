"""The tests' own servers: what a listener of one test must not do to the next test."""

import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest

import sock_programs
from provider import wait_until
from support import PYTHON

TESTS = Path(__file__).resolve().parents[1]

# Says "ready" once the acceptor is closed and its descriptor is another listener's; the next line says by whom that one's
# connection was taken.
AFTER_CLOSE = """
import pathlib, socket, sys, threading
from listeners import accepting
from provider import wait_until
taken = []
first = accepting(lambda connection: taken.append(connection))
number = first._listener.fileno()
call = pathlib.Path(f"/proc/self/task/{{first._thread.native_id}}/syscall")
wait_until(lambda: call.read_text().split()[1:2] == [hex(number)], what="accept()")
{close}
second = socket.create_server(("127.0.0.1", 0))
assert second.fileno() == number
print("ready", flush=True)
sys.stdin.readline()
with socket.create_connection(second.getsockname()) as client:
    wait_until(lambda: taken or threading.active_count() == 1, what="the first, if it is still there")
    if taken:
        print("the first")
    else:
        second.accept()
        print("the second")
"""


def stopped(process):
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


@pytest.mark.parametrize("close, taker", [("first.close()", "the second"), ("first._listener.close()", "the first")],
                         ids=["closed", "closed under its thread"])
def test_a_closed_listener_takes_nothing_from_the_next_one(close, taker):
    """When the process is stopped and goes on, the kernel begins waiting system calls anew, by their numbers."""
    with subprocess.Popen([PYTHON, "-c", AFTER_CLOSE.format(close=close)], cwd=TESTS, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: stopped(process), what="the stop")
        process.send_signal(signal.SIGCONT)
        assert process.communicate("\n", timeout=30) == (taker + "\n", None)
    assert process.returncode == 0


def test_nothing_else_accepts():
    """Who waits in accept() by hand closes under a thread, sooner or later. The benches' own listener ends by shutdown."""
    named = {TESTS / "listeners.py", Path(__file__).resolve()}
    files = [path for path in TESTS.rglob("*.py") if path not in named and TESTS / "bench" not in path.parents]
    assert len(files) > 100
    assert [str(path) for path in files if re.search(r"\.accept\(\)", path.read_text())] == []


def test_a_port_that_is_taken_at_one_address_is_not_chosen(monkeypatch):
    if sock_programs.no_ipv6():
        pytest.skip(f"no IPv6 on this machine's loopback: {sock_programs.no_ipv6()}")
    others, real = [], socket.socket.bind

    def taken_twice(self, address):
        if address[0] == "::1" and len(others) < 2:
            others.append(socket.socket(socket.AF_INET6))
            real(others[-1], address)
        real(self, address)

    monkeypatch.setattr(socket.socket, "bind", taken_twice)
    with sock_programs.port_of_localhost() as port:
        assert len(others) == 2 and port not in [other.getsockname()[1] for other in others]
    for other in others:
        other.close()
