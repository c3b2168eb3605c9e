"""How soon all workers know that their provider hangs: with one table for all, and with one for each of them.

Each worker posts again and again by libcurl, with a time-out of its own. The provider has answered all of them once; from
then on it takes requests and says nothing. A worker is protected when it gets our 503. All numbers of workers, with either
kind of table, go through it at the same time: what they do is to wait.
"""
import asyncio
import contextlib
import statistics
import time

from lib.measure import PATH, PROGRAMS, Void
from lib.servers import ANSWER

WORKERS = (1, 4, 16, 64)
TIMEOUT_MS = 2000
THRESHOLD = 5  # failure_threshold
LIMIT = 40  # seconds for a whole round


class Provider:
    """Answers until `hangs`; counts what it is asked since."""

    def __init__(self):
        self.hangs, self.asked = False, 0

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0, backlog=256)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self.server.close()

    async def serve(self, reader, writer):
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError), contextlib.closing(writer):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                await reader.readexactly(int(head.partition(b"content-length:")[2].split(b"\r\n")[0]))
                if self.hangs:
                    self.asked += 1
                    await reader.read(1)  # until the client has had enough
                    return
                writer.write(ANSWER)


class Worker:
    @classmethod
    @contextlib.asynccontextmanager
    async def running(cls, port, environment):
        self = cls()
        self.process = await asyncio.create_subprocess_exec(
            PROGRAMS / "bench_client", f"http://127.0.0.1:{port}{PATH}", f"timeout={TIMEOUT_MS}", env=environment,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
        try:
            yield self
        finally:
            self.process.stdin.close()
            await self.process.wait()

    async def post(self):
        """The status, and whether the answer is ours."""
        self.process.stdin.write(b"1\n")
        _, status, marked, _ = map(int, (await self.process.stdout.readline()).split())
        return status, bool(marked)

    async def until_protected(self):
        """When that was."""
        while True:
            status, marked = await self.post()
            if marked:
                return time.monotonic()
            if status != 0:
                raise Void(f"a provider that hangs has answered {status}")


async def outage(bench, number, shared, directory):
    """(requests that hit it, seconds until the last of the workers was protected)"""
    async with Provider() as provider, contextlib.AsyncExitStack() as stack:
        environments = [{**bench.covered, "BREAKER_TIMEOUT_AFTER": "1", "BREAKER_FAILURE_THRESHOLD": str(THRESHOLD),
                         "BREAKER_TABLE": str(directory / ("table" if shared else f"table-{n}"))} for n in range(number)]
        workers = [await stack.enter_async_context(Worker.running(provider.port, environment))
                   for environment in environments]
        for status, _ in await asyncio.gather(*(worker.post() for worker in workers)):
            if status != 200:
                raise Void(f"a healthy provider has answered {status}")
        provider.hangs = True
        begun = time.monotonic()
        ends = await asyncio.gather(*(worker.until_protected() for worker in workers))
        return provider.asked, max(ends) - begun


async def outages(bench, directory):
    """{(workers, shared): what `outage` tells}"""
    kinds = [(number, shared) for number in WORKERS for shared in (True, False)]
    homes = [directory / f"{number}-{'shared' if shared else 'private'}" for number, shared in kinds]
    for home in homes:
        home.mkdir(parents=True)
    told = await asyncio.wait_for(asyncio.gather(*(outage(bench, *kind, home) for kind, home in zip(kinds, homes))), LIMIT)
    for (number, shared), home in zip(kinds, homes):
        for table in home.iterdir():
            success = sum(one["calls"]["success"] for key, one in bench.breakers(table).items() if "/" in key)
            if success != (number if shared else 1):
                raise Void(f"{number} workers, the table says {success} successes")
            table.unlink()
    return dict(zip(kinds, told))


def detection(bench):
    rounds = []
    for number in range(1 if bench.quick else 5):
        try:
            rounds.append(asyncio.run(outages(bench, bench.directory / f"detection-{number}")))
        except asyncio.TimeoutError:
            raise Void(f"not all workers were protected within {LIMIT} s") from None

    def median(kind, place):
        return statistics.median(told[kind][place] for told in rounds)

    for number in WORKERS:
        ours, theirs = (number, True), (number, False)
        # Those that make the breaker open, and what the others have under way by then.
        most = max(told[ours][0] for told in rounds) / (THRESHOLD - 1 + number)
        bench.row(f"requests into a hang, processes: {number} / {THRESHOLD - 1} + {number}", most, 1,
                  f"{median(ours, 0):.0f}; with a table for each {median(theirs, 0):.0f}")
        took, alone = median(ours, 1), median(theirs, 1)
        bench.row(f"seconds until the last knows, processes: {number} / with a table for each", took / alone, None,
                  f"{took:.2f} s over {alone:.2f} s")
    many, one = median((WORKERS[-1], True), 1), median((1, True), 1)
    bench.row(f"seconds until the last knows, processes: {WORKERS[-1]} / 1", many / one, 1, f"{many:.2f} s over {one:.2f} s")
