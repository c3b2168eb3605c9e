"""tls_bulk.py KIND WHAT URL: much at once over https, by one of Python's clients. KIND: http.client, requests, httpx, aiohttp.

    pooled      200 POSTs over one pool
    large       one POST of 20 MB, written in pieces
    stream      one POST, whose answer is read piece by piece
    concurrent  50 POSTs at once (httpx and aiohttp: on one loop; the others: threads)

Prints the SHA-256 of what was sent and of what came, each body in the order of its request.
"""

import asyncio
import concurrent.futures
import hashlib
import json
import os
import random
import ssl
import sys
from urllib.parse import urlsplit

KIND, WHAT, URL = sys.argv[1:]
CA = os.environ["SSL_CERT_FILE"]
HEADERS = {"Content-Type": "application/json"}


def body_of(number, filling=0):
    text = random.Random(number).randbytes(filling // 2).hex()
    return json.dumps({"messages": [{"content": text}], "n": number, "model": "m"}).encode()


if WHAT == "pooled":
    BODIES = [body_of(number, number * 50) for number in range(200)]
elif WHAT == "concurrent":
    BODIES = [body_of(number, number * 1000) for number in range(50)]
else:
    BODIES = [body_of(0, 20_000_000 if WHAT == "large" else 0)]


def in_http_client():
    import http.client

    parts = urlsplit(URL)

    def make():
        return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=50)

    def post(body, connection):
        connection.request("POST", parts.path, body, HEADERS)
        answer = connection.getresponse()
        return b"".join(iter(lambda: answer.read(1000), b""))

    if WHAT == "concurrent":
        with concurrent.futures.ThreadPoolExecutor(50) as pool:
            return list(pool.map(lambda body: post(body, make()), BODIES))
    connection = make()
    return [post(body, connection) for body in BODIES]


def in_requests():
    import requests

    session = requests.Session()

    def post(body):
        with session.post(URL, data=body, headers=HEADERS, timeout=50, stream=True) as answer:
            return b"".join(answer.iter_content(777))

    if WHAT == "concurrent":
        with concurrent.futures.ThreadPoolExecutor(50) as pool:
            return list(pool.map(post, BODIES))
    return [post(body) for body in BODIES]


async def each(post):
    if WHAT == "concurrent":
        return await asyncio.gather(*map(post, BODIES))
    return [await post(body) for body in BODIES]


async def in_httpx():
    import httpx

    async with httpx.AsyncClient(verify=CA, timeout=50) as client:
        async def post(body):
            async with client.stream("POST", URL, content=body, headers=HEADERS) as answer:
                return b"".join([piece async for piece in answer.aiter_raw()])

        return await each(post)


async def in_aiohttp():
    import aiohttp

    context = ssl.create_default_context(cafile=CA)
    async with aiohttp.ClientSession() as session:
        async def post(body):
            async with session.post(URL, data=body, headers=HEADERS, ssl=context) as answer:
                return b"".join([piece async for piece in answer.content.iter_any()])

        return await each(post)


def digest(parts):
    return hashlib.sha256(b"".join(parts)).hexdigest()


run = {"http.client": in_http_client, "requests": in_requests, "httpx": in_httpx, "aiohttp": in_aiohttp}[KIND]
came = asyncio.run(run()) if asyncio.iscoroutinefunction(run) else run()
print(digest(BODIES), digest(came))
