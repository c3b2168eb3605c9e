"""The result as JSON, and as the tables that the README carries."""
import json
import os
import pathlib
import platform
import re
import subprocess

BEGIN, END = "<!-- make bench: from here -->\n", "<!-- make bench: to here -->\n"


def machine():
    model = re.search(r"^model name\s*:\s*(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    return {"cpu": model.group(1) if model else platform.machine(), "cores": len(os.sched_getaffinity(0)),
            "kernel": platform.release(), "system": f"glibc {platform.libc_ver()[1]}",
            "libcurl": subprocess.run(["curl", "--version"], capture_output=True, text=True).stdout.split()[3:4],
            "load": os.getloadavg()[0]}


def busy(here):
    return here["load"] > here["cores"] / 2


def named(here):
    return f"{here['cpu']}, {here['cores']} cores, Linux {here['kernel']}, {here['system']}, {' '.join(here['libcurl'])}"


def number(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else \
        f"{value:.2f}" if value >= 2 else f"{value:.3f}" if value >= 0.01 else f"{value:.2g}"


def text_of(rows):
    """One row's ratio, or the range of a group's."""
    values = sorted(row["ratio"] for row in rows)
    text = number(values[0]) if len(rows) == 1 else f"{number(values[0])} to {number(values[-1])}"
    return text if all(row["met"] for row in rows) else f"**{text}**"


def grouped(rows):
    """[(name, rows)] in the order of their first."""
    groups = {}
    for row in rows:
        groups.setdefault(row["group"] or row["name"], []).append(row)
    return groups.items()


def line(name, rows):
    goal = "" if rows[0]["goal"] is None else number(rows[0]["goal"])
    spread = rows[0]["spread"] if len(rows) == 1 else None
    span = f"{number(spread[0])} to {number(spread[1])}" if spread and spread[0] != spread[1] else ""
    detail = rows[0]["detail"] if len(rows) == 1 else f"{len(rows)} ways of calling"
    return f"| {name.strip()} | {text_of(rows)} | {goal} | {span} | {detail} |"


def curve(name, rows):
    """A group of points: what each is at, and its time."""
    at = [re.search(r": (\d+) ", row["name"]).group(1) for row in rows]
    return (f"| {name} | " + " | ".join(at) + " |\n|---|" + "---|" * len(at) +
            "\n| | " + " | ".join(row["detail"].split()[0] for row in rows) + " |\n")


def markdown(here, rows, void):
    parts = [f"{named(here)}" + (f"; **on a busy machine** (load {here['load']:.1f})" if busy(here) else "") + ":\n"]
    for section in dict.fromkeys(row["section"] for row in rows):
        mine = [row for row in rows if row["section"] == section]
        curves = {row["group"] for row in mine if row["group"] and row["group"].endswith(", ns")}
        parts.append(f"### {section}\n")
        plain = [row for row in mine if row["group"] not in curves]
        if plain:
            parts.append("| what / over what | ratio | goal | spread | |\n|---|---|---|---|---|\n" +
                         "\n".join(line(name, group) for name, group in grouped(plain)) + "\n")
        for name in sorted(curves):
            parts.append(curve(name, [row for row in mine if row["group"] == name]))
    parts += [f"Void: {trouble}\n" for trouble in void]
    return "\n".join(parts)


def write_markdown(file, text):
    """Into what stands between the two marks, where the file has them: the README; else as the whole file."""
    old = file.read_text() if file.exists() else ""
    begin, end = old.find(BEGIN), old.find(END)
    if 0 <= begin < end:
        file.write_text(old[:begin + len(BEGIN)] + "\n" + text + "\n" + old[end:])
    else:
        file.write_text(text)


def write_json(file, here, rows, void):
    file.write_text(json.dumps({"machine": here, "rows": rows, "void": void}, indent=1) + "\n")
