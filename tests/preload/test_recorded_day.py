"""Issue 5, item 3: a day of a provider, in seconds: the same calls of several processes, with the breaker and without.

Each hour of it is so many calls of each worker at the same pace, told when the hour begins; what fails, fails slowly.
Most workers are one process with pycurl, one starts the curl tool for each call.
"""

import concurrent.futures
import dataclasses
import json
import subprocess
import time

from passing import LET_PASS
from provider import Answer, Provider, wait_until
from support import PYTHON

WORKERS, CALLS, PACE, PATIENCE = 5, 24, 0.06, 20
THRESHOLD, OPEN_SECONDS = 5, 0.4
DEAD = Answer(503, delay=0.1)
OVERLOADED = Answer(200, {"Content-Type": "text/event-stream"},
                    b'event: message_start\ndata: {"type":"message_start"}\n\n'
                    b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"529"}}\n\n',
                    chunked=True, delay=0.1)


@dataclasses.dataclass
class Plan:
    """An hour to come: what the provider does in it (None: nobody listens), and how long a caller waits."""

    name: str
    answer: Answer | None
    good: bool = False
    dead: bool = False
    calls: int = CALLS
    patience: float = PATIENCE


DAY = [Plan("healthy", Answer(200), good=True),
       Plan("slow", Answer(200, delay=0.1), good=True),
       Plan("hangs", Answer(hang=True), dead=True, calls=8, patience=0.6),
       Plan("529 in a stream", OVERLOADED, dead=True),
       Plan("503", DEAD, dead=True),
       Plan("no connection", None, dead=True),
       Plan("503 again", DEAD, dead=True),
       Plan("429", Answer(429, {"Retry-After": "2"}))]
RECOVERED = Plan("recovered", Answer(200), good=True)

# A line in: how many calls, at which pace, how long to wait for one. A line out: [good?, is it the breaker's answer?,
# seconds] of each.
WORKER = LET_PASS + """
import io, json, pycurl, subprocess, sys, time

def by_pycurl(url, body, patience):
    got, handle, status = io.BytesIO(), pycurl.Curl(), 0
    for option, value in ((pycurl.URL, url), (pycurl.POSTFIELDS, body), (pycurl.TIMEOUT_MS, int(1000 * patience)),
                          (pycurl.WRITEFUNCTION, got.write), (pycurl.NOSIGNAL, 1)):
        handle.setopt(option, value)
    try:
        handle.perform()
        status = handle.getinfo(pycurl.RESPONSE_CODE)
    except pycurl.error:
        pass
    return status, got.getvalue()

def by_the_tool(url, body, patience):
    command = ["curl", "-s", "-w", "%{http_code}", "-m", str(patience), "-d", body, url]
    done = subprocess.run(command, capture_output=True)
    return 0 if done.returncode else int(done.stdout[-3:]), done.stdout[:-3]

perform = by_the_tool if sys.argv[2] == "tool" else by_pycurl
for line in sys.stdin:
    number, pace, patience = json.loads(line)
    begin, calls = time.monotonic(), []
    for i in range(number):
        let_pass(begin + i * pace - time.monotonic())
        start = time.monotonic()
        status, answer = perform(sys.argv[1], '{"model":"m"}', patience)
        calls.append([status == 200 and b"error" not in answer, b"libbreaker" in answer, time.monotonic() - start])
    print(json.dumps(calls), flush=True)
"""


@dataclasses.dataclass
class Hour:
    plan: Plan
    seconds: float
    arrived: int  # whole requests, as the provider counts them
    calls: list

    @property
    def reached(self):
        """Calls that went to the provider, whether it was there or not."""
        return sum(not ours for _, ours, _ in self.calls)

    @property
    def failed(self):
        return sum(not good for good, _, _ in self.calls)

    @property
    def lost(self):
        """Seconds that callers waited for nothing."""
        return sum(seconds for good, _, seconds in self.calls if not good)


class Day:
    def __init__(self, breaker_env, covered):
        self.breaker_env, self.covered, self.hours = breaker_env, covered, []

    def workers(self, url):
        made = [self.breaker_env.start(PYTHON, "-c", WORKER, url, "tool" if i == 0 else "pycurl", bare=not self.covered,
                                       stdin=subprocess.PIPE) for i in range(WORKERS)]
        self.tell(made, 0, PATIENCE)
        return made

    @staticmethod
    def tell(workers, number, patience):
        for worker in workers:
            worker.stdin.write(json.dumps([number, PACE, patience]).encode() + b"\n")
            worker.stdin.flush()
        return [call for worker in workers for call in json.loads(worker.stdout.readline())]

    def hour(self, workers, provider, plan):
        provider.clear()
        if plan.answer is None:
            provider.refuse()
        else:
            provider.answer(plan.answer)
            provider.listen()
        begin = time.monotonic()
        calls = self.tell(workers, plan.calls, plan.patience)
        self.hours.append(Hour(plan, time.monotonic() - begin, provider.count(), calls))

    def run(self):
        with Provider() as provider:
            workers = self.workers(provider.url())
            for plan in DAY:
                self.hour(workers, provider, plan)
            provider.answer(RECOVERED.answer)
            wait_until(lambda: self.tell(workers[:1], 1, PATIENCE)[0][0], what="the recovery")
            self.hour(workers, provider, RECOVERED)
            self.keys = provider.key("m"), provider.key()
        return self

    def total(self, what):
        return sum(getattr(hour, what) for hour in self.hours if hour.plan.dead)


def told(with_it, without):
    lines = [f"{WORKERS} processes, {WORKERS * CALLS} calls an hour; with the breaker / without",
             f"{'':16}{'went to the provider':>24}{'failed':>14}{'seconds lost':>18}"]
    for ours, plain in zip(with_it.hours, without.hours):
        reached, failed = f"{ours.reached} / {plain.reached}", f"{ours.failed} / {plain.failed}"
        lines.append(f"{ours.plan.name:16}{reached:>24}{failed:>14}{f'{ours.lost:.1f} / {plain.lost:.1f}':>18}")
    return "\n".join(lines)


def test_a_recorded_day(breaker_env):
    breaker_env.configure(failure_threshold=THRESHOLD, open_seconds=OPEN_SECONDS, probe_lease=2, timeout_after=0.2)
    days = Day(breaker_env, True), Day(breaker_env, False)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        with_it, without = pool.map(Day.run, days)
    print("\n" + told(with_it, without))

    # The same traffic, and a provider that is as it is.
    for plain in without.hours:
        number = WORKERS * plain.plan.calls
        assert plain.reached == number and plain.failed == (0 if plain.plan.good else number), plain.plan.name
    for hour in with_it.hours:
        if hour.plan.good:  # nobody is kept from it
            assert hour.reached == WORKERS * CALLS and hour.failed == 0, hour.plan.name
        elif hour.plan.dead:  # the threshold, what was in flight then, and a probe per open period
            probes = hour.seconds / OPEN_SECONDS + 1
            assert hour.reached <= THRESHOLD + (WORKERS - 1) + probes, hour.plan.name
            assert hour.arrived == (0 if hour.plan.answer is None else hour.reached), hour.plan.name
        else:  # all share a credential, which the first 429 parks
            assert hour.reached <= WORKERS, hour.plan.name
    opened = {key: found["opened"] for key, found in breaker_env.breakers().items()}
    periods = sum(opened[key] for key in with_it.keys)
    seconds = with_it.total("seconds")
    assert periods <= 2 * (seconds / OPEN_SECONDS + 1), "an open period is as long as it says"
    assert with_it.total("reached") <= 2 * (THRESHOLD + WORKERS - 1) + periods, "both breakers of a call opened once"
    assert with_it.total("reached") < without.total("reached") / 4
    assert with_it.total("lost") < without.total("lost") / 2
