"""Handles that are changed while their call is on its way elsewhere: whatever is set then is for the application's own
host, goes to no fallback, and is there afterwards."""

import pytest

from fallbacks import SECOND_KEY, Bytes, Fallback, Remote, chain, chat, is_refused, target
from provider import Answer, wait_until
from test_fallback_chain import hole, section  # noqa: F401
from test_fallback_secrets import CANARY, shows

BODY = chat("m")
LATE = {
    "HTTPHEADER": ["Authorization: Bearer " + CANARY, "X-App: 1"],
    "COOKIE": f"session={CANARY}",
    "USERPWD": f"user:{CANARY}",
    "USERNAME": CANARY,
    "XOAUTH2_BEARER": CANARY,
    "AWS_SIGV4": f"aws:amz:{CANARY}:service",
    "REFERER": f"http://a.example/?key={CANARY}",
}


@pytest.fixture
def refusing(breaker_env, provider):
    def refuse(*fallbacks, key=None, **keys):
        breaker_env.configure(chain(provider, *fallbacks, **keys), open_seconds=60)
        breaker_env.command("trip", "--create", key or provider.key(name=keys.get("name")))

    return refuse


@pytest.mark.parametrize("auth", [None, "Authorization: Bearer ${SECOND_KEY}"], ids=["bare", "auth"])
@pytest.mark.parametrize("option", LATE)
def test_a_credential_set_between_add_and_perform(option, auth, breaker_env, provider, providers, refusing):
    second = Fallback("second", providers(), auth=auth, headers=())
    refusing(second)
    with Remote(breaker_env) as curl:
        curl.made("a", URL=provider.url(), POSTFIELDS=BODY)
        curl.add(name="a")
        if option == "USERNAME":
            curl.set("a", PASSWORD=CANARY)
        if option == "XOAUTH2_BEARER":
            curl.set("a", HTTPAUTH=64)  # CURLAUTH_BEARER
        if option == "AWS_SIGV4":
            curl.set("a", USERPWD="AKID:secret")
        curl.set("a", **{option: LATE[option]})
        curl.until_messages(number=1)
        curl.remove(name="a")
        for request in second.provider.seen():
            assert not shows(request.raw, CANARY), Bytes(request.raw)
            assert b"authorization" not in request.raw.lower() or auth
        breaker_env.command("reset", provider.key())
        assert curl.perform(name="a").url == provider.url()
    if option not in ("USERPWD", "USERNAME", "XOAUTH2_BEARER", "AWS_SIGV4"):
        assert shows(provider.seen()[0].raw, CANARY)
    else:
        assert b"uthorization" in provider.seen()[0].raw, Bytes(provider.seen()[0].raw)


@pytest.mark.xfail(reason="libcurl's jar knows no ports, and was empty when the call was begun", strict=True)
def test_a_cookie_put_in_the_jar_between_add_and_perform(breaker_env, provider, providers, refusing):
    second = Fallback("second", providers())
    refusing(second, name="localhost")
    with Remote(breaker_env) as curl:
        curl.made("a", URL=provider.url(name="localhost"), POSTFIELDS=BODY)
        curl.add(name="a")
        curl.set("a", COOKIELIST=f"Set-Cookie: session={CANARY}; domain=localhost; path=/")
        curl.until_messages(number=1)
        curl.remove(name="a")
    assert not any(shows(r.raw, CANARY) for r in second.provider.seen())


@pytest.mark.parametrize("option", ["CONNECT_TO", "PORT"])
def test_another_way_set_between_add_and_perform(option, breaker_env, provider, providers, refusing):
    """The fallback's key goes to the fallback alone."""
    second, other = Fallback("second", providers()), providers()
    refusing(second)
    with Remote(breaker_env, env={"SECOND_KEY": SECOND_KEY}) as curl:
        curl.made("a", URL=provider.url(), POSTFIELDS=BODY)
        curl.add(name="a")
        curl.set("a", **{"CONNECT_TO": {"CONNECT_TO": [f"::127.0.0.1:{other.port}"]}, "PORT": {"PORT": other.port}}[option])
        curl.until_messages(number=1)
        curl.remove(name="a")
    assert not any(shows(r.raw, SECOND_KEY) for r in other.seen())


NEXT = {"HTTPGET": {"HTTPGET": 1}, "NOBODY": {"NOBODY": 1}, "UPLOAD": {"UPLOAD": 1, "INFILESIZE_LARGE": 0}}


@pytest.mark.parametrize("option", NEXT)
def test_the_method_of_the_next_call_is_set_meanwhile(option, breaker_env, provider, providers, refusing):
    second = Fallback("second", providers())

    def prepare(curl):
        curl.made("a", URL=provider.url(), POSTFIELDS=BODY, TIMEOUT=5)

    def both(curl):
        prepare(curl)
        curl.in_write(name="a", options=NEXT[option])
        first = curl.perform(name="a")
        return first, curl.perform(name="a")

    with Remote(breaker_env, bare=True) as curl:
        both(curl)
    original = [(r.method, r.body) for r in provider.seen()][1:]
    provider.clear()
    refusing(second)
    with Remote(breaker_env) as curl:
        prepare(curl)
        curl.in_write(name="a", options=NEXT[option])
        assert curl.perform(name="a").url == second.url()
        breaker_env.command("reset", provider.key())
        curl.perform(name="a")
    assert [(r.method, r.body) for r in provider.seen()] == original


@pytest.mark.parametrize("multi", [False, True], ids=["easy", "multi"])
@pytest.mark.parametrize("last", ["second", "nobody"])
def test_refused_in_its_middle_without_failover(last, multi, breaker_env, provider, providers, refusing):
    """The first of the chain is dead: the next has the call."""
    dead, second = Fallback("dead", providers()), Fallback("second", providers())
    dead.provider.refuse()
    refusing(*([dead, second] if last == "second" else [dead]), key=provider.key("m"), failover="off")
    with Remote(breaker_env) as curl:
        curl.made("a", URL=provider.url())
        curl.source(name="a", body=BODY, seek=True)
        done = curl.perform(name="a", multi=multi)
    if last == "second":
        assert (done.code, done.url) == (0, second.url())
    else:
        assert is_refused(done), done


FORM = [["file", "sound", "a.wav"], ["model", "whisper-1", None]]


@pytest.fixture
def form_elsewhere(breaker_env, provider, providers, refusing):
    """A handle whose form is at the fallback, which does not answer yet."""
    second = Fallback("second", providers(), model="*:large-{model}")
    second.provider.answer(Answer(hang=True))
    refusing(second)
    with Remote(breaker_env) as curl:
        curl.made("a", URL=provider.url("/v1/audio/transcriptions"))
        curl.mime(name="a", parts=FORM)
        curl.add(name="a")
        wait_until(lambda: curl.turn() and second.provider.count(), what="the call is at the fallback")
        yield curl
    assert b"large-whisper-1" in second.provider.seen()[0].raw


def test_a_form_that_is_freed_meanwhile(form_elsewhere):
    """libcurl does not look at it any more once it was sent; with memory that is never zero by chance."""
    form_elsewhere.mime_free(name="a")
    form_elsewhere.remove(name="a")
    form_elsewhere.cleanup(name="a")


@pytest.mark.xfail(reason="libcurl copies the form with the fallback's model in it", strict=True)
def test_a_form_that_is_copied_meanwhile(breaker_env, provider, providers, refusing):
    second = Fallback("second", providers(), model="*:large-{model}")
    refusing(second)
    with Remote(breaker_env) as curl:
        curl.made("a", URL=provider.url("/v1/audio/transcriptions"))
        curl.mime(name="a", parts=FORM)
        curl.in_write(name="a", options={"duplicate": 1})
        assert curl.perform(name="a").url == second.url("/audio/transcriptions")
        curl.take_copy(name="a", copy="b")
        breaker_env.command("reset", provider.key())
        assert curl.perform(name="b").status == 200
    assert b"large-whisper-1" not in provider.seen()[0].body


@pytest.mark.parametrize("domain", ["svc.example", "svc.cluster1"])
def test_a_cookie_of_the_domain_of_both(domain, breaker_env, provider, providers):
    """Names may end in a digit and are no addresses for that."""
    home, there = f"a.{domain}", f"b.{domain}"
    second = Fallback("second", providers(), host=there)
    breaker_env.configure(chain(provider, second, name=home), open_seconds=60)
    breaker_env.command("trip", "--create", provider.key(name=home))
    with Remote(breaker_env, env={"SECOND_KEY": SECOND_KEY}) as curl:
        curl.call(URL=provider.url(name=home), POSTFIELDS=BODY, COOKIELIST=f"Set-Cookie: s={CANARY}; domain={domain}; path=/",
                  RESOLVE=[f"{name}:{p.port}:127.0.0.1" for name, p in ((home, provider), (there, second.provider))])
    assert not any(shows(r.raw, CANARY) for r in second.provider.seen())


@pytest.mark.parametrize("how", ["set", "reset"])
def test_body_and_method_are_set_anew_while_a_fallback_is_tried(how, breaker_env, hole, provider, providers):  # noqa: F811
    """The next of the chain has those of the call as it was begun; freed memory is never as it was."""
    second = Fallback("second", providers())
    breaker_env.configure(target(provider, ["hole", "second"]) + section("hole", f"http://{hole}/v1") + second.section(),
                          open_seconds=60)
    breaker_env.command("trip", "--create", provider.key())
    with Remote(breaker_env, env={"SECOND_KEY": SECOND_KEY}) as curl:
        curl.made("a", URL=provider.url(), COPYPOSTFIELDS=chat("m", text="x" * 300), CUSTOMREQUEST="POST", CONNECTTIMEOUT_MS=600)
        curl.add(name="a")
        for _ in range(3):
            curl.turn()
        if how == "reset":
            curl.reset(name="a")
        curl.set("a", COPYPOSTFIELDS=chat("n"), CUSTOMREQUEST="PATCH")
        curl.set("a", CUSTOMREQUEST="POST")
        curl.until_messages(number=1)
        curl.remove(name="a")
    if how == "set":
        assert [r.body for r in second.provider.seen()] == [chat("openai/m", text="x" * 300).encode()]
    else:
        assert all(b"openai/" in r.body for r in second.provider.seen())


TRAILERS = r"""
#include <curl/curl.h>
#include <string.h>
static size_t give(char *buffer, size_t size, size_t count, void *at)
{
    static const char body[] = "{\"model\":\"m\"}";
    size_t left = strlen(body) - *(size_t *)at;
    memcpy(buffer, body + *(size_t *)at, left);
    *(size_t *)at += left;
    return size * count < left ? CURL_READFUNC_ABORT : left;
}
static int trail(struct curl_slist **lines, void *line)
{
    *lines = curl_slist_append(NULL, line);
    return CURL_TRAILERFUNC_OK;
}
int main(int count, char **arguments)
{
    CURL *easy = curl_easy_init();
    struct curl_slist *lines = curl_slist_append(NULL, "Transfer-Encoding: chunked");
    size_t at = 0;
    lines = curl_slist_append(lines, "Trailer: X-Late");
    curl_easy_setopt(easy, CURLOPT_URL, arguments[count - 2]);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, lines);
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, give);
    curl_easy_setopt(easy, CURLOPT_READDATA, &at);
    curl_easy_setopt(easy, CURLOPT_TRAILERFUNCTION, trail);
    curl_easy_setopt(easy, CURLOPT_TRAILERDATA, arguments[count - 1]);
    int result = curl_easy_perform(easy);
    curl_easy_cleanup(easy);
    curl_slist_free_all(lines);
    return result;
}
"""


def test_trailers_stay_at_home(breaker_env, compile_c, provider, providers):
    """Lines of the head that come behind the body."""
    second = Fallback("second", providers(), model=None, auth=None)
    breaker_env.configure(chain(provider, second), open_seconds=60)
    program = compile_c(TRAILERS, "-lcurl", name="trailers")
    for at in (provider, second.provider):
        assert breaker_env.run(program, provider.url(), f"X-Late: {CANARY}").returncode == 0
        assert (CANARY.encode() in at.seen()[0].raw) == (at is provider)
        breaker_env.command("trip", provider.key())
