"""http.client on a kept connection: client_http.py SHAPE PORT SIZE MODEL...

Prints a line per call: status, length and SHA-256 of the answer's body, and X-Breaker-State where there is one.
"""

import hashlib
import http.client
import io
import json
import sys

SHAPE, PORT, SIZE, MODELS = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]


def body_of(model):
    return json.dumps({"messages": [{"role": "user", "content": "x" * SIZE}], "model": model}).encode()


def pieces(body, size):
    return (body[at : at + size] for at in range(0, len(body), size))


def post(connection, model):
    body = body_of(model)
    fields = {"Content-Type": "application/json", "Content-Length": str(len(body))}
    if SHAPE == "one-byte":
        body = pieces(body, 1)
    elif SHAPE == "large-writes":
        body = io.BytesIO(body)  # read and sent by 64 KB
    elif SHAPE == "chunked":
        body, fields = pieces(body, len(body) - 4), {"Content-Type": "application/json"}
    connection.request("POST", "/v1/chat/completions", body, fields, encode_chunked=SHAPE == "chunked")
    answer = connection.getresponse()
    data = b"".join(iter(answer.readline, b"")) if SHAPE == "lines" else b""
    data += answer.read()
    print(answer.status, len(data), hashlib.sha256(data).hexdigest(), answer.getheader("X-Breaker-State", "-"))
    if data.startswith(b'{"error"'):
        print(data.decode())


connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=20, blocksize=65536)
for model in MODELS:
    post(connection, model)
connection.close()
