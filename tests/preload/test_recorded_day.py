"""Issue 5: a day of a provider, in seconds: the same traffic of several processes, with the breaker and without.

Each hour of it is so many calls of each worker at the same pace, told when the hour begins; what fails, fails slowly.
"""

import concurrent.futures
import dataclasses
import json
import subprocess
import time

from provider import Answer, Provider, wait_until
from support import PYTHON

WORKERS, CALLS, PACE = 5, 24, 0.06
THRESHOLD, OPEN_SECONDS = 5, 0.4
DEAD = Answer(503, delay=0.1)
# name, what the provider does in it (None: nobody listens), whether it is dead
DAY = [("healthy", Answer(200), False),
       ("slow", Answer(200, delay=0.1), False),
       ("503", DEAD, True),
       ("no connection", None, True),
       ("503 again", DEAD, True),
       ("429", Answer(429, {"Retry-After": "1"}), False)]

# A line in: how many calls, at which pace. A line out: [status, curl's code, is it the breaker's answer?, seconds] of each.
WORKER = """
import io, json, pycurl, sys, time

def call():
    got, handle, begin = io.BytesIO(), pycurl.Curl(), time.monotonic()
    for option, value in ((pycurl.URL, sys.argv[1]), (pycurl.POSTFIELDS, '{"model":"m"}'), (pycurl.TIMEOUT, 20),
                          (pycurl.WRITEFUNCTION, got.write), (pycurl.NOSIGNAL, 1)):
        handle.setopt(option, value)
    code = 0
    try:
        handle.perform()
    except pycurl.error as error:
        code = error.args[0]
    return [handle.getinfo(pycurl.RESPONSE_CODE), code, b"libbreaker" in got.getvalue(), time.monotonic() - begin]

for line in sys.stdin:
    number, pace = json.loads(line)
    begin, calls = time.monotonic(), []
    for i in range(number):
        time.sleep(max(0, begin + i * pace - time.monotonic()))
        calls.append(call())
    print(json.dumps(calls), flush=True)
"""


@dataclasses.dataclass
class Hour:
    name: str
    dead: bool
    seconds: float
    arrived: int  # whole requests, as the provider counts them
    calls: list

    @property
    def reached(self):
        """Calls that went to the provider, whether it was there or not."""
        return sum(not ours for _, _, ours, _ in self.calls)

    @property
    def failed(self):
        return sum(status != 200 for status, _, _, _ in self.calls)

    @property
    def lost(self):
        """Seconds that callers waited for nothing."""
        return sum(seconds for status, _, _, seconds in self.calls if status != 200)


class Day:
    def __init__(self, breaker_env, covered):
        self.breaker_env, self.covered, self.hours = breaker_env, covered, []

    def workers(self, url):
        made = [self.breaker_env.start(PYTHON, "-c", WORKER, url, bare=not self.covered, stdin=subprocess.PIPE)
                for _ in range(WORKERS)]
        self.tell(made, 0)
        return made

    @staticmethod
    def tell(workers, number):
        for worker in workers:
            worker.stdin.write(json.dumps([number, PACE]).encode() + b"\n")
            worker.stdin.flush()
        return [call for worker in workers for call in json.loads(worker.stdout.readline())]

    def hour(self, workers, provider, name, answer, dead):
        provider.clear()
        if answer is None:
            provider.refuse()
        else:
            provider.answer(answer)
            provider.listen()
        begin = time.monotonic()
        calls = self.tell(workers, CALLS)
        self.hours.append(Hour(name, dead, time.monotonic() - begin, provider.count(), calls))

    def run(self):
        with Provider() as provider:
            workers = self.workers(provider.url())
            for hour in DAY:
                self.hour(workers, provider, *hour)
            provider.answer(Answer(200))
            wait_until(lambda: self.tell(workers[:1], 1)[0][0] == 200, what="the recovery")
            self.hour(workers, provider, "recovered", Answer(200), False)
            self.keys = provider.key("m"), provider.key()
        return self

    def of(self, name):
        return next(hour for hour in self.hours if hour.name == name)

    def total(self, what):
        return sum(getattr(hour, what) for hour in self.hours if hour.dead)


def told(with_it, without):
    lines = [f"{WORKERS} processes, {WORKERS * CALLS} calls an hour; with the breaker / without",
             f"{'':14}{'went to the provider':>24}{'failed':>14}{'seconds lost':>18}"]
    for ours, plain in zip(with_it.hours, without.hours):
        reached, failed = f"{ours.reached} / {plain.reached}", f"{ours.failed} / {plain.failed}"
        lines.append(f"{ours.name:14}{reached:>24}{failed:>14}{f'{ours.lost:.1f} / {plain.lost:.1f}':>18}")
    return "\n".join(lines)


def test_a_recorded_day(breaker_env):
    breaker_env.configure(failure_threshold=THRESHOLD, open_seconds=OPEN_SECONDS, probe_lease=2)
    days = Day(breaker_env, True), Day(breaker_env, False)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        with_it, without = pool.map(Day.run, days)
    print("\n" + told(with_it, without))

    # The same traffic, and a provider that is as it is.
    for plain in without.hours:
        assert plain.reached == WORKERS * CALLS and not any(ours for _, _, ours, _ in plain.calls)
        assert plain.failed == (0 if plain.name in ("healthy", "slow", "recovered") else WORKERS * CALLS)
    # Where it is well, nobody is kept from it.
    for name in ("healthy", "slow", "recovered"):
        assert with_it.of(name).reached == WORKERS * CALLS and with_it.of(name).failed == 0
    # Where it is dead: the threshold, what was in flight then, and a probe per open period.
    opened = {key: found["opened"] for key, found in breaker_env.breakers().items()}
    periods = sum(opened[key] for key in with_it.keys)
    seconds = with_it.total("seconds")
    assert periods <= 2 * (seconds / OPEN_SECONDS + 1), "an open period is as long as it says"
    for hour in with_it.hours:
        if hour.dead:
            probes = hour.seconds / OPEN_SECONDS + 1
            assert hour.reached <= THRESHOLD + (WORKERS - 1) + probes, hour.name
            assert hour.arrived == (0 if hour.name == "no connection" else hour.reached)
    assert with_it.total("reached") <= 2 * (THRESHOLD + WORKERS - 1) + periods, "both breakers of a call opened once"
    assert with_it.total("reached") < without.total("reached") / 4
    assert with_it.total("lost") < without.total("lost") / 2
