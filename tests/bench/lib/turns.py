"""Clients that post on demand, and the taking of turns between them: what is compared is measured within one run."""
import dataclasses
import random
import select
import statistics
import subprocess

from lib.measure import DEADLINE, HELPERS, PATH, PROGRAMS, PYTHON, Void

REFUSED = 1  # the "status" of calls whose connect was refused


@dataclasses.dataclass
class Side:
    """One of the things compared: who posts where, and what must come of it, or the measurement is void."""
    program: str  # bench_client (libcurl), bench_sock (its own sockets), bench_tls (libssl), post_tls.py (Python's ssl)
    port: int
    environment: dict
    path: str = PATH
    fresh: bool = False  # a new connection for each call
    status: int = 200
    marked: bool = False  # the answers are ours
    counted: bool = True  # are the connections to be as `fresh` says? What is refused has none, or ends it
    tls: bool = False
    words: tuple = ()  # further ones of the client's


class Client:
    """A program that stays alive and makes blocks of calls."""

    def __init__(self, side):
        self.side = side
        where = ([f"http{'s' if side.tls else ''}://127.0.0.1:{side.port}{side.path}"]
                 if side.program == "bench_client" else [str(side.port), side.path])
        program = [PYTHON, "-u", HELPERS / side.program] if side.program.endswith(".py") else [PROGRAMS / side.program]
        self.process = subprocess.Popen([*program, *where, *(["fresh"] if side.fresh else []), *side.words],
                                        env=side.environment, text=True, bufsize=1, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def block(self, count, first=False):
        """ns per call of `count` calls, all of which ended as they must. The first block opens the connection."""
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        if not select.select([self.process.stdout], [], [], DEADLINE)[0]:
            raise Void("a client did not answer")
        took, got, marks, connects = map(int, self.process.stdout.readline().split())
        if got != self.side.status or marks != (count if self.side.marked else 0) or \
                (self.side.counted and connects != (count if self.side.fresh else int(first))):
            raise Void(f"{self.side.program}: {count} calls: status {got}, marked {marks}, connections {connects}")
        return took / count

    def close(self):
        self.process.stdin.close()
        self.process.wait(DEADLINE)
        self.process.stdout.close()


@dataclasses.dataclass
class Turns:
    """ns per call: sessions[session][side][round]."""
    sessions: list
    calls: int  # that each side made

    def ns(self, side):
        return statistics.median(statistics.median(session[side]) for session in self.sessions)

    def ratios(self, side, over=0):
        """Of each session, the median of its rounds' ratios: a shared machine drifts by more than we cost."""
        return [statistics.median(s / o for s, o in zip(session[side], session[over])) for session in self.sessions]

    def ratio(self, side, over=0):
        return statistics.median(self.ratios(side, over))

    def spread(self, side, over=0):
        ratios = self.ratios(side, over)
        return [min(ratios), max(ratios)]


def take_turns(sides, sessions, rounds, count, warm=200):
    """Fresh processes per session (layout of memory is luck), blocks of calls in turns within one."""
    shuffled, result = random.Random(1), []
    for _ in range(sessions):
        clients, times = [], [[] for _ in sides]
        try:
            for side in sides:
                clients.append(Client(side))
                clients[-1].block(warm, first=True)
            for _ in range(rounds):
                for number in shuffled.sample(range(len(sides)), len(sides)):  # none is always behind the same other
                    times[number].append(clients[number].block(count))
        finally:
            for client in clients:
                client.close()
        result.append(times)
    return Turns(result, sessions * (warm + rounds * count))
