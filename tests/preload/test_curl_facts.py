"""How a transfer ended where libcurl's code and status alone mislead (preload/curl_facts.c)."""

import socket
import threading

import pytest

from listeners import Acceptor
from fallbacks import Remote
from provider import Answer
from support import chat

CHALLENGE = Answer(401, {"WWW-Authenticate": 'Digest realm="r", nonce="n0", qop="auth", algorithm=MD5'}, b"")
REDIRECT = Answer(307, {"Location": "/v2/chat"}, b"")
CUT = Answer(200, close="before-head")


def ends(breaker_env, key):
    calls = breaker_env.calls(key)
    return calls["success"], calls["failure"], calls["neutral"]


def test_a_connection_cut_after_an_answered_401_is_a_failure(provider, curl, breaker_env):
    """libcurl still tells the 401, which is no final head: it would have been neutral."""
    provider.answer(CUT)
    provider.then(CHALLENGE)
    got = curl(provider.url(), "m", "--digest", "-u", "user:word")
    assert (got.code, got.status) == (52, 401)
    assert ends(breaker_env, provider.key("m")) == (0, 1, 0)


def test_a_401_that_cannot_be_answered_is_neutral(provider, curl, breaker_env):
    provider.answer(CHALLENGE)
    assert curl(provider.url(), "m", "--digest", "-u", "user:word").status == 401
    assert ends(breaker_env, provider.key("m")) == (0, 0, 1)


def test_a_proxy_that_cuts_after_a_followed_redirect_is_neutral(provider, providers, curl, breaker_env):
    """libcurl still tells the 307, which is no final head: none came of the second request."""
    proxy = providers()
    proxy.answer(CUT)
    proxy.then(REDIRECT)
    got = curl(provider.url(), "m", "-L", "-x", proxy.url(""))
    assert (got.code, got.status) == (52, 307)
    assert ends(breaker_env, provider.key("m")) == (0, 0, 1)


def test_a_connection_cut_after_a_followed_redirect_is_a_failure(provider, curl, breaker_env):
    provider.answer(CUT)
    provider.then(REDIRECT)
    assert curl(provider.url(), "m", "-L").code == 52
    assert ends(breaker_env, provider.key("m")) == (0, 1, 0)


def test_a_provider_that_fails_behind_a_tunnel(provider, providers, curl, breaker_env):
    """The proxy has let us through: what broke then is not its doing."""
    tunnel = providers()  # speaks for the provider, too, behind its own 200 to CONNECT
    tunnel.answer(CUT)
    tunnel.then(Answer(200, body=b""))
    got = curl(provider.url(), "m", "-p", "-x", tunnel.url(""))
    assert (got.code, [r.method for r in tunnel.seen()][:2]) == (52, ["CONNECT", "POST"])
    assert ends(breaker_env, provider.key("m")) == (0, 1, 0)


def test_a_tunnel_that_is_refused(provider, providers, curl, breaker_env):
    proxy = providers()
    proxy.answer(Answer(502, body=b""))
    assert curl(provider.url(), "m", "-p", "-x", proxy.url("")).code in (7, 56)
    assert [r.method for r in proxy.seen()] == ["CONNECT"]
    for key in (provider.key(), provider.key("m")):
        assert ends(breaker_env, key) == (0, 0, 1)


@pytest.mark.parametrize("how,expected", [("paused", (0, 0, 1)), ("resumed", (0, 1, 0))])
def test_a_pause_is_no_hang(how, expected, client, provider, breaker_env):
    breaker_env.configure(timeout_after=0.1)
    provider.answer(Answer(200, body_gate=threading.Event()))
    done = breaker_env.run(client, "paused", provider.url(), how)
    assert (done.returncode, done.stdout.split()[:3]) == (0, [b"fine", b"28", b"200"]), done
    assert ends(breaker_env, provider.key("fine")) == expected


def test_a_reply_that_is_no_http_is_a_failure(reply, provider, curl, breaker_env):
    reply(b"220 mail.example ESMTP\r\n")
    got = curl(provider.url(), "m", "-m", "5")
    assert (got.code, got.status) == (1, 0)
    assert ends(breaker_env, provider.key("m")) == (0, 1, 0)


def test_connections_that_fall_by_a_local_socket_are_failures_each(curl, breaker_env, tmp_path):
    """They have no port by which two of one connection would be known."""
    path = tmp_path / "socket"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def cut(connection):
        with connection:
            connection.recv(1 << 16)

    with Acceptor(listener, cut):
        url = "http://127.0.0.1:9/v1/chat/completions"
        done = breaker_env.run("curl", "-sZ", "--unix-socket", path, "-d", chat("m"), url, url)
    assert done.returncode == 52
    assert ends(breaker_env, "127.0.0.1:9/m") == (0, 2, 0)


@pytest.mark.parametrize("parts", [False, True], ids=["URL", "CURLU"])
def test_an_url_that_is_set_meanwhile_is_for_the_next_call(parts, provider, providers, breaker_env):
    """Where a redirect led to is told by the place of the call itself."""
    other = providers()
    provider.answer(Answer(500), path="/v2/chat")
    with Remote(breaker_env) as curl:
        curl.made("a", POSTFIELDS=chat("m"), FOLLOWLOCATION=1)
        if parts:
            curl.url_parts(name="a", url=provider.url())
        else:
            curl.set("a", URL=provider.url())
        curl.in_write(name="a", options={"CURLU": None, "URL": other.url()} if parts else {"URL": other.url()})
        provider.then(REDIRECT)
        assert curl.perform(name="a").status == 500
        assert ends(breaker_env, provider.key("m")) == (0, 1, 0)
        assert curl.perform(name="a").url == other.url()
    assert other.count() == 1
