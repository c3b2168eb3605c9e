"""breaker run: LD_PRELOAD, where the library is found, settings, exit codes and signals."""

import os
import signal
import subprocess

import pytest


def preload(breaker, *options, old=None):
    changes = {} if old is None else {"LD_PRELOAD": old}
    return breaker("run", *options, "--", "sh", "-c", 'echo "$LD_PRELOAD|$STUB_LOADED"', **changes).stdout.strip()


def variable(breaker, name, *options, **changes):
    return breaker("run", *options, "--", "sh", "-c", f'printf %s "${{{name}-unset}}"', **changes).stdout


@pytest.fixture
def launcher(layout):
    """The build tree: both side by side, with a library that shows that it was loaded."""
    return layout("build/libbreaker.so", "build/breaker")[0]


def libc_directory():
    """What the loader puts for $LIB here."""
    for line in open("/proc/self/maps"):
        path = line.split()[-1]
        if path.endswith("/libc.so.6"):
            return os.path.dirname(path).removeprefix("/usr").lstrip("/")
    raise AssertionError("no libc")


def test_the_build_tree(layout):
    breaker, library = layout("build/libbreaker.so", "build/breaker")
    assert preload(breaker) == f"{library}|once"


def test_installed_with_the_loaders_directory(layout):
    breaker, library = layout(f"usr/{libc_directory()}/breaker/libbreaker.so", "usr/bin/breaker")
    prefix = str(library).split("/usr/")[0] + "/usr"
    assert preload(breaker) == f"{prefix}/$LIB/breaker/libbreaker.so|once"


@pytest.mark.parametrize("directory", ["lib", "lib64"])
def test_installed_elsewhere(layout, directory):
    breaker, library = layout(f"usr/{directory}/breaker/libbreaker.so", "usr/bin/breaker")
    assert preload(breaker) == f"{library}|once"


def test_found_through_a_link_and_by_path(layout, tmp_path):
    breaker, library = layout("build/libbreaker.so", "build/breaker")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "breaker").symlink_to(breaker.program)
    environment = {**breaker.environment, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    done = subprocess.run(["breaker", "run", "sh", "-c", "echo $LD_PRELOAD"], env=environment, cwd="/",
                          capture_output=True, text=True, timeout=30)
    assert done.stdout == f"{library}\n"


def test_a_library_that_is_missing_is_told(layout, stub):
    breaker, library = layout("build/libbreaker.so", "build/breaker")
    library.unlink()
    assert "cannot find libbreaker.so" in breaker("run", "true", code=1).stderr
    assert "BREAKER_LIB" in breaker("run", "true", code=1, BREAKER_LIB="/nowhere/libbreaker.so").stderr
    assert variable(breaker, "STUB_LOADED", BREAKER_LIB=str(stub)) == "once"


@pytest.mark.parametrize("below", ["with space", "with:colon"])
def test_a_path_that_cannot_be_preloaded_is_told(layout, below):
    breaker, _ = layout("build/libbreaker.so", "build/breaker", below=below)
    done = breaker("run", "echo", "ran", code=1)
    assert "cannot be preloaded" in done.stderr and done.stdout == ""


@pytest.mark.parametrize("separator", [" ", ":", " : ", "::"])
def test_other_preloads_are_kept_in_their_order(launcher, separator):
    ours = launcher.program.parent / "libbreaker.so"
    libraries = ["/lib/x86_64-linux-gnu/libdl.so.2", "libm.so.6"]
    shown = preload(launcher, old=separator.join(libraries))
    assert shown == ":".join([str(ours), *libraries]) + "|once"


def test_ours_is_never_listed_twice(launcher):
    ours = launcher.program.parent / "libbreaker.so"
    old = f"libm.so.6 {ours}:/usr/$LIB/breaker/libbreaker.so:libbreaker.so libdl.so.2"
    assert preload(launcher, old=old).split("|")[0] == f"{ours}:libm.so.6:libdl.so.2"
    done = launcher("run", launcher.program, "run", launcher.program, "run", "--", "sh", "-c", "echo $LD_PRELOAD")
    assert done.stdout == f"{ours}\n"


def test_a_long_preload_survives(launcher):
    old = ":".join(["libm.so.6"] * 2000)
    assert preload(launcher, old=old).endswith(f"/libbreaker.so:{old}|once")


def test_options_end_at_the_command(launcher):
    done = launcher("run", "printf", "%s,", "--table", "-c", "--", "--set", "x")
    assert done.stdout == "--table,-c,--,--set,x,"
    assert launcher("run", "--", "printf", "%s", "--help").stdout == "--help"


def test_settings_go_into_the_environment_with_absolute_paths(launcher, tmp_path, ini):
    ini("[breaker]\n", name="my.ini")
    options = ("--config", "my.ini", "--table", "t/table", "--log", str(tmp_path / "log"))
    assert variable(launcher, "BREAKER_CONFIG", *options) == str(tmp_path / "my.ini")
    assert variable(launcher, "BREAKER_TABLE", *options) == str(tmp_path / "t/table")
    assert variable(launcher, "BREAKER_LOG", *options) == str(tmp_path / "log")
    assert variable(launcher, "BREAKER_SET") == "unset"
    assert variable(launcher, "BREAKER_SET", "--set", "open_seconds=5", "--set", "backoff = 1") == (
        "open_seconds=5\nbackoff = 1\n")


def test_an_inner_run_overrides_an_outer_one(launcher):
    outer = {"BREAKER_SET": "open_seconds=5\nlog=/tmp/other\nbackoff=1"}
    assert variable(launcher, "BREAKER_SET", "--set", "backoff=3", "--log", "mine", **outer) == (
        "open_seconds=5\nbackoff=3\n")
    assert variable(launcher, "BREAKER_SET", **outer).split() == outer["BREAKER_SET"].split()


@pytest.mark.parametrize("setting", ["nonsense=1", "open_seconds=soon", "failure_threshold=-1", "open_seconds"])
def test_a_bad_set_is_wrong_usage_and_nothing_runs(launcher, setting):
    done = launcher("run", "--set", setting, "--", "echo", "ran", code=2)
    assert done.stdout == "" and "set" in done.stderr and setting.split("=")[0] in done.stderr


def test_a_bad_configuration_warns_and_the_program_runs(launcher, ini):
    path = ini("[breaker]\nopen_seconds = soon\nnonsense = 1\n")
    done = launcher("run", "--config", str(path), "--", "echo", "ran")
    lines = done.stderr.splitlines()
    assert done.stdout == "ran\n" and len(lines) == 3
    assert lines[0].startswith(f"breaker: warning: {path}:2: open_seconds: ")
    assert lines[-1] == "breaker: warning: the configuration is bad: CMD runs without a breaker until it is right"
    missing = launcher("run", "--config", "/nowhere/breaker.ini", "--", "echo", "ran")
    assert missing.stdout == "ran\n" and "/nowhere/breaker.ini" in missing.stderr
    inherited = launcher("run", "echo", "ran", BREAKER_SET="nonsense=1")
    assert inherited.stdout == "ran\n" and "nonsense" in inherited.stderr


def test_with_nothing_wrong_nothing_is_printed(launcher):
    done = launcher("run", "true")
    assert done.stdout == done.stderr == ""


@pytest.mark.parametrize("code", [0, 1, 2, 3, 125, 255])
def test_exit_codes_are_the_programs(launcher, code):
    launcher("run", "sh", "-c", f"exit {code}", code=code)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_signals_are_the_programs(launcher, number):
    launcher("run", "sh", "-c", f"ulimit -c 0; kill -{int(number)} $$", code=-number)


def test_the_program_is_this_very_process(launcher):
    running = subprocess.Popen([launcher.program, "run", "sh", "-c", "echo $$"], env=launcher.environment,
                               stdout=subprocess.PIPE, text=True)
    assert int(running.communicate(timeout=30)[0]) == running.pid


def test_what_cannot_be_executed(launcher, tmp_path):
    assert "command not found" in launcher("run", "no-such-command-at-all", code=127).stderr
    launcher("run", "./missing", code=127)
    launcher("run", "", code=127)
    plain = tmp_path / "plain"
    plain.write_text("#!/bin/sh\n")
    plain.chmod(0o644)
    launcher("run", "./plain", code=126)
    launcher("run", str(tmp_path), code=126)


def test_standard_streams_and_open_files_pass_through(launcher, tmp_path):
    read, write = os.pipe()
    done = subprocess.run([launcher.program, "run", "bash", "-c", f"cat; echo out >&{write}; ls /proc/self/fd | wc -l"],
                          env=launcher.environment, input="in\n", capture_output=True, text=True, timeout=30,
                          pass_fds=[write])
    bare = subprocess.run(["bash", "-c", f"cat; echo out >&{write}; ls /proc/self/fd | wc -l"], input="in\n",
                          capture_output=True, text=True, timeout=30, pass_fds=[write])
    os.close(write)
    assert done.stdout == bare.stdout and done.stderr == ""
    assert os.read(read, 100) == b"out\nout\n"
    os.close(read)


def test_a_relative_configuration_of_the_environment_is_made_absolute(launcher, tmp_path, ini):
    ini("[breaker]\n", name="my.ini")
    assert variable(launcher, "BREAKER_CONFIG", BREAKER_CONFIG="my.ini") == str(tmp_path / "my.ini")
    assert variable(launcher, "BREAKER_CONFIG", BREAKER_CONFIG="") == ""
    assert launcher("run", "true", BREAKER_CONFIG="my.ini").stderr == ""


def test_a_log_or_table_that_cannot_be_used_is_told_by_the_launcher(launcher, tmp_path):
    done = launcher("run", "--log", "nowhere/log", "--", "echo", "ran")
    (line,) = done.stderr.splitlines()
    assert done.stdout == "ran\n" and line.startswith(f"breaker: warning: {tmp_path}/nowhere/log: log: ")
    done = launcher("run", "--table", "/dev/null", "--", "echo", "ran")
    (line,) = done.stderr.splitlines()
    assert done.stdout == "ran\n" and line.startswith("breaker: warning: /dev/null: table: ")
