"""Programs that have nothing to do with LLM hosts: servers and clients, all with the breaker or all without."""

import getpass
import os
import re
import signal
import socket
import subprocess
from pathlib import Path

from listeners import bound
from provider import LOOPBACK, wait_until
from support import PYTHON

CLIENTS = Path(__file__).resolve().parent / "clients"
NGINX = """
daemon off; worker_processes 2; pid {dir}/nginx-{name}.pid; error_log {dir}/nginx-{name}.log error; {user}
events {{ worker_connections 128; }}
http {{
  access_log off; sendfile on; client_max_body_size 100m; default_type application/octet-stream;
  client_body_temp_path {dir}/{name}.body; proxy_temp_path {dir}/{name}.proxy; fastcgi_temp_path {dir}/{name}.fcgi;
  uwsgi_temp_path {dir}/{name}.uwsgi; scgi_temp_path {dir}/{name}.scgi;
  {http}
}}
"""
SSHD = """
Port {port}
ListenAddress 127.0.0.1
HostKey {dir}/host_key
AuthorizedKeysFile {dir}/user_key.pub
PidFile none
LogLevel ERROR
UsePAM no
StrictModes no
KexAlgorithms curve25519-sha256
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
Subsystem sftp internal-sftp
SetEnv {environment}
"""


def listening(port):
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) == 0


def first_difference(bare, ours, where="seen"):
    """Where two nested results differ first, and both values there; None when they are the same."""
    if isinstance(bare, (list, tuple)) and isinstance(ours, (list, tuple)) and len(bare) == len(ours):
        pairs = enumerate(zip(bare, ours))
        return next(filter(None, (first_difference(*pair, f"{where}[{place}]") for place, pair in pairs)), None)
    return None if bare == ours else (where, bare, ours)


class Server:
    """A process of ours and the port that it serves."""

    def __init__(self, process, port, log):
        self.process, self.port, self.log = process, port, log

    def has_library(self):
        return "libbreaker.so" in Path(f"/proc/{self.process.pid}/maps").read_text()

    def ended(self, by=signal.SIGTERM):
        """How it ends when it is told to: the exit code, and what it had to say."""
        self.process.send_signal(by)
        return self.process.wait(15), self.log.read_text()


class Side:
    """One of the two: its own directory, servers and clients, under the breaker or bare."""

    def __init__(self, directory, environment, covered):
        self.directory, self.covered = directory, covered
        self.environment = {**environment, "HOME": str(directory)}
        self.servers, self.ports, self.held = [], {}, []
        directory.mkdir()

    # --- what a run shows ------------------------------------------------------------------------

    def hide(self, text):
        """Without what differs between any two runs: ports, directory, Date, how long curl tried."""
        text = text if isinstance(text, str) else text.decode("latin-1")
        for port, name in self.ports.items():
            text = re.sub(rf"(?<=[: ]){port}(?!\w)", name, text)
        text = text.replace(str(self.directory), "DIRECTORY")
        return re.sub(r"after \d+ ms", "after N ms", re.sub(r"(?m)^Date: .*GMT", "Date: NOW", text))

    def run(self, *command, input=b"", env=None, cwd=None):
        """(exit code, stdout, stderr) of a finished program."""
        done = subprocess.run([str(word) for word in command], input=input, capture_output=True, timeout=40,
                              env={**self.environment, **(env or {})}, cwd=cwd or self.directory)
        return done.returncode, self.hide(done.stdout), self.hide(done.stderr)

    # --- servers ---------------------------------------------------------------------------------

    def start(self, name, command, port=None):
        log = self.directory / f"{name}.out"
        with open(log, "wb") as out:
            process = subprocess.Popen([str(word) for word in command], env=self.environment, cwd=self.directory,
                                       stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
        server = Server(process, port, log)
        self.servers.append(server)
        return server

    def serve(self, name, command_for):
        """A server that binds its port by SO_REUSEADDR, since we hold it."""
        self.held.append(bound())
        port = self.held[-1].getsockname()[1]
        server = self.start(name, command_for(port), port)
        wait_until(lambda: server.process.poll() is not None or listening(port), what=f"{name} listens")
        assert server.process.poll() is None, f"{name} does not start: {server.log.read_text()}"
        return self.known(server, name)

    def known(self, server, name):
        self.ports[server.port] = f"PORT-OF-{name.upper()}"
        assert server.has_library() == self.covered
        return server

    def end_all(self):
        for server in self.servers:
            if server.process.poll() is None:
                # Its session: nginx's workers do not end with a killed master.
                os.killpg(server.process.pid, signal.SIGKILL)
                server.process.wait()
        for held in self.held:
            held.close()

    def nginx(self, name, http):
        def command(port):
            config = self.directory / f"nginx-{name}.conf"
            user = "user root;" if os.getuid() == 0 else ""  # or it could not read our directory
            config.write_text(NGINX.format(dir=self.directory, name=name, user=user, http=http.format(port=port)))
            return ["/usr/sbin/nginx", "-e", f"{self.directory}/nginx-{name}.log", "-c", config]

        return self.serve(name, command)

    def nginx_ended(self, server, name):
        """Its end, and its errors in some order (two workers), without time and process."""
        code, said = server.ended(signal.SIGQUIT)
        lines = (self.directory / f"nginx-{name}.log").read_text().splitlines()
        return code, said, sorted(self.hide(re.sub(r"^.*\] \d+#\d+: (\*\d+ )?", "", line)) for line in lines)

    def redis(self, name, *options):
        home = self.directory / name
        home.mkdir(exist_ok=True)
        return self.serve(name, lambda port: ["/usr/bin/redis-server", "--port", port, "--bind", LOOPBACK,
                                              "--save", "", "--dir", home, *options])

    def redis_cli(self, server, *arguments, **options):
        return self.run("redis-cli", "-h", LOOPBACK, "-p", server.port, *arguments, **options)

    # --- ssh -------------------------------------------------------------------------------------

    def sshd(self):
        """Its sessions run under the breaker, too, where the server does, and read nobody's .bashrc."""
        for key in ("host_key", "user_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.directory / key], check=True,
                           timeout=30)
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # as the package's service does at its start
        names = [name for name in self.environment if name.startswith(("HOME", "BREAKER_", "LD_PRELOAD", "GIT_"))]
        given = " ".join(f'"{name}={self.environment[name]}"' for name in names)

        def command(port):
            config = self.directory / "sshd_config"
            config.write_text(SSHD.format(dir=self.directory, port=port, environment=given))
            public = (self.directory / "host_key.pub").read_text()
            (self.directory / "known_hosts").write_text(f"[{LOOPBACK}]:{port} {public}")
            return ["/usr/sbin/sshd", "-D", "-e", "-f", config]

        return self.serve("sshd", command)

    def sshd_ended(self, server):
        """Its end, and its errors; our looks whether it listens are one."""
        code, said = server.ended()
        return code, [line for line in said.splitlines() if not line.startswith("kex_exchange_identification")]

    def ssh_options(self):
        return ["-F", "none", "-i", str(self.directory / "user_key"), "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes",
                "-o", f"UserKnownHostsFile={self.directory}/known_hosts", "-o", "StrictHostKeyChecking=yes"]

    def ssh(self, server, *arguments, **options):
        """Options of ssh that take no value of their own come in `arguments` before the command."""
        return self.run("ssh", *self.ssh_options(), "-p", server.port, f"{getpass.getuser()}@{LOOPBACK}", *arguments,
                        **options)

    # --- git -------------------------------------------------------------------------------------

    def git_http(self, repositories):
        port_file = self.directory / "git-port"
        server = self.start("git", [PYTHON, CLIENTS / "git_server.py", repositories, port_file])
        wait_until(lambda: server.process.poll() is not None or port_file.exists(), what="git_server listens")
        assert server.process.poll() is None, server.log.read_text()
        server.port = int(port_file.read_text())
        return self.known(server, "git")
