"""A table that may not be used: what is wrong with it, and what mends it, in the words of every command."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from listeners import bound

REPOSITORY = Path(__file__).resolve().parents[2]
KEY = "api.openai.com/gpt-4o"
STRANGER, GROUP = 65534, 4321
OF_ROOT = "refused: it is root's, with mode 0666, and others may write it (chmod o-w)"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")


@pytest.fixture
def told(breaker):
    """What check finds of a table; the other commands say it, too."""

    def ask(path=breaker.table):
        line, = breaker("check", "--table", str(path), code=1).stderr.splitlines()
        start = f"{path}: table: expected a table of yours, or room for one, found "
        assert line.startswith(start)
        found = line.removeprefix(start)
        for command in (("status",), ("trip", "--create", KEY), ("explain", f"https://{KEY}/chat/completions")):
            assert breaker(*command, "--table", str(path), code=1).stderr == f"breaker: table {path}: {found}\n"
        return found

    return ask


def test_of_a_wrong_mode(breaker, told):
    breaker("trip", "--create", KEY)
    breaker.table.chmod(0o666)
    assert told() == (OF_ROOT if os.geteuid() == 0 else "refused: mode 0666, where 0600 is needed (chmod 600)")
    assert breaker("reset", "--all", code=1).stderr == f"breaker: table {breaker.table}: {told()}\n"
    breaker.table.chmod(0o600)
    breaker("check")


def test_of_a_wrong_size(breaker, told):
    breaker("trip", "--create", KEY)
    os.truncate(breaker.table, 4096)
    assert told() == "refused: 4096 bytes, where a table has 528384"


def test_of_a_wrong_kind(breaker, told, tmp_path):
    breaker("trip", "--create", KEY)
    (tmp_path / "link").symlink_to(breaker.table)
    os.mkfifo(tmp_path / "fifo", 0o600)
    assert told(tmp_path / "link") == "refused: a symlink"
    assert told(tmp_path) == "refused: a directory"
    assert told(tmp_path / "fifo") == "refused: no regular file"


def test_of_wrong_contents(breaker, told):
    breaker("trip", "--create", KEY)
    with open(breaker.table, "r+b") as file:
        file.write(bytes(8))
    assert told() == "not a table of this layout; `breaker reset --all` puts a fresh one in its place"
    breaker("reset", "--all")
    breaker("check")


def test_of_a_path_that_none_can_have(breaker, told, tmp_path):
    (tmp_path / "file").write_text("")
    assert told(tmp_path / "file" / "table") == "a part of the path is no directory"
    assert told(tmp_path / ("n" * 256)) == "a part of the path has more than 255 bytes"
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert told(tmp_path / "loop" / "table") == "refused: a loop of symlinks on the path"
    place = tmp_path / "nowhere" / "deeper" / "table"
    assert breaker("trip", "--create", KEY, "--table", str(place), code=1).stderr == (
        f"breaker: table {place}: the path is too long, or its directory cannot be made or written\n")


def test_a_long_path_is_shown_whole(breaker, tmp_path):
    place = tmp_path / ("d" * 200) / ("e" * (500 - 202 - len(str(tmp_path))))
    assert breaker("check", "--table", f"{place}/t/t", code=1).stderr.startswith(f"{place}/t/t: table: ")


# --- of others -------------------------------------------------------------------------------------


@pytest.fixture
def shared(breaker):
    """A directory that others reach, and the command in it, run as a stranger to root, in a group or not."""
    directory = Path(tempfile.mkdtemp(prefix="breaker-group-"))
    directory.chmod(0o755)
    for name in ("breaker", "libbreaker.so"):
        shutil.copy(breaker.program.with_name(name), directory / name)

    def run(*args, code=0, user=STRANGER, group=STRANGER, **changes):
        environment = {k: v for k, v in breaker.environment.items() if k != "BREAKER_TABLE"}
        done = subprocess.run(["setpriv", f"--reuid={user}", f"--regid={STRANGER}", f"--groups={group}",
                               directory / "breaker", *args], env={**environment, "HOME": "/", **changes}, cwd="/",
                              capture_output=True, text=True, timeout=30)
        assert done.returncode == code, done
        return done

    run.directory, run.table = directory, directory / "place" / "table"
    yield run
    shutil.rmtree(directory)


@needs_root
@pytest.mark.parametrize("mode, group, owner, why", [
    (0o644, STRANGER, STRANGER, "mode 0644, where 0600 is needed (chmod 600)"),
    (0o600, STRANGER, 4321, "it belongs to uid 4321, not to you (uid 65534, nobody)"),
    (0o600, STRANGER, 0, "it is root's, for the group 4321, and you are not in it"),
    (0o660, STRANGER, 0, "it is root's, for the group 4321, and you are not in it"),
    (0o666, GROUP, 0, "it is root's, with mode 0666, and others may write it (chmod o-w)"),
    (0o640, GROUP, 0, "it is root's, with mode 0640, by which its group may not read and write it (chmod 660)"),
    (0o660, GROUP, 0, None),
])
def test_of_another_owner(breaker, shared, mode, group, owner, why):
    breaker("trip", "--create", KEY, "--table", str(shared.table))
    shared.table.parent.chmod(0o755)
    os.chown(shared.table, owner, GROUP)
    shared.table.chmod(mode)
    done = shared("status", "--table", str(shared.table), group=group, code=1 if why else 0)
    assert done.stderr == (f"breaker: table {shared.table}: refused: {why}\n" if why else "")


@needs_root
def test_of_a_directory_that_may_not_be_entered(breaker, shared):
    breaker("trip", "--create", KEY, "--table", str(shared.table))
    done = shared("status", "--table", str(shared.table), code=1)
    assert done.stderr == f"breaker: table {shared.table}: refused: you may not enter {shared.table.parent}\n"


@pytest.fixture
def inside(shared):
    """Runs a shell script in a mount namespace of its own."""

    def run(script):
        done = subprocess.run(["unshare", "--mount", "sh", "-c", script], env={"HOME": "/", "PATH": os.environ["PATH"]},
                              capture_output=True, text=True, timeout=30)
        if "unshare" in done.stderr:
            pytest.skip("needs mount namespaces: " + done.stderr.strip())
        return done

    return run


@needs_root
def test_where_nothing_can_be_written(inside, shared):
    place = shared.directory / "place"
    place.mkdir()
    done = inside(f"mount -t tmpfs -o ro,size=4k none {place} && {shared.directory}/breaker check --table {place}/table")
    assert done.stderr == (f"{place}/table: table: expected a table of yours, or room for one, found Read-only file "
                           "system\n")


@needs_root
@pytest.mark.parametrize("owner, mode, why", [
    (STRANGER, None, "its directory is none"),
    (STRANGER, 0o755, "its directory has mode 0755, where 0700 is needed (chmod 700)"),
    (4321, 0o700, "its directory belongs to uid 4321, not to you (uid 65534, nobody)"),
])
def test_of_the_default_directory(inside, shared, owner, mode, why):
    """In a /dev/shm of ours."""
    directory = f"/dev/shm/breaker-{STRANGER}"
    done = inside(f"mount -t tmpfs -o size=64k,mode=1777 none /dev/shm && "
                  f"{f'mkdir -m {mode:o}' if mode else 'touch'} {directory} && chown {owner} {directory} && "
                  f"exec setpriv --reuid={STRANGER} --regid={STRANGER} --clear-groups {shared.directory}/breaker status")
    assert done.stderr == f"breaker: table /dev/shm/breaker-{STRANGER}/table.v1: refused: {why}\n"


# --- a group's ---------------------------------------------------------------------------------------


@needs_root
def test_a_groups_table_is_made_as_the_readme_says(shared):
    """By root; then the failures of two users are one streak, and who is not in the group is told so."""
    block, = (block for block in (REPOSITORY / "README.md").read_text().split("```")[1::2] if "chgrp llm" in block)
    commands = block.replace("/run/breaker", str(shared.table.parent)).replace("llm", str(GROUP))
    environment = {"HOME": "/", "PATH": f"{shared.directory}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-euc", "umask 077\n" + commands], env=environment, check=True, capture_output=True, timeout=30)
    with bound() as held:
        url = f"http://127.0.0.1:{held.getsockname()[1]}/v1/chat/completions"
        call = ("run", "--", "curl", "-s", "-d", '{"model":"m"}', url)
        for user in (STRANGER, 4322, STRANGER, 4322, STRANGER):
            shared(*call, code=7, user=user, group=GROUP, BREAKER_TABLE=str(shared.table))
        done = shared(*call, user=4322, group=GROUP, BREAKER_TABLE=str(shared.table))
    assert "circuit_open" in done.stdout
    rows = subprocess.run([shared.directory / "breaker", "status", "--table", shared.table], env=environment, check=True,
                          capture_output=True, text=True, timeout=30).stdout
    assert any(line.split()[:2] == [url.split("/")[2], "open"] for line in rows.splitlines()), rows
    done = shared("reset", "--all", "--table", str(shared.table), group=GROUP, code=1)
    assert done.stderr == f"breaker: table {shared.table}: it is root's, and only root puts a fresh one in its place\n"
    assert "you are not in it" in shared("check", "--table", str(shared.table), code=1).stderr
