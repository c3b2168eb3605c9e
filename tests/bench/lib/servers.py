"""Servers of ours: a provider, hops to it, redis. Each on a port of the kernel's, with nothing of the system's."""
import contextlib
import os
import pathlib
import select
import socket
import subprocess
import threading
import time

from lib.measure import DEADLINE, Void

NGINX = """
daemon off; master_process off; worker_processes 1; pid {dir}/{name}.pid; error_log {dir}/{name}.log;
events {{ worker_connections 256; }}
http {{
  access_log off; keepalive_requests 1000000000; keepalive_timeout 600s;
  client_body_temp_path {dir}/{name}.body; proxy_temp_path {dir}/{name}.proxy;
  fastcgi_temp_path {dir}/{name}.f; uwsgi_temp_path {dir}/{name}.u; scgi_temp_path {dir}/{name}.s;
  {http}
}}
"""
CERTIFICATE = "ssl_certificate {dir}/tls.pem; ssl_certificate_key {dir}/tls.key;"
# /down/ is a gateway that has marked its upstream down: what it answers then, by itself, as a 503.
PROVIDER = """upstream marked {{ server 127.0.0.1:9 down; }}
  server {{ listen 127.0.0.1:{port}{ssl}; default_type application/json;
    location / {{ return 200 '{{"object":"chat.completion","ok":true}}'; }}
    location /down/ {{ proxy_pass http://marked; error_page 502 =503 @down; }}
    location @down {{ return 503 '{{"error":{{"message":"down"}}}}'; }}
    location /accepted {{ stub_status; }} }}"""
NGINX_HOP = """upstream provider {{ server 127.0.0.1:{upstream}; keepalive 8; }}
  server {{ listen 127.0.0.1:{port}{ssl};
    location / {{ proxy_pass http{s}://provider; proxy_http_version 1.1; proxy_set_header Connection ""; }} }}"""
HAPROXY_HOP = """
global
    nbthread 1
    maxconn 256
defaults
    mode http
    timeout connect 5s
    timeout client 600s
    timeout server 600s
    http-reuse always
frontend here
    bind 127.0.0.1:{port}{bind}
    default_backend provider
backend provider
    server one 127.0.0.1:{upstream}{server}
"""
# Servers learn nothing of us: neither the table nor the preload.
ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_listening(process, port):
    end = time.monotonic() + 10
    while time.monotonic() < end:
        if process.poll() is not None:
            return False
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return True
        select.select([], [], [], 0.01)
    return False


@contextlib.contextmanager
def running(name, log, command, environment=None):
    """(process, port): `command(port)` on a port that was free; another try when somebody took it meanwhile."""
    for _ in range(5):
        port = free_port()
        with open(log, "wb") as output:
            process = subprocess.Popen([*map(str, command(port))], env=environment or ENVIRONMENT,
                                       stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        try:
            if wait_listening(process, port):
                yield process, port
                return
        finally:
            process.terminate()
            process.wait(10)
    raise Void(f"{name} did not start: {log.read_text()[-500:]}")


@contextlib.contextmanager
def nginx(directory, name, http, tls=False, **values):
    def command(port):
        config = directory / f"{name}.conf"
        text = http.format(port=port, ssl=" ssl" if tls else "", s="s" if tls else "", **values)
        config.write_text(NGINX.format(dir=directory, name=name,
                                       http=(CERTIFICATE.format(dir=directory) if tls else "") + text))
        return ["/usr/sbin/nginx", "-e", directory / f"{name}.log", "-c", config]

    with running("nginx", directory / f"{name}.log", command) as (_, port):
        yield port


@contextlib.contextmanager
def haproxy(directory, upstream, tls=False):
    def command(port):
        config = directory / "haproxy.conf"
        config.write_text(HAPROXY_HOP.format(
            port=port, upstream=upstream, bind=f" ssl crt {directory}/both.pem" if tls else "",
            server=" ssl verify none" if tls else ""))
        return ["/usr/sbin/haproxy", "-db", "-q", "-f", config]

    with running("haproxy", directory / "haproxy.log", command) as (_, port):
        yield port


@contextlib.contextmanager
def redis_server(directory, name, environment, *options):
    """(process, port) of a redis that keeps nothing."""
    home = directory / f"redis-{name}"
    home.mkdir(exist_ok=True)

    def command(port):
        return ["/usr/bin/redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", home, *options]

    with running("redis-server", home / "log", command, environment) as server:
        yield server


@contextlib.contextmanager
def nobody():
    """A port that refuses connects, and that nobody takes meanwhile."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


def swallow(connection):
    """Reads whole requests, whatever their size, and answers each once all of it is there."""
    buffer, have = bytearray(1 << 20), b""
    with connection:
        while True:
            while b"\r\n\r\n" not in have:
                got = connection.recv(4096)
                if not got:
                    return
                have += got
            head, _, have = have.partition(b"\r\n\r\n")
            left = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]) - len(have)
            have = b""
            while left > 0:
                got = connection.recv_into(buffer, min(left, len(buffer)))
                if not got:
                    return
                left -= got
            connection.sendall(ANSWER)


@contextlib.contextmanager
def swallower():
    """The port of a provider that reads large bodies: nginx answers without reading them, or writes them to disk."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def serve():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=swallow, args=(connection,), daemon=True).start()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(10)


@contextlib.contextmanager
def one_core():
    """What starts meanwhile stays on one core: whether client and server share one is luck otherwise, and tells more."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def certificate(directory):
    """Of "localhost", signed by itself: {directory}/tls.pem, with tls.key; both.pem has the two, as haproxy wants it.
    Returns what a client needs to trust it."""
    pem, key = directory / "tls.pem", directory / "tls.key"
    if not pem.exists():
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                        "-keyout", key, "-out", pem], check=True, capture_output=True, timeout=DEADLINE)
        (directory / "both.pem").write_text(pem.read_text() + key.read_text())
    return {"SSL_CERT_FILE": str(pem)}


def find_library(pattern):
    """A library of a Debian package, in whatever directory its architecture has."""
    found = sorted(pathlib.Path("/usr/lib").glob(pattern))
    if not found:
        raise Void(f"no {pattern} below /usr/lib: scripts/deps bench")
    return found[0]
