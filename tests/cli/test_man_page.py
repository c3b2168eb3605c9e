"""docs/breaker.1 against what the command takes and prints: every option of every subcommand, every member."""

import json
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "breaker.1").read_text()
COMMANDS = ("run", "status", "trip", "force", "reset", "check", "config", "explain")
EVERYWHERE = {"config", "table", "log", "set", "help", "usage", "version"}
JSON = ("status", "config", "explain")


def plain(text):
    """Without the marks for fonts, each line with its words."""
    return re.sub(r"^\.[A-Z]+ ?|\\f[A-Z]|\"|\\(?=-)", "", text, flags=re.M)


def section(name):
    return PAGE.partition(f".SH {name}\n")[2].partition("\n.SH ")[0]


def own_options(breaker, command):
    """{long: short or None} of what --help lists, without what every command takes."""
    listed = re.findall(r"^ +(?:-(\w), |  +)--([\w-]+)", breaker(command, "--help").stdout, re.M)
    return {long: short or None for short, long in listed if long not in EVERYWHERE}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_in_the_synopsis_and_among_the_options(breaker, command):
    synopsis = plain(section("SYNOPSIS").partition(f"\n.B {command}\n")[2].partition("\n.YS")[0])
    for long, short in own_options(breaker, command).items():
        assert f"--{long}" in synopsis, (command, long)
        entry = re.search(rf"^-{short} *, *--{long}\b.*\n(.*)", plain(section("OPTIONS")), re.M)
        assert entry and command in entry[1], (command, long, short)


def test_the_same_option_is_spelt_alike_everywhere(breaker):
    options = {command: own_options(breaker, command) for command in COMMANDS}
    assert [command for command in COMMANDS if options[command].get("json") == "j"] == list(JSON)
    assert {short for taken in options.values() for short in taken.values()} >= {"j", "c", "X", "m", "b", "a"}


def test_json_of_config_is_in_the_page(breaker, ini):
    path = ini("[breaker]\nfallback = a\n[fallback a]\nbase = https://a.example\nheader = X: y\n")
    shown = json.loads(breaker("config", "-j", "h.example", "--config", str(path)).stdout)
    assert shown == json.loads(breaker("config", "--json", "h.example", "--config", str(path)).stdout)
    names = {*shown, *shown["settings"]["open_seconds"], *shown["fallbacks"][0]}
    text = plain(section("JSON OF CONFIG"))
    assert not {name for name in names if not re.search(rf"\b{name}\b", text)}
