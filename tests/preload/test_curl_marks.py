"""What connect() is told for an answer of ours is for that connection of that process alone: a child that the program
starts meanwhile connects as it would without us (curl/marks.c)."""

from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("curl") / "marks.c"


@pytest.mark.parametrize("start", ["fork", "vfork"])
def test_children_connect_for_themselves(start, compile_c, breaker_env, provider, providers):
    marks = compile_c(SOURCE, "-lcurl", name="marks")
    nobody = providers()
    nobody.refuse()
    breaker_env.command("force", "--create", "open", provider.key("m"))
    done = breaker_env.run(marks, start, provider.url(), nobody.port)
    assert (done.returncode, done.stderr) == (0, b"")
    assert provider.count() == 0
