"""Bodies that libcurl sends more than once, or drops (curl/client_rewind.c): the model is that of what is sent."""

import contextlib
import socketserver
import threading

import pytest

from curl_lines import FINE_SHUT_FINE, ends_of
from provider import Answer, head_of, model_of, read_body, read_head

REDIRECTS = ["file-redirect", "ioctl-redirect", "seek-redirect"]


@pytest.fixture
def redirecting(provider):
    provider.answer(Answer(307, {"Location": "/v2/chat"}, b""), path="/v1/chat/completions")
    return provider


@pytest.mark.parametrize("mode", REDIRECTS)
def test_a_redirected_body_is_sent_again_whole(mode, client, breaker_env, redirecting):
    assert ends_of(breaker_env.run(client, mode, redirecting.url())) == \
        [("fine", 0, 200), ("shut", 0, 200), ("fine", 0, 200)]
    assert [r.model for r in redirecting.seen("/v2/chat")] == ["fine", "shut", "fine"]
    assert breaker_env.calls(redirecting.key("fine"))["success"] == 2


@pytest.mark.parametrize("mode", REDIRECTS)
def test_a_redirected_body_of_a_refused_model(mode, client, breaker_env, redirecting, shut):
    assert ends_of(breaker_env.run(client, mode, redirecting.url())) == FINE_SHUT_FINE
    assert redirecting.count(model="shut") == 0 and redirecting.count("/v2/chat", "fine") == 2


def test_digest_with_a_file(client, breaker_env, provider):
    provider.answer(Answer(200, digest=True))
    assert ends_of(breaker_env.run(client, "file-digest", provider.url())) == \
        [("fine", 0, 200), ("shut", 0, 200), ("fine", 0, 200)]
    assert [r.model for r in provider.seen() if "authorization" in r.headers and r.body] == ["fine", "shut", "fine"]
    for model, number in (("fine", 2), ("shut", 1)):
        calls = breaker_env.calls(provider.key(model))
        assert (calls["success"], calls["failure"], calls["neutral"]) == (number, 0, 0)


def test_digest_with_a_file_of_a_refused_model(client, breaker_env, provider, shut):
    provider.answer(Answer(200, digest=True))
    assert ends_of(breaker_env.run(client, "file-digest", provider.url())) == FINE_SHUT_FINE
    assert provider.count(model="shut") == 0


@pytest.mark.parametrize("mode", ["copy-outgrown", "copy-told-again"])
def test_a_copied_body_whose_size_is_told_afterwards(mode, client, breaker_env, provider, shut):
    assert ends_of(breaker_env.run(client, mode, provider.url())) == FINE_SHUT_FINE
    assert provider.count(model="fine") == 2 and provider.count(model="shut") == 0


class HastyServer(socketserver.ThreadingTCPServer):
    """Redirects as soon as the first bytes of a body are there; takes whole bodies elsewhere."""

    daemon_threads = True

    class RequestHandlerClass(socketserver.StreamRequestHandler):
        def handle(self):
            method, target, headers = read_head(self.rfile)
            answer = Answer(200)
            if target == "/v2/chat":
                self.server.models.append(model_of(read_body(self.rfile, headers)))
            else:
                assert self.rfile.read(1)
                answer = Answer(307, {"Location": "/v2/chat"}, b"", close="after")
            payload = answer.payload()
            self.wfile.write(head_of(answer, len(payload)) + payload)
            while self.rfile.read(1 << 16):
                pass

    def __init__(self):
        self.models = []
        super().__init__(("127.0.0.1", 0), self.RequestHandlerClass)


@contextlib.contextmanager
def hasty_server():
    with HastyServer() as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()


@pytest.mark.parametrize("mode", ["long-seek", "long-ioctl"])
def test_a_redirect_in_the_middle_of_a_body(mode, client, breaker_env):
    """What was shown before the rewind is not shown twice: the model stands at the end."""
    with hasty_server() as server:
        host = "{}:{}".format(*server.server_address)
        breaker_env.command("force", "--create", "open", f"{host}/shut")
        done = breaker_env.run(client, mode, f"http://{host}/v1/chat/completions")
        assert ends_of(done) == FINE_SHUT_FINE
        assert server.models == ["fine", "fine"]
        assert breaker_env.calls(f"{host}/fine")["success"] == 2
