"""Time per call as there are more keys, more processes, longer bodies: curves, each over its first point."""
import statistics

from lib.measure import Void
from lib.servers import swallower
from lib.turns import Side, take_turns

KEYS = (1, 4, 16, 64, 256, 512, 1024)  # with 768 two of them find no place every so often, by the table's seed
MOST_KEYS = 768  # three quarters of the table: what comes then passes uncounted
PROCESSES = (1, 2, 4, 16, 64)
BODIES = {"1 KB": 1 << 10, "16 KB": 1 << 14, "256 KB": 1 << 18, "1 MB": 1 << 20, "4 MB": 1 << 22, "20 MB": 20 << 20}


def rounds_of(bench, kind, numbers, count_of):
    """{number: [ns of each round]} of bench_growth, each run with a table of its own."""
    times = {number: [] for number in numbers}
    for turn in range(3 if bench.quick else 7):
        for number in numbers if turn % 2 else reversed(numbers):
            table, count = bench.directory / f"growth-{kind}.table", count_of(number)
            table.unlink(missing_ok=True)
            times[number].append(float(bench.program("bench_growth", kind, number, count, table=table)))
            must_have_counted(kind, number, count, bench.breakers(table))
    return times


def must_have_counted(kind, number, count, breakers):
    models = [one["calls"]["success"] for key, one in breakers.items() if "/" in key]
    wanted = min(number, MOST_KEYS - 1) if kind == "keys" else 1
    made = number + count if kind == "keys" else number * (count + 100)
    if len(models) != wanted or (number < MOST_KEYS and sum(models) != made):
        raise Void(f"{made} calls of {number} {kind}, the table has {len(models)} models and {sum(models)} successes")


def curve(bench, name, unit, times):
    first = min(times)
    for number, ns in times.items():
        ratios = [a / b for a, b in zip(ns, times[first])]
        bench.row(f"{name}: {number} {unit} / {first}", statistics.median(ratios), None,
                  f"{statistics.median(ns):.0f} ns", spread=[min(ratios), max(ratios)], group=f"{name}, ns")


def growth_keys(bench):
    count = 20_000 if bench.quick else 200_000
    curve(bench, "a whole call by the number of models", "models", rounds_of(bench, "keys", KEYS, lambda _: count))


def growth_processes(bench):
    """All of one model, at once."""
    count = 200_000 if bench.quick else 2_000_000
    curve(bench, "CPU of a whole call by the number of processes", "processes",
          rounds_of(bench, "processes", PROCESSES, lambda number: count // number))


def growth_bodies(bench):
    with swallower() as port:
        made = 0
        for name, size in BODIES.items():
            turns = take_turns([Side("bench_client", port, environment, words=(f"body={size}",))
                                for environment in (bench.plain, bench.covered)],
                               2 if bench.quick else 5, 5 if bench.quick else 30, max(1, min(100, (4 << 20) // size)),
                               warm=3)
            made += turns.calls
            bench.must_have_counted(f"127.0.0.1:{port}/bench", made)
            bench.row(f"POST by libcurl of {name}, ours / bare", turns.ratio(1), None,
                      f"{(turns.ratio(1) - 1) * turns.ns(0) / 1e3:+.0f} us on {turns.ns(0) / 1e3:.0f} us",
                      spread=turns.spread(1))
