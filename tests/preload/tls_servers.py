"""Providers over TLS, and clients that trust them: what the tests of the TLS layer share."""

import subprocess

from sock_programs import ALL, Client

# By libssl, as Debian has them (wget's is GnuTLS, Node brings its own). Each client's own way to a CA file is among the
# variables of `trust`.
TLS = {name: ALL[name] for name in ("http.client", "requests", "urllib3", "httpx", "httpx-async", "aiohttp", "ruby",
                                    "lwp", "php")}
IN_MEMORY = ("httpx-async", "aiohttp")  # whose records go through memory BIOs


def trust(authority):
    """The environment of a client that takes the authority's certificates."""
    return {name: str(authority.ca) for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PERL_LWP_SSL_CA_FILE")}


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
