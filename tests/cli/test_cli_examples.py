"""What is shipped to be copied is good as it is: docs/examples/*.ini, breaker.ini, what the README shows."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.ini"))
BLOCKS = re.findall(r"^```ini\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
SHIPPED = (ROOT / "breaker.ini").read_text()
CREDENTIALS = {"OPENROUTER_API_KEY": "sk-0f-an-example"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_passes_the_check(path, breaker):
    done = breaker("check", "--config", str(path), **CREDENTIALS)
    assert done.stdout == f"{path}: all is well\n" and done.stderr == ""


def test_there_are_some():
    assert {path.stem for path in EXAMPLES} >= {"rolter", "vikat", "omniroute"} and len(BLOCKS) >= 2


@pytest.mark.parametrize("text", [
    SHIPPED, re.sub("^;(?=[^ \n])", "", SHIPPED, flags=re.M), *BLOCKS,
], ids=lambda text: re.sub(r"\W+", "-", text[:40]))
def test_what_is_shown_passes_the_check(text, breaker, ini):
    path = ini(text)
    for args in ((str(path),), ("--config", str(path))):
        assert breaker("check", *args, **CREDENTIALS).stderr == ""
