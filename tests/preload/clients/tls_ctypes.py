"""tls_ctypes.py LIBSSL PORT MODEL COUNT: calls by functions of a libssl that were fetched by name, a line each: the status."""

import ctypes
import json
import socket
import sys

path, port, model, count = sys.argv[1:]
ssl = ctypes.CDLL(path)
for name in ("TLS_client_method", "SSL_CTX_new", "SSL_new"):
    getattr(ssl, name).restype = ctypes.c_void_p
context = ctypes.c_void_p(ssl.SSL_CTX_new(ctypes.c_void_p(ssl.TLS_client_method())))
body = json.dumps({"model": model, "messages": []}).encode()
request = (b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost:%d\r\nContent-Length: %d\r\n\r\n%s"
           % (int(port), len(body), body))
for _ in range(int(count)):
    with socket.create_connection(("localhost", int(port)), timeout=10) as connection:
        connection.setblocking(True)
        client = ctypes.c_void_p(ssl.SSL_new(context))
        ssl.SSL_ctrl(client, 55, ctypes.c_long(0), ctypes.c_char_p(b"localhost"))
        assert ssl.SSL_set_fd(client, connection.fileno()) == 1
        assert ssl.SSL_connect(client) == 1
        assert ssl.SSL_write(client, request, len(request)) == len(request)
        answer = ctypes.create_string_buffer(4096)
        assert ssl.SSL_read(client, answer, 4095) > 0
        print(answer.value.split()[1].decode())
        ssl.SSL_free(client)
