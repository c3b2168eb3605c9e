"""breaker explain: the fallbacks of a call, which of them takes it, and why the others do not."""

import re

import pytest

URL = "https://api.openai.com/v1/chat/completions"
HOST, KEY = "api.openai.com", "api.openai.com/gpt-4o"
ROUTER = """[fallback openrouter]
base = https://openrouter.ai/api/v1
model = gpt-4o:openai/gpt-4o, *:openai/{model}
auth = Authorization: Bearer ${ROUTER_KEY}
"""
LOCAL = """[fallback local]
base = http://127.0.0.1:11434/v1
model = *:llama3.2
"""
SAME = "[fallback same]\nbase = https://same.example/v1\n"
SET = {"ROUTER_KEY": "sk-canary"}


@pytest.fixture
def ask(explain, ini):
    """ask(TARGET, SECTIONS, URL, ...): explains it with `TARGET` in the section of the host."""

    def run(target, sections=ROUTER + LOCAL + SAME, url=URL, model="gpt-4o", host=HOST, env=SET, args=()):
        path = ini(f"[target {host}]\n{target}\n{sections}")
        run.path = path
        model = () if model is None else ("--model", model)
        return explain(url, *model, *args, "--config", str(path), **env)

    return run


@pytest.fixture
def refused(breaker):
    """Holds breakers open by hand."""

    def hold(*keys):
        for key in keys:
            breaker("force", "open", "--create", key)

    return hold


def word(found):
    verdict = found["verdict"]
    return verdict["action"], verdict["reason"], verdict["key"], verdict["to"]


def stops(found):
    return [(stop["name"], stop["action"], stop["reason"]) for stop in found["chain"]]


def keys(stop):
    return [stop[side] and stop[side]["key"] for side in ("host", "model")]


# --- the chain ---------------------------------------------------------------------------------------


def test_without_a_chain_there_is_the_host_alone(explain):
    found = explain(URL + "?api-key=canary&a=b", "--model", "gpt-4o")
    (own,) = found["chain"]
    assert (own["kind"], own["name"], own["url"], own["text"]) == ("target", None, URL + "?a=b", "closed")
    assert found["verdict"]["fallback"] is None and found["verdict"]["failover"] is None


def test_all_places_in_their_order_with_keys_and_urls(ask):
    found = ask("fallback_address = gpu2.internal:8443\nfallback = local, openrouter",
                url=URL + "?key=canary&v=1")
    assert [(stop["kind"], stop["name"], stop["url"], *keys(stop)) for stop in found["chain"]] == [
        ("target", None, URL + "?v=1", HOST, KEY),
        ("address", "fallback_address", URL + "?v=1", "gpu2.internal:8443", "gpu2.internal:8443/gpt-4o"),
        ("fallback", "local", "http://127.0.0.1:11434/v1/chat/completions?v=1", "127.0.0.1:11434",
         "127.0.0.1:11434/llama3.2"),
        ("fallback", "openrouter", "https://openrouter.ai/api/v1/chat/completions?v=1", "openrouter.ai",
         "openrouter.ai/openai/gpt-4o")]
    assert {stop["reason"] for stop in found["chain"]} == {"closed"}


def test_every_setting_there_has_its_origin(breaker, ask):
    found = ask("fallback = local", LOCAL + "[target 127.0.0.1:11434]\nopen_seconds = 7\n")
    side = found["chain"][1]["host"]
    assert side["settings"]["open_seconds"] == {"value": "7", "origin": f"{ask.path}:7"}
    assert side["state"] == "closed" and side["seen"] is False
    text = breaker("explain", URL, "-m", "gpt-4o", "--config", str(ask.path)).stdout
    block = text[text.index("key 127.0.0.1:11434\n"):]
    assert re.match(r"key .*\n  state: closed.*\n  settings: as of the first host, but\n"
                    rf"  open_seconds +=  *7 +# {re.escape(str(ask.path))}:7\n  fallback ", block)
    assert "key 127.0.0.1:11434/llama3.2\n" in block and "  settings: as of the host\n" in block


def test_who_takes_a_refused_call(breaker, ask, refused):
    refused(KEY)
    found = ask("fallback = openrouter, local")
    assert word(found) == ("rerouted", "forced_open", KEY, "openrouter.ai")
    assert (found["verdict"]["fallback"], found["verdict"]["failover"]) == ("openrouter", None)
    assert found["verdict"]["status"] is None and found["verdict"]["retry_after"] is None
    assert found["verdict"]["text"] == \
        f"goes to openrouter.ai/openai/gpt-4o by [fallback openrouter]: {KEY} is held open by hand"
    assert stops(found)[0] == (None, "refused", "forced_open")
    text = breaker("explain", URL, "-m", "gpt-4o", "--config", str(ask.path), **SET).stdout
    assert f"\nnow: {found['verdict']['text']}\nwhere it may go, in this order:\n  its own host {URL}: refused: " in text
    assert f"  [fallback local] http://127.0.0.1:11434/v1/chat/completions: goes: closed # {ask.path}:7\n" in text


def test_a_fallback_that_refuses_is_passed_by_whatever_its_own_when_exhausted(ask, refused):
    refused(HOST, "openrouter.ai/openai/gpt-4o", "127.0.0.1:11434")
    found = ask("fallback = openrouter, local, same",
                ROUTER + LOCAL + SAME + "[target openrouter.ai]\nwhen_exhausted = pass\n")
    assert stops(found)[1:] == [("openrouter", "refused", "forced_open"), ("local", "refused", "forced_open"),
                                ("same", "goes", "closed")]
    assert word(found) == ("rerouted", "forced_open", HOST, "same.example")


def test_a_due_fallback_gets_the_call_as_its_probe(breaker, ask, refused, open_table):
    import table_layout as layout
    breaker("trip", "--create", "same.example")
    table = open_table(breaker.table)
    slot = table.only_slot() + layout.WORD
    table.put("<Q", slot, table.get("<Q", slot) >> 30 << 30 | 1)
    refused(HOST)
    found = ask("fallback = same")
    assert stops(found)[1] == ("same", "probe", "probe_due")
    assert found["verdict"]["text"].startswith("goes to same.example/gpt-4o as the probe by [fallback same]: ")


def test_a_fallback_that_is_off_takes_the_call_uncounted(ask, refused):
    refused(HOST)
    found = ask("fallback = same", SAME + "[target same.example]\nmode = off\n")
    assert stops(found)[1] == ("same", "uncounted", "mode_off") and word(found)[3] == "same.example"
    assert "uncounted by [fallback same]" in found["verdict"]["text"]


def test_none_takes_it(ask, refused):
    refused(HOST, "same.example")
    found = ask("fallback = same")
    assert word(found) == ("refused", "forced_open", HOST, None) and found["verdict"]["status"] == 503
    assert found["verdict"]["text"].endswith("held open by hand; none of its fallbacks takes it")
    found = ask("fallback = same\nwhen_exhausted = pass")
    assert word(found) == ("goes", "when_exhausted", HOST, HOST) and found["verdict"]["status"] is None
    assert "but when_exhausted = pass: the call moves its statistics only; none" in found["verdict"]["text"]
    assert found["verdict"]["text"].endswith("; none of its fallbacks takes it")


def test_when_exhausted_is_asked_last(ask, refused):
    refused(HOST)
    assert word(ask("fallback = same\nwhen_exhausted = pass"))[0] == "rerouted"


def test_a_hard_stop(ask, refused):
    refused(HOST)
    for more, told in (("", ""), ("\nwhen_exhausted = pass", ", whatever when_exhausted says")):
        found = ask("fallback = same\nfallback_address = b.example:443\nallow_fallbacks = false" + more)
        assert word(found)[0] == "refused" and len(found["chain"]) == 1
        assert found["verdict"]["text"].endswith("; allow_fallbacks = false: a hard stop" + told)
    assert "a hard stop" not in ask("fallback = same")["verdict"]["text"]


# --- should the connect fail -------------------------------------------------------------------------


def test_which_failover_would_follow(ask, refused):
    refused("openrouter.ai")
    found = ask("fallback = openrouter, local")
    assert word(found) == ("goes", "closed", None, HOST) and found["verdict"]["failover"] == "local"
    assert found["verdict"]["text"] == (f"goes to {HOST}: closed; should its connect fail: "
                                        "to 127.0.0.1:11434/llama3.2 by [fallback local]")
    found = ask("fallback = openrouter")
    assert found["verdict"]["failover"] is None
    assert found["verdict"]["text"].endswith("should its connect fail: none of its fallbacks takes it")
    found = ask("fallback = local\nfailover = off")
    assert found["verdict"]["failover"] is None and found["verdict"]["text"] == f"goes to {HOST}: closed"


# --- what does not fit -------------------------------------------------------------------------------


def test_a_variable_that_is_not_set_is_named_and_no_value_is_shown(breaker, ask, refused):
    refused(HOST)
    found = ask("fallback = openrouter, local", env={})
    assert found["chain"][1]["variable"] == "ROUTER_KEY" and word(found)[3] == "127.0.0.1:11434"
    assert stops(found)[1] == ("openrouter", "unfit", "variable") and keys_are_null(found["chain"][1])
    assert found["chain"][1]["text"] == "a variable of its headers is not set here: ROUTER_KEY"
    args = (URL, "-m", "gpt-4o", "--config", str(ask.path))
    assert "unfit: a variable of its headers is not set here: ROUTER_KEY #" in breaker("explain", *args).stdout
    for flags in ((), ("--json",)):
        assert "canary" not in breaker("explain", *flags, *args, **SET).stdout


def keys_are_null(stop):
    return stop["host"] is None and stop["model"] is None


@pytest.mark.parametrize("target, section, url, reason", [
    ("", "base = http://plain.example/v1", URL, "clear_text"),
    ("", "base = https://b.example/v1\nmodel = o1:x", URL, "model_not_listed"),
    ("base = https://api.openai.com/v2", "base = https://b.example/v1", URL, "base"),
    ("", "base = https://b.example/v1", URL + "?q=" + "x" * 8192, "too_long"),
    ("", "base = https://b.example/v1\nheader = X: ${BIG}", URL, "too_long"),
])
def test_why_a_fallback_does_not_fit(ask, refused, target, section, url, reason):
    refused(HOST)
    found = ask(target + "\nfallback = one, same", f"[fallback one]\n{section}\n" + SAME, url, env={"BIG": "x" * 8192})
    assert stops(found)[1] == ("one", "unfit", reason) and keys_are_null(found["chain"][1])
    assert word(found)[3] == ("same.example" if stops(found)[2][1] == "goes" else None)
    assert (stops(found)[2][1] == "goes") is (reason != "base" and "q=" not in url)


def test_clear_text_that_is_allowed_fits(ask):
    found = ask("fallback = one\nallow_cleartext = true", "[fallback one]\nbase = http://plain.example/v1\n")
    assert stops(found)[1] == ("one", "goes", "closed")


def test_a_fallback_that_is_the_target_itself(ask):
    """By a glob: with a name of its own it is left out of the list."""
    sections = "[fallback one]\nbase = https://api.openai.com/v1\n[fallback two]\nbase = https://api.openai.com/v1\n" \
        "model = *:gpt-3\n"
    found = ask("fallback = one, two", sections, host="api.openai.*")
    assert stops(found)[1:] == [("one", "unfit", "itself"), ("two", "goes", "closed")]
    assert keys(found["chain"][2]) == [HOST, f"{HOST}/gpt-3"]
    found = ask("fallback_address = api.openai.com:443", "", host="api.openai.*")
    assert stops(found)[1] == ("fallback_address", "unfit", "itself")


def test_a_model_that_is_not_known(ask, refused):
    refused(HOST)
    found = ask("fallback = local, same", model=None)
    assert stops(found)[1:] == [("local", "unfit", "model_unknown"), ("same", "goes", "closed")]
    assert found["chain"][1]["text"].endswith("is not known: give --model or --body")
    assert keys(found["chain"][2]) == ["same.example", None]
    found = ask("fallback = local, same", model="")
    assert found["chain"][1]["text"].endswith("is not known") and keys(found["chain"][2])[1] == "same.example/-"


DEPENDS = "whether a fallback takes it depends on its model: give --model or --body"


def test_what_the_model_decides_is_not_said_without_it(ask, refused):
    for scope in ("", "\nscope = host"):
        verdict = ask("fallback = local" + scope, model=None)["verdict"]
        assert verdict["failover"] is None and verdict["text"].endswith(f"; should its connect fail: {DEPENDS}")
        assert ask("fallback = local" + scope)["verdict"]["failover"] == "local"
    assert ask("fallback = local", model="")["verdict"]["text"].endswith("none of its fallbacks takes it")
    refused("same.example")
    assert DEPENDS not in ask("fallback = same", model=None)["verdict"]["text"]
    assert ask("fallback = same, local", model=None)["verdict"]["text"].endswith(DEPENDS)
    refused(HOST)
    verdict = ask("fallback = local", model=None)["verdict"]
    assert verdict["action"] == "refused" and verdict["text"].endswith(f"; but {DEPENDS}")
    found = ask("fallback = local, b", LOCAL + "[fallback b]\nbase = https://b.example\n", model=None)
    assert word(found)[3] == "b.example"
    assert found["verdict"]["text"].endswith("; its model may say otherwise: give --model or --body")
    assert "give --model" not in ask("fallback = local, same")["verdict"]["text"]


def test_one_model_that_may_go_nowhere_keeps_those_that_may_be_it(ask, refused):
    refused(HOST)
    sections = SAME + f"[target {HOST}/secret*]\nallow_fallbacks = false\n"
    target = "fallback = same\nfallback_address = b.example:443"
    found = ask(target, sections, model=None)
    assert stops(found)[1:] == [("fallback_address", "unfit", "held"), ("same", "unfit", "held")]
    assert found["chain"][1]["text"].endswith(": give --model or --body")
    assert word(found)[0] == "refused" and found["verdict"]["text"].endswith(f"; but {DEPENDS}")
    assert word(ask(target, sections))[3] == "b.example"
    assert found["layers"][1]["now"] == ask(target, sections)["layers"][1]["now"] == "connect fails with ECONNREFUSED"
    assert word(ask(target, sections, model="secret-1"))[0] == "refused"
    found = ask(target, sections, model="")
    assert stops(found)[2] == ("same", "unfit", "held") and found["verdict"]["text"].endswith("none of its fallbacks takes it")
    assert word(ask(target + "\nscope = host", sections, model=None))[3] == "b.example"


def test_the_address_is_shown_with_the_origin_of_its_setting(breaker, ask):
    found = ask("fallback_address = gpu2.internal:8443\nfallback = same", SAME)
    assert [stop["origin"] for stop in found["chain"]] == [None, f"{ask.path}:2", f"{ask.path}:4"]
    args = (URL, "-m", "gpt-4o", "--config", str(ask.path))
    assert f"\n  fallback_address gpu2.internal:8443: goes: closed # {ask.path}:2\n" in breaker("explain", *args).stdout
    own = breaker("explain", *args, "--set", "fallback_address=g:1").stdout
    assert "\n  fallback_address g:1: goes: closed # --set\n" in own


def test_names_that_were_left_out_are_told(breaker, ask, explain):
    sections = SAME + "[fallback nobase]\n[fallback own]\nbase = https://api.openai.com\n" \
        f"[target {KEY}-mini]\nfallback = typo, typo\n"

    def left_out(*args, **options):
        found = ask(*args, **options)
        model = () if options.get("model", "") is None else ("-m", options.get("model", "gpt-4o"))
        text = breaker("explain", URL, *model, "--config", str(ask.path), **options.get("env", {})).stdout
        line = re.findall(r"^  left out: (.*)$", text, re.M)
        assert line == ([", ".join(found["left_out"]) + " (see the warnings)"] if found["left_out"] else [])
        assert ("where it may go" in text) is (bool(line) or len(found["chain"]) > 1)
        return found["left_out"]

    assert left_out("fallback = nobase, same, sane, same, own", sections) == ["nobase", "sane", "own"]
    assert left_out("fallback = sane", sections) == ["sane"]
    assert left_out("fallback = same", sections) == []
    assert left_out("fallback = same", sections, model="gpt-4o-mini") == ["typo"]
    assert left_out("fallback = same\nscope = host", sections, model="gpt-4o-mini") == []
    assert left_out("fallback = sane", sections, env={"BREAKER_FALLBACK": "same same"}) == []
    assert left_out("fallback = same", sections, env={"BREAKER_FALLBACK": "sames"}) == ["sames"]
    for stopped in ("mode = off", "allow_fallbacks = false"):
        assert left_out(f"fallback = sane\n{stopped}", sections) == []


def test_a_model_in_the_path(ask, refused):
    host = "x.openai.azure.com"
    refused(host)
    for scope in ("model", "host"):
        found = ask(f"fallback = one, same\nscope = {scope}", "[fallback one]\nbase = https://y.openai.azure.com/openai\n"
                    "model = gpt*:new/{model}\n" + SAME,
                    f"https://{host}/openai/deployments/gpt-4/chat/completions?api-version=1", None, host)
        assert found["chain"][1]["url"] == \
            "https://y.openai.azure.com/openai/deployments/new%2Fgpt-4/chat/completions?api-version=1"
        assert keys(found["chain"][1]) == ["y.openai.azure.com", "y.openai.azure.com/new/gpt-4"]


def test_scope_host_of_a_fallback(ask):
    found = ask("fallback = local", LOCAL + "[target 127.0.0.1:11434]\nscope = host\n")
    assert keys(found["chain"][1]) == ["127.0.0.1:11434", None]


def test_the_policy_of_the_model_has_the_chain(ask, refused):
    refused(KEY)
    sections = SAME + LOCAL + f"[target {KEY}]\nfallback = local\n"
    assert word(ask("fallback = same", sections))[3] == "127.0.0.1:11434"
    assert [stop["name"] for stop in ask("fallback = same", sections, model="other")["chain"]] == [None, "same"]


def test_as_many_fallbacks_as_there_can_be(ask, refused):
    refused(HOST)
    names = [f"f{number}" for number in range(64)]
    sections = "".join(f"[fallback {name}]\nbase = https://{name}.example/v1\n" for name in names)
    found = ask("\n".join("fallback = " + ", ".join(names[at:at + 16]) for at in range(0, 64, 16)), sections)
    assert [stop["name"] for stop in found["chain"]] == [None, *names] and word(found)[3] == "f0.example"


# --- what has no chain -------------------------------------------------------------------------------


def test_only_llm_calls_go_elsewhere(ask, refused):
    refused(HOST)
    url = "https://api.openai.com/v1/files"
    found = ask("fallback = same", url=url, model=None)
    assert word(found)[0] == "refused" and len(found["chain"]) == 1
    assert found["remarks"] == ["this is no LLM call: it goes to no fallback"]
    found = ask("fallback_address = b.example:443", "", url, None)
    assert word(found)[3] == "b.example" and found["remarks"] == [] and "b.example" in found["layers"][1]["now"]
    found = ask("fallback_address = b.example:443\nfallback = same, sane", url=url, model=None)
    assert stops(found)[1:] == [("fallback_address", "goes", "closed"), ("same", "unfit", "no_llm_call")]
    assert word(found)[3] == "b.example" and "give --model" not in found["verdict"]["text"]
    assert found["remarks"] == ["this is no LLM call: it goes to fallback_address, and to no fallback"]
    assert ask("allow_fallbacks = false\nfallback = same", url=url, model=None)["remarks"] == []


@pytest.mark.parametrize("target, env", [("mode = off", {}), ("", {"BREAKER_DISABLED": "1"})])
def test_what_is_not_covered_goes_to_no_fallback(ask, refused, target, env):
    refused(HOST)
    found = ask("fallback = same\n" + target, env=env)
    assert word(found)[0] == "uncounted" and len(found["chain"]) == 1


def test_what_is_off_for_its_model_alone(ask, refused):
    refused(HOST)
    found = ask("fallback = same\nfallback_address = b.example:443", SAME + f"[target {KEY}]\nmode = off\n")
    assert word(found)[0] == "uncounted" and len(found["chain"]) == 1
    assert "b.example" in found["layers"][1]["now"]  # the connect is judged by the host


# --- sockets -----------------------------------------------------------------------------------------


def test_sockets_go_to_the_address_alone_and_at_connect_alone(ask, refused):
    def now(target, *more):
        return [layer["now"] for layer in ask(target, SAME, *more)["layers"]][:2]

    http, plain = "http://gpu:8000/v1/chat/completions", ("m", "gpu:8000")
    address = "fallback_address = gpu2:8000"
    instead = "connects to gpu2:8000 instead, by fallback_address, where that has an address of the socket's family"
    assert now(address, http, *plain)[1] == "goes to gpu:8000: closed"
    refused("gpu:8000/m")
    libcurl, sockets = now(address, http, *plain)
    assert libcurl.startswith("goes to gpu2:8000/m by fallback_address: ")
    assert sockets.startswith("refused with a synthetic 503")
    refused("gpu:8000")
    assert now(address, http, *plain)[1] == instead
    assert now(address + "\nwhen_exhausted = pass", http, *plain)[1] == instead
    assert now(address + "\nallow_fallbacks = false", http, *plain)[1] == "connect fails with ECONNREFUSED"
    assert now("fallback = same", http, *plain)[1] == "connect fails with ECONNREFUSED"
    refused("gpu2:8000")
    assert now(address, http, *plain)[1] == "connect fails with ECONNREFUSED"
    assert now(address + "\nwhen_exhausted = pass", http, *plain)[1].startswith("goes to gpu:8000: ")


def test_the_address_at_connect_is_that_of_the_host(ask, refused):
    refused(HOST)
    """A target of a model has none of its own."""
    found = ask("fallback_address = a.example:443", f"[target {KEY}]\nfallback_address = b.example:443\n")
    assert word(found)[3] == "a.example" and "connects to a.example instead" in found["layers"][1]["now"]


def test_asking_changes_nothing(breaker, ask, refused):
    refused(HOST, "same.example")
    before = breaker.table.read_bytes()
    ask("fallback = same, local")
    assert breaker.table.read_bytes() == before
