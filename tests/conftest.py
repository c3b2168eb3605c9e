"""Fixtures of the whole suite: the build, a provider, a breaker with a table of this test alone, a C compiler.

Each test has a time limit (60 s, or @pytest.mark.time_limit(seconds)): a client that hangs fails its
test and no more.
"""

import fcntl
import hashlib
import os
import signal
import subprocess
from pathlib import Path

import pytest

from provider import Answer, Provider
from support import Authority, BreakerEnvironment, Curl

# Minutes: `make check-valgrind` sets it.
collect_ignore = [] if os.environ.get("BREAKER_CHECK_VALGRIND") else ["preload/test_curl_valgrind.py",
                                                                       "preload/test_sock_valgrind.py", "preload/test_tls_valgrind.py"]

REPOSITORY = Path(__file__).resolve().parents[1]
TIME_LIMIT = 60


def pytest_configure(config):
    if "s" not in config.option.reportchars:
        config.option.reportchars += "s"  # nothing is skipped without its reason being told
    config.addinivalue_line("markers", "time_limit(seconds): for this test, instead of 60")


def pytest_collection_modifyitems(items):
    """The SDKs first: they load a core, beside which others wait."""
    items.sort(key=lambda item: "sdk" not in item.path.parts)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    marker = item.get_closest_marker("time_limit")
    seconds = marker.args[0] if marker else TIME_LIMIT

    def expire(*_):
        raise TimeoutError(f"{item.name}: not done within {seconds} s")

    before = signal.signal(signal.SIGALRM, expire)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="session")
def build():
    directory = Path(os.environ.get("BREAKER_BUILD", REPOSITORY / "build")).resolve()
    for name in ("breaker", "libbreaker.so"):
        assert (directory / name).exists(), f"build first: no {directory / name}"
    return directory


@pytest.fixture(scope="session")
def benches(build):
    """The directory of the programs of tests/bench, which a plain `make` does not build."""
    directory = build / "tests" / "bench"
    missing = [source.stem for source in sorted((REPOSITORY / "tests" / "bench").glob("*.c"))
               if not (directory / source.stem).exists()]
    assert not missing, f"build first: make benches (no {', '.join(missing)} in {directory})"
    return directory


@pytest.fixture
def provider():
    with Provider() as running:
        yield running


@pytest.fixture
def providers():
    """A maker of further providers, which end with the test."""
    running = []

    def make(**options):
        running.append(Provider(**options))
        return running[-1]

    yield make
    for one in running:
        one.close()


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture
def tls_provider(authority):
    with Provider(tls=authority.server()) as running:
        yield running


@pytest.fixture
def breaker_env(build, tmp_path):
    running = BreakerEnvironment(build, tmp_path)
    yield running
    running.end_all()


@pytest.fixture
def curl(breaker_env):
    return Curl(breaker_env)


@pytest.fixture
def open_breaker(breaker_env, curl):
    """Trips a model's breaker the honest way: by failures that reach the provider."""

    def open_it(provider, model="m", threshold=5, name=None):
        provider.answer(Answer(500), model=model)
        for _ in range(threshold):
            assert curl(provider.url(name=name), model).status == 500
        assert breaker_env.state(provider.key(model, name)) == "open"
        provider.clear()

    return open_it


@pytest.fixture(scope="session")
def made_once(tmp_path_factory):
    """made_once(NAME, MAKE): the path of that name, which MAKE(PATH) makes: once per run, whichever of its workers is first."""
    base = tmp_path_factory.getbasetemp()
    directory = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "made"
    directory.mkdir(exist_ok=True)

    def path_of(name, make):
        path, unfinished = directory / name, directory / f"{name}.unfinished"
        with open(directory / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                make(unfinished)
                unfinished.rename(path)
        return path

    return path_of


@pytest.fixture(scope="session")
def compile_c(made_once):
    """compile_c(SOURCE, *FLAGS): the program made of a C file or of C text; each once per run. BREAKER_TEST_LDFLAGS
    comes before the flags (test_curl_newer.py)."""
    first = os.environ.get("BREAKER_TEST_LDFLAGS", "").split()

    def compile_it(source, *flags, compiler="cc", name="program"):
        text = source.read_text() if isinstance(source, Path) else source
        identity = hashlib.sha256(repr((text, first, flags, compiler)).encode()).hexdigest()[:16]

        def make(program):
            code = program.with_name(f"{identity}.c")
            code.write_text(text)
            done = subprocess.run([compiler, "-O1", "-g", "-D_GNU_SOURCE", "-o", program, code, *first, *flags],
                                  capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done.stderr

        return made_once(f"{name}-{identity}", make)

    return compile_it
