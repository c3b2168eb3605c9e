"""The clients that open their own sockets (clients/sock_*; sock_python.py tells their command line), kept running and
asked for one call after the other."""

import collections
import contextlib
import errno
import hashlib
import socket
import subprocess
from pathlib import Path

from listeners import bound
from support import PYTHON

CLIENTS = Path(__file__).parent / "clients"
REFUSED, TIMEOUT = "error refused", "error timeout"
OPEN = "status 503 circuit_open"  # our answer, without its digest


# argv: the program; kept: whether its calls share a connection.
Client = collections.namedtuple("Client", "argv kept", defaults=(True,))

ALL = {name: Client([PYTHON, CLIENTS / "sock_python.py", name])
       for name in ("http.client", "requests", "urllib3", "httpx", "httpx-async", "aiohttp")}
ALL |= {
    "fetch": Client(["node", CLIENTS / "sock_node.js", "fetch"]),
    "node-http": Client(["node", CLIENTS / "sock_node.js", "http"]),
    "ruby": Client(["ruby", CLIENTS / "sock_ruby.rb"]),
    "lwp": Client(["perl", CLIENTS / "sock_lwp.pl"]),
    "php": Client(["php", CLIENTS / "sock_streams.php"], kept=False),
    "java": Client(None),  # compiled once: see the fixture `program`
    "wget": Client(["bash", CLIENTS / "sock_wget.sh"], kept=False),
    "bash": Client(["bash", CLIENTS / "sock_devtcp.sh"]),
}
# Covered by libcurl's hooks: what is counted for it is what must be counted for the others.
MEASURE = {"pycurl": Client([PYTHON, CLIENTS / "sock_python.py", "pycurl"])}
# One time-out for the whole call, whatever addresses there are.
MORE = {"aiohttp-total": Client([PYTHON, CLIENTS / "sock_python.py", "aiohttp-total"])}
KNOWN = ALL | MEASURE | MORE
# bash writes by stdio, whose system calls are glibc's own and pass by every hook: nothing is known of its requests.
HTTP = {name: client for name, client in ALL.items() if name != "bash"}


class Conversation:
    """One running client: `ask` for a call, get its line. It ends with the environment's other programs."""

    def __init__(self, process):
        self.process = process

    def ask(self, url, model="m", *how):
        """`status CODE MARK` or `error KIND`; the digest of the body is in .digest then."""
        self.process.stdin.write(" ".join((url, model, *how)).encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline().decode().rstrip("\n")
        if not line:
            raise AssertionError(f"the client ended: {self.process.wait(10)}: {self.process.stderr.read().decode()}")
        return line_of(line, self)

    def ask_often(self, number, url, model="m", *how):
        return [self.ask(url, model, *how) for _ in range(number)]

    def end(self):
        """Lets it come to its own end, which must be a good one."""
        _, error = self.process.communicate(timeout=20)
        assert self.process.returncode == 0, (self.process.returncode, error.decode())


def line_of(line, conversation=None):
    words = line.split(" ")
    if conversation:
        conversation.digest = words[3] if words[0] == "status" else None
    return " ".join(words[:3])


def lines_of(output, code, error):
    """What a client that came to its end has said."""
    assert code == 0, (code, output, error)
    return [line_of(line) for line in output.decode().splitlines()]


def digest_of(body):
    return hashlib.sha256(body).hexdigest()[:16]


@contextlib.contextmanager
def black_hole(host="127.0.0.1", port=0):
    """A port that answers no SYN: its accept queue is full, and nobody accepts."""
    with bound(host, port) as server, contextlib.ExitStack() as stack:
        server.listen(0)
        for _ in range(8):
            filler = stack.enter_context(socket.socket(server.family))
            filler.settimeout(0.1)  # loopback answers in microseconds, or not at all
            try:
                filler.connect(server.getsockname())
            except TimeoutError:
                break
        else:
            raise AssertionError("the accept queue has no end")
        yield server.getsockname()[1]


class Names:
    """Commands that see an /etc/hosts of our own, in a mount namespace of their own."""

    SHELL = 'mount --bind "$0" /etc/hosts && exec "$@"'

    def __init__(self, directory, text):
        self.hosts = directory / "hosts"
        self.hosts.write_text(text)
        self.prefix = None
        for flags in (["--mount"], ["--map-root-user", "--mount"]):
            prefix = ["unshare", *flags, "sh", "-c", self.SHELL, str(self.hosts)]
            done = subprocess.run([*prefix, "true"], capture_output=True, text=True, timeout=20)
            if done.returncode == 0:
                self.prefix = prefix
                break
            self.trouble = done.stderr.strip()

    def __call__(self, *command):
        return [*self.prefix, *command]


def no_ipv6():
    """Why there is none, or None."""
    try:
        bound("::1").close()
    except OSError as error:
        return str(error)
    return None


@contextlib.contextmanager
def port_of_localhost():
    """A port that is held at 127.0.0.1 and at ::1."""
    with contextlib.ExitStack() as stack:
        for _ in range(100):
            port = stack.enter_context(bound()).getsockname()[1]
            try:
                stack.enter_context(bound("::1", port))
            except OSError as error:  # what is free at one address need not be at the other
                assert error.errno == errno.EADDRINUSE, error
                continue
            yield port
            return
        raise AssertionError("no port is free at both addresses")
