"""How a transfer ended where libcurl's code and status alone mislead (preload/curl_facts.c)."""

import threading

import pytest

from provider import Answer

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
