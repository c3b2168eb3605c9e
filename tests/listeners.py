"""Ports that are held, and threads that accept; nothing else of the tests accepts (test_listeners.py).

A port that was free a moment ago may be another worker's now. One that is bound here stays ours: nobody else gets it, and
connects are refused until somebody who knows its number binds it too, by SO_REUSEADDR, and listens.

A descriptor that is closed while a thread waits in accept() on it is a trap: the thread goes on by the number when the
process is stopped and continued (by a debugger, a freezer of containers), and gets what the next test's listener of the
same number was sent. So the listener is shut down, which wakes the thread, and closed once the thread is gone.
"""

import contextlib
import socket
import threading

LONGEST = 15  # s, for what `take` still does


class Acceptor:
    """Hands each connection of a listening socket, which is its own from now on, to `take`, in one thread."""

    def __init__(self, listener, take):
        self._listener, self._take = listener, take
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def port(self):
        return self._listener.getsockname()[1]

    def _run(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with contextlib.suppress(OSError):  # a client that went away
                self._take(connection)

    def close(self):
        """From now on connects are refused."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(LONGEST)
        assert not self._thread.is_alive(), f"a connection was not done with within {LONGEST} s"
        self._listener.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def bound(host="127.0.0.1", port=0):
    """A socket that holds a port of that address, by the kernel's choice or the caller's who holds it already."""
    held = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if held.family == socket.AF_INET6:
        held.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    try:
        held.bind((host, port))
    except OSError:
        held.close()
        raise
    return held


def accepting(take, **options):
    """An Acceptor on a port of the kernel's at 127.0.0.1; options as of socket.create_server."""
    return Acceptor(socket.create_server(("127.0.0.1", 0), **options), take)


def serving(serve, **options):
    """As accepting(), but each connection has a thread of its own, which serve(connection) ends."""
    return accepting(lambda connection: threading.Thread(target=serve, args=(connection,), daemon=True).start(), **options)
