"""sock_python.py KIND …: POSTs of a chat by one of Python's HTTP clients, over sockets of its own.

    CLIENT [--timeout S] [--stream] [--close] URL COUNT [MODEL]    so many calls, one after the other
    CLIENT [--timeout S] -              a call per line of stdin: URL MODEL [stream] [close]

KIND: http.client, requests, httpx, httpx-async, aiohttp, aiohttp-total, urllib3; pycurl for comparison. The same
command line and the same output for all
sock_* clients (and SockClient.java); here it is told once. One process, one session or pool where the client has one;
`close` makes a call over a connection of its own, `stream` reads the answer piece by piece to its end. S (20) is the
time-out of connecting and of waiting. --also NAME resolves another name with the URL's port first (only here). A line
per call:

    status CODE circuit_open|- DIGEST      is "circuit_open" in the body; the start of its SHA-256
    error refused|timeout|other:NAME       the client's own error
"""

import argparse
import asyncio
import errno
import hashlib
import json
import os
import socket
import sys
from urllib.parse import urlsplit


def body_of(model):
    return json.dumps({"model": model, "messages": []}).encode()


TRUSTED = os.environ.get("SSL_CERT_FILE", False)  # httpx loads all certificates otherwise
HEADERS = {"Content-Type": "application/json"}
CLOSE = {**HEADERS, "Connection": "close"}


# --- the clients: call(url, model, stream, close) -> status, body ------------------------------------


class HttpClient:
    def __init__(self, timeout):
        self.timeout, self.kept = timeout, {}

    def call(self, url, model, stream, close):
        import http.client

        parts = urlsplit(url)
        connection = None if close else self.kept.get(parts.netloc)
        if connection is None:
            kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
            connection = kind(parts.hostname, parts.port, timeout=self.timeout)
            if not close:
                self.kept[parts.netloc] = connection
        try:
            connection.request("POST", parts.path, body_of(model), CLOSE if close else HEADERS)
            answer = connection.getresponse()
            body = b"".join(iter(lambda: answer.read1(64), b"")) if stream else answer.read()
        except Exception:
            connection.close()
            raise
        if close:
            connection.close()
        return answer.status, body


class Requests:
    def __init__(self, timeout):
        import requests

        self.timeout, self.session, self.fresh = timeout, requests.Session(), requests.post

    def call(self, url, model, stream, close):
        post = self.fresh if close else self.session.post
        answer = post(url, data=body_of(model), headers=CLOSE if close else HEADERS, timeout=self.timeout, stream=stream)
        return answer.status_code, b"".join(answer.iter_content(64)) if stream else answer.content


class Urllib3:
    def __init__(self, timeout):
        import urllib3

        self.make = lambda: urllib3.PoolManager(maxsize=4, retries=False, ca_certs=TRUSTED or None,
                                                timeout=urllib3.Timeout(timeout, timeout))
        self.pools = self.make()

    def call(self, url, model, stream, close):
        pools = self.make() if close else self.pools
        answer = pools.request("POST", url, body=body_of(model), headers=CLOSE if close else HEADERS,
                               preload_content=not stream)
        if not stream:
            return answer.status, answer.data
        body = b"".join(answer.stream(64))
        answer.release_conn()
        return answer.status, body


class Pycurl:
    """The measure of the others: it has no socket of its own, libcurl's hooks cover it."""

    def __init__(self, timeout):
        import pycurl

        self.pycurl, self.timeout, self.handle = pycurl, timeout, pycurl.Curl()

    def call(self, url, model, stream, close):
        pieces, handle, curl = [], self.handle, self.pycurl
        for option, value in ((curl.URL, url), (curl.COPYPOSTFIELDS, body_of(model)), (curl.WRITEFUNCTION, pieces.append),
                              (curl.CONNECTTIMEOUT_MS, int(self.timeout * 1000)), (curl.FRESH_CONNECT, close),
                              (curl.FORBID_REUSE, close)):
            handle.setopt(option, value)
        try:
            handle.perform()
        except curl.error as error:
            if error.args[0] == curl.E_COULDNT_CONNECT:
                raise ConnectionRefusedError(errno.ECONNREFUSED, "") from error
            raise TimeoutError if error.args[0] == curl.E_OPERATION_TIMEDOUT else error
        return handle.getinfo(curl.RESPONSE_CODE), b"".join(pieces)


class Httpx:
    def __init__(self, timeout):
        import httpx

        self.make = lambda: httpx.Client(timeout=timeout, verify=TRUSTED)
        self.client = self.make()

    def call(self, url, model, stream, close):
        client, headers = (self.make(), CLOSE) if close else (self.client, HEADERS)
        try:
            if not stream:
                answer = client.post(url, content=body_of(model), headers=headers)
                return answer.status_code, answer.content
            with client.stream("POST", url, content=body_of(model), headers=headers) as answer:
                return answer.status_code, b"".join(answer.iter_bytes())
        finally:
            if close:
                client.close()


class HttpxAsync:
    def __init__(self, timeout):
        import httpx

        self.make = lambda: httpx.AsyncClient(timeout=timeout, verify=TRUSTED)
        self.client = self.make()

    async def call(self, url, model, stream, close):
        client, headers = (self.make(), CLOSE) if close else (self.client, HEADERS)
        try:
            if not stream:
                answer = await client.post(url, content=body_of(model), headers=headers)
                return answer.status_code, answer.content
            async with client.stream("POST", url, content=body_of(model), headers=headers) as answer:
                return answer.status_code, b"".join([piece async for piece in answer.aiter_bytes()])
        finally:
            if close:
                await client.aclose()

    async def end(self):
        await self.client.aclose()


class Aiohttp:
    def __init__(self, timeout):
        import aiohttp

        self.make = lambda: aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(**self.limits(timeout)))
        self.session = None

    def limits(self, timeout):
        return {"total": None, "sock_connect": timeout, "sock_read": timeout}

    async def call(self, url, model, stream, close):
        if self.session is None:
            self.session = self.make()  # needs the running loop
        session, headers = (self.make(), CLOSE) if close else (self.session, HEADERS)
        try:
            async with session.post(url, data=body_of(model), headers=headers) as answer:
                if not stream:
                    return answer.status, await answer.read()
                return answer.status, b"".join([piece async for piece in answer.content.iter_any()])
        finally:
            if close:
                await session.close()

    async def end(self):
        if self.session:
            await self.session.close()


class AiohttpTotal(Aiohttp):
    """One time-out for the whole call: it never comes to a second address."""

    def limits(self, timeout):
        return {"total": timeout}


KINDS = {"http.client": HttpClient, "requests": Requests, "urllib3": Urllib3, "httpx": Httpx,
         "httpx-async": HttpxAsync, "aiohttp": Aiohttp, "aiohttp-total": AiohttpTotal,
         "pycurl": Pycurl}


# --- what is said of a call -------------------------------------------------------------------------


def causes(error):
    """The error and all that it was made of: clients wrap in causes, contexts, groups and arguments."""
    seen, found = [], [error]
    while found:
        one = found.pop()
        if not isinstance(one, BaseException) or one in seen:
            continue
        seen.append(one)
        found += [one.__cause__, one.__context__, *getattr(one, "exceptions", ()), *one.args]
    return seen


def kind_of(error):
    chain = causes(error)
    if any(getattr(e, "errno", None) == errno.ECONNREFUSED for e in chain):
        return "refused"
    if any(isinstance(e, (TimeoutError, asyncio.TimeoutError)) or "Timeout" in type(e).__name__ for e in chain):
        return "timeout"
    return f"other:{type(error).__name__}"


def report(status, body):
    mark = "circuit_open" if b"circuit_open" in body else "-"
    print("status", status, mark, hashlib.sha256(body).hexdigest()[:16], flush=True)


def report_error(error):
    print("error", kind_of(error), flush=True)


def run(client, calls):
    for call in calls:
        try:
            report(*client.call(*call))
        except Exception as error:  # whatever the client throws is its answer
            report_error(error)


async def run_async(client, calls):
    loop, calls = asyncio.get_running_loop(), iter(calls)
    while True:
        # On another thread, as kept connections are looked after by the loop in the meantime.
        call = await loop.run_in_executor(None, next, calls, None)
        if call is None:
            break
        try:
            report(*await client.call(*call))
        except Exception as error:
            report_error(error)
    await client.end()


def calls_of_stdin():
    for line in iter(sys.stdin.readline, ""):
        url, model, *how = line.split()
        yield url, model, "stream" in how, "close" in how


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--timeout", type=float, default=20)
    parser.add_argument("--stream", action="store_true")
    parser.add_argument("--close", action="store_true")
    parser.add_argument("--also", metavar="NAME:PORT")
    parser.add_argument("url")
    parser.add_argument("count", nargs="?", type=int, default=1)
    parser.add_argument("model", nargs="?", default="m")
    options = parser.parse_args()
    if options.also:
        name, port = options.also.split(":")
        assert socket.getaddrinfo(name, int(port), type=socket.SOCK_STREAM)
    if options.url == "-":
        calls = calls_of_stdin()
    else:
        calls = [(options.url, options.model, options.stream, options.close)] * options.count
    make = KINDS[options.kind]
    if hasattr(make, "end"):
        asyncio.run(with_loop(make, options.timeout, calls))
    else:
        run(make(options.timeout), calls)


async def with_loop(make, timeout, calls):
    await run_async(make(timeout), calls)


main()
