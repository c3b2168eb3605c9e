"""A TCP server that keeps what arrives, byte for byte, and answers whole requests from a script.

    with Recorder(lambda request: [b"HTTP/1.1 200 OK..."]) as recorder:
        recorder.port
        recorder.connections[0].received, .sent, .requests, .ended

A request is what provider.read_head and read_body make of the bytes; each answer is a list of pieces, one send each.
"""

import io
import socket
import threading

from listeners import accepting
from provider import LOOPBACK, Gone, Request, model_of, read_body, read_head, wait_until, wants_close

PATH = "/v1/chat/completions"


class Tee(io.RawIOBase):
    """Reads a connection and keeps all of it."""

    def __init__(self, connection, kept):
        self.connection, self.kept = connection, kept

    def readable(self):
        return True

    def readinto(self, buffer):
        count = self.connection.recv_into(buffer)
        self.kept += buffer[:count]
        return count


class Connection:
    def __init__(self, plain):
        self.plain = plain
        self.received, self.sent = bytearray(), bytearray()
        self.requests = []  # whole ones
        self.ended = threading.Event()  # nothing more comes in or goes out


class Recorder:
    def __init__(self, answer):
        self.answer = answer
        self.connections = []
        self.acceptor = accepting(self._take, backlog=512)
        self.port = self.acceptor.port

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.acceptor.close()
        for connection in self.connections:
            try:
                connection.plain.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def key(self, model=None):
        return f"{LOOPBACK}:{self.port}" + (f"/{model}" if model else "")

    def take(self):
        """The connections so far, each ended; the next ones are counted from none."""
        taken, self.connections = self.connections, []
        for connection in taken:
            assert connection.ended.wait(15), "a connection that its client did not close"
        return taken

    def requests(self):
        return [request for connection in self.connections for request in connection.requests]

    def wait_received(self, count):
        wait_until(lambda: self.connections and len(self.connections[0].received) >= count, what=f"{count} bytes")

    def _take(self, plain):
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = Connection(plain)
        self.connections.append(connection)
        threading.Thread(target=self._serve, args=(connection, len(self.connections)), daemon=True).start()

    def _serve(self, connection, number):
        stream = io.BufferedReader(Tee(connection.plain, connection.received), 1 << 18)
        try:
            while self._exchange(connection, stream, number):
                pass
        except (Gone, OSError, ValueError):
            pass
        finally:
            connection.plain.close()
            connection.ended.set()

    def _exchange(self, connection, stream, number):
        head = read_head(stream)
        if head is None:
            return False
        method, target, headers = head
        if headers.get("expect", "").lower() == "100-continue":
            self._send(connection, b"HTTP/1.1 100 Continue\r\n\r\n")
        body = read_body(stream, headers)
        request = Request(0, number, method, target, headers, body, model_of(body))
        connection.requests.append(request)
        for piece in self.answer(request):
            self._send(connection, piece)
        return not wants_close(head)

    def _send(self, connection, piece):
        connection.sent += piece
        connection.plain.sendall(piece)
