"""Issue 3, items 1 and 2: programs with sockets of their own, one breaker under all of them.

Each client is run bare, too: what it says of each kind of trouble without us is what it must say with us. A running
client is asked for one call after the other, so what the provider does in between is the test's to say. pycurl goes
along where a status is judged: the counts are to be those of libcurl's layer.
Odd ones: Java tries a refused connect twice, so failures are the breaker's count, not the calls'; a name's second
address is never reached by it. bash cannot time a connect out: it is killed, which is no outcome; its requests go out
by stdio, which no hook sees, so it is covered at connect only. fetch's time-out of a connect takes a second at least.
wget is a process per call, but for the test that names it; neither it nor PHP's streams keep a connection.
"""

import contextlib
import socket
import subprocess

import pytest

from provider import Answer, Provider, wait_until
from sock_programs import (ALL, HTTP, KNOWN, MEASURE, OPEN, REFUSED, TIMEOUT, Conversation, Names, black_hole, digest_of,
                           lines_of, no_ipv6, port_of_localhost)
from support import PYTHON, BreakerEnvironment

EVENTS = b"".join(b'data: {"choices":[{"delta":{"content":"%d"}}]}\n\n' % n for n in range(40)) + b"data: [DONE]\n\n"
STREAM = Answer(200, {"Content-Type": "text/event-stream"}, EVENTS, chunked=True, pieces=20)
TOLD = {status: f"status {status} -" for status in (200, 429, 500, 503)}


@pytest.fixture
def talk(program, breaker_env):
    """talk(NAME, *FLAGS): that client, running under the breaker (bare=True: without) and asked call by call."""

    def start(name, *flags, bare=False, names=None, options=()):
        command = [*map(str, program(name)), *options, *flags, "-"]
        command = names(*command) if names else command
        return Conversation(breaker_env.start(*command, bare=bare, stdin=subprocess.PIPE))

    return start


@pytest.fixture
def localhost(tmp_path):
    """Makes commands for which localhost is ::1 and 127.0.0.1."""
    found = {address[4][0] for address in socket.getaddrinfo("localhost", 1, type=socket.SOCK_STREAM)}
    if {"::1", "127.0.0.1"} <= found:
        return lambda *command: command
    return own_names(tmp_path, "127.0.0.1 localhost\n::1 localhost\n")


@pytest.fixture
def half(localhost):
    """A provider at the second of localhost's addresses; the first refuses."""
    with port_of_localhost() as port, Provider(port=port) as running:
        yield running


def own_names(directory, text):
    trouble = no_ipv6()
    if trouble:
        pytest.skip(f"no IPv6 on this machine's loopback: {trouble}")
    names = Names(directory, text)
    if not names.prefix:
        pytest.skip(f"no mount namespace for an /etc/hosts of our own: {names.trouble}")
    return names


def ways(name):
    """How calls travel: over a kept connection, and each over its own."""
    return [(), ("close",)] if KNOWN[name].kept else [()]


def listed(key):
    return f"[target {key}]\n"


# --- the clients are right without us --------------------------------------------------------------


@pytest.mark.parametrize("name", ALL | MEASURE)
def test_bare(name, provider, talk):
    client = talk(name, bare=True)
    url = provider.url()
    for status in (500, 503, 429, 200):
        provider.answer(Answer(status))
        assert client.ask(url) == TOLD[status]
        assert client.digest == digest_of(Answer(status).payload())
    provider.answer(STREAM)
    for how in ways(name):
        assert client.ask_often(2, url, "m", "stream", *how) == [TOLD[200]] * 2
        assert client.digest == digest_of(EVENTS)
    provider.answer(Answer(503, body=b'{"code":"circuit_open"}'))
    assert client.ask(url) == OPEN
    if KNOWN[name].kept:
        connections = [r.connection for r in provider.seen()]
        assert len(set(connections[:6])) == 1 and len(set(connections[:8])) == 3
    assert {(r.method, r.path, r.model) for r in provider.seen()} == {("POST", "/v1/chat/completions", "m")}
    provider.refuse()
    assert client.ask_often(2, url, "m", "close") == [REFUSED] * 2
    client.end()


@pytest.mark.parametrize("name", ALL)
def test_bare_black_hole(name, talk):
    with black_hole() as port:
        client = talk(name, "--timeout", "0.2", bare=True)
        assert client.ask(f"http://127.0.0.1:{port}/v1/chat/completions") == TIMEOUT
        client.end()


@pytest.mark.parametrize("name", ALL)
def test_bare_localhost(name, localhost, half, talk):
    client = talk(name, bare=True, names=localhost)
    assert client.ask_often(2, half.url(name="localhost"), "m", "close") == [TOLD[200]] * 2
    half.refuse()
    assert client.ask(half.url(name="localhost"), "m", "close") == REFUSED
    client.end()


# --- a refused port, and a name with two addresses -------------------------------------------------


def refuse_until_open(client, url, key, provider, breaker_env, first_only=False):
    """Five failures, whatever walks a client does for each; then the provider could answer, and is not asked.
    `first_only`: of a client that never looks at the second address it is known half a second later that it will not."""
    provider.refuse()
    if first_only:
        wait_until(lambda: client.ask(url) == REFUSED and breaker_env.calls(key)["failure"] == 5, 20, "five failures")
    assert client.ask_often(7, url) == [REFUSED] * 7
    assert breaker_env.calls(key)["failure"] == 5
    found = breaker_env.breakers()[key]
    assert (found["state"], found["last_failure"]["class"]) == ("open", "connect")
    provider.listen()
    before = provider.accepted
    assert client.ask_often(2, url) == [REFUSED] * 2
    assert provider.accepted == before, "a refused connect reached the network"
    found = breaker_env.calls(key)
    assert found["failure"] == 5 and found["refused"] >= 3


def probe(client, url, key, provider, breaker_env, first_only=False):
    """One probe that fails, then one that succeeds."""
    provider.refuse()
    breaker_env.make_due(key)
    before = breaker_env.calls(key)["failure"]
    assert client.ask(url) == REFUSED
    if first_only:
        wait_until(lambda: client.ask(url) == REFUSED and breaker_env.calls(key)["failure"] > before, 20, "a failure")
    assert breaker_env.calls(key)["failure"] == before + 1 and breaker_env.state(key) == "open"
    provider.listen()
    accepted = provider.accepted
    assert client.ask(url) == REFUSED and provider.accepted == accepted
    breaker_env.make_due(key)
    assert client.ask_often(3, url) == [TOLD[200]] * 3
    assert breaker_env.state(key) == "closed" and provider.count() == 3


@pytest.mark.parametrize("name", ALL)
def test_a_refused_port(name, provider, breaker_env, talk):
    key = provider.key()
    breaker_env.configure(listed(key), open_seconds=60)
    client = talk(name)
    refuse_until_open(client, provider.url(), key, provider, breaker_env)
    probe(client, provider.url(), key, provider, breaker_env)
    client.end()


@pytest.mark.parametrize("name", ALL)
def test_localhost_with_one_address_refused(name, localhost, half, breaker_env, talk):
    """FIELD-NOTES 3.8: an address on the way to one that answers is nothing; both refused is one failure."""
    key, url = half.key(name="localhost"), half.url(name="localhost")
    breaker_env.configure(listed(key), open_seconds=60)
    client = talk(name, names=localhost)
    assert client.ask_often(7, url, "m", "close") == [TOLD[200]] * 7
    calls = breaker_env.calls(key)
    assert calls["failure"] == 0 and calls["success"] >= 1, calls
    half.clear()
    first_only = name == "java"
    refuse_until_open(client, url, key, half, breaker_env, first_only)
    probe(client, url, key, half, breaker_env, first_only)
    client.end()


# As event loops that take a descriptor's being writable for the connect's success.
UNASKING = """
import select, socket, sys
port, body = int(sys.argv[1]), b'{"model": "m"}'
head = b"POST /v1/chat/completions HTTP/1.1\\r\\nHost: localhost:%d\\r\\nContent-Length: %d\\r\\n\\r\\n"
for family, kind, protocol, _, address in socket.getaddrinfo("localhost", port, type=socket.SOCK_STREAM):
    connection = socket.socket(family, kind, protocol)
    connection.setblocking(False)
    connection.connect_ex(address)
    select.select([], [connection], [], 10)
    try:
        connection.send(head % (port, len(body)) + body)
        select.select([connection], [], [], 10)
        print(connection.recv(1000).split()[1].decode())
        break
    except OSError as error:
        print(type(error).__name__)
    connection.close()
"""


def test_refusals_that_nobody_asks_about(provider, breaker_env):
    """The first write tells of them."""
    key = provider.key()
    breaker_env.configure(listed(key), open_seconds=60)
    provider.refuse()
    script = UNASKING.replace("localhost", "127.0.0.1")
    for _ in range(5):
        assert breaker_env.run(PYTHON, "-c", script, provider.port).stdout == b"ConnectionRefusedError\n"
    breaker_env.run(PYTHON, "-c", script, provider.port)
    calls = breaker_env.calls(key)
    assert (calls["failure"], calls["refused"]) == (5, 1), calls


# As programs that write at once and try again later: five connects that hang, and one more.
HASTY = """
import select, socket, sys
port = int(sys.argv[1])
for _ in range(6):
    connection = socket.socket()
    connection.setblocking(False)
    connection.connect_ex(("127.0.0.1", port))
    try:
        connection.send(b"POST /v1/chat/completions HTTP/1.1\\r\\nHost: 127.0.0.1:%d\\r\\n\\r\\n" % port)
    except OSError as error:
        print(type(error).__name__)
    select.select([], [], [], 0.2)
    connection.close()
"""


def test_hangs_of_who_wrote_before_there_was_a_peer(breaker_env):
    with black_hole() as port:
        key = f"127.0.0.1:{port}"
        breaker_env.configure(listed(key), open_seconds=60, connect_hang_after=0.1)
        done = breaker_env.run(PYTHON, "-c", HASTY, port)
    assert done.stdout.split()[:5] == [b"BlockingIOError"] * 5, done
    calls = breaker_env.calls(key)
    assert (calls["failure"], calls["refused"]) == (5, 1), calls


def test_a_probe_whose_connect_nobody_asks_about(localhost, half, breaker_env):
    """The grant of its walk is there before the request asks for one."""
    key = half.key(name="localhost")
    breaker_env.configure(listed(key))
    run = [*localhost(PYTHON, "-c", UNASKING, half.port)]
    assert breaker_env.run(*run).stdout.split()[-1:] == [b"200"]
    breaker_env.make_due(key)
    done = breaker_env.run(*run)
    assert done.stdout.split()[-1:] == [b"200"], done
    assert breaker_env.state(key) == "closed" and half.count() == 2


# --- a black hole ----------------------------------------------------------------------------------


IN_HOLE = [name for name in ALL if name not in ("bash", "java")]


@pytest.fixture(scope="module")
def in_hole(build, tmp_path_factory):
    """All clients before one black hole at the same time, since they only wait: each with a table of its own, seven
    calls. name -> environment, process."""
    with black_hole() as port, contextlib.ExitStack() as stack:
        running, url = {}, f"http://127.0.0.1:{port}/v1/chat/completions"
        for name in IN_HOLE:
            environment = BreakerEnvironment(build, tmp_path_factory.mktemp("hole"))
            stack.callback(environment.end_all)
            environment.configure(listed(f"127.0.0.1:{port}"), open_seconds=60, connect_hang_after=0.1)
            running[name] = environment, environment.start(*ALL[name].argv, "--timeout", "0.5", url, "7")
        yield f"127.0.0.1:{port}", running


def five_time_outs_then_none(name, in_hole):
    key, running = in_hole
    environment, process = running[name]
    output, error = process.communicate(timeout=40)
    assert lines_of(output, process.returncode, error) == [TIMEOUT] * 5 + [REFUSED] * 2
    assert environment.calls(key)["failure"] == 5
    found = environment.breakers()[key]
    assert (found["state"], found["last_failure"]["class"]) == ("open", "connect_hang")


@pytest.mark.parametrize("name", [name for name in IN_HOLE if name != "fetch"])
def test_a_black_hole(name, in_hole):
    five_time_outs_then_none(name, in_hole)


def test_a_black_hole_before_java(breaker_env, talk):
    """Another of its threads closes, some time after the caller has its time-out."""
    with black_hole() as port:
        key, url = f"127.0.0.1:{port}", f"http://127.0.0.1:{port}/v1/chat/completions"
        breaker_env.configure(listed(key), open_seconds=60, connect_hang_after=0.1)
        client = talk("java", "--timeout", "0.2")
        for number in range(1, 6):
            assert client.ask(url) == TIMEOUT
            wait_until(lambda: breaker_env.calls(key)["failure"] == number, what="the failure")
        assert client.ask_often(2, url) == [REFUSED] * 2
        assert breaker_env.calls(key)["failure"] == 5 and breaker_env.state(key) == "open"
        client.end()


@pytest.mark.parametrize("name", ["http.client", "node-http"])
def test_a_hang_that_was_cut_short_is_nothing(name, breaker_env, talk):
    with black_hole() as port:
        key, url = f"127.0.0.1:{port}", f"http://127.0.0.1:{port}/v1/chat/completions"
        breaker_env.configure(listed(key), open_seconds=60, connect_hang_after=10)
        client = talk(name, "--timeout", "0.1")
        assert client.ask_often(7, url) == [TIMEOUT] * 7
        calls = breaker_env.calls(key)
        assert breaker_env.state(key) == "closed" and calls["failure"] == 0 and calls["neutral"] >= 1, calls
        client.end()


def test_a_black_hole_that_ends_with_its_process(breaker_env, talk):
    """bash knows no time-out for a connect: `timeout` kills it, nobody closes, nothing is counted. An open breaker
    spares it the wait."""
    with black_hole() as port:
        key, url = f"127.0.0.1:{port}", f"http://127.0.0.1:{port}/v1/chat/completions"
        breaker_env.configure(listed(key), open_seconds=60, connect_hang_after=0.1)
        client = talk("bash", "--timeout", "0.3")
        assert client.ask_often(2, url) == [TIMEOUT] * 2
        assert breaker_env.calls(key)["failure"] == 0 and breaker_env.state(key) == "closed"
        # One with a trap comes out of its connect, and closes: that tells.
        done = breaker_env.run("timeout", "0.3", "bash", "-c", f"trap : EXIT; exec 3<>/dev/tcp/127.0.0.1/{port}; :")
        assert done.returncode == 124 and breaker_env.calls(key)["failure"] == 1
        breaker_env.command("trip", key)
        assert client.ask_often(2, url) == [REFUSED] * 2
        client.end()


WALKERS = ["http.client", "httpx-async", "node-http", "ruby"]
BEGINNERS = ["php", "aiohttp-total", "java"]
# aiohttp takes turns: with one address per call, two calls look like one walk.
TWO_CALLS_A_WALK = {"aiohttp-total"}


@pytest.mark.parametrize("names", [WALKERS, BEGINNERS], ids=["both are tried", "the first is tried again"])
def test_a_name_with_two_black_holes(names, localhost, build, tmp_path_factory, java):
    """Two failures, then none: one for each call, whether a client walks both addresses, tries both at once, or times
    out before the second (or never looks at it) and begins with the first again. All of them at the same time."""
    with contextlib.ExitStack() as stack:
        port = stack.enter_context(port_of_localhost())
        stack.enter_context(black_hole(port=port))
        stack.enter_context(black_hole("::1", port))
        key, url, running = f"localhost:{port}", f"http://localhost:{port}/v1/chat/completions", {}
        argv = {name: KNOWN[name].argv for name in names if name != "java"}
        if "java" in names and java:
            argv["java"] = java
        for name in argv:
            environment = BreakerEnvironment(build, tmp_path_factory.mktemp("holes"))
            stack.callback(environment.end_all)
            environment.configure(listed(key), open_seconds=60, connect_hang_after=0.15, failure_threshold=2)
            # Those who try both at once begin with the second after 250 ms.
            running[name] = environment, environment.start(*localhost(*argv[name], "--timeout", "0.5", url, "5"))
        wrong = {}
        for name, (environment, process) in running.items():
            output, error = process.communicate(timeout=40)
            said, failures = lines_of(output, process.returncode, error), environment.calls(key)["failure"]
            late = name == "java"  # its close may come after the next connect
            calls = 4 if name in TWO_CALLS_A_WALK else 2
            if (failures - 2, said.count(TIMEOUT) - calls) not in {(0, 0), (late, late)} or said != sorted(said)[::-1]:
                wrong[name] = failures, said
        assert not wrong, "\n".join(f"{name}: {what}" for name, what in wrong.items())


# --- a table that is replaced or deleted -----------------------------------------------------------


@pytest.mark.parametrize("how", ["reset --all", "deleted"])
@pytest.mark.parametrize("name", ["http.client", "pycurl"])
def test_a_program_that_is_well_comes_along_to_another_table(name, how, provider, breaker_env, talk):
    """Then what is forced by hand reaches it, without a failure of its own before."""
    client, url = talk(name), provider.url()
    assert client.ask(url) == TOLD[200]
    if how == "deleted":
        breaker_env.table.unlink()
    else:
        breaker_env.command("reset", "--all")
    breaker_env.command("force", "--create", "open", provider.key("m"))
    wait_until(lambda: client.ask(url) == OPEN, 5, "a refusal")
    breaker_env.command("force", "none", provider.key("m"))
    assert client.ask(url) == TOLD[200] and breaker_env.calls(provider.key("m"))["success"] == 1
    client.end()


# --- a clear-text provider -------------------------------------------------------------------------


@pytest.mark.parametrize("name", HTTP | MEASURE)
def test_five_bad_statuses_then_none_then_one_probe(name, provider, breaker_env, talk):
    """Both statuses, over kept connections and over new ones: each a model of its own."""
    breaker_env.configure(open_seconds=60)
    client, url = talk(name), provider.url()
    cells = {f"{status}-{'-'.join(how) or 'kept'}": (status, how) for status in (500, 503) for how in ways(name)}
    for model, (status, how) in cells.items():
        provider.answer(Answer(status), model=model)
        assert client.ask_often(8, url, model, *how) == [TOLD[status]] * 5 + [OPEN] * 3
        seen = provider.seen(model=model)
        assert len(seen) == 5
        assert len({r.connection for r in seen}) == (1 if KNOWN[name].kept and not how else 5)
        assert breaker_env.calls(provider.key(model))["failure"] == 5
        found = breaker_env.breakers()[provider.key(model)]
        assert (found["state"], found["last_failure"]["status"]) == ("open", status)
    breaker_env.make_due(*map(provider.key, cells))
    for model, (status, how) in cells.items():
        assert client.ask_often(3, url, model, *how) == [TOLD[status]] + [OPEN] * 2
        assert provider.count(model=model) == 6
    breaker_env.make_due(*map(provider.key, cells))
    for model, (status, how) in cells.items():
        provider.answer(Answer(200), model=model)
        assert client.ask_often(3, url, model, *how) == [TOLD[200]] * 3
        assert provider.count(model=model) == 9 and breaker_env.state(provider.key(model)) == "closed"
    assert breaker_env.calls(provider.key())["failure"] == 0
    client.end()


@pytest.mark.parametrize("name", HTTP | MEASURE)
def test_rate_limits_and_streams_pass(name, provider, breaker_env, talk):
    breaker_env.configure(open_seconds=60)
    client, url = talk(name), provider.url()
    provider.answer(Answer(429), model="busy")
    provider.answer(STREAM, model="talks")
    talked = 0
    for how in ways(name):
        assert client.ask_often(7, url, "busy", *how) == [TOLD[429]] * 7
        for _ in range(3):
            assert client.ask(url, "talks", "stream", *how) == TOLD[200]
            assert client.digest == digest_of(EVENTS)
            talked += 1
    calls = breaker_env.calls(provider.key("busy"))
    assert breaker_env.state(provider.key("busy")) == "closed"
    assert (calls["failure"], calls["neutral"]) == (0, provider.count(model="busy")) == (0, 7 * len(ways(name)))
    calls = breaker_env.calls(provider.key("talks"))
    assert (calls["success"], calls["failure"], calls["neutral"]) == (talked, 0, 0)
    assert breaker_env.state(provider.key("talks")) == "closed"
    assert breaker_env.calls(provider.key())["failure"] == 0
    client.end()


def test_requests_by_stdio_pass_untouched(provider, breaker_env, talk):
    """bash, and whatever else writes by stdio: H hears of the connect and of the first byte, M of nothing."""
    breaker_env.configure(listed(provider.key()), open_seconds=60)
    client, url = talk("bash"), provider.url()
    provider.answer(Answer(500))
    for how in ways("bash"):
        assert client.ask_often(7, url, "m", *how) == [TOLD[500]] * 7
    provider.answer(STREAM)
    for how in ways("bash"):
        assert client.ask(url, "m", "stream", *how) == TOLD[200] and client.digest == digest_of(EVENTS)
    assert provider.count() == 16 and provider.key("m") not in breaker_env.breakers()
    calls = breaker_env.calls(provider.key())
    assert calls["success"] >= 1 and calls["failure"] == 0
    client.end()


@pytest.mark.parametrize("bare", [True, False], ids=["bare", "covered"])
def test_wget_keeps_its_connection(bare, provider, breaker_env, program):
    """One process, eight URLs."""
    breaker_env.configure(open_seconds=60)
    provider.answer(Answer(500))
    run = breaker_env.run_bare if bare else breaker_env.run
    done = run(*program("wget"), provider.url(), "8")
    got = lines_of(done.stdout, done.returncode, done.stderr)
    through = 8 if bare else 5
    assert got == [TOLD[500]] * through + [OPEN] * (8 - through)
    assert provider.count() == through and len({r.connection for r in provider.seen()}) == 1


@pytest.mark.parametrize("name", ["requests", "httpx-async", "fetch"])
def test_a_row_of_calls_in_one_process(name, provider, breaker_env, program):
    """The way in which a batch job does it, nobody in between: client URL COUNT MODEL."""
    breaker_env.configure(open_seconds=60)
    provider.answer(Answer(500))
    done = breaker_env.run(*program(name), "--stream", provider.url(), "20", "m")
    got = lines_of(done.stdout, done.returncode, done.stderr)
    assert got == [TOLD[500]] * 5 + [OPEN] * 15
    assert provider.count() == 5


# --- two names on one address ----------------------------------------------------------------------


def test_two_names_on_one_address(tmp_path, provider, breaker_env, talk):
    """FIELD-NOTES 3.7: such an address says nothing of the host at connect; not counted, not refused."""
    names = own_names(tmp_path, "127.0.0.1 localhost llm.test plain.test\n")
    key, url = provider.key(name="llm.test"), provider.url(name="llm.test")
    breaker_env.configure(listed(key), open_seconds=60)
    provider.refuse()
    client = talk("http.client", names=names, options=["--also", f"plain.test:{provider.port}"])
    assert client.ask_often(7, url) == [REFUSED] * 7
    assert breaker_env.calls(key)["failure"] == 0 and breaker_env.state(key) == "closed"
    provider.listen()
    assert client.ask(url, "m", "close") == TOLD[200]
    breaker_env.command("force", "--create", "open", key)
    accepted = provider.accepted
    assert client.ask(url, "m", "close") == OPEN, "the request's Host tells who is meant"
    provider.wait_accepted(accepted + 1)  # it may accept what is closed again already
    assert provider.count() == 1
    client.end()
    alone = talk("http.client", names=names)
    assert alone.ask(url) == REFUSED and provider.accepted == accepted + 1, "one name alone is judged"
    alone.end()


def test_two_names_at_two_ports_are_two_hosts(tmp_path, provider, breaker_env, talk):
    names = own_names(tmp_path, "127.0.0.1 localhost llm.test plain.test\n")
    key, url = provider.key(name="llm.test"), provider.url(name="llm.test")
    breaker_env.configure(listed(key), open_seconds=60)
    provider.refuse()
    with Provider() as other:
        client = talk("http.client", names=names, options=["--also", f"plain.test:{other.port}"])
        assert client.ask_often(7, url) == [REFUSED] * 7
    assert breaker_env.calls(key)["failure"] == 5 and breaker_env.state(key) == "open"
    client.end()


# --- item 2: all of them and curl share one breaker ------------------------------------------------

FIVE = ["fetch", "requests", "ruby", "lwp", "php"]


@pytest.fixture
def crowd(talk, curl):
    """Five clients that keep running from the first call on (the configuration is the test's then), and a curl process
    per call: a call by each, in the order given."""
    clients = {}

    def by_curl(url, model):
        answer = curl(url, model)
        if answer.refused:
            return OPEN
        return REFUSED if answer.code == 7 else f"status {answer.status} -"

    def ask_all(order, url, model="m"):
        clients.update({name: talk(name) for name in FIVE if name not in clients})
        return [by_curl(url, model) if name == "curl" else clients[name].ask(url, model) for name in order]

    yield ask_all
    for client in clients.values():
        client.end()


ORDERS = [["curl", *FIVE, "curl"], ["php", "curl", "lwp", "curl", "ruby", "requests", "fetch"]]


@pytest.mark.parametrize("order", ORDERS, ids=["curl first", "php first"])
def test_five_failures_of_all_clients_together(order, crowd, provider, breaker_env):
    breaker_env.configure(open_seconds=60)
    provider.answer(Answer(500))
    key = provider.key("m")
    assert crowd(order, provider.url()) == [TOLD[500]] * 5 + [OPEN] * 2
    assert crowd(order, provider.url()) == [OPEN] * 7
    assert provider.count() == 5 and breaker_env.calls(key)["failure"] == 5
    breaker_env.make_due(key)
    assert crowd(order, provider.url()) == [TOLD[500]] + [OPEN] * 6
    assert provider.count() == 6
    breaker_env.make_due(key)
    provider.answer(Answer(200))
    assert crowd(reversed(order), provider.url()) == [TOLD[200]] * 7
    assert breaker_env.state(key) == "closed"


@pytest.mark.parametrize("order", ORDERS, ids=["curl first", "php first"])
def test_five_refused_connects_of_all_clients_together(order, crowd, provider, breaker_env):
    """curl gets our answer where a socket gets what a connect can say."""
    key = provider.key()
    breaker_env.configure(listed(key), open_seconds=60)
    provider.refuse()
    assert crowd(order[:5], provider.url()) == [REFUSED] * 5
    assert breaker_env.state(key) == "open" and breaker_env.calls(key)["failure"] == 5
    provider.listen()
    said = [OPEN if name == "curl" else REFUSED for name in order]
    assert crowd(order, provider.url()) == said
    assert provider.accepted == 0
    breaker_env.make_due(key)
    assert crowd(order, provider.url()) == [TOLD[200]] * 7
    assert breaker_env.state(key) == "closed" and provider.count() == 7


# --- the slowest, which has run since the first black hole ------------------------------------------


def test_a_black_hole_before_fetch(in_hole):
    five_time_outs_then_none("fetch", in_hole)
