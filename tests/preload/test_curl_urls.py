"""URLs in every spelling that libcurl knows (curl/urls.c): what a program is told after an answer of ours is what libcurl
tells of that URL without us, what libcurl does not take it refuses itself, and one place has one breaker."""

from pathlib import Path

import pytest

from provider import Answer

SOURCE = Path(__file__).with_name("curl") / "urls.c"
CHAT = "/v1/chat/completions"

ACCEPTED = [
    "http://{a}" + CHAT, "HTTP://{a}" + CHAT, "{a}" + CHAT, "http:/{a}" + CHAT, "http:///{a}" + CHAT,
    "http://{a}", "http://{a}/", "http://{a}?q=1", "http://{a}#f", "http://{a}/?", "http://{a}" + CHAT + "?a=b#c",
    "http://{a}/x/.." + CHAT, "http://{a}/./v1/chat/./completions", "http://{a}/x/%2e%2e" + CHAT, "http://{a}/a/..",
    "http://{a}//v1//chat", "http://{a}/a\\b", "http://{a}/%7Euser/%zz", "http://{a}/b\u00fccher",
    "http://{h}:0{p}" + CHAT, "http://{h}:00000{p}" + CHAT, "http://127.1:{p}" + CHAT, "http://0x7f000001:{p}" + CHAT,
    "http://2130706433:{p}" + CHAT, "http://0177.0.0.1:{p}" + CHAT, "http://127.0.1:{p}" + CHAT, "127.1:{p}" + CHAT,
    "http://%31%32%37.0.0.1:{p}" + CHAT, "http://localhost:{p}" + CHAT, "http://LocalHost:{p}" + CHAT,
    "http://u:p@{a}" + CHAT, "http://u@{a}" + CHAT, "http://:p@{a}" + CHAT,
]
REFUSED = [
    "  http://{a}" + CHAT, "\thttp://{a}" + CHAT, "http://{a}/a b", "http://{h} :{p}/", "http://{a}x/", "http://{h}:-1/",
    "http://{h}:65536/", "http:////{a}" + CHAT, "http://", "http:///", "http:{a}" + CHAT, "http://[::1", "http://a<b/",
    "http://{h}:{p}:{p}/", "http://{a}/a\nb", "//{a}" + CHAT, "/", "?q", "http://u:p@/", "http://u:p@@{a}" + CHAT, "", "nonsense://{a}/",
    "file:///dev/null", "ftp://{h}:1/",
]
OPTIONS = ["-", "as-is", "no-user", "curlu", "protocol=http", "hsts", "hsts,protocol=http", "reuse"]


@pytest.fixture
def urls(compile_c):
    return compile_c(SOURCE, "-lcurl", name="urls")


@pytest.fixture
def ask(urls, breaker_env, provider):
    """Lines of (result, status, effective URL, Host), two per URL: without us, or under the breaker."""
    names = ("127.0.0.1", "localhost")
    breaker_env.configure(text="".join(f"[target {n}:{provider.port}]\n" for n in names))

    def spell(pattern):
        return pattern.format(a=f"127.0.0.1:{provider.port}", h="127.0.0.1", p=provider.port)

    def ask_them(run, options, patterns):
        done = run(urls, options, *map(spell, patterns))
        assert done.returncode == 0, done.stderr
        lines = [tuple(line.split("\t")) for line in done.stdout.decode().split("\x1e")[:-1]]
        assert len(lines) == 2 * len(patterns)
        return lines

    ask_them.spell = spell
    return ask_them


def force_all(breaker_env, provider, how):
    for name in ("127.0.0.1", "localhost"):
        breaker_env.command("force", "--create", how, provider.key(name=name))


@pytest.mark.parametrize("options", OPTIONS)
def test_told_as_libcurl_tells_it(options, ask, breaker_env, provider):
    bare = ask(breaker_env.run_bare, options, ACCEPTED)
    assert ask(breaker_env.run, options, ACCEPTED) == bare
    force_all(breaker_env, provider, "open")
    provider.clear()
    refused = ask(breaker_env.run, options, ACCEPTED)
    numeric = "hsts" in options  # the host that is asked is nobody's then
    for pattern, without, ours in zip([p for p in ACCEPTED for _ in "12"], bare, refused):
        expected = ("0", "503", *without[2:]) if without[0] == "0" else without
        assert ours[:3 if numeric else 4] == expected[:3 if numeric else 4], pattern
    assert provider.count() == 0


@pytest.mark.parametrize("options", [o for o in OPTIONS if o != "curlu"])
def test_refused_by_libcurl_itself(options, ask, breaker_env, provider):
    """Its own error, whatever the breaker says."""
    bare = ask(breaker_env.run_bare, options, REFUSED)
    assert ask(breaker_env.run, options, REFUSED) == bare
    force_all(breaker_env, provider, "open")
    assert ask(breaker_env.run, options, REFUSED) == bare


@pytest.mark.parametrize("options", [*OPTIONS, "then-straight"])
def test_valgrind_finds_nothing_of_ours(options, ask, breaker_env, provider):
    def run(*command):
        return breaker_env.run("valgrind", "-q", "--error-exitcode=9", "--leak-check=full",
                               "--errors-for-leak-kinds=definite", *command)

    force_all(breaker_env, provider, "open")
    patterns = ["http:/127.1:0{p}/x/.." + CHAT, "http://u:p@{a}" + CHAT, "http://{a}/a\\b"]
    if options != "curlu":
        patterns += ["http://{a}/a b", ""]
    statuses = [line[1] for line in ask(run, options, patterns)]
    assert statuses.count("503") >= 4


def test_one_place_is_one_breaker(ask, breaker_env, provider):
    spellings = [f"http://{host}:{{p}}/x/..{CHAT}" for host in ("127.1", "127.0.0.1", "0x7f000001", "%31%32%37.0.0.1")]
    provider.answer(Answer(500))
    ask(breaker_env.run, "-", spellings)
    assert set(breaker_env.breakers()) == {provider.key(), provider.key("m")}
    assert breaker_env.calls(provider.key("m"))["failure"] == 5
    assert provider.count() == 5


def test_a_path_as_it_is_is_what_is_judged(ask, breaker_env, provider):
    """Made short it is an LLM call, taken as it is, none: nothing is judged by a path that is not sent."""
    breaker_env.configure()
    breaker_env.command("force", "--create", "open", provider.key("m"))
    pattern = ["http://{a}/v1/chat/x/../completions"]
    for options, path, status in (("-", CHAT, "503"), ("as-is", "/v1/chat/x/../completions", "200")):
        lines = ask(breaker_env.run, options, pattern)
        assert [line[:3] for line in lines] == [("0", status, f"http://127.0.0.1:{provider.port}{path}")] * 2
    assert [line[1] for line in ask(breaker_env.run, "then-straight", pattern)] == ["200", "503"]
