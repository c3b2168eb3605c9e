"""Issue 7, coexistence: other preloads, before and after us, sanitizers, debuggers and tracers. A program under both does
what it does under the other one alone; its calls count, and are refused while the breaker is open."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from provider import Answer
from support import PYTHON, chat
from tls_servers import Tunnel, trust

TESTS = Path(__file__).parents[1]
BENCH, CLIENTS = TESTS / "bench", Path(__file__).parent / "clients"
PATH, NAME = "/v1/chat/completions", "localhost"
# What the provider says to the first calls of a program; the breaker is open for those that follow.
GIVEN = [200, 500, 500]


def library(pattern):
    found = sorted(Path("/usr/lib").glob(f"*-linux-gnu/{pattern}"))
    assert found, f"no {pattern}: scripts/deps check"
    return str(found[0])


# --- the clients: libcurl, sockets, Python's TLS ---------------------------------------------------


class Client:
    """A program that makes four calls, and what its output says of each."""

    def __init__(self, command, server, model, name=None, input=b"", line=lambda line: line):
        self.command, self.server, self.key, self.input, self.line = command, server, server.key(model, name), input, line

    def seen(self, done):
        assert (done.returncode, done.stderr) == (0, b""), done
        return [self.line(line) for line in done.stdout.decode().splitlines()]

    def arm(self):
        self.server.clear()
        self.server.then(*map(Answer, GIVEN))


def without_time(line):
    """bench_sock's: its first word is how long the call took."""
    return line.partition(" ")[2]


@pytest.fixture
def compile_poster(compile_c):
    return lambda *flags, **options: compile_c(BENCH / "bench_sock.c", "-I", BENCH, *flags, name="poster", **options)


@pytest.fixture
def client(request, provider, tls_provider, authority, compile_poster, breaker_env):
    breaker_env.configure(open_seconds=60, failure_threshold=2)
    if request.param == "libcurl":
        urls = [provider.url()] * (len(GIVEN) + 1)
        return Client(["curl", "-s", "-w", " %{http_code} %{num_connects}\n", "-d", chat("m"), *urls], provider, "m")
    if request.param == "sockets":
        return Client([compile_poster(), provider.port, PATH, "fresh"], provider, "bench", input=b"1\n" * (len(GIVEN) + 1),
                      line=without_time)
    for name, value in trust(authority).items():
        breaker_env.environment[name] = breaker_env.bare[name] = value
    url = tls_provider.url(name=NAME)
    return Client([PYTHON, CLIENTS / "sock_python.py", "http.client", url, len(GIVEN) + 1, "m"], tls_provider, "m", NAME)


def assert_covered(client, breaker_env, bare, covered):
    """Two ways to run the client's command, given as functions of it: without us and with us."""
    client.arm()
    expected = client.seen(bare(client.command, client.input))
    assert client.server.count() == len(expected) == len(GIVEN) + 1
    client.arm()
    got = client.seen(covered(client.command, client.input))
    assert got[:len(GIVEN)] == expected[:len(GIVEN)]
    assert len(got) == len(expected) and "503" in got[-1] and got[-1] != expected[-1], got
    assert client.server.count() == len(GIVEN)
    calls = breaker_env.calls(client.key)
    assert (calls["success"], calls["failure"], calls["refused"]) == (1, 2, 1), calls


# --- other preloads ----------------------------------------------------------------------------------

NEIGHBOURS = {"jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4", "eatmydata": "libeatmydata.so",
              "fakeroot": "libfakeroot/libfakeroot-sysv.so", "faketime": "faketime/libfaketime.so.1",
              "proxychains": "libproxychains.so.4"}
every_order = pytest.mark.parametrize("order", ["before us", "after us"])


class Neighbour:
    def __init__(self, name, breaker_env, variables):
        self.library, self.breaker_env, self.variables = library(NEIGHBOURS[name]), breaker_env, variables

    def alone(self, command, input=b""):
        return self.breaker_env.run_bare(*command, input=input, env={**self.variables, "LD_PRELOAD": self.library})

    def with_us(self, order, command, input=b"", **variables):
        pair = [self.library, str(self.breaker_env.library)]
        preload = ":".join(pair if order == "before us" else pair[::-1])
        return subprocess.run([str(word) for word in command], cwd=self.breaker_env.directory, input=input, timeout=50,
                              env=self.breaker_env.preloaded(**{**self.variables, **variables, "LD_PRELOAD": preload}),
                              capture_output=True)


@pytest.fixture
def tunnel():
    with Tunnel() as running:
        yield running


@pytest.fixture
def neighbour(request, breaker_env, tmp_path):
    """Of the name that the test is for; proxychains leads through a proxy of our own."""
    variables = {"faketime": {"FAKETIME": "+1h"}}.get(request.param, {})
    if request.param == "proxychains":
        through = request.getfixturevalue("tunnel")
        settings = tmp_path / "proxychains.conf"
        settings.write_text(f"strict_chain\nquiet_mode\n[ProxyList]\nsocks5 127.0.0.1 {through.port}\n")
        variables = {"PROXYCHAINS_CONF_FILE": str(settings), "PROXYCHAINS_QUIET_MODE": "1"}
    return Neighbour(request.param, breaker_env, variables)


def pairs_but(*without):
    return pytest.mark.parametrize("neighbour,client", [(n, c) for n in NEIGHBOURS
                                                        for c in ("libcurl", "sockets", "python-tls")
                                                        if (n, c) not in without], indirect=True)


@every_order
@pairs_but(("proxychains", "sockets"))
def test_another_preload(neighbour, order, client, breaker_env):
    assert_covered(client, breaker_env, neighbour.alone,
                   lambda command, input: neighbour.with_us(order, command, input))


@every_order
@pytest.mark.parametrize("neighbour,client", [("proxychains", "sockets")], indirect=True)
def test_clear_text_that_proxychains_leads_elsewhere(neighbour, order, client, breaker_env, tunnel):
    """A documented limit: its bytes begin with those of SOCKS, no request of HTTP. They pass."""
    client.arm()
    bare = client.seen(neighbour.alone(client.command, client.input))
    client.arm()
    assert client.seen(neighbour.with_us(order, client.command, client.input)) == bare
    assert tunnel.asked == [client.server.port] * 2 * len(bare) and breaker_env.breakers() == {}


@every_order
@pytest.mark.parametrize("neighbour", ["proxychains"], indirect=True)
def test_a_refused_call_asks_no_proxy(neighbour, order, breaker_env, provider, tunnel):
    """libcurl 7.88.0 and 7.88.1 connect the socketpair of our answer: proxychains must not lead that away."""
    breaker_env.command("trip", "--set", "open_seconds=60", "--create", provider.key("m"))
    done = neighbour.with_us(order, ["curl", "-s", "-w", "%{http_code} %{errormsg}", "-d", chat("m"), provider.url()])
    assert done.stdout.endswith(b"503 ") and b"circuit_open" in done.stdout, done
    assert tunnel.asked == []


# --- clocks that tell other times -----------------------------------------------------------------------

ODD_TIMES = {"ahead": "+1h", "behind": "-400d", "absolute": "@2020-01-01 00:00:00", "standing still": "2020-01-01 00:00:00",
             "fast": "+0 x1000"}


@pytest.fixture
def post_at(breaker_env, provider):
    """post_at(FAKETIME, ORDER): a call of curl then and there, its status and curl's code; None: by the true time."""
    true_time = Neighbour("faketime", breaker_env, {})

    def post(time, order="after us", *flags):
        command = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code} %{exitcode}", "-d", chat("m"), *flags, provider.url()]
        done = breaker_env.run(*command) if time is None else true_time.with_us(order, command, FAKETIME=time)
        return done.stdout.decode()

    return post


@every_order
@pytest.mark.parametrize("time", ODD_TIMES.values(), ids=list(ODD_TIMES))
def test_the_table_keeps_the_true_time(time, order, provider, breaker_env, post_at):
    """It is shared with programs of other times: what one opens is open for all, and as long for all."""
    breaker_env.configure(open_seconds=60, failure_threshold=1)
    provider.answer(Answer(500))
    key = provider.key("m")
    for opener, other in ((time, None), (None, time)):
        breaker_env.command("reset", "--all")
        assert post_at(opener, order) == "500 0"
        assert 50_000 < breaker_env.breakers()[key]["retry_in_ms"] <= 61_000
        assert [post_at(other, order), post_at(opener, order)] == ["503 0"] * 2
        assert breaker_env.state(key) == "open" and breaker_env.breakers()[key]["opened"] == 1
    days = {event["time"][:10] for event in breaker_env.events()}
    assert max(days) >= min(days) > "2026" and len(days) <= 2  # midnight may come in between


def test_the_tool_keeps_the_true_time(provider, breaker_env):
    times = {"LD_PRELOAD": library(NEIGHBOURS["faketime"]), "FAKETIME": "@2020-01-01 00:00:00"}
    trip = [str(breaker_env.program), "trip", "--set", "open_seconds=60", "--create", provider.key("m")]
    subprocess.run(trip, env={**breaker_env.environment, **times}, check=True, timeout=30, capture_output=True)
    assert 50_000 < breaker_env.breakers()[provider.key("m")]["retry_in_ms"] <= 67_000


# --- users that are none ----------------------------------------------------------------------------------

# Its own /dev/shm; then as nobody: a call, one under fakeroot, and whose tables there are.
AS_NOBODY = r"""
mount -t tmpfs -o size=2m none /dev/shm && chmod 1777 /dev/shm || exit 9
exec setpriv --reuid 65534 --regid 65534 --clear-groups sh -c '
    "$0" run -- "$@" && fakeroot "$0" run -- "$@" && fakeroot id -u && fakeroot "$0" status | grep -c " open " && ls /dev/shm
' "$0" "$@"
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_fakeroot_makes_nobody_root(provider, breaker_env, build):
    """Whom a table belongs to is the kernel's word: the user's own is used, root's is not made in its place."""
    breaker_env.configure(failure_threshold=2, open_seconds=60)
    provider.answer(Answer(500))
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        for name in ("breaker", "libbreaker.so"):
            shutil.copy(build / name, directory)
        post = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}\n", "-d", chat("m"), provider.url()]
        env = {**breaker_env.bare, "HOME": "/nonexistent", "BREAKER_FAILURE_THRESHOLD": "2", "BREAKER_OPEN_SECONDS": "60"}
        done = subprocess.run(["unshare", "--mount", "sh", "-c", AS_NOBODY, f"{directory}/breaker", *post], env=env,
                              cwd=directory, capture_output=True, text=True, timeout=50)
    assert done.stdout.split() == ["500", "500", "0", "1", "breaker-65534"], done


# --- sanitizers ---------------------------------------------------------------------------------------------

# A program's own: linked into it, or a library, which wants to be the first of all.
SANITIZED = {"gcc's, static": ("gcc", "-fsanitize=address -static-libasan"),
             "clang's, static": ("clang", "-fsanitize=address"),
             "clang's for threads": ("clang", "-fsanitize=thread"), "gcc's for threads": ("gcc", "-fsanitize=thread -static-libtsan"),
             "gcc's, shared": ("gcc", "-fsanitize=address")}


def first_of_all(name):
    """A runtime that must be preloaded in front, if it does not stand in the program."""
    if name != "gcc's, shared":
        return {}
    found = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True).stdout
    return {"LD_PRELOAD": str(Path(found.strip()).resolve())}


@pytest.mark.parametrize("kind", SANITIZED)
@pytest.mark.parametrize("source", ["sock", "client"])
def test_a_sanitized_program(kind, source, provider, breaker_env, compile_c):
    """The launcher puts us behind a sanitizer's runtime that LD_PRELOAD names already."""
    breaker_env.configure(open_seconds=60, failure_threshold=2)
    compiler, flags = SANITIZED[kind]
    program = compile_c(BENCH / f"bench_{source}.c", "-I", BENCH, "-w", *flags.split(),
                        *(["-lcurl"] if source == "client" else []), compiler=compiler, name=f"sanitized_{source}")
    target = [provider.url()] if source == "client" else [provider.port, PATH]
    client = Client([program, *target, "fresh"], provider, "bench", input=b"1\n" * 4, line=without_time)
    env = first_of_all(kind)
    assert_covered(client, breaker_env, lambda command, input: breaker_env.run_bare(*command, input=input, env=env),
                   lambda command, input: breaker_env.run(*command, input=input, env=env))


@pytest.mark.parametrize("client", ["python-tls"], indirect=True)
def test_a_program_under_a_preloaded_sanitizer(client, breaker_env):
    env = {**first_of_all("gcc's, shared"), "ASAN_OPTIONS": "detect_leaks=0"}  # an interpreter's are its own
    assert_covered(client, breaker_env, lambda command, input: breaker_env.run_bare(*command, input=input, env=env),
                   lambda command, input: breaker_env.run(*command, input=input, env=env))


# --- debuggers and tracers --------------------------------------------------------------------------------------

GDB = ["gdb", "-nx", "-q", "-batch", "-ex", "set debuginfod enabled off", "-ex", "set style enabled off"]


def test_a_breakpoint(provider, breaker_env, compile_poster, tmp_path):
    """Of the program, and inside one of our hooks, from which the debugger finds its way back."""
    breaker_env.configure(open_seconds=60, failure_threshold=2)
    provider.then(*map(Answer, GIVEN))
    program = compile_poster("-O0")
    (tmp_path / "lines").write_text("1\n" * 4)
    arguments = f"{provider.port} {PATH} fresh <lines"
    asks = ["break link_send", f"run {arguments}", "print size > 2048", "tbreak send if fd > 2", "continue", "bt 2", "delete", "continue"]
    done = breaker_env.run(*GDB, *(word for ask in asks for word in ("-ex", ask)), program)
    said = done.stdout.decode()
    assert done.returncode == 0 and "exited normally" in said, (said, done.stderr)
    assert "Breakpoint 1, link_send (" in said and "$1 = 1" in said, said
    assert re.search(r"^#0 .*\bsend \(.*libbreaker|^#0 .*\bsend \(.*sock_write\.c.*\n(?:.*\n)?#1 .* in link_send \(", said, re.M), said
    assert re.findall(r"^\d+ (\d+) (\d) 1$", said, re.M) == [("200", "0"), ("500", "0"), ("500", "0"), ("503", "1")], said
    assert provider.count() == len(GIVEN)


def perf_trouble(*arguments):
    """Why the kernel does not let it count, or None."""
    if not shutil.which("perf"):
        return "no perf here"
    done = subprocess.run(["perf", *arguments, "-o", os.devnull, "--", "true"], capture_output=True, text=True, timeout=30)
    return None if done.returncode == 0 else f"perf: {done.stderr.strip()[:200]}"


TRACERS = {"strace": ["strace", "-f", "-o", "traced"], "gdb": [*GDB, "-ex", "run", "--args"],
           "perf stat": ["perf", "stat", "-e", "task-clock", "-o", "traced", "--"],
           "perf record": ["perf", "record", "-q", "-e", "cpu-clock", "-o", "traced", "--"]}
# What gdb says of its own: processes, threads, how the program ended.
GDB_SAYS = re.compile(r"^(\[|process \d+ is executing new program|Using host libthread_db|$)")


@pytest.mark.parametrize("tracer,place,client", [
    (tracer, place, client) for tracer in TRACERS for place in ("below it", "above it")
    for client in (["libcurl", "sockets", "python-tls"] if tracer == "strace" else ["sockets"] if place == "below it" else ["libcurl"])
], indirect=["client"])
def test_a_tracer(tracer, place, client, breaker_env):
    """The launcher below the tracer, or above, where the tracer itself is a program with us under it."""
    trouble = tracer.startswith("perf") and perf_trouble(*TRACERS[tracer][1:-3])
    if trouble:
        pytest.skip(trouble)
    lines = client.seen

    def seen(done):
        if tracer == "gdb":
            kept = [line for line in done.stdout.decode().splitlines() if not GDB_SAYS.match(line)]
            done.stdout, done.stderr = "\n".join(kept).encode(), b""
        return lines(done)

    client.seen = seen
    wrapped = TRACERS[tracer]
    under = {"below it": lambda command: breaker_env.run_bare(*wrapped, *breaker_env.wrap(*command), input=client.input,
                                                              env=breaker_env.environment),
             "above it": lambda command: breaker_env.run(*wrapped, *command, input=client.input)}[place]
    assert_covered(client, breaker_env, lambda command, input: breaker_env.run_bare(*wrapped, *command, input=input),
                   lambda command, _: under(command))
