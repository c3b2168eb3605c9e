"""Programs that do odd things with their sockets (sock/*.c): each behaves with us as it does without, and its calls count.

The programs are strict themselves: no wait without a bound, errno kept by what succeeds, as many descriptors at the end
as at the beginning.
"""

import subprocess
from pathlib import Path

import pytest

from support import PYTHON

SOCK = Path(__file__).with_name("sock")
CLIENTS = Path(__file__).with_name("clients")


class Server:
    """sock/server.c, without us."""

    def __init__(self, program, env):
        self.process = subprocess.Popen([program], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port, self.hole = map(int, self.process.stdout.readline().split())
        self.seen = None

    def key(self, model=None):
        return f"127.0.0.1:{self.port}" + (f"/{model}" if model else "")

    def end(self):
        """(connections, requests) of its whole life."""
        if self.seen is None:
            out, _ = self.process.communicate(timeout=10)
            assert self.process.returncode == 0, self.process.returncode
            self.seen = tuple(map(int, out.split()))
        return self.seen


@pytest.fixture
def program(compile_c):
    def make(name):
        return compile_c(SOCK / f"{name}.c", "-I", SOCK, "-pthread", "-w", name=name)

    return make


@pytest.fixture
def servers(program, breaker_env):
    running = []

    def start():
        running.append(Server(program("server"), breaker_env.bare))
        return running[-1]

    yield start
    for server in running:
        server.end()


@pytest.fixture
def server(servers, breaker_env):
    running = servers()
    breaker_env.configure(open_seconds=60)
    breaker_env.command("trip", "--create", running.key("shut"))
    return running


def words_of(done):
    assert (done.returncode, done.stderr) == (0, b""), (done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout.decode().split()


def assert_counted(breaker_env, server, successes, model="m"):
    calls = breaker_env.calls(server.key(model))
    assert (calls["success"], calls["failure"], calls["refused"]) == (successes, 0, 0), calls


def modes_of(programs):
    """[(program, mode)], of the modes of each program."""
    return [(name, mode) for name, modes in programs.items() for mode in modes]


# --- numbers that change hands -----------------------------------------------------------------------

DESCRIPTORS = {"descriptors": {"dup2-over": 1, "dup3-over": 1, "dup2-onto-another": 5, "dup-and-close": 6,
                               "dup-in-turns": 6, "close-range": 7, "close-range-unshare": 3, "closefrom": 4, "syscall": 2},
               "unseen": {"reused-by-file": 1, "reused-by-pipe": 3, "reused-by-pair": 1, "reused-by-accept": 1,
                          "reused-by-map": 1, "reused-by-connection": 15, "closed-past-us": 1}}


@pytest.mark.parametrize("name, mode", modes_of(DESCRIPTORS))
def test_descriptors(name, mode, program, breaker_env, server):
    command, calls = (program(name), mode, server.port), DESCRIPTORS[name][mode]
    assert words_of(breaker_env.run_bare(*command)) == words_of(breaker_env.run(*command)) == ["fine", str(calls)]
    assert_counted(breaker_env, server, calls)
    # A refusal that could not be carried out, since the number is another's by now, may stand in the statistics.
    assert breaker_env.calls(server.key("shut"))["refused"] <= 2


def test_a_duplicate_that_no_hook_sees(program, breaker_env, server):
    """Its reads and writes go unseen: what is known of the connection goes stale, and nothing bad comes of it."""
    command = (program("unseen"), "another-way", server.port)
    assert words_of(breaker_env.run_bare(*command)) == words_of(breaker_env.run(*command)) == ["fine", "1"]
    calls = breaker_env.calls(server.key("m"))
    assert calls["success"] >= 1 and calls["failure"] == 0, calls


def test_a_vfork_child_that_writes(program, breaker_env, server):
    command = (program("forks"), "vfork-writes", server.port)
    assert words_of(breaker_env.run_bare(*command)) == words_of(breaker_env.run(*command)) == ["fine", "1"]
    calls = breaker_env.calls(server.key("m"))
    assert calls["success"] >= 1 and calls["failure"] == 0, calls


def test_stdio(program, breaker_env, server):
    """A FILE reads past every hook. The answers came all the same: these calls did not hang."""
    breaker_env.configure(hang_after=1)
    command = (program("unseen"), "stdio", server.port)
    assert words_of(breaker_env.run_bare(*command)) == words_of(breaker_env.run(*command)) == ["fine", "2"]
    calls = breaker_env.calls(server.key("m"))
    assert calls["success"] >= 2 and calls["failure"] == 0, calls


def test_what_is_read_elsewhere_is_no_answer(program, breaker_env, server):
    command = (program("unseen"), "read-elsewhere", server.port)
    assert words_of(breaker_env.run_bare(*command)) == words_of(breaker_env.run(*command)) == ["fine", "5"]
    calls = breaker_env.calls(server.key("m"))
    assert (calls["success"], calls["failure"]) == (5, 0), calls


def test_high_numbers(program, breaker_env, server):
    """Covered or not."""
    command = (program("descriptors"), "high-numbers", server.port)
    assert words_of(breaker_env.run_bare(*command)) == words_of(breaker_env.run(*command)) == ["fine", "1"]
    calls = breaker_env.calls(server.key("m"))
    assert 1 <= calls["success"] <= 3 and calls["failure"] == 0, calls


# --- connects ----------------------------------------------------------------------------------------

# Calls that go well in each, all of them counted.
CONNECTS = {"connects": {"refused-blocking": 0, "refused-pending": 0, "good-pending": 2, "black-hole": 0,
                         "black-hole-bounded": 0, "dissolved": 3, "udp": 0, "local": 0, "mapped": 1},
            "arguments": {"bad-arguments": 1, "bad-buffers": 2, "no-lengths": 0},
            "gone": {"gone": 0}}


@pytest.mark.parametrize("name, mode", modes_of(CONNECTS))
def test_connects(name, mode, program, breaker_env, server):
    command = (program(name), mode, server.port, server.hole)
    bare = words_of(breaker_env.run_bare(*command))
    assert words_of(breaker_env.run(*command)) == bare
    if "IPv6" in bare:
        pytest.skip("no IPv6 here")
    assert breaker_env.calls(server.key("m"))["success"] == CONNECTS[name][mode]


@pytest.mark.parametrize("name, mode", modes_of(CONNECTS))
def test_connects_that_are_judged(name, mode, program, breaker_env, server):
    """Every host's connects are followed to their end, and still tell the program the same."""
    breaker_env.configure(match="all", failure_threshold=0)
    command = (program(name), mode, server.port, server.hole)
    assert words_of(breaker_env.run(*command)) == words_of(breaker_env.run_bare(*command))
    failures = sum(breaker["calls"]["failure"] for breaker in breaker_env.status()["breakers"])
    if mode.startswith("refused"):
        assert failures >= 1
    elif mode not in ("bad-arguments", "gone"):  # what the program itself undoes is nobody's fault
        assert failures == 0
    if mode.startswith("black-hole"):  # given up before connect_hang_after
        assert breaker_env.calls(f"127.0.0.1:{server.hole}")["neutral"] >= 1


def test_handshakes_that_go_on_past_us(program, breaker_env, server):
    breaker_env.configure(match="all", failure_threshold=0, connect_hang_after=0)
    command = (program("gone"), "handshake-elsewhere", server.port, server.hole)
    assert words_of(breaker_env.run(*command)) == words_of(breaker_env.run_bare(*command))
    assert sum(breaker["calls"]["failure"] for breaker in breaker_env.status()["breakers"]) == 0


def test_fast_open(program, breaker_env, server):
    """Passes, counted or not."""
    command = (program("connects"), "fast-open", server.port, server.hole)
    assert words_of(breaker_env.run_bare(*command)) == words_of(breaker_env.run(*command))
    assert breaker_env.calls(server.key("m"))["failure"] == 0


CUT_SHORT = """
import socket, sys
request = b"POST /v1/chat/completions HTTP/1.1\\r\\nHost: 127.0.0.1:%s\\r\\nContent-Length: 27\\r\\n\\r\\n" % sys.argv[1].encode()
for body in (b'{"messages":[],"model":"m"', b'{"model":"m",', b'{"messages":[],"model":"m"}'):
    with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=10) as client:
        client.sendall(request + body)
        client.shutdown(socket.SHUT_WR)
        print(len(client.makefile("rb").read()) > 0)
"""


def test_a_request_that_its_client_cuts_short(breaker_env, server):
    """And lingers until the peer gives up, too: that is no failure of the peer. A whole request is answered."""
    command = (PYTHON, "-c", CUT_SHORT, server.port)
    assert words_of(breaker_env.run_bare(*command)) == words_of(breaker_env.run(*command)) == ["False", "False", "True"]
    assert_counted(breaker_env, server, 1)


AFTER_ITS_END = """
import socket, sys
body = b'{"messages":[],"model":"%s"}'
head = b"POST /v1/chat/completions HTTP/1.1\\r\\nHost: 127.0.0.1:%s\\r\\nContent-Length: %d\\r\\n\\r\\n"
def request(model):
    return head % (sys.argv[1].encode(), len(body % model)) + body % model
for refused_before in (False, True):
    with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=10) as client:
        client.sendall(request(b"shut" if refused_before else b"m"))
        client.shutdown(socket.SHUT_WR)
        try:
            client.sendall(request(b"shut"))
            print("sent")
        except BrokenPipeError:
            print("EPIPE")
        print(client.makefile("rb").read(12).decode())
"""


def test_what_comes_after_the_end_is_the_kernels(breaker_env, server):
    """A refusal that begins after shutdown(SHUT_WR) would swallow an EPIPE; one that began before holds."""
    done = breaker_env.run(PYTHON, "-c", AFTER_ITS_END, server.port)
    assert words_of(done) == "EPIPE HTTP/1.1 200 sent HTTP/1.1 503".split()
    assert_counted(breaker_env, server, 1)


UNFOLLOWED = """
import socket, sys
SO_ZEROCOPY, MSG_ZEROCOPY = 60, 0x4000000
request = b"POST /v1/chat/completions HTTP/1.1\\r\\nHost: 127.0.0.1:%s\\r\\nContent-Length: 30\\r\\n\\r\\n" % sys.argv[1].encode()
request += b'{"messages":[],"model":"shut"}'
for odd in sys.argv[2:]:
    with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=10) as client:
        if odd == "zerocopy":
            client.setsockopt(socket.SOL_SOCKET, SO_ZEROCOPY, 1)
            assert client.send(request, MSG_ZEROCOPY) == len(request)
        else:
            client.send(b"!", socket.MSG_OOB) if odd == "urgent" else client.sendmsg([b"!"], [], socket.MSG_OOB)
            client.sendall(request)
        print(client.recv(12).decode())
"""


def test_bytes_that_are_not_ours_to_follow(breaker_env, server):
    """Urgent ones are beside the others, and the kernel tells when those that it did not copy have left: of swallowed
    ones it never would. They pass, whatever the breaker says."""
    command = (PYTHON, "-c", UNFOLLOWED, server.port, "zerocopy", "urgent", "urgent message")
    assert words_of(breaker_env.run_bare(*command)) == words_of(breaker_env.run(*command)) == 3 * ["HTTP/1.1", "200"]
    assert breaker_env.calls(server.key("shut"))["refused"] == 0


# --- many --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trigger", ["level", "edge"])
def test_a_thousand_connections(trigger, program, breaker_env, servers):
    told, seen = [], []
    for run in (breaker_env.run_bare, breaker_env.run):
        server = servers()
        told.append(words_of(run(program("events"), trigger, server.port, 1000, 3)))
        seen.append(server.end())
    assert told[0] == told[1] == ("pending+at-once 1000 opened 1000 requests 3000 answers 3000 other 0 ended 1000").split()
    assert seen[0] == seen[1] == (1000, 3000)
    assert_counted(breaker_env, server, 3000)


@pytest.mark.parametrize("mode, rounds, calls", [("loop", 10, 1280), ("duplex", 50, 800), ("woken", 10, 10),
                                                ("cancelled", 10, 10), ("cancel-due", 5, 15), ("small-stack", 5, 10)])
def test_threads(mode, rounds, calls, program, breaker_env, server):
    command = (program("threads"), mode, server.port, rounds)
    assert words_of(breaker_env.run_bare(*command)) == words_of(breaker_env.run(*command)) == ["fine", str(calls)]
    assert_counted(breaker_env, server, calls)


def test_forks_beside_threads(program, breaker_env, server):
    for run in (breaker_env.run_bare, breaker_env.run):
        fine, calls = words_of(run(program("threads"), "forking", server.port, 50))
        assert fine == "fine" and int(calls) > 150
    assert_counted(breaker_env, server, int(calls))


def test_threads_that_close_each_others(program, breaker_env, server):
    command = (program("threads"), "closers", server.port, 20)
    for run in (breaker_env.run_bare, breaker_env.run):
        assert words_of(run(*command)) == ["fine", "0"]
    assert sum(breaker_env.calls(server.key("m")).values()) > 0


def test_a_read_that_comes_back_late(program, compile_c, breaker_env, server):
    """The end that it brings is not the connection's that has its number by then."""
    behind = compile_c(SOCK / "lingering.c", "-shared", "-fPIC", name="lingering.so")
    command = [str(word) for word in (program("late"), server.port, 10)]
    done = subprocess.run(command, env=breaker_env.preloaded(LD_PRELOAD=f"{breaker_env.library}:{behind}"),
                          capture_output=True, timeout=30)
    assert words_of(done) == ["fine", "10"]
    assert_counted(breaker_env, server, 10)


@pytest.mark.parametrize("mode", ["calls", "threads", "first"])
def test_signal_handlers(mode, program, breaker_env, server):
    """What a handler does in the middle of a hook may pass uncounted; what it does elsewhere counts."""
    count = 50 if mode == "first" else 400
    for run in (breaker_env.run_bare, breaker_env.run):
        fine, main, handler = words_of(run(program("signals"), mode, server.port, count))
        assert (fine, int(main)) == ("fine", 0 if mode == "first" else count) and int(handler) >= 5
    assert_counted(breaker_env, server, int(main))
    calls = breaker_env.calls(server.key("h"))
    assert 0 < calls["success"] <= int(handler) and calls["failure"] == 0, (calls, handler)


def test_a_handler_on_a_small_stack(program, breaker_env, server):
    for run in (breaker_env.run_bare, breaker_env.run):
        assert words_of(run(program("signals"), "small-stack", server.port, 20)) == ["fine", "0", "20"]
    assert_counted(breaker_env, server, 20, model="h")


def test_a_jump_out_of_a_read(program, breaker_env, server):
    for run in (breaker_env.run_bare, breaker_env.run):
        assert words_of(run(program("signals"), "jumps", server.port, 20)) == ["fine", "20", "0"]
    assert_counted(breaker_env, server, 20)


@pytest.mark.parametrize("mode, calls", [("jumps", 20), ("forks", 101)])
def test_interrupted_in_our_own_work(mode, calls, program, compile_c, breaker_env, server):
    breaker_env.configure(match="all")
    behind = compile_c(SOCK / "interrupting.c", "-shared", "-fPIC", name="interrupting.so")
    command = [str(word) for word in (program("interrupted"), mode, server.port)]
    done = subprocess.run(command, env=breaker_env.preloaded(LD_PRELOAD=f"{breaker_env.library}:{behind}"),
                          capture_output=True, timeout=30)
    assert words_of(done) == ["fine", str(calls)]
    assert_counted(breaker_env, server, calls)


def test_calls_before_our_constructor(compile_c, breaker_env):
    """What stands behind the hooks is not known yet then: they are plain system calls (FIELD-NOTES 1.10)."""
    flags = ("-I", SOCK, "-w")
    library = compile_c(SOCK / "early.c", *flags, "-DLIBRARY", "-shared", "-fPIC", name="libearly")
    program = compile_c(SOCK / "early.c", *flags, library, name="early")
    stories = [breaker_env.run_bare(program), breaker_env.run(program)]
    for done in stories:
        assert (done.returncode, done.stderr) == (0, b""), done
        early, late = done.stdout.decode().splitlines()
        assert early == late
    assert stories[0].stdout == stories[1].stdout


# --- children ----------------------------------------------------------------------------------------

FORKS = {"child-uses": 4, "parent-closes": 3, "in-the-middle": 2, "crowd": 122, "vfork-closes": 42, "vfork-executes": 21,
         "cloned": 41, "spawned": 42, "shelled": 16, "executed": 2, "unheard": 6}


@pytest.mark.parametrize("mode", FORKS)
def test_children(mode, program, breaker_env, server):
    command = (program("forks"), mode, server.port)
    for run in (breaker_env.run_bare, breaker_env.run):
        assert words_of(run(*command)) == ["fine", str(FORKS[mode])]
    assert_counted(breaker_env, server, FORKS[mode])


def test_a_connection_of_two_processes(program, breaker_env, server):
    """Each sees half of it."""
    command = (program("forks"), "shared", server.port)
    assert words_of(breaker_env.run_bare(*command)) == words_of(breaker_env.run(*command)) == ["fine", "1"]
    calls = breaker_env.calls(server.key("m"))
    assert calls["success"] >= 1 and calls["failure"] == 0, calls


def test_200_children_of_python(breaker_env, server):
    command = (PYTHON, CLIENTS / "client_subprocess.py", server.port, "m", 200)
    for run in (breaker_env.run_bare, breaker_env.run):
        assert words_of(run(*command)) == ["200"] * 11
    assert_counted(breaker_env, server, 11)
