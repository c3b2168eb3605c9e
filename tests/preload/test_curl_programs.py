"""C programs on libcurl, one way of using it per mode (curl/client.c): a refused model between calls
that go through, on the same handle and pool. Each mode runs bare as well, so that a client that is wrong by itself
is seen."""

import collections
from pathlib import Path

import pytest

from provider import Answer

SOURCE = Path(__file__).with_name("curl") / "client.c"
EASY = ["fields", "copy", "read", "chunked", "file", "mime", "bound", "curlu", "callbacks", "no-writedata"]
MULTI = ["multi-fields", "multi-read", "multi-file", "multi-chunked", "socket-fields", "socket-read"]

Line = collections.namedtuple("Line", "model code status received url")


@pytest.fixture
def client(compile_c):
    return compile_c(SOURCE, "-Wno-deprecated-declarations", "-lcurl", "-pthread", name="client")


@pytest.fixture
def shut(breaker_env, provider):
    breaker_env.configure(open_seconds=60)
    breaker_env.command("trip", "--create", provider.key("shut"))


def lines_of(done):
    assert (done.returncode, done.stderr) == (0, b""), done
    lines = [line.split(" ") for line in done.stdout.decode(errors="replace").splitlines()]
    return [Line(f[0], int(f[1]), int(f[2]), int(f[3]), f[4]) for f in lines if len(f) == 5 and f[0] in ("fine", "shut")]


def path_of(mode):
    return "/v1/audio/transcriptions" if mode == "mime" else "/v1/chat/completions"


def test_every_mode_is_right_without_us(client, breaker_env, provider):
    for mode in EASY + MULTI + ["failonerror", "nobody", "duplicate", "threads", "fork", "nested", "moved"]:
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


@pytest.mark.parametrize("variable", ["http_proxy", "all_proxy"])
def test_a_set_proxy_is_not_asked(variable, client, breaker_env, provider, shut):
    """The answer is ours: no proxy is needed for it, and a dead one is not the provider's fault."""
    lines = lines_of(breaker_env.run(client, "fields", provider.url(), env={variable: "http://127.0.0.1:9"}))
    assert [(line.model, line.code, line.status) for line in lines] == [("fine", 7, 0), ("shut", 0, 503), ("fine", 7, 0)]
    assert breaker_env.calls(provider.key("fine"))["neutral"] == 2


@pytest.mark.parametrize("mode", ["fields", "multi-read", "mime", "nested"])
def test_valgrind_finds_nothing_of_ours(mode, client, breaker_env, provider, shut):
    """Memory errors and leaks in the process with a real client."""
    done = breaker_env.run("valgrind", "-q", "--error-exitcode=9", "--leak-check=full",
                           "--errors-for-leak-kinds=definite", client, mode, provider.url(path_of(mode)))
    assert done.returncode == 0, done.stderr.decode()
