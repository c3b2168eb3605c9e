"""Providers over TLS, and clients that trust them: what the tests of the TLS layer share."""

import functools
import socket
import subprocess
import threading

import pytest

from listeners import serving
from sock_programs import ALL

# Debian's has the system's libssl, and its makers' brings its own.
NODE = ("fetch", "node-http")
# By libssl, as Debian has them. Each client's own way to a CA file is among the variables of `trust`.
TLS = {name: ALL[name] for name in ("http.client", "requests", "urllib3", "httpx", "httpx-async", "aiohttp", *NODE, "ruby",
                                    "lwp", "php")}
OTHER_TLS = {name: ALL[name] for name in (*NODE, "wget", "java")}  # wget's is GnuTLS, Java's is Java
IN_MEMORY = ("httpx-async", "aiohttp", *NODE)  # whose records go through memory BIOs


@functools.lru_cache
def node_has_libssl():
    said = subprocess.run(["node", "-p", "process.config.variables.node_shared_openssl"], capture_output=True, timeout=20)
    assert said.returncode == 0, said
    return said.stdout.strip() == b"true"


def skip_other_node(name, libssl):
    """Node is among the clients of both kinds."""
    if name in NODE and node_has_libssl() != libssl:
        pytest.skip("the node here brings its own TLS, Debian's has libssl" if libssl else "the node here has libssl")


def trust(authority):
    """The environment of a client that takes the authority's certificates."""
    return {name: str(authority.ca)
            for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PERL_LWP_SSL_CA_FILE", "NODE_EXTRA_CA_CERTS")}


def make_certificate(authority, directory, *names):
    """(certificate, key) of a server of these names, signed by the authority."""
    key, request, extension, certificate = (directory / f"other.{end}" for end in ("key", "csr", "ext", "pem"))
    extension.write_text("subjectAltName=" + ",".join(f"DNS:{name}" for name in names) + "\n")
    for command in (
        ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", request,
         "-subj", f"/CN={names[0]}"],
        ["x509", "-req", "-in", request, "-CA", authority.ca, "-CAkey", authority.ca.with_name("ca.key"),
         "-CAcreateserial", "-days", "2", "-extfile", extension, "-out", certificate],
    ):
        subprocess.run(["openssl", *map(str, command)], check=True, capture_output=True, timeout=30)
    return certificate, key


class Tunnel:
    """A proxy that leads to any port of this machine: asked by CONNECT, or by SOCKS 5 without a password."""

    def __init__(self):
        self.asked = []
        self.acceptor = serving(self._serve)
        self.port = self.acceptor.port

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.acceptor.close()

    def _serve(self, client):
        try:
            with client, client.makefile("rb") as stream:
                first = stream.read(1)
                port, answer = self._socks(client, stream) if first == b"\5" else self._connect(stream)
                self.asked.append(port)
                with socket.create_connection(("127.0.0.1", port)) as server:
                    client.sendall(answer)
                    other = threading.Thread(target=carry, args=(server, client), daemon=True)
                    other.start()
                    carry(client, server)
                    other.join()
        except OSError:
            pass

    @staticmethod
    def _connect(stream):
        port = int(stream.readline().split()[1].rpartition(b":")[2])
        while stream.readline() not in (b"\r\n", b""):
            pass
        return port, b"HTTP/1.1 200 Connection established\r\n\r\n"

    @staticmethod
    def _socks(client, stream):
        stream.read(stream.read(1)[0])
        client.sendall(b"\5\0")
        kind = stream.read(4)[3]
        stream.read(4 if kind == 1 else stream.read(1)[0])  # an IPv4 address or a name; it is ours
        return int.from_bytes(stream.read(2), "big"), b"\5\0\0\1" + bytes(6)


def carry(source, sink):
    """Until one of the two has enough."""
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass
