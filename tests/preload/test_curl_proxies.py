"""Whose failure is a refused connect, the provider's or a proxy's? Told by who gets the connection without us: the same
options and environment are tried bare, with a proxy that takes it, and under the breaker, with one that is down."""

import pytest

from listeners import bound

HOSTS = ["127.0.0.1", "127.0.1.1", "127.1", "localhost", "[::1]", "example.com", "www.example.com", "www.example.com.",
         "notexample.com", "WWW.Example.com"]
LISTS = ["*", "*,x", "x,*", " *", "**", "127.0.0.0/8", "127.0.0.0/24", "127.0.0.1/32", "127.0.0.1", "0.0.1", ".0.0.1",
         "127.0.0.1.", "127.1", "0.0.0.0/0", "127.0.0.0/33", "127.0.0.1/x", "127.0.0.1/-1", "127.0.0.1/", "128.0.0.0/1",
         "0.0.0.0/1", "126.0.0.0/7", "::1", "[::1]", "::1/128", "::/127", "::/0", "0:0:0:0:0:0:0:1", "example.com",
         ".example.com", "example.com.", ".example.com.", "EXAMPLE.com", "ample.com", "com", "..com", "www.example.com",
         "www.example.com.", "a b example.com", "a,b,example.com", "a;example.com", ",,example.com", " example.com , x",
         "x , example.com", "x\texample.com", "", ".", ",", "localhost", "example.com,127.0.0.0/8", "127.0.0.0/8 x",
         "x.www.example.com", "x" * 200, "127.0.0.1" + "/" * 200]


class Nobody:
    """A port where nobody listens, for as long as this lives: the breaker of `host` there."""

    def __init__(self, host):
        self.host = host
        self.socket = bound("::1" if host[0] == "[" else "")
        self.port = self.socket.getsockname()[1]
        name = {"127.1": "127.0.0.1"}.get(host, host)
        self.key = f"{name.lower().rstrip('.')}:{self.port}"
        self.url = f"http://{host}:{self.port}/v1/chat/completions"

    def flags(self):
        """One POST to it; a name is nobody's but ours."""
        resolve = [] if self.host[0] in "[1l" else ["--resolve", f"{self.host}:{self.port}:127.0.0.1"]
        return [*resolve, "-s", "-o", "/dev/null", "-d", '{"model":"m"}', self.url]


@pytest.fixture
def proxy(providers):
    return providers()


@pytest.fixture
def blame(breaker_env, proxy):
    """For each (nobody, flags): did the proxy get it without us, and was it neutral under the breaker?"""

    def blame_them(cases, env):
        env = {name: value.format(proxy=proxy.url("")) for name, value in env.items()}
        command = ["curl"]
        for nobody, flags in cases:
            command += ["--next"] if len(command) > 1 else []
            command += [flag.format(proxy=proxy.url("")) for flag in flags] + nobody.flags()
        breaker_env.configure(failure_threshold=0, backoff=1)
        proxy.listen()
        proxy.clear()
        breaker_env.run_bare(*command, env=env)
        asked = {int(request.target.split("/")[2].rpartition(":")[2]) for request in proxy.seen()}
        proxy.refuse()
        breaker_env.run(*command, env=env)
        calls = {key: found["calls"] for key, found in breaker_env.breakers().items()}
        for nobody, _ in cases:
            ours = calls[nobody.key]
            assert ours["failure"] + ours["neutral"] == 1, (nobody.url, ours)
            yield nobody.port in asked, ours["neutral"] == 1

    return blame_them


@pytest.mark.parametrize("host", HOSTS)
def test_exempt_hosts(host, blame):
    cases = [(Nobody(host), ["-x", "{proxy}", "--noproxy", exempt]) for exempt in LISTS]
    found = list(blame(cases, {}))
    wrong = [(flags[-1], *one) for (_, flags), one in zip(cases, found) if one[0] != one[1]]
    assert not wrong, "(list, by the proxy without us, neutral under the breaker)"
    assert {by_proxy for by_proxy, _ in found} == {True, False}


@pytest.mark.parametrize("env, flags", [
    ({"http_proxy": "{proxy}"}, []),
    ({"HTTP_PROXY": "{proxy}"}, []),
    ({"all_proxy": "{proxy}"}, []),
    ({"ALL_PROXY": "{proxy}"}, []),
    ({"http_proxy": "", "ALL_PROXY": "{proxy}"}, []),
    ({"http_proxy": "{proxy}", "no_proxy": "127.0.0.0/8"}, []),
    ({"http_proxy": "{proxy}", "NO_PROXY": "127.0.0.0/8"}, []),
    ({"http_proxy": "{proxy}", "no_proxy": "", "NO_PROXY": "*"}, []),
    ({"http_proxy": "{proxy}", "no_proxy": "x", "NO_PROXY": "*"}, []),
    ({"http_proxy": "{proxy}", "no_proxy": "*"}, ["--noproxy", ""]),
    ({"http_proxy": "{proxy}", "no_proxy": "*"}, ["--noproxy", "x"]),
    ({"http_proxy": "{proxy}", "no_proxy": "*"}, ["-x", "{proxy}"]),
    ({"http_proxy": "{proxy}"}, ["-x", ""]),
    ({"https_proxy": "{proxy}"}, []),
], ids=str)
def test_environments(env, flags, blame):
    [(by_proxy, neutral)] = blame([(Nobody("127.0.0.1"), flags)], env)
    assert neutral == by_proxy


@pytest.mark.parametrize("flags", [[], ["-x", "{proxy}"]], ids=["env", "-x"])
def test_a_local_socket_goes_by_no_proxy(flags, breaker_env, proxy, tmp_path):
    nobody = Nobody("127.0.0.1")
    proxy.refuse()
    flags = [flag.format(proxy=proxy.url("")) for flag in flags] + ["--unix-socket", str(tmp_path / "none")]
    breaker_env.run("curl", *flags, *nobody.flags(), env={"http_proxy": proxy.url("")})
    bare = breaker_env.run_bare("curl", *flags, *nobody.flags(), env={"http_proxy": proxy.url("")})
    assert bare.returncode == 7
    assert breaker_env.calls(nobody.key)["failure"] == 1
