"""The C programs with a newer libcurl than the machine's, where one is at hand: BREAKER_NEW_LIBCURL names its file, or
it lies below ~/.cache/breaker/ (the libcurl that a wheel of pycurl carries in pycurl.libs/ will do)."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from curl_lines import ends_of

HERE = Path(__file__).parent
FILES = ["programs", "connection", "rewind", "facts", "answers", "late", "odd", "tangle", "urls"]
NOTIFY_SINCE = (8, 17)


def cached():
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "breaker"
    return next(iter(sorted(cache.rglob("libcurl*.so*"), reverse=True)), None)


def told(path):
    """What the library says of itself, asked in a process of its own: one may hold only one libcurl so easily."""
    code = "import ctypes, sys; f = ctypes.CDLL(sys.argv[1]).curl_version; f.restype = ctypes.c_char_p; print(f().decode())"
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, timeout=20)
    return done.stdout if done.returncode == 0 else done.stderr


def version(text):
    found = re.match(r"libcurl/(\d+)\.(\d+)\.(\d+)", text)
    return tuple(map(int, found.groups())) if found else (0, 0, 0)


@pytest.fixture
def newer(tmp_path):
    """(flags to link with it, directory to load it from, what it says)"""
    named = os.environ.get("BREAKER_NEW_LIBCURL")
    path = Path(named).resolve() if named else cached()
    if not path:
        pytest.skip("no newer libcurl: BREAKER_NEW_LIBCURL is not set, ~/.cache/breaker/ has none")
    assert path.is_file(), f"BREAKER_NEW_LIBCURL: no file {path}"
    text, system = told(path), told("libcurl.so.4")
    if version(text) <= version(system):
        pytest.skip(f"{path} is not newer than the machine's: {text.strip()} <= {system.strip()}")
    link = tmp_path / "link"
    link.mkdir()
    (link / "libcurl.so").symlink_to(path)
    return ["-L", str(link), "-Wl,--allow-shlib-undefined"], path.parent, text


@pytest.mark.time_limit(150)
def test_the_c_programs(newer, build, compile_client, breaker_env):
    flags, load, text = newer
    used = breaker_env.run_bare(compile_client(*flags), "version", env={"LD_LIBRARY_PATH": str(load)})
    assert (used.stdout.decode(), used.stderr) == (text, b""), "the programs must run with that library"
    # A wheel's CA file need not exist here: without it no handshake begins. 8.23 tells URLs without the user's name and
    # password; after an answer of ours they are still in it.
    without = ["valgrind", "speaks_no_tls"] + (["told_as_libcurl_tells_it"] if version(text) >= (8, 22) else []) + ([] if "nghttp2" in text else ["h2", "streams_of"])
    env = {**os.environ, "BREAKER_TEST_LDFLAGS": " ".join(flags), "LD_LIBRARY_PATH": str(load),
           "BREAKER_BUILD": str(build)}
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", "-k", " and ".join(f"not {name}" for name in without),
                           *(HERE / f"test_curl_{name}.py" for name in FILES)],
                          env=env, cwd=HERE.parent.parent, capture_output=True, text=True, timeout=140)
    assert done.returncode == 0, text + done.stdout[-6000:]


def test_messages_read_in_the_notify_callback(newer, compile_client, breaker_env, provider, shut):
    """It is called inside of perform: the end of a transfer that was broken off for our answer is not shown there."""
    flags, load, text = newer
    if version(text) < NOTIFY_SINCE:
        pytest.skip(f"this libcurl has no notify callback: {text.strip()}")
    client = compile_client(*flags)
    done = breaker_env.run(client, "notify", provider.url(), env={"LD_LIBRARY_PATH": str(load)})
    assert sorted(ends_of(done)) == [("fine", 0, 200)] * 3 + [("shut", 0, 503)] * 3
    assert provider.count(model="shut") == 0
