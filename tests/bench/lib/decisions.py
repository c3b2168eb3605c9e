"""What the breaker's own work takes, by programs that print it: deciding, attaching, finding the model, watching."""
import re
import statistics

from lib.measure import Void
from lib.servers import redis_server


def pair(bench):
    rounds = [list(map(float, line.split()))
              for line in bench.program("bench_pair", 101 if bench.quick else 501).splitlines()]
    pair_ns, cas, whole, clock = (statistics.median(r[i] for r in rounds) for i in range(4))
    ratios = [r[0] / r[1] for r in rounds]
    bench.row("admit + settle of a healthy call / one uncontended CAS", statistics.median(ratios), 20,
              f"{pair_ns:.0f} ns over {cas:.1f} ns; with open, body and the clock {whole:.0f} ns (a clock {clock:.0f})",
              spread=statistics.quantiles(ratios, n=10)[::8])


# Each held and given back; the mutex is process-shared and robust, the semaphore one of System V with SEM_UNDO.
PEERS = {"mutex": "a robust mutex", "flock": "flock", "semaphore": "a semaphore", "redis": "Redis GET, unix socket"}


def decision(bench):
    """The same pair, a failure, a refusal and what others share state by, in turns within one process."""
    table = bench.directory / "decision.table"
    options = ["--unixsocket", bench.directory / "redis.sock"]
    with redis_server(bench.directory, "unix", bench.plain, *options):
        out = bench.program("bench_decision", 5 if bench.quick else 15, bench.directory, table=table)
    times = {}
    for name, ns in map(str.split, out.splitlines()):
        times.setdefault(name, []).append(float(ns))
    must_have_decided(bench.breakers(table))

    def row(text, over, goal, kind, other):
        ratios = [a / b for a, b in zip(times[kind], times[other])]
        a, b = statistics.median(times[kind]), statistics.median(times[other])
        bench.row(f"{text} / {over}", statistics.median(ratios), goal, f"{a:.0f} ns over {b:.{0 if b >= 10 else 1}f} ns",
                  spread=[min(ratios), max(ratios)])

    row("settle of a first failure", "one uncontended CAS", 15, "failure", "cas")
    row("admit of a refused call, counted", "one uncontended CAS", None, "refusal", "cas")
    for peer, name in PEERS.items():
        row("admit + settle", name, 1 / 1000 if peer == "redis" else None, "pair", peer)
    row("admit + settle, contended by a second process", "alone", None, "contended_pair", "pair")
    for peer in ("mutex", "flock", "semaphore"):
        row("admit + settle, contended", f"{PEERS[peer]}, contended", None, "contended_pair", f"contended_{peer}")


def must_have_decided(breakers):
    calls = {key: one["calls"] for key, one in breakers.items()}
    failing = [calls.get(f"api.openai.com/failing-{n}") for n in range(8)]
    down, healthy = calls.get("api.openai.com/down"), calls.get("api.openai.com/gpt-4o-mini")
    if not all(failing) or not down or not healthy or min(one["failure"] for one in failing) < 1000 or \
            down["refused"] < 1000 or healthy["success"] < 100_000:
        raise Void(f"the table says {calls}")


def attach(bench):
    ratios, text = [], ""
    for _ in range(1 if bench.quick else 5):
        text = bench.program("bench_attach")
        bare, ours = map(float, re.search(r"bare (\d+) ns, ours (\d+) ns", text).groups())
        ratios.append(ours / bare)
    bench.row("attach / open + fstat + pread + mmap + close", statistics.median(ratios), 1.3,
              f"{ours / 1e3:.1f} us over {bare / 1e3:.1f} us", spread=[min(ratios), max(ratios)])


def scan(bench):
    text = bench.program("bench_model_scan")
    found = re.findall(r"model scan: (.*?), \d+ bytes: ([\d.]+) us, memchr ([\d.]+) us, jsmn ([\d.]+) us.*goal (\d+)",
                       text)
    if len(found) != 3:
        raise Void(f"bench_model_scan said: {text}")
    for kind, ours, memchr, jsmn, goal in found:
        bench.row(f"model scan of 1 MB of {kind} / memchr", float(ours) / float(memchr), float(goal),
                  f"{ours} us over {memchr} us")
        bench.row(f"model scan of 1 MB of {kind} / jsmn", float(ours) / float(jsmn), None, f"{ours} us over {jsmn} us")


def stream(bench):
    text = bench.program("bench_stream")
    found = re.findall(r"stream: (.*?), \d+ bytes in events of \d+: ([\d.]+) us, memchr ([\d.]+) us.*goal (\d+)", text)
    if len(found) != 3:
        raise Void(f"bench_stream said: {text}")
    for kind, ours, memchr, goal in found:
        bench.row(f"watching 1 MB of {kind}'s deltas / memchr", float(ours) / float(memchr), float(goal),
                  f"{ours} us over {memchr} us")
