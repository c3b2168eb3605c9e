"""Issue 3, item 5: programs that have nothing to do with LLM hosts run under the breaker unchanged.

Each scenario runs twice, all of its programs bare and all of them, servers too, under the breaker: what the clients
show and how the servers end is the same, and no call met the breaker.
"""

import getpass
import hashlib
import random
import re
import signal

import pytest

from listeners import bound
from provider import LOOPBACK, Answer, wait_until
from servers import Side, first_difference

REFUSALS = 8  # more than open a breaker


def bytes_of(count, seed=1):
    return random.Random(seed).randbytes(count)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def both(tmp_path, breaker_env):
    """both(scenario): what scenario(side) returns of the bare side, after the covered one returned the same."""
    sides = []

    def run(scenario):
        seen = []
        for name, environment in (("bare", breaker_env.bare), ("ours", breaker_env.preloaded())):
            sides.append(Side(tmp_path / name, environment, covered=name == "ours"))
            seen.append(scenario(sides[-1]))
        difference = first_difference(*seen)
        assert not difference
        assert breaker_env.breakers() == {}
        return seen[0]

    yield run
    for side in sides:
        side.end_all()


@pytest.fixture
def refused():
    """A port on which nobody listens and that nobody gets."""
    with bound() as held:
        yield held.getsockname()[1]


# --- nginx -------------------------------------------------------------------------------------------

SITE = """server {{{{ listen 127.0.0.1:{{port}}; root {root}; etag off;
    location /answer {{{{ default_type text/plain; return 200 "hello\\n"; }}}}
    location /moved {{{{ return 302 /answer; }}}}
    location /broken {{{{ return 500 "broken\\n"; }}}}
    location /put/ {{{{ dav_methods PUT; create_full_put_path on; }}}} }}}}"""
PROXY = """upstream back {{{{ server 127.0.0.1:{back}; keepalive 4; }}}}
  server {{{{ listen 127.0.0.1:{{port}};
    location / {{{{ proxy_pass http://back; proxy_http_version 1.1; proxy_set_header Connection ""; }}}}
    location /streamed/ {{{{ proxy_pass http://127.0.0.1:{back}/; proxy_buffering off; proxy_request_buffering off; }}}}
    location /refused {{{{ proxy_pass http://127.0.0.1:{refused}; }}}} }}}}"""


def site(side):
    root = side.directory / "www"
    root.mkdir()
    (root / "small.txt").write_text("small\n")
    (root / "big.bin").write_bytes(bytes_of(5_000_000))
    (side.directory / "upload").write_bytes(bytes_of(3_000_000, seed=2))
    return root, side.nginx("site", SITE.format(root=root))


def visit(side, port, prefix=""):
    """What curl shows of all that a site does."""
    at = f"http://{LOOPBACK}:{port}{prefix}"
    upload = side.directory / "upload"
    seen = [
        side.run("curl", "-s", "-i", f"{at}/answer", f"{at}/small.txt", f"{at}/none", f"{at}/moved", f"{at}/broken"),
        side.run("curl", "-s", "-r", "1000-1999", f"{at}/big.bin"),
        side.run("curl", "-s", "-I", f"{at}/big.bin"),
        side.run("curl", "-s", "-o", "got.bin", f"{at}/big.bin"),
        side.run("curl", "-s", "-Z", "--no-progress-meter", "-w", "%{http_code}\n", *[f"{at}/small.txt"] * 40),
        side.run("curl", "-s", "-i", "-T", upload, f"{at}/put/one"),
        side.run("curl", "-s", "-i", "-H", "Transfer-Encoding: chunked", "-T", "-", f"{at}/put/two",
                 input=bytes_of(200_000)),
        side.run("curl", "-s", "-i", "-d", '{"model":"m","messages":[]}', f"{at}/v2/orders"),
        *[side.run("curl", "-s", "-i", "-d", "x", f"{at}/broken") for _ in range(REFUSALS)],
    ]
    code, out, err = seen[4]  # forty at a time: in no order
    seen[4] = code, "\n".join(sorted(out.splitlines())), err
    assert digest(side.directory / "got.bin") == digest(side.directory / "www" / "big.bin")
    assert digest(side.directory / "www" / "put" / "one") == digest(upload)
    assert hashlib.sha256(bytes_of(200_000)).hexdigest() == digest(side.directory / "www" / "put" / "two")
    return [(code, re.sub(r"(?m)^Last-Modified: .*GMT", "Last-Modified: THEN", out), err) for code, out, err in seen]


def test_nginx_serves(both):
    def scenario(side):
        _, server = site(side)
        return visit(side, server.port), side.nginx_ended(server, "site")

    seen, (code, said, log) = both(scenario)
    assert seen[0][1].count("HTTP/1.1 ") == 5 and "hello" in seen[0][1]
    assert (code, said) == (0, "") and log and all("No such file" in line for line in log)


def test_nginx_as_a_reverse_proxy(both, refused):
    def scenario(side):
        _, back = site(side)
        side.ports[refused] = "REFUSED"
        proxy = side.nginx("proxy", PROXY.format(back=back.port, refused=refused))
        seen = visit(side, proxy.port)
        for name in ("one", "two"):
            (side.directory / "www/put" / name).unlink()  # created once more, with the same status
        seen += visit(side, proxy.port, "/streamed")
        seen += [side.run("curl", "-s", "-i", f"http://{LOOPBACK}:{proxy.port}/refused") for _ in range(REFUSALS)]
        return seen, side.nginx_ended(proxy, "proxy"), side.nginx_ended(back, "site")

    seen, (code, said, log), _ = both(scenario)
    assert all("502 Bad Gateway" in out for _, out, _ in seen[-REFUSALS:])
    assert (code, said) == (0, "") and sum("Connection refused" in line for line in log) == REFUSALS


# --- redis -------------------------------------------------------------------------------------------


def test_redis(both):
    def scenario(side):
        server = side.redis("redis", "--appendonly", "yes", "--repl-diskless-sync-delay", "0")
        seen = [
            side.redis_cli(server, "SET", "key", "value"),
            side.redis_cli(server, "GET", "key"),
            side.redis_cli(server, input=b"INCR n\nINCR n\nLPUSH l a b c\nLRANGE l 0 -1\nNONSENSE\n"),
            side.redis_cli(server, input=b"MULTI\nGET n\nEXEC\n"),
            side.redis_cli(server, "-x", "SET", "big", input=bytes_of(1_000_000)),
            side.redis_cli(server, "SAVE"),
        ]
        replica = side.redis("replica")
        seen.append(side.redis_cli(replica, "REPLICAOF", LOOPBACK, server.port))
        wait_until(lambda: side.redis_cli(replica, "GET", "n")[1] == "2\n", what="the replica has it")
        seen.append(side.redis_cli(replica, "STRLEN", "big"))
        for pipeline in (1, 16):
            code, out, err = side.run("redis-benchmark", "-h", LOOPBACK, "-p", server.port, "-n", 3000, "-c", 20,
                                      "-P", pipeline, "-t", "ping,set,get,lpush,mset", "--csv")
            seen.append((code, re.sub(r'"[\d.]+"', '"N"', out), err))
        seen += [side.redis_cli(one, "SHUTDOWN", "NOSAVE") for one in (replica, server)]
        return seen, [one.process.wait(15) for one in (replica, server)]

    seen, codes = both(scenario)
    assert [out for _, out, _ in (*seen[:2], seen[7])] == ["OK\n", "value\n", "1000000\n"]
    assert [out.count('"N"') // 7 for _, out, _ in seen[8:10]] == [6, 6], "six tests of seven figures each"
    assert codes == [0, 0]


# --- ssh ---------------------------------------------------------------------------------------------


def test_ssh(both, refused, provider):
    provider.answer(Answer(200, body=b"from behind the tunnel"))

    def scenario(side):
        server = side.sshd()
        side.ports.update({refused: "REFUSED", provider.port: "PROVIDER"})
        data = side.directory / "data"
        data.write_bytes(bytes_of(2_000_000))
        loaded = side.ssh(server, "grep -c libbreaker /proc/self/maps")[1]
        assert (loaded != "0\n") == side.covered, loaded
        where = f"{getpass.getuser()}@{LOOPBACK}:{side.directory}"
        ports = ["-P", server.port]
        seen = [
            side.ssh(server, "cat; echo to stderr >&2; exit 7", input=data.read_bytes()),
            side.ssh(server, "kill -9 $$"),
            side.run("ssh", *side.ssh_options(), "-p", server.port, "-W", f"{LOOPBACK}:{provider.port}",
                     f"{getpass.getuser()}@{LOOPBACK}",
                     input=b"GET /health HTTP/1.1\r\nHost: there\r\nConnection: close\r\n\r\n"),
            side.run("scp", *side.ssh_options(), "-q", *ports, data, f"{where}/there"),
            side.run("scp", *side.ssh_options(), "-q", *ports, f"{where}/there", "back"),
            side.run("sftp", *side.ssh_options(), "-q", *ports, "-b", "-", where,
                     input=b"ls there\nrename there elsewhere\nget missing\n"),
            *[side.run("ssh", *side.ssh_options(), "-p", refused, LOOPBACK, "true") for _ in range(REFUSALS)],
        ]
        assert digest(side.directory / "back") == digest(data) == digest(side.directory / "elsewhere")
        return [*seen, side.sshd_ended(server)]

    seen = both(scenario)
    assert (seen[0][0], seen[0][2]) == (7, "to stderr\n") and len(seen[0][1]) == 2_000_000
    assert seen[2][0] == 0 and seen[2][1].endswith("from behind the tunnel")
    assert all(code == 255 and "Connection refused" in err for code, _, err in seen[6:6 + REFUSALS])
    assert seen[-1] == (0, []), "sshd has nothing to complain of"


# --- git ---------------------------------------------------------------------------------------------


def git_environment(side):
    config = side.directory / "gitconfig"
    config.write_text("[user]\nname = Test\nemail = test@example.invalid\n[init]\ndefaultBranch = main\n"
                      "[safe]\ndirectory = *\n[http]\npostBuffer = 65536\n[gc]\nauto = 0\n")
    when = "2024-01-01T00:00:00Z"
    side.environment.update(GIT_CONFIG_GLOBAL=str(config), GIT_CONFIG_NOSYSTEM="1", GIT_TERMINAL_PROMPT="0",
                            GIT_AUTHOR_DATE=when, GIT_COMMITTER_DATE=when)


def git_work(side):
    """A work tree with two commits, and the empty repository that it goes to."""
    origins, work = side.directory / "origins", side.directory / "work"
    for command in (("init", "-q", "--bare", origins / "repo.git"), ("init", "-q", work)):
        assert side.run("git", *command)[0] == 0
    assert side.run("git", "-C", origins / "repo.git", "config", "http.receivepack", "true")[0] == 0
    for number in range(2):
        for name in ("a", "b", "c"):
            (work / name).write_bytes(bytes_of(400_000, seed=f"{name}{number}"))
        assert side.run("git", "-C", work, "add", "-A")[0] == 0
        assert side.run("git", "-C", work, "commit", "-q", "-m", f"number {number}")[0] == 0
    return origins, work


def git_both_ways(side, work, url, push=True):
    """Push, clone, one more commit pushed back, fetched: all that is shown, and the commits and trees."""
    def git(*command):
        return side.run("git", *command)

    copy = side.directory / "copy"
    seen = [git("-C", work, "push", url, "main")] if push else []
    seen += [git("clone", url, copy), git("-C", copy, "log", "--format=%H %T %s")]
    if push:
        (copy / "d").write_bytes(bytes_of(1000))
        seen += [git("-C", copy, "add", "-A"), git("-C", copy, "commit", "-m", "number 2"), git("-C", copy, "push"),
                 git("-C", work, "push", url, "main"),  # rejected: it is behind
                 git("-C", work, "pull", "--ff-only", url, "main"), git("-C", work, "log", "--format=%H %T %s")]
    return seen


def assert_git_worked(seen):
    assert [code for code, _, _ in seen] == [0, 0, 0, 0, 0, 0, 1, 0, 0], seen
    assert seen[-1][1].count("\n") == 3, "three commits"


def test_git_over_ssh(both):
    def scenario(side):
        git_environment(side)
        server = side.sshd()
        side.environment["GIT_SSH_COMMAND"] = " ".join(["ssh", *side.ssh_options()])
        origins, work = git_work(side)
        url = f"ssh://{getpass.getuser()}@{LOOPBACK}:{server.port}{origins}/repo.git"
        return git_both_ways(side, work, url), side.sshd_ended(server)

    seen, ended = both(scenario)
    assert_git_worked(seen)
    assert ended == (0, [])


def test_git_over_http(both):
    def scenario(side):
        git_environment(side)
        origins, work = git_work(side)
        server = side.git_http(origins)
        return git_both_ways(side, work, f"http://{LOOPBACK}:{server.port}/repo.git"), server.ended()

    seen, ended = both(scenario)
    assert_git_worked(seen)
    assert ended == (0, "")


def test_git_from_a_plain_web_server_and_from_git_daemon(both, refused):
    def scenario(side):
        git_environment(side)
        origins, work = git_work(side)
        side.ports[refused] = "REFUSED"
        seen = [side.run("git", "-C", work, "push", f"file://{origins}/repo.git", "main"),
                side.run("git", "-C", origins / "repo.git", "update-server-info")]
        web = side.nginx("web", f"server {{{{ listen {LOOPBACK}:{{port}}; root {origins}; }}}}")
        seen += [side.run("git", "clone", f"http://{LOOPBACK}:{web.port}/repo.git", "from-web"),
                 side.run("git", "-C", "from-web", "log", "--format=%H %T %s")]
        daemon = side.serve("daemon", lambda port: ["git", "daemon", f"--listen={LOOPBACK}", f"--port={port}",
                                                    f"--base-path={origins}", "--export-all", "--reuseaddr", origins])
        seen += git_both_ways(side, work, f"git://{LOOPBACK}:{daemon.port}/repo.git", push=False)
        for scheme in ("http", "git"):
            seen += [side.run("git", "ls-remote", f"{scheme}://{LOOPBACK}:{refused}/repo.git") for _ in range(REFUSALS)]
        return seen, side.nginx_ended(web, "web")[0], daemon.ended()

    seen, code, _ = both(scenario)
    assert [code for code, _, _ in seen] == [0] * (len(seen) - 2 * REFUSALS) + [128] * 2 * REFUSALS
    assert code == 0
