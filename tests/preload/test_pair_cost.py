"""Issue 7: admission and settling of a healthy call, in instructions, which are the same on each run and machine.

bench_pair opens calls, or opens, admits and settles them; what the latter has more, as callgrind counts, is the pair's own.
The ns are for `make bench`.
"""

import re
import subprocess

import pytest

from callgrind import stripped

CALLS = 2000
# Of admit and settle for host and model together, with both hashes, look-ups and statistics; gcc makes 500 of it at -O2.
INSTRUCTIONS = 560
# Of the settle of a first failure; gcc makes 620 of it.
FAILURE_INSTRUCTIONS = 680


@pytest.fixture
def total(benches, tmp_path, breaker_env):
    """Of bench_pair at what it is told, or of one of its functions."""
    program, report = stripped(benches / "bench_pair", tmp_path), tmp_path / "callgrind"

    def run(what, function=None):
        # The compiler may append to the name of one that it made for its only caller.
        only = [f"--toggle-collect={name}" for name in (function, f"{function}.*")] if function else []
        done = subprocess.run(["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={report}", *only, program,
                               what, str(CALLS)], env=breaker_env.environment, capture_output=True, text=True, timeout=50)
        assert done.returncode == 0 and not done.stderr, done
        return int(re.search(r"^totals: (\d+)$", report.read_text(), re.M).group(1))

    return run


@pytest.fixture
def instructions(total):
    """Of one pair."""
    def count():
        total("pairs")  # makes the table
        return (total("pairs") - total("opens")) / CALLS

    return count


def test_a_healthy_pair_costs_few_instructions(instructions, breaker_env):
    assert 100 < instructions() <= INSTRUCTIONS
    # Two runs of pairs, and the eight that warm each of all three up.
    assert breaker_env.calls("api.openai.com/gpt-4o-mini")["success"] == 2 * CALLS + 3 * 8


def test_a_first_failure_costs_few_instructions(total, breaker_env):
    assert 200 < total("failures", "settle_first_failure") / CALLS <= FAILURE_INSTRUCTIONS
    model = breaker_env.calls("api.openai.com/gpt-4o-mini")
    assert (model["failure"], model["success"]) == (CALLS, CALLS + 8)


def test_more_would_be_seen(instructions, breaker_env):
    """A rate to be counted as well is more work on the same way."""
    breaker_env.configure(failure_rate=0.5)
    assert instructions() > INSTRUCTIONS


def test_more_of_a_failure_would_be_seen(total, breaker_env):
    breaker_env.configure(failure_rate=0.9, min_calls=100)
    assert total("failures", "settle_first_failure") / CALLS > FAILURE_INSTRUCTIONS
