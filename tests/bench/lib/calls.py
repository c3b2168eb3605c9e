"""A call that goes on: bare, with the library, and through the hops that one would put in its place."""
import contextlib
import re
import ssl
import urllib.request

from lib.measure import Void
from lib.servers import NGINX_HOP, PROVIDER, certificate, haproxy, nginx, one_core
from lib.turns import Side, take_turns

GOAL = 1.01
OF_A_HOP = 1 / 30


def effort(bench):
    """Sessions, rounds and calls in a block."""
    return (3, 20, 100) if bench.quick else (9, 60, 100)


def ours_over_bare(bench, name, turns, side=1):
    ours, plain = turns.ratio(side), turns.ns(0)
    bench.row(f"{name}, ours / bare", ours, GOAL, f"{(ours - 1) * plain / 1e3:+.2f} us on {plain / 1e3:.1f} us",
              spread=turns.spread(side))


def through_hops(bench, name, turns, hops, ours=1):
    """`hops`: {what: side}. Both against the same direct call of the same run."""
    plain, more = turns.ns(0), turns.ratio(ours) - 1
    for hop, side in hops.items():
        theirs = turns.ratio(side)
        if theirs < 1.05:
            raise Void(f"a hop through {hop} that costs nothing: {theirs}")
        parts = [(mine - 1) / (hop_ratio - 1) for mine, hop_ratio in zip(turns.ratios(ours), turns.ratios(side))]
        bench.row(f"{name}, our overhead / that of a hop through {hop}", more / (theirs - 1),
                  OF_A_HOP if hop == "nginx" else None,
                  f"{more * plain / 1e3:+.2f} us, {(theirs - 1) * plain / 1e3:+.1f} us: through it {theirs:.2f} times bare",
                  spread=[min(parts), max(parts)])


def accepted(port, tls):
    """Connections that the provider has accepted, and requests."""
    context = ssl._create_unverified_context() if tls else None
    with urllib.request.urlopen(f"http{'s' if tls else ''}://127.0.0.1:{port}/accepted", timeout=10,
                                context=context) as answer:
        numbers = re.search(r"requests\s+(\d+) \d+ (\d+)", answer.read().decode())
    return int(numbers.group(1)), int(numbers.group(2))


@contextlib.contextmanager
def kept_connections(port, tls):
    """The hops keep theirs to the provider, or they were hindered."""
    before = accepted(port, tls)
    yield
    made, asked = (after - old for after, old in zip(accepted(port, tls), before))
    if made > asked / 50:
        raise Void(f"the provider saw {made} connections for {asked} requests: the hops keep none")


@contextlib.contextmanager
def provider_and_hops(bench, tls=False):
    """Their ports: the provider's, nginx's, haproxy's."""
    name = "tls" if tls else "clear"
    with nginx(bench.directory, f"provider-{name}", PROVIDER, tls) as port, \
            nginx(bench.directory, f"hop-{name}", NGINX_HOP, tls, upstream=port) as hop, \
            haproxy(bench.directory, port, tls) as proxy:
        yield port, hop, proxy


def libcurl(bench):
    with provider_and_hops(bench) as ports:
        made = direct_and_hops(bench, "bench_client", ports, "libcurl, kept connection", wait=300)
        direct_and_hops(bench, "bench_client", ports, "libcurl, new connections", wait=1000, fresh=True, before=made)


def libcurl_tls(bench):
    trust = certificate(bench.directory)
    with provider_and_hops(bench, tls=True) as ports:
        direct_and_hops(bench, "bench_client", ports, "libcurl over TLS, kept connection", wait=300, tls=True, trust=trust)


def sockets(bench):
    with provider_and_hops(bench) as ports:
        made = direct_and_hops(bench, "bench_sock", ports, "send and recv, kept connection", wait=300)
        direct_and_hops(bench, "bench_sock", ports, "send and recv, new connections", wait=1000, fresh=True, before=made)


def direct_and_hops(bench, program, ports, name, wait, fresh=False, before=0, tls=False, trust=()):
    """Returns how many calls the breaker has counted, `before` among them."""
    port, hop, proxy = ports
    trust = dict(trust)
    waiting = {"LD_PRELOAD": str(bench.preload("waiting_preload")),
               "WAIT_NS" if program == "bench_client" else "WAIT_SEND_NS": str(wait)}
    sides = [Side(program, to, {**environment, **trust}, fresh=fresh, tls=tls) for to, environment in
             ((port, bench.plain), (port, bench.covered), (hop, bench.plain), (proxy, bench.plain),
              (port, {**bench.plain, **waiting}))]
    with contextlib.nullcontext() if fresh else kept_connections(port, tls):
        turns = take_turns(sides, *effort(bench))
    made = before + turns.calls
    bench.must_have_counted(f"127.0.0.1:{port}/bench", made)
    ours_over_bare(bench, name, turns)
    bench.row(f"{name}, a preload that waits {wait} ns / bare", turns.ratio(4), None,
              f"{(turns.ratio(4) - 1) * turns.ns(0) / 1e3:+.2f} us: the scale for the line above", spread=turns.spread(4))
    through_hops(bench, name, turns, {"nginx": 2, "haproxy": 3})
    return made


def tls(bench):
    trust = certificate(bench.directory)
    with one_core(), nginx(bench.directory, "secure", PROVIDER, tls=True) as port:
        made = 0
        for program, name in (("post_tls.py", "Python's http.client over TLS, kept connection"),
                              ("bench_tls", "SSL_write and SSL_read, kept connection")):
            turns = take_turns([Side(program, port, {**environment, **trust})
                                for environment in (bench.plain, bench.covered)], *effort(bench))
            made += turns.calls
            bench.must_have_counted(f"localhost:{port}/bench", made)
            ours_over_bare(bench, name, turns)
