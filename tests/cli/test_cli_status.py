"""breaker status: the list, its JSON, and tables that cannot be trusted."""

import os
import re
import struct
import time
from pathlib import Path

import pytest

import table_layout as layout

REPOSITORY = Path(__file__).resolve().parents[2]
KEY = "api.openai.com/gpt-4o"


def test_no_table_is_an_empty_list_and_makes_none(breaker):
    assert breaker.status() == {
        "version": "0.1.0",
        "table": {"path": str(breaker.table), "layout": 1, "capacity": 1024, "used": 0, "full": 0},
        "breakers": [],
    }
    assert breaker("status").stdout.split() == ["KEY", "STATE", "STREAK", "RETRY-IN", "OK", "FAIL", "NEUTRAL",
                                                "REFUSED", "REROUTED", "LAST-FAILURE"]
    for done in (breaker("status"), breaker("status", "--json")):
        assert done.stderr == f"breaker: no table at {breaker.table} yet\n"
    assert not breaker.table.exists() and not breaker.table.parent.exists()


def test_json_has_the_documented_shape(breaker, open_table):
    breaker("trip", "--create", KEY)
    table = open_table(breaker.table)
    slot = table.only_slot()
    table.put("<Q", slot + layout.LAST_FAILURE_NS, time.clock_gettime_ns(time.CLOCK_BOOTTIME) - 812_000_000)
    table.put("<I", slot + layout.LAST_FAILURE, 1 << 16 | 503)
    for shard in range(2):  # the totals are sums over the shards
        table.put("<5Q", slot + layout.STATS + shard * layout.STATS_SHARD, 5, 2, 1, 17, 0)
    table.put("<Q", layout.TABLE_FULL, 3)
    status = breaker.status()
    (row,) = status["breakers"]
    assert status["table"]["used"] == 1 and status["table"]["full"] == 3
    assert 30_000 <= row.pop("retry_in_ms") + 1000 and row["state"] == "open"
    assert 812 <= row["last_failure"].pop("age_ms") < 30_000
    generation = row.pop("generation")
    assert generation > 0
    assert row == {
        "key": KEY, "level": "model", "host": "api.openai.com", "model": "gpt-4o", "state": "open", "streak": 0,
        "opened": 1,
        "calls": {"success": 10, "failure": 4, "neutral": 2, "refused": 34, "rerouted": 0},
        "last_failure": {"class": "status", "status": 503}, "rerouted_to": [],
    }


@pytest.fixture
def reroute(breaker, open_table):
    """Writes into KEY's slot where its calls went: the total (in one shard), and the places for destinations, each a
    key or an identity and a count."""

    def write(total, *places):
        keys = [place for place, _ in places if isinstance(place, str)]
        for key in {KEY, *keys}:
            breaker("force", "closed", "--create", key)
        table = open_table(breaker.table)
        at = {name: next(slot for slot in table.slots() if table.key(slot) == name) for name in {KEY, *keys}}
        table.put("<Q", at[KEY] + layout.STATS + layout.REROUTED, total)
        for shard, (place, count) in enumerate(places):
            identity = table.get("<Q", at[place]) if isinstance(place, str) else place
            table.put("<2Q", at[KEY] + layout.STATS + shard * layout.STATS_SHARD + layout.TO, identity, count)
        return table

    return write


def test_where_calls_were_rerouted_to(breaker, reroute):
    reroute(15, ("openrouter.ai/openai/gpt-4o", 12), ("localhost:11434/llama3.2", 3))
    row = breaker.breakers()[KEY]
    assert row["calls"]["rerouted"] == 15 and "elsewhere" not in row
    assert row["rerouted_to"] == [{"key": "openrouter.ai/openai/gpt-4o", "count": 12},
                                  {"key": "localhost:11434/llama3.2", "count": 3}]
    head, *lines = breaker("status").stdout.splitlines()
    assert head.split()[-4:] == ["REFUSED", "REROUTED", "LAST-FAILURE", "REROUTED-TO"]
    shown = {line.split()[0]: line[head.index("REROUTED-TO"):] for line in lines}
    assert shown == {KEY: "openrouter.ai/openai/gpt-4o 12, localhost:11434/llama3.2 3",
                     "openrouter.ai/openai/gpt-4o": "-", "localhost:11434/llama3.2": "-"}
    assert next(line for line in lines if line.startswith(KEY))[:head.index("REROUTED") + 8].split()[-1] == "15"


def test_what_found_no_place_went_elsewhere(breaker, reroute):
    reroute(20, ("a.example/m", 12), ("b.example", 3))
    assert breaker.breakers()[KEY]["elsewhere"] == 5
    assert "a.example/m 12, b.example 3, elsewhere 5\n" in breaker("status").stdout


def test_a_destination_without_a_breaker_is_shown_by_its_identity(breaker, reroute):
    reroute(2, (0xabc, 2))
    assert breaker.breakers()[KEY]["rerouted_to"] == [{"key": "#0000000000000abc", "count": 2}]
    assert breaker("status").stdout.rstrip().endswith("#0000000000000abc 2")


@pytest.mark.parametrize("places, shown, elsewhere", [
    ([(0xabc, 2**64 - 1), (0xdef, 2**64 - 1)], [2**64 - 1, 2**64 - 1], None),  # never less than nothing is elsewhere
    ([(0, 7), (0xdef, 1)], [1], 3),  # nobody took that place
    ([(0xabc, 0), (0xdef, 4)], [4], None),  # taken, and not yet counted, or never
])
def test_destinations_of_a_hostile_table(breaker, reroute, places, shown, elsewhere):
    reroute(4, *places)
    row = breaker.breakers()[KEY]
    assert [place["count"] for place in row["rerouted_to"]] == shown and row.get("elsewhere") == elsewhere
    breaker("status")


def test_reset_leaves_where_calls_went_and_a_fresh_table_does_not(breaker, reroute):
    reroute(3, ("b.example", 3))
    before = breaker.breakers()[KEY]
    breaker("reset", KEY)
    after = breaker.breakers()[KEY]
    assert {name: after[name] for name in ("calls", "rerouted_to")} == \
        {name: before[name] for name in ("calls", "rerouted_to")}
    breaker("reset", "--all")
    breaker("force", "closed", "--create", KEY)
    assert breaker.breakers()[KEY]["rerouted_to"] == [] and "REROUTED-TO" not in breaker("status").stdout


@pytest.fixture
def rated(breaker, open_table):
    """Sets a failure_rate and puts words into KEY's buckets, for its generation."""

    def write(*words, window="60", key=KEY):
        breaker.environment.update(BREAKER_FAILURE_RATE="0.5", BREAKER_WINDOW=window)
        breaker("trip", "--create", key)
        breaker("reset", key)
        table = open_table(breaker.table)
        slot = next(slot for slot in table.slots() if table.key(slot) == key)
        generation = table.get("<Q", slot + layout.WORD) >> 46 & 63
        now = (time.clock_gettime_ns(time.CLOCK_BOOTTIME) >> 25) & (1 << 30) - 1
        for at, (age, calls, failures) in enumerate(words):
            begin = (now - age) & (1 << 30) - 1
            table.put("<Q", slot + layout.RATE + 8 * at, begin << 34 | generation << 28 | calls << 14 | failures)
        return table, slot

    return write


def test_the_share_of_failures_is_a_sum_of_buckets(breaker, rated):
    rated((0, 10, 3), (1700, 5, 5), (2000, 7, 7))  # the last one is older than the window
    assert breaker.breakers()[KEY]["rate"] == {"calls": 15, "failures": 8, "window": 60}
    head, line = breaker("status").stdout.splitlines()
    assert head.split()[-3:] == ["REROUTED", "RATE", "LAST-FAILURE"]
    assert line[head.index("RATE"):] == "8/15 in 60s  -"


def test_the_share_of_another_generation_is_not_shown(breaker, rated):
    rated((0, 10, 3))
    breaker("reset", KEY)
    assert breaker.breakers()[KEY]["rate"] == {"calls": 0, "failures": 0, "window": 60}


def test_keys_without_a_rate_have_none_beside_those_with_one(breaker, rated, ini):
    rated((0, 4, 1))
    breaker.environment["BREAKER_CONFIG"] = str(ini(f"[target {KEY}]\nfailure_rate = 0.5\nwindow = 1.25\n"))
    for name in ("FAILURE_RATE", "WINDOW"):
        del breaker.environment[f"BREAKER_{name}"]
    breaker("force", "closed", "--create", "plain.example")
    rows = breaker.breakers()
    assert rows[KEY]["rate"]["window"] == 1.25 and "rate" not in rows["plain.example"]
    head, line, plain = breaker("status").stdout.splitlines()
    assert line[head.index("RATE"):].startswith(("1/4 in 1.25s ", "0/0 in 1.25s "))
    assert plain[head.index("RATE"):].split() == ["-", "-"]


def test_what_is_only_observed_is_told(breaker):
    breaker("trip", "--create", KEY)
    assert "mode" not in breaker.breakers()[KEY] and "observed" not in breaker("status").stdout
    breaker.environment["BREAKER_MODE"] = "observe"
    assert breaker.breakers()[KEY]["mode"] == "observe"
    assert f"{KEY}  open, observed  " in breaker("status").stdout


def test_buckets_of_a_hostile_table(breaker, rated):
    table, slot = rated()
    for words in ([2**64 - 1] * 8, [1 << 14] * 8, [0x5555555555555555] * 8):
        table.put("<8Q", slot + layout.RATE, *words)
        rate = breaker.breakers()[KEY]["rate"]
        assert 0 <= rate["failures"] <= rate["calls"] <= 8 * 16383
        breaker("status")


def test_the_man_page_names_every_member_of_the_json(breaker, reroute, rated):
    reroute(20, ("a.example/m", 12))
    rated()
    breaker.environment["BREAKER_MODE"] = "observe"
    page = (REPOSITORY / "docs" / "breaker.1").read_text().replace("\\-", "-")
    section = page[page.index(".SH JSON OF STATUS"):page.index(".SH JSON OF EXPLAIN")]
    found = breaker.status()
    row = breaker.breakers()[KEY]
    names = {*found, *found["table"], *row, *row["calls"], *row["rerouted_to"][0], *row["rate"], "class", "status",
             "age_ms"}
    assert not {name for name in names if not re.search(rf"\b{name}\b", section)}


def test_host_level_has_no_model_and_no_failure_is_null(breaker):
    breaker("force", "closed", "--create", "gpu.internal:8000")
    (row,) = breaker.status()["breakers"]
    assert (row["level"], row["host"], row["model"]) == ("host", "gpu.internal:8000", None)
    assert row["state"] == "forced_closed" and row["last_failure"] is None and row["retry_in_ms"] == 0


def test_every_state_is_shown(breaker, open_table):
    names = {"a": "trip", "b": "force open", "c": "force closed"}
    for host, command in names.items():
        breaker(*command.split(), "--create", host)
    states = {key: row["state"] for key, row in breaker.breakers().items()}
    assert states == {"a": "open", "b": "forced_open", "c": "forced_closed"}
    breaker("reset", "a")
    table = open_table(breaker.table)
    now = time.clock_gettime_ns(time.CLOCK_BOOTTIME) >> 25
    breaker("reset", "b")
    for slot in table.slots():  # shim/core/breaker.h: phase 63-61, count 38-30, time 29-0
        table.put("<Q", slot + layout.WORD, 3 << 30 | (now & (1 << 30) - 1))
    assert {row["state"] for row in breaker.breakers().values()} == {"degraded"}
    assert {row["streak"] for row in breaker.breakers().values()} == {3}
    for slot in table.slots():
        table.put("<Q", slot + layout.WORD, 2 << 61 | 1 << 30 | (now + 300 & (1 << 30) - 1))
    assert {row["state"] for row in breaker.breakers().values()} == {"half_open"}


def test_open_whose_time_is_over_reads_probe_due_and_stays_as_it_is(breaker, open_table):
    breaker("trip", "--create", KEY)
    table = open_table(breaker.table)
    word = table.only_slot() + layout.WORD
    past = (time.clock_gettime_ns(time.CLOCK_BOOTTIME) >> 25) - 1
    table.put("<Q", word, table.get("<Q", word) >> 30 << 30 | past)
    before = table.get("<Q", word)
    assert "open, probe due" in breaker("status").stdout
    row = breaker.breakers()[KEY]
    assert row["state"] == "open" and row["retry_in_ms"] == 0
    assert table.get("<Q", word) == before


@pytest.mark.parametrize("phase, state", [(1, "open"), (2, "half_open")])
def test_whose_time_is_over_is_told_alike(breaker, open_table, phase, state):
    """Of an open time or of a lease: the next call is the probe."""
    breaker("trip", "--create", KEY)
    table = open_table(breaker.table)
    word = table.only_slot() + layout.WORD
    past = (time.clock_gettime_ns(time.CLOCK_BOOTTIME) >> 25) - 1
    table.put("<Q", word, phase << 61 | 1 << 30 | past & (1 << 30) - 1)
    head, line = breaker("status").stdout.splitlines()
    assert line[head.index("STATE"):].startswith(f"{state}, probe due ")
    assert line[:head.index("RETRY-IN") + len("RETRY-IN")].split()[-1] == "now"
    assert breaker.breakers()[KEY]["state"] == state and breaker.breakers()[KEY]["retry_in_ms"] == 0
    text = breaker("explain", "https://api.openai.com/v1/chat/completions", "--model", "gpt-4o").stdout
    assert f"state: {state}, probe due, streak" in text
    told = breaker("force", "closed", "--create", "api.openai.com").stdout
    assert f"  {KEY}: {state}, probe due\n" in told


def test_text_is_aligned_and_sorted(breaker):
    for key in ("b.example/m", "a.example", "a.example/longer-model-name"):
        breaker("trip", "--create", key)
    lines = breaker("status").stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["a.example", "a.example/longer-model-name", "b.example/m"]
    column = lines[0].index("STATE")
    assert all(line[column:].startswith("open") and line[column - 1] == " " for line in lines[1:])


def test_what_could_act_on_a_terminal_is_made_harmless(breaker):
    model = "m\u202e\u009b31m\u00e9"
    breaker("trip", "--create", "h.example/" + model)
    text = breaker("status").stdout
    assert r"m\xe2\x80\xae\xc2\x9b31m" + "\u00e9" in text
    assert breaker.breakers().keys() == {"h.example/" + model}


def test_a_key_that_does_not_match_its_checksum_is_shown_by_its_identity(breaker, open_table):
    breaker("trip", "--create", KEY)
    table = open_table(breaker.table)
    slot = table.only_slot()
    table.put("<8s", slot + layout.KEY_TEXT, b"\x1b[2J\xff\xfe\n\"")
    name = "#%016x" % table.get("<Q", slot)
    assert breaker.breakers().keys() == {name}
    assert breaker("status").stdout.splitlines()[1].startswith(name)
    assert "-> closed" in breaker("reset", name).stdout


def test_a_hostile_table_only_shows_nonsense(breaker, open_table):
    breaker("trip", "--create", KEY)
    table = open_table(breaker.table)
    noise = bytes((i * 167 + 13) % 256 for i in range(layout.SLOT_SIZE))
    for i in range(layout.CAPACITY):
        at = layout.HEADER_SIZE + i * layout.SLOT_SIZE
        table.map[at:at + layout.SLOT_SIZE] = noise[i % 256:] + noise[:i % 256]
    assert len(breaker.status()["breakers"]) == layout.CAPACITY
    breaker("status")
    breaker("trip", "nearest.of.noise", code=1)


def test_a_table_that_may_not_be_used_is_told(breaker):
    breaker("trip", "--create", KEY)
    os.truncate(breaker.table, 4096)
    done = breaker("status", "--json", code=1)
    assert done.stdout == "" and str(breaker.table) in done.stderr
    breaker("trip", KEY, code=1)
    breaker.table.unlink()
    breaker.table.symlink_to("/dev/null")
    breaker("status", code=1)


def test_reading_changes_nothing(breaker):
    breaker("trip", "--create", KEY)
    before = breaker.table.read_bytes()
    breaker("status")
    breaker.status()
    assert breaker.table.read_bytes() == before


def test_the_table_option_and_the_configuration_name_tables(breaker, ini, tmp_path):
    named = tmp_path / "named" / "table"
    breaker("trip", "--create", "--table", "named/table", KEY)  # relative: to the working directory
    assert named.exists() and not breaker.table.exists()
    path = ini(f"[breaker]\ntable = {named}\n")
    del breaker.environment["BREAKER_TABLE"]
    status = breaker.status("--config", str(path))
    assert status["table"]["path"] == str(named) and status["table"]["used"] == 1


def test_a_bad_configuration_does_not_blind_the_operator(breaker, ini):
    breaker("trip", "--create", KEY)
    path = ini("[breaker]\nopen_seconds = soon\n")
    done = breaker("status", BREAKER_CONFIG=str(path))
    assert KEY in done.stdout
    assert done.stderr.startswith(f"breaker: warning: {path}:2: open_seconds: ")


def test_output_that_cannot_be_written_is_an_error(breaker):
    import subprocess

    with open("/dev/full", "w") as full:
        done = subprocess.run([breaker.program, "status"], env=breaker.environment, stdout=full,
                              stderr=subprocess.PIPE, text=True, timeout=30)
    assert done.returncode == 1 and "cannot write" in done.stderr


def test_layout_numbers_of_this_file_are_those_of_the_table(breaker, open_table):
    breaker("trip", "--create", KEY)
    table = open_table(breaker.table)
    slot = table.only_slot()
    length = struct.unpack_from("<H", table.map, slot + layout.KEY_CHECKSUM + 4)[0]
    text = table.map[slot + layout.KEY_TEXT - 0:slot + layout.KEY_TEXT + length]
    assert text == KEY.encode() and table.get("<Q", slot + layout.OPENED) == 1
