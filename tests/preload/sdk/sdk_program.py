"""sdk_program.py SDK: calls by one of the providers' own SDKs, as a program would make them: the SDK's defaults,
one client kept for all calls, the answer or the exception told.

A line of JSON comes in per call:

    {"url": BASE, "model": M, "way": "chat" | "responses" | "messages", "stream": BOOL, "async": BOOL, "retries": N or left out,
     "timeout": SECONDS}

and one goes out:

    {"seconds": S, "slept": S, "text": "what the model said"}
    {"seconds": S, "slept": S, "error": "package.Class", "status": 503, "code": ..., "message": ..., "said": "str() of it"}

`slept` is what it asked of time.sleep(). `code` and `message` are what the SDK's exception offers as such; null where it offers none. Asynchronous calls run in
one event loop on a thread of its own, which looks after kept connections between calls, too.
"""

import asyncio
import json
import sys
import threading
import time

TURN = [{"role": "user", "content": "hi"}]
KEY = "sk-of-nobody"


def inner(body, *names):
    """body[a][b]… of what may be no dictionary at some depth."""
    for name in names:
        body = body.get(name) if isinstance(body, dict) else None
    return body


class Sdk:
    """A client per base URL, kind and number of retries. Subclasses: open, call, acall, told."""

    def __init__(self):
        self.clients = {}

    def client(self, order):
        """Kept from call to call, or its pool would be new each time."""
        key = order["url"], order["async"], order.get("retries"), order["timeout"]
        if key not in self.clients:
            options = {} if order.get("retries") is None else self.retries(order["retries"])
            self.clients[key] = self.open(order["url"], order["async"], order["timeout"], options)
        return self.clients[key]

    def retries(self, number):
        return {"max_retries": number}

    def told(self, error):
        return {"status": getattr(error, "status_code", None), "code": None, "message": getattr(error, "message", None)}


class OpenAi(Sdk):
    def __init__(self):
        super().__init__()
        import openai as package

        self.one, self.many = package.OpenAI, package.AsyncOpenAI

    def open(self, url, is_async, timeout, options):
        return (self.many if is_async else self.one)(api_key=KEY, base_url=f"{url}/v1", timeout=timeout, **options)

    def ask(self, order):
        client = self.client(order)
        if order["way"] == "responses":
            return client.responses.create(model=order["model"], input="hi", stream=order["stream"])
        return client.chat.completions.create(model=order["model"], messages=TURN, stream=order["stream"])

    def text(self, order, answer):
        if order["way"] == "responses":
            return answer.output_text
        return answer.choices[0].message.content

    def piece(self, order, event):
        if order["way"] == "responses":
            return {"response.output_text.delta": lambda: event.delta, "error": lambda: f" ({event.message})"}.get(
                event.type, str)()
        return event.choices[0].delta.content or "" if event.choices else ""

    def call(self, order):
        answer = self.ask(order)
        return "".join(self.piece(order, e) for e in answer) if order["stream"] else self.text(order, answer)

    async def acall(self, order):
        answer = await self.ask(order)
        return "".join([self.piece(order, e) async for e in answer]) if order["stream"] else self.text(order, answer)

    def told(self, error):
        return {**super().told(error), "code": getattr(error, "code", None)}


class Groq(OpenAi):
    def __init__(self):
        Sdk.__init__(self)
        import groq as package

        self.one, self.many = package.Groq, package.AsyncGroq

    def open(self, url, is_async, timeout, options):
        return (self.many if is_async else self.one)(api_key=KEY, base_url=url, timeout=timeout, **options)

    def told(self, error):
        return {**Sdk.told(self, error), "code": inner(getattr(error, "body", None), "error", "code")}


class Anthropic(Sdk):
    def __init__(self):
        super().__init__()
        import anthropic as package

        self.one, self.many = package.Anthropic, package.AsyncAnthropic

    def open(self, url, is_async, timeout, options):
        return (self.many if is_async else self.one)(api_key=KEY, base_url=url, timeout=timeout, **options)

    def ask(self, order):
        return self.client(order).messages.create(model=order["model"], max_tokens=9, messages=TURN, stream=order["stream"])

    def piece(self, event):
        return event.delta.text if event.type == "content_block_delta" else ""

    def call(self, order):
        answer = self.ask(order)
        return "".join(map(self.piece, answer)) if order["stream"] else answer.content[0].text

    async def acall(self, order):
        answer = await self.ask(order)
        return "".join([self.piece(e) async for e in answer]) if order["stream"] else answer.content[0].text

    def told(self, error):
        return {**super().told(error), "code": inner(getattr(error, "body", None), "error", "code")}


class Gemini(Sdk):
    def __init__(self):
        super().__init__()
        from google import genai

        self.genai = genai

    def open(self, url, is_async, timeout, options):
        limits = self.genai.types.HttpOptions(base_url=url, timeout=int(timeout * 1000), **options)
        client = self.genai.Client(api_key=KEY, http_options=limits)
        return client.aio if is_async else client

    def retries(self, number):
        """None by default, but of its own asynchronous connects, before which it sleeps up to ten seconds."""
        return {"retry_options": self.genai.types.HttpRetryOptions(attempts=number + 1)}

    def call(self, order):
        models, what = self.client(order).models, {"model": order["model"], "contents": "hi"}
        if order["stream"]:
            return "".join(piece.text or "" for piece in models.generate_content_stream(**what))
        return models.generate_content(**what).text

    async def acall(self, order):
        models, what = self.client(order).models, {"model": order["model"], "contents": "hi"}
        if order["stream"]:
            return "".join([piece.text or "" async for piece in await models.generate_content_stream(**what)])
        return (await models.generate_content(**what)).text

    def told(self, error):
        return {"status": getattr(error, "code", None), "message": getattr(error, "message", None),
                "code": getattr(error, "status", None)}


class Mistral(Sdk):
    def __init__(self):
        super().__init__()
        from mistralai.client import Mistral as make

        self.make = make

    def open(self, url, is_async, timeout, options):
        return self.make(api_key=KEY, server_url=url, timeout_ms=int(timeout * 1000))

    def retries(self, number):
        assert number == 0  # its default
        return {}

    def piece(self, event):
        return event.data.choices[0].delta.content or ""

    def call(self, order):
        chat, what = self.client(order).chat, {"model": order["model"], "messages": TURN}
        if order["stream"]:
            with chat.stream(**what) as events:
                return "".join(map(self.piece, events))
        return chat.complete(**what).choices[0].message.content

    async def acall(self, order):
        chat, what = self.client(order).chat, {"model": order["model"], "messages": TURN}
        if order["stream"]:
            async with await chat.stream_async(**what) as events:
                return "".join([self.piece(e) async for e in events])
        return (await chat.complete_async(**what)).choices[0].message.content

    def told(self, error):
        try:
            body = json.loads(getattr(error, "body", ""))
        except (TypeError, ValueError):
            body = None
        return {"status": getattr(error, "status_code", None), "message": getattr(error, "message", None),
                "code": inner(body, "code") or inner(body, "error", "code")}


class Cohere(Sdk):
    def __init__(self):
        super().__init__()
        import cohere as package

        self.one, self.many = package.ClientV2, package.AsyncClientV2

    def open(self, url, is_async, timeout, options):
        return (self.many if is_async else self.one)(api_key=KEY, base_url=url, timeout=timeout, **options)

    def piece(self, event):
        if event.type == "message-end" and event.delta.finish_reason == "ERROR":
            return f" ({event.delta.error})"
        return event.delta.message.content.text if event.type == "content-delta" else ""

    def call(self, order):
        client, what = self.client(order), {"model": order["model"], "messages": TURN}
        if order["stream"]:
            return "".join(map(self.piece, client.chat_stream(**what)))
        return client.chat(**what).message.content[0].text

    async def acall(self, order):
        client, what = self.client(order), {"model": order["model"], "messages": TURN}
        if order["stream"]:
            return "".join([self.piece(e) async for e in client.chat_stream(**what)])
        return (await client.chat(**what)).message.content[0].text

    def told(self, error):
        body = getattr(error, "body", None)
        return {"status": getattr(error, "status_code", None), "message": inner(body, "message"), "code": inner(body, "code")}


class Bedrock(Sdk):
    """boto3 has no asynchronous side."""

    def __init__(self):
        super().__init__()
        import boto3
        import botocore.config

        self.session = boto3.Session(KEY, KEY, region_name="us-east-1")
        self.config = botocore.config.Config

    def open(self, url, is_async, timeout, options):
        config = self.config(connect_timeout=timeout, read_timeout=timeout, **options)
        return self.session.client("bedrock-runtime", endpoint_url=url, config=config)

    def retries(self, number):
        return {"retries": {"total_max_attempts": number + 1}}

    def call(self, order):
        client = self.client(order)
        what = {"modelId": order["model"], "messages": [{"role": "user", "content": [{"text": "hi"}]}]}
        if not order["stream"]:
            return client.converse(**what)["output"]["message"]["content"][0]["text"]
        events = client.converse_stream(**what)["stream"]
        return "".join(e["contentBlockDelta"]["delta"]["text"] for e in events if "contentBlockDelta" in e)

    def told(self, error):
        response = getattr(error, "response", None)
        return {"status": inner(response, "ResponseMetadata", "HTTPStatusCode"),
                "code": inner(response, "Error", "Code"), "message": inner(response, "Error", "Message")}


class LiteLlm(Sdk):
    """As a library."""

    def __init__(self):
        super().__init__()
        import litellm

        litellm.suppress_debug_info = True  # else it advertises itself on stdout
        self.litellm = litellm

    def what(self, order):
        """Way "chat": an OpenAI-like provider, by OpenAI's SDK; "messages": Anthropic's API, by clients of its own."""
        retries = {} if order.get("retries") is None else {"max_retries": order["retries"]}
        name, base = ("openai", f"{order['url']}/v1") if order["way"] == "chat" else ("anthropic", order["url"])
        return {"model": f"{name}/{order['model']}", "messages": TURN, "stream": order["stream"], "api_key": KEY,
                "api_base": base, "timeout": order["timeout"], **retries}

    def piece(self, event):
        return event.choices[0].delta.content or ""

    def call(self, order):
        answer = self.litellm.completion(**self.what(order))
        return "".join(map(self.piece, answer)) if order["stream"] else answer.choices[0].message.content

    async def acall(self, order):
        answer = await self.litellm.acompletion(**self.what(order))
        return "".join([self.piece(e) async for e in answer]) if order["stream"] else answer.choices[0].message.content


class LangChain(Sdk):
    def __init__(self):
        super().__init__()
        from langchain_openai import ChatOpenAI

        self.make = ChatOpenAI

    def client(self, order):
        self.model = order["model"]  # a client is for one
        key = order["model"], order["url"], order.get("retries"), order["timeout"]
        if key not in self.clients:
            options = {} if order.get("retries") is None else self.retries(order["retries"])
            self.clients[key] = self.make(model=order["model"], api_key=KEY, base_url=f"{order['url']}/v1",
                                          timeout=order["timeout"], **options)
        return self.clients[key]

    def call(self, order):
        client = self.client(order)
        return "".join(p.text for p in client.stream("hi")) if order["stream"] else client.invoke("hi").text

    async def acall(self, order):
        client = self.client(order)
        return "".join([p.text async for p in client.astream("hi")]) if order["stream"] else (await client.ainvoke("hi")).text

    def told(self, error):
        return {**super().told(error), "code": getattr(error, "code", None)}


SDKS = {"openai": OpenAi, "anthropic": Anthropic, "google-genai": Gemini, "mistralai": Mistral, "cohere": Cohere,
        "groq": Groq, "boto3": Bedrock, "litellm": LiteLlm, "langchain-openai": LangChain}


def text_of(said):
    return said if isinstance(said, str) else repr(said)


def note_sleeps():
    """The list of what is slept from now on, by whoever looks time.sleep() up then."""
    slept, sleep = [], time.sleep

    def noted(seconds):
        slept.append(seconds)
        sleep(seconds)

    time.sleep = noted
    return slept


def told(sdk, run, order, slept):
    slept.clear()
    start = time.monotonic()
    try:
        said = {"text": run(sdk.acall(order)) if order["async"] else sdk.call(order)}
    except Exception as error:  # whatever the SDK raises is its answer
        name = f"{type(error).__module__.partition('.')[0]}.{type(error).__name__}"
        said = {"error": name, **sdk.told(error), "said": text_of(str(error))}
    return {"seconds": round(time.monotonic() - start, 3), "slept": sum(slept), **said}


def main():
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    slept = note_sleeps()
    sdk = SDKS[sys.argv[1]]()

    def run(coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result()

    for line in iter(sys.stdin.readline, ""):
        print(json.dumps(told(sdk, run, json.loads(line), slept), default=repr), flush=True)


main()
