"""client_pycurl.py HOW URL MODEL...: one call per model, one JSON line each, as client.php.

HOW: exec (one reused handle), copy (duphandle), upload (READFUNCTION), mime, fail (FAILONERROR), multi, reset,
repl (reads "URL MODEL" lines from stdin over one handle, answers each). CLIENT_HEADERS: lines for each call.
"""

import io
import json
import os
import sys

import pycurl


def body_of(model):
    return json.dumps({"messages": [{"role": "user", "content": '"model":"x"'}], "model": model}).encode()


def prepare(handle, how, url, model):
    handle.answer = io.BytesIO()
    handle.setopt(pycurl.URL, url)
    handle.setopt(pycurl.TIMEOUT, 20)
    handle.setopt(pycurl.WRITEDATA, handle.answer)
    if how == "upload":
        handle.setopt(pycurl.POST, 1)
        handle.setopt(pycurl.POSTFIELDSIZE, len(body_of(model)))
        handle.setopt(pycurl.READFUNCTION, io.BytesIO(body_of(model)).read)
    elif how == "mime":
        handle.setopt(pycurl.HTTPPOST, [("file", (pycurl.FORM_CONTENTS, "sound")), ("model", model)])
    else:
        handle.setopt(pycurl.COPYPOSTFIELDS, body_of(model))
    handle.setopt(pycurl.FAILONERROR, how == "fail")
    if "CLIENT_HEADERS" in os.environ:
        handle.setopt(pycurl.HTTPHEADER, os.environ["CLIENT_HEADERS"].split("\n"))


def report(handle, code):
    print(json.dumps({"status": handle.getinfo(pycurl.RESPONSE_CODE), "body": handle.answer.getvalue().decode(),
                      "code": code, "url": handle.getinfo(pycurl.EFFECTIVE_URL),
                      "type": handle.getinfo(pycurl.CONTENT_TYPE)}), flush=True)


def perform(handle):
    try:
        handle.perform()
        return 0
    except pycurl.error as error:
        return error.args[0]


def run_multi(url, models):
    multi, handles, codes = pycurl.CurlMulti(), [], {}
    for model in models:
        handles.append(pycurl.Curl())
        prepare(handles[-1], "multi", url, model)
        multi.add_handle(handles[-1])
    running = len(handles)
    while running:
        _, running = multi.perform()
        multi.select(0.2)
    _, good, bad = multi.info_read()
    codes.update({h: 0 for h in good})
    codes.update({h: code for h, code, _ in bad})
    for handle in handles:
        report(handle, codes[handle])
        multi.remove_handle(handle)


def main():
    how, *rest = sys.argv[1:]
    handle = pycurl.Curl()
    if how == "repl":
        for line in sys.stdin:
            url, model = line.split()
            prepare(handle, how, url, model)
            report(handle, perform(handle))
        return
    url, *models = rest
    if how == "multi":
        run_multi(url, models)
        return
    first = handle
    for model in models:
        if how == "copy":
            handle = first.duphandle()  # of a handle without body: this pycurl cannot clone others
        if how == "reset":
            handle.reset()
        prepare(handle, how, url, model)
        report(handle, perform(handle))


main()
