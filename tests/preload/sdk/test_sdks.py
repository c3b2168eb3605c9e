"""Issue 6, item 1: the providers' own SDKs for Python, as programs use them, over TLS; in clear text one for each HTTP
library that is under them.

One program per SDK and transport walks all states, since imports are slow. What a model gets is in its name
(sdk_provider.py), so each call that is judged has a breaker of its own; the host's is the last thing that opens.
"""

import dataclasses
import itertools

import pytest

from provider import wait_until


@dataclasses.dataclass
class Sdk:
    """What is to be seen of one. Exceptions: of a 500, of a refused call and of one whose credential waits (with what
    the exception offers as a code), of an error inside a stream (or the text, where there is none), of a time-out and
    of a refused connection; a pair is that of a call and that of an asynchronous one."""

    failed: str
    refused: tuple
    limited: tuple
    broken: str
    hung: str | tuple
    unreachable: str | tuple
    attempts: int = 1  # of a failing call, by the SDK's own defaults
    retried: tuple = (500, 503, 529)  # statuses
    once: tuple = ()  # what is never retried: a way, or "stream"
    refusals: int = 1  # how often a refused call that is retried asks
    sleeps: float | None = None  # seconds at most, between those
    ways: tuple = ("chat",)
    is_async: tuple = (False, True)
    overloaded: tuple = ()  # ways on which that is told as a failure of the provider's, a 500

    def refused_as(self, how):
        """Exception, code and status."""
        return (self.failed, None, 500) if how["way"] in self.overloaded else (*self.refused, 503)

    def is_retried(self, how):
        return how["way"] not in self.once and not (how["stream"] and "stream" in self.once)

    def attempts_of(self, status, how):
        return self.attempts if status in self.retried and self.is_retried(how) else 1

    def refusals_of(self, how):
        return self.refusals if self.is_retried(how) else 1


def of(names, how):
    return names if isinstance(names, str) else names[how["is_async"]]


OPEN, LIMITED = "circuit_open", "cooling_down"
SDKS = {
    "openai": Sdk(
        failed="openai.InternalServerError", refused=("openai.InternalServerError", OPEN),
        limited=("openai.RateLimitError", LIMITED), broken="openai.APIError", hung="openai.APITimeoutError",
        unreachable="openai.APIConnectionError", attempts=3, ways=("chat", "responses")),
    "anthropic": Sdk(
        failed="anthropic.InternalServerError", refused=("anthropic.ServiceUnavailableError", OPEN),
        limited=("anthropic.RateLimitError", LIMITED), broken="anthropic.APIStatusError",
        hung="anthropic.APITimeoutError", unreachable="anthropic.APIConnectionError", attempts=3),
    "google-genai": Sdk(
        failed="google.ServerError", refused=("google.ServerError", "UNAVAILABLE"),
        limited=("google.ClientError", "RESOURCE_EXHAUSTED"), broken="google.ServerError",
        hung=("httpx2.ReadTimeout", "builtins.TimeoutError"),
        unreachable=("httpx2.ConnectError", "aiohttp.ClientConnectorError")),
    "mistralai": Sdk(
        failed="mistralai.SDKError", refused=("mistralai.SDKError", OPEN), limited=("mistralai.SDKError", LIMITED),
        broken="mistralai.ResponseValidationError", hung="httpx2.ReadTimeout", unreachable="httpx2.ConnectError"),
    # It knows no x-should-retry, and sleeps as long as a Retry-After says, a minute at most: it is told to ask again at
    # once, and does so twice.
    "cohere": Sdk(
        failed="cohere.InternalServerError", refused=("cohere.ServiceUnavailableError", OPEN),
        limited=("cohere.TooManyRequestsError", LIMITED), broken="hel (scripted error)", hung="httpx.ReadTimeout",
        unreachable="httpx.ConnectError", attempts=3, once=("stream",), refusals=3),
    "groq": Sdk(
        failed="groq.InternalServerError", refused=("groq.InternalServerError", OPEN),
        limited=("groq.RateLimitError", LIMITED), broken="groq.APIError", hung="groq.APITimeoutError",
        unreachable="groq.APIConnectionError", attempts=3),
    # No header keeps botocore from its two retries, before which it waits for up to 0.05 and 0.1 s.
    "boto3": Sdk(
        failed="botocore.ServiceUnavailableException",
        refused=("botocore.ServiceUnavailableException", "ServiceUnavailableException"),
        limited=("botocore.ThrottlingException", "ThrottlingException"), broken="botocore.EventStreamError",
        hung="botocore.ReadTimeoutError", unreachable="botocore.EndpointConnectionError", attempts=3,
        retried=(500, 503), refusals=3, sleeps=0.15, is_async=(False,)),
    # Anthropic's word "overloaded_error" is an InternalServerError to it, whatever the status.
    "litellm": Sdk(
        failed="litellm.InternalServerError", refused=("litellm.ServiceUnavailableError", None),
        limited=("litellm.RateLimitError", None), broken="litellm.MidStreamFallbackError", hung="litellm.Timeout",
        unreachable="litellm.InternalServerError", attempts=3, once=("messages",), ways=("chat", "messages"),
        overloaded=("messages",)),
    "langchain-openai": Sdk(
        failed="langchain_openai.OpenAIAPIError", refused=("langchain_openai.OpenAIAPIError", OPEN),
        limited=("langchain_openai.OpenAIRateLimitError", LIMITED), broken="openai.APIError",
        hung="langchain_openai.OpenAITimeoutError", unreachable="langchain_openai.OpenAIConnectionError", attempts=3),
}
IN_CLEAR = ("openai", "google-genai", "boto3")  # httpx; httpx2 and aiohttp; urllib3
TARGETS = """
[target provider]
match = {host}
[target hanging]
match = {host}/hang-*
failure_threshold = 1
"""
AT_ONCE = 10  # seconds, of a busy machine; the Retry-After of a refused call says sixty, and its retries are counted


class Walk:
    """A program of an SDK on its way through what can become of its calls."""

    def __init__(self, name, program, api, breaker_env, host):
        self.sdk, self.program, self.api, self.breaker_env, self.host = SDKS[name], program, api, breaker_env, host
        self.here = ""

    def ways(self, streams=(False, True)):
        for way, is_async, stream in itertools.product(self.sdk.ways, self.sdk.is_async, streams):
            self.here = f"{way}{' async' if is_async else ''}{' stream' if stream else ''}"
            yield {"way": way, "is_async": is_async, "stream": stream}

    def key(self, model=None):
        return self.api.key(model, self.host)

    def model(self, state):
        return f"{state}-{self.here.replace(' ', '-')}"

    def check(self, *facts):
        """Each is a pair, of what is so and what should be."""
        assert tuple(fact[0] for fact in facts) == tuple(fact[1] for fact in facts), self.here

    def told(self, model):
        calls = self.breaker_env.calls(self.key(model))
        return {kind: calls[kind] for kind in ("success", "failure", "neutral") if calls[kind]}

    # --- states ----------------------------------------------------------------------------------------

    def healthy(self):
        for how in self.ways():
            model = self.model("healthy")
            said = [self.program.ask(model, **how).get("text") for _ in range(2)]
            self.check((said, ["hello"] * 2), (self.api.count(model=model), 2), (self.told(model), {"success": 2}))

    def failing(self, status):
        """Five failures, whoever retries; then no more of it reaches the provider."""
        for how in self.ways():
            model, number = self.model(status), self.sdk.attempts_of(status, how)
            first = self.program.ask(model, **how)
            seen = 500 if status == 529 and how["way"] in self.sdk.overloaded else status
            self.check((first.get("status"), seen), (self.api.count(model=model), number))
            if status == 500:
                self.check((first.get("error"), self.sdk.failed))
            wait_until(lambda: self.is_refused(self.program.ask(model, **how)), what=f"{self.here} is refused")
            self.check((self.api.count(model=model), 5), (self.told(model), {"failure": 5}),
                       (self.breaker_env.state(self.key(model)), "open"))
            self.refused(model, how)

    def is_refused(self, answer):
        return "libbreaker: the circuit breaker of" in answer.get("said", "")

    def refused(self, model, how):
        """The SDK's own exception, at once, without retries of its own; the provider is not asked."""
        count, before = self.api.count(model=model), self.breaker_env.calls(self.key(model))["refused"]
        answer = self.program.ask(model, **how)
        error, code, status = self.sdk.refused_as(how)
        self.check((answer.get("error"), error), (answer["code"], code), (answer["status"], status),
                   (f"circuit breaker of {self.key(model)} is open" in (answer["message"] or ""), True),
                   (self.breaker_env.calls(self.key(model))["refused"] - before, self.sdk.refusals_of(how)),
                   (self.api.count(model=model), count))
        assert answer["seconds"] < AT_ONCE, (self.here, answer)
        assert self.sdk.sleeps is None or 0 < answer["slept"] <= self.sdk.sleeps, (self.here, answer)

    def limited(self):
        """A 429 counts for nobody; the credential waits, and is told so in the provider's place."""
        for how in self.ways():
            model = self.model("429")
            first, second = (self.program.ask(model, retries=0, **how) for _ in range(2))
            error, code = self.sdk.limited
            self.check((first.get("error"), error), (second.get("error"), error), (second["status"], 429),
                       (second["code"], code), ("is cooling down for this credential" in (second["message"] or ""), True),
                       (self.api.count(model=model), 1), (self.told(model), {"neutral": 1}))

    def cut(self):
        for how in self.ways(streams=(True,)):
            model = self.model("cut")
            said = [self.program.ask(model, **how) for _ in range(2)]
            self.check((["error" in one for one in said], [True] * 2), (self.told(model), {"failure": 2}))

    def broken(self):
        for how in self.ways(streams=(True,)):
            model = self.model("broken")
            said = [self.program.ask(model, **how) for _ in range(5)]
            names = [one.get("error") or one["text"] for one in said]
            expected = "hel (scripted error)" if how["way"] == "responses" else self.sdk.broken
            self.check((names, [expected] * 5), (self.told(model), {"failure": 5}), (self.api.count(model=model), 5))
            self.refused(model, how)

    def hanging(self):
        """The program's own time-out, which is a failure and enough for these models."""
        for how in self.ways(streams=(False,)):
            model = self.model("hang")
            said = self.program.ask(model, timeout=1, retries=0, **how).get("error")
            self.check((said, of(self.sdk.hung, how)), (self.api.count(model=model), 1))
            wait_until(lambda: self.told(model) == {"failure": 1}, what="a failure")  # asyncio's closes come later
            self.refused(model, how)

    def recovered(self):
        """The clients' pools dropped their connections; a breaker that is closed again lets them make new ones."""
        for how in self.ways():
            model = self.model("500")
            self.api.healed = True
            self.breaker_env.command("reset", self.key(model))
            said = [self.program.ask(model, **how).get("text") for _ in range(2)]
            self.check((said, ["hello"] * 2), (self.told(model)["success"], 2))

    def unreachable(self):
        """The host's own breaker: connects are refused, by the machine and then by us."""
        self.api.refuse()
        hows = itertools.cycle(self.ways(streams=(False,)))
        for _ in range(5):
            how = next(hows)
            answer = self.program.ask("healthy", retries=0, **how)
            self.check((answer.get("error"), of(self.sdk.unreachable, how)))
        self.check((self.breaker_env.state(self.key()), "open"))
        self.api.listen()
        before = self.api.accepted
        for _ in self.sdk.is_async:
            how = next(hows)
            answer = self.program.ask("healthy", retries=0, **how)
            self.check((answer.get("error"), of(self.sdk.unreachable, how)), (self.api.accepted, before))
        self.breaker_env.command("reset", self.key())
        self.check((self.program.ask("healthy", **next(hows)).get("text"), "hello"))


@pytest.mark.time_limit(180)
@pytest.mark.parametrize("name, transport", [*((name, "https") for name in SDKS), *((name, "http") for name in IN_CLEAR)],
                         indirect=["transport"])
def test_walk(name, program, api, breaker_env, named):
    host = named(name)
    breaker_env.configure(TARGETS.format(host=f"{host}:{api.port}"), open_seconds=60, hang_after=0.5)
    walk = Walk(name, program(name), api, breaker_env, host)
    walk.healthy()
    for status in (500, 503, 529):
        walk.failing(status)
    walk.limited()
    walk.broken()
    walk.cut()
    walk.hanging()
    walk.recovered()
    walk.unreachable()
    walk.program.end()
