"""A program of Python's http.client over TLS that posts on demand: as bench_tls.c, with the same lines.

    post_tls.py PORT PATH
"""
import http.client
import ssl
import sys
import time

PORT, PATH = int(sys.argv[1]), sys.argv[2]
BODY_SIZE = 2048
BEGIN, END = '{"messages":[{"role":"user","content":"', '"}],"model":"bench"}'
WORDS = "the quick brown fox jumps over the lazy dog. " * 64
BODY = (BEGIN + WORDS[:BODY_SIZE - len(BEGIN) - len(END)] + END).encode()
HEADERS = {"Accept": "*/*", "Content-Type": "application/json"}


def post(connection):
    connection.request("POST", PATH, BODY, HEADERS)
    answer = connection.getresponse()
    answer.read()
    return answer.status, answer.getheader("X-Breaker-State") is not None


connection = http.client.HTTPSConnection("localhost", PORT, timeout=10, context=ssl.create_default_context())
for line in sys.stdin:
    connects, marks, statuses = int(connection.sock is None), 0, set()
    begun = time.monotonic_ns()
    for _ in range(int(line)):
        connects += connection.sock is None and bool(statuses)
        status, marked = post(connection)
        statuses.add(status)
        marks += marked
    took = time.monotonic_ns() - begun
    print(took, statuses.pop() if len(statuses) == 1 else 0, marks, connects, flush=True)
