"""stream_pycurl.py URL MODEL: one call in a multi, one JSON line of status and body (bytes as latin-1)."""

import json
import sys

import pycurl

url, model = sys.argv[1:]
multi, handle, pieces = pycurl.CurlMulti(), pycurl.Curl(), []
handle.setopt(pycurl.URL, url)
handle.setopt(pycurl.COPYPOSTFIELDS, json.dumps({"messages": [], "model": model}))
handle.setopt(pycurl.WRITEFUNCTION, pieces.append)
multi.add_handle(handle)
running = 1
while running:
    _, running = multi.perform()
    multi.select(0.2)
_, good, bad = multi.info_read()
print(json.dumps({"status": handle.getinfo(pycurl.RESPONSE_CODE), "body": b"".join(pieces).decode("latin-1"),
                  "code": 0 if good else bad[0][1]}))
multi.remove_handle(handle)
