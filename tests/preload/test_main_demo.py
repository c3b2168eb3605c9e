"""`make demo` shows what it says, in time, and can fail."""

import os
import shlex
import subprocess
import time

from support import PYTHON


def run_demo(build):
    begun = time.monotonic()
    done = subprocess.run([PYTHON, "scripts/demo"], env={**os.environ, "BREAKER_BUILD": str(build)}, capture_output=True,
                          text=True, cwd=os.path.join(os.path.dirname(__file__), "..", ".."), timeout=50)
    assert time.monotonic() - begun < 30
    return done


def test_the_demo(build):
    done = run_demo(build)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "requests that reached the provider: 5" in done.stdout and "probe succeeded" in done.stdout


def test_the_demo_fails_without_a_breaker(build, tmp_path):
    """A launcher that puts nothing below its program."""
    program = tmp_path / "breaker"
    program.write_text(f'#!/bin/sh\n[ "$1" = run ] && shift 2 && exec "$@"\nexec {shlex.quote(str(build / "breaker"))} "$@"\n')
    program.chmod(0o755)
    done = run_demo(tmp_path)
    assert done.returncode == 1 and "WRONG" in done.stdout and done.stderr == ""
