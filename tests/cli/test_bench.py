"""Issue 7: `make bench` measures what it says, or says that it did not."""

import json
import subprocess
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[1] / "bench"
BEGIN, END = "<!-- make bench: from here -->\n", "<!-- make bench: to here -->\n"


@pytest.fixture
def bench(build, benches, tmp_path):
    """tests/bench/run, quick, with a build of its own that is the real one or has another library in it."""

    def run(*args, library=build / "libbreaker.so"):
        own = tmp_path / "build"
        own.mkdir()
        for name, target in (("libbreaker.so", library), ("breaker", build / "breaker"), ("tests", benches.parent)):
            (own / name).symlink_to(target)
        done = subprocess.run(["/usr/bin/python3", BENCH / "run", "--quick", *map(str, args)],
                              env={"PATH": "/usr/bin:/bin", "BREAKER_BUILD": str(own)}, capture_output=True, text=True,
                              timeout=50)
        assert not done.stderr, done.stderr
        return done.returncode, done.stdout, json.loads((own / "bench.json").read_text())

    return run


def test_the_readmes_tables_are_replaced_in_place(bench, tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{BEGIN}old\n{END}after\n")
    code, _, told = bench("--only", "pair", "--markdown", readme)
    assert code == 0 and not told["void"] and len(told["rows"]) == 1
    head, _, rest = readme.read_text().partition(BEGIN)
    middle, _, tail = rest.partition(END)
    assert (head, tail) == ("before\n", "after\n") and "old" not in middle
    assert "### The decision" in middle and "| admit + settle of a healthy call / one uncontended CAS |" in middle


def test_calls_that_are_not_covered_are_void(bench, compile_c):
    library = compile_c(BENCH / "lib/trivial_preload.c", "-shared", "-fPIC", name="trivial.so")
    code, out, told = bench("--only", "refused", library=library)
    assert code == 1 and "refused: VOID: bench_client: 200 calls: status 200, marked 0" in out, out
    assert not told["rows"] and len(told["void"]) == 2
