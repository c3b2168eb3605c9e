"""client_callbacks.py HOW URL MODEL: pycurl calls that end in a way of their own; prints the libcurl code.

HOW: write-abort (the write callback refuses the body), progress-abort (at once, before any head), late-abort (half a
second later), queued (a second handle that never leaves the multi's queue), remove (a multi handle removed while it
runs), paused (paused in the middle of its body until its time-out), no-descriptors (a call to "first", then one with
no descriptor left).
"""

import json
import os
import resource
import sys
import time

import pycurl

how, url, model = sys.argv[1:]


def easy(model):
    handle = pycurl.Curl()
    handle.setopt(pycurl.URL, url)
    handle.setopt(pycurl.COPYPOSTFIELDS, json.dumps({"model": model}))
    handle.setopt(pycurl.WRITEFUNCTION, lambda data: None)
    return handle


def perform(handle):
    try:
        handle.perform()
        return 0
    except pycurl.error as error:
        return error.args[0]


def run_multi(multi, until):
    running = True
    while running:
        _, running = multi.perform()
        if until(multi):
            return
        multi.select(0.05)


if how == "write-abort":
    handle = easy(model)
    handle.setopt(pycurl.WRITEFUNCTION, lambda data: -1)
    print(perform(handle))
elif how == "progress-abort":
    handle = easy(model)
    handle.setopt(pycurl.NOPROGRESS, 0)
    handle.setopt(pycurl.XFERINFOFUNCTION, lambda _total, _now, _up_total, up_now: up_now > 0)
    print(perform(handle))
elif how == "late-abort":
    handle, begin = easy(model), time.monotonic()
    handle.setopt(pycurl.NOPROGRESS, 0)
    handle.setopt(pycurl.XFERINFOFUNCTION, lambda *_: time.monotonic() > begin + 0.5)
    print(perform(handle))
elif how == "queued":
    multi = pycurl.CurlMulti()
    multi.setopt(pycurl.M_MAX_TOTAL_CONNECTIONS, 1)
    first, queued = easy("first"), easy(model)
    queued.setopt(pycurl.TIMEOUT_MS, 300)
    first.setopt(pycurl.TIMEOUT_MS, 900)
    multi.add_handle(first)
    multi.perform()
    multi.add_handle(queued)
    codes = {}

    def done(multi):
        _, good, bad = multi.info_read()
        codes.update({id(h): 0 for h in good})
        codes.update({id(h): code for h, code, _ in bad})
        return id(queued) in codes

    run_multi(multi, done)
    print(codes[id(queued)])
elif how == "remove":
    multi = pycurl.CurlMulti()
    handle = easy(model)
    multi.add_handle(handle)
    run_multi(multi, lambda _: handle.getinfo(pycurl.REQUEST_SIZE) > 0)
    multi.remove_handle(handle)
    print(0)
elif how == "paused":
    handle = easy(model)
    handle.setopt(pycurl.TIMEOUT_MS, 900)
    handle.setopt(pycurl.WRITEFUNCTION, lambda data: pycurl.WRITEFUNC_PAUSE)
    print(perform(handle))
elif how == "no-descriptors":
    perform(easy("first"))
    starved = easy(model)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    taken = []
    try:
        while True:
            taken.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    code = perform(starved)
    for descriptor in taken:
        os.close(descriptor)
    print(code)
