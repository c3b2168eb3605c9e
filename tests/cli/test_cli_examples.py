"""docs/examples/*.ini: each is good as it is."""

from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "docs" / "examples").glob("*.ini"))
CREDENTIALS = {"OPENROUTER_API_KEY": "sk-0f-an-example"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_passes_the_check(path, breaker):
    done = breaker("check", "--config", str(path), **CREDENTIALS)
    assert done.stdout == f"{path}: all is well\n" and done.stderr == ""


def test_there_are_some():
    assert {path.stem for path in EXAMPLES} >= {"rolter", "vikat", "omniroute"}
