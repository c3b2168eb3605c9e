"""Issue 4, right when 3, in programs that do more than one thing: several handles in a multi, handles that are removed in
the middle, threads, children; and valgrind over all of it."""

import threading

import pytest

from curl_lines import lines_of
from fallbacks import PLAIN, SECOND_KEY, STREAM, Fallback, Remote, chain, chat
from provider import Answer, wait_until

ENVIRONMENT = {"SECOND_KEY": SECOND_KEY}
BODY = chat("m")


@pytest.fixture
def second(providers):
    return Fallback("second", providers())


# --- in a multi ----------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["perform", "socket"])
@pytest.mark.parametrize("how", ["refused", "fails"])
def test_several_in_one_multi(how, way, breaker_env, provider, providers, second):
    """Some go to the fallback, some to another server, side by side; each end is told once, `running` tells the truth."""
    other = providers()
    breaker_env.configure(chain(provider, second), open_seconds=60)
    second.provider.answer(STREAM)
    if how == "refused":
        breaker_env.command("trip", "--create", provider.key())
    else:
        provider.refuse()
    with Remote(breaker_env) as curl:
        names = []
        for number in range(4):
            names += [curl.made(f"away{number}", URL=provider.url(), POSTFIELDS=BODY),
                      curl.made(f"home{number}", URL=other.url(), POSTFIELDS=BODY)]
        for _ in range(2):
            got = dict(zip(names, curl.perform_many(names=names, way=way)))
            for name, done in got.items():
                assert (done.code, done.status) == (0, 200)
                assert done.url == (second.url() if name.startswith("away") else other.url())
                assert (done.body == STREAM.payload().decode()) == name.startswith("away")
    assert (second.provider.count(), other.count(), provider.count()) == (8, 8, 0)


def test_ends_are_told_in_the_order_in_which_they_come(breaker_env, provider, providers, second):
    """The rerouted one is first or last as its answer is."""
    other, gates = providers(), {name: threading.Event() for name in ("away", "home")}
    second.provider.answer(Answer(200, gate=gates["away"]))
    other.answer(Answer(200, gate=gates["home"]))
    breaker_env.configure(chain(provider, second), open_seconds=60)
    breaker_env.command("trip", "--create", provider.key())
    for order in (("away", "home"), ("home", "away")):
        with Remote(breaker_env) as curl:
            second.provider.clear()
            other.clear()
            curl.made("away", URL=provider.url(), POSTFIELDS=BODY)
            curl.made("home", URL=other.url(), POSTFIELDS=BODY)
            for name in order:
                curl.add(name=name)
            wait_until(lambda: curl.turn() and second.provider.count() and other.count(), what="both are sent")
            assert curl.messages() == []
            gates[order[0]].set()
            assert curl.until_messages(number=1) == {"told": [[order[0], 0]], "early": False}
            gates[order[1]].set()
            assert curl.until_messages(number=1) == {"told": [[order[1], 0]], "early": False}
            assert curl.turn() == 0
            for name in order:
                curl.remove(name=name)
        for gate in gates.values():
            gate.clear()


def test_running_is_not_0_while_a_failed_connect_is_sent_on(breaker_env, provider, second):
    """Programs leave their loop at 0: between the failed connect and the fallback's answer it is 1 in every turn."""
    gate = threading.Event()
    second.provider.answer(Answer(200, gate=gate))
    breaker_env.configure(chain(provider, second), open_seconds=60)
    provider.refuse()
    with Remote(breaker_env) as curl:
        curl.made("a", URL=provider.url(), POSTFIELDS=BODY)
        curl.add(name="a")
        for _ in range(500):
            assert curl.turn(milliseconds=20) == 1
            if second.provider.count():
                break
        assert second.provider.count() == 1 and curl.messages() == []
        gate.set()
        assert curl.until_messages(number=1) == {"told": [["a", 0]], "early": False}
        assert curl.messages() == []
        curl.remove(name="a")


@pytest.mark.parametrize("how", ["refused", "fails"])
def test_a_handle_removed_in_the_middle(how, breaker_env, provider, second):
    """The fallback was asked and did not answer; that says nothing of it, and the handle is free."""
    second.provider.answer(Answer(hang=True))
    breaker_env.configure(chain(provider, second), open_seconds=60)
    if how == "refused":
        breaker_env.command("trip", "--create", provider.key())
    else:
        provider.refuse()
    with Remote(breaker_env) as curl:
        curl.made("a", URL=provider.url(), POSTFIELDS=BODY)
        curl.add(name="a")
        wait_until(lambda: curl.turn() and second.provider.count(), what="the call is at the fallback")
        curl.remove(name="a")
        assert curl.messages() == []
        assert breaker_env.calls(second.key("openai/m"))["failure"] == 0
        second.provider.answer(PLAIN)
        assert curl.perform(name="a").url == second.url()
        curl.cleanup(name="a")
    assert breaker_env.calls(second.key("openai/m"))["neutral"] == 1


def test_a_handle_added_and_removed_before_anything_ran(breaker_env, provider, second, refusing):
    refusing(second)
    with Remote(breaker_env) as curl:
        curl.made("a", URL=provider.url(), POSTFIELDS=BODY)
        for _ in range(3):
            curl.add(name="a")
            curl.remove(name="a")
        breaker_env.command("reset", provider.key())
        assert curl.perform(name="a").url == provider.url()
    assert second.provider.accepted == 0


# --- in threads and children ---------------------------------------------------------------------


def test_two_threads(breaker_env, provider, second, refusing):
    refusing(second, key=provider.key("m"))
    with Remote(breaker_env) as curl:
        names = [curl.made(f"{model}{number}", URL=provider.url(), POSTFIELDS=chat(model))
                 for number in range(4) for model in ("m", "n")]
        for _ in range(5):
            for name, done in zip(names, curl.threads(names=names)):
                assert (done.status, done.url) == (200, second.url() if name[0] == "m" else provider.url())
    assert {r.model for r in provider.seen()} == {"n"} and {r.model for r in second.provider.seen()} == {"openai/m"}
    assert (provider.count(), second.provider.count()) == (20, 20)


def test_a_child(breaker_env, provider, second, refusing):
    """A rerouted handle is performed in a child, then in the parent."""
    refusing(second)
    with Remote(breaker_env) as curl:
        curl.made("a", URL=provider.url(), POSTFIELDS=BODY, FORBID_REUSE=1)
        assert curl.perform(name="a").url == second.url()
        assert curl.fork(name="a").url == second.url()
        breaker_env.command("reset", provider.key())
        assert curl.fork(name="a").url == provider.url()
        assert curl.perform(name="a").url == provider.url()
    assert (provider.count(), second.provider.count()) == (2, 2)
    assert breaker_env.calls(provider.key())["rerouted"] == 2


@pytest.mark.parametrize("mode", ["threads", "fork", "nested", "duplicate", "unread", "partly-read"])
def test_the_c_programs_lives(mode, breaker_env, client, provider, second, refusing):
    """All of their calls to "shut" are the fallback's."""
    refusing(second, key=provider.key("shut"))
    lines = lines_of(breaker_env.run(client, mode, provider.url(), env=ENVIRONMENT))
    assert lines and {(line.code, line.status) for line in lines} == {(0, 200)}
    assert {line.url for line in lines if line.model == "shut"} == {second.url()}
    assert provider.count(model="shut") == 0
    assert second.provider.count() == second.provider.count(model="openai/shut") == \
        sum(line.model == "shut" for line in lines)


@pytest.mark.parametrize("how,mode", [("refused", "fields"), ("refused", "nested"), ("refused", "partly-read"),
                                      ("fails", "file"), ("fails", "multi-fields")])
@pytest.mark.time_limit(150)
def test_valgrind_finds_nothing_of_ours(how, mode, breaker_env, client, provider, second, refusing):
    refusing(second, key=provider.key("shut"))
    if how == "fails":
        breaker_env.command("reset", provider.key("shut"))
        provider.refuse()
    done = breaker_env.run("valgrind", "-q", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite",
                           client, mode, provider.url(), env=ENVIRONMENT, timeout=140)
    assert done.returncode == 0, done.stderr.decode()
    assert second.provider.count() > 0
