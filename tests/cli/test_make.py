"""What the README says to run works on a machine that has nothing yet: what is missing is installed before all else."""

import re
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
TARGETS = set(re.findall(r"\bmake ((?:check|bench|demo|soak)[a-z-]*)", (REPOSITORY / "README.md").read_text()))


def test_targets_are_found():
    assert {"check", "check-faults", "bench", "demo", "soak"} <= TARGETS


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_what_is_missing_is_installed_first(target, tmp_path):
    done = subprocess.run(["make", "-n", f"BUILD={tmp_path}", target], cwd=REPOSITORY, env={"PATH": "/usr/bin:/bin"},
                          capture_output=True, text=True, timeout=50)
    assert done.returncode == 0 and done.stdout.startswith("scripts/deps "), done.stdout[:500]
