"""A kept connection beside many children (FIELD-NOTES 1.9): client_subprocess.py PORT MODEL COUNT.

COUNT children with close_fds, each in its own way of closing; a call on the connection before, between and after.
Prints the statuses.
"""

import http.client
import json
import os
import subprocess
import sys

PORT, MODEL, COUNT = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=20)


def call():
    connection.request("POST", "/v1/chat/completions", json.dumps({"model": MODEL, "messages": []}))
    answer = connection.getresponse()
    answer.read()
    return answer.status


statuses = [call()]
number = connection.sock.fileno()
read_end, write_end = os.pipe()
for child in range(COUNT):
    kept = (read_end, write_end) if child % 2 else ()  # else the gaps between are closed
    subprocess.run(["/bin/true"], close_fds=True, pass_fds=kept, check=True, start_new_session=child % 5 == 0)
    if child % 20 == 19:
        statuses.append(call())
assert connection.sock.fileno() == number, "not the same connection"
print(*statuses)
