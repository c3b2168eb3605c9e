"""client_shapes.py HOW URL MODEL [OTHER]: pycurl in less common shapes. Prints one JSON line per call.

HOW: threads (32 threads, a handle each), fork (a fork while a call is under way: the child closes what it inherited
and makes a call of its own to OTHER), nested (OTHER called by another handle from the write callback of MODEL),
moved (a handle that goes to a second multi before its end; says "asked" and waits for a line before), spawn
(subprocess from a thread while calls run).
"""

import io
import json
import os
import subprocess
import sys
import threading

import pycurl

how, url, model = sys.argv[1:4]
other = sys.argv[4] if len(sys.argv) > 4 else None
lock = threading.Lock()


def easy(model):
    handle = pycurl.Curl()
    handle.answer = io.BytesIO()
    handle.setopt(pycurl.URL, url)
    handle.setopt(pycurl.NOSIGNAL, 1)
    handle.setopt(pycurl.TIMEOUT, 20)
    handle.setopt(pycurl.COPYPOSTFIELDS, json.dumps({"model": model}))
    handle.setopt(pycurl.WRITEDATA, handle.answer)
    return handle


def report(handle, name):
    line = json.dumps({"model": name, "status": handle.getinfo(pycurl.RESPONSE_CODE),
                       "body": handle.answer.getvalue().decode()})
    with lock:
        print(line, flush=True)


def call(name):
    handle = easy(name)
    handle.perform()
    report(handle, name)
    handle.close()


def run_multi(multi, until=lambda: False):
    running = True
    while running:
        _, running = multi.perform()
        if until():
            return
        multi.select(0.05)


if how == "threads":
    threads = [threading.Thread(target=call, args=(model,)) for _ in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
elif how == "fork":
    multi, handle = pycurl.CurlMulti(), easy(model)
    multi.add_handle(handle)
    run_multi(multi, lambda: handle.getinfo(pycurl.REQUEST_SIZE) > 0)
    child = os.fork()
    if child == 0:
        multi.remove_handle(handle)
        handle.close()
        call(other)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    print(json.dumps({"model": None, "status": 0, "body": "forked"}), flush=True)
    run_multi(multi)
    multi.info_read()
    report(handle, model)
elif how == "nested":
    outer = easy(model)
    calls = []

    def receive(data):
        if not calls:
            calls.append(1)
            call(other)
        outer.answer.write(data)

    outer.setopt(pycurl.WRITEFUNCTION, receive)
    outer.perform()
    report(outer, model)
elif how == "moved":
    first, second, handle = pycurl.CurlMulti(), pycurl.CurlMulti(), easy(model)
    first.add_handle(handle)
    run_multi(first, lambda: handle.getinfo(pycurl.REQUEST_SIZE) > 0)
    print(json.dumps("asked"), flush=True)
    sys.stdin.readline()
    first.remove_handle(handle)
    second.add_handle(handle)
    run_multi(second)
    second.info_read()
    report(handle, model)
elif how == "spawn":
    threads = [threading.Thread(target=call, args=(model,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        assert subprocess.run(["true"]).returncode == 0
    for thread in threads:
        thread.join()
