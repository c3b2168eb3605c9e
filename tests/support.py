"""What the client tests share: programs with the breaker under them, the curl tool, a CA."""

import json
import os
import signal
import subprocess

import provider as scripted
from provider import wait_until

PYTHON = "/usr/bin/python3"  # Debian's: the one that has pycurl
# A second of open time, always the same.
QUICK = {"open_seconds": 1, "jitter": 0, "backoff": 1}



def chat(model, **members):
    return json.dumps({"model": model, "messages": [], **members})


class Curl:
    """The curl tool under the breaker: one POST, its status and body."""

    WRITE = "\n%{http_code} %{exitcode} %{num_connects} %{url_effective}"

    def __init__(self, breaker_env):
        self.breaker_env = breaker_env

    def command(self, url, model="m", *flags):
        return ["curl", "-s", "-w", self.WRITE, "-d", chat(model), *flags, url]

    def parse(self, stdout):
        body, _, line = stdout.decode().rpartition("\n")
        status, code, connects, url = line.split(" ", 3)
        return CurlAnswer(int(status), int(code), int(connects), url, body)

    def __call__(self, url, model="m", *flags, env=None):
        return self.parse(self.breaker_env.run(*self.command(url, model, *flags), env=env).stdout)


class CurlAnswer:
    def __init__(self, status, code, connects, url, body):
        self.status, self.code, self.connects, self.url, self.body = status, code, connects, url, body

    @property
    def refused(self):
        """Is this our answer, not a provider's?"""
        return (self.status, True) in ((503, "libbreaker: the circuit breaker of" in self.body),
                                       (429, "cooling_down" in self.body))

    def __repr__(self):
        return f"<{self.status} curl:{self.code} {self.url} {self.body!r}>"


class Authority:
    """A CA of this run and a server certificate for localhost that it signed."""

    def __init__(self, directory):
        self.ca, self.certificate, self.key = (directory / n for n in ("ca.pem", "server.pem", "server.key"))
        ca_key, request, extension = (directory / n for n in ("ca.key", "server.csr", "server.ext"))
        extension.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        for command in (
            ["req", "-x509", *new, "-keyout", ca_key, "-out", self.ca, "-days", "2", "-subj", "/CN=test CA"],
            ["req", *new, "-keyout", self.key, "-out", request, "-subj", "/CN=localhost"],
            ["x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", ca_key, "-CAcreateserial", "-days", "2",
             "-extfile", extension, "-out", self.certificate],
        ):
            subprocess.run(["openssl", *map(str, command)], check=True, capture_output=True, timeout=30)

    def server(self):
        return scripted.server_tls(self.certificate, self.key)


class BreakerEnvironment:
    """Programs with the breaker under them, one table and one breaker.ini per test."""

    def __init__(self, build, directory):
        self.program, self.library = build / "breaker", build / "libbreaker.so"
        self.directory = directory
        self.ini, self.log = directory / "breaker.ini", directory / "events.jsonl"
        self.table = directory / "shm" / "table"
        home = directory / "home"
        home.mkdir()
        clean = {k: v for k, v in os.environ.items()
                 if not k.startswith("BREAKER_") and k != "LD_PRELOAD" and not k.lower().endswith("_proxy")}
        self.bare = {**clean, "HOME": str(home), "LC_ALL": "C.UTF-8"}
        self.environment = {**self.bare, "BREAKER_TABLE": str(self.table), "BREAKER_CONFIG": str(self.ini),
                            "BREAKER_LOG": str(self.log)}
        self.started = []
        self.configure()

    # --- configuration ---------------------------------------------------------------------------

    def configure(self, text="", **keys):
        """breaker.ini: quick defaults and a lease to match, `keys` over them, `text` (sections) after them."""
        settings = {**QUICK, "probe_lease": max(1, keys.get("open_seconds", 1)), **keys}
        lines = ["[breaker]"] + [f"{k} = {v}" for k, v in settings.items()]
        self.configure_raw("\n".join(lines) + "\n" + text)

    def configure_raw(self, text):
        """Replaced as one step: a reader finds the old file or the new one."""
        unfinished = self.directory / "breaker.ini.new"
        unfinished.write_bytes(text if isinstance(text, bytes) else text.encode())
        unfinished.chmod(0o600)
        unfinished.rename(self.ini)

    # --- running ---------------------------------------------------------------------------------

    def wrap(self, *command):
        return [str(self.program), "run", "--", *map(str, command)]

    def preloaded(self, **changes):
        """The environment of a bare LD_PRELOAD, without the launcher."""
        return {**self.environment, "LD_PRELOAD": str(self.library), **changes}

    def run(self, *command, timeout=50, input=None, env=None, **options):
        """A finished program with the breaker under it; bytes in, bytes out."""
        return subprocess.run(self.wrap(*command), env={**self.environment, **(env or {})}, cwd=self.directory,
                              input=input if input is not None else b"", capture_output=True, timeout=timeout,
                              **options)

    def run_bare(self, *command, timeout=50, input=None, env=None):
        """The same program without us."""
        return subprocess.run([str(c) for c in command], env={**self.bare, **(env or {})}, cwd=self.directory,
                              input=input if input is not None else b"", capture_output=True, timeout=timeout)

    def start(self, *command, env=None, bare=False, **options):
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        words, environment = ([str(word) for word in command], self.bare) if bare else \
            (self.wrap(*command), self.environment)
        process = subprocess.Popen(words, env={**environment, **(env or {})}, cwd=self.directory, **options)
        self.started.append(process)
        return process

    def end_all(self):
        for process in self.started:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.communicate()

    # --- looking ---------------------------------------------------------------------------------

    def command(self, *args, code=0):
        done = subprocess.run([str(self.program), *args], env=self.environment, cwd=self.directory,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
        assert done.returncode == code, (args, done.returncode, done.stdout, done.stderr)
        return done

    def status(self):
        return json.loads(self.command("status", "--json").stdout)

    def breakers(self):
        return {b["key"]: b for b in self.status()["breakers"]}

    def state(self, key):
        """closed when nobody has met the key yet, as the table sees it."""
        found = self.breakers().get(key)
        return found["state"] if found else "closed"

    def calls(self, key):
        none = dict.fromkeys(("success", "failure", "neutral", "refused", "rerouted"), 0)
        found = self.breakers().get(key)
        return found["calls"] if found else none

    def wait_state(self, key, state, timeout=scripted.DEADLINE):
        wait_until(lambda: self.state(key) == state, timeout, f"{key} {state}")

    def make_due(self, *keys):
        """Open, and the open time over: without waiting for the one that programs know of."""
        for key in keys:
            self.command("trip", "--create", key)
            self.command("reset", key)
            self.command("trip", "--set", "open_seconds=0.1", key)
        for key in keys:
            self.wait_due(key)

    def wait_due(self, key, timeout=scripted.DEADLINE):
        """Until the open time, or the lease of a lost probe, is over."""

        def due():
            found = self.breakers()[key]
            assert found["state"] in ("open", "half_open"), found
            return found["retry_in_ms"] == 0

        wait_until(due, timeout, f"{key} due")

    def events(self, **members):
        if not self.log.exists():
            return []
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [e for e in lines if all(e.get(k) == v for k, v in members.items())]
