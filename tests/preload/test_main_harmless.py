"""Issue 2, items 7 and 8: what is no LLM call never meets the breaker; programs are byte for byte as without us."""

import functools
import http.server
import os
import re
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from provider import Answer
from support import PYTHON, chat

# --- 7. other traffic ----------------------------------------------------------------------------


@pytest.mark.parametrize("flags,path", [
    ([], "/files/archive.tar.gz"), (["-I"], "/index.html"), (["-d", "a=b"], "/login"),
    (["-d", chat("m")], "/v2/orders"), (["-X", "DELETE"], "/v1/files/1"), ([], "/v1/chat/completions"),
    (["-d", chat("m")], "/v1/chat/completions/export"), (["-F", "model=m"], "/upload"),
], ids=["download", "head", "form", "json api", "delete", "get of an llm path", "longer path", "form post"])
def test_other_traffic_never_meets_the_breaker(flags, path, provider, breaker_env):
    provider.answer(Answer(500))
    for _ in range(8):
        done = breaker_env.run("curl", "-s", *flags, provider.url(path))
        assert done.returncode == 0 and b"circuit_open" not in done.stdout
    assert provider.count() == 8
    assert breaker_env.breakers() == {}
    assert not breaker_env.table.exists(), "the table is attached at the first covered call only"


def test_other_traffic_flows_while_the_host_is_open(provider, curl, breaker_env):
    breaker_env.configure(open_seconds=60)
    provider.refuse()
    for _ in range(6):
        curl(provider.url())
    provider.listen()
    assert curl(provider.url()).refused
    assert breaker_env.run("curl", "-s", provider.url("/health")).stdout == Answer().payload()


def test_refused_ports_of_other_traffic(providers, breaker_env):
    nobody = providers()
    nobody.refuse()
    for _ in range(7):
        assert breaker_env.run("curl", "-s", nobody.url("/file")).returncode == 7
    assert breaker_env.breakers() == {}


def test_a_target_obeys_the_host_whatever_the_path(provider, breaker_env):
    breaker_env.configure(f"[target {provider.key()}]\n", open_seconds=60)
    provider.refuse()
    for _ in range(5):
        assert breaker_env.run("curl", "-s", provider.url("/health")).returncode == 7
    assert b"circuit_open" in breaker_env.run("curl", "-s", provider.url("/health")).stdout


def test_match_listed_keeps_to_the_targets(provider, providers, curl, breaker_env):
    listed = providers()
    breaker_env.configure(f"[target {listed.key()}]\n", match="listed", open_seconds=60)
    for one in (provider, listed):
        one.answer(Answer(500))
        for _ in range(7):
            curl(one.url())
    assert (provider.count(), listed.count()) == (7, 5)


def test_mode_off(provider, curl, breaker_env):
    breaker_env.configure(f"[target {provider.key()}]\nmode = off\n")
    provider.answer(Answer(500))
    for _ in range(7):
        assert curl(provider.url()).status == 500
    assert provider.count() == 7


def test_when_exhausted_pass(provider, curl, breaker_env):
    breaker_env.configure(when_exhausted="pass", open_seconds=60)
    provider.answer(Answer(500))
    assert [curl(provider.url()).status for _ in range(8)] == [500] * 8
    assert breaker_env.state(provider.key("m")) == "open"


def test_disabled(provider, curl, breaker_env):
    provider.answer(Answer(500))
    for _ in range(7):
        assert curl(provider.url(), env={"BREAKER_DISABLED": "1"}).status == 500
    assert provider.count() == 7 and breaker_env.breakers() == {}


# --- 8. byte for byte ----------------------------------------------------------------------------


def preloaded(breaker_env, *command, input=b"", **changes):
    return subprocess.run([str(c) for c in command], env=breaker_env.preloaded(**changes), cwd=breaker_env.directory,
                          input=input, capture_output=True, timeout=50)


def seen(done):
    """What a run shows; only the times in curl's messages differ from run to run."""
    return done.returncode, done.stdout, re.sub(rb"after \d+ ms", b"after N ms", done.stderr)


def assert_same(breaker_env, *command, input=b"", env=None):
    bare = breaker_env.run_bare(*command, input=input, env=env)
    assert seen(preloaded(breaker_env, *command, input=input, **(env or {}))) == seen(bare)
    assert seen(breaker_env.run(*command, input=input, env=env)) == seen(bare)
    return bare


BASH = r'''
set -u; echo "to stdout"; echo "to stderr" >&2
x=$(printf 'a b\n' | tr a-z A-Z); echo "$x" | (read -r y; echo "[$y]")
exec 5>file.out; echo five >&5; exec 5>&-; cat file.out; rm file.out
cat /nonexistent; false | true; echo "${PIPESTATUS[@]}"
f() { return 7; }; f; echo $?; trap 'echo bye' EXIT; kill -0 $$; ulimit -n; umask; exit 3
'''
PYTHON_SCRIPT = r'''
import ctypes, errno, os, socket, ssl, subprocess, sys, threading
print(subprocess.run(["sh", "-c", "echo $0; exit 4"], capture_output=True))
for port in (1, 0):
    try: socket.create_connection(("127.0.0.1", port), 2)
    except OSError as e: print(errno.errorcode[e.errno])
try: ctypes.CDLL("libno-such.so")
except OSError as e: print(e)
try: ctypes.CDLL(None).no_such_symbol
except AttributeError as e: print(str(e).split(":")[-1])
pid = os.fork()
if pid == 0: os._exit(9)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
t = threading.Thread(target=lambda: print("thread")); t.start(); t.join()
print(sorted(os.listdir("/proc/self/fd"))); print(1 / 0)
'''
PHP_SCRIPT = r'''
echo json_encode(["a" => 1]), PHP_EOL; fwrite(STDERR, "err\n"); echo implode(",", curl_version()["protocols"]), PHP_EOL;
$h = curl_init("http://127.0.0.1:1/"); curl_setopt($h, CURLOPT_RETURNTRANSFER, true); var_dump(curl_exec($h), curl_errno($h));
echo curl_error($h) === "" ? "none" : "some", PHP_EOL; $s = @fsockopen("127.0.0.1", 1, $n, $e, 1); var_dump($s, $n, $e); exit(5);
'''


def test_bash(breaker_env):
    assert assert_same(breaker_env, "bash", "-c", BASH).returncode == 3


def test_python(breaker_env):
    done = assert_same(breaker_env, PYTHON, "-c", PYTHON_SCRIPT)
    assert done.returncode == 1 and b"ECONNREFUSED" in done.stdout and b"ZeroDivisionError" in done.stderr


def test_php(breaker_env):
    assert assert_same(breaker_env, "php", "-r", PHP_SCRIPT).returncode == 5


@pytest.mark.parametrize("flags", [["-V"], ["-sv"], ["-i", "-L"], ["-d", "x=y"], ["-sv", "-d", chat("m")], ["--libcurl", "-"],
                                   ["-s", "-w", "%{json}"], ["-sS", "--no-such-flag"], ["-Z", "-s"]],
                         ids=" ".join)
def test_curl(flags, provider, breaker_env):
    """A covered call too: healthy, it is only watched."""
    if flags[-1] == "%{json}":  # holds times
        flags = ["-s", "-w", "%{http_code} %{method} %{num_headers} %{size_request} %{remote_ip} %{http_version}"]
    url = provider.url() if chat("m") in flags else provider.url("/page")
    bare = breaker_env.run_bare("curl", *flags, url)
    done = preloaded(breaker_env, "curl", *flags, url)
    for one in (bare, done):  # the meter and the times of libcurl's own ports vary
        one.stderr = b"\n".join(line for line in one.stderr.splitlines()
                                if b"%" not in line and b"--:--" not in line and b"Dload" not in line)
    assert (done.returncode, done.stdout, done.stderr) == (bare.returncode, bare.stdout, bare.stderr)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "http://127.0.0.1:1/v1/chat/completions", "ftp://127.0.0.1:1/x",
                                 "file:///etc/hostname", "file:///nonexistent", "nosuch://x", "http://", ""])
def test_curl_errors(url, breaker_env):
    assert_same(breaker_env, "curl", "-sS", *(["-d", chat("m")] if "/v1/" in url else []), url)


ERRNO_PROGRAM = r'''
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
static void try_connect(int fd, int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    errno = 77;
    int r = connect(fd, (struct sockaddr *)&a, sizeof a);
    printf("connect %d errno %d\n", r, errno);
}
int main(int argc, char **argv)
{
    (void)argc;
    int port; sscanf(argv[1], "%d", &port);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    try_connect(fd, port); try_connect(fd, port); close(fd);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0); try_connect(fd, 1); close(fd);
    try_connect(-1, 1); try_connect(fd, 1);
    errno = 77; void *h = dlopen("libm.so.6", RTLD_NOW | RTLD_DEEPBIND); printf("%d errno %d\n", h != NULL, errno);
    errno = 77; printf("%d errno %d %s\n", dlsym(h, "cos") != NULL, errno, dlerror() ? "error" : "none");
    errno = 77; printf("%d errno %d %s\n", dlsym(RTLD_NEXT, "connect") != NULL, errno, dlerror() ? "error" : "none");
    printf("%d %s\n", dlsym(RTLD_DEFAULT, "connect") != NULL, "default");
    printf("%d\n", dlsym(h, "no_such_symbol") != NULL); puts(dlerror());
    printf("%d\n", dlopen("./no-such.so", RTLD_NOW) != NULL); puts(dlerror());
    printf("%d\n", dlopen(NULL, RTLD_NOW) != NULL);
    return 0;
}
'''


def test_errno_and_dlerror(provider, breaker_env, compile_c):
    program = compile_c(ERRNO_PROGRAM, "-ldl")
    done = assert_same(breaker_env, program, provider.port)
    assert b"connect 0 errno 77" in done.stdout


STATIC_PROGRAM = '#include <stdio.h>\nint main(void) { puts("static"); fputs("err", stderr); return 6; }\n'
GO_PROGRAM = """package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Println("go", os.Getenv("HOME") != "")
	fmt.Fprintln(os.Stderr, "err")
	os.Exit(6)
}
"""


def test_a_static_program(breaker_env, compile_c):
    assert assert_same(breaker_env, compile_c(STATIC_PROGRAM, "-static")).returncode == 6


@pytest.mark.skipif(not shutil.which("go"), reason="no go here")
def test_a_go_program(breaker_env, tmp_path):
    source, program = tmp_path / "main.go", tmp_path / "program"
    source.write_text(GO_PROGRAM)
    subprocess.run(["go", "build", "-o", program, source], check=True, timeout=55, capture_output=True,
                   env={**os.environ, "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local", "GOPROXY": "off", "CGO_ENABLED": "0"})
    assert assert_same(breaker_env, program).returncode == 6


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="becomes another user")
def test_a_set_uid_program_starts(breaker_env):
    mount = shutil.which("mount")
    assert os.stat(mount).st_mode & 0o4000
    assert_same(breaker_env, "setpriv", "--reuid", "65534", "--clear-groups", mount, "--version")


def test_exit_by_signal(breaker_env):
    assert assert_same(breaker_env, "sh", "-c", "kill -TERM $$").returncode == -15


# --- git over http -------------------------------------------------------------------------------


class GitHandler(http.server.BaseHTTPRequestHandler):
    """Smart HTTP: every request goes to git's own back end as CGI."""

    root = None
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        path, _, query = self.path.partition("?")
        length = int(self.headers.get("content-length") or 0)
        environment = {
            "PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": str(self.root), "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": self.command, "PATH_INFO": path, "QUERY_STRING": query, "REMOTE_USER": "t",
            "CONTENT_TYPE": self.headers.get("content-type", ""), "CONTENT_LENGTH": str(length),
            "HTTP_CONTENT_ENCODING": self.headers.get("content-encoding", ""),
            "GIT_PROTOCOL": self.headers.get("git-protocol", ""), "HOME": str(self.root)}
        done = subprocess.run(["git", "http-backend"], env=environment, input=self.rfile.read(length),
                              capture_output=True, timeout=20)
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        lines = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(lines.pop("Status", "200").split()[0]))
        for name, value in lines.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST


@pytest.fixture
def git_server(tmp_path):
    root = tmp_path / "git"
    work = tmp_path / "work"
    git = functools.partial(subprocess.run, check=True, capture_output=True, timeout=20)
    identity = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main"]
    git(["git", *identity, "init", work])
    (work / "file").write_text("content\n" * 1000)
    git(["git", "-C", work, "add", "."])
    git(["git", *identity, "-C", work, "commit", "-m", "first"])
    git(["git", "clone", "--bare", work, root / "repo.git"])
    handler = type("Handler", (GitHandler,), {"root": root})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/repo.git"
    server.shutdown()
    server.server_close()


def test_git_over_http(git_server, breaker_env):
    script = f"""
        rm -rf clone; git clone {git_server} clone; cd clone && git fetch -v origin && git ls-remote origin
        git rev-parse HEAD; md5sum file; git ls-remote {git_server}x; echo $?
    """
    done = assert_same(breaker_env, "bash", "-c", script)
    assert done.returncode == 0 and b"file" in done.stdout and done.stdout.endswith(b"128\n")


# --- other preloads ------------------------------------------------------------------------------


def other_library(name):
    found = sorted(Path("/usr/lib").glob(f"**/{name}"))
    return str(found[0]) if found else None


def test_the_launcher_keeps_another_preload(provider, breaker_env):
    library = other_library("libjemalloc.so.2")
    if not library:
        pytest.skip("no jemalloc here")
    done = breaker_env.run("sh", "-c", 'echo "$LD_PRELOAD"', env={"LD_PRELOAD": library})
    assert sorted(done.stdout.decode().replace(":", " ").split()) == sorted([library, str(breaker_env.library)])
