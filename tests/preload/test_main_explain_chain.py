"""breaker explain tells where a call goes instead of its host: each case is asked first, then made by the curl tool."""

import json
import random

import pytest

from fallbacks import PLAIN, SECOND_KEY, Fallback, addressed, target
from support import PYTHON, chat

PATH = "/v1/chat/completions"
AZURE = "/openai/deployments/gpt-4/chat/completions"


class Case:
    """The primary with three places behind it, and what one call to it is told to do and does."""

    def __init__(self, breaker_env, curl, directory, primary, providers):
        self.breaker_env, self.curl, self.body, self.primary = breaker_env, curl, directory / "body.json", primary
        self.places = [Fallback(name, providers(), path="/api/v1", model=None, auth=None, headers=())
                       for name in ("one", "two", "three")]
        self.one, self.two, self.three = self.places
        self.servers = {p.port: p for p in (primary, *(place.provider for place in self.places))}
        for place in self.places:
            place.provider.answer(PLAIN)

    def configure(self, more="", base=None, **keys):
        names = [place.name for place in self.places]
        keys = {"fallback": ", ".join(names), **keys}
        text = target(self.primary, [], base, **{key: value for key, value in keys.items() if value})
        self.breaker_env.configure(text + "".join(p.section() for p in self.places) + more, open_seconds=60)

    def refuse(self, *keys):
        for key in keys:
            self.breaker_env.command("force", "open", "--create", key)

    def explain(self, path, model):
        self.body.write_text(chat(model))
        return json.loads(self.breaker_env.command("explain", "--json", self.primary.url(path), "--method", "POST",
                                                   "--body", str(self.body)).stdout)

    def agrees(self, path=PATH, model="m", dead=False):
        """Asks, makes the call, and compares; returns (action, name of the place), as it was told."""
        found = self.explain(path, model)
        verdict, own = found["verdict"], found["chain"][0]
        self.own_keys = [own[side]["key"] for side in ("host", "model") if own[side]]
        name = verdict["failover"] if dead else verdict["fallback"]
        stop = next(s for s in found["chain"] if s["name"] == name)
        before = self.tallies()
        if dead:
            self.primary.refuse()
        answer = self.curl(self.primary.url(path), model)
        asked = {port: server.seen() for port, server in self.servers.items() if server.count()}
        if verdict["action"] == "refused":
            assert answer.refused and asked == {}
        elif dead and (name is None or stop["host"]["key"] == own["host"]["key"]):
            assert answer.code == 7 and asked == {}
        else:
            self.arrived(answer, stop, asked)
            self.counted(verdict, stop, before, name)
        return verdict["action"], name

    def arrived(self, answer, stop, asked):
        """At the place that was told, under the URL and with the model that were told."""
        url = answer.url if stop["kind"] == "fallback" else answer.url.replace("api-key=k&", "")
        assert answer.status == 200 and url == stop["url"]
        ((port, (request,)),) = asked.items()
        assert str(port) == stop["host"]["key"].rsplit(":", 1)[1]
        assert answer.url.endswith(request.target)
        if stop["model"] and "/deployments/" not in request.target:
            assert request.model == stop["model"]["model"]

    def counted(self, verdict, stop, before, name):
        """For the keys that were told, and as rerouted from the one that refused, or failed to connect."""
        after = self.tallies()
        there = (stop["model"] or stop["host"])["key"]
        if stop["action"] in ("goes", "probe") and stop["reason"] != "when_exhausted":
            assert after[there]["success"] == before.get(there, {"success": 0})["success"] + 1
        if name is None:
            return
        (row,) = [row for row in self.breaker_env.breakers().values() if row["calls"]["rerouted"]]
        assert row["key"] in ([verdict["key"]] if verdict["action"] == "rerouted" else self.own_keys)
        assert (row["calls"]["rerouted"], row["calls"]["refused"]) == (1, 0)
        if stop["action"] != "uncounted":
            assert row["rerouted_to"] == [{"key": there, "count": 1}]

    def tallies(self):
        return {key: row["calls"] for key, row in self.breaker_env.breakers().items()}


@pytest.fixture
def case(breaker_env, curl, tmp_path, provider, providers):
    return Case(breaker_env, curl, tmp_path, provider, providers)


# --- who takes it ------------------------------------------------------------------------------------


def test_the_first_that_takes_it(case):
    case.configure()
    assert case.agrees() == ("goes", None)
    case.primary.clear()
    case.refuse(case.primary.key())
    assert case.agrees() == ("rerouted", "one")


@pytest.mark.parametrize("refusing, name", [(("one",), "two"), (("one", "two"), "three")])
def test_fallbacks_that_refuse(case, refusing, name):
    case.configure()
    case.refuse(case.primary.key("m"), *[p.key("m" if p.name == "one" else None) for p in case.places
                                         if p.name in refusing])
    assert case.agrees() == ("rerouted", name)


@pytest.mark.parametrize("keys, expected", [({}, "refused"), ({"when_exhausted": "pass"}, "goes")])
def test_all_refuse(case, keys, expected):
    case.configure(f"[target {case.one.key()}]\nwhen_exhausted = pass\n", **keys)
    case.refuse(case.primary.key(), *[place.key() for place in case.places])
    assert case.agrees() == (expected, None)


def test_passing_is_what_comes_last(case):
    case.configure(when_exhausted="pass")
    case.refuse(case.primary.key())
    assert case.agrees() == ("rerouted", "one")


@pytest.mark.parametrize("keys", [{}, {"when_exhausted": "pass"}])
def test_a_hard_stop(case, keys):
    case.configure(allow_fallbacks="false", **keys)
    case.refuse(case.primary.key())
    assert case.agrees() == ("refused", None)


def test_a_fallback_that_is_due(case):
    case.configure(f"[target {case.one.key()}]\nopen_seconds = 0.1\n")
    case.refuse(case.primary.key())
    case.breaker_env.command("trip", "--create", case.one.key())
    case.breaker_env.wait_due(case.one.key())
    assert case.agrees() == ("rerouted", "one")


@pytest.mark.parametrize("more", ["mode = off", "scope = host"])
def test_what_a_target_of_the_fallback_says(case, more):
    case.configure(f"[target {case.one.key()}]\n{more}\n")
    case.refuse(case.primary.key(), case.one.key("m"))
    assert case.agrees() == ("rerouted", "one")


def test_a_target_of_the_model_has_another_chain(case):
    case.configure(f"[target {case.primary.key('m')}]\nfallback = three\n")
    case.refuse(case.primary.key("m"), case.primary.key("n"))
    assert case.agrees() == ("rerouted", "three")


# --- what fits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("value, name", [(None, "two"), ("", "two"), (SECOND_KEY, "one")])
def test_a_variable(case, value, name):
    case.one.auth = "Authorization: Bearer ${SECOND_KEY}"
    case.configure()
    if value is not None:
        case.breaker_env.environment["SECOND_KEY"] = value
    case.refuse(case.primary.key())
    assert case.agrees() == ("rerouted", name)


@pytest.mark.parametrize("model, name", [("gpt-4o", "one"), ("o1", "two"), ("else", "three")])
def test_models(case, model, name):
    case.one.model, case.two.model = "gpt*:openai/{model}", "o1:reasoner"
    case.configure()
    case.refuse(case.primary.key())
    assert case.agrees(model=model) == ("rerouted", name)


@pytest.mark.parametrize("scope", ["model", "host"])
def test_a_model_in_the_path(case, scope):
    case.one.path, case.one.model = "/openai", "gpt-3:x, gpt-4:new-4"
    case.configure(scope=scope)
    case.refuse(case.primary.key())
    assert case.agrees(AZURE) == ("rerouted", "one")
    assert case.one.provider.seen()[0].target == "/openai/deployments/new-4/chat/completions"


def test_a_url_that_is_not_below_the_base(case):
    case.configure(base="/v2")
    case.refuse(case.primary.key())
    assert case.agrees() == ("refused", None)


def test_a_call_that_is_no_llm_call(case):
    case.configure()
    case.refuse(case.primary.key())
    assert case.agrees("/v1/files") == ("refused", None)


# --- fallback_address --------------------------------------------------------------------------------


@pytest.mark.parametrize("refused, name", [(None, "fallback_address"), ("m", "one"), ("host", "one")])
def test_the_address(case, refused, name):
    there = case.two.provider
    case.configure(fallback_address=there.key())
    case.refuse(case.primary.key("m"))
    if refused:
        case.refuse(there.key("m" if refused == "m" else None))
    assert case.agrees() == ("rerouted", name)


def test_an_address_that_is_the_target(case):
    """By a glob: the target is for both."""
    text = addressed("127.0.0.*", case.primary.key(), fallback="one")
    case.breaker_env.configure(text + case.one.section(), open_seconds=60)
    case.refuse(case.primary.key())
    assert case.agrees() == ("rerouted", "one")


# --- failover ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("keys, refusing, name", [
    ({}, (), "one"), ({}, ("one",), "two"), ({"failover": "off"}, (), None), ({}, ("one", "two", "three"), None)])
def test_failover(case, keys, refusing, name):
    case.configure(**keys)
    case.refuse(*[place.key() for place in case.places if place.name in refusing])
    assert case.agrees(dead=True) == ("goes", name)


def test_failover_to_the_address(case):
    case.configure(fallback_address=case.two.provider.key())
    assert case.agrees(dead=True) == ("goes", "fallback_address")


# --- sockets -----------------------------------------------------------------------------------------

POST = """
import http.client, sys
connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
try:
    connection.request("POST", sys.argv[2], sys.argv[3])
    peer = connection.sock.getpeername()[1]
    print(connection.getresponse().status, peer)
except ConnectionRefusedError:
    print("refused")
"""


@pytest.mark.parametrize("keys, refusing, told", [
    ({}, (), "goes to {own}: "),
    ({}, ("own",), "connects to {two} instead"),
    ({"when_exhausted": "pass"}, ("own",), "connects to {two} instead"),
    ({}, ("own", "two"), "connect fails with ECONNREFUSED"),
    ({"when_exhausted": "pass"}, ("own", "two"), "goes to {own}: "),
    ({"allow_fallbacks": "false"}, ("own",), "connect fails with ECONNREFUSED"),
    ({"fallback_address": ""}, ("own",), "connect fails with ECONNREFUSED"),
    ({}, ("own/m",), "refused with a synthetic 503"),
    ({"when_exhausted": "pass"}, ("own/m",), "goes to {own}: "),
])
def test_what_sockets_meet(case, keys, refusing, told):
    there = case.two.provider
    names = {"own": case.primary.key(), "two": there.key(), "own/m": case.primary.key("m")}
    case.configure(**{"fallback_address": there.key(), **keys})
    case.refuse(*[names[name] for name in refusing])
    now = case.explain(PATH, "m")["layers"][1]["now"]
    assert now.startswith(told.format(**names))
    done = case.breaker_env.run(PYTHON, "-c", POST, str(case.primary.port), PATH, chat("m"))
    met = {"goes": f"200 {case.primary.port}", "connects": f"200 {there.port}", "connect": "refused",
           "refused": f"503 {case.primary.port}"}[now.split()[0]]
    assert done.stdout.decode().strip() == met, done
    assert (case.primary.count(), there.count()) == (now.startswith("goes"), now.startswith("connects"))


# --- all at once -------------------------------------------------------------------------------------


def some_places(chosen, case):
    for place in case.places:
        place.model = chosen.choice([None, None, "m:x", "*:o/{model}", "gpt-4:y, m:z", "n:q"])
        place.auth = chosen.choice([None, None, "Authorization: Bearer ${SECOND_KEY}"])
        place.path, place.host = chosen.choice(["/api/v1", "/v1", "/openai", ""]), chosen.choice(["localhost", "127.0.0.1"])
    if chosen.random() < .3:  # another model of the primary
        case.three.provider, case.three.host, case.three.path = case.primary, "127.0.0.1", "/v1"
    if chosen.random() < .5:
        case.breaker_env.environment["SECOND_KEY"] = SECOND_KEY


def some_keys(chosen, case):
    keys = {"when_exhausted": "pass", "allow_fallbacks": "false", "failover": "off", "scope": "host",
            "mode": "observe",
            "fallback_address": case.two.provider.key(name=chosen.choice(["localhost", "127.0.0.1"]))}
    rare = ("allow_fallbacks", "mode")
    return {key: value for key, value in keys.items() if chosen.random() < (.1 if key in rare else .3)}


def some_targets(chosen, case, model):
    text = ""
    for place in case.places:
        if place.provider is not case.primary and chosen.random() < .3:
            text += f"[target {place.key()}]\n" + chosen.choice(
                ["mode = off", "mode = observe", "scope = host", "when_exhausted = pass"]) + "\n"
    if chosen.random() < .2:
        text += f"[target {case.primary.key(model)}]\n" + chosen.choice(
            ["fallback = three", "when_exhausted = pass", "allow_fallbacks = false", "mode = off", "mode = observe",
             "failover = off"])
    return text


def some_states(chosen, case, model):
    own = [case.primary.key(), case.primary.key(model), case.primary.key("gpt-4"), case.two.provider.key()]
    others = [place.key(name) for place in case.places for name in (None, model, "o/" + model, "x")]
    for key in [key for key in own if chosen.random() < .35] + [key for key in others if chosen.random() < .15]:
        case.breaker_env.command(*chosen.choice([("force", "open"), ("trip",), ("force", "closed")]), "--create", key)


@pytest.mark.parametrize("seed", range(80))
def test_any_of_it(case, seed):
    chosen = random.Random(seed)
    model = chosen.choice(["m", "gpt-4", "n"])
    path = chosen.choice([PATH, PATH, AZURE, "/v1/embeddings", "/v1/files", PATH + "?api-key=k&v=1"])
    some_places(chosen, case)
    case.configure(some_targets(chosen, case, model), base=chosen.choice([None, None, "/v1", "/openai"]),
                   **some_keys(chosen, case))
    some_states(chosen, case, model)
    verdict = case.explain(path, model)["verdict"]
    goes = verdict["action"] in ("goes", "probe") and verdict["reason"] not in ("when_exhausted", "observed")
    case.agrees(path, model, dead=goes and chosen.random() < .5)
