"""Issue 4, right when 6: after a call that went to the fallback the handle is the application's again. Told by bytes: what
the primary gets of the next call, nothing being set anew, is what it gets of a first call without us."""

import re
import socket
import threading
import urllib.parse

import pytest

from listeners import Acceptor
from fallbacks import GNUTLS, OPENSSL, PLAIN, SECOND_KEY, Bytes, Fallback, Remote, chain, chat, target_of
from provider import Answer, wait_until

BODY = chat("m")
KEY = ["Authorization: Bearer sk-0f-the-primary"]


@pytest.fixture
def second(providers):
    fallback = Fallback("second", providers())
    fallback.provider.answer(PLAIN)
    return fallback


@pytest.fixture
def refusing(breaker_env, provider, second):
    """The primary refuses until it is reset."""
    breaker_env.configure(chain(provider, second), open_seconds=60)
    breaker_env.command("trip", "--create", provider.key())
    return lambda: breaker_env.command("reset", provider.key())


def same_every_time(raw):
    """Without what libcurl makes anew for each request: the boundary of a form, the nonces of Digest."""
    boundary = re.search(rb"boundary=(\S+)", raw)
    if boundary:
        raw = raw.replace(boundary[1], b"BOUNDARY")
    return re.sub(rb'(cnonce|response)="[^"]*"', rb'\1="..."', raw)


def requests_of(provider):
    """What it got, in order, and forgets."""
    got = [same_every_time(request.raw) for request in provider.seen()]
    provider.clear()
    return got


NETRC = "machine 127.0.0.1 login app password s3cret\ndefault login other password s3cret\n"
COOKIES = "127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\ts3cret\nlocalhost\tFALSE\t/\tFALSE\t0\tsession\tother\n"
# What a program sets beside URL and body; {directory} in a value: of the test.
SETTINGS = {
    "nothing": {},
    "headers": {"HTTPHEADER": [*KEY, "Content-Type: application/json", "X-Empty;", "Accept:", "Expect:"]},
    "a host of its own": {"HTTPHEADER": ["Host: api.example", *KEY]},
    "USERPWD": {"USERPWD": "app:s3cret"},
    "USERNAME and PASSWORD": {"USERNAME": "app", "PASSWORD": "s3cret"},
    "digest": {"USERPWD": "app:s3cret", "HTTPAUTH": 2},
    "any": {"USERPWD": "app:s3cret", "HTTPAUTH": -17},
    "bearer": {"XOAUTH2_BEARER": "s3cret", "HTTPAUTH": 64},
    "netrc": {"NETRC": 2, "NETRC_FILE": "{directory}/netrc"},
    "netrc optional": {"NETRC": 1, "NETRC_FILE": "{directory}/netrc"},
    "cookie": {"COOKIE": "session=s3cret"},
    "cookie file": {"COOKIEFILE": "{directory}/cookies"},
    "cookie list": {"COOKIEFILE": "", "COOKIELIST": "Set-Cookie: session=s3cret; domain=127.0.0.1"},
    "custom request": {"CUSTOMREQUEST": "POST"},
    "user agent and referer": {"USERAGENT": "app/1", "REFERER": "http://a.example/", "AUTOREFERER": 1},
    "encodings": {"ACCEPT_ENCODING": "", "TRANSFER_ENCODING": 1},
    "http 1.0": {"HTTP_VERSION": 1},
    "a range": {"RANGE": "0-"},
    "chunked": {"HTTPHEADER": ["Transfer-Encoding: chunked", *KEY]},
    "continue": {"HTTPHEADER": ["Expect: 100-continue", *KEY]},
    "protocols": {"PROTOCOLS_STR": "http", "REDIR_PROTOCOLS_STR": "http"},
    "follow": {"FOLLOWLOCATION": 1, "UNRESTRICTED_AUTH": 1, "USERPWD": "app:s3cret"},
    "separate headers": {"HEADEROPT": 1, "PROXYHEADER": ["Proxy-Authorization: Basic eDp5"], "HTTPHEADER": KEY},
    "resolve": {"RESOLVE": ["localhost:1:127.0.0.9"], "CONNECT_TO": ["a.example:80:127.0.0.1:1"]},
    "no proxy": {"PROXY": "", "NOPROXY": "*"},
}
BODIES = {
    "POSTFIELDS": lambda curl: curl.set("a", POSTFIELDS=BODY),
    "POSTFIELDS with a size": lambda curl: curl.set("a", POSTFIELDS=BODY + "more", POSTFIELDSIZE=len(BODY)),
    "POSTFIELDS with a large size": lambda curl: curl.set("a", POSTFIELDSIZE_LARGE=len(BODY), POSTFIELDS=BODY + "more"),
    "COPYPOSTFIELDS": lambda curl: curl.set("a", COPYPOSTFIELDS=BODY),
    "COPYPOSTFIELDS with a size": lambda curl: curl.set("a", POSTFIELDSIZE=len(BODY), COPYPOSTFIELDS=BODY + "more"),
    "COPYPOSTFIELDS with NUL": lambda curl: curl.set("a", POSTFIELDSIZE=len(BODY) + 2, COPYPOSTFIELDS=BODY + " \0"),
    "READFUNCTION": lambda curl: curl.source(name="a", body=BODY, seek=True),
    "UPLOAD": lambda curl: curl.source(name="a", body=BODY, seek=True, way="UPLOAD"),
    "chunked": lambda curl: curl.source(name="a", body=BODY, seek=True, sized=False),
}


def settings_in(directory, options):
    (directory / "netrc").write_text(NETRC)
    (directory / "cookies").write_text(COOKIES)
    return {name: value.format(directory=directory) if isinstance(value, str) else value
            for name, value in options.items()}


def first_call_without_us(breaker_env, provider, prepare, library=OPENSSL):
    with Remote(breaker_env, library, bare=True) as curl:
        prepare(curl)
        assert curl.perform(name="a").status == 200
    return requests_of(provider)


def away_and_home(breaker_env, provider, second, refusing, prepare, library=OPENSSL, perform=None, **before):
    """Two calls at the fallback, then two at the primary: the first has the bytes that it has without us."""
    original = first_call_without_us(breaker_env, provider, prepare, library)
    perform = perform or (lambda curl: curl.perform(name="a"))
    with Remote(breaker_env, library) as curl:
        prepare(curl)
        theirs = curl.theirs(name="a")
        for number in (1, 2):
            if before:
                curl.tell(**before)
            done = perform(curl)
            assert (done.status, done.url.split("?")[0]) == (200, second.url())
            assert (provider.accepted_since(), second.provider.count()) == (0, number)
            assert curl.theirs(name="a") == theirs
        refusing()
        if before:
            curl.tell(**before)
        done = perform(curl)
        assert done.status == 200 and done.primary_port == provider.port
        assert requests_of(provider) == original
        assert curl.theirs(name="a") == theirs
    assert second.provider.count() == 2


@pytest.fixture(autouse=True)
def counting(provider):
    """Connections since the test last asked."""
    provider.asked = 0

    def since():
        before, provider.asked = provider.asked, provider.accepted
        return provider.accepted - before

    provider.accepted_since = since


def made(options, provider, target="/v1/chat/completions", **members):
    def prepare(curl):
        provider.accepted_since()
        curl.made("a", URL=provider.url(target), POSTFIELDS=BODY, **members, **options)

    return prepare


@pytest.mark.parametrize("library", [OPENSSL, GNUTLS])
@pytest.mark.parametrize("setting", SETTINGS)
def test_options(setting, library, breaker_env, provider, second, refusing, tmp_path):
    options = settings_in(tmp_path, SETTINGS[setting])
    if setting in ("digest", "any"):
        provider.answer(Answer(200, digest=True))
    away_and_home(breaker_env, provider, second, refusing, made(options, provider), library)
    for request in second.provider.seen():
        assert b"s3cret" not in request.raw and b"sk-0f-the-primary" not in request.raw
        assert request.target == "/api/v1/chat/completions" and request.body == chat("openai/m").encode()


@pytest.mark.parametrize("setting", SETTINGS)
def test_options_of_a_handle_that_has_been_used(setting, breaker_env, provider, second, refusing, tmp_path):
    """What libcurl remembers of the primary (what it asks for, cookies) is not lost elsewhere: the third call has the bytes
    of a second one without us."""
    options = settings_in(tmp_path, SETTINGS[setting])
    provider.answer(Answer(200, {"Set-Cookie": "from=primary"}, digest=setting in ("digest", "any")))
    prepare = made(options, provider)
    refusing()
    with Remote(breaker_env, bare=True) as curl:
        prepare(curl)
        assert [curl.perform(name="a").status for _ in range(2)] == [200, 200]
    original = requests_of(provider)
    with Remote(breaker_env) as curl:
        prepare(curl)
        assert curl.perform(name="a").status == 200
        breaker_env.command("trip", provider.key())
        done = curl.perform(name="a")
        assert (done.status, done.url) == (200, second.url())
        refusing()
        assert curl.perform(name="a").status == 200
    assert requests_of(provider) == original and second.provider.count() == 1


@pytest.mark.parametrize("option", ["REQUEST_TARGET", "CONNECT_ONLY"])
def test_options_that_keep_a_call_here(option, breaker_env, provider, second, refusing):
    """A target of the application's own is no URL of ours to rewrite; a bare connection is no call."""
    value = {"REQUEST_TARGET": "/v1/chat/completions?own", "CONNECT_ONLY": 1}[option]
    with Remote(breaker_env) as curl:
        done = curl.call(URL=provider.url(), POSTFIELDS=BODY, **{option: value})
    assert (done.code, done.status) == ((7, 0) if option == "CONNECT_ONLY" else (0, 503))
    assert (provider.accepted, second.provider.accepted) == (0, 0)


# What the application says of the way to its own URL: nothing of it is meant for another one.
PLACES = {
    "CONNECT_TO everything": lambda primary, directory: {"CONNECT_TO": [f"::127.0.0.1:{primary.port}"]},
    "CONNECT_TO its own": lambda primary, directory: {
        "URL": "http://named.example/v1/chat/completions", "CONNECT_TO": [f"named.example:80:127.0.0.1:{primary.port}"]},
    "RESOLVE": lambda primary, directory: {
        "URL": f"http://named.example:{primary.port}/v1/chat/completions",
        "RESOLVE": [f"named.example:{primary.port}:127.0.0.1"]},
    "PORT": lambda primary, directory: {"URL": "http://127.0.0.1/v1/chat/completions", "PORT": primary.port},
    "UNIX_SOCKET_PATH": lambda primary, directory: {
        "URL": "http://named.example/v1/chat/completions", "UNIX_SOCKET_PATH": str(directory / "door")},
}


@pytest.fixture
def door(provider, tmp_path):
    """A socket in the file system that the provider serves, too."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "door"))
    listener.listen(16)
    with Acceptor(listener, provider.take):
        yield


@pytest.mark.parametrize("place", PLACES)
def test_the_way_to_its_own_url_leads_nowhere_else(place, door, breaker_env, provider, second, tmp_path):
    options = {"URL": provider.url(), "POSTFIELDS": BODY, "HTTPHEADER": KEY, **PLACES[place](provider, tmp_path)}
    parts = urllib.parse.urlsplit(options["URL"])
    port = options.get("PORT", parts.port or 80)
    host = f"{parts.hostname}:{port}"
    breaker_env.configure(target_of(host, fallback="second", base=f"http://{host}/v1") + second.section(), open_seconds=60)

    def prepare(curl):
        curl.made("a", **options)

    original = first_call_without_us(breaker_env, provider, prepare)
    breaker_env.command("trip", "--create", host)
    with Remote(breaker_env) as curl:
        prepare(curl)
        for _ in range(2):
            assert curl.perform(name="a").url == second.url()
        assert (provider.count(), second.provider.count()) == (0, 2)
        breaker_env.command("reset", host)
        assert curl.perform(name="a").status == 200
    assert requests_of(provider) == original


@pytest.mark.parametrize("way", ["easy", "perform", "socket"])
@pytest.mark.parametrize("body", BODIES)
def test_bodies(body, way, breaker_env, provider, second, refusing):
    def prepare(curl):
        provider.accepted_since()
        curl.made("a", URL=provider.url(), HTTPHEADER=KEY)
        BODIES[body](curl)

    perform = None if way == "easy" else lambda curl: curl.perform_many(names=["a"], way=way)[0]
    again = {"do": "rewind", "name": "a"} if body in ("READFUNCTION", "UPLOAD", "chunked") else {}
    away_and_home(breaker_env, provider, second, refusing, prepare, perform=perform, **again)


@pytest.mark.parametrize("target", ["/v1/chat/completions?key=s3cret&a=b", "/v1/chat/completions?api-key=s3cret#f",
                                    "/v1/./chat/completions?", "/v1/chat/completions?q=%7e%20"])
def test_urls(target, breaker_env, provider, second, refusing):
    away_and_home(breaker_env, provider, second, refusing, made({}, provider, target, HTTPHEADER=KEY))


def test_an_url_with_a_password(breaker_env, provider, second, refusing):
    url = provider.url().replace("//", "//app:s3cret@")
    away_and_home(breaker_env, provider, second, refusing,
                  lambda curl: (provider.accepted_since(), curl.made("a", URL=url, POSTFIELDS=BODY)))


def test_an_url_in_parts(breaker_env, provider, second, refusing):
    def prepare(curl):
        provider.accepted_since()
        curl.made("a", POSTFIELDS=BODY, HTTPHEADER=KEY)
        curl.url_parts(name="a", url=provider.url("/v1/chat/completions?key=s3cret"))

    away_and_home(breaker_env, provider, second, refusing, prepare)


@pytest.mark.parametrize("model", [None, "*:large-{model}"])
@pytest.mark.parametrize("way", ["easy", "perform", "socket"])
def test_a_form(way, model, breaker_env, provider, providers):
    second = Fallback("second", providers(), model=model)
    breaker_env.configure(chain(provider, second), open_seconds=60)
    breaker_env.command("trip", "--create", provider.key())

    def prepare(curl):
        provider.accepted_since()
        curl.made("a", URL=provider.url("/v1/audio/transcriptions"), HTTPHEADER=KEY)
        curl.mime(name="a", parts=[["file", "sound\0", "a.wav"], ["model", "whisper-1", None]])

    original = first_call_without_us(breaker_env, provider, prepare)
    with Remote(breaker_env) as curl:
        prepare(curl)

        def perform():
            return curl.perform(name="a") if way == "easy" else curl.perform_many(names=["a"], way=way)[0]

        assert perform().url == second.url("/audio/transcriptions")
        breaker_env.command("reset", provider.key())
        assert perform().status == 200
    assert requests_of(provider) == original and second.provider.count() == 1
    assert (b"large-whisper-1" in second.provider.seen()[0].body) == bool(model)


@pytest.mark.parametrize("library", [OPENSSL, GNUTLS])
def test_after_a_failover(library, breaker_env, provider, second):
    """The same for a call that was sent elsewhere in its middle."""
    prepare = made(settings_with_everything(), provider, "/v1/chat/completions?key=s3cret")
    original = first_call_without_us(breaker_env, provider, prepare, library)
    breaker_env.configure(chain(provider, second), open_seconds=60)
    provider.refuse()
    with Remote(breaker_env, library) as curl:
        prepare(curl)
        theirs = curl.theirs(name="a")
        for _ in range(2):
            assert curl.perform(name="a").url == second.url()
        provider.listen()
        assert curl.perform(name="a").status == 200
        assert curl.theirs(name="a") == theirs
    assert requests_of(provider) == original and second.provider.count() == 2
    assert all(b"s3cret" not in r.raw and b"sk-0f-the-primary" not in r.raw for r in second.provider.seen())


def settings_with_everything():
    return {"HTTPHEADER": [*KEY, "X-One: 1", "OpenAI-Project: s3cret"], "USERPWD": "app:s3cret", "COOKIE": "s=s3cret",
            "USERAGENT": "app/1", "CUSTOMREQUEST": "POST"}


def test_cookies_of_the_fallback_stay_there(breaker_env, provider, second, refusing):
    """And what the primary set before comes back to it alone."""
    second.provider.answer(Answer(200, {"Set-Cookie": "theirs=fallback; path=/"}))
    provider.answer(Answer(200, {"Set-Cookie": "mine=s3cret; path=/"}))
    refusing()
    with Remote(breaker_env) as curl:
        curl.made("a", URL=provider.url(), POSTFIELDS=BODY, COOKIEFILE="")
        assert curl.perform(name="a").status == 200
        breaker_env.command("trip", provider.key())
        for _ in range(2):
            assert curl.perform(name="a").url == second.url()
        refusing()
        assert curl.perform(name="a").status == 200
    first, last = map(Bytes, requests_of(provider))
    assert first.values("cookie") == [] and last.values("cookie") == [b"mine=s3cret"]
    assert all(b"s3cret" not in request.raw for request in second.provider.seen())


# --- handles that are copied, changed, reset -----------------------------------------------------


@pytest.fixture
def everything(provider):
    return made(settings_with_everything(), provider, "/v1/chat/completions?key=s3cret")


def test_a_copy_of_a_rerouted_handle(breaker_env, provider, second, refusing, everything):
    original = first_call_without_us(breaker_env, provider, everything)
    with Remote(breaker_env) as curl:
        everything(curl)
        assert curl.perform(name="a").url == second.url()
        curl.duplicate(name="a", copy="b")
        assert curl.perform(name="b").url == second.url()
        refusing()
        curl.duplicate(name="b", copy="c")
        for name in ("c", "b", "a"):
            assert curl.perform(name=name).status == 200
    assert requests_of(provider) == original * 3 and second.provider.count() == 2


def test_a_copy_made_while_it_is_elsewhere(breaker_env, provider, second, refusing, everything):
    """In a callback the handle has the fallback's URL and headers: its copy must not."""
    original = first_call_without_us(breaker_env, provider, everything)
    with Remote(breaker_env) as curl:
        everything(curl)
        curl.in_write(name="a", options={"duplicate": 1})
        assert curl.perform(name="a").url == second.url()
        curl.take_copy(name="a", copy="b")
        assert curl.perform(name="b").url == second.url()
        refusing()
        for name in ("b", "a"):
            assert curl.perform(name=name).status == 200
    assert requests_of(provider) == original * 2 and second.provider.count() == 2


@pytest.mark.parametrize("multi", [False, True], ids=["easy", "multi"])
def test_what_is_set_meanwhile_is_kept_for_the_next_call(multi, breaker_env, provider, second, refusing, everything):
    body = chat("n", stream=False)
    changed = {"HTTPHEADER": ["Authorization: Bearer other", "X-Two: 2"], "COPYPOSTFIELDS": body, "USERAGENT": "app/2",
               "URL": provider.url("/v1/embeddings?key=other"), "USERPWD": None, "COOKIE": "s=other"}

    def prepare(curl):
        everything(curl)
        curl.set("a", **changed)

    def perform(curl):
        return curl.perform(name="a", multi=multi)

    original = first_call_without_us(breaker_env, provider, prepare)
    with Remote(breaker_env) as curl:
        everything(curl)
        curl.in_write(name="a", options=changed)
        assert perform(curl).url.split("?")[0] in (second.url(), provider.url("/v1/embeddings"))
        assert [r.target for r in second.provider.seen()] == ["/api/v1/chat/completions"]
        assert perform(curl).url == second.url("/embeddings")
        refusing()
        assert perform(curl).status == 200
    assert requests_of(provider) == original and second.provider.count() == 2
    assert b"Bearer other" not in second.provider.seen()[1].raw and second.provider.seen()[1].model == "openai/n"


def test_a_reset_handle_is_a_new_one(breaker_env, provider, second, refusing, everything):
    def prepare(curl):
        curl.made("a", URL=provider.url(), POSTFIELDS=BODY)

    original = first_call_without_us(breaker_env, provider, prepare)
    with Remote(breaker_env) as curl:
        everything(curl)
        assert curl.perform(name="a").url == second.url()
        curl.reset(name="a")
        curl.set("a", URL=provider.url(), POSTFIELDS=BODY)
        assert curl.perform(name="a").url == second.url()
        refusing()
        assert curl.perform(name="a").status == 200
    assert requests_of(provider) == original


def test_a_handle_taken_out_while_it_is_elsewhere(breaker_env, provider, second, refusing, everything):
    """Removed in the middle of its answer; added again it goes where it is told then."""
    original = first_call_without_us(breaker_env, provider, everything)
    gate = threading.Event()
    second.provider.answer(Answer(200, body_gate=gate))
    with Remote(breaker_env) as curl:
        everything(curl)
        curl.add(name="a")
        wait_until(lambda: curl.turn() and second.provider.count(), what="the call is at the fallback")
        curl.remove(name="a")
        gate.set()
        refusing()
        done = curl.perform_many(names=["a"])[0]
        assert done.status == 200 and done.url.startswith(provider.url("/v1"))
        assert curl.perform(name="a").status == 200
    assert requests_of(provider) == original * 2
    assert SECOND_KEY.encode() not in b"".join(original)
