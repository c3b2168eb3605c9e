"""Issue 7, the hostile file suite: whatever stands where the table should be, a program does what it does without us,
outcomes count as far as they can, and the command tells what it is."""

import os
import subprocess
from pathlib import Path

import pytest

import hostile
from hostile import ALONE, PASSED, SHARED, STRANGER
from provider import Answer, Provider, wait_until
from support import PYTHON, chat
from tls_servers import trust

POSTS = Path(__file__).parent / "clients" / "posts.py"
# The program's kind, whether it calls over TLS, and how many descriptors its call takes.
PROGRAMS = {"libcurl": ("pycurl", False, 3), "socket": ("http.client", False, 1), "tls": ("http.client", True, 1)}
CALLS, THRESHOLD = 7, 5
SHM = "mount -t tmpfs -o {} tmpfs /dev/shm"
# A /dev of its own, in which no shm is.
NO_SHM = "cd /mnt && mount -t tmpfs tmpfs . && cd /mnt && for n in null zero urandom; do touch $n && mount --bind /dev/$n $n; " \
         "done && mount --rbind /mnt /dev"


@pytest.fixture(scope="module")
def servers(authority):
    with Provider() as plain, Provider(tls=authority.server()) as tls:
        yield plain, tls


class Posts:
    """The programs of posts.py, with the breaker under them and without."""

    def __init__(self, breaker_env, servers, authority):
        self.breaker_env, self.plain, self.tls = breaker_env, *servers
        self.extra = trust(authority)
        self.bare = {}
        for server in servers:
            server.answer(Answer(200))
            server.clear()

    def command(self, program):
        kind, tls, _ = PROGRAMS[program]
        return [PYTHON, str(POSTS), kind, self.tls.url(name="localhost") if tls else self.plain.url()]

    def environment(self, preload=True, unnamed=False, **changes):
        environment = {**(self.breaker_env.preloaded() if preload else self.breaker_env.bare), **self.extra, **changes}
        names = ("BREAKER_TABLE", "BREAKER_CONFIG", "BREAKER_LOG") if unnamed else ()
        return {name: value for name, value in environment.items() if name not in names}

    def run(self, program, around=(), calls=CALLS, **options):
        done = subprocess.run([*around, *self.command(program)], env=self.environment(**options), input=f"{calls}\n".encode(),
                              cwd="/", capture_output=True, timeout=50)
        return done.returncode, done.stdout, done.stderr

    def assert_unchanged(self, around=(), **options):
        for program in PROGRAMS:
            bare = self.run(program, around, preload=False, **options)
            assert self.run(program, around, **options) == bare
            assert (bare[0], bare[2]) == (0, b"") and bare[1].count(b"200 ") == CALLS, bare

    def counted(self, around=(), **options):
        """Two programs whose calls all fail: what becomes of that."""
        self.plain.answer(Answer(500))
        self.plain.clear()
        for program in ("libcurl", "socket"):
            code, _, error = self.run(program, around, **options)
            assert (code, error) == (0, b"")
        came = {THRESHOLD: SHARED, 2 * THRESHOLD: ALONE, 2 * CALLS: PASSED}
        return came.get(self.plain.count(), self.plain.count())

    def start(self, program, around=(), **options):
        return Running(self.breaker_env.start(*around, *self.command(program), bare=True, stdin=subprocess.PIPE,
                                              env=self.environment(**options)))


class Running:
    """One of the programs, kept, to be told how many calls to make."""

    def __init__(self, process):
        self.process = process

    def statuses(self, number):
        self.process.stdin.write(f"{number}\n".encode())
        self.process.stdin.flush()
        return [int(self.process.stdout.readline().split()[0]) for _ in range(number)]

    def end(self):
        _, error = self.process.communicate(timeout=20)
        assert (self.process.returncode, error) == (0, b"")


@pytest.fixture
def posts(breaker_env, servers, authority):
    breaker_env.configure(open_seconds=60)
    return Posts(breaker_env, servers, authority)


def told(breaker_env, command, around=(), **changes):
    done = subprocess.run([*around, str(breaker_env.program), command], env={**breaker_env.environment, **changes}, cwd="/",
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
    assert done.returncode in (0, 1), done
    return done.returncode, done.stderr


def is_open(breaker_env, around=()):
    done = subprocess.run([*around, str(breaker_env.program), "status", "--json"], env=breaker_env.environment,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=30)
    return b'"state":"open"' in done.stdout


def assert_truth(breaker_env, case, around):
    code, said = told(breaker_env, "status", around)
    assert code == case.status[0] and case.status[1] in said and bool(said) == bool(case.status[1]), (code, said)
    code, said = told(breaker_env, "check", around)
    assert (code, bool(said)) == ((1, True) if case.check else (0, False)) and (case.check or "") in said, (code, said)


def assert_logged(breaker_env, counted):
    causes = {event["cause"].partition(":")[0] for event in breaker_env.events(event="table")}
    assert causes == {SHARED: set(), ALONE: {"no shared table"}, PASSED: {"the table was refused"}}[counted]


# --- a path of the user's own ----------------------------------------------------------------------


@pytest.mark.parametrize("case", hostile.CASES, ids=lambda case: case.name)
def test_named(case, posts, breaker_env):
    breaker_env.table.parent.mkdir(mode=0o700)
    case.make(breaker_env.table)
    around = case.world(breaker_env.table) if case.world else []
    if case.fsize is not None:
        around = ["prlimit", f"--fsize={case.fsize}", *around]
    assert_truth(breaker_env, case, around)
    posts.assert_unchanged(around)
    assert posts.counted(around) == case.counted
    if case.fsize is None:
        assert_logged(breaker_env, case.counted)


def test_a_file_size_limit_does_not_kill(posts, breaker_env):
    """Beyond it the kernel ends a program by SIGXFSZ; Python, of all that run here, ignores that."""
    command = ["prlimit", "--fsize=0", "curl", "-s", *["-d", chat("m"), posts.plain.url(), posts.plain.url()]]
    done = subprocess.run(command, env=posts.environment(), stdin=subprocess.DEVNULL, capture_output=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, Answer(200).payload() * 2, b"")


@pytest.mark.parametrize("table,counted", [("/proc/no/such/table", ALONE), ("/dev/null", PASSED), ("/dev/full", PASSED),
                                           ("/dev/tty", PASSED), ("relative/table", PASSED), ("/", PASSED)])
def test_no_place_for_a_table(table, counted, posts, breaker_env):
    breaker_env.environment["BREAKER_TABLE"] = table
    code, said = told(breaker_env, "check")
    assert code == 1 and table in said
    code, said = told(breaker_env, "status")
    assert code == 1 or "no table at" in said or "expected an absolute path" in said, said
    posts.assert_unchanged()
    assert posts.counted() == counted
    assert not Path("/relative").exists(), "a table in the working directory"


# --- the table that nobody named -------------------------------------------------------------------


@pytest.fixture
def shm(request):
    made = []

    def make(mount):
        made.append(hostile.Shm(mount))
        return made[-1]

    yield make
    for one in made:
        one.end()


def directory(bits, owner=0):
    def make(inside):
        (inside / "breaker-0").mkdir()
        (inside / "breaker-0").chmod(bits)
        os.chown(inside / "breaker-0", owner, owner)

    return make


def directory_link(inside):
    (inside / "own").mkdir(mode=0o700)
    (inside / "breaker-0").symlink_to("own")


UNNAMED = {
    "private": (SHM.format("size=2m"), lambda inside: None, SHARED),
    "full": (SHM.format("size=64k"), lambda inside: None, ALONE),
    "read-only": (SHM.format("ro"), lambda inside: None, ALONE),
    "none": (NO_SHM, lambda inside: None, ALONE),
    "no owner's bits in the directory": (SHM.format("size=2m"), directory(0), SHARED),
    "group's directory": (SHM.format("size=2m"), directory(0o770), PASSED),
    "everybody's directory": (SHM.format("size=2m"), directory(0o1777), PASSED),
    "a stranger's directory": (SHM.format("size=2m"), directory(0o700, STRANGER), PASSED),
    "linked directory": (SHM.format("size=2m"), directory_link, PASSED),
    "a file for a directory": (SHM.format("size=2m"), lambda inside: (inside / "breaker-0").write_bytes(b""), PASSED),
}


@pytest.mark.parametrize("name", UNNAMED)
def test_unnamed(name, shm, posts, breaker_env):
    mount, make, counted = UNNAMED[name]
    world = shm(mount)
    make(world.inside)
    around = world.command()
    del breaker_env.environment["BREAKER_TABLE"]
    code, said = told(breaker_env, "status", around)
    assert code == (1 if counted == PASSED else 0) and ("refused" if counted == PASSED else "no table at") in said
    code, said = told(breaker_env, "check", around)
    assert (code, bool(said)) == ((0, False) if counted == SHARED else (1, True)), said
    posts.assert_unchanged(around)
    assert posts.counted(around) == counted
    assert_logged(breaker_env, counted)


@pytest.mark.parametrize("bits,counted", [(0o600, SHARED), (0o660, PASSED), (0o640, PASSED), (0o606, PASSED)])
def test_a_users_own_of_other_modes(bits, counted, shm, posts, breaker_env, build):
    """Root may share one on purpose; nobody else's is used."""
    world = shm(SHM.format("size=2m"))
    around = world.command(STRANGER)
    if subprocess.run([*around, "test", "-r", build / "libbreaker.so", "-a", "-r", POSTS]).returncode != 0:
        pytest.skip(f"others may not read {build}")
    options = {"unnamed": True, "HOME": "/"}
    posts.run("socket", around, calls=1, **options)
    (world.inside / f"breaker-{STRANGER}" / "table.v1").chmod(bits)
    assert posts.counted(around, **options) == counted


def test_removed_as_at_a_logout(shm, posts, breaker_env):
    """logind's RemoveIPC takes the user's files and the directory while programs run."""
    world = shm(SHM.format("size=2m"))
    around = world.command()
    del breaker_env.environment["BREAKER_TABLE"]
    posts.plain.answer(Answer(500))
    with_us = [posts.start(program, around) for program in ("libcurl", "socket")]
    assert [one.statuses(2) for one in with_us] == [[500, 500]] * 2
    (world.inside / "breaker-0" / "table.v1").unlink()
    (world.inside / "breaker-0").rmdir()
    assert told(breaker_env, "status", around)[0] == 0
    # What they had counted goes with the table; they come together again at a fresh one within a second of trouble.
    wait_until(lambda: with_us[0].statuses(1) and (world.inside / "breaker-0" / "table.v1").exists(), 20, "a fresh table")
    wait_until(lambda: with_us[0].statuses(1) == [503] and is_open(breaker_env, around), 20, "open for all")
    posts.plain.clear()
    assert posts.run("socket", around)[1].count(b"503 ") == CALLS and posts.plain.count() == 0
    wait_until(lambda: with_us[1].statuses(1) == [503], 20, "the other one back")
    for one in with_us:
        one.end()


# --- while it is used ------------------------------------------------------------------------------


def replace_it(table):
    other = table.with_name("other")
    hostile.valid(other)
    other.rename(table)


def replace_by_noise(table):
    table.unlink()
    hostile.filled(hostile.NOISE)(table)


# What is done to the table of a running program; whether there is one then that can be shared.
MEANWHILE = {"unlinked": (lambda table: table.unlink(), True), "replaced": (replace_it, True),
             "replaced by noise": (replace_by_noise, False),
             "made a stranger's": (hostile.give_away, False)}


@pytest.mark.parametrize("program", ["libcurl", "socket"])
@pytest.mark.parametrize("name", MEANWHILE)
def test_while_mapped(name, program, posts, breaker_env):
    """The mapping that a program has stays good; whoever looks again goes by what is there."""
    change, better = MEANWHILE[name]
    posts.plain.answer(Answer(500))
    running = posts.start(program)
    assert running.statuses(3) == [500] * 3
    change(breaker_env.table)
    assert (told(breaker_env, "status")[0], told(breaker_env, "check")[0]) == ((0, 0) if better else (1, 1))
    if better:
        wait_until(lambda: running.statuses(1) == [503] and is_open(breaker_env), 20, "open for all")
    else:  # the old one goes on
        assert running.statuses(4) == [500, 500, 503, 503]
    running.end()


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_descriptors_left(program, posts):
    """From none at all to what the call takes: whatever comes of it, it comes of it without us, too."""
    for free in range(PROGRAMS[program][2] + 1):
        bare = posts.run(program, preload=False, calls=3, POSTS_FILES=str(free))
        assert posts.run(program, calls=3, POSTS_FILES=str(free)) == bare
    assert bare[1].count(b"200 ") == 3 and bare[2] == b"", bare


def test_no_descriptors_left_and_it_counts_alone(posts, breaker_env):
    """A socket has the last one when the table is looked for."""
    posts.plain.answer(Answer(500))
    _, output, _ = posts.run("socket", POSTS_FILES="1")
    assert (output.count(b"500 "), output.count(b"503 ")) == (THRESHOLD, CALLS - THRESHOLD)
    assert not breaker_env.table.exists()


def test_no_memory_for_a_table(posts):
    """It takes 516 KiB of address space, and so does its private stand-in."""
    posts.assert_unchanged(POSTS_MEMORY="480")
    assert posts.counted(POSTS_MEMORY="480") == PASSED


def test_two_pid_namespaces(posts, breaker_env):
    """No pid stands in the table: processes that cannot see each other share it."""
    hostile.only_root("has namespaces of its own")
    around = ["unshare", "--pid", "--fork", "--mount-proc"]
    posts.assert_unchanged(around)
    assert posts.counted(around) == SHARED


def test_without_proc(posts, breaker_env):
    """O_TMPFILE alone gives no name then."""
    hostile.only_root("mounts")
    around = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o ro tmpfs /proc && exec "$@"', "sh"]
    posts.assert_unchanged(around)
    assert posts.counted(around) == SHARED


# --- right without, wrong within -------------------------------------------------------------------


@pytest.mark.parametrize("fill", [b"\xff", b"\xa5", b"\x00", None], ids=["ones", "pattern", "zeros", "random"])
def test_slots_overwritten_in_use(fill, posts, breaker_env):
    """Whatever they say: no crash, no hang; calls go through or are refused, and a reset mends it."""
    hostile.valid(breaker_env.table)
    room = hostile.SIZE - hostile.layout.HEADER_SIZE
    running = [posts.start(program) for program in PROGRAMS]
    assert all(one.statuses(1) == [200] for one in running)
    with open(breaker_env.table, "r+b") as file:
        file.seek(hostile.layout.HEADER_SIZE)
        file.write(fill * room if fill else hostile.NOISE[:room])
    for one in running:
        assert set(one.statuses(CALLS)) <= {200, 503}
        one.end()
    code, output, error = posts.run("libcurl")  # a process that finds it so
    assert (code, error) == (0, b"") and {line[:4] for line in output.splitlines()} <= {b"200 ", b"503 "}
    assert told(breaker_env, "status")[0] == 0 and told(breaker_env, "check") == (0, "")
    used = breaker_env.status()["table"]["used"]
    assert 0 < used < 10 if fill == b"\x00" else used == hostile.layout.CAPACITY
    breaker_env.command("reset", "--all")
    posts.assert_unchanged()
