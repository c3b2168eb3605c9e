"""A raw socket on a kept connection: client_raw.py SHAPE PORT SIZE MODEL...

One POST per model in the write shape of that name, SIZE bytes of prompt in each, and its answer read before the next
goes out (all at once with "pipelined"). Leaves `sent` and `received`, all bytes of either direction, in the working
directory; prints the answers' statuses and "end" where the stream ended before its time.
"""

import asyncio
import os
import socket
import sys
import tempfile

SHAPE, PORT, SIZE, MODELS = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
sent, received = bytearray(), bytearray()
told = []


def body_of(model):
    """The model comes last: all before it has gone out when it is known."""
    unit = 'say \\"model\\":\\"no\\" '
    prompt = unit * (SIZE // len(unit) + 1)
    text = '{"messages":[{"role":"user","content":"%s"}],"stream":false,"model":"%s"' % (prompt, model)
    return (text + ("" if SHAPE == "last-byte" else "}")).encode()


def head_of(body, *fields):
    length = [] if "Transfer-Encoding: chunked" in fields else [f"Content-Length: {len(body)}"]
    lines = ["POST /v1/chat/completions HTTP/1.1", f"Host: 127.0.0.1:{PORT}", "Content-Type: application/json",
             "Authorization: Bearer none", *length, *fields]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def cut(data, *places):
    ends = [0, *places, len(data)]
    return [data[a:b] for a, b in zip(ends, ends[1:])]


def inside_the_model(whole):
    """In the middle of the request line, of the head's end, and of the model's name."""
    return cut(whole, 9, whole.index(b"\r\n\r\n") + 2, len(whole) - 4)


# --- reading -----------------------------------------------------------------------------------------


class Answers:
    """Counts answers in the bytes that came in."""

    def __init__(self):
        self.at = self.searched = 0

    def next(self):
        """The status of the next whole answer, or None yet."""
        end = received.find(b"\r\n\r\n", self.at)
        if end < 0:
            return None
        head = bytes(received[self.at : end]).decode("latin-1")
        status = int(head.split(" ", 2)[1])
        fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:])
        if "content-length" in fields:
            stop = end + 4 + int(fields["content-length"])
        elif fields.get("transfer-encoding") == "chunked":
            last = received.find(b"\r\n0\r\n\r\n", max(end + 2, self.searched))
            self.searched = len(received) - 6
            stop = last + 7 if last >= 0 else len(received) + 1
        else:
            stop = end + 4
        if len(received) < stop:
            return None
        self.at = stop
        return status


answers = Answers()


def receive(sock):
    if SHAPE == "peek":
        peeked = sock.recv(64, socket.MSG_PEEK)
        assert sock.recv(16, socket.MSG_PEEK)[:len(peeked)] == peeked[:16]  # more may have come
        data = sock.recv(len(peeked) or 1)
        assert data == peeked, (data, peeked)
    elif SHAPE == "recvmsg":
        buffers = [bytearray(1), bytearray(7), bytearray(4096)]
        count = sock.recvmsg_into(buffers)[0]
        data = b"".join(buffers)[:count]
    elif SHAPE == "readv":
        buffers = [bytearray(1), bytearray(7), bytearray(4096)]
        count = os.readv(sock.fileno(), buffers)
        data = b"".join(buffers)[:count]
    elif SHAPE == "one-byte":
        data = sock.recv(1)
    else:
        data = sock.recv(1 << 18)
    received.extend(data)
    return data


def read_answer(sock):
    while (status := answers.next()) is None:
        if not receive(sock):
            told.append("end")
            return False
    told.append(str(status))
    return True


# --- writing -----------------------------------------------------------------------------------------


def send_all(sock, data):
    sent.extend(data)
    view = memoryview(data)
    while view:
        view = view[sock.send(view):]


def gather(sock, pieces, send):
    sent.extend(b"".join(pieces))
    total, done = sum(map(len, pieces)), send(pieces)
    if done < total:  # the rest, as a program would do
        rest = memoryview(b"".join(pieces))[done:]
        while rest:
            rest = rest[sock.send(rest):]


def whole(sock, model):
    body = body_of(model)
    send_all(sock, head_of(body) + body)


def one_byte(sock, model):
    body = body_of(model)
    data = head_of(body) + body
    sent.extend(data)
    for at in range(len(data)):
        assert sock.send(data[at : at + 1]) == 1


def large_writes(sock, model):
    body = body_of(model)
    send_all(sock, head_of(body))
    for at in range(0, len(body), 65536):
        send_all(sock, body[at : at + 65536])


def splits(sock, model):
    body = body_of(model)
    for piece in inside_the_model(head_of(body) + body):
        send_all(sock, piece)


def second_write(sock, model):
    body = body_of(model)
    send_all(sock, head_of(body))
    send_all(sock, body)


def writev(sock, model):
    body = body_of(model)
    gather(sock, inside_the_model(head_of(body) + body), lambda pieces: os.writev(sock.fileno(), pieces))


def sendmsg(sock, model):
    body = body_of(model)
    gather(sock, inside_the_model(head_of(body) + body), sock.sendmsg)


def written(sock, model):
    body = body_of(model)
    data = memoryview(head_of(body) + body)
    sent.extend(data)
    while data:
        data = data[os.write(sock.fileno(), data):]


def chunked(sock, model):
    body = body_of(model)
    send_all(sock, head_of(body, "Transfer-Encoding: chunked"))
    for piece in cut(body, 1, len(body) // 2, len(body) - 4):
        gather(sock, [b"%x;ext=1\r\n" % len(piece), piece, b"\r\n"], sock.sendmsg)
    send_all(sock, b"0\r\n")
    send_all(sock, b"\r\n")


def sendfile(sock, model):
    body = body_of(model)
    send_all(sock, head_of(body))
    with tempfile.TemporaryFile() as file:
        file.write(b"before" + body)
        file.flush()
        sent.extend(body)
        offset, end = 6, 6 + len(body)
        while offset < end:
            offset += os.sendfile(sock.fileno(), file.fileno(), offset, end - offset)


def expect(sock, model):
    body = body_of(model)
    send_all(sock, head_of(body, "Expect: 100-continue"))
    read_answer(sock)
    send_all(sock, body)


def last_byte(sock, model):
    """No JSON, but the model's closing quote is the body's last byte."""
    body = body_of(model)
    send_all(sock, (head_of(body) + body)[:-1])
    send_all(sock, body[-1:])


SHAPES = {"whole": whole, "one-byte": one_byte, "large-writes": large_writes, "splits": splits, "written": written,
          "second-write": second_write, "writev": writev, "sendmsg": sendmsg, "chunked": chunked, "sendfile": sendfile,
          "expect": expect, "last-byte": last_byte, "peek": whole, "recvmsg": whole, "readv": whole}


def pipelined(sock):
    """In one write; further writes only for what the kernel left over."""
    requests = [head_of(body) + body for body in map(body_of, MODELS)]
    data = b"".join(requests)
    pieces = [data[at : at + 20] for at in range(0, len(data), 20)]
    if SHAPE == "pipelined-writev":
        gather(sock, pieces, lambda pieces: os.writev(sock.fileno(), pieces))
    elif SHAPE == "pipelined-sendmsg":
        gather(sock, pieces, sock.sendmsg)
    else:
        send_all(sock, data)
    for _ in MODELS:
        if not read_answer(sock):
            return


# --- non-blocking, a small send buffer: short writes -------------------------------------------------


async def by_asyncio():
    loop = asyncio.get_running_loop()
    sock = socket.socket()
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 100_000)
    await loop.sock_connect(sock, ("127.0.0.1", PORT))
    reader, writer = await asyncio.open_connection(sock=sock, limit=1 << 20)
    requests = [head_of(body) + body for body in map(body_of, MODELS)]
    if SHAPE == "pipelined-asyncio":
        requests = [b"".join(requests)] + [b""] * (len(MODELS) - 1)
    for data in requests:
        sent.extend(data)
        for at in range(0, len(data), 1_000_000):
            writer.write(data[at : at + 1_000_000])
            await writer.drain()
        while (status := answers.next()) is None:
            got = await reader.read(1 << 18)
            received.extend(got)
            if not got:
                break
        told.append(str(status) if status else "end")
        if told[-1] in ("end", "503"):
            break
    if told[-1] == "503":
        received.extend(await reader.read())
        told.append("end")
    writer.close()


def blocking():
    with socket.create_connection(("127.0.0.1", PORT), timeout=20) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(None)
        if SHAPE.startswith("pipelined"):
            pipelined(sock)
        else:
            for model in MODELS:
                SHAPES[SHAPE](sock, model)
                if not read_answer(sock):
                    break
        if told[-1] == "503":
            while receive(sock):  # all there is, to the end of the stream
                pass
            told.append("end")


asyncio.run(by_asyncio()) if SHAPE.endswith("asyncio") else blocking()
for name, data in (("sent", sent), ("received", received)):
    with open(name, "wb") as file:
        file.write(data)
print(*told)
