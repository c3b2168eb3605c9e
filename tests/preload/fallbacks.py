"""What the tests of fallbacks share: breaker.ini with a chain, requests byte for byte, a libcurl that is driven from the test.

    second = Fallback("second", provider)
    breaker_env.configure(chain(primary, second), open_seconds=60)
    expected(raw, second)      # what of a request that the primary got is to arrive at `second`
    with Remote(breaker_env) as curl: curl.new("a"); curl.set("a", URL=...); curl.perform("a").status
"""

import io
import json
import re
import subprocess
import types
from pathlib import Path

from provider import Answer, read_body
from support import PYTHON

CLIENTS = Path(__file__).with_name("clients")
# Memory from malloc() is never zero by chance.
NO_ZEROES = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0:glibc.malloc.perturb=165"}
OPENSSL, GNUTLS = "libcurl.so.4", "libcurl-gnutls.so.4"
SECOND_KEY = "sk-Second0fTheFallback"
EVENTS = b"".join(b'data: {"choices":[{"delta":{"content":"%d"}}]}\n\n' % n for n in range(40)) + b"data: [DONE]\n\n"
STREAM = Answer(200, {"Content-Type": "text/event-stream"}, EVENTS, chunked=True, pieces=20)
PLAIN = Answer(200, body=b'{"from":"the fallback"}')
CREDENTIALS = ("authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie", "openai-organization",
               "openai-project")
# Of the application.
HEADERS = ["Content-Type: application/json", "Authorization: Bearer sk-0f-the-primary", "X-App: one; two",
           "OpenAI-Organization: org-1", "Idempotency-Key: 7", "x-lower: kept"]


class Fallback:
    """A [fallback NAME] that leads to a provider."""

    def __init__(self, name, provider, host="localhost", path="/api/v1", model="*:openai/{model}",
                 auth="Authorization: Bearer ${SECOND_KEY}", headers=("HTTP-Referer: https://example.org",)):
        self.name, self.provider, self.host, self.path, self.model = name, provider, host, path, model
        self.auth, self.headers = auth, headers

    @property
    def base(self):
        return self.provider.url(self.path, self.host)

    @property
    def added(self):
        """Its lines, as they arrive."""
        lines = [self.auth] if self.auth else []
        return [line.replace("${SECOND_KEY}", SECOND_KEY).encode() for line in [*lines, *self.headers]]

    def url(self, suffix="/chat/completions"):
        return self.base + suffix

    def key(self, model=None):
        return self.provider.key(model, self.host)

    def section(self):
        keys = [("base", self.base), ("model", self.model), ("auth", self.auth), *(("header", h) for h in self.headers)]
        return f"[fallback {self.name}]\n" + "".join(f"{key} = {value}\n" for key, value in keys if value)


def target_of(key, **keys):
    """The section of a target, by the key of its breaker."""
    return f"[target {key}]\n" + "".join(f"{name} = {value}\n" for name, value in keys.items())


def addressed(key, address, **keys):
    """That of a host whose connects go elsewhere."""
    return target_of(key, fallback_address=address, **keys)


def target(primary, names, base="/v1", name=None, **keys):
    """The primary's section; base None: left out."""
    if base is not None:
        keys = {"base": primary.url(base, name), **keys}
    return target_of(primary.key(name=name), **{"fallback": ", ".join(names), **keys})


def chain(primary, *fallbacks, **keys):
    return target(primary, [f.name for f in fallbacks], **keys) + "".join(f.section() for f in fallbacks)


def chat(model, *around, **members):
    """A body whose bytes are known: the model first, or behind `around`."""
    members = {**dict(around), "model": model, **members} if around else {"model": model, **members}
    return json.dumps(members, separators=(",", ":"), ensure_ascii=False).encode().decode("latin-1")


# --- requests, byte for byte ---------------------------------------------------------------------


class Bytes:
    """A request as it arrived: its line, its head's lines in order, its body."""

    def __init__(self, raw):
        head, _, self.body = raw.partition(b"\r\n\r\n")
        self.line, *self.lines = head.split(b"\r\n")
        self.method, self.target, self.version = self.line.split(b" ")
        if self.values("transfer-encoding") == [b"chunked"]:
            self.body = read_body(io.BytesIO(self.body), {"transfer-encoding": "chunked"})

    @staticmethod
    def name_of(line):
        return line.split(b":")[0].strip().lower().decode("latin-1")

    def values(self, name):
        return [line.split(b":", 1)[1].strip() for line in self.lines if self.name_of(line) == name]

    def __eq__(self, other):
        return (self.line, self.lines, self.body) == (other.line, other.lines, other.body)

    def __repr__(self):
        body = self.body if len(self.body) < 2000 else self.body[:200] + b"..." + self.body[-200:]
        return "\n".join(map(repr, [self.line, *self.lines, body]))


MODEL_VALUE = re.compile(rb'("model":\s*)"((?:[^"\\]|\\.)*)"')


def with_model(body, rename):
    """The body with each "model" member's value put through rename(); there is one in the bodies of tests."""
    changed, count = MODEL_VALUE.subn(lambda m: m[1] + json.dumps(rename(m[2].decode())).encode(), body)
    assert count == 1, body[:300]
    return changed


def expected(raw, fallback, target=None, rename=lambda model: f"openai/{model}"):
    """What is to arrive at the fallback, of a request that the primary got without us; its own lines left out (they
    are looked for by `arrived`). rename None: the body stays."""
    request = Bytes(raw)
    new_target = target or request.target.decode().replace("/v1", fallback.path, 1)
    request.line = b"%s %s %s" % (request.method, new_target.encode(), request.version)
    if rename:
        request.body = with_model(request.body, rename)
    request.target, lines = new_target.encode(), []
    for line in request.lines:
        name = Bytes.name_of(line)
        if name == "host":
            line = b"Host: %s" % fallback.key().encode()
        if name == "content-length":
            line = b"Content-Length: %d" % len(request.body)
        if name == "content-range":  # libcurl's, of a body with a range
            line = b"%s/%d" % (line.partition(b"/")[0], len(request.body))
        if name not in CREDENTIALS:
            lines.append(line)
    request.lines = lines
    return request


def arrived(raw, fallback):
    """The request at the fallback without the lines that the fallback added: each is there, once."""
    request = Bytes(raw)
    for line in fallback.added:
        assert request.lines.count(line) == 1, (line, request)
        request.lines.remove(line)
    return request


def in_order(requests):
    """Of calls that went out side by side."""
    return sorted(requests, key=lambda r: (r.body, r.line, r.lines))


# --- libcurl, driven from the test ---------------------------------------------------------------


class Remote:
    """clients/client_remote.py as an object: its methods are those of Remote there."""

    def __init__(self, breaker_env, library=OPENSSL, bare=False, env=None):
        self.process = breaker_env.start(PYTHON, CLIENTS / "client_remote.py", library, bare=bare,
                                         stdin=subprocess.PIPE, env={"SECOND_KEY": SECOND_KEY, **NO_ZEROES, **(env or {})})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        _, told = self.process.communicate(timeout=30)
        told = [line for line in told.splitlines() if not line.startswith(b"breaker: ")]  # of the launcher: a bad section
        assert (self.process.returncode, told) == (0, [])

    def set(self, name, **options):
        self.tell("set", name=name, options=options)

    def made(self, name="a", **options):
        """A new handle of that name with those options."""
        self.new(name=name)
        self.set(name, **options)
        return name

    def call(self, name="a", **options):
        """A new handle, set and performed."""
        return self.perform(name=self.made(name, **options))

    def tell(self, do, **members):
        self.send(do, **members)
        return self.answer()

    def send(self, do, **members):
        """For orders that end later than the test goes on; answer() is to follow."""
        self.process.stdin.write(json.dumps({"do": do, **members}).encode() + b"\n")
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        assert line, (self.process.wait(15), self.process.stderr.read())
        answer = json.loads(line)
        assert "error" not in answer, answer["error"]
        return shown(answer["result"])

    def __getattr__(self, do):
        return lambda **members: self.tell(do, **members)


def shown(result):
    if isinstance(result, dict) and "code" in result:
        return types.SimpleNamespace(**result)
    return [shown(one) for one in result] if isinstance(result, list) else result


def is_refused(result):
    return result.status == 503 and "circuit_open" in result.body


# --- the state of things -------------------------------------------------------------------------


def trip_by_failures(breaker_env, curl, primary, models=("m",), how="dead", threshold=5):
    """Opens breakers by calls that fail, `failover` being off: the host's, or each model's."""
    if how == "dead":
        primary.refuse()
        for _ in range(threshold):
            assert curl(primary.url(), models[0]).code == 7
        assert breaker_env.state(primary.key()) == "open"
        assert breaker_env.calls(primary.key())["failure"] == threshold
    else:
        primary.answer(Answer(503))
        for model in models:
            for _ in range(threshold):
                assert curl(primary.url(), model).status == 503
            assert breaker_env.state(primary.key(model)) == "open"
    primary.clear()


def reasons(breaker_env):
    """The lines of the log that tell why, in `detail`: of ways that were not gone."""
    return [json.dumps(event) for event in breaker_env.events() if event.get("detail")]
