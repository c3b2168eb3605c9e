"""fallback_address, for programs with sockets of their own: while a host's breaker refuses connects they go to another
place that serves the same name, and what is counted there is that place's."""

import socket
import threading
from pathlib import Path

import pytest

from fallbacks import addressed
from provider import Answer, Provider
from sock_programs import ALL, REFUSED, black_hole, no_ipv6
from support import PYTHON, chat

SOCK = Path(__file__).with_name("sock")
TOLD = {status: f"status {status} -" for status in (200, 404, 500)}
OPEN = "status 503 circuit_open"
CLIENTS = ["http.client", "requests", "httpx-async", "aiohttp", "fetch", "node-http", "wget", "ruby"]
FEW = ["http.client", "fetch", "wget"]


@pytest.fixture
def second(providers):
    """Another address of this machine."""
    return providers(host="127.0.0.2")


def calls_of(breaker_env, *keys):
    """What was counted of each, without what was not."""
    return [{name: number for name, number in breaker_env.calls(key).items() if number} for key in keys]


def trip(breaker_env, *keys):
    for key in keys:
        breaker_env.command("trip", "--create", key)


# --- clear text --------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [("m",), ("m", "close")], ids=["kept", "close"])
@pytest.mark.parametrize("name", CLIENTS)
def test_a_dead_primary(name, how, provider, second, breaker_env, talk):
    key, there = provider.key(), second.key()
    breaker_env.configure(addressed(key, there), failure_threshold=2, open_seconds=60)
    provider.refuse()
    client = talk(name)
    assert client.ask_often(2, provider.url(), *how) == [REFUSED] * 2
    assert client.ask_often(5, provider.url(), *how) == [TOLD[200]] * 5
    client.end()
    assert provider.accepted == 0 and second.count() == 5
    connections = len({r.connection for r in second.seen()})
    assert {r.headers["host"] for r in second.seen()} == {key}, "the request is the program's"
    assert calls_of(breaker_env, key, there, f"{key}/m", f"{there}/m") == [
        {"failure": 2, "rerouted": connections}, {"success": 5}, {}, {"success": 5}]
    assert breaker_env.state(key) == "open" and breaker_env.state(there) == "closed"
    lines = breaker_env.events(event="rerouted")
    assert [(e["key"], e["to"], e["cause"], e["detail"]) for e in lines] == [(key, there, "open", "fallback_address")]


@pytest.mark.parametrize("name", FEW)
def test_recovery(name, provider, second, breaker_env, talk):
    """The probe is a real call's, and goes to the primary."""
    key = provider.key()
    breaker_env.configure(addressed(key, second.key()), open_seconds=60)
    trip(breaker_env, key)
    client = talk(name)
    assert client.ask(provider.url(), "m", "close") == TOLD[200]
    breaker_env.make_due(key)
    provider.refuse()
    assert client.ask(provider.url(), "m", "close") == REFUSED
    assert breaker_env.state(key) == "open"
    provider.listen()
    assert client.ask(provider.url(), "m", "close") == TOLD[200] and provider.accepted == 0
    breaker_env.make_due(key)
    assert client.ask_often(3, provider.url(), "m", "close") == [TOLD[200]] * 3
    client.end()
    assert provider.count() == 3 and second.count() == 2 and breaker_env.state(key) == "closed"


@pytest.mark.parametrize("name", FEW)
def test_both_dead(name, provider, second, breaker_env, talk):
    """The fallback has a breaker of its own, and failures that are its own."""
    key, there = provider.key(), second.key()
    breaker_env.configure(addressed(key, there), open_seconds=60)
    trip(breaker_env, key)
    provider.refuse()
    second.refuse()
    client = talk(name)
    assert client.ask_often(5, provider.url()) == [REFUSED] * 5
    assert calls_of(breaker_env, key, there) == [{"rerouted": 5}, {"failure": 5}]
    second.listen()
    assert client.ask_often(2, provider.url()) == [REFUSED] * 2
    client.end()
    assert second.accepted == 0
    assert calls_of(breaker_env, key, there) == [{"rerouted": 5, "refused": 2}, {"failure": 5}]
    assert breaker_env.state(there) == "open"


@pytest.mark.parametrize("name", FEW)
def test_a_hard_stop(name, provider, second, breaker_env, talk):
    key = provider.key()
    breaker_env.configure(addressed(key, second.key(), allow_fallbacks="false"), open_seconds=60)
    trip(breaker_env, key)
    client = talk(name)
    assert client.ask(provider.url()) == REFUSED
    client.end()
    assert provider.accepted == second.accepted == 0
    assert calls_of(breaker_env, key) == [{"refused": 1}]


@pytest.mark.parametrize("name", FEW)
def test_pass(name, provider, second, breaker_env, talk):
    """Elsewhere first; to the host that is broken, as ever, where that is broken as well."""
    key, there = provider.key(), second.key()
    breaker_env.configure(addressed(key, there), when_exhausted="pass", open_seconds=60)
    trip(breaker_env, key)
    client = talk(name)
    assert client.ask(provider.url(), "m", "close") == TOLD[200] and second.count() == 1
    trip(breaker_env, there)
    assert client.ask(provider.url(), "m", "close") == TOLD[200] and provider.count() == 1
    client.end()
    assert second.accepted == 1
    assert calls_of(breaker_env, key, there) == [{"rerouted": 1, "success": 1}, {"success": 1}]
    assert breaker_env.state(key) == "open", "what passes says nothing"


@pytest.mark.parametrize("name", FEW)
def test_forced_open(name, provider, second, breaker_env, talk):
    breaker_env.configure(addressed(provider.key(), second.key()))
    breaker_env.command("force", "--create", "open", provider.key())
    client = talk(name)
    assert client.ask(provider.url()) == TOLD[200]
    client.end()
    assert second.count() == 1
    assert [e["cause"] for e in breaker_env.events(event="rerouted")] == ["forced_open"]


@pytest.mark.parametrize("name", FEW)
def test_a_fallback_that_is_off_is_not_asked(name, provider, second, breaker_env, talk):
    key, there = provider.key(), second.key()
    breaker_env.configure(addressed(key, there) + f"[target {there}]\nmode = off\n", open_seconds=60)
    trip(breaker_env, key, there)
    client = talk(name)
    assert client.ask(provider.url()) == TOLD[200]
    client.end()
    assert calls_of(breaker_env, key, there) == [{"rerouted": 1}, {}]


@pytest.mark.parametrize("name", ["http.client", "fetch"])
def test_a_model_that_opens_over_there(name, provider, second, breaker_env, talk):
    key, there = provider.key(), second.key()
    breaker_env.configure(addressed(key, there), open_seconds=60)
    trip(breaker_env, key)
    second.answer(Answer(500))
    client = talk(name)
    assert client.ask_often(6, provider.url()) == [TOLD[500]] * 5 + [OPEN]
    assert client.ask(provider.url(), "n") == TOLD[500], "another model"
    client.end()
    assert second.count() == 6
    assert breaker_env.state(f"{there}/m") == "open" and f"{key}/m" not in breaker_env.breakers()
    done = breaker_env.run(PYTHON, "-c", TOLD_BY, provider.port, chat("m"))
    assert f"X-Breaker-Key: {there}/m" in done.stdout.decode() and f"breaker of {there}/m" in done.stdout.decode()


TOLD_BY = """
import http.client, sys
connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=10)
connection.request("POST", "/v1/chat/completions", sys.argv[2])
answer = connection.getresponse()
print(answer.status, answer.headers, answer.read().decode())
"""


@pytest.mark.parametrize("name", ["http.client", "fetch"])
def test_a_model_opens_its_host(name, provider, second, breaker_env, talk):
    """scope = host, for both: the model's failures take the connects elsewhere, where they count the same way."""
    key, there = provider.key(), second.key()
    breaker_env.configure(addressed(key, there, scope="host") + f"[target {there}]\nscope = host\n", open_seconds=60)
    provider.answer(Answer(500))
    client = talk(name)
    assert client.ask_often(5, provider.url(), "m", "close") == [TOLD[500]] * 5
    assert client.ask_often(3, provider.url(), "m", "close") == [TOLD[200]] * 3
    assert calls_of(breaker_env, key, there) == [{"failure": 5, "rerouted": 3}, {"success": 3}]
    second.answer(Answer(500))
    assert client.ask_often(6, provider.url(), "m", "close") == [TOLD[500]] * 5 + [REFUSED]
    client.end()
    assert breaker_env.breakers().keys() == {key, there} and second.count() == 8


def test_a_probe_of_the_fallback(provider, second, breaker_env, talk):
    key, there = provider.key(), second.key()
    breaker_env.configure(addressed(key, there), open_seconds=60)
    trip(breaker_env, key)
    client = talk("http.client")
    second.refuse()
    breaker_env.make_due(there)
    assert client.ask(provider.url()) == REFUSED and breaker_env.state(there) == "open"
    second.listen()
    breaker_env.make_due(there)
    assert client.ask(provider.url()) == TOLD[200] and breaker_env.state(there) == "closed"
    client.end()


def test_who_is_not_the_probe_goes_there(provider, second, breaker_env, talk):
    """While one call finds out how the primary is, the others need not wait."""
    gate = threading.Event()
    key = provider.key()
    breaker_env.configure(addressed(key, second.key()), open_seconds=60, probe_lease=60)
    breaker_env.make_due(key)
    provider.answer(Answer(200, gate=gate))
    probe = breaker_env.start(*ALL["http.client"].argv, provider.url(), "1")
    provider.wait_for(1)
    client = talk("node-http")
    assert client.ask_often(2, provider.url(), "m", "close") == [TOLD[200]] * 2 and second.count() == 2
    gate.set()
    assert probe.communicate(timeout=20)[0].startswith(b"status 200") and breaker_env.state(key) == "closed"
    assert client.ask(provider.url(), "m", "close") == TOLD[200] and provider.count() == 2
    client.end()
    assert "half_open" in [e["cause"] for e in breaker_env.events(event="rerouted")]


def test_hangs_over_there_count_over_there(provider, breaker_env, talk):
    key = provider.key()
    with black_hole("127.0.0.2") as port:
        there = f"127.0.0.2:{port}"
        breaker_env.configure(addressed(key, there), open_seconds=60, connect_hang_after=0.1)
        trip(breaker_env, key)
        client = talk("http.client", "--timeout", "0.2")
        assert client.ask_often(6, provider.url()) == ["error timeout"] * 5 + [REFUSED]
        client.end()
    assert breaker_env.breakers()[there]["last_failure"]["class"] == "connect_hang"


# --- TLS ---------------------------------------------------------------------------------------------

TLS = {
    "http.client": [PYTHON, "-c", """
import http.client, ssl, sys
context = ssl.create_default_context(cafile=sys.argv[1])
for _ in range(int(sys.argv[3])):
    connection = http.client.HTTPSConnection("localhost", int(sys.argv[2]), timeout=10, context=context)
    try:
        connection.request("POST", "/v1/chat/completions", '{"model": "m"}')
        print(connection.getresponse().status, *connection.sock.getpeername())
    except ConnectionRefusedError:
        print("refused")
    connection.close()
"""],
    "urllib": [PYTHON, "-c", """
import ssl, sys, urllib.error, urllib.request
context = ssl.create_default_context(cafile=sys.argv[1])
for _ in range(int(sys.argv[3])):
    try:
        with urllib.request.urlopen(f"https://localhost:{sys.argv[2]}/v1/chat/completions", b'{"model": "m"}', 10,
                                    context=context) as answer:
            print(answer.status)
    except urllib.error.URLError as error:
        assert isinstance(error.reason, ConnectionRefusedError), error
        print("refused")
"""],
    "node": ["node", "-e", """
const [ca, port, count] = process.argv.slice(1);
const https = require("https"), agent = new https.Agent({ ca: require("fs").readFileSync(ca), keepAlive: false });
const call = () => new Promise(done => {
    const request = https.request({ host: "localhost", port, agent, method: "POST", path: "/v1/chat/completions" },
        answer => answer.resume().on("end", () => done(answer.statusCode)));
    request.on("error", error => done(error.code === "ECONNREFUSED" ? "refused" : String(error)));
    request.end('{"model": "m"}');
});
(async () => { for (let i = 0; i < Number(count); i++) console.log(await call()); })();
"""],
    "wget": ["bash", "-c", """
for ((i = 0; i < $2; i++)); do
    if wget -q --tries=1 --timeout=10 --ca-certificate="$0" --post-data='{"model": "m"}' -O /dev/null \
        "https://localhost:$1/v1/chat/completions"; then echo 200; else echo refused; fi
done
"""],
}


@pytest.mark.parametrize("name", TLS)
def test_tls(name, authority, providers, breaker_env):
    """One certificate, valid at both; the name that is verified is the program's."""
    first, other = providers(tls=authority.server()), providers(tls=authority.server(), host="127.0.0.2")
    key, there = first.key(name="localhost"), other.key()
    breaker_env.configure(addressed(key, there), failure_threshold=2, open_seconds=60)
    first.refuse()
    done = breaker_env.run(*TLS[name], authority.ca, first.port, 7)
    assert (done.returncode, done.stderr) == (0, b""), done
    lines = done.stdout.decode().splitlines()
    assert [line.split()[0] for line in lines] == ["refused"] * 2 + ["200"] * 5
    if name == "http.client":
        assert set(lines[2:]) == {f"200 127.0.0.2 {other.port}"}
    assert other.count() == other.accepted == 5
    assert calls_of(breaker_env, key, there) == [{"failure": 2, "rerouted": 5}, {"success": 5}]


# --- names -------------------------------------------------------------------------------------------


@pytest.fixture
def names(compile_c, tmp_path):
    """Names of our own behind the breaker; what was asked for and freed."""

    class Names:
        environment = {"QUERIES": str(tmp_path / "queries"),
                       "LD_PRELOAD": str(compile_c(SOCK / "names.c", "-shared", "-fPIC", "-ldl", name="names.so"))}

        def lines(self):
            file = tmp_path / "queries"
            return file.read_text().split("\n")[:-1] if file.exists() else []

        def asked(self, name):
            return self.lines().count(f"asked {name}")

        def balanced(self):
            good = [line for line in self.lines() if line.startswith("asked") and "dead" not in line]
            return len(good) == self.lines().count("freed ")

    return Names()


@pytest.mark.parametrize("name", FEW)
def test_a_new_process_finds_the_name(name, provider, second, breaker_env, talk, names):
    """Its first connect is refused: the name was resolved along with the primary's."""
    key, there = f"first-1.test:{provider.port}", f"other-2.test:{second.port}"
    breaker_env.configure(addressed(key, there), open_seconds=60)
    trip(breaker_env, key)
    client = talk(name, env=names.environment)
    assert client.ask_often(3, provider.url(name="first-1.test"), "m", "close") == [TOLD[200]] * 3
    client.end()
    assert second.count() == 3 and provider.accepted == 0
    assert calls_of(breaker_env, key, there, f"{there}/m") == [{"rerouted": 3}, {"success": 3}, {"success": 3}]
    processes = 3 if name == "wget" else 1
    assert names.asked("other-2.test") == processes and names.balanced()


@pytest.mark.parametrize("name", FEW)
def test_nothing_is_asked_for_while_all_is_well(name, provider, second, breaker_env, talk, names):
    key, there = f"first-1.test:{provider.port}", f"other-2.test:{second.port}"
    breaker_env.configure(addressed(key, there), failure_threshold=1, open_seconds=60)
    client, url = talk(name, env=names.environment), provider.url(name="first-1.test")
    assert client.ask_often(3, url, "m", "close") == [TOLD[200]] * 3
    assert names.asked("other-2.test") == 0
    provider.refuse()
    assert client.ask(url, "m", "close") == REFUSED
    assert names.asked("other-2.test") == 0
    assert client.ask_often(2, url, "m", "close") == [TOLD[200]] * 2 and second.count() == 2
    client.end()
    assert names.asked("other-2.test") == (2 if name == "wget" else 1) and names.balanced()


def test_a_name_that_cannot_be_resolved(provider, second, breaker_env, talk, names):
    """Refused, as without it; and not asked for again at once."""
    key = f"first-1.test:{provider.port}"
    breaker_env.configure(addressed(key, f"dead.test:{second.port}"), open_seconds=60)
    trip(breaker_env, key)
    client = talk("http.client", env=names.environment)
    assert client.ask_often(4, provider.url(name="first-1.test"), "m", "close") == [REFUSED] * 4
    client.end()
    assert names.asked("dead.test") == 1 and names.asked("first-1.test") == 4 and names.balanced()
    assert calls_of(breaker_env, key) == [{"refused": 4}]


def test_the_same_name_at_another_port(provider, breaker_env, talk, names):
    """Its addresses are those that the program just got."""
    key = f"first-1.test:{provider.port}"
    with Provider() as other:
        breaker_env.configure(addressed(key, f"first-1.test:{other.port}"), open_seconds=60)
        trip(breaker_env, key)
        client = talk("http.client", env=names.environment)
        assert client.ask_often(3, provider.url(name="first-1.test"), "m", "close") == [TOLD[200]] * 3
        client.end()
        assert other.count() == 3 and names.asked("first-1.test") == 3 and names.balanced()
    assert calls_of(breaker_env, f"first-1.test:{other.port}") == [{"success": 3}]


def test_an_address_of_the_fallback_is_dead(provider, second, breaker_env, talk, names):
    """The next call takes the other one."""
    key, there = f"first-1.test:{provider.port}", f"other-3-2.test:{second.port}"
    breaker_env.configure(addressed(key, there), open_seconds=60)
    trip(breaker_env, key)
    client = talk("http.client", env=names.environment)
    assert client.ask_often(4, provider.url(name="first-1.test"), "m", "close") == [REFUSED] + [TOLD[200]] * 3
    client.end()
    assert calls_of(breaker_env, there) == [{"failure": 1, "success": 3}]


@pytest.mark.parametrize("name", ["http.client", "node-http", "wget", "aiohttp"])
def test_a_walk_is_one_failure_of_the_fallback(name, provider, second, breaker_env, talk, names):
    """Each address of the primary leads to the same dead place."""
    key, there = f"first-1-4-5.test:{provider.port}", second.key()
    breaker_env.configure(addressed(key, there), open_seconds=60)
    trip(breaker_env, key)
    second.refuse()
    client = talk(name, env=names.environment)
    for number in range(1, 6):
        assert client.ask(provider.url(name="first-1-4-5.test")) == REFUSED
        assert breaker_env.calls(there)["failure"] == number
    second.listen()
    assert client.ask(provider.url(name="first-1-4-5.test")) == REFUSED and second.accepted == 0
    breaker_env.make_due(there)
    assert client.ask_often(2, provider.url(name="first-1-4-5.test"), "m", "close") == [TOLD[200]] * 2
    client.end()
    assert breaker_env.state(there) == "closed" and provider.accepted == 0


# --- sockets -----------------------------------------------------------------------------------------

# connect() of one socket after another to PORT, as the arguments say; what the program sees of each.
CONNECTS = """
import errno, os, select, socket, sys
port, resolve, cases = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
if resolve != "-":
    socket.getaddrinfo(resolve, port, type=socket.SOCK_STREAM)
for case in cases:
    words = case.split(",")
    family = socket.AF_INET if "v4" in words else socket.AF_INET6
    address = {"v4": "127.0.0.1", "v6": "::1", "mapped": "::ffff:127.0.0.1"}[words[0]]
    with socket.socket(family) as one:
        one.settimeout(10)
        if "only" in words:
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if "bound" in words:
            one.bind(("::1", 0))
        if "open" in words:
            one.bind(("::", 0))
        if "v4-bound" in words:
            one.bind(("::ffff:127.0.0.1", 0))
        if "nonblocking" in words or "blocking" in words:
            one.setblocking("blocking" in words)
        said = [errno.errorcode.get(one.connect_ex((address, port)), "ok")]
        if "nonblocking" in words and said == ["EINPROGRESS"]:
            select.select([], [one], [], 10)
            if "again" in words:
                said.append(errno.errorcode.get(one.connect_ex((address, port)), "ok"))
            said.append(errno.errorcode.get(one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), "ok"))
        try:
            said.append(one.getpeername()[0])
            if "late" in words:
                said.append(errno.errorcode.get(one.connect_ex((address, port)), "ok"))
            one.setblocking(True)
            one.sendall(b"POST /v1/chat/completions HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 13\\r\\n\\r\\n{\\"model\\":\\"m\\"}")
            said.append(one.recv(4096).decode()[9:12])
        except OSError as error:
            said.append(errno.errorcode[error.errno])
        print(*said)
"""


def connects(breaker_env, port, *cases, resolve="-", env=None):
    done = breaker_env.run(PYTHON, "-c", CONNECTS, port, resolve, *cases, env=env)
    # The launcher says so of an address that only sockets of IPv6 can reach.
    told = [line for line in done.stderr.splitlines() if b"expected a name or an IPv4 address" not in line]
    assert (done.returncode, told) == (0, []), done
    return done.stdout.decode().splitlines()


@pytest.fixture
def broken(provider, breaker_env):
    """broken(ADDRESS): all of the primary's names and addresses are broken, and have that fallback."""

    def configure(address, **keys):
        hosts = [f"{host}:{provider.port}" for host in ("127.0.0.1", "[::1]", "localhost", "first-1.test")]
        sections = [addressed(f"host{number}", address, match=host) for number, host in enumerate(hosts)]
        breaker_env.configure("".join(sections), open_seconds=60, **keys)
        trip(breaker_env, *hosts)

    return configure


def test_what_a_program_sees_of_it(provider, second, breaker_env, broken):
    broken(second.key())
    there = "127.0.0.2 200"
    assert connects(breaker_env, provider.port, "v4", "v4,nonblocking", "v4,nonblocking,again", "v4,blocking,late") == [
        f"ok {there}", f"EINPROGRESS ok {there}", f"EINPROGRESS ok ok {there}", "ok 127.0.0.2 EISCONN 200"]
    assert calls_of(breaker_env, second.key("m"), provider.key("m")) == [{"success": 4}, {}]
    second.refuse()
    assert connects(breaker_env, provider.port, "v4", "v4,nonblocking", "v4,nonblocking,again") == [
        "ECONNREFUSED ENOTCONN", "EINPROGRESS ECONNREFUSED ENOTCONN", "EINPROGRESS ECONNREFUSED ok ENOTCONN"]
    assert calls_of(breaker_env, second.key(), provider.key()) == [{"success": 4, "failure": 3}, {"rerouted": 7}]
    trip(breaker_env, second.key())
    assert connects(breaker_env, provider.port, "v4", "v4,nonblocking") == ["ECONNREFUSED ENOTCONN"] * 2


def need_ipv6():
    if no_ipv6():
        pytest.skip(f"no IPv6 on this machine's loopback: {no_ipv6()}")


def test_ipv6_sockets_reach_ipv4(provider, second, breaker_env, broken):
    need_ipv6()
    broken(second.key())
    there = "::ffff:127.0.0.2 200"
    assert connects(breaker_env, provider.port, "v6", "v6,nonblocking", "v6,open", "mapped", "mapped,v4-bound") == [
        f"ok {there}", f"EINPROGRESS ok {there}", *[f"ok {there}"] * 3]
    before = second.accepted
    assert connects(breaker_env, provider.port, "v6,only", "v6,bound", "v6,only,nonblocking") == [
        "ECONNREFUSED ENOTCONN"] * 3
    assert second.accepted == before
    assert calls_of(breaker_env, f"[::1]:{provider.port}") == [{"rerouted": 3, "refused": 3}]


def test_only_ipv6_sockets_reach_ipv6(provider, providers, breaker_env, broken):
    need_ipv6()
    other = providers(host="::1")
    there = f"[::1]:{other.port}"
    broken(there)
    assert connects(breaker_env, provider.port, "v6", "v6,only", "v6,bound", "mapped", "mapped,v4-bound", "v4",
                    "v4,nonblocking") == ["ok ::1 200"] * 4 + ["ECONNREFUSED ENOTCONN"] * 3
    assert other.count() == 4
    assert calls_of(breaker_env, there, f"{there}/m") == [{"success": 4}] * 2


def test_a_program_that_resolved_nothing(provider, second, breaker_env, broken, names):
    """A name is not resolved at connect; known, it serves without being asked for again."""
    there = f"other-2.test:{second.port}"
    broken(there)
    assert connects(breaker_env, provider.port, "v4", "v4", env=names.environment) == ["ECONNREFUSED ENOTCONN"] * 2
    assert names.lines() == []
    assert connects(breaker_env, provider.port, *["v4"] * 3, resolve="first-1.test", env=names.environment) == [
        "ok 127.0.0.2 200"] * 3
    assert names.asked("other-2.test") == 1 and calls_of(breaker_env, there) == [{"success": 3}]


def test_an_address_is_not_waited_for(provider, second, breaker_env, broken, names):
    broken(f"other-2.test:{second.port}")
    program = ("import socket, sys; socket.getaddrinfo('127.0.0.1', int(sys.argv[1]), flags=int(sys.argv[2]),"
               " type=socket.SOCK_STREAM)")
    breaker_env.run(PYTHON, "-c", program, provider.port, int(socket.AI_NUMERICHOST), env=names.environment)
    assert names.asked("other-2.test") == 0
    breaker_env.run(PYTHON, "-c", program, provider.port, 0, env=names.environment)
    assert names.asked("other-2.test") == 1


# --- threads and forks -------------------------------------------------------------------------------

MANY = """
import http.client, os, sys, threading
"a".encode("idna")  # imported now: a fork beside a thread that imports hangs in the interpreter's own lock
port = int(sys.argv[1])
def call():
    for _ in range(10):
        connection = http.client.HTTPConnection("first-1-4.test", port, timeout=20)
        connection.request("POST", "/v1/chat/completions", '{"model": "m"}')
        assert connection.getresponse().status == 200
        connection.close()
def crowd():
    threads = [threading.Thread(target=call) for _ in range(8)]
    for one in threads: one.start()
    return threads
running = crowd()
children = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        call()
        os._exit(0)
    children.append(child)
for one in running: one.join()
print([os.waitpid(child, 0)[1] for child in children])
"""


def test_threads_and_forks(provider, second, breaker_env, names):
    key, there = f"first-1-4.test:{provider.port}", f"other-2.test:{second.port}"
    breaker_env.configure(addressed(key, there), open_seconds=60)
    trip(breaker_env, key)
    done = breaker_env.run(PYTHON, "-W", "ignore", "-c", MANY, provider.port, env=names.environment)
    assert (done.stdout, done.stderr) == (b"[0, 0, 0, 0]\n", b""), done
    assert second.count() == 120 and provider.accepted == 0
    assert calls_of(breaker_env, key, there) == [{"rerouted": 120}, {"success": 120}]


def test_curl_is_not_asked_for(provider, second, breaker_env, curl, names):
    """Its connects are not the sockets' business, nor are the names that it resolves. This call passes by both breakers."""
    key, there = f"first-1.test:{provider.port}", f"other-2.test:{second.port}"
    breaker_env.configure(addressed(key, there), open_seconds=60, when_exhausted="pass")
    for one in (key, there):
        trip(breaker_env, one)
    assert curl(provider.url("/v1/files", "first-1.test"), env=names.environment).status == 200
    assert names.asked("first-1.test") == 1 and names.asked("other-2.test") == 0
