"""What every measurement has: the build, a directory, two environments, rows of results, and a way to be void."""
import json
import os
import pathlib
import subprocess

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("BREAKER_BUILD", REPOSITORY / "build")).resolve()
LIBRARY = BUILD / "libbreaker.so"
PROGRAMS = BUILD / "tests" / "bench"
HELPERS = REPOSITORY / "tests" / "bench" / "lib"
PYTHON = "/usr/bin/python3"
PATH = "/v1/chat/completions"
DEADLINE = 60  # seconds that any single answer of a helper may take


class Void(Exception):
    """A measurement that says nothing."""


def succeeded(done):
    """What a program printed, which must have ended well. The loader, too, tells on stderr that it could not preload."""
    if done.returncode or done.stderr:
        raise Void(f"{pathlib.Path(done.args[0]).name}: exit {done.returncode}: {done.stderr.splitlines()[-1:]}")
    return done.stdout


class Bench:
    def __init__(self, directory, quick):
        self.directory, self.quick = directory, quick
        self.rows = []
        self.section = None
        self.table = directory / "table"
        self.plain = {"PATH": "/usr/bin:/bin", "HOME": str(directory), "LC_ALL": "C.UTF-8"}
        self.covered = {**self.plain, "BREAKER_TABLE": str(self.table), "LD_PRELOAD": str(LIBRARY)}

    def row(self, name, ratio, goal, detail, spread=None, group=None):
        """One line of the result. `group`: in the README it is one line with all others of that name."""
        self.rows.append({"section": self.section, "name": name, "ratio": ratio, "goal": goal, "detail": detail,
                          "spread": spread, "group": group, "met": goal is None or ratio <= goal})
        goal_text = "" if goal is None else f"<= {goal:.4g}"
        verdict = "" if goal is None else "ok" if ratio <= goal else "MISSED"
        print(f"{name:<66} {ratio:>9.4f} {goal_text:>9} {verdict:<7} {detail}", flush=True)

    def command(self, *args, table=None):
        return subprocess.run([BUILD / "breaker", *args], env={**self.plain, "BREAKER_TABLE": str(table or self.table)},
                              check=True, capture_output=True, text=True, timeout=DEADLINE).stdout

    def breakers(self, table=None):
        """{key: what the status tells of it}"""
        return {one["key"]: one for one in json.loads(self.command("status", "--json", table=table))["breakers"]}

    def preload(self, name):
        """A preload of tests/bench/lib/, built."""
        made = self.directory / f"{name}.so"
        subprocess.run([os.environ.get("CC", "cc"), "-D_GNU_SOURCE", "-shared", "-fPIC", "-O2", "-o", made,
                        HELPERS / f"{name}.c", "-ldl"], check=True, timeout=DEADLINE)
        return made

    def program(self, name, *args, preload=(), table=None):
        environment = {**self.plain, "BREAKER_TABLE": str(table or self.directory / f"{name}.table"),
                       **{"LD_PRELOAD": str(library) for library in preload}}
        return succeeded(subprocess.run([str(PROGRAMS / name), *map(str, args)], timeout=600, capture_output=True,
                                        text=True, env=environment))

    def must_have_counted(self, key, made):
        """The calls met the breaker, or there is nothing to tell."""
        found = self.breakers().get(key)
        if not found:
            raise Void(f"{key} is not in the table: the calls were not covered")
        if found["calls"]["success"] != made or found["state"] != "closed":
            raise Void(f"{made} calls made, the table says {found}")
