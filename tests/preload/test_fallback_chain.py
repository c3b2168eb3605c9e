"""Issue 4, right when 3 and 4: which fallback of a chain a call goes to, what it gets when there is none, how the primary
comes back, and that nothing of it takes longer than its caller allows."""

import threading
import time

import pytest

from fallbacks import (PLAIN, SECOND_KEY, Fallback, Remote, addressed, chain, chat, is_refused, reasons, target,
                       target_of)
from provider import Answer, wait_until
from sock_programs import black_hole
from support import PYTHON

ENVIRONMENT = {"SECOND_KEY": SECOND_KEY}
BODY = chat("m")


@pytest.fixture
def second(providers):
    return Fallback("second", providers())


@pytest.fixture
def third(providers):
    return Fallback("third", providers(), model=None, auth=None, headers=())


@pytest.fixture
def call(breaker_env, provider):
    """A call of a process of its own."""

    def call_it(env=ENVIRONMENT, multi=False, **options):
        with Remote(breaker_env, env=env) as curl:
            return curl.once(options={"URL": provider.url(), "POSTFIELDS": BODY, **options}, multi=multi)

    return call_it


@pytest.fixture
def hole():
    """HOST:PORT, to which connects hang."""
    with black_hole() as port:
        yield f"127.0.0.1:{port}"


def section(name, base):
    return f"[fallback {name}]\nbase = {base}\n"


# --- the order -----------------------------------------------------------------------------------


@pytest.mark.parametrize("multi", [False, True], ids=["easy", "multi"])
@pytest.mark.parametrize("how", ["dead", "failing"])
def test_the_first_two_of_three_are_dead(how, multi, breaker_env, curl, provider, providers, second, third):
    """The primary, then two fallbacks: once each of them is known to be dead no call knocks there."""
    middle = Fallback("middle", providers())
    breaker_env.configure(chain(provider, second, middle, third), open_seconds=60)
    for dead in (second.provider, middle.provider):
        dead.refuse()
    breaker_env.command("trip", "--create", provider.key())
    if how == "failing":
        for fallback in (second, middle):
            fallback.provider.listen()
            breaker_env.command("trip", "--create", fallback.key("openai/m"))
    with Remote(breaker_env) as remote:
        remote.made("a", URL=provider.url(), POSTFIELDS=BODY)
        opened = []
        for _ in range(8):
            done = remote.perform(name="a", multi=multi)
            assert (done.code, done.status, done.url) == (0, 200, third.url())
            opened += done.opened
    assert third.provider.count() == 8 and provider.accepted == 0
    for fallback in (second, middle):
        tried = 5 if how == "dead" else 0
        assert opened.count(fallback.provider.port) >= tried  # localhost may have two addresses
        assert fallback.provider.accepted == 0
        assert breaker_env.calls(fallback.key())["failure"] == tried
        assert breaker_env.calls(fallback.key("openai/m"))["refused"] == 0
    assert breaker_env.calls(provider.key())["rerouted"] == 8


@pytest.mark.parametrize("failover", ["connect", "off"])
def test_all_are_dead(failover, breaker_env, call, provider, second, third):
    breaker_env.configure(chain(provider, second, third, failover=failover), open_seconds=60)
    for key in (provider.key(), second.key(), third.key("m")):
        breaker_env.command("trip", "--create", key)
    for one in (provider, second.provider, third.provider):
        one.refuse()
    done = call()
    assert is_refused(done) and done.url == provider.url() and done.opened.count(provider.port) == 0
    assert f"X-Breaker-Key: {provider.key()}" in done.head
    assert breaker_env.calls(provider.key())["refused"] == 1
    assert breaker_env.calls(provider.key())["rerouted"] == 0


def test_all_die_in_one_call(breaker_env, call, provider, second, third):
    """Nothing is known of anybody yet: each is tried once, in order, and the call ends as a connect that fails."""
    breaker_env.configure(chain(provider, second, third), open_seconds=60)
    for one in (provider, second.provider, third.provider):
        one.refuse()
    done = call()
    assert (done.code, done.status) == (7, 0)
    ports = list(dict.fromkeys(port for port in done.opened if port in (
        provider.port, second.provider.port, third.provider.port)))
    assert ports == [provider.port, second.provider.port, third.provider.port]
    for key in (provider.key(), second.key(), third.key()):
        assert breaker_env.calls(key)["failure"] == 1


@pytest.mark.parametrize("key", ["host", "model"])
def test_all_refuse_and_the_call_passes(key, breaker_env, call, provider, second, third, refusing):
    """when_exhausted = pass: to the primary, as it was."""
    refusing(second, third, key=provider.key("m" if key == "model" else None), when_exhausted="pass")
    for fallback in (second, third):
        breaker_env.command("trip", "--create", fallback.key())
    done = call(HTTPHEADER=["Authorization: Bearer own"])
    assert (done.status, done.url) == (200, provider.url())
    assert [(r.headers["authorization"], r.body) for r in provider.seen()] == [("Bearer own", BODY.encode())]
    breaker_env.command("reset", second.key())
    assert call().url == second.url()
    assert provider.count() == 1


@pytest.mark.parametrize("exhausted", ["503", "pass"])
@pytest.mark.parametrize("key", ["host", "model"])
def test_a_hard_stop(key, exhausted, breaker_env, call, provider, second, refusing):
    """allow_fallbacks = false, whatever else is set."""
    refusing(second, key=provider.key("m" if key == "model" else None), allow_fallbacks="false", when_exhausted=exhausted)
    for multi in (False, True):
        assert is_refused(call(multi=multi))
    assert (provider.accepted, second.provider.accepted) == (0, 0)


def test_a_hard_stop_does_not_fail_over(breaker_env, call, provider, second):
    breaker_env.configure(chain(provider, second, allow_fallbacks="false"), open_seconds=60)
    provider.refuse()
    assert call().code == 7 and second.provider.accepted == 0


def test_a_stop_of_one_model(breaker_env, curl, provider, second):
    """A target of a model has a say of its own."""
    breaker_env.configure(chain(provider, second) + f"[target {provider.key('stopped')}]\nallow_fallbacks = false\n",
                          open_seconds=60)
    breaker_env.command("trip", "--create", provider.key())
    assert curl(provider.url(), "stopped", env=ENVIRONMENT).refused
    assert curl(provider.url(), "m", env=ENVIRONMENT).status == 200


def test_forced_open_uses_the_fallback(breaker_env, call, provider, second):
    breaker_env.configure(chain(provider, second))
    breaker_env.command("force", "--create", "open", provider.key("m"))
    assert call().url == second.url()
    breaker_env.command("force", "closed", provider.key("m"))
    assert call().url == provider.url()


def test_one_model_goes_and_the_others_stay(breaker_env, provider, second, refusing):
    refusing(second, key=provider.key("m"))
    with Remote(breaker_env) as curl:
        urls = [curl.call(n, URL=provider.url(), POSTFIELDS=chat(n)).url for n in ("m", "n", "m", "n")]
    assert urls == [second.url(), provider.url()] * 2
    assert [r.model for r in provider.seen()] == ["n", "n"]
    assert [r.model for r in second.provider.seen()] == ["openai/m"] * 2


# --- what the fallbacks do counts for them -------------------------------------------------------


@pytest.mark.parametrize("multi", [False, True], ids=["easy", "multi"])
def test_a_fallback_that_fails_has_a_breaker_of_its_own(multi, breaker_env, call, provider, second, third, refusing):
    refusing(second, third)
    second.provider.answer(Answer(500))
    got = [call(multi=multi) for _ in range(7)]
    assert [(r.status, r.url) for r in got] == [(500, second.url())] * 5 + [(200, third.url())] * 2
    assert breaker_env.state(second.key("openai/m")) == "open" and breaker_env.state(second.key()) == "closed"
    assert breaker_env.calls(second.key("openai/m"))["failure"] == 5
    assert (second.provider.count(), third.provider.count(), provider.count()) == (5, 2, 0)
    assert breaker_env.calls(third.key("m"))["success"] == 2
    assert breaker_env.calls(provider.key())["rerouted"] == 7


def test_a_broken_stream_at_a_fallback_counts_there(breaker_env, call, provider, second, refusing):
    refusing(second)
    second.provider.answer(Answer(200, close="mid-body", body=b"x" * 1000))
    assert call().code == 18
    assert breaker_env.calls(second.key("openai/m"))["failure"] == 1
    assert breaker_env.calls(provider.key("m"))["failure"] == 0


def test_the_probe_of_a_fallback_is_a_rerouted_call(breaker_env, call, provider, second, third):
    breaker_env.configure(chain(provider, second, third), open_seconds=60)
    breaker_env.command("force", "--create", "open", provider.key())
    breaker_env.command("trip", "--create", second.key())
    assert call().url == third.url()
    breaker_env.make_due(second.key())
    assert call().url == second.url()
    assert breaker_env.state(second.key()) == "closed"


def test_status_shows_what_went_where(breaker_env, call, provider, second, third, refusing):
    refusing(second, third)
    for _ in range(3):
        call()
    breaker_env.command("trip", second.key())
    call()
    assert breaker_env.calls(provider.key())["rerouted"] == 4
    row = next(b for b in breaker_env.status()["breakers"] if b["key"] == provider.key())
    assert row["rerouted_to"] == [{"key": second.key("openai/m"), "count": 3}, {"key": third.key("m"), "count": 1}]
    assert f"{second.key('openai/m')} 3, {third.key('m')} 1\n" in breaker_env.command("status").stdout


# --- fallbacks that are none ---------------------------------------------------------------------


def test_the_target_itself_is_skipped(breaker_env, call, provider, third, refusing):
    """Named under its own address it would be called in the middle of its outage."""
    itself = Fallback("itself", provider, host="127.0.0.1", path="/v1", model=None)
    refusing(itself, third)
    assert call().url == third.url() and provider.accepted == 0
    refusing(itself)
    assert is_refused(call()) and provider.accepted == 0


def test_another_model_of_the_target_is_no_cycle(breaker_env, call, provider, refusing):
    """Same host, its own key: the model's breaker is open, not the host's. Its credentials are its own still."""
    smaller = Fallback("smaller", provider, host="127.0.0.1", path="/v1", model="*:small", auth=None, headers=())
    refusing(smaller, key=provider.key("m"))
    done = call(HTTPHEADER=["Authorization: Bearer own"])
    assert (done.status, done.url) == (200, provider.url())
    assert [(r.model, r.headers.get("authorization")) for r in provider.seen()] == [("small", "Bearer own")]
    breaker_env.command("trip", provider.key())
    assert is_refused(call()) and provider.count() == 1


@pytest.mark.parametrize("value", [None, ""], ids=["unset", "empty"])
def test_a_variable_that_is_not_set(value, breaker_env, call, provider, second, third, refusing):
    """Half a header is none: the next one is used, and the log says why."""
    second.headers = ("X-Other: ${SURELY_NOT_SET}",)
    refusing(second, third)
    env = {**ENVIRONMENT, **({} if value is None else {"SURELY_NOT_SET": value})}
    done = call(env=env)
    assert (done.status, done.url) == (200, third.url()) and second.provider.accepted == 0
    assert any("second" in reason and "not set" in reason for reason in reasons(breaker_env))
    assert call(env={**ENVIRONMENT, "SURELY_NOT_SET": "it is"}).url == second.url()
    assert second.provider.seen()[0].headers["x-other"] == "it is"


def test_a_variable_of_two_lines_is_none(breaker_env, call, provider, second, third, refusing):
    refusing(second, third)
    assert call(env={"SECOND_KEY": "one\r\nX-Injected: two"}).url == third.url()
    assert second.provider.accepted == 0


@pytest.mark.parametrize("bad", ["base = localhost:1/v1", "base = ftp://localhost/v1", "auth = no colon", "base ="])
def test_a_section_that_is_wrong_is_left_out(bad, breaker_env, call, provider, third):
    """Never half of it; all else of the file is in force."""
    wrong = section("wrong", "http://localhost:1/v1") if bad.startswith("auth") else "[fallback wrong]\n"
    breaker_env.configure(target(provider, ["wrong", "absent", "third"]) + wrong + bad + "\n" + third.section(),
                          open_seconds=60)
    breaker_env.command("trip", "--create", provider.key())
    assert call().url == third.url()


def test_chains_do_not_go_on(breaker_env, call, provider, second, third):
    """A fallback's host may be a target with fallbacks of its own: they are for its own calls."""
    back = Fallback("back", provider, host="127.0.0.1", path="/v1", model=None)
    breaker_env.configure(chain(provider, second) + target(second.provider, ["third", "back"], "/api/v1", "localhost") +
                          third.section() + back.section(), open_seconds=60)
    for key in (provider.key(), second.key()):
        breaker_env.command("trip", "--create", key)
    assert is_refused(call())
    assert (provider.accepted, third.provider.accepted) == (0, 0)


def test_a_fallback_whose_mode_is_off_is_there_all_the_same(breaker_env, call, provider, second):
    breaker_env.configure(chain(provider, second) + f"[target {second.key()}]\nmode = off\n", open_seconds=60)
    breaker_env.command("trip", "--create", provider.key())
    assert call().url == second.url()


def test_a_call_over_tls_does_not_go_on_in_clear_text(breaker_env, authority, tls_provider, third):
    """192.0.2.1 is nobody's: were it tried, the call would hang until its time-out."""
    far = section("far", "http://192.0.2.1/v1")
    breaker_env.configure(target(tls_provider, ["far", "third"], name="localhost") + far + third.section(), open_seconds=60)
    breaker_env.command("trip", "--create", tls_provider.key(name="localhost"))
    with Remote(breaker_env) as curl:
        done = curl.call(URL=tls_provider.url(name="localhost"), POSTFIELDS=BODY, CAINFO=str(authority.ca), TIMEOUT_MS=5000)
    assert (done.code, done.status, done.url) == (0, 200, third.url())  # on this machine there is nobody to listen
    assert any("far" in reason and "clear" in reason for reason in reasons(breaker_env))


# --- what the application says of connections, at the fallback -----------------------------------


# What an application may have said of its own server's certificate.
TRUST = {"nothing": {}, "no peer": {"SSL_VERIFYPEER": 0}, "no host": {"SSL_VERIFYHOST": 0},
         "neither": {"SSL_VERIFYPEER": 0, "SSL_VERIFYHOST": 0},
         "a pin": {"PINNEDPUBLICKEY": "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}}


@pytest.mark.parametrize("trust", TRUST)
def test_tls_verifies_the_fallbacks_own_name(trust, breaker_env, authority, provider, providers, tls_provider, refusing):
    """The certificate is for localhost and 127.0.0.1; the options are of another server."""
    named = Fallback("named", tls_provider)
    refusing(named)
    with Remote(breaker_env) as curl:
        done = curl.call(URL=provider.url(), POSTFIELDS=BODY, CAINFO=str(authority.ca), **TRUST[trust])
        assert (done.code, done.status, done.url) == (0, 200, named.url())
    other = providers(tls=authority.server(), host="127.0.0.2")
    wrong = Fallback("wrong", other, host="127.0.0.2")
    refusing(wrong)
    with Remote(breaker_env) as curl:
        done = curl.call(URL=provider.url(), POSTFIELDS=BODY, CAINFO=str(authority.ca), **TRUST[trust])
    assert is_refused(done) and any("wrong: SSL" in reason for reason in reasons(breaker_env))
    assert other.count() == 0 and not other.partial
    assert breaker_env.calls(wrong.key())["failure"] == 0


def test_a_certificate_of_nobody_known(breaker_env, provider, tls_provider, refusing):
    """An application that trusts its own server unseen says nothing of the fallback."""
    unknown = Fallback("unknown", tls_provider)
    refusing(unknown)
    with Remote(breaker_env) as curl:
        done = curl.call(URL=provider.url(), POSTFIELDS=BODY, SSL_VERIFYPEER=0, SSL_VERIFYHOST=0)
    assert is_refused(done) and tls_provider.count() == 0
    assert any("unknown: SSL" in reason for reason in reasons(breaker_env))


# What keeps a request from leaving for the first fallback, without a word on the wire.
UNREACHABLE = {"no such name": "https://no-such-host.invalid/v1", "nobody there": "http://localhost:1/v1",
               "a protocol that is not allowed, and nobody": "https://localhost:1/v1"}


@pytest.mark.parametrize("multi", [False, True], ids=["easy", "multi"])
@pytest.mark.parametrize("mode", ["enforce", "off"])
@pytest.mark.parametrize("base", UNREACHABLE.values(), ids=UNREACHABLE.keys())
def test_a_fallback_that_is_not_reached(base, mode, multi, breaker_env, call, provider, third):
    """A call that was refused goes on along the chain whatever keeps it from a fallback, failover or not."""
    text = (target(provider, ["first", "third"], failover="off") + section("first", base) + third.section() +
            f"[target {base.split('/')[2]}]\nmode = {mode}\n")
    breaker_env.configure(text, open_seconds=60)
    breaker_env.command("trip", "--create", provider.key())
    done = call(multi=multi, PROTOCOLS=1)
    assert (done.code, done.status, done.url) == (0, 200, third.url())
    assert any("first: " in reason for reason in reasons(breaker_env))


@pytest.mark.parametrize("multi", [False, True], ids=["easy", "multi"])
def test_a_fallback_after_a_late_refusal_is_not_reached(multi, breaker_env, provider, second, third, refusing):
    """failover is the target's: of a refused call it keeps no fallback from handing on what it cannot be reached for."""
    refusing(second, third, key=provider.key("m"), failover="off")
    second.provider.refuse()
    with Remote(breaker_env) as curl:
        curl.made("a", URL=provider.url())
        curl.source(name="a", body=BODY, seek=True, sized=True, way="POST", piece=700)
        done = curl.perform(name="a", multi=multi)
    assert (done.code, done.status, done.url) == (0, 200, third.url())
    assert breaker_env.calls(second.key())["failure"] == 1


@pytest.mark.parametrize("way, sized", [("POST", True), ("POST", False), ("UPLOAD", True)])
def test_a_body_that_was_read_passes_whole(way, sized, breaker_env, provider, second):
    """It was read for a fallback that then was not there; the breaker lets the call pass."""
    second.provider.refuse()
    breaker_env.configure(chain(provider, second, when_exhausted="pass"), open_seconds=60)
    breaker_env.command("trip", "--create", provider.key())
    with Remote(breaker_env) as curl:
        curl.new(name="a")
        curl.set("a", URL=provider.url())
        curl.source(name="a", body=BODY, seek=True, sized=sized, way=way)
        done = curl.perform(name="a")
    assert (done.code, done.status, done.url) == (0, 200, provider.url())
    assert provider.seen()[0].body == BODY.encode()


@pytest.mark.parametrize("way", ["whole", "pulled", "rewound", "compressed", "connect"])
@pytest.mark.parametrize("how", ["refused", "fails"])
def test_a_model_that_may_go_nowhere(how, way, breaker_env, provider, second):
    """Nor may a call that might be for it: its model is not known, or not yet."""
    text = chain(provider, Fallback("second", second.provider, model=None))
    if way == "connect":
        text = addressed(provider.key(), second.provider.key())
    breaker_env.configure(text + f"[target {provider.key('held*')}]\nallow_fallbacks = false\n", open_seconds=60)
    provider.refuse()
    if how == "refused":
        breaker_env.command("trip", "--create", provider.key())
    body = chat("held-1")
    with Remote(breaker_env) as curl:
        curl.new(name="a")
        curl.set("a", URL=provider.url())
        if way in ("pulled", "rewound"):
            curl.source(name="a", body=body, seek=way == "rewound", sized=True, way="POST")
        else:
            curl.set("a", POSTFIELDS="\x1f\x8b" + body if way == "compressed" else body)
        done = curl.perform(name="a")
    assert is_refused(done) if how == "refused" else done.code == 7
    if way == "connect" and how == "refused":
        code = ("import urllib.request as r\ntry: r.urlopen(r.Request(%r, %r))\nexcept OSError as e: print(e.reason.errno)"
                % (provider.url(), body.encode()))
        assert breaker_env.run(PYTHON, "-c", code).stdout == b"111\n"
    assert second.provider.accepted == 0


def test_other_calls_go_to_the_address_too(breaker_env, provider, second):
    """It serves the same name: files and lists are there as well. A fallback's are others."""
    breaker_env.configure(chain(provider, second) + addressed("127.0.0.1:*", second.provider.key()), open_seconds=60)
    breaker_env.command("trip", "--create", provider.key())
    with Remote(breaker_env) as curl:
        done = curl.call(URL=provider.url("/v1/files"))
        assert (done.status, done.url) == (200, provider.url("/v1/files"))
    assert second.provider.seen()[0].headers["host"] == provider.key()


def test_a_pass_has_its_line(breaker_env, call, provider, second):
    breaker_env.configure(chain(provider, second, when_exhausted="pass"), open_seconds=60)
    for key in (provider.key(), second.key()):
        breaker_env.command("trip", "--create", key)
    assert [call().url for _ in range(2)] == [provider.url()] * 2
    (event,) = breaker_env.events(event="passed")
    assert (event["key"], event["from"], event["detail"]) == (provider.key(), "open", "second: its breaker refuses")


def test_after_a_pass_the_url_is_its_own(breaker_env, call, provider, second):
    second.provider.refuse()
    breaker_env.configure(chain(provider, second, when_exhausted="pass"), open_seconds=60)
    breaker_env.command("trip", "--create", provider.key())
    done = call()
    assert (done.status, done.url) == (200, provider.url())


def test_a_disabled_library_reroutes_nothing(breaker_env, call, provider, second, refusing):
    refusing(second)
    assert call(env={**ENVIRONMENT, "BREAKER_DISABLED": "1"}).url == provider.url()
    assert second.provider.accepted == 0


@pytest.mark.parametrize("how", ["environment", "option"])
def test_no_proxy_leads_to_this_machine(how, breaker_env, call, provider, providers, second, refusing):
    """The proxy is for the primary; the fallback is on loopback, where it cannot go."""
    proxy = providers()
    refusing(second)
    if how == "environment":
        done = call(env={**ENVIRONMENT, "http_proxy": proxy.url(""), "all_proxy": proxy.url("")})
    else:
        done = call(PROXY=proxy.url(""), PROXYUSERPWD="a:b")
    assert (done.status, done.url) == (200, second.url())
    assert (proxy.accepted, second.provider.count()) == (0, 1)


# --- coming back ---------------------------------------------------------------------------------


@pytest.mark.parametrize("multi", [False, True], ids=["easy", "multi"])
@pytest.mark.parametrize("key", ["host", "model"])
def test_a_real_call_is_the_probe_and_closes_it(key, multi, breaker_env, call, provider, second, refusing):
    key = provider.key("m" if key == "model" else None)
    refusing(second, key=key)
    assert call(multi=multi).url == second.url()
    breaker_env.make_due(key)
    assert call(multi=multi).url == provider.url()
    assert breaker_env.state(key) == "closed"
    assert call(multi=multi).url == provider.url()
    assert (provider.count(), second.provider.count()) == (2, 1)


@pytest.mark.parametrize("multi", [False, True], ids=["easy", "multi"])
@pytest.mark.parametrize("failover", ["connect", "off"])
def test_a_probe_that_meets_nobody(failover, multi, breaker_env, call, provider, second):
    """It is answered from the fallback where failover allows it; the breaker opens again either way."""
    breaker_env.configure(chain(provider, second, failover=failover), open_seconds=60)
    provider.refuse()
    breaker_env.make_due(provider.key())
    done = call(multi=multi)
    if failover == "connect":
        assert (done.code, done.status, done.url) == (0, 200, second.url())
    else:
        assert (done.code, done.status) == (7, 0) and second.provider.accepted == 0
    assert breaker_env.calls(provider.key())["failure"] == 1
    assert breaker_env.state(provider.key()) == "open"
    assert call(multi=multi).url == second.url()


def test_a_probe_that_was_sent_is_not_sent_again(breaker_env, call, provider, second):
    breaker_env.configure(chain(provider, second))
    provider.answer(Answer(503))
    breaker_env.make_due(provider.key("m"))
    assert call().status == 503 and provider.count() == 1 and second.provider.accepted == 0


def test_whoever_does_not_get_the_probe_gets_the_fallback(breaker_env, call, provider, second):
    """Half-open: one call finds out, all others are served meanwhile."""
    gate = threading.Event()
    breaker_env.configure(chain(provider, second), probe_lease=60)
    breaker_env.make_due(provider.key("m"))
    provider.answer(Answer(200, gate=gate))
    with Remote(breaker_env) as curl:
        curl.made("a", URL=provider.url(), POSTFIELDS=BODY)
        curl.send("perform", name="a")
        provider.wait_for(1)
        for _ in range(4):
            assert call().url == second.url()
        gate.set()
        assert curl.answer().url == provider.url()
    assert (provider.count(), second.provider.count()) == (1, 4)
    assert breaker_env.state(provider.key("m")) == "closed"


def test_the_file_is_followed_while_a_process_runs(breaker_env, provider, second, third, refusing):
    refusing(second)
    with Remote(breaker_env) as curl:
        curl.made("a", URL=provider.url(), POSTFIELDS=BODY)
        assert curl.perform(name="a").url == second.url()
        for names, there in (([third], third.url()), ([], provider.url())):
            text = chain(provider, *names) if names else f"[target {provider.key()}]\n"
            breaker_env.configure(text, open_seconds=60)
            wait_until(lambda: curl.perform(name="a").url == there, what="the new file in force")
        breaker_env.configure(chain(provider, second, allow_fallbacks="false"), open_seconds=60)
        wait_until(lambda: is_refused(curl.perform(name="a")), what="the new file in force")
    assert provider.count() == 0


# --- time ----------------------------------------------------------------------------------------


def at_black_hole(breaker_env, hole, *fallbacks, **keys):
    lines = {"fallback": ", ".join(f.name for f in fallbacks), "base": f"http://{hole}/v1", **keys}
    breaker_env.configure(target_of(hole, **lines) + "".join(f.section() for f in fallbacks), open_seconds=60)


@pytest.mark.parametrize("multi", [False, True], ids=["easy", "multi"])
def test_a_connect_that_hangs_is_over_when_its_caller_says(multi, breaker_env, hole, second):
    at_black_hole(breaker_env, hole, second)
    start = time.monotonic()
    with Remote(breaker_env) as curl:
        done = curl.once(options={"URL": f"http://{hole}/v1/chat/completions", "POSTFIELDS": BODY,
                                  "CONNECTTIMEOUT_MS": 400, "TIMEOUT_MS": 10000}, multi=multi)
    assert (done.code, done.status, done.url) == (0, 200, second.url())
    assert 0.3 < time.monotonic() - start < 5
    assert second.provider.count() == 1


@pytest.mark.parametrize("multi", [False, True], ids=["easy", "multi"])
def test_the_fallback_has_what_is_left_of_the_time(multi, breaker_env, hole, second):
    """Two seconds for all of it, of which the first connect takes half: the fallback has no two of its own."""
    second.provider.answer(Answer(hang=True))
    at_black_hole(breaker_env, hole, second)
    with Remote(breaker_env) as curl:
        curl.made("a", URL=f"http://{hole}/v1/chat/completions", POSTFIELDS=BODY, CONNECTTIMEOUT_MS=1000,
                  TIMEOUT_MS=2000)
        start = time.monotonic()
        done = curl.perform(name="a", multi=multi)
        took = time.monotonic() - start
        assert (done.code, done.status) == (28, 0)
        assert 1.5 < took < 2.8, took  # 3 with a time-out begun anew
        assert second.provider.count() == 1
        second.provider.answer(PLAIN)  # the time-out is the application's again
        second.provider.hang_up()
        done = curl.perform(name="a", multi=multi)
        assert (done.code, done.status) == (0, 200)


def test_a_whole_time_out_leaves_nothing(breaker_env, hole, second):
    at_black_hole(breaker_env, hole, second)
    with Remote(breaker_env) as curl:
        start = time.monotonic()
        done = curl.call(URL=f"http://{hole}/v1/chat/completions", POSTFIELDS=BODY, TIMEOUT_MS=600)
    assert done.code == 28 and 0.5 < time.monotonic() - start < 3
    assert second.provider.count() == 0


def test_without_time_outs_there_is_none(breaker_env, call, provider, second):
    """None of ours, either: an answer that takes its time comes."""
    gate = threading.Event()
    second.provider.answer(Answer(200, gate=gate))
    breaker_env.configure(chain(provider, second), open_seconds=60)
    provider.refuse()
    with Remote(breaker_env) as curl:
        curl.made("a", URL=provider.url(), POSTFIELDS=BODY, TIMEOUT=0)
        curl.send("perform", name="a")
        second.provider.wait_for(1)
        assert not gate.wait(0.5)
        gate.set()
        assert curl.answer().url == second.url()
