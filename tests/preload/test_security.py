"""Promises of SECURITY.md that no other file's tests are about."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[1] / "bench"


@pytest.fixture
def shared(build):
    """A directory that every user can read, with the library in it."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        shutil.copy(build / "libbreaker.so", name)
        yield Path(name)


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a set-uid program and becomes another user")
@pytest.mark.parametrize("mode, status", [(0o755, 503), (0o4755, 200)], ids=["plain", "set-uid"])
def test_more_rights_than_the_caller(mode, status, shared, provider, breaker_env, compile_c):
    """Though the loader takes us along, since the program is linked to us: nothing of its caller's environment is heeded.
    As a plain program it is covered."""
    if os.statvfs(shared).f_flag & os.ST_NOSUID:
        pytest.skip(f"{shared} is mounted nosuid")
    program = shared / "poster"
    shutil.copy(compile_c(BENCH / "bench_sock.c", "-I", BENCH, "-Wl,--no-as-needed", shared / "libbreaker.so",
                          f"-Wl,-rpath,{shared}", name="linked"), program)
    program.chmod(mode)
    caller = shared / "caller"
    caller.mkdir()
    os.chown(caller, 65534, 65534)
    env = {**breaker_env.bare, "HOME": "/nonexistent", "BREAKER_TABLE": str(caller / "shm/table"), "BREAKER_LOG": str(caller / "log"),
           "BREAKER_FAILURE_THRESHOLD": "1", "BREAKER_FAILURE_STATUS": "200", "BREAKER_OPEN_SECONDS": "60"}
    done = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", program, str(provider.port),
                           "/v1/chat/completions", "fresh"], env=env, cwd=shared, input="1\n1\n", capture_output=True, text=True,
                          timeout=50)
    assert (done.returncode, done.stderr) == (0, ""), done
    assert [int(line.split()[1]) for line in done.stdout.splitlines()] == [200, status]
    assert sorted(path.name for path in caller.iterdir()) == (["log", "shm"] if status == 503 else [])
