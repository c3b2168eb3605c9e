"""What curl/client.c prints, one line per transfer."""

import collections

Line = collections.namedtuple("Line", "model code status received url")


def lines_of(done):
    assert (done.returncode, done.stderr) == (0, b""), done
    lines = [line.split(" ") for line in done.stdout.decode(errors="replace").splitlines()]
    return [Line(f[0], int(f[1]), int(f[2]), int(f[3]), f[4]) for f in lines if len(f) == 5 and f[0] in ("fine", "shut")]


def ends_of(done):
    return [(line.model, line.code, line.status) for line in lines_of(done)]


FINE_SHUT_FINE = [("fine", 0, 200), ("shut", 0, 503), ("fine", 0, 200)]
