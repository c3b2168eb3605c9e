"""slow_pycurl.py HOW URL MODEL SECONDS: a pycurl call that ends, or is given up, in a way of its own.

HOW: timeout (of easy), multi-timeout, low-speed (gives up by itself, in whole seconds), remove (from its multi, SECONDS
after the last byte), paused and resumed (its write callback pauses it, for good or for SECONDS, until a time-out), slow
(its write callback takes SECONDS, then a time-out), heads (they come by that callback, too; a time-out), upload (its
read callback takes SECONDS for the second half, and nobody knows how much it will say; a time-out). Prints the
libcurl code, -1 for a removed one, and the status.
"""

import json
import sys
import time
from pathlib import Path

import pycurl

sys.path.append(str(Path(__file__).parents[1]))
from passing import let_pass  # noqa: E402

how, url, model, seconds = *sys.argv[1:4], float(sys.argv[4])
multi, handle = pycurl.CurlMulti(), pycurl.Curl()
last = time.monotonic()  # a byte came
pauses = 0


def write(data):
    global last, pauses
    if how in ("paused", "resumed") and not pauses:
        pauses += 1
        return pycurl.WRITEFUNC_PAUSE
    if how == "slow":
        let_pass(seconds)
    last = time.monotonic()


handle.setopt(pycurl.URL, url)
if how != "upload":
    handle.setopt(pycurl.COPYPOSTFIELDS, json.dumps({"messages": [], "model": model}))
handle.setopt(pycurl.WRITEFUNCTION, write)
handle.setopt(pycurl.HEADER, how == "heads")
if how == "upload":
    parts = [json.dumps({"messages": [], "model": model})[:-1].encode()]

    def read(_):
        if parts:
            return parts.pop()
        let_pass(seconds)
        return b"}"

    handle.setopt(pycurl.POST, True)
    handle.setopt(pycurl.HTTPHEADER, ["Transfer-Encoding: chunked"])
    handle.setopt(pycurl.READFUNCTION, read)
if how == "low-speed":
    handle.setopt(pycurl.LOW_SPEED_LIMIT, 10)
    handle.setopt(pycurl.LOW_SPEED_TIME, round(seconds))
elif how != "remove":
    handle.setopt(pycurl.TIMEOUT_MS, int(seconds * 1000) + (0 if how.endswith("timeout") else 200))


def finish():
    running, until = 1, time.monotonic() + seconds
    while running:
        _, running = multi.perform()
        multi.select(0.02)
        if how == "remove" and time.monotonic() > last + seconds:
            return -1
        if how == "resumed" and pauses == 1 and time.monotonic() > until:
            pauses_over()
    _, good, bad = multi.info_read()
    return 0 if good else bad[0][1]


def pauses_over():
    global pauses
    pauses += 1
    handle.pause(pycurl.PAUSE_CONT)


def perform():
    try:
        handle.perform()
        return 0
    except pycurl.error as error:
        return error.args[0]


if how in ("timeout", "low-speed", "upload"):
    code = perform()
else:
    multi.add_handle(handle)
    code = finish()
status = handle.getinfo(pycurl.RESPONSE_CODE)
if how not in ("timeout", "low-speed", "upload"):
    multi.remove_handle(handle)
print(code, status)
