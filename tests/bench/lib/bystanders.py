"""What a process pays that makes no call: its start, its memory, the calls on its descriptors, redis as one of them."""
import contextlib
import pathlib
import random
import re
import resource
import statistics
import subprocess

from lib.measure import DEADLINE, LIBRARY, Void
from lib.servers import PROVIDER, certificate, find_library, nginx, redis_server
from lib.turns import Client, Side


def start(bench):
    """proxychains4 as the library that its command preloads: the command itself would be a second start."""
    sides = [bench.preload("trivial_preload"), LIBRARY, "-", find_library("*/libproxychains.so.4")]
    out = bench.program("bench_spawn", 100 if bench.quick else 1000, 4, "/bin/true", *sides)
    times = [list(map(float, line.split())) for line in out.splitlines()]
    trivial, ours, none, chains = (statistics.median(t[i] for t in times) / 1e3 for i in range(4))

    def row(name, kind, goal, detail):
        ratios = [t[kind] / t[0] for t in times]
        bench.row(f"process start, {name} / a trivial preload", statistics.median(ratios), goal, detail,
                  spread=statistics.quantiles(ratios, n=10)[::8])

    row("ours", 1, 1.08, f"{ours:.0f} us over {trivial:.0f} us; without any {none:.0f} us")
    row("proxychains4's", 3, None, f"{chains:.0f} us")


# --- memory ------------------------------------------------------------------------------------------


PRIVATE_KIB = 200
ALIVE = 8  # at once on each side: with one alone, the library's own pages and the table's would be "private"


def private_kib(process):
    text = pathlib.Path(f"/proc/{process.pid}/smaps_rollup").read_text()
    return sum(int(kib) for kib in re.findall(r"^Private_(?:Clean|Dirty): +(\d+) kB$", text, re.M))


def memory(bench):
    """Of a process that has made one call and waits."""
    trust = certificate(bench.directory)
    with nginx(bench.directory, "memory", PROVIDER) as clear, \
            nginx(bench.directory, "memory-tls", PROVIDER, tls=True) as tls:
        for program, port, name in (("bench_client", clear, "libcurl"), ("bench_sock", clear, "send and recv"),
                                    ("post_tls.py", tls, "Python over TLS")):
            more, bare = [], []
            for _ in range(3 if bench.quick else 5):
                with contextlib.ExitStack() as alive:
                    sides = [[started(alive, Side(program, port, {**environment, **trust})) for _ in range(ALIVE)]
                             for environment in (bench.plain, bench.covered)]
                    without, with_us = (statistics.median(private_kib(client.process) for client in side)
                                        for side in sides)
                more.append(with_us - without)
                bare.append(without)
            host = "localhost" if program.endswith(".py") else "127.0.0.1"
            counted = bench.breakers().get(f"{host}:{port}/bench", {"calls": {"success": 0}})["calls"]["success"]
            if counted < len(more) * ALIVE:
                raise Void(f"{name}: the table knows {counted} calls")
            bench.row(f"KiB of private memory more, {name}, idle after a call", statistics.median(more), PRIVATE_KIB,
                      f"on {statistics.median(bare):.0f} KiB", spread=[min(more), max(more)])


def started(alive, side):
    client = Client(side)
    alive.callback(client.close)
    client.block(1, first=True)
    return client


# --- calls on descriptors that are nobody's ----------------------------------------------------------


def descriptors(bench):
    """ns that a hook costs the call that it lets pass: ours over libc's own, in one process, in turns."""
    # Several processes, since each has a layout of memory of its own; none can be told from another otherwise.
    sessions, rounds, count = (3, 40, 200) if bench.quick else (11, 200, 200)
    called = {name: max(1, len(functions)) for name, *functions in
              (line.split() for line in bench.program("bench_descriptor", "ways").splitlines())}
    over, bare = ({name: [] for name in called} for _ in range(2))
    noise = []
    for _ in range(sessions):
        for name, times in descriptor_times(bench, rounds, count, LIBRARY).items():
            over[name].append(statistics.median(seen - libc for libc, seen in times) / called[name])
            bare[name].append(statistics.median(libc for libc, _ in times) / called[name])
        noise += [abs(statistics.median(seen - libc for libc, seen in times)) / called[name]
                  for name, times in descriptor_times(bench, rounds, count).items()]
    if max(map(statistics.median, over.values())) <= statistics.median(noise):
        raise Void("no hook is seen to cost anything: is one there?")
    for name, ns in over.items():
        bench.row(f"ns a call that is let pass: {name}", statistics.median(ns), 5,
                  f"{statistics.median(bare[name]):.0f} ns bare", spread=[min(ns), max(ns)],
                  group="ns that a hooked libc call on a descriptor that is not ours takes more")
    bench.row("ns more of the worst of them with no library there", max(noise), None,
              f"{statistics.median(noise):.3f} ns as a rule")


def descriptor_times(bench, rounds, count, *preload):
    """{way: [(bare, seen), ...]} in ns per round."""
    times = {}
    for line in bench.program("bench_descriptor", "times", rounds, count, preload=preload).splitlines():
        name, *both = line.split()
        times.setdefault(name, []).append(tuple(int(ns) / count for ns in both))
    return times


# --- a server and a client that have nothing to do with LLM hosts -------------------------------------


def redis_figures(process, port, environment, count):
    """Seconds per request: by test, as redis-benchmark tells its rate, and of CPU, server and client together."""
    def cpu():
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        tasks = pathlib.Path(f"/proc/{process.pid}/task").glob("*/schedstat")
        return children.ru_utime + children.ru_stime + sum(int(task.read_text().split()[0]) for task in tasks) / 1e9

    before = cpu()
    done = subprocess.run(["/usr/bin/redis-benchmark", "-p", str(port), "-n", str(count), "-t", "set,get", "--csv"],
                          env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE)
    rates = {test: float(rate) for test, rate in re.findall(r'^"(SET|GET)","([\d.]+)"', done.stdout, re.M)}
    if done.returncode or len(rates) != 2:
        raise Void(f"redis-benchmark: exit {done.returncode}: {done.stdout[-200:]}{done.stderr[-200:]}")
    return {**{test: 1 / rate for test, rate in rates.items()}, "CPU time": (cpu() - before) / (2 * count)}


def must_be_preloaded(process):
    if str(LIBRARY) not in pathlib.Path(f"/proc/{process.pid}/maps").read_text():
        raise Void("redis-server runs without the library")


def redis(bench):
    """Server and benchmark, both bare against both covered, in turns; throughput, and what the CPUs did for it."""
    rounds, count = (5, 10_000) if bench.quick else (120, 20_000)
    with redis_server(bench.directory, "bare", bench.plain) as bare, \
            redis_server(bench.directory, "ours", bench.covered) as ours:
        must_be_preloaded(ours[0])
        sides = [(*bare, bench.plain), (*ours, bench.covered)]
        shuffled, figures = random.Random(1), ({}, {})
        for number in range(rounds + 1):  # the first warms both
            for kind in shuffled.sample(range(2), 2):
                for name, figure in redis_figures(*sides[kind], count).items():
                    if number:
                        figures[kind].setdefault(name, []).append(figure)
    for name in figures[0]:
        without, with_us = (side[name] for side in figures)
        ratios = [o / b for b, o in zip(without, with_us)]
        error = 1.25 * statistics.stdev(ratios) / len(ratios) ** 0.5  # of a median, roughly
        # Time over time: 1/0.98 at most is what a throughput of 0.98 at least is.
        bench.row(f"redis-benchmark, {name}, ours / bare", statistics.median(ratios),
                  None if name == "CPU time" else 1 / 0.98,
                  f"{statistics.median(with_us) * 1e6:.2f} us over {statistics.median(without) * 1e6:.2f} us, "
                  f"+- {error:.4f}", spread=[min(ratios), max(ratios)])
