"""Which libssl is behind a call: the one that the loader would have bound the caller to, and no other. Taking another is a
crash, so each of these makes calls, with us and without."""

import re
import subprocess
from pathlib import Path

import pytest

from provider import Answer
from sock_programs import CLIENTS
from support import PYTHON
from test_tls_odd import NAME, TLS, shut, tls_program, words_of  # noqa: F401


def library(name):
    """Where the loader has it."""
    listing = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, timeout=20).stdout
    return Path(re.search(rf"{re.escape(name)} .*=> (\S+)", listing)[1]).resolve()


@pytest.fixture
def bundled(tmp_path):
    """A second libssl with a libcrypto of its own, as wheels bring one: under names that nobody else asks for."""
    for name, ours in (("libcrypto.so.3", "libcrypt0.so.3"), ("libssl.so.3", "libss1.so.3")):
        code = library(name).read_bytes().replace(b"libcrypto.so.3\0", b"libcrypt0.so.3\0")
        (tmp_path / ours).write_bytes(code.replace(b"libssl.so.3\0", b"libss1.so.3\0"))
    return tmp_path


@pytest.fixture
def built(compile_c, bundled):
    def make(*flags, name):
        return compile_c(TLS / "plugged.c", "-I", TLS, "-I", TLS.with_name("sock"), "-w", *flags, name=name)

    own = ["-L", bundled, f"-Wl,-rpath,{bundled}", "-l:libss1.so.3", "-l:libcrypt0.so.3"]
    system = ["-lssl", "-lcrypto"]
    return {"none": make("-ldl", name="host"), "system": make("-DOWN", *system, name="host-own"),
            "plugin-own": make("-DPLUGIN", "-shared", "-fPIC", *own, name="plugin-own"),
            "plugin-system": make("-DPLUGIN", "-shared", "-fPIC", *system, name="plugin-system")}


def count(breaker_env, provider):
    return breaker_env.calls(provider.key("m", NAME))["success"]


# Of one version in the global scope the loader takes that, for a plugin with a bundled one as well.
@pytest.mark.parametrize("host, plugin, told", [("none", "plugin-own", ["200", "other"]),
                                                ("none", "plugin-system", ["200", "other"]),
                                                ("system", "plugin-system", ["200", "200", "same"]),
                                                ("system", "plugin-own", ["200", "200", "same"])])
def test_plugins(host, plugin, told, built, bundled, breaker_env, shut):  # noqa: F811
    command, where = (built[host], built[plugin], shut.port), {"LD_LIBRARY_PATH": str(bundled)}
    assert words_of(breaker_env.run_bare(*command, "m", env=where)) == \
        words_of(breaker_env.run(*command, "m", env=where)) == told
    assert count(breaker_env, shut) == len(told) - 1
    assert words_of(breaker_env.run(*command, "shut", env=where)) == [word.replace("200", "503") for word in told]


@pytest.mark.parametrize("libraries", [["-l:libss1.so.3", "-l:libcrypt0.so.3"], ["-lssl", "-lcrypto"]],
                         ids=["bundled", "system"])
def test_calls_that_jump(libraries, compile_c, bundled, breaker_env, shut):  # noqa: F811
    """By wrappers that end in a jump into libssl: the place that calls, as far as we see, knows of no libssl."""
    flags = ("-I", TLS, "-I", TLS.with_name("sock"), "-w", "-O2")
    host = compile_c(TLS / "tailing.c", *flags, "-ldl", name="tailing")
    plugin = compile_c(TLS / "tailing.c", *flags, "-DPLUGIN", "-shared", "-fPIC", "-L", bundled, *libraries,
                       name="tailing-plugin")
    command, where = (host, plugin, shut.port), {"LD_LIBRARY_PATH": str(bundled)}
    assert words_of(breaker_env.run_bare(*command, "m", env=where)) == \
        words_of(breaker_env.run(*command, "m", env=where)) == ["200"] * 2
    assert count(breaker_env, shut) == 2
    assert words_of(breaker_env.run(*command, "shut", env=where)) == ["503", "0"]


def test_two_in_one_process(bundled, breaker_env, shut):  # noqa: F811
    """Python's own, and after it one by name: the same, or a bundled one."""
    code = ("import http.client, ssl, sys, runpy; "
            "c = http.client.HTTPSConnection('localhost', int(sys.argv[2]), context=ssl._create_unverified_context()); "
            "c.request('POST', '/v1/chat/completions', b'{\"model\":\"%s\"}' % sys.argv[3].encode()); "
            "print(c.getresponse().status, flush=True); runpy.run_path(PATH)")
    code = code.replace("PATH", repr(str(CLIENTS / "tls_ctypes.py")))
    for path in ("libssl.so.3", bundled / "libss1.so.3"):
        command = (PYTHON, "-c", code, path, shut.port)
        assert words_of(breaker_env.run_bare(*command, "m", 2, env={"LD_LIBRARY_PATH": str(bundled)})) == \
            words_of(breaker_env.run(*command, "m", 2, env={"LD_LIBRARY_PATH": str(bundled)})) == ["200"] * 3


@pytest.mark.parametrize("path", ["libssl.so.3", "libss1.so.3"])
def test_by_name(path, bundled, breaker_env, shut):  # noqa: F811
    """ctypes: it needs no libssl itself, and skips every preload."""
    command = (PYTHON, CLIENTS / "tls_ctypes.py", path, shut.port)
    where = {"LD_LIBRARY_PATH": str(bundled)}
    assert words_of(breaker_env.run_bare(*command, "m", 2, env=where)) == \
        words_of(breaker_env.run(*command, "m", 2, env=where)) == ["200"] * 2
    assert count(breaker_env, shut) == 2
    assert words_of(breaker_env.run(*command, "shut", 2, env=where)) == ["503"] * 2


def test_two_breakers(built, breaker_env, shut, tmp_path):  # noqa: F811
    """Chained, the one behind decides: every call counts once."""
    copy = tmp_path / "copy.so"
    copy.write_bytes(breaker_env.library.read_bytes())
    shut.then(*[Answer(200)] * 2, *[Answer(500)] * 2)
    for expected in ("200", "500"):
        done = subprocess.run([built["system"], built["plugin-system"], str(shut.port), "m"], cwd=breaker_env.directory,
                              env=breaker_env.preloaded(LD_PRELOAD=f"{copy} {breaker_env.library}"), capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=50)
        assert words_of(done) == [expected] * 2 + ["same"]
    calls = breaker_env.calls(shut.key("m", NAME))
    assert (calls["success"], calls["failure"]) == (2, 2), calls


def test_disabled(built, breaker_env, shut):  # noqa: F811
    done = breaker_env.run(built["system"], built["plugin-system"], shut.port, "shut", env={"BREAKER_DISABLED": "1"})
    assert words_of(done) == ["200", "200", "same"] and shut.count() == 2


# --- others that stand in between ---------------------------------------------------------------------


def wrapped(breaker_env, shut, command, *preloads):  # noqa: F811
    """What it says, with the libraries preloaded in this order."""
    environment = {**breaker_env.environment, "LD_PRELOAD": " ".join(map(str, preloads))}
    return words_of(subprocess.run([*command, "plain", str(shut.port)], env=environment, cwd=breaker_env.directory,
                                   capture_output=True, stdin=subprocess.DEVNULL, timeout=50))


def test_a_wrapper_in_front_of_us(compile_c, tls_program, breaker_env, shut):  # noqa: F811
    library = compile_c(TLS / "wrapper.c", "-shared", "-fPIC", name="wrapper.so")
    command = [tls_program("calls")]
    said = wrapped(breaker_env, shut, command, library)
    assert said == ["200"] * 3 + ["wrapped", "1", "1"] and count(breaker_env, shut) == 0
    assert wrapped(breaker_env, shut, command, library, breaker_env.library) == said
    assert count(breaker_env, shut) == 3


def test_a_wrapper_behind_us(compile_c, tls_program, breaker_env, shut):  # noqa: F811
    """It is passed by (tls_real.h); the calls are none the worse for it."""
    library = compile_c(TLS / "wrapper.c", "-shared", "-fPIC", name="wrapper.so")
    assert wrapped(breaker_env, shut, [tls_program("calls")], breaker_env.library, library)[:3] == ["200"] * 3
    assert count(breaker_env, shut) == 3


def test_a_wrapper_of_the_programs_own(compile_c, breaker_env, shut):  # noqa: F811
    program = compile_c(TLS / "calls.c", TLS / "wrapper.c", "-I", TLS, "-I", TLS.with_name("sock"), "-w", "-rdynamic", "-lssl",
                        "-lcrypto", "-pthread", name="wrapping")
    said = wrapped(breaker_env, shut, [program])
    assert said == ["200"] * 3 + ["wrapped", "1", "1"] and count(breaker_env, shut) == 0
    assert wrapped(breaker_env, shut, [program], breaker_env.library) == said
    assert count(breaker_env, shut) == 3


def test_closed_and_opened_again(bundled, breaker_env, shut):  # noqa: F811
    """By dlclose, as far as the program knows."""
    code = ("import ctypes, _ctypes, runpy, sys\n"
            "handles, load = [], ctypes.CDLL\n"
            "ctypes.CDLL = lambda *names: handles.append(load(*names)) or handles[-1]\n"
            "for _ in range(3):\n"
            f"    runpy.run_path({str(CLIENTS / 'tls_ctypes.py')!r})\n"
            "    while handles:\n"
            "        _ctypes.dlclose(handles.pop()._handle)\n")
    for path in ("libssl.so.3", "libss1.so.3"):
        command, where = (PYTHON, "-c", code, path, shut.port, "m", 1), {"LD_LIBRARY_PATH": str(bundled)}
        assert words_of(breaker_env.run_bare(*command, env=where)) == \
            words_of(breaker_env.run(*command, env=where)) == ["200"] * 3
    assert count(breaker_env, shut) == 6
