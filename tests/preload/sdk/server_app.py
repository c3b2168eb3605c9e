"""server_app.py, for gunicorn: an ASGI application that asks a provider by OpenAI's SDK, as services do.

GET /MODEL[?stream] answers with JSON: {"text": …}, or {"error": CLASS, "status": …, "code": …}; the process that did
it, and its resident memory in KiB, are said with it. PROVIDER in the environment is the provider's base URL.
"""

import json
import os

import openai

# All of it is loaded before gunicorn forks and drops its rights.
openai.OpenAI(api_key="sk-of-nobody").chat.completions
client = None


def ask_client():
    global client
    if client is None:  # each process its own
        client = openai.AsyncOpenAI(api_key="sk-of-nobody", base_url=f"{os.environ['PROVIDER']}/v1", max_retries=0,
                                    timeout=float(os.environ["PROVIDER_TIMEOUT"]))
    return client.chat.completions


async def ask(model, stream):
    turn = [{"role": "user", "content": "hi"}]
    try:
        answer = await ask_client().create(model=model, messages=turn, stream=stream)
        if not stream:
            return {"text": answer.choices[0].message.content}
        return {"text": "".join([e.choices[0].delta.content or "" async for e in answer if e.choices])}
    except Exception as error:
        return {"error": type(error).__name__, "status": getattr(error, "status_code", None),
                "code": getattr(error, "code", None)}


def resident():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


async def app(scope, receive, send):
    assert scope["type"] == "http"
    said = await ask(scope["path"][1:], scope["query_string"] == b"stream")
    body = json.dumps({**said, "process": os.getpid(), "resident": resident()}).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": body})
