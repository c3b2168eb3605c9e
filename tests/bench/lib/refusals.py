"""A call that is refused, as the caller waits for it: ours, nginx's with its upstream marked down, a refused connect."""
from lib.measure import PATH, Void
from lib.servers import PROVIDER, certificate, nginx, nobody
from lib.turns import REFUSED, Side, take_turns

GOAL = 0.75


def effort(bench, slow=False):
    """Sessions, rounds and calls in a block; `slow`: each call has a handshake."""
    return (3, 20, 5 if slow else 50) if bench.quick else (5, 100, 10 if slow else 100)


def refused(bench):
    """The provider would answer 200 on the path of ours: what is refused there is refused by us alone."""
    with nginx(bench.directory, "refusing", PROVIDER) as port, nobody() as closed:
        bench.command("force", "open", "--create", f"127.0.0.1:{port}/bench")
        answers(bench, "bench_client", port, closed, "libcurl, kept connection", GOAL)
        # Ours says Connection: close, so a program with its own sockets makes a new one for each call.
        answers(bench, "bench_sock", port, closed, "send and recv, new connections", GOAL, fresh=True)
        answers(bench, "bench_sock", port, closed, "send and recv, new against a kept connection", None)
    with nobody() as closed:
        connects(bench, closed)


def refused_tls(bench):
    trust = certificate(bench.directory)
    with nginx(bench.directory, "refusing-tls", PROVIDER, tls=True) as port, nobody() as closed:
        for host in ("127.0.0.1", "localhost"):
            bench.command("force", "open", "--create", f"{host}:{port}/bench")
        answers(bench, "bench_client", port, closed, "libcurl over TLS, kept connection", GOAL, tls=True, trust=trust)
        answers(bench, "bench_tls", port, closed, "SSL_write and SSL_read, new connections", None, fresh=True, tls=True,
                trust=trust)


def answers(bench, program, port, closed, name, goal, fresh=False, tls=False, trust=()):
    plain, covered = ({**environment, **dict(trust)} for environment in (bench.plain, bench.covered))
    own = program != "bench_client"  # it sees the connection end; libcurl makes none
    turns = take_turns([Side(program, port, plain, path=f"/down{PATH}", status=503, fresh=fresh, tls=tls),
                        Side(program, port, covered, status=503, marked=True, fresh=own, counted=own, tls=tls),
                        Side(program, closed, plain, status=REFUSED, counted=False, tls=tls)],
                       *effort(bench, slow=fresh and tls))
    counted = [one["calls"]["refused"] for key, one in bench.breakers().items() if key.endswith(f":{port}/bench")]
    if max(counted) < turns.calls:
        raise Void(f"{turns.calls} calls refused, the table says {counted}")
    bench.row(f"{name}: our 503 / nginx's", turns.ratio(1), goal, f"{turns.ns(1) / 1e3:.1f} us over "
              f"{turns.ns(0) / 1e3:.1f} us", spread=turns.spread(1))
    if not tls and (fresh or not own):
        bench.row(f"{name}: our 503 / a refused connect", turns.ratio(1, over=2), None,
                  f"{turns.ns(1) / 1e3:.1f} us over {turns.ns(2) / 1e3:.1f} us", spread=turns.spread(1, over=2))


def connects(bench, port):
    """The host's own breaker is open: the connect itself is refused, by us or by the kernel."""
    key = f"127.0.0.1:{port}"
    bench.command("force", "open", "--create", key)
    listed = {**bench.covered, "BREAKER_MATCH": "all"}
    turns = take_turns([Side("bench_sock", port, environment, status=REFUSED, counted=False)
                        for environment in (bench.plain, listed)], *effort(bench))
    if bench.breakers()[key]["calls"]["refused"] < turns.calls:
        raise Void(f"{turns.calls} connects made, the table says {bench.breakers()[key]}")
    bench.row("connect while the host's breaker is open: refused by us / by the kernel", turns.ratio(1), None,
              f"{turns.ns(1) / 1e3:.2f} us over {turns.ns(0) / 1e3:.2f} us", spread=turns.spread(1))
