"""README's table "What is covered" says what the tests show, client by client: what happens while a breaker is open.

A row names in its second column the clients that stand for it, and begins its last one with how their calls end. They must
be the very clients that the row's tests run, and end so there.
"""

import re
import subprocess
from pathlib import Path

import pytest

from sock_programs import ALL, OPEN, REFUSED
from support import PYTHON
from tls_servers import OTHER_TLS, TLS, skip_other_node, trust

TESTS = Path(__file__).parents[1]
BENCH = TESTS / "bench"
README = TESTS.parent / "README.md"
NAME = "localhost"
PASSES = "status 200 -"

WHOLE = r"\[(.+)\]"  # the client is the test's one parameter
FIRST, BUT_LAST = r"\[(\w+)-", r"\[(.+)-\w+\]"  # it is one of two
# How the calls of a row end, by what its first column begins with; and the tests that show it, each with the client that it
# runs or where the name of that stands among its parameters.
ROWS = {
    "libcurl": ("503", {"test_main_curl_tool.py::test_refused_whatever_the_way": "curl",
                        "test_main_bindings.py::test_five_failures_then_refused": FIRST}),
    "HTTP/1.1 in clear": ("503", {"test_sock_clients.py::test_five_bad_statuses_then_none_then_one_probe": WHOLE}),
    "HTTP/1.1 over TLS": ("503", {"test_tls_clients.py::test_failures_open_it": WHOLE}),
    "SDKs": ("503", {"sdk/test_sdks.py::test_walk": BUT_LAST}),
    "other TLS": ("connect refused", {"test_coverage.py::test_other_tls": WHOLE}),
    "past libc's calls": ("connect refused", {"test_coverage.py::test_past_the_calls": WHOLE}),
    "without libc": ("passes", {"test_coverage.py::test_without_libc": "static",
                                "test_main_harmless.py::test_a_go_program": "go"}),
    "set-uid": ("passes", {"test_main_harmless.py::test_a_set_uid_program_starts": "mount"}),
    "gcc's shared ASan": ("does not start", {"test_coverage.py::test_shared_asan": "asan"}),
    "a cleared environment": ("passes", {"test_coverage.py::test_a_cleared_environment": "env -i"}),
}
# Of libcurl's layer; among the others it is the measure.
MEASURE = {"HTTP/1.1 in clear": {"pycurl"}}


# --- the ends that no other test shows -------------------------------------------------------------


def met_by_the_host_alone(client, url, provider, breaker_env):
    """Of its requests nothing is known; H refuses its connects."""
    key, model = provider.key(name=NAME), provider.key("m", NAME)
    breaker_env.configure(f"[target {key}]\n", open_seconds=60)
    breaker_env.command("trip", "--create", model)
    assert client.ask(url, "m", "close") == PASSES
    assert breaker_env.calls(model)["refused"] == 0 and breaker_env.calls(key)["success"] == 1
    breaker_env.command("trip", key)
    assert client.ask(url, "m", "close") == REFUSED
    assert provider.accepted == 1


@pytest.mark.parametrize("name", OTHER_TLS)
def test_other_tls(name, talk, tls_provider, breaker_env, authority):
    skip_other_node(name, libssl=False)
    met_by_the_host_alone(talk(name, env=trust(authority)), tls_provider.url(name=NAME), tls_provider, breaker_env)


@pytest.mark.parametrize("name", ["bash"])
def test_past_the_calls(name, talk, provider, breaker_env):
    met_by_the_host_alone(talk(name), provider.url(name=NAME), provider, breaker_env)


@pytest.fixture
def poster(compile_c):
    """A client of the bench, made with these flags."""
    return lambda *flags: compile_c(BENCH / "bench_sock.c", "-I", BENCH, *flags, name="poster")


@pytest.fixture
def post(provider, breaker_env):
    """What one POST of it ended with, while the breaker of its model is open."""
    breaker_env.configure(open_seconds=60)
    breaker_env.command("trip", "--create", provider.key("bench"))

    def call(*command):
        done = breaker_env.run(*command, provider.port, "/v1/chat/completions", input=b"1\n")
        assert (done.returncode, done.stderr) == (0, b""), done
        return int(done.stdout.split()[1])

    return call


def test_the_poster_is_covered(poster, post):
    """Or nothing that follows is true."""
    assert post(poster()) == 503


def test_without_libc(poster, post):
    assert post(poster("-static")) == 200


def test_a_cleared_environment(poster, post):
    assert post("env", "-i", poster()) == 200


def test_shared_asan(compile_c, breaker_env):
    done = breaker_env.run(compile_c("int main(void) { return 0; }", "-fsanitize=address", compiler="gcc"))
    assert done.returncode != 0 and b"ASan runtime does not come first" in done.stderr, done


# --- the table -------------------------------------------------------------------------------------


def rows_of(readme):
    """{row: (its clients, how their calls end)}."""
    section = readme.partition("\n## What is covered\n")[2].partition("\n## ")[0]
    found = {}
    for line in re.findall(r"^\| \*\*.*$", section, re.M):
        what, clients, _, end = (cell.strip() for cell in line.strip("|").split(" | "))
        name = re.match(r"\*\*(.+?)\*\*", what)
        said = re.match(r"\*\*(.+?)\*\*", end)
        assert name and said, line
        assert name[1] not in found, f"twice: {name[1]}"
        found[name[1]] = set(re.findall(r"`([^`]+)`", clients)), said[1]
    return found


def client_of(item, test, where):
    if not where.startswith(r"\["):
        return where
    return re.search(where, item.removeprefix(test))[1]


@pytest.fixture(scope="module")
def shown():
    """{row: (the clients that its tests run, how their calls end there)}, as pytest finds them."""
    files = sorted({test.partition("::")[0] for _, tests in ROWS.values() for test in tests})
    done = subprocess.run([PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only", "--rootdir", TESTS,
                           *(TESTS / "preload" / file for file in files)], cwd=TESTS, capture_output=True, text=True, timeout=50)
    items = re.findall(r"^preload/(\S.*)$", done.stdout, re.M)
    return {row: ({client_of(item, test, where) for test, where in tests.items() for item in items
                   if item == test or item.startswith(test + "[")} - MEASURE.get(row, set()), end)
            for row, (end, tests) in ROWS.items()}


def differences(said, shown):
    """In words: what the table claims and no test shows, and the other way round."""
    for row in {*said, *shown}:
        claimed, end = said.get(row, (set(), None))
        run, end_there = shown.get(row, (set(), None))
        if not run or not claimed:
            yield f"{row}: no test" if not run else f"{row}: no such row, yet tests run {sorted(run)}"
            continue
        yield from (f"{row}: no test runs {name}" for name in claimed - run)
        yield from (f"{row}: tests run {name}, the table does not name it" for name in run - claimed)
        if end != end_there:
            yield f"{row}: the table says {end}, the tests {end_there}"


def test_the_table_is_what_the_tests_show(shown):
    assert not list(differences(rows_of(README.read_text()), shown))


def test_every_client_is_in_it():
    """Those of the sockets' and the TLS layer, and of those without a test over TLS here it is told why."""
    said = rows_of(README.read_text())
    assert said["HTTP/1.1 in clear"][0] | said["past libc's calls"][0] == set(ALL)
    assert said["HTTP/1.1 over TLS"][0] == set(TLS)


@pytest.mark.parametrize("change, complaint", [
    (("`requests`, ", ""), "HTTP/1.1 in clear: tests run requests, the table does not name it"),
    (("`curl`, ", "`curl`, `wcurl`, "), "libcurl: no test runs wcurl"),
    (("**connect refused**", "**503**"), "other TLS: the table says 503, the tests connect refused"),
    (("| **set-uid**", "| **set-gid**"), "set-gid: no test"),
], ids=["a client too few", "a client too many", "another end", "another row"])
def test_a_difference_would_be_seen(change, complaint, shown):
    readme = README.read_text()
    assert complaint in set(differences(rows_of(readme.replace(*change)), shown))
