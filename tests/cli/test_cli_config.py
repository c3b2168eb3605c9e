"""breaker check and breaker config: what they say of good and bad configurations."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from config_lines import values

OPTIONS = Path(__file__).resolve().parents[2] / "shim" / "config" / "options.def"


def test_check_without_any_file(untouched, home):
    done = untouched("check")
    assert done.stderr == "" and len(done.stdout.splitlines()) == 1


def test_check_tells_the_file_that_is_well(breaker, home, ini):
    path = home / ".config" / "breaker" / "breaker.ini"
    path.parent.mkdir(parents=True)
    path.write_text("[breaker]\nopen_seconds = 5\n")
    path.chmod(0o600)
    assert breaker("check").stdout == f"{path}: all is well\n"
    other = ini("[target a.example]\nfailure_threshold = 2\n")
    assert breaker("check", str(other)).stdout == f"{other}: all is well\n"
    assert breaker("check", BREAKER_CONFIG=str(other)).stdout == f"{other}: all is well\n"


def test_check_finds_the_systems_file(breaker, home, tmp_path):
    """Behind the user's own. In a mount namespace, whose /etc is a folder of ours."""
    probe = subprocess.run(["unshare", "--mount", "true"], capture_output=True, text=True)
    if os.geteuid() != 0 or probe.returncode != 0:
        pytest.skip("needs root and mount namespaces: " + probe.stderr.strip())
    own = home / ".config" / "breaker" / "breaker.ini"
    for path in (tmp_path / "etc" / "breaker" / "breaker.ini", own):
        path.parent.mkdir(parents=True)
        path.write_text("[breaker]\nopen_seconds = 5\n")
        path.chmod(0o600)

    def check():
        inside = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc && exec "$@"', tmp_path / "etc",
                  breaker.program, "check"]
        done = subprocess.run(inside, env=breaker.environment, cwd=tmp_path, capture_output=True, text=True, timeout=30)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    assert check() == f"{own}: all is well\n"
    own.unlink()
    assert check() == "/etc/breaker/breaker.ini: all is well\n"
    own.parent.rmdir()
    assert check() == "/etc/breaker/breaker.ini: all is well\n"


def test_check_tells_every_problem_with_its_line(breaker, ini):
    path = ini("[breaker]\nopen_seconds = soon\n\nnonsense = 1\nfailure_threshold = 100000\n[unknown]\n")
    done = breaker("check", str(path), code=1)
    lines = done.stderr.splitlines()
    assert done.stdout == ""
    for start in (f"{path}:2: open_seconds: ", f"{path}:4: nonsense: ", f"{path}:5: failure_threshold: ",
                  f"{path}:6: "):
        assert any(line.startswith(start) for line in lines), (start, lines)
    assert all(re.match(re.escape(str(path)) + r":\d+: .+: .+", line) for line in lines)


@pytest.mark.parametrize("named", [True, False])
def test_check_tells_in_the_order_of_the_lines(breaker, ini, named):
    """Though some are found only when all is read: a target without a pattern, names of fallbacks."""
    path = ini("""[breaker]
fallback = lokal
[target unknown one]
[target h/m]
scope = host
open_seconds = soon
fallback = lost
[fallback x]
nonsense = 1
[target also unknown]
[unknown]
""")
    done = breaker("check", *([str(path)] if named else []), BREAKER_CONFIG=str(path),
                   BREAKER_JITTER="much", code=1)
    told = [line.split(":")[:2] for line in done.stderr.splitlines()]
    lines = [int(number) for file, number in told if file == str(path)]
    assert lines == sorted(lines) and {2, 3, 5, 6, 7, 9, 10, 11} <= set(lines), done.stderr
    others = [file for file, _ in told[len(lines):]]
    assert others == ([] if named else ["BREAKER_JITTER"])
    if named:
        return
    problems = [line for line in done.stderr.splitlines() if line.split(":")[0] != "BREAKER_JITTER"]
    for command in (("run", "true"), ("status",), ("config",), ("explain", "https://h/"), ("trip", "-c", "h")):
        bad = command[0] in ("config", "explain")
        told = breaker(*command, BREAKER_CONFIG=str(path), code=bad).stderr.splitlines()
        assert [line[line.index(str(path)):] for line in told if str(path) in line] == problems, command


IDLE = """[breaker]
failure_threshold = 2
min_calls = 5
degrade_threshold = 4
fallback = lost
[target h]
open_seconds = 400
open_max = 350
"""


def test_check_warns_of_what_has_no_effect(breaker, ini):
    """In the order of the lines, among the other findings; the other commands say nothing."""
    path = ini(IDLE)
    for args in ((str(path),), ("--config", str(path))):
        done = breaker("check", *args, code=1)
        assert done.stdout == "" and done.stderr.splitlines() == [
            f"{path}:3: min_calls: expected failure_rate above 0, found 0: no share of failures opens",
            f"{path}:4: degrade_threshold: expected less than failure_threshold = 2, found 4: it opens before it is degraded",
            f"{path}:5: fallback: expected the NAME of a [fallback NAME], found \"lost\", and no such section",
            f"{path}:8: open_max: expected open_seconds = 400 or more, found 350: it stays open for open_seconds"]
    path = ini(IDLE.replace("fallback = lost\n", ""))
    for command in (("config",), ("status",), ("run", "--", "true")):
        assert str(path) not in breaker(*command, BREAKER_CONFIG=str(path)).stderr


def test_check_warns_of_variables_and_set_beside_the_file(breaker, ini):
    path = ini("[breaker]\njitter = 0\n")
    done = breaker("check", "--config", str(path), "--set", "open_max=5", BREAKER_WINDOW="30", code=1)
    assert [line.split(": expected")[0] for line in done.stderr.splitlines()] == [
        "BREAKER_WINDOW: window", "BREAKER_SET: open_max"]
    breaker("check", "--config", str(path), "--set", "failure_rate=0.5", BREAKER_WINDOW="30")
    breaker("check", str(path), BREAKER_WINDOW="30")


def hostile_targets():
    """64 KB: as many targets as there may be, of globs that nearly match each other, each with something to tell."""
    deep = "".join(f"[target d{n}]\nmatch = *{'a' * (80 + n % 10)}?b*{'a' * (n % 60)}\nmin_calls = 5\n" for n in range(128))
    long = "".join(f"[target l{n}]\nmatch = {'a' * (150 + n % 30)}*\nopen_max = 5\n" for n in range(128))
    return deep + long + "; remark\n" * ((65536 - len(deep + long)) // 9)


def hostile_names():
    """64 KB of names that are none, in lists above the targets without a pattern."""
    return "[breaker]\n" + "fallback = " + ",".join("abcdefghij"[n % 10] * 2 for n in range(30)) + "\n" + \
        "".join(f"[target a {n}]\nfallback = x{n}\n" for n in range(255)) + "nonsense = 1\n" * 4400


@pytest.mark.parametrize("text", [hostile_targets(), hostile_names(), "[target h]\n" + "window = 5\n" * 6000],
                         ids=["targets", "names", "keys"])
def test_check_of_a_hostile_file_ends_and_keeps_the_order(breaker, ini, text):
    """The time limit is the fixture's own."""
    assert 60000 < len(text) < 70000
    path = ini(text)
    told = breaker("check", str(path), code=1).stderr.splitlines()
    lines = [int(line.removeprefix(f"{path}:").partition(":")[0]) for line in told]
    assert 99 <= len(lines) <= 300 and lines == sorted(lines)


def test_check_without_a_file_looks_at_the_environment_too(breaker, ini):
    path = ini("[breaker]\n")
    done = breaker("check", BREAKER_CONFIG=str(path), BREAKER_OPEN_SECONDS="soon", code=1)
    assert done.stderr.startswith("BREAKER_OPEN_SECONDS: ")
    breaker("check", str(path), BREAKER_OPEN_SECONDS="soon")


@pytest.mark.parametrize("text", ["[breaker]\nmode = \x1b[31mred\n", "[\x1b]0;title\x07]\n"])
def test_what_is_bad_is_shown_without_harm(breaker, ini, text):
    assert "\x1b" not in breaker("check", str(ini(text)), code=1).stderr


def test_check_of_files_that_may_not_be_read(breaker, ini, tmp_path):
    assert "/nowhere" in breaker("check", "/nowhere", code=1).stderr
    breaker("check", str(tmp_path), code=1)
    path = ini("[breaker]\n", mode=0o666)
    path.chmod(0o666)
    assert breaker("check", str(path), code=1).stderr.startswith(str(path))


def test_the_working_directory_is_never_looked_at(breaker, ini):
    ini("[breaker]\nnonsense = 1\n")
    breaker("check")


def test_config_shows_every_key_with_its_default(untouched):
    shown = values(untouched("config").stdout)
    defaults = dict(re.findall(r'^OPTION\((\w+), \w+, "(.*?)"', OPTIONS.read_text(), re.M))
    assert shown.keys() == defaults.keys()
    assert {origin for _, origin in shown.values()} == {"default"}
    assert shown["failure_threshold"][0] == "5" and shown["mode"][0] == "enforce"


def test_config_tells_where_each_value_came_from(untouched, ini):
    path = ini("[breaker]\nopen_seconds = 7\nbackoff = 3\njitter = 0\n[target h.example]\nbackoff = 4\n")
    done = untouched("config", "--config", str(path), "--set", "failure_threshold=9", BREAKER_JITTER="0.5")
    shown = values(done.stdout)
    assert done.stdout.startswith(f"# {path}\n")
    assert shown["open_seconds"] == ("7", f"{path}:2")
    assert shown["backoff"] == ("3", f"{path}:3")
    assert shown["jitter"] == ("0.5", "BREAKER_JITTER")
    assert shown["failure_threshold"] == ("9", "--set")
    target = values(untouched("config", "H.example/m", "--config", str(path)).stdout)
    assert target["backoff"] == ("4", f"{path}:6") and target["open_seconds"] == ("7", f"{path}:2")
    assert "table" not in target


@pytest.mark.parametrize("key, match, remark", [
    ("h.example", "llm", "covered: a target is for the host"),
    ("h.example/m", "llm", "covered: a target is for the host"),
    ("api.openai.com", "llm", "covered: a known provider"),
    ("api.openai.com:8443/m", "llm", "covered: a known provider"),
    ("api.openai.com", "listed", "not covered: no target is for the host, and match = listed"),
    ("other.example:81", "llm", "only POSTs"),
    ("other.example", "all", "covered: match = all"),
])
def test_config_says_whether_a_host_is_covered(breaker, ini, key, match, remark):
    path = ini("[target h.example]\n")
    second = breaker("config", key, "--config", str(path), "--set", f"match={match}").stdout.splitlines()[1]
    assert second.startswith(f"# {key}: {remark}")


@pytest.mark.parametrize("host, match", [("h.example", "llm"), ("api.openai.com", "llm"), ("api.openai.com", "listed"),
                                         ("other.example", "all")])
def test_config_and_explain_say_it_in_the_same_words(breaker, ini, host, match):
    args = ("--config", str(ini("[target h.example]\n")), "--set", f"match={match}")
    said = breaker("config", host, *args).stdout.splitlines()[1].removeprefix(f"# {host}: ")
    assert f"\n{said}\n" in breaker("explain", f"https://{host}/v1/files", *args).stdout


def test_config_of_a_model_that_has_no_breaker(untouched, ini):
    """scope = host: no target of a model has a say."""
    path = ini("[target h.example]\nscope = host\n[target h.example/m]\nfailure_threshold = 2\nmode = off\n")
    done = untouched("config", "h.example/m", "--config", str(path))
    assert done.stdout.splitlines()[1:3] == ["# h.example/m: covered: a target is for the host",
                                             "# scope = host: what follows is the host's"]
    shown = values(done.stdout)
    assert (shown["scope"], shown["failure_threshold"]) == (("host", f"{path}:2"), ("5", "default"))
    assert shown == values(untouched("config", "h.example", "--config", str(path)).stdout)
    done = untouched("config", "h.example/m", "--config", str(path), "--set", "scope=model")
    assert "scope = host" not in done.stdout and values(done.stdout)["failure_threshold"] == ("2", f"{path}:4")


def test_config_of_a_bad_configuration(breaker, ini):
    path = ini("[breaker]\nnonsense = 1\n")
    done = breaker("config", "--config", str(path), code=1)
    assert done.stdout == "" and done.stderr.startswith(f"breaker: {path}:2: nonsense: ")


def test_a_relative_configuration_is_refused_wherever_it_came_from(breaker, ini):
    ini("[breaker]\n", name="my.ini")
    done = breaker("check", BREAKER_CONFIG="my.ini", code=1)
    assert done.stderr == 'BREAKER_CONFIG: file: expected an absolute path, found "my.ini"\n'
    breaker("config", BREAKER_CONFIG="my.ini", code=1)
    assert breaker("check", "my.ini").stdout == "my.ini: all is well\n"
    ini("[breaker]\nnonsense = 1\n", name="my.ini")
    assert breaker("check", "my.ini", code=1).stderr.startswith("my.ini:2: nonsense: ")


@pytest.mark.parametrize("name, nearest", [
    ("BREAKER_OPEN_SECOND", "BREAKER_OPEN_SECONDS"), ("BREAKER_DISABLE", "BREAKER_DISABLED"),
    ("BREAKER_open_seconds", "BREAKER_OPEN_SECONDS"), ("BREAKER_CONFG", "BREAKER_CONFIG"),
])
def test_check_names_variables_that_are_nearly_ours(breaker, name, nearest):
    done = breaker("check", **{name: "1"}, code=1)
    assert done.stdout == ""
    assert done.stderr == (f"{name}: expected a variable such as {nearest}, found an unknown one, "
                           "which has no effect\n")
    assert breaker("run", "true", **{name: "1"}).stderr == ""


@pytest.mark.parametrize("name", ["BREAKER_FOO", "BREAKER_BOGUS", "BREAKER_"])
def test_check_suggests_no_variable_that_is_far(breaker, name):
    assert breaker("check", **{name: "1"}, code=1).stderr == (
        f"{name}: expected BREAKER_ and a key that `breaker config` shows, in upper case, found an unknown one, which "
        "has no effect\n")
    assert breaker("run", "--set", "foo=1", "true", code=2).stderr == (
        "breaker: --set: foo: expected a key that `breaker config` shows, found an unknown key\n")


def test_what_is_too_long_is_told_with_the_limit(breaker, ini):
    path = "/" + "x" * 300
    done = breaker("check", BREAKER_TABLE="/" + "x" * 511, code=1)
    assert done.stderr == "BREAKER_TABLE: table: expected at most 511 bytes, found 512\n"
    done = breaker("check", BREAKER_CONFIG=path, code=1)
    assert done.stderr == f"{path}: file: expected a path of at most 255 bytes, found one of 301\n"
    done = breaker("check", BREAKER_MODE="x" * 120, code=1)
    assert done.stderr.endswith(f'found "{"x" * 100}..."\n')


@pytest.mark.parametrize("typed, meant", [("stauts", "status"), ("conf", "config"), ("explian", "explain"), ("foo", None),
                                          ("bogus", None), ("", None), ("x" * 1000, None)])
def test_an_unknown_command_is_told_with_what_is_near(breaker, typed, meant):
    first = breaker(typed, code=2).stderr.splitlines()[0]
    assert first == f"breaker: there is no command '{typed}'" + (f"; is it {meant}?" if meant else "")


def test_check_knows_all_our_variables(breaker, ini):
    breaker("check", BREAKER_SET="backoff=1", BREAKER_LIB="/x", BREAKER_CONFIG=str(ini("")), BREAKER_JITTER="0",
            BREAKER_DISABLED="0")


def test_check_says_what_is_in_force_without_a_file(untouched):
    places = f"{untouched.environment['HOME']}/.config/breaker/breaker.ini or /etc/breaker/breaker.ini"
    assert untouched("check").stdout == f"no breaker.ini at {places}: the defaults are in force, all is well\n"
    assert untouched("config").stdout.startswith(f"# no breaker.ini at {places}\n")
    for home in ("", "relative"):
        assert untouched("check", HOME=home).stdout == (
            "no breaker.ini at /etc/breaker/breaker.ini, and HOME is no absolute path: the defaults are in force, "
            "all is well\n")
    for options, changes in (((), {"BREAKER_BACKOFF": "1"}), (("--set", "backoff=1"), {})):
        assert "the defaults, and what variables and options set, are in force" in untouched(
            "check", *options, **changes).stdout


@pytest.mark.parametrize("value, said", [("1", True), ("no", True), ("0", False), ("", False)])
def test_a_breaker_that_is_switched_off_is_told(breaker, value, said):
    check, config, status = (breaker(c, BREAKER_DISABLED=value) for c in ("check", "config", "status"))
    for text in (check.stdout, config.stdout, status.stderr):
        assert ("BREAKER_DISABLED is set: nothing" in text) == said


@pytest.mark.parametrize("ini_text, key, off", [
    ("[target h.example]\nmode = off\n", "h.example", True),
    ("[target h.example]\nmode = off\n[target h.example/m]\nmode = enforce\n", "h.example/m", True),
    ("[target h.example]\n[target h.example/m]\nmode = off\n", "h.example/m", True),
    ("[target h.example]\n[target h.example/m]\nmode = off\n", "h.example", False),
    ("[breaker]\nmode = off\n", "api.openai.com", True),
])
def test_config_of_what_is_off_says_that_it_is_not_covered(breaker, ini, ini_text, key, off):
    second = breaker("config", key, "--config", str(ini(ini_text))).stdout.splitlines()[1]
    assert (second == f"# {key}: not covered: mode = off") == off


def test_config_tells_an_own_set_from_an_inherited_one(breaker):
    shown = values(breaker("config", "--set", "backoff=3", BREAKER_SET="backoff=4\njitter=0").stdout)
    assert shown["backoff"] == ("3", "--set") and shown["jitter"] == ("0", "BREAKER_SET")
    assert breaker("check", BREAKER_SET="jitter=9", code=1).stderr.startswith("BREAKER_SET: jitter: ")
    assert breaker("check", "--set", "jitter=9", code=2).stderr.startswith("breaker: --set: jitter: ")


def test_the_last_set_wins(breaker, ini):
    shown = values(breaker("config", "--set", "backoff=3", "--set", "backoff=5").stdout)
    assert shown["backoff"] == ("5", "--set")
    breaker("check", str(ini("[breaker]\nbackoff = 3\nbackoff = 5\n")), code=1)


@pytest.fixture
def bad_places(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "directory").mkdir()
    return tmp_path


@pytest.mark.parametrize("name, why", [
    ("nowhere/log", "no such directory"), ("link", "a symlink"), ("directory", "no regular file"),
    ("file/log", "Not a directory"),
])
def test_check_tries_the_log(breaker, bad_places, name, why):
    place = bad_places / name
    done = breaker("check", BREAKER_LOG=str(place), code=1)
    assert done.stderr == f"{place}: log: expected a regular file that you may write, or room for one, found {why}\n"
    breaker("check", BREAKER_LOG=str(bad_places / "file"))
    breaker("check", BREAKER_LOG=str(bad_places / "directory" / "log"))
    assert not list((bad_places / "directory").iterdir())


@pytest.mark.parametrize("name, why", [
    ("nowhere/deeper/table", "no such directory"), ("link", "refused"), ("directory", "refused"), ("file", "refused"),
])
def test_check_tries_the_table(breaker, bad_places, name, why):
    place = bad_places / name
    done = breaker("check", BREAKER_TABLE=str(place), code=1)
    assert done.stderr.startswith(f"{place}: table: expected a table of yours, or room for one, found {why}")
    breaker("check", BREAKER_TABLE=str(bad_places / "nowhere" / "table"))
    assert not (bad_places / "nowhere").exists()


@pytest.mark.parametrize("name", ["/proc/breaker-test", "/sys/breaker-test"])
@pytest.mark.parametrize("key", ["table", "log"])
def test_check_tries_places_where_even_root_can_make_no_file(breaker, key, name):
    """By their modes root may write there."""
    found = breaker("check", f"--{key}", name, code=1).stderr
    assert found.startswith(f"{name}: {key}: expected ") and "found a directory " in found
    assert breaker("run", f"--{key}", name, "--", "true").stderr == f"breaker: warning: {found}"
    if key == "table":
        assert breaker("check", f"--{key}", f"{name}/table", code=1).stderr.startswith(f"{name}/table: table: expected ")


NO_TMPFILE = r"""
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    int mode = va_arg(args, int);
    va_end(args);
    if ((flags & O_TMPFILE) == O_TMPFILE)
        return errno = EOPNOTSUPP, -1;
    return ((int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open"))(path, flags, mode);
}
"""


@pytest.mark.parametrize("nameless", [True, False])
def test_what_check_tries_leaves_nothing_behind(breaker, compile_c, tmp_path, nameless):
    """Nor where the file system makes no file without a name."""
    place = tmp_path / "place"
    place.mkdir()
    changes = {} if nameless else {"LD_PRELOAD": str(compile_c(NO_TMPFILE, "-shared", "-fPIC", name="no_tmpfile.so"))}
    breaker("check", "--table", str(place / "table"), "--log", str(place / "log"), **changes)
    breaker("check", "--table", str(place / "new" / "table"), **changes)
    assert not list(place.iterdir())


def test_a_file_that_group_may_write_is_told_with_its_mode(breaker, ini):
    path = ini("[breaker]\n")
    path.chmod(0o664)
    assert "group or others may write (mode 0664): chmod go-w" in breaker("check", str(path), code=1).stderr


@pytest.mark.parametrize("text, line", [
    ("[breaker]\n[target https://api.openai.com]\n", 2), ("[target x]\nmatch = http://h/m\n", 2),
    ("[target h:http]\n", 1),
])
def test_targets_that_can_never_match_are_told(breaker, ini, text, line):
    path = ini(text)
    assert breaker("check", str(path), code=1).stderr.startswith(f"{path}:{line}: ")


FALLBACKS = """[breaker]
fallback = router
[fallback router]
base = https://router.example/api/v1/
model = gpt-4o:openai/gpt-4o, *:openai/{model}
auth = Authorization: Bearer canary-${ROUTER_KEY}
header = X-Title: canary
[fallback local]
base = http://127.0.0.1:11434/v1
[target h.example]
fallback = local
base = https://h.example/v1
fallback_address = H2.example:443
allow_fallbacks = false
"""


def sections(text):
    return [re.sub(" +", " ", line) for line in text.partition("\n\n")[2].splitlines()]


def test_config_shows_fallbacks_without_what_their_headers_hold(untouched, ini):
    path = ini(FALLBACKS)
    done = untouched("config", "--config", str(path), ROUTER_KEY="canary")
    assert "canary" not in done.stdout and done.stderr == ""
    assert sections(done.stdout) == [
        f"[fallback router] # {path}:3",
        f"base = https://router.example/api/v1 # {path}:4",
        f"model = gpt-4o:openai/gpt-4o, *:openai/{{model}} # {path}:5",
        f"auth = Authorization: *** # {path}:6",
        f"header = X-Title: *** # {path}:7",
        "",
        f"[fallback local] # {path}:8",
        f"base = http://127.0.0.1:11434/v1 # {path}:9",
        "model = # default",
    ]
    target = untouched("config", "h.example", "--config", str(path)).stdout
    assert {key: values(target)[key] for key in ("fallback", "base", "fallback_address", "allow_fallbacks")} == {
        "fallback": ("local", f"{path}:11"), "base": ("https://h.example/v1", f"{path}:12"),
        "fallback_address": ("h2.example:443", f"{path}:13"), "allow_fallbacks": ("false", f"{path}:14")}


def test_config_of_a_key_shows_the_fallbacks_that_it_names(untouched, ini):
    path = ini("""[fallback a]
base = https://a.example
header = X: canary
model = x:y
model = *:z
[fallback b]
base = https://b.example
[fallback c]
base = https://c.example
[target h]
fallback = c, a
[target h/m]
fallback = b
[target g]
allow_fallbacks = false
""")

    def names(key, *args):
        shown = untouched("config", key, "--config", str(path), *args).stdout
        found = re.findall(r"^\[fallback (.*?)\]", shown, re.M)
        shown = json.loads(untouched("config", key, "--json", "--config", str(path), *args).stdout)
        assert [fallback["name"] for fallback in shown["fallbacks"]] == found
        return found

    shown = untouched("config", "h", "--config", str(path)).stdout
    assert sections(shown)[4:] == [f"[fallback a] # {path}:1", f"base = https://a.example # {path}:2",
                                   f"model = x:y, *:z # {path}:4", f"header = X: *** # {path}:3"]
    assert names("h") == ["c", "a"] and names("h/m") == ["b"] and names("h/other") == ["c", "a"]
    assert names("h/m", "--set", "scope=host") == ["c", "a"]
    assert names("g") == [] and names("g", "--set", "fallback=b") == ["b"]


def test_config_as_json(untouched, ini):
    path = ini(FALLBACKS)
    text = untouched("config", "--json", "--config", str(path), "--set", "backoff=3").stdout
    shown = json.loads(text)
    assert "canary" not in text
    assert (shown["config"], shown["key"], shown["coverage"], shown["disabled"]) == (str(path), None, None, None)
    assert shown["settings"]["fallback"] == {"value": "router", "origin": f"{path}:2"}
    assert shown["settings"]["backoff"] == {"value": "3", "origin": "--set"} and "log" in shown["settings"]
    assert shown["fallbacks"] == [
        {"name": "router", "origin": f"{path}:3", "base": "https://router.example/api/v1",
         "model": "gpt-4o:openai/gpt-4o, *:openai/{model}", "headers": ["Authorization", "X-Title"]},
        {"name": "local", "origin": f"{path}:8", "base": "http://127.0.0.1:11434/v1", "model": None, "headers": []}]
    target = json.loads(untouched("config", "h.example/m", "--json", "--set", "scope=host", "--config", str(path)).stdout)
    assert target["key"] == "h.example/m" and target["coverage"].startswith("covered") and target["host_alone"]
    assert target["settings"]["fallback"]["value"] == "local" and "log" not in target["settings"]
    assert json.loads(untouched("config", "--json").stdout)["fallbacks"] == []


def test_check_looks_variables_up(breaker, ini):
    path = ini(FALLBACKS.replace("allow_fallbacks = false\n", ""))
    for args in (("check", str(path)), ("check", "--config", str(path))):
        breaker(*args, ROUTER_KEY="x")
        done = breaker(*args, code=1)
        assert done.stdout == ""
        assert done.stderr == (f"{path}:6: auth: expected a value of ${{ROUTER_KEY}} in the environment, "
                               "for Authorization, found none\n")


@pytest.mark.parametrize("text, told", [
    ("[fallback x]\n", ":1: [fallback x]: expected base = "),
    ("[fallback x]\nbase = h/v1\n", ':2: base: expected http://HOST[:PORT][/PATH] or https://..., found "h/v1"'),
    ("[fallback x]\nbase = https://u:canary@h\n", ":2: base: "),
    ("[fallback x]\nbase = https://h\nauth = canary\n", ":3: auth: expected Name: value"),
    ("[fallback x]\nbase = https://h\nauth canary = canary\n", ":3: auth: "),
    ("[breaker]\nfallback = local, lokal\n[fallback local]\nbase = http://h\n", ":2: fallback: "),
    ("[target h]\nfallback = x\n[fallback x]\nbase = https://h\n", ":2: fallback: "),
    ("[target h]\nfallback_address = [::1]:80\n", ":2: fallback_address: "),
    ("[target h]\nfallback_address = h:443\n", ":2: fallback_address: expected another HOST:PORT than the target's own"),
    ("[target h/m]\nfallback_address = g:443\n", ":2: fallback_address: expected it in [breaker] or a target without"),
    ("[target h:8000]\nbase = https://h/v1\nfallback = x\n[fallback x]\nbase = https://x\n", ":2: base: expected a URL of h:8000, "),
    ("[fallback x]\nbase = https://h\n", ":1: [fallback x]: expected its name in a `fallback` key, found none"),
    ("[target h/m]\nallow_fallbacks = false\n[breaker]\nfallback_address = g:443\n", ":2: allow_fallbacks: expected no "),
    ("[target h]\nbase = https://h\nfallback = x\n[fallback x]\nbase = http://g\n", ":3: fallback: expected https, "),
    ("[fallback x]\nbase = https://h\nheader = Host: canary\n", ":3: header: expected Name: value, found one of the"),
])
def test_what_is_left_out_is_a_problem_for_check_alone(breaker, ini, text, told):
    path = ini(text)
    assert breaker("check", str(path), code=1).stderr.startswith(f"{path}{told}")
    for command in (("check",), ("config",), ("status",), ("run", "--", "true")):
        done = breaker(*command, BREAKER_CONFIG=str(path), code=1 if command == ("check",) else 0)
        assert "canary" not in done.stderr + done.stdout
        line, = (line for line in done.stderr.splitlines() if str(path) in line)
        assert line.startswith(f"{'' if command == ('check',) else 'breaker: warning: '}{path}{told}")


def test_fallbacks_named_by_set_and_the_environment(breaker, ini):
    path = ini("[fallback a]\nbase = https://a.example\n[fallback b]\nbase = https://b.example\n")
    breaker.environment["BREAKER_CONFIG"] = str(path)
    for options, changes, origin in ((("--set", "fallback=b, c"), {}, "--set"),
                                     ((), {"BREAKER_FALLBACK": "c b"}, "BREAKER_FALLBACK")):
        done = breaker("config", *options, **changes)
        assert values(done.stdout)["fallback"] == ("b", origin)
        assert 'fallback: expected the NAME of a [fallback NAME], found "c", and no such section' in done.stderr
        breaker("check", *options, code=1, **changes)
    assert breaker("check", "--set", "fallback=b,,a", code=2).stderr.startswith("breaker: --set: fallback: ")
    breaker("check", "--set", "fallback=b,a")


@pytest.mark.parametrize("option", ["--table", "--log"])
@pytest.mark.parametrize("path", ["/" + "x" * 511, "x" * 511], ids=["absolute", "relative"])
def test_a_path_that_no_value_holds_is_refused(option, path, untouched):
    """It was warned of, and what followed was of another table than was asked for."""
    done = untouched("status", option, path, code=1)
    assert (done.stdout, done.stderr) == ("", "breaker: cannot pass the settings on: File name too long\n")
