"""Issue 6, item 4: what a healthy call over TLS costs, as counts that are the same on each run. The ns are for `make bench`.

bench_tls posts over one connection of libssl's; valgrind counts the instructions of libbreaker.so, and strace the system
calls. What the longer of two runs has more is the calls' own.
"""

import re
import subprocess
from pathlib import Path

import callgrind
import pytest
from callgrind import FEW, MANY

REPOSITORY = Path(__file__).resolve().parents[2]
SITES, TOO_MANY_SITES = 320, 600  # places of a program that call libssl
# Of our own in a kept POST of 2 KB. On each connection of its own it costs more than that.
INSTRUCTIONS = 4610
# That they stand in, of 64 bytes and of 4 KB.
LINES, PAGES = 317, 8
LOOKS = {"newfstatat", "stat", "statx"}  # one look a second at the configuration is allowed


@pytest.fixture
def posts(benches, breaker_env, tls_provider, tmp_path):
    """bench_tls, under a tracer, with the library or without."""
    program = callgrind.stripped(benches / "bench_tls", tmp_path)
    library = callgrind.stripped(breaker_env.library, tmp_path)

    def run(count, tracer, preload, fresh=False):
        environment = {**breaker_env.environment, **({"LD_PRELOAD": str(library)} if preload else {})}
        command = [*tracer, program, tls_provider.port, "/v1/chat/completions",
                   *(["fresh"] if fresh else [])]
        done = subprocess.run([*map(str, command)], env=environment, input=f"{count}\n", capture_output=True, text=True,
                              timeout=110)
        assert done.returncode == 0 and not done.stderr, done
        assert done.stdout.split()[1:] == ["200", "0", str(count if fresh else 1)], done
        return done

    return run


@pytest.fixture
def instructions(posts, tmp_path):
    """Instructions of libbreaker.so for each call."""

    def count(**options):
        return callgrind.per_call(lambda number, tracer: posts(number, tracer, **options), tmp_path / "callgrind")

    return count


@pytest.mark.time_limit(240)
def test_a_kept_post_costs_few_instructions(instructions, breaker_env, tls_provider):
    spent = instructions(preload=True)
    assert 500 < spent <= INSTRUCTIONS
    assert breaker_env.calls(tls_provider.key("bench", "localhost"))["success"] == FEW + MANY


@pytest.mark.time_limit(240)
def test_more_would_be_seen(instructions):
    assert instructions(preload=True, fresh=True) > INSTRUCTIONS
    assert instructions(preload=False) == 0


def test_a_kept_post_makes_no_further_system_call(posts, tmp_path, breaker_env):
    report = tmp_path / "strace"

    def system_calls(count, preload):
        tracer = ["strace", "-f", "-c", "-o", report, *(["-E", f"LD_PRELOAD={breaker_env.library}"] if preload else [])]
        posts(count, tracer, preload=False)
        return {name: int(calls) for calls, name in
                re.findall(r"^ *[\d.]+ +[\d.]+ +\d+ +(\d+) +(?:\d+ +)?([a-z_0-9]+)$", report.read_text(), re.M)}

    system_calls(1, True)  # makes the table
    more = []
    for preload in (False, True):
        few, many = (system_calls(count, preload) for count in (FEW, MANY))
        more.append({name: many[name] - few.get(name, 0) for name in many if name not in LOOKS | {"total"}})
    assert more[0]["write"] >= MANY - FEW
    assert {name: calls for name, calls in more[1].items() if calls > more[0].get(name, 0)}.keys() <= {"read"}, more


# --- how far apart it lies ---------------------------------------------------------------------------


def counts_of(report, name):
    """{address: count} of the object's own instructions (--dump-instr=yes: an address stands before the source line)."""
    counts, address = {}, 0
    for ours, (where, _, cost, *_) in callgrind.costs(report, name):
        if where != "*":
            address = int(where, 0) + (address if where[0] in "+-" else 0)
        if ours:
            counts[address] = counts.get(address, 0) + int(cost)
    return counts


@pytest.mark.time_limit(120)
def test_a_kept_post_runs_few_pages_of_code(posts, tmp_path):
    """What it runs lies together (preload/order.ld): a program does much else in between, and all of it is fetched anew."""
    report, counts = tmp_path / "callgrind", []
    for number in (FEW, MANY):
        posts(number, ["valgrind", "-q", "--tool=callgrind", "--dump-instr=yes", f"--callgrind-out-file={report}"],
              preload=True)
        counts.append(counts_of(report, "libbreaker.so"))
    addresses = {address for address, count in counts[1].items() if count - counts[0].get(address, 0) >= MANY - FEW}
    lines, pages = ({address // size for address in addresses} for size in (64, 4096))
    assert 50 < len(lines) <= LINES and len(pages) <= PAGES, (len(lines), len(pages))


def test_the_order_names_what_there_is():
    """A name that is gone would do no harm, and no good."""
    order = re.sub(r"/\*.*?\*/", "", (REPOSITORY / "preload/order.ld").read_text(), flags=re.S)
    named = set(re.findall(r"\.(?:text|rodata|bss|data\.rel(?:\.ro)?(?:\.local)?)\.(\w+\*?)", order))
    named -= {name for name in named if re.match(r"(cst|str)\d|sorted$|kept$|ro$|local$", name)}  # the compiler's, the linker's
    sources = "\n".join(path.read_text() for top in ("preload", "shim") for path in (REPOSITORY / top).rglob("*.[chd]*"))
    gone = {name for name in named if not re.search(rf"\b{name[:-1]}" if name.endswith("*") else rf"\b{name}\b", sources)}
    assert len(named) > 150 and gone == set()


# --- many places that call ---------------------------------------------------------------------------


@pytest.fixture
def a_call_of_many(compile_c, breaker_env, tmp_path):
    """Instructions of a call, the program's, libssl's and ours, where so many places make one each, in turns."""

    def count(sites):
        source, report, totals = tmp_path / f"sites-{sites}.c", tmp_path / "callgrind", []
        source.write_text("#include <openssl/ssl.h>\n#include <stdlib.h>\n"
                          + "".join(f"__attribute__((noinline)) static int at_{i}(SSL *ssl) {{ return SSL_pending(ssl) + {i}; }}\n"
                                    for i in range(sites))
                          + f"static int (*const all[{sites}])(SSL *) = {{"
                          + ", ".join(f"at_{i}" for i in range(sites)) + "};\n"
                          "int main(int count, char **words)\n{\n    SSL *ssl = SSL_new(SSL_CTX_new(TLS_client_method()));\n"
                          f"    for (int i = 0; ssl && count > 1 && i < atoi(words[1]) * {sites}; i++)\n"
                          f"        if (all[i % {sites}](ssl) != i % {sites})\n            return 1;\n    return !ssl;\n}}\n")
        program = compile_c(source, "-lssl", "-lcrypto", name=f"sites-{sites}")
        library = callgrind.stripped(breaker_env.library, tmp_path)
        for rounds in (2, 12):
            subprocess.run(["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={report}", program, str(rounds)],
                           env={**breaker_env.environment, "LD_PRELOAD": str(library)}, check=True, timeout=100)
            totals.append(int(re.search(r"^summary: (\d+)", report.read_text(), re.M)[1]))
        return (totals[1] - totals[0]) / (10 * sites)

    return count


@pytest.mark.time_limit(200)
def test_each_of_many_places_is_found_again(a_call_of_many):
    """One that is not is searched for each time: tens of thousands of instructions."""
    at_first_look = a_call_of_many(8)
    assert a_call_of_many(SITES) < at_first_look + 100 < a_call_of_many(TOO_MANY_SITES)
