"""A process that starts below libbreaker.so pays little more than the loader takes for any preload: what the constructor
looks up, and what the loader relocates, is counted against a preload that does nothing."""

import os
import re
import subprocess
from pathlib import Path

import callgrind
import pytest

TRIVIAL = Path(__file__).resolve().parents[1] / "bench" / "lib" / "trivial_preload.c"
INSTRUCTIONS = 52_000  # more than with the trivial one; 49,300, and 64,000 before addresses became code
FAULTS = 13  # pages first touched; 10 or 11, and 16 before they lay together
RELOCATIONS = 800  # each sixteen instructions, in each process; 740
SPENDTHRIFT = """
static volatile char pages[20 * 4096];
__attribute__((constructor)) static void spend(void)
{
    for (unsigned i = 0; i < 20000; i++)
        pages[i % 20 * 4096]++;
}
"""


@pytest.fixture
def trivial(compile_c):
    return compile_c(TRIVIAL, "-shared", "-fPIC", name="trivial.so")


@pytest.fixture
def spendthrift(compile_c):
    return compile_c(SPENDTHRIFT, "-shared", "-fPIC", name="spendthrift.so")


def environment_of(*preloads):
    return {"HOME": "/", "PATH": "/usr/bin:/bin", "LD_PRELOAD": " ".join(map(str, preloads))}


def instructions(tmp_path, *preloads):
    report = tmp_path / "callgrind"
    subprocess.run(["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={report}", "/bin/true"], check=True,
                   env=environment_of(*preloads), timeout=50)
    return int(re.search(r"^(?:summary|totals): (\d+)", report.read_text(), re.M)[1])


def faults(*preloads):
    def once():
        child = os.posix_spawn("/bin/true", ["true"], environment_of(*preloads))
        _, status, used = os.wait4(child, 0)
        assert status == 0
        return used.ru_minflt

    return min(once() for _ in range(60))  # where the kernel happens to lay things adds to it, and takes nothing away


def test_a_start_costs_few_instructions(trivial, spendthrift, breaker_env, tmp_path):
    ours = callgrind.stripped(breaker_env.library, tmp_path)
    base = instructions(tmp_path, trivial)
    spent = instructions(tmp_path, ours) - base
    assert 1000 < spent <= INSTRUCTIONS
    assert instructions(tmp_path, ours, spendthrift) - base > INSTRUCTIONS


def test_a_start_touches_few_pages(trivial, spendthrift, breaker_env):
    base = faults(trivial)
    assert faults(breaker_env.library) - base <= FAULTS
    assert faults(breaker_env.library, spendthrift) - base > FAULTS


def test_the_loader_relocates_little(breaker_env):
    listed = subprocess.run(["readelf", "-rW", breaker_env.library], check=True, capture_output=True, text=True).stdout
    assert 0 < listed.count("_RELATIVE") <= RELOCATIONS
    assert not re.search(r"R_\w+_(?:64|ABS64) .*(?:SSL_|curl_)", listed), "the loader looks our own entries up"
