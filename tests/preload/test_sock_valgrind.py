"""The C programs with sockets of their own, and real clients, under valgrind: nothing of ours is read or written that is
not there. Minutes, so not in `make check`: `make check-valgrind`."""

import re
from pathlib import Path

import pytest

from recorder import Recorder
from support import PYTHON, chat
from test_sock_bytes import plain, refused  # noqa: F401
from test_sock_odd import CONNECTS, DESCRIPTORS, FORKS, modes_of, program, server, servers  # noqa: F401

SOCK = Path(__file__).with_name("sock")
CLIENTS = Path(__file__).with_name("clients")
VALGRIND = ["valgrind", "-q", "--error-exitcode=9", "--trace-children=no"]
# Valgrind itself complains of arguments that lead nowhere, or does not know the call.
NOT_HERE = {"bad-arguments", "bad-buffers", "executed", "cloned", "no-lengths"}
OTHERS = {"threads": [("loop", 2), ("duplex", 5), ("closers", 2)], "signals": [("calls", 20)],
          "events": [("edge", 50, 2)]}
REFUSED = [(path.stem, mode) for path in sorted(SOCK.glob("refused_*.c"))
           for mode in re.findall(r'\{"([a-z0-9-]+)",', path.read_text())]


def assert_clean(done):
    assert b"==" not in done.stderr, done.stderr.decode(errors="replace")[-4000:]
    assert done.returncode == 0, done


def ported(port, arguments):
    return arguments[0], port, *arguments[1:]


@pytest.mark.parametrize("name, arguments", [
    *((name, (mode,)) for name, mode in modes_of(DESCRIPTORS)),
    *(("forks", (mode,)) for mode in FORKS if mode not in NOT_HERE),
    *((name, arguments) for name, runs in OTHERS.items() for arguments in runs)], ids=str)
def test_programs(name, arguments, program, breaker_env, server):  # noqa: F811
    assert_clean(breaker_env.run(*VALGRIND, program(name), *ported(server.port, arguments)))


@pytest.mark.parametrize("match", ["llm", "all"])
@pytest.mark.parametrize("name, mode", [(name, mode) for name, mode in [*modes_of(CONNECTS), ("connects", "fast-open")]
                                        if mode not in NOT_HERE])
def test_connects(name, mode, match, program, breaker_env, server):  # noqa: F811
    breaker_env.configure(match=match, failure_threshold=0)
    assert_clean(breaker_env.run(*VALGRIND, program(name), mode, server.port, server.hole))


@pytest.fixture
def shut_recorder(breaker_env):
    with Recorder(plain) as running:
        breaker_env.configure(open_seconds=60)
        breaker_env.command("trip", "--create", running.key("shut"))
        yield running


@pytest.mark.parametrize("name, mode", REFUSED)
def test_refused(name, mode, refused, breaker_env, shut_recorder):  # noqa: F811
    assert_clean(breaker_env.run(*VALGRIND, refused(name), mode, shut_recorder.port, 1))


@pytest.mark.parametrize("shape", ["whole", "chunked", "large-writes"])
def test_python(shape, breaker_env, shut_recorder):
    """http.client, healthy and refused on one connection."""
    done = breaker_env.run(*VALGRIND, PYTHON, CLIENTS / "client_http.py", shape, shut_recorder.port, 1000, "m", "m", "shut",
                           env={"PYTHONMALLOC": "malloc"})
    assert_clean(done)
    assert [line.split()[0] for line in done.stdout.decode().splitlines()[:3]] == ["200", "200", "503"]


@pytest.mark.parametrize("shape", ["asyncio", "sendmsg", "pipelined"])
def test_python_sockets(shape, breaker_env, shut_recorder):
    done = breaker_env.run(*VALGRIND, PYTHON, CLIENTS / "client_raw.py", shape, shut_recorder.port, 1000, "m", "m", "shut",
                           env={"PYTHONMALLOC": "malloc"})
    assert_clean(done)
    assert done.stdout.split() == [b"200", b"200", b"503", b"end"]


@pytest.mark.parametrize("command", [
    ["wget", "-q", "-O", "-", "--tries=1", "--content-on-error", "--post-data={body}", "{url}", "{url}"],
    ["perl", CLIENTS / "sock_lwp.pl", "{url}", "2", "{model}"],
    ["ruby", CLIENTS / "sock_ruby.rb", "{url}", "2", "{model}"],
    ["php", CLIENTS / "sock_streams.php", "{url}", "2", "{model}"]], ids=lambda command: command[0])
@pytest.mark.time_limit(120)
def test_clients(command, breaker_env, provider):
    """Two calls that go through, two that are refused. What the program itself does there is its own."""
    breaker_env.configure(open_seconds=60)
    breaker_env.command("trip", "--create", provider.key("shut"))
    for model in ("m", "shut"):
        words = [str(word).format(url=provider.url(), model=model, body=chat(model)) if not str(word).startswith("/")
                 else word for word in command]
        done = breaker_env.run("valgrind", "--fullpath-after=", *words, timeout=100)
        ours = re.findall(rb"(?:at|by) 0x[^\n]*/(?:preload|shim)/[a-z_/]+\.c:[^\n]*", done.stderr)
        assert not ours, b"\n".join(ours).decode(errors="replace")[-4000:]
        assert b"ERROR SUMMARY" in done.stderr and (b"circuit_open" in done.stdout) == (model == "shut"), done
    assert provider.count() == 2
