"""What the tests of slow calls share (the fixture `reply` has a provider send it)."""

NEVER = 50  # s, longer than any test
EVENTS = {"Content-Type": "text/event-stream"}
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
DELTA = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'
DONE = b"data: [DONE]\n\n"


def cause(breaker_env, key):
    return breaker_env.breakers()[key]["last_failure"]["class"]
