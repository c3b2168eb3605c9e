"""client_ctypes.py LIBCURL[,LIBCURL|,pycurl] URL MODEL...: each library in turn makes one call per model by FFI.

dlopen + dlsym, as Ruby's ethon, Julia and .NET do. One JSON line each.
"""

import ctypes
import json
import sys

URL, WRITEFUNCTION, COPYPOSTFIELDS, TIMEOUT = 10002, 20011, 10165, 13
RESPONSE_CODE, EFFECTIVE_URL = 0x200002, 0x100001
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p)


def body_of(model):
    return json.dumps({"messages": [], "model": model}).encode()


class Library:
    def __init__(self, path):
        self.curl = ctypes.CDLL(path)
        self.curl.curl_easy_init.restype = ctypes.c_void_p
        self.handle = ctypes.c_void_p(self.curl.curl_easy_init())
        assert self.handle, path
        self.received = b""
        self.callback = CALLBACK(self.receive)

    def receive(self, data, size, number, _):
        self.received += ctypes.string_at(data, size * number)
        return size * number

    def call(self, url, model):
        self.received = b""
        curl = self.curl
        for option, value in ((URL, ctypes.c_char_p(url.encode())), (WRITEFUNCTION, self.callback),
                              (COPYPOSTFIELDS, ctypes.c_char_p(body_of(model))), (TIMEOUT, ctypes.c_long(20))):
            assert curl.curl_easy_setopt(self.handle, ctypes.c_int(option), value) == 0, option
        code = curl.curl_easy_perform(self.handle)
        status, effective = ctypes.c_long(), ctypes.c_char_p()
        curl.curl_easy_getinfo(self.handle, ctypes.c_int(RESPONSE_CODE), ctypes.byref(status))
        curl.curl_easy_getinfo(self.handle, ctypes.c_int(EFFECTIVE_URL), ctypes.byref(effective))
        return {"status": status.value, "body": self.received.decode(), "code": code,
                "url": effective.value.decode()}

    def close(self):
        self.curl.curl_easy_cleanup(self.handle)


class Pycurl:
    def __init__(self, _):
        import pycurl

        self.pycurl, self.handle = pycurl, pycurl.Curl()

    def call(self, url, model):
        import io

        answer = io.BytesIO()
        for option, value in ((self.pycurl.URL, url), (self.pycurl.WRITEDATA, answer),
                              (self.pycurl.COPYPOSTFIELDS, body_of(model)), (self.pycurl.TIMEOUT, 20)):
            self.handle.setopt(option, value)
        self.handle.perform()
        return {"status": self.handle.getinfo(self.pycurl.RESPONSE_CODE), "body": answer.getvalue().decode(),
                "code": 0, "url": self.handle.getinfo(self.pycurl.EFFECTIVE_URL)}

    def close(self):
        self.handle.close()


def main():
    names, url, *models = sys.argv[1:]
    libraries = [Pycurl(n) if n == "pycurl" else Library(n) for n in names.split(",")]
    for model in models:
        for library in libraries:
            print(json.dumps(library.call(url, model)), flush=True)
    for library in libraries:
        library.close()


main()
