"""crowd.py KIND BASE-URL: many calls at once, by OpenAI's SDK in the ways in which servers make them.

KIND: threads, asyncio, uvloop, gevent, trio (there by httpx, which is under the SDK). A line of stdin is "MODEL NUMBER
whole|stream"; a line of JSON tells how often each answer came: the text, or "STATUS CODE" of a failed call.
"""

import collections
import concurrent.futures
import json
import sys

KIND, BASE = sys.argv[1:]
if KIND == "gevent":
    from gevent import monkey

    monkey.patch_all()

TURN = [{"role": "user", "content": "hi"}]
OPTIONS = {"api_key": "sk-of-nobody", "base_url": f"{BASE}/v1", "max_retries": 0, "timeout": 20}
AT_ONCE = 50


def orders():
    for line in iter(sys.stdin.readline, ""):
        model, number, how = line.split()
        yield model, int(number), how == "stream"


def tell(answers):
    print(json.dumps(collections.Counter(answers)), flush=True)


def text(event):
    return event.choices[0].delta.content or "" if event.choices else ""


def run_pool(run_all):
    import openai

    client = openai.OpenAI(**OPTIONS)

    def call(model, stream):
        try:
            answer = client.chat.completions.create(model=model, messages=TURN, stream=stream)
            return "".join(map(text, answer)) if stream else answer.choices[0].message.content
        except openai.APIStatusError as error:
            return f"{error.status_code} {error.code}"
        except Exception as error:
            return repr(error)

    for model, number, stream in orders():
        tell(run_all(lambda _, model=model, stream=stream: call(model, stream), range(number)))


async def run_async():
    import asyncio

    import openai

    client = openai.AsyncOpenAI(**OPTIONS)

    async def call(model, stream):
        try:
            answer = await client.chat.completions.create(model=model, messages=TURN, stream=stream)
            return "".join([text(e) async for e in answer]) if stream else answer.choices[0].message.content
        except openai.APIStatusError as error:
            return f"{error.status_code} {error.code}"
        except Exception as error:
            return repr(error)

    waiting = orders()
    while order := await asyncio.get_running_loop().run_in_executor(None, next, waiting, None):
        model, number, stream = order
        tell(await asyncio.gather(*[call(model, stream) for _ in range(number)]))


async def run_trio():
    import ssl

    import httpx
    import trio

    client = httpx.AsyncClient(base_url=BASE, verify=ssl.create_default_context(), timeout=20)

    async def call(model, stream, answers):
        try:
            order = {"model": model, "messages": TURN, "stream": stream}
            async with client.stream("POST", "/v1/chat/completions", json=order) as answer:
                body = (await answer.aread()).decode()
            if answer.status_code != 200:
                answers.append(f"{answer.status_code} {json.loads(body)['error']['code']}")
            else:
                answers.append("hello" if '"hello"' in body or '"hel"' in body and '"lo"' in body else body)
        except Exception as error:
            answers.append(repr(error))

    waiting = orders()
    while order := await trio.to_thread.run_sync(next, waiting, None):
        model, number, stream = order
        answers = []
        async with trio.open_nursery() as nursery:
            for _ in range(number):
                nursery.start_soon(call, model, stream, answers)
        tell(answers)


def main():
    if KIND == "threads":
        run_pool(concurrent.futures.ThreadPoolExecutor(AT_ONCE).map)
    elif KIND == "gevent":
        from gevent.pool import Pool

        run_pool(Pool(AT_ONCE).map)
    elif KIND == "trio":
        import trio

        trio.run(run_trio)
    elif KIND == "uvloop":
        import uvloop

        uvloop.run(run_async())
    else:
        import asyncio

        asyncio.run(run_async())


main()
