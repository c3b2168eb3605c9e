"""Options that would lead an answer of ours astray (curl/client_connection.c). The real calls around a refused one
must end exactly as without us: the options are the program's own again."""

import contextlib
import socketserver
import threading
from pathlib import Path

import pytest

from curl_lines import FINE_SHUT_FINE, ends_of, lines_of
from provider import Answer, head_of, model_of, read_body, read_head

GUARDED = Path(__file__).with_name("curl") / "guarded.c"
STRAY = ["range", "timecondition", "haproxy", "fastopen", "interface", "ipv6-only", "taken-port", "prereq", "verbose",
         "resume", "keep-sending", "keep-sending-large", "abstract", "path-too-long", "abstract-too-long",
         "path-and-clear", "abstract-and-clear"]


@pytest.mark.parametrize("mode", STRAY)
def test_an_answer_obeys_no_option_of_the_connection(mode, client, breaker_env, provider, shut):
    call = (client, mode, provider.url(), "no such socket")
    first, _, last = ends_of(breaker_env.run_bare(*call))
    assert ends_of(breaker_env.run(*call)) == [first, ("shut", 0, 503), last]
    assert breaker_env.calls(provider.key("shut"))["refused"] == 1


class UnixServer(socketserver.ThreadingUnixStreamServer):
    """Answers 200 on a unix socket, at a path or (NUL first) at an abstract name."""

    daemon_threads = True

    class RequestHandlerClass(socketserver.StreamRequestHandler):
        def handle(self):
            while head := read_head(self.rfile):
                self.server.models.append(model_of(read_body(self.rfile, head[2])))
                payload = Answer(200).payload()
                self.wfile.write(head_of(Answer(200), len(payload)) + payload)

    def __init__(self, address):
        self.models = []
        super().__init__(address, self.RequestHandlerClass)


@contextlib.contextmanager
def unix_server(address):
    with UnixServer(address) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()


@pytest.mark.parametrize("mode", ["abstract", "path-after-abstract", "abstract-after-path"])
def test_the_unix_socket_that_was_set_last_is_put_back(mode, client, breaker_env, provider, shut, tmp_path):
    name = str(tmp_path / "socket")
    with unix_server(name if mode == "path-after-abstract" else "\0" + name) as server:
        assert ends_of(breaker_env.run(client, mode, provider.url(), name)) == FINE_SHUT_FINE
        assert server.models == ["fine", "fine"]
    assert provider.accepted == 0


@pytest.mark.parametrize("mode", ["protocols", "protocols-after-names", "names-after-protocols"])
def test_protocols_forbid_after_an_answer_what_they_forbade(mode, client, breaker_env, provider, shut):
    refused, forbidden = lines_of(breaker_env.run(client, mode, provider.url().replace("http", "https", 1)))
    assert (refused.code, refused.status, forbidden.code) == (0, 503, 1)
    assert provider.accepted == 0


def test_a_connect_that_is_denied_leaves_nothing_behind(compile_c, breaker_env, provider, shut):
    """libcurl 7.88 connects an answer's descriptor; where that never reaches us the next connection with its number
    is a real one."""
    guarded = compile_c(GUARDED, "-rdynamic", "-lcurl", name="guarded")
    done = breaker_env.run(guarded, provider.url())
    first, refused, last = (tuple(map(int, line.split())) for line in done.stdout.decode().splitlines())
    assert (first, last) == ((0, 200), (0, 200)) and refused in ((7, 0), (0, 503))
    assert provider.count(model="fine") == 2 and provider.count(model="shut") == 0
