"""Fallbacks of programs that do what few do: what cannot be taken elsewhere is not, and what the application set is its
own again."""

import socket
import struct

import pytest

from listeners import accepting
from fallbacks import Fallback, Remote, chain, chat, is_refused, reasons, target_of
from provider import Answer, Provider

BODY = chat("m", ("messages", ["x" * 3000]))
CHANGED = chat("openai/m", ("messages", ["x" * 3000]))


@pytest.fixture
def second(providers):
    return Fallback("second", providers())


@pytest.fixture
def third(providers):
    return Fallback("third", providers(), model=None)


def bodies(fallback):
    return [r.body for r in fallback.provider.seen()]


# --- places and identities -----------------------------------------------------------------------


def test_what_the_target_is_known_to_speak(breaker_env, provider, second, refusing):
    """HTTP/2 by prior knowledge. Nothing is known of the fallback, which speaks HTTP/1.1."""
    refusing(second)
    with Remote(breaker_env) as curl:
        done = curl.call(URL=provider.url(), POSTFIELDS=chat("m"), HTTP_VERSION=5)
    assert (done.status, done.url) == (200, second.url())


def test_a_referer_with_a_query_stays_home(breaker_env, provider, second, refusing):
    refusing(second)
    with Remote(breaker_env) as curl:
        curl.made("a", URL=provider.url(), POSTFIELDS=chat("m"), REFERER="http://app.example/page?token=s3cret")
        assert curl.perform(name="a").url == second.url()
        breaker_env.command("reset", provider.key())
        assert curl.perform(name="a").url == provider.url()
    assert b"s3cret" not in second.provider.seen()[0].raw
    assert provider.seen()[0].headers["referer"] == "http://app.example/page?token=s3cret"


def test_a_callback_for_tls_is_not_asked_for_another_host(authority, breaker_env, provider, third, refusing):
    """It may add the application's certificate: the next fallback, which needs no TLS, has the call."""
    with Provider(tls=authority.server()) as secure:
        second = Fallback("second", secure)
        refusing(second, third)
        with Remote(breaker_env) as curl:
            curl.made("a", URL=provider.url(), POSTFIELDS=chat("m"), CAINFO=str(authority.ca))
            assert curl.perform(name="a").url == second.url()
            curl.ssl_ctx(name="a")
            assert curl.perform(name="a").url == third.url()
    assert any("its TLS is set up by the application's own callback" in line for line in reasons(breaker_env))


@pytest.mark.parametrize("multi", [False, True], ids=["easy", "multi"])
def test_handshakes_that_are_cut_count_one_by_one(multi, breaker_env, third):
    """None of them shares its connection yet."""
    def cut(connection):
        with connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.recv(1 << 16)

    with accepting(cut) as server:
        key = f"127.0.0.1:{server.port}"
        breaker_env.configure(target_of(key, base=f"https://{key}/v1", fallback="third") + third.section(), open_seconds=60)
        with Remote(breaker_env) as curl:
            for name in "ab":
                curl.made(name, URL=f"https://{key}/v1/chat/completions", POSTFIELDS=chat("m"), SSL_VERIFYPEER=0)
            done = curl.perform_many(names=["a", "b"]) if multi else [curl.perform(name=name) for name in "ab"]
    assert [(one.status, one.url) for one in done] == [(200, third.url())] * 2
    assert breaker_env.calls(key)["failure"] == 2


# --- bodies that libcurl pulls -------------------------------------------------------------------


@pytest.fixture
def pulled(breaker_env, provider):
    """pulled(): the result of one call whose body comes by a callback."""

    def run(seek=True, multi=False, body=BODY, told=(), later=None, rewinds=True, **options):
        with Remote(breaker_env) as curl:
            curl.made("a", URL=provider.url(), **options)
            curl.source(name="a", body=body, seek=seek, piece=700)
            curl.misread(name="a", told=told, later=later, rewinds=rewinds)
            return curl.perform(name="a", multi=multi)

    return run


@pytest.mark.parametrize("multi", [False, True], ids=["easy", "multi"])
@pytest.mark.parametrize("seek", [True, False], ids=["seek", "no seek"])
def test_a_model_that_the_fallback_refuses_when_it_shows(seek, multi, breaker_env, providers, provider, third, refusing,
                                                         pulled):
    """Broken off there, it begins anew at the next; what cannot begin anew is refused."""
    plain = Fallback("plain", providers(), model=None)
    refusing(plain, third)
    breaker_env.command("trip", "--create", plain.key("m"))
    done = pulled(seek, multi)
    assert (provider.accepted, plain.provider.count()) == (0, 0)
    if seek:
        assert (done.status, done.url, bodies(third)) == (200, third.url(), [BODY.encode()])
    else:
        assert is_refused(done) and third.provider.accepted == 0
        assert any("plain: its breaker refuses; third: its body cannot be read twice" in r for r in reasons(breaker_env))


@pytest.mark.parametrize("multi", [False, True], ids=["easy", "multi"])
def test_a_refusal_behind_a_connect_that_failed(multi, breaker_env, providers, provider, configure, pulled):
    """The answer is of the fallback, which refused; its own host only was not there."""
    plain = Fallback("plain", providers(), model=None)
    configure(provider, plain)
    provider.refuse()
    breaker_env.command("trip", "--create", plain.key("m"))
    done = pulled(multi=multi)
    assert is_refused(done) and plain.key("m") in done.body, done
    assert (breaker_env.calls(provider.key())["failure"], plain.provider.count()) == (1, 0)


@pytest.mark.parametrize("model", ["*:openai/{model}", None], ids=["changed", "unchanged"])
def test_a_fallback_that_redirects(model, providers, provider, refusing, pulled):
    """The body that was read beforehand is sent again whole."""
    second = Fallback("second", providers(), model=model)
    second.provider.then(Answer(307, {"Location": "/api/v2/chat"}, b""))
    refusing(second)
    assert pulled(FOLLOWLOCATION=1).status == 200
    assert bodies(second) == [(CHANGED if model else BODY).encode()] * 2
    assert [r.target for r in second.provider.seen()] == ["/api/v1/chat/completions", "/api/v2/chat"]


ABORT, PAUSE = 0x10000000, 0x10000001
NOT_GIVEN = {"pauses": {"told": [PAUSE]}, "aborts": {"told": [ABORT]}, "aborts late": {"told": [None, ABORT]},
             "does not rewind": {"rewinds": False}}


@pytest.mark.parametrize("how", NOT_GIVEN)
def test_a_body_that_cannot_be_read_beforehand(how, breaker_env, provider, second, refusing, pulled):
    refusing(second)
    assert is_refused(pulled(**NOT_GIVEN[how]))
    assert (provider.accepted, second.provider.accepted) == (0, 0)
    assert any("second: its model would change, and is not known" in reason for reason in reasons(breaker_env))


@pytest.mark.parametrize("how", NOT_GIVEN)
def test_a_body_that_cannot_be_read_again(how, breaker_env, provider, second, tripped, pulled):
    """Its model showed while it was sent."""
    tripped(provider, second, key=provider.key("m"))
    what = NOT_GIVEN[how]
    reads = -(-len(BODY) // 700)
    assert is_refused(pulled(**{**what, **({"told": [None] * reads + what["told"]} if "told" in what else {})}))
    assert (provider.count(), second.provider.accepted) == (0, 0)
    assert any("second: its body cannot be read twice" in reason for reason in reasons(breaker_env))


def test_a_body_that_is_another_when_read_again(breaker_env, provider, second, third, tripped, pulled):
    """Its model showed while it was sent; there is none where it was. Unchanged it may go."""
    tripped(provider, second, third, key=provider.key("m"))
    other = chat("n").replace("model", "no")
    assert pulled(later=other).url == third.url()
    assert bodies(third) == [other.encode()] and second.provider.accepted == 0
    assert any("second: the model in its body cannot be replaced" in reason for reason in reasons(breaker_env))


@pytest.mark.parametrize("skipped", [2, 99999])
def test_a_replayed_body_that_begins_in_its_middle(skipped, breaker_env, provider, second, refusing, pulled):
    """Blanks before it; more than there is, which libcurl tells as an error."""
    refusing(second)
    done = pulled(body="  " + BODY, RESUME_FROM_LARGE=skipped)
    assert (done.code, bodies(second)) == ((0, [CHANGED.encode()]) if skipped == 2 else (26, []))
    assert provider.accepted == 0


def test_a_model_that_is_refused_behind_a_pass(breaker_env, provider, second, pulled):
    """The host lets it pass, its model does not."""
    breaker_env.configure(chain(provider, second, when_exhausted="pass")
                          + target_of(provider.key("m"), when_exhausted="503"), open_seconds=60)
    for key in (provider.key(), provider.key("m"), second.key()):
        breaker_env.command("trip", "--create", key)
    done = pulled()
    assert is_refused(done) and (provider.accepted, second.provider.accepted) == (0, 0)
    assert breaker_env.calls(provider.key("m"))["refused"] == 1
    breaker_env.command("reset", provider.key("m"))
    assert pulled().url == provider.url() and [r.body for r in provider.seen()] == [BODY.encode()]


# --- forms ---------------------------------------------------------------------------------------

AUDIO = "/v1/audio/transcriptions"
PARTS = [["model", "whisper-1", None]]


def test_the_model_of_a_copied_form_is_not_replaced(breaker_env, provider, second, third, refusing):
    """The copy's parts are libcurl's own."""
    refusing(second, third)
    with Remote(breaker_env) as curl:
        curl.made("a", URL=provider.url(AUDIO))
        curl.mime(name="a", parts=PARTS)
        curl.duplicate(name="a", copy="b")
        assert curl.perform(name="a").url == second.url("/audio/transcriptions")
        assert curl.perform(name="b").url == third.url("/audio/transcriptions")
    assert b"\r\n\r\nopenai/whisper-1\r\n" in bodies(second)[0] and b"\r\n\r\nwhisper-1\r\n" in bodies(third)[0]
    assert any("second: the model in its form cannot be replaced" in reason for reason in reasons(breaker_env))


@pytest.mark.parametrize("later", [{"mime": PARTS}, {"form": [["model", "whisper-1"]]}], ids=["mime", "form"])
def test_a_form_that_is_set_while_the_fallback_answers(later, breaker_env, provider, second, refusing):
    """It is what the next call sends, as it would without us."""
    refusing(second)
    with Remote(breaker_env) as curl:
        curl.made("a", URL=provider.url(AUDIO), POSTFIELDS=chat("whisper-1"))
        curl.in_write(name="a", options=later)
        assert curl.perform(name="a").status == 200
        breaker_env.command("reset", provider.key())
        assert curl.perform(name="a").url == provider.url(AUDIO)
    assert bodies(second) == [chat("openai/whisper-1").encode()]
    assert b'name="model"\r\n\r\nwhisper-1\r\n' in provider.seen()[0].body
