"""Issue 2, item 4, the curl tool: every way of sending a request, refused and admitted."""

import json
import re

import pytest

from provider import Answer
from support import chat

MODEL = "m"


@pytest.fixture
def shut(breaker_env, curl):
    """A model's breaker that stays open."""

    def shut_it(provider, model=MODEL, name=None):
        breaker_env.configure(open_seconds=60)
        breaker_env.command("trip", "--create", provider.key(model, name))

    return shut_it


def run_curl(breaker_env, *flags, **options):
    return breaker_env.run("curl", "-s", *flags, **options)


# -Z shows a meter on stderr even when silent.
CODE = ("-w", "%{stderr}<%{http_code} %{url_effective}>")


def codes(done):
    return re.findall(r"<(\d+) ", done.stderr.decode())


WRITE = ("-w", "%{stderr}%{http_code}|%{url_effective}|%{scheme}|%{content_type}|%{size_download}|%{errormsg}")


def written(done):
    return done.stderr.decode().split("|")


def assert_refused_body(text):
    error = json.loads(text)["error"]
    assert error["code"] == "circuit_open" and error["type"] == "service_unavailable_error" and error["message"]


WAYS = {
    "-d": lambda body, _: ["-d", body],
    "--json": lambda body, _: ["--json", body],
    "--data-binary @file": lambda _, file: ["--data-binary", f"@{file}"],
    "-d @file": lambda _, file: ["-d", f"@{file}"],
    "-T file": lambda _, file: ["-T", file],
    "-T file -X POST": lambda _, file: ["-T", file, "-X", "POST"],
    "-T file chunked": lambda _, file: ["-T", file, "-H", "Transfer-Encoding: chunked"],
    "-T file with Expect": lambda _, file: ["-T", file, "-H", "Expect: 100-continue"],
    "-d with Expect": lambda body, _: ["-d", body, "-H", "Expect: 100-continue"],
    "-d chunked": lambda body, _: ["-d", body, "-H", "Transfer-Encoding: chunked"],
    "--http1.0": lambda body, _: ["--http1.0", "-d", body],
    "--http2-prior-knowledge refused only": lambda body, _: ["--http2-prior-knowledge", "-d", body],
    "-N": lambda body, _: ["-N", "-d", body],
    "-L": lambda body, _: ["-L", "-d", body],
    "--compressed": lambda body, _: ["--compressed", "-d", body],
    "--tcp-nodelay --keepalive-time": lambda body, _: ["--tcp-nodelay", "--keepalive-time", "9", "-d", body],
    "--interface lo": lambda body, _: ["--interface", "127.0.0.1", "-d", body],
    "-4": lambda body, _: ["-4", "-d", body],
    "--digest": lambda body, _: ["--digest", "-u", "a:b", "-d", body],
    "--range": lambda body, _: ["-r", "0-9", "-d", body],
    "--path-as-is": lambda body, _: ["--path-as-is", "-d", body],
}


@pytest.fixture
def sending(tmp_path):
    def flags(way):
        body = chat(MODEL, stream=False)
        file = tmp_path / "body.json"
        file.write_text(body)
        return WAYS[way](body, file)

    return flags


@pytest.mark.parametrize("way", WAYS)
def test_refused_whatever_the_way(way, sending, provider, breaker_env, shut):
    shut(provider)
    done = run_curl(breaker_env, *WRITE, *sending(way), provider.url())
    status, url, scheme, kind, size, _ = written(done)
    assert done.returncode == 0 and status == "503", done
    assert_refused_body(done.stdout)
    assert (url, scheme, kind) == (provider.url(), "HTTP", "application/json")
    assert int(size) == len(done.stdout)
    assert provider.count() == 0, "a whole request arrived"
    assert breaker_env.calls(provider.key(MODEL))["refused"] == 1


@pytest.mark.parametrize("way", [w for w in WAYS if "refused only" not in w])
def test_admitted_and_unchanged_whatever_the_way(way, sending, provider, breaker_env):
    """Five failures count whatever the way, and output and request are those without us."""
    provider.answer(Answer(500))
    bare = breaker_env.run_bare("curl", "-s", "-i", *sending(way), provider.url())
    done = run_curl(breaker_env, "-i", *sending(way), provider.url())
    assert (done.returncode, done.stdout, done.stderr) == (bare.returncode, bare.stdout, bare.stderr)
    first, second = provider.requests
    assert (first.method, first.target, first.headers, first.body) == \
        (second.method, second.target, second.headers, second.body)
    for _ in range(4):
        run_curl(breaker_env, *sending(way), provider.url())
    assert provider.count() == 6
    assert breaker_env.state(provider.key(MODEL)) == "open"


def test_head_of_the_answer(provider, breaker_env, shut):
    shut(provider)
    done = run_curl(breaker_env, "-i", "-d", chat(MODEL), provider.url())
    head, _, body = done.stdout.decode().partition("\r\n\r\n")
    lines = head.split("\r\n")
    headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines[1:])}
    assert lines[0] == "HTTP/1.1 503 Service Unavailable"
    assert headers["content-type"] == "application/json"
    assert int(headers["content-length"]) == len(body)
    assert 50 <= int(headers["retry-after"]) <= 61  # rounded up, twice: to ticks and to seconds
    assert headers["x-should-retry"] == "false"
    assert headers["x-breaker-state"] == "open"
    assert headers["x-breaker-key"] == provider.key(MODEL)


def test_should_retry_can_be_left_out(provider, breaker_env, shut):
    shut(provider)
    breaker_env.configure(open_seconds=60, should_retry="true")
    done = run_curl(breaker_env, "-i", "-d", chat(MODEL), provider.url())
    assert b"503" in done.stdout and b"x-should-retry" not in done.stdout.lower()


@pytest.mark.parametrize("path,find", [
    ("/v1/messages", lambda d: d["type"] == "error" and d["error"]["type"] == "overloaded_error"),
    ("/v1beta/models/m:generateContent", lambda d: d["error"]["code"] == 503 and d["error"]["status"] == "UNAVAILABLE"),
    ("/model/m/converse", lambda d: "message" in d),
    ("/api/chat", lambda d: isinstance(d["error"], str)),
    ("/v2/chat", lambda d: "message" in d),
], ids=["anthropic", "gemini", "bedrock", "ollama", "cohere"])
def test_the_shape_of_each_provider(path, find, provider, breaker_env, shut):
    shut(provider)
    done = run_curl(breaker_env, "-d", chat(MODEL), provider.url(path))
    assert find(json.loads(done.stdout)), done.stdout
    assert provider.count() == 0


@pytest.mark.parametrize("flag,body", [("--fail", False), ("--fail-with-body", True)])
def test_fail(flag, body, provider, breaker_env, shut):
    shut(provider)
    done = run_curl(breaker_env, "-S", flag, "-d", chat(MODEL), provider.url())
    assert done.returncode == 22
    assert b"The requested URL returned error: 503" in done.stderr
    assert (b"circuit_open" in done.stdout) == body


def test_head_request_obeys_the_host(provider, breaker_env, shut):
    breaker_env.configure(f"[target {provider.key()}]\n", open_seconds=60)
    assert run_curl(breaker_env, "-I", provider.url("/v1/models")).stdout.startswith(b"HTTP/1.1 200")
    breaker_env.command("trip", "--create", provider.key())
    for url in (provider.url("/v1/models"), provider.url()):
        done = run_curl(breaker_env, "-I", "-w", "%{stderr}%{size_download}", url)
        assert done.returncode == 0 and done.stdout.startswith(b"HTTP/1.1 503") and done.stderr == b"0"
        assert b"X-Breaker-State: open" in done.stdout and done.stdout.endswith(b"\r\n\r\n")
    done = run_curl(breaker_env, provider.url("/v1/models"))
    assert b"circuit_open" in done.stdout
    assert provider.count() == 1


def test_parallel_curl(provider, breaker_env, shut):
    shut(provider)
    urls = [provider.url("/v1/chat/completions?" + str(n)) for n in range(8)]
    done = run_curl(breaker_env, "-Z", "--parallel-immediate", *CODE, "-d", chat(MODEL), *urls)
    assert done.returncode == 0 and codes(done) == ["503"] * 8
    assert sorted(re.findall("<503 (.*?)>", done.stderr.decode())) == sorted(urls)
    assert done.stdout.count(b"circuit_open") == 8
    assert provider.count() == 0


def test_parallel_curl_counts_each_transfer(provider, breaker_env):
    breaker_env.configure(open_seconds=60)
    provider.answer(Answer(500))
    urls = [provider.url("/v1/chat/completions?" + str(n)) for n in range(4)]
    done = run_curl(breaker_env, "-Z", "-d", chat(MODEL), *urls)
    assert done.returncode == 0 and provider.count() == 4
    found = breaker_env.breakers()[provider.key(MODEL)]
    assert found["calls"]["failure"] == 4 and found["streak"] == 4
    run_curl(breaker_env, "-d", chat(MODEL), provider.url())
    done = run_curl(breaker_env, "-Z", *CODE, "-d", chat(MODEL), *urls)
    assert codes(done) == ["503"] * 4 and provider.count() == 5


def test_parallel_upload(provider, breaker_env, shut, sending):
    """-Z -T: a body pulled by a callback, refused in a multi while it is sent."""
    shut(provider)
    uploads = [["-T", sending("-T file")[1], provider.url(), "-o", f"out{n}"] for n in range(4)]
    done = run_curl(breaker_env, "-Z", *CODE, *sum(uploads, []))
    assert done.returncode == 0 and codes(done) == ["503"] * 4, done
    for n in range(4):
        assert "circuit_open" in (breaker_env.directory / f"out{n}").read_text()
    assert provider.count() == 0


def test_upload_from_a_pipe(provider, breaker_env, shut):
    shut(provider)
    done = run_curl(breaker_env, "-T", "-", "-w", "%{stderr}%{http_code}", provider.url(),
                    input=chat(MODEL).encode())
    assert (done.returncode, done.stderr) == (0, b"503") and b"circuit_open" in done.stdout
    assert provider.count() == 0
    breaker_env.command("reset", provider.key(MODEL))
    done = run_curl(breaker_env, "-T", "-", "-w", "%{stderr}%{http_code}", provider.url(),
                    input=chat(MODEL).encode())
    assert (done.returncode, done.stderr) == (0, b"200")
    assert provider.requests[0].body == chat(MODEL).encode()


def test_one_process_several_calls(provider, breaker_env, shut):
    """Synthetic and real in turn over one handle and one pool; the connection is used again."""
    shut(provider, "shut")
    each = ["-w", "%{stderr}%{http_code}/%{num_connects} "]
    flags = []
    for number, model in enumerate(["fine", "shut", "fine", "shut", "fine"]):
        flags += (["--next", "-s"] if number else []) + [*each, "-d", chat(model), provider.url()]
    done = run_curl(breaker_env, *flags)
    codes = [item.split("/")[0] for item in done.stderr.decode().split()]
    assert codes == ["200", "503", "200", "503", "200"]
    assert [r.model for r in provider.seen()] == ["fine"] * 3
    assert len({r.connection for r in provider.seen()}) == 1, "the pooled connection was lost"


def test_first_synthetic_then_real(provider, breaker_env, shut):
    shut(provider, "shut")
    done = run_curl(breaker_env, "-w", "%{stderr}%{http_code} ", "-d", chat("shut"), provider.url(), "--next", "-s",
                    "-w", "%{stderr}%{http_code} ", "-d", chat("fine"), provider.url())
    assert done.stderr.split() == [b"503", b"200"]
    assert [r.model for r in provider.seen()] == ["fine"]


def test_retry_waits_for_the_probe(provider, breaker_env, open_breaker):
    open_breaker(provider)
    provider.answer(Answer(200), model=MODEL)
    done = run_curl(breaker_env, "--retry", "5", "-w", "%{stderr}%{http_code}", "-d", chat(MODEL), provider.url())
    assert done.returncode == 0 and done.stderr.endswith(b"200"), done
    assert provider.count() == 1
    assert breaker_env.state(provider.key(MODEL)) == "closed"


@pytest.mark.parametrize("how", ["env", "-x", "--socks5", "--preproxy", "tunnel"])
def test_refused_although_a_proxy_is_set(how, provider, providers, breaker_env, shut):
    proxy = providers()
    shut(provider)
    flags = {"env": [], "-x": ["-x", proxy.url("")], "--socks5": ["--socks5", f"127.0.0.1:{proxy.port}"],
             "--preproxy": ["-x", proxy.url(""), "--preproxy", f"socks5://127.0.0.1:{proxy.port}"],
             "tunnel": ["-p", "-x", proxy.url("")]}[how]
    env = {"http_proxy": proxy.url(""), "https_proxy": proxy.url("")} if how == "env" else {}
    done = run_curl(breaker_env, "-w", "%{stderr}%{http_code}", *flags, "-d", chat(MODEL), provider.url(), env=env)
    assert (done.returncode, done.stderr) == (0, b"503") and b"circuit_open" in done.stdout
    assert proxy.accepted == 0 and provider.accepted == 0


@pytest.mark.parametrize("flags", [[], ["--proto", "=https"], ["--hsts", "HSTS"], ["--http1.1"], ["--tlsv1.3"],
                                   ["--alt-svc", "ALTSVC"]],
                         ids=["plain", "proto", "hsts", "http1.1", "tls1.3", "alt-svc"])
def test_https(flags, tls_provider, authority, breaker_env, shut, tmp_path):
    (tmp_path / "hsts").write_text('localhost "20991231 00:00:00"\n')
    (tmp_path / "altsvc").write_text("")
    flags = [str(tmp_path / f.lower()) if f.isupper() else f for f in flags]
    url = tls_provider.url(name="localhost")
    call = ["--cacert", authority.ca, *flags, *WRITE, "-d", chat(MODEL), url]
    done = run_curl(breaker_env, *call)
    assert (done.returncode, written(done)[:3]) == (0, ["200", url, "HTTPS"])
    shut(tls_provider, name="localhost")
    done = run_curl(breaker_env, *call)
    assert (done.returncode, written(done)[:3]) == (0, ["503", url, "HTTPS"])
    assert b"circuit_open" in done.stdout
    assert tls_provider.count() == 1 and tls_provider.accepted == 1


def test_hsts_upgrade(tls_provider, authority, breaker_env, shut, tmp_path):
    """A http:// URL that libcurl itself makes https: the answer is the same."""
    (tmp_path / "hsts").write_text('localhost "20991231 00:00:00"\n')
    url = tls_provider.url(name="localhost").replace("https:", "http:")
    shut(tls_provider, name="localhost")
    done = run_curl(breaker_env, "--hsts", tmp_path / "hsts", "--cacert", authority.ca, *WRITE, "-d", chat(MODEL), url)
    assert done.returncode == 0 and written(done)[0] == "503", done
    assert tls_provider.count() == 0


def test_unix_socket(provider, breaker_env, shut, tmp_path):
    shut(provider)
    done = run_curl(breaker_env, "--unix-socket", tmp_path / "nobody", *WRITE, "-d", chat(MODEL), provider.url())
    assert done.returncode == 0 and written(done)[0] == "503", done


def test_redirects_are_followed_to_the_end(provider, breaker_env):
    provider.answer(Answer(307, {"Location": "/v2/chat"}, b""), path="/v1/chat/completions")
    provider.answer(Answer(500), path="/v2/chat")
    for _ in range(5):
        done = run_curl(breaker_env, "-L", "-w", "%{http_code}", "-o", "/dev/null", "-d", chat(MODEL), provider.url())
        assert done.stdout == b"500"
    assert breaker_env.state(provider.key(MODEL)) == "open"
    assert provider.count() == 10


def test_digest_counts_its_last_head(provider, breaker_env):
    provider.answer(Answer(200, digest=True))
    done = run_curl(breaker_env, "--digest", "-u", "user:word", "-w", "%{stderr}%{http_code}", "-d", chat(MODEL),
                    provider.url())
    assert done.stderr == b"200" and provider.count() == 2
    calls = breaker_env.calls(provider.key(MODEL))
    assert (calls["success"], calls["failure"], calls["neutral"]) == (1, 0, 0)


def test_the_content_of_a_download_is_untouched(provider, breaker_env):
    payload = bytes(range(256)) * 8000
    provider.answer(Answer(200, body=payload, chunked=True))
    done = run_curl(breaker_env, "-d", chat(MODEL), provider.url())
    assert done.stdout == payload
