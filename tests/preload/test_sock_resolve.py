"""The getaddrinfo hook: nobody sees that it is there."""

from pathlib import Path

import pytest

SOCK = Path(__file__).with_name("sock")


@pytest.fixture
def resolve(compile_c):
    return compile_c(SOCK / "resolve.c", name="resolve")


def lines(done):
    assert done.returncode == 0 and done.stderr == b"", done
    return done.stdout.decode().splitlines()


@pytest.mark.parametrize("changes", [{}, {"BREAKER_DISABLED": "1"}], ids=["enabled", "disabled"])
def test_libcs_resolver(resolve, breaker_env, changes):
    bare = lines(breaker_env.run_bare(resolve))
    assert lines(breaker_env.run_bare(resolve, env={**breaker_env.preloaded(), **changes})) == bare
    assert len(bare) == 12 and "error 0 errno 77: 127.0.0.1,443,1," in bare[3], bare
    assert any(line.startswith("localhost no-such-service: error -") for line in bare)


def test_another_resolver_behind_us(resolve, compile_c, breaker_env):
    resolver = compile_c(SOCK / "resolver.c", "-shared", "-fPIC", name="resolver.so")
    nodes = ["error-4711", "error4711", "error-11", "empty", "a.example", "x" * 300, "a b", ""]
    bare = lines(breaker_env.run_bare(resolve, *nodes, env={"LD_PRELOAD": str(resolver)}))
    both = breaker_env.preloaded(LD_PRELOAD=f"{breaker_env.library}:{resolver}")
    assert lines(breaker_env.run_bare(resolve, *nodes, env=both)) == bare
    for line in ("error-4711 443: error -4711 errno 4711:", "error4711 443: error 4711 errno 4711:",
                 "empty 443: error 0 errno 78:", "a.example 443: error 0 errno 78: 127.0.0.1,443,0,0,-"):
        assert line in bare
    assert bare.count("freed 1") == 12 + 4 and bare.count("freed 0") == 1
