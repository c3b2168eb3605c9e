"""A provider that speaks each API as far as its SDK needs, over clear text or TLS. What a request gets is in the name
of its model, up to the first "-":

    healthy     the answer "hello", whole or as a stream
    500, 503, … that status with the provider's own error
    429         … and when to come back
    broken      the answer, or a 200 stream that says part of it, then an error event of the provider's own
    cut         the answer, or a 200 stream whose connection is closed in the middle
    hang        nothing, ever
"""

import json
import re
from urllib.parse import unquote, urlsplit

from provider import Answer, Provider
from test_stream_clients import frame

EVENTS, FRAMES = "text/event-stream", "application/vnd.amazon.eventstream"
PIECES = ["hel", "lo"]


def data(value, event=None):
    """One server-sent event."""
    return (f"event: {event}\n" if event else "").encode() + b"data: %s\n\n" % json.dumps(value).encode()


# --- each API: its good answer, its stream, its errors ----------------------------------------------------


class Chat:
    """OpenAI's chat.completions, and all that speak like it."""

    FRAME = {"id": "c1", "created": 1, "model": "m"}

    def whole(self):
        message = {"role": "assistant", "content": "hello"}
        return {**self.FRAME, "object": "chat.completion",
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}

    def chunk(self, text, reason=None):
        delta = {"role": "assistant", "content": text}
        return data({**self.FRAME, "object": "chat.completion.chunk",
                     "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})

    def stream(self):
        return [self.chunk(piece) for piece in PIECES] + [self.chunk("", "stop"), b"data: [DONE]\n\n"]

    def broken(self):
        return [self.chunk(PIECES[0]), data(self.error(500))]

    def error(self, status):
        return {"error": {"message": f"scripted {status}", "type": "server_error", "param": None, "code": "scripted"}}


class Mistral(Chat):
    def error(self, status):
        return {"object": "error", "message": f"scripted {status}", "type": "internal_server_error", "param": None,
                "code": "1000"}

    def broken(self):
        return [self.chunk(PIECES[0]), data({"error": self.error(500)})]


class Responses(Chat):
    def response(self, **members):
        return {"id": "r1", "object": "response", "created_at": 1, "model": "m", "output": [], "tools": [],
                "parallel_tool_calls": True, "tool_choice": "auto", "status": "completed", "error": None, **members}

    def whole(self):
        content = [{"type": "output_text", "text": "hello", "annotations": []}]
        message = {"id": "o1", "type": "message", "role": "assistant", "status": "completed", "content": content}
        return self.response(output=[message])

    def event(self, kind, number, **members):
        return data({"type": kind, "sequence_number": number, **members}, kind)

    def start(self, pieces):
        place = {"item_id": "o1", "output_index": 0, "content_index": 0, "logprobs": []}
        yield self.event("response.created", 0, response=self.response(status="in_progress"))
        for number, piece in enumerate(pieces, 1):
            yield self.event("response.output_text.delta", number, delta=piece, **place)

    def stream(self):
        return [*self.start(PIECES), self.event("response.completed", 9, response=self.whole())]

    def broken(self):
        return [*self.start(PIECES[:1]),
                self.event("error", 9, code="server_error", message="scripted error", param=None)]


class Messages:
    """Anthropic's."""

    def message(self, content):
        return {"id": "m1", "type": "message", "role": "assistant", "model": "m", "content": content,
                "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}

    def whole(self):
        return self.message([{"type": "text", "text": "hello"}])

    def event(self, kind, **members):
        return data({"type": kind, **members}, kind)

    def start(self, pieces):
        yield self.event("message_start", message=self.message([]))
        yield self.event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        yield self.event("ping")
        for piece in pieces:
            yield self.event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})

    def stream(self):
        return [*self.start(PIECES), self.event("content_block_stop", index=0),
                self.event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 1}),
                self.event("message_stop")]

    def broken(self):
        return [*self.start(PIECES[:1]), data(self.error(529), "error")]

    def error(self, status):
        kind = {529: "overloaded_error", 429: "rate_limit_error"}.get(status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": f"scripted {status}"}, "request_id": "q1"}


class Gemini:
    def piece(self, text, **members):
        return {"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": text}]}, **members}]}

    def whole(self):
        return self.piece("hello", finishReason="STOP")

    def stream(self):
        return [data(self.piece(PIECES[0])), data(self.piece(PIECES[1], finishReason="STOP"))]

    def broken(self):
        return [data(self.piece(PIECES[0])), data(self.error(503))]

    def error(self, status):
        kind = {503: "UNAVAILABLE", 429: "RESOURCE_EXHAUSTED"}.get(status, "INTERNAL")
        return {"error": {"code": status, "message": f"scripted {status}", "status": kind}}


class Cohere:
    def whole(self):
        return {"id": "c1", "finish_reason": "COMPLETE",
                "message": {"role": "assistant", "content": [{"type": "text", "text": "hello"}]}}

    def event(self, kind, **members):
        return data({"type": kind, **members}, kind)

    def start(self, pieces):
        yield self.event("message-start", id="c1", delta={"message": {"role": "assistant", "content": []}})
        yield self.event("content-start", index=0, delta={"message": {"content": {"type": "text", "text": ""}}})
        for piece in pieces:
            yield self.event("content-delta", index=0, delta={"message": {"content": {"text": piece}}})

    def end(self, reason, **members):
        return self.event("message-end", id="c1", delta={"finish_reason": reason, **members})

    def stream(self):
        return [*self.start(PIECES), self.event("content-end", index=0), self.end("COMPLETE")]

    def broken(self):
        return [*self.start(PIECES[:1]), self.end("ERROR", error="scripted error")]

    def error(self, status):
        return {"id": "e1", "message": f"scripted {status}"}


class Converse:
    """Bedrock's."""

    def whole(self):
        return {"output": {"message": {"role": "assistant", "content": [{"text": "hello"}]}}, "stopReason": "end_turn",
                "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}, "metrics": {"latencyMs": 1}}

    def event(self, kind, **members):
        return frame(json.dumps(members).encode(), event_type=kind, message_type="event",
                     content_type="application/json")

    def start(self, pieces):
        yield self.event("messageStart", role="assistant")
        for piece in pieces:
            yield self.event("contentBlockDelta", delta={"text": piece}, contentBlockIndex=0)

    def stream(self):
        return [*self.start(PIECES), self.event("contentBlockStop", contentBlockIndex=0),
                self.event("messageStop", stopReason="end_turn"),
                self.event("metadata", usage=self.whole()["usage"], metrics={"latencyMs": 1})]

    def broken(self):
        return [*self.start(PIECES[:1]),
                frame(b'{"message":"scripted error"}', exception_type="serviceUnavailableException",
                      message_type="exception", content_type="application/json")]

    def error(self, status):
        return {"message": f"scripted {status}"}


# What of the path tells the API; where it holds the model, as its group.
APIS = ((re.compile(r"/chat/completions$"), Chat()), (re.compile(r"/v1/responses$"), Responses()),
        (re.compile(r"/v1/messages$"), Messages()), (re.compile(r"/v2/chat$"), Cohere()),
        (re.compile(r"/models/([^/]+):(?:stream)?[gG]enerateContent$"), Gemini()),
        (re.compile(r"/model/([^/]+)/converse(?:-stream)?$"), Converse()))


def wants_stream(request):
    path = urlsplit(request.target).path
    return json.loads(request.body).get("stream") is True or "stream" in path.rsplit("/", 1)[-1]


def error_head(api, status, pause):
    """Errors ask to be retried after a millisecond: SDKs with retries of their own would pause."""
    head = {"Retry-After": pause} if status == 429 else {"retry-after-ms": "1"}
    if isinstance(api, Converse):
        head["x-amzn-errortype"] = "ThrottlingException" if status == 429 else "ServiceUnavailableException"
    return head


class ApiProvider(Provider):
    healed = False  # every model is healthy
    pause = "30"  # the Retry-After of a 429

    def _choose(self, request):
        for pattern, api in APIS:
            found = pattern.search(request.path)
            if found:
                break
        else:
            return Answer(404)
        if pattern.groups:
            request.model = unquote(found[1])
        if request.headers.get("host", "").startswith("api.mistral.ai"):
            api = Mistral()
        return self.answer_of(api, self.state_of(request.model), wants_stream(request))

    def state_of(self, model):
        return "healthy" if self.healed else model.partition("-")[0]

    def answer_of(self, api, state, stream):
        if state == "hang":
            return Answer(hang=True)
        if state.isdigit():
            status = int(state)
            return Answer(status, error_head(api, status, self.pause), json.dumps(api.error(status)).encode())
        if not stream:
            return Answer(200, body=json.dumps(api.whole()).encode())
        head = {"Content-Type": FRAMES if isinstance(api, Converse) else EVENTS}
        body = b"".join(api.broken() if state == "broken" else api.stream())
        if state == "cut":
            return Answer(200, head, body, chunked=True, close="mid-body")
        return Answer(200, head, body, chunked=True, pieces=7)
