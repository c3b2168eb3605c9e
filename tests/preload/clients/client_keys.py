"""One handle, one list of headers, several keys: client_keys.py URL KEY...; a JSON line per call."""

import json
import sys
from io import BytesIO

import pycurl

handle = pycurl.Curl()
handle.setopt(pycurl.URL, sys.argv[1])
handle.setopt(pycurl.POSTFIELDS, '{"model":"m"}')
for key in sys.argv[2:]:
    body, head = BytesIO(), []
    handle.setopt(pycurl.HTTPHEADER, ["Content-Type: application/json"] + [f"Authorization: Bearer {key}"] * bool(key))
    handle.setopt(pycurl.WRITEDATA, body)
    handle.setopt(pycurl.HEADERFUNCTION, lambda line: head.append(line.decode().strip()))
    handle.perform()
    print(json.dumps({"status": handle.getinfo(pycurl.RESPONSE_CODE), "head": head, "body": body.getvalue().decode()}))
