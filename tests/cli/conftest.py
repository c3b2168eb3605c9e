"""Fixtures for the `breaker` command: the built program, a clean environment, a table of one's own."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from table_layout import Table

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def build():
    directory = Path(os.environ.get("BREAKER_BUILD", REPOSITORY / "build")).resolve()
    assert (directory / "breaker").exists(), f"build first: no {directory}/breaker"
    return directory


@pytest.fixture
def home(tmp_path):
    directory = tmp_path / "home"
    directory.mkdir()
    return directory


@pytest.fixture
def environment(tmp_path, home):
    """Nothing of ours from outside, and a table of this test alone."""
    keep = {k: v for k, v in os.environ.items() if not k.startswith("BREAKER_") and k != "LD_PRELOAD"}
    return {**keep, "HOME": str(home), "BREAKER_TABLE": str(tmp_path / "shm" / "table")}


class Breaker:
    """Runs the command; keeps its environment, which a test may change."""

    def __init__(self, program, environment, directory):
        self.program, self.environment, self.directory = program, environment, directory
        self.table = Path(environment["BREAKER_TABLE"])

    def __call__(self, *args, code=0, **changes):
        environment = {**self.environment, **changes}
        done = subprocess.run([str(self.program), *args], env=environment, cwd=self.directory,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
        assert done.returncode == code, (args, done.returncode, done.stdout, done.stderr)
        return done

    def status(self, *args):
        return json.loads(self("status", "--json", *args).stdout)

    def breakers(self):
        return {b["key"]: b for b in self.status()["breakers"]}


@pytest.fixture
def breaker(build, environment, tmp_path):
    return Breaker(build / "breaker", environment, tmp_path)


@pytest.fixture
def untouched(breaker):
    """No table in the environment, so that nothing but the test sets a key."""
    del breaker.environment["BREAKER_TABLE"]
    return breaker


@pytest.fixture
def ini(tmp_path):
    """Writes a breaker.ini that may be read, and returns its path."""

    def write(text, name="breaker.ini", mode=0o600):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(mode)
        return path

    return write


@pytest.fixture
def explain(breaker):
    """The object that `explain --json` prints."""

    def run(*args, **options):
        return json.loads(breaker("explain", "--json", *args, **options).stdout)

    return run


@pytest.fixture
def open_table():
    return Table


STUB = r"""
#include <stdlib.h>
__attribute__((constructor)) static void loaded(void)
{
    const char *count = getenv("STUB_LOADED");
    setenv("STUB_LOADED", count ? "again" : "once", 1);
}
"""


@pytest.fixture(scope="session")
def stub(tmp_path_factory):
    """A library in the place of libbreaker.so that shows in the environment that it was loaded."""
    directory = tmp_path_factory.mktemp("stub")
    source, library = directory / "stub.c", directory / "libbreaker.so"
    source.write_text(STUB)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True, timeout=60)
    return library


@pytest.fixture
def layout(build, environment, tmp_path, stub):
    """layout(LIBRARY-PLACE, PROGRAM-PLACE): both put below a directory of this test."""

    def place(library, program, below="tree"):
        root = tmp_path / below
        for name, source in ((library, stub), (program, build / "breaker")):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, root / name)
        return Breaker(root / program, environment, tmp_path), root / library

    return place
