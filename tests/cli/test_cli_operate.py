"""breaker trip, force, reset: what they change, and which keys they take."""

import json
import os
import pty
import subprocess
import time

import table_layout as layout
import pytest

KEY = "api.openai.com/gpt-4o"
COMMANDS = (["trip"], ["force", "open"], ["force", "closed"], ["force", "none"], ["reset"])
MAKERS = COMMANDS[:3]  # of a breaker, with --create


def test_trip_and_reset(breaker):
    assert breaker("trip", "--create", KEY).stdout.startswith(f"{KEY}: closed -> open, probe in 3")
    first = breaker.breakers()[KEY]
    assert first["state"] == "open" and 20_000 < first["retry_in_ms"] <= 33_100
    assert breaker("reset", KEY).stdout == f"{KEY}: open -> closed\n"
    second = breaker.breakers()[KEY]
    assert second["state"] == "closed" and second["generation"] != first["generation"]
    assert second["opened"] == 1


def test_a_reset_alone_parks_nobody(breaker, open_table):
    breaker("trip", "--create", KEY)
    table = open_table(breaker.table)
    slot = table.only_slot()
    parked = (1 << 30 | 1, 2 << 30 | 2, 3 << 30 | 3, 4 << 30 | 4)
    table.put("<4Q", slot + layout.COOLDOWN, *parked)
    for command in (["trip"], ["force", "open"], ["force", "closed"]):
        breaker(*command, KEY)
        assert table.get("<4Q", slot + layout.COOLDOWN) == parked[0]
        assert table.get("<Q", slot + layout.COOLDOWN + 24) == parked[3]
    breaker("reset", KEY)
    assert [table.get("<Q", slot + layout.COOLDOWN + at) for at in range(0, 32, 8)] == [0] * 4


def test_force(breaker):
    for word, state in (("open", "forced_open"), ("closed", "forced_closed"), ("none", "closed")):
        breaker("force", "--create", word, KEY)
        assert breaker.breakers()[KEY]["state"] == state


@pytest.mark.parametrize("command", [*(COMMANDS), ["config"], ["trip", "--create"]])
@pytest.mark.parametrize("key, expected", [
    ("h.example/" + "m" * 256, "a model of at most 255 bytes, found one of 256"),
    ("h" * 263 + "/m", "a host of at most 262 bytes with its port, found one of 263"),
    ("h" * 262 + ":80", "a host of at most 262 bytes with its port, found one of 265"),
])
def test_a_key_that_is_too_long_is_told_with_the_limit(breaker, command, key, expected):
    assert breaker(*command, key, code=2).stderr == f"breaker: expected {expected}\n"


def test_letting_calls_pass_tells_which_other_breaker_still_refuses_them(breaker):
    """A call needs its host's and its model's: who closes one by hand would wonder."""
    for command in (("trip", "--create", "h.example/b"), ("force", "open", "--create", "h.example/a"),
                    ("force", "closed", "--create", "h.example/well"), ("trip", "--create", "h.example:81/m"),
                    ("trip", "--create", "h.example")):
        assert "still" not in breaker(*command).stdout
    for command in (("force", "closed"), ("force", "none"), ("reset",)):
        first, still, *others = breaker(*command, "H.example").stdout.splitlines()
        assert first.startswith("h.example: ")
        assert still == "still refusing (a call needs its host's breaker and its model's):"
        assert others[0] == "  h.example/a: forced_open" and others[1].startswith("  h.example/b: open, probe in ")
        assert len(others) == 2
        assert breaker(*command, "h.example/well").stdout.count("\n") == 1, "other models have no say in its calls"
    breaker("trip", "h.example")
    assert "\n  h.example: open, probe in " in breaker("reset", "h.example/a").stdout
    assert "still" not in breaker("reset", "h.example/a", BREAKER_MODE="observe").stdout
    breaker("reset", "h.example/b")
    assert breaker("reset", "h.example").stdout == "h.example: open -> closed\n"


def test_a_model_that_cools_down_still_refuses(breaker, open_table):
    breaker("force", "closed", "--create", KEY)
    table = open_table(breaker.table)
    until = (time.clock_gettime_ns(time.CLOCK_BOOTTIME) >> 25) + 600 & (1 << 30) - 1
    table.put("<Q", table.only_slot() + layout.COOLDOWN, 1 << 30 | until)
    host = KEY.split("/")[0]
    assert "still" not in breaker("force", "closed", "--create", host).stdout, "forced closed, it parks nobody"
    table.put("<Q", next(at for at in table.slots() if table.key(at) == KEY) + layout.WORD, 0)
    assert f"\n  {KEY}: closed, 1 cooling down (" in breaker("force", "closed", host).stdout


def test_the_open_time_is_that_of_the_keys_target(breaker, ini):
    path = ini("[breaker]\njitter = 0\nopen_max = 1000\n[target h.example/slow]\nopen_seconds = 600\n")
    breaker.environment["BREAKER_CONFIG"] = str(path)
    breaker("trip", "--create", "h.example/slow")
    breaker("trip", "--create", "h.example/quick")
    rows = breaker.breakers()
    assert 590_000 < rows["h.example/slow"]["retry_in_ms"] <= 600_100
    assert 20_000 < rows["h.example/quick"]["retry_in_ms"] <= 30_100


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_key_names_the_nearest_and_changes_nothing(breaker, command):
    for key in (KEY, "api.anthropic.com/claude", "gpu.internal:8000", "zzz.example"):
        breaker("force", "open", "--create", key)
    before = breaker.table.read_bytes()
    done = breaker(*command, "api.openai.com/gpt-4", code=1)
    assert done.stdout == ""
    assert done.stderr.startswith(f"breaker: unknown key 'api.openai.com/gpt-4'; nearest: {KEY}, ")
    assert done.stderr.endswith("; --create makes it\n") is (command in MAKERS)
    assert breaker.table.read_bytes() == before


def test_a_part_of_a_key_is_nearer_than_what_resembles_it(breaker):
    for key in ("gpt.example", "gpt.exampl/x", "a.very.long.name.example/gpt-4o-2024-08-06"):
        breaker("trip", "--create", key)
    assert "--create" not in breaker("trip", "x#0123456789abcdef", code=1).stderr  # no key that a call can have
    done = breaker("trip", "name.example", code=1)
    assert "nearest: a.very.long.name.example/gpt-4o-2024-08-06, " in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_without_a_table_every_key_is_unknown_and_none_is_made(breaker, command):
    done = breaker(*command, KEY, code=1)
    assert "there are no breakers yet" in done.stderr and ("--create" in done.stderr) is (command in MAKERS)
    assert not breaker.table.parent.exists()


def test_letting_go_makes_nothing(breaker):
    breaker("force", "none", "--create", KEY, code=1)
    assert not breaker.table.exists()


@pytest.mark.parametrize("typed, key", [
    ("API.OpenAI.com/GPT-4o", "api.openai.com/GPT-4o"),
    ("api.openai.com:443/m", "api.openai.com/m"),
    ("api.openai.com.", "api.openai.com"),
    ("Host:8080", "host:8080"),
    ("[::1]:8080/m", "[::1]:8080/m"),
    ("[::1]:443", "[::1]"),
    ("h/org/model:tag/v1", "h/org/model:tag/v1"),
    ("h/-", "h/-"),
])
def test_keys_are_normalised(breaker, typed, key):
    assert breaker("trip", "--create", typed).stdout.startswith(key + ": ")
    assert breaker.breakers().keys() == {key}
    breaker("reset", typed)


@pytest.mark.parametrize("key", ["", "/", "/m", "h/", "h:0", "h:65536", "h:x", "h:", "a b", "h\n", "h/m\x1b[0m",
                                 "https://h/m", "::1", "[::1", "user@h"])
def test_what_is_no_key_is_wrong_usage(breaker, key):
    for command in COMMANDS:
        done = breaker(*command, key, code=2)
        assert done.stdout == "" and done.stderr.startswith("breaker: expected HOST[:PORT]")
        assert "\x1b" not in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize("pattern", ["*.openai.com", "api.openai.com/gpt-*", "gpu:8000/llama?"])
def test_no_breaker_is_made_for_a_pattern(breaker, pattern):
    """It would be held open by hand, and every call flow."""
    for command in (("force", "open"), ("trip",)):
        assert "found the pattern" in breaker(*command, "--create", pattern, code=2).stderr
        assert "--create" not in breaker(*command, pattern, code=1).stderr
    assert not breaker.table.exists()


def test_a_long_key_is_found_as_typed_and_as_shown(breaker):
    key = "h.example/" + "long-model-name-" * 14
    breaker("trip", "--create", key)
    (shown,) = breaker.breakers()
    assert shown != key and "...#" in shown
    assert "open -> closed" in breaker("reset", key).stdout
    assert "closed -> open" in breaker("trip", shown).stdout
    assert len(breaker.breakers()) == 1


def test_a_key_whose_claimer_was_killed_is_written(breaker, open_table, ini):
    """It shows as "#<identity>" until somebody comes who knows it; its policy is the key's all the same."""
    breaker.environment["BREAKER_CONFIG"] = str(ini(f"[target {KEY}]\nopen_seconds = 200\njitter = 0\n"))
    breaker("trip", "--create", KEY)
    table = open_table(breaker.table)
    table.put("<I", table.only_slot() + layout.KEY_CHECKSUM, 0)
    (shown,) = breaker.breakers()
    assert shown.startswith("#")
    assert breaker("reset", shown).stdout.startswith(f"{shown}: open -> closed")
    assert breaker("trip", KEY).stdout == f"{KEY}: closed -> open, probe in 3m\n"
    assert list(breaker.breakers()) == [KEY]


def test_reset_all_puts_a_fresh_table_in_place(breaker):
    breaker("trip", "--create", KEY)
    old = os.open(breaker.table, os.O_RDONLY)
    breaker("reset", "--all")
    assert breaker.status()["breakers"] == []
    assert os.fstat(old).st_ino != os.stat(breaker.table).st_ino
    os.close(old)


def test_reset_all_removes_what_a_killed_one_left(breaker):
    """Nobody else does: whoever finds a table looks at nothing beside it."""
    breaker("trip", KEY, "--create")
    left = breaker.table.parent / ".breaker-4242-0123456789abcdef.tmp"
    left.write_bytes(bytes(528384))
    os.utime(left, (0, 0))
    for command in (("status",), ("check",), ("trip", KEY), ("run", "--", "true")):
        breaker(*command)
        assert left.exists()
    breaker("reset", "--all")
    assert [path.name for path in breaker.table.parent.iterdir()] == ["table"]


def test_reset_all_where_files_may_not_be_so_large(breaker):
    breaker("trip", KEY, "--create")
    limited = ["sh", "-c", 'ulimit -f 100; exec "$0" reset --all', breaker.program]
    done = subprocess.run(limited, env=breaker.environment, capture_output=True, text=True, timeout=20)
    assert done.returncode == 1 and "file size limit" in done.stderr, done
    assert breaker.breakers()[KEY]["state"] == "open"


def test_a_default_table_that_cannot_be_made(breaker):
    probe = subprocess.run(["unshare", "--mount", "true"], capture_output=True, text=True)
    if os.geteuid() != 0 or probe.returncode != 0:
        pytest.skip("needs root and mount namespaces: " + probe.stderr.strip())
    del breaker.environment["BREAKER_TABLE"]
    mounted = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o ro,size=64k tmpfs /dev/shm && exec "$0" trip --create a.example',
               breaker.program]
    done = subprocess.run(mounted, env=breaker.environment, capture_output=True, text=True, timeout=20)
    assert done.returncode == 1 and "its directory cannot be made" in done.stderr, done


def test_reset_all_without_a_table_makes_none(breaker):
    assert "no table" in breaker("reset", "--all").stdout
    assert not breaker.table.exists()


def test_the_log_gets_one_line_per_change(breaker, tmp_path):
    log = tmp_path / "log"
    breaker("trip", "--create", "--log", "log", KEY)
    breaker("force", "open", KEY, BREAKER_LOG=str(log))
    breaker("reset", "--all", "--set", f"log={log}")
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(e["event"], e.get("key"), e.get("from"), e.get("to"), e["cause"]) for e in events] == [
        ("transition", KEY, "closed", "open", "manual"),
        ("transition", KEY, "open", "forced_open", "manual"),
        ("table", None, None, None, "manual"),
    ]
    assert all(e["program"] == "breaker" and e["pid"] > 0 and e["time"].endswith("Z") for e in events)


def test_a_bad_configuration_that_may_name_another_table_stops_changes(breaker, ini):
    breaker("trip", "--create", KEY)
    table = breaker.environment.pop("BREAKER_TABLE")
    breaker.environment["BREAKER_CONFIG"] = str(ini("[breaker]\nnonsense = 1\n"))
    for command in (["trip", KEY], ["reset", "--all"]):
        assert "--table" in breaker(*command, code=1).stderr
    breaker("reset", "--table", table, KEY)


def test_many_at_once_lose_nothing(breaker):
    breaker("force", "none", KEY, code=1)
    breaker("trip", "--create", KEY)
    before = breaker.breakers()[KEY]
    commands = [[breaker.program, "trip", KEY] for _ in range(16)]
    running = [subprocess.Popen(c, env=breaker.environment, stdout=subprocess.DEVNULL) for c in commands]
    assert [r.wait(30) for r in running] == [0] * 16
    after = breaker.breakers()[KEY]
    assert (after["generation"] - before["generation"]) % 2048 == 16
    assert after["opened"] == before["opened"] + 16


@pytest.mark.parametrize("args", [
    [], ["nonsense"], ["trip"], ["trip", "a", "b"], ["trip", "--nonsense", "a"], ["reset"], ["reset", "--all", "a"], ["reset", "a", "b"],
    ["force"], ["force", "open"], ["force", "ajar", "a"], ["force", "open", "a", "b"], ["status", "a"],
    ["check", "a", "b"], ["config", "a", "b"], ["config", "a b"], ["run"], ["run", "--"], ["run", "--set", "x", "true"],
    ["status", "--set", "nonsense=1"], ["status", "--set", "open_seconds=x"], ["status", "--table", ""],
    ["trip", "--set", "a=1\nb=2", "x"],
])
def test_wrong_usage(breaker, args):
    done = breaker(*args, code=2)
    assert done.stdout == "" and done.stderr != ""


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a table away")
def test_the_table_of_another_is_not_replaced(breaker):
    breaker("trip", "--create", KEY)
    breaker.table.parent.chmod(0o755)
    os.chown(breaker.table, 65534, os.getegid())
    breaker.table.chmod(0o660)
    before = breaker.table.stat().st_ino
    done = breaker("reset", "--all", code=1)
    assert done.stdout == "" and done.stderr.startswith(f"breaker: table {breaker.table}: ")
    assert breaker.table.stat().st_ino == before


def test_help_and_version(breaker):
    assert breaker("--version").stdout == "breaker 0.1.0\n"
    text = breaker("--help").stdout
    for command in ("run", "status", "trip", "reset", "force", "check", "config"):
        assert f"\n  {command} " in text
        assert f"Usage: breaker {command} " in breaker(command, "--help").stdout


def test_output_to_a_terminal_is_the_same(breaker):
    breaker("force", "open", "--create", KEY)
    expected = breaker("status").stdout
    leader, follower = pty.openpty()
    subprocess.run([breaker.program, "status"], env=breaker.environment, stdout=follower, check=True, timeout=30)
    os.close(follower)
    shown = os.read(leader, 65536).decode().replace("\r\n", "\n")
    os.close(leader)
    assert shown == expected


def test_a_full_table_says_what_to_do(breaker, open_table):
    breaker("trip", "--create", KEY)
    table = open_table(breaker.table)
    for i in range(layout.CAPACITY):
        table.put("<Q", layout.HEADER_SIZE + i * layout.SLOT_SIZE, i + 1)
    done = breaker("trip", "--create", "other.example", code=1)
    assert "no room for this key" in done.stderr and "`breaker reset --all`" in done.stderr
    shown = breaker("status")
    assert "1 times there was no room for a key" in shown.stdout and "`breaker reset --all`" in shown.stdout
