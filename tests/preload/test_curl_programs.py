"""C programs on libcurl, one way of using it per mode (curl/client*.c): a refused model between calls
that go through, on the same handle and pool. Each mode runs bare as well, so that a client that is wrong by itself
is seen."""

import collections

import pytest

from listeners import accepting, serving
from curl_lines import FINE_SHUT_FINE, ends_of, lines_of
from provider import Answer

EASY = ["fields", "copy", "read", "chunked", "file", "mime", "form", "bound", "curlu", "callbacks", "no-writedata"]
MULTI = ["multi-fields", "multi-read", "multi-file", "multi-chunked", "multi-pauses", "socket-fields", "socket-read",
         "socket-all", "socket-one"]

def path_of(mode):
    return "/v1/audio/transcriptions" if mode in ("mime", "form") else "/v1/chat/completions"


def test_every_mode_is_right_without_us(client, breaker_env, provider):
    for mode in EASY + MULTI + ["failonerror", "nobody", "duplicate", "threads", "fork", "nested", "moved", "unread", "partly-read"]:
        lines = lines_of(breaker_env.run_bare(client, mode, provider.url(path_of(mode))))
        assert lines and {(line.code, line.status) for line in lines} == {(0, 200)}, mode


@pytest.mark.parametrize("mode", EASY)
def test_one_handle_refused_between_two_real_calls(mode, client, breaker_env, provider, shut):
    url = provider.url(path_of(mode))
    lines = lines_of(breaker_env.run(client, mode, url))
    assert [(line.model, line.code, line.status) for line in lines] == [
        ("fine", 0, 200), ("shut", 0, 503), ("fine", 0, 200)]
    assert {line.url for line in lines} == {url}
    assert (provider.count(), provider.count(model="shut")) == (2, 0)
    assert breaker_env.calls(provider.key("fine"))["success"] == 2
    assert breaker_env.calls(provider.key("shut"))["refused"] == 1


@pytest.mark.parametrize("mode", MULTI)
def test_multi_with_refused_and_real_siblings(mode, client, breaker_env, provider, shut):
    lines = lines_of(breaker_env.run(client, mode, provider.url()))
    assert sorted((line.model, line.code, line.status) for line in lines) == \
        [("fine", 0, 200)] * 3 + [("shut", 0, 503)] * 3
    assert (provider.count(model="fine"), provider.count(model="shut")) == (3, 0)
    assert breaker_env.calls(provider.key("shut"))["refused"] == 3
    assert breaker_env.calls(provider.key("fine"))["success"] == 3


def test_application_callbacks_see_their_own_sockets_only(client, breaker_env, provider, shut):
    done = breaker_env.run(client, "callbacks", provider.url())
    opened, configured, closed = map(int, done.stdout.decode().splitlines()[-1].split()[1:4])
    assert (opened, configured, closed) == (2, 2, 2)


def test_failonerror(client, breaker_env, provider, shut):
    lines = lines_of(breaker_env.run(client, "failonerror", provider.url()))
    assert [(line.code, line.status, line.received) for line in lines if line.model == "shut"] == [(22, 503, 0)]
    assert sum(line.status == 200 for line in lines) == 2


def test_nobody(client, breaker_env, provider, shut):
    """NOBODY sends no body, so there is no model: the host's "-" breaker."""
    breaker_env.command("trip", "--create", provider.key("-"))
    lines = lines_of(breaker_env.run(client, "nobody", provider.url()))
    assert [(line.code, line.status, line.received) for line in lines] == [(0, 503, 0)] * 3
    assert provider.count() == 0


def test_connect_only_gets_an_error_instead(client, breaker_env, provider, shut):
    lines = lines_of(breaker_env.run(client, "connect-only", provider.url()))
    assert [(line.code, line.status) for line in lines] == [(0, 200), (7, 0), (0, 200)]


def test_duplicated_and_reset_handles(client, breaker_env, provider, shut):
    lines = lines_of(breaker_env.run(client, "duplicate", provider.url()))
    assert [(line.model, line.status) for line in lines] == [("shut", 503), ("fine", 200), ("shut", 503)]
    assert provider.count(model="shut") == 0


def test_32_threads_with_their_own_handles(client, breaker_env, provider, shut):
    lines = lines_of(breaker_env.run(client, "threads", provider.url()))
    assert collections.Counter((line.model, line.code, line.status) for line in lines) == {
        ("fine", 0, 200): 256, ("shut", 0, 503): 128}
    assert (provider.count(model="fine"), provider.count(model="shut")) == (256, 0)


def test_fork_in_the_middle(client, breaker_env, provider, shut):
    lines = lines_of(breaker_env.run(client, "fork", provider.url()))
    assert [(line.model, line.status) for line in lines] == [("fine", 200), ("shut", 503), ("shut", 503)]
    assert provider.count() == 1


def test_callbacks_that_perform_set_options_and_duplicate(client, breaker_env, provider, shut):
    lines = lines_of(breaker_env.run(client, "nested", provider.url()))
    assert collections.Counter((line.model, line.code, line.status) for line in lines) == {
        ("fine", 0, 200): 5, ("shut", 0, 503): 3}
    assert provider.count(model="shut") == 0


def test_add_and_remove_before_any_perform_is_nothing(client, breaker_env, provider):
    """getinfo then still tells of the transfer before: it must not be counted again."""
    provider.answer(Answer(500))
    breaker_env.run(client, "unrun", provider.url())
    assert provider.count() == 1
    assert breaker_env.calls(provider.key("fine")) == {
        "success": 0, "failure": 1, "neutral": 5, "refused": 0, "rerouted": 0}


def test_a_thousand_refused_handles_send_nothing(client, breaker_env, provider, shut):
    lines = lines_of(breaker_env.run(client, "crowd", provider.url()))
    assert collections.Counter((line.code, line.status) for line in lines) == {(0, 503): 1000}
    assert provider.count() == 0


def test_without_descriptors_a_refused_call_still_sends_nothing(client, breaker_env, provider, shut):
    done = breaker_env.run("sh", "-c", f"ulimit -n 40; exec {client} crowd {provider.url()}")
    lines = lines_of(done)
    assert {(line.code, line.status) for line in lines} <= {(0, 503), (7, 0)} and len(lines) == 1000
    assert provider.count() == 0


def test_closed_standard_descriptors_stay_closed(client, breaker_env, provider, shut):
    done = breaker_env.run(client, "closed", provider.url())
    assert done.returncode == 0


def test_a_handle_moved_between_multis(client, breaker_env, provider, shut):
    lines = lines_of(breaker_env.run(client, "moved", provider.url()))
    assert [(line.model, line.status) for line in lines] == [("shut", 503)]
    assert provider.count(model="shut") == 0


def test_ends_that_nobody_reads_count(client, breaker_env, provider):
    """Programs that only remove their handles (most PHP ones) tell of failures and successes as well."""
    breaker_env.run(client, "unread", provider.url())
    assert breaker_env.calls(provider.key("fine"))["success"] == 3
    provider.refuse()
    breaker_env.run(client, "unread", provider.url())
    assert breaker_env.calls(provider.key())["failure"] >= 5
    assert breaker_env.state(provider.key()) == "open"


def test_messages_of_the_others_are_not_lost(client, breaker_env, provider, shut):
    lines = lines_of(breaker_env.run(client, "partly-read", provider.url()))
    assert sorted((line.model, line.code, line.status) for line in lines) == \
        [("fine", 0, 200)] * 2 + [("shut", 0, 503)] * 3
    assert breaker_env.calls(provider.key("fine"))["success"] == 3


def test_a_signed_request_is_refused(client, breaker_env, provider, shut):
    """AWS_SIGV4 takes region and service from the host's name, also of a request that never leaves."""
    lines = lines_of(breaker_env.run(client, "signed", f"http://bedrock.local.localhost:{provider.port}/v1/chat/completions"))
    assert [line.code for line in lines if line.model == "shut"] == [0]


def test_the_url_is_told_as_libcurl_would(client, breaker_env, provider):
    breaker_env.configure("[target local]\nmatch = 127.0.0.1*\n")
    breaker_env.command("force", "--create", "open", provider.key())
    for given in (f"127.0.0.1:{provider.port}", f"HTTP://127.0.0.1:{provider.port}?a=b"):
        told = {lines_of(run(client, "fields", given))[1].url for run in (breaker_env.run, breaker_env.run_bare)}
        assert len(told) == 1 and provider.count() == 3
        provider.requests.clear()


class H2Server:
    """As much of HTTP/2 as it takes: each request gets `:status 200`, or, once there are `cut` of them, the
    connection is closed under all. `breaks`: each request is ended as an error of the server,
    by its stream ("stream") or by that of all ("connection")."""

    FRAME_DATA, FRAME_HEADERS, FRAME_RESET, FRAME_SETTINGS, FRAME_GOAWAY, INTERNAL_ERROR = 0, 1, 3, 4, 7, 2

    def __init__(self, tls, cut=None, breaks=None):
        self.tls, self.cut, self.breaks, self.connections, self.finished = tls, cut, breaks, 0, 0
        self.acceptor = serving(self._serve)
        self.port = self.acceptor.port

    def _serve(self, plain):
        self.connections += 1
        with self.tls.wrap_socket(plain, server_side=True) as connection, connection.makefile("rb") as stream:
            self._exchange(connection, stream)

    def _exchange(self, connection, stream):
        def send(kind, flags=0, number=0, payload=b""):
            connection.sendall(len(payload).to_bytes(3, "big") + bytes([kind, flags]) + number.to_bytes(4, "big") + payload)

        opened = 0
        stream.read(24)  # the preface
        send(self.FRAME_SETTINGS)
        while len(head := stream.read(9)) == 9:
            kind, flags, number = head[3], head[4], int.from_bytes(head[5:], "big")
            stream.read(int.from_bytes(head[:3], "big"))
            opened += kind == self.FRAME_HEADERS
            if kind == self.FRAME_SETTINGS and not flags & 1:
                send(self.FRAME_SETTINGS, 1)
            if self.cut and opened >= self.cut:
                self.cut = 1  # whoever comes again
                return
            if not self.cut and kind in (self.FRAME_DATA, self.FRAME_HEADERS) and flags & 1:
                self.finished += 1
                if self.breaks == "stream":
                    send(self.FRAME_RESET, 0, number, self.INTERNAL_ERROR.to_bytes(4, "big"))
                elif self.breaks == "connection":
                    send(self.FRAME_GOAWAY, 0, 0, bytes(4) + self.INTERNAL_ERROR.to_bytes(4, "big"))
                else:
                    send(self.FRAME_HEADERS, 5, number, b"\x88")


@pytest.fixture
def h2_server(authority):
    servers = []

    def make(**options):
        tls = authority.server()
        tls.set_alpn_protocols(["h2"])
        servers.append(H2Server(tls, **options))
        return servers[-1]

    yield make
    for server in servers:
        server.acceptor.close()


@pytest.mark.parametrize("mode", ["multi-h2", "multi-h2-read"])
def test_h2_siblings_of_refused_streams(mode, client, breaker_env, h2_server):
    server = h2_server()
    breaker_env.configure(open_seconds=60)
    breaker_env.command("trip", "--create", f"127.0.0.1:{server.port}/shut")
    lines = lines_of(breaker_env.run(client, mode, f"https://127.0.0.1:{server.port}/v1/chat/completions"))
    assert sorted((line.model, line.code, line.status) for line in lines) == \
        [("fine", 0, 200)] * 3 + [("shut", 0, 503)] * 3
    assert (server.connections, server.finished) == (1, 3)


def test_streams_of_one_broken_connection_are_one_failure(client, breaker_env, h2_server):
    server = h2_server(cut=6)
    lines = lines_of(breaker_env.run(client, "multi-h2", f"https://127.0.0.1:{server.port}/v1/chat/completions"))
    assert len(lines) == 6 and all(line.code != 0 and line.status == 0 for line in lines)
    failures = [breaker_env.calls(f"127.0.0.1:{server.port}/{model}")["failure"] for model in ("fine", "shut")]
    assert 1 <= sum(failures) <= server.connections < 6, (failures, server.connections)


@pytest.mark.parametrize("breaks, code", [("stream", 92), ("connection", 16)])
def test_an_h2_server_that_breaks_its_answers(breaks, code, curl, breaker_env, h2_server):
    server = h2_server(breaks=breaks)
    got = curl(f"https://127.0.0.1:{server.port}/v1/chat/completions", "m", "-k")
    assert (got.code, got.status, server.finished) == (code, 0, 1)
    calls = breaker_env.calls(f"127.0.0.1:{server.port}/m")
    assert (calls["success"], calls["failure"], calls["neutral"]) == (0, 1, 0)


def test_a_server_that_speaks_no_tls_is_not_down(client, breaker_env):
    """Versions, ciphers, plain text: what the two disagree on is not to be counted for everybody else."""
    def answer(connection):
        with connection:
            connection.recv(1 << 16)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with accepting(answer) as server:
        for _ in range(2):
            lines = lines_of(breaker_env.run(client, "fields", f"https://127.0.0.1:{server.port}/v1/chat/completions"))
            assert [line.code for line in lines] == [35] * 3
        calls = breaker_env.calls(f"127.0.0.1:{server.port}")
    assert (calls["failure"], calls["neutral"]) == (0, 6)


@pytest.mark.parametrize("variable", ["http_proxy", "all_proxy"])
def test_a_set_proxy_is_not_asked(variable, client, breaker_env, provider, shut):
    """The answer is ours: no proxy is needed for it, and a dead one is not the provider's fault."""
    lines = lines_of(breaker_env.run(client, "fields", provider.url(), env={variable: "http://127.0.0.1:9"}))
    assert [(line.model, line.code, line.status) for line in lines] == [("fine", 7, 0), ("shut", 0, 503), ("fine", 7, 0)]
    assert breaker_env.calls(provider.key("fine"))["neutral"] == 2


@pytest.mark.parametrize("mode", ["fields", "multi-read", "mime", "nested", "partly-read"])
def test_valgrind_finds_nothing_of_ours(mode, client, breaker_env, provider, shut):
    """Memory errors and leaks in the process with a real client."""
    done = breaker_env.run("valgrind", "-q", "--error-exitcode=9", "--leak-check=full",
                           "--errors-for-leak-kinds=definite", client, mode, provider.url(path_of(mode)))
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize("mode", ["read-inside", "read-inside-unread"])
def test_messages_read_inside_of_perform(mode, client, breaker_env, provider, shut):
    """The end of a transfer that was broken off for our answer is not the program's to see."""
    before = 2 if mode.endswith("unread") else 0
    assert sorted(ends_of(breaker_env.run(client, mode, provider.url()))) == \
        [("fine", 0, 200)] * (3 + before) + [("shut", 0, 503)] * 3
    assert provider.count(model="shut") == 0


def test_a_multi_that_ends_under_a_refused_handle(client, breaker_env, provider, shut):
    assert ends_of(breaker_env.run(client, "cleaned-under", provider.url())) == [("shut", 0, 503), ("fine", 0, 200)]


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_scheme_and_protocol_of_an_answer_are_spelled_as_of_a_real_call(
        scheme, client, breaker_env, provider, tls_provider):
    server = tls_provider if scheme == "https" else provider
    breaker_env.command("force", "--create", "open", server.key("shut"))
    done = breaker_env.run(client, "scheme", server.url())
    real, answer = (line.split() for line in done.stdout.decode().splitlines())
    assert (done.returncode, real[0], answer[0], server.count()) == (0, "fine", "shut", 1)
    assert answer[1:] == real[1:] and answer[1].lower() == scheme


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_host_of_hsts(scheme, client, breaker_env, tls_provider, tmp_path):
    """Real calls are upgraded to https; an answer of ours must not be."""
    entries = tmp_path / "hsts"
    entries.write_text('localhost "20991231 00:00:00"\n')
    breaker_env.command("force", "--create", "open", tls_provider.key("shut", name="localhost"))
    url = tls_provider.url(name="localhost").replace("https", scheme, 1)
    assert ends_of(breaker_env.run(client, "hsts", url, entries)) == FINE_SHUT_FINE
    assert tls_provider.count() == 2
