"""posts.py KIND URL: POSTs of a chat over one handle or connection, as many as each line of stdin says.

KIND: pycurl, http.client (whose https is Python's ssl). A line per call: `STATUS DIGEST`, or the error by name and
number. Limits are set when all is loaded, so that only what a call takes meets them:
POSTS_FILES=N leaves N descriptors free, POSTS_MEMORY=N so many KiB of address space.
"""
import hashlib
import io
import os
import resource
import sys

KIND, URL = sys.argv[1:]
BODY = b'{"model": "m", "messages": []}'


def by_pycurl():
    import pycurl

    handle = pycurl.Curl()

    def call():
        answer = io.BytesIO()
        for option, value in ((pycurl.URL, URL), (pycurl.COPYPOSTFIELDS, BODY), (pycurl.WRITEDATA, answer),
                              (pycurl.TIMEOUT, 20)):
            handle.setopt(option, value)
        handle.perform()
        return handle.getinfo(pycurl.RESPONSE_CODE), answer.getvalue()

    return call


def by_http_client():
    import http.client
    from urllib.parse import urlsplit

    parts = urlsplit(URL)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname, parts.port, timeout=20)

    def call():
        try:
            connection.request("POST", parts.path, BODY, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        except Exception:
            connection.close()
            raise

    return call


def line_of(call):
    try:
        status, body = call()
        return f"{status} {hashlib.sha256(body).hexdigest()[:16]}"
    except Exception as error:
        return f"{type(error).__name__} {getattr(error, 'errno', None) or error.args[:1]}"


def limit():
    if "POSTS_MEMORY" in os.environ:
        with open("/proc/self/statm") as statm:
            used = int(statm.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + int(os.environ["POSTS_MEMORY"]) * 1024,) * 2)
    if "POSTS_FILES" in os.environ:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        taken = []
        try:
            while True:
                taken.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            for fd in taken[:int(os.environ["POSTS_FILES"])]:
                os.close(fd)


def main():
    call = {"pycurl": by_pycurl, "http.client": by_http_client}[KIND]()
    limit()
    for line in sys.stdin:
        for _ in range(int(line)):
            print(line_of(call), flush=True)


main()
