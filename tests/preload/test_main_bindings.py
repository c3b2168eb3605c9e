"""Issue 2, item 4: PHP, pycurl, ctypes, two libcurls in one process, an unversioned libcurl."""

import json
import struct
import subprocess
from pathlib import Path

import pytest

from provider import Answer, wait_until
from support import PYTHON

CLIENTS = Path(__file__).parent / "clients"
OPENSSL, GNUTLS = "libcurl.so.4", "libcurl-gnutls.so.4"
# (client, how) -> how the model travels and which interface carries it; see the clients' heads.
PHP = ["exec", "copy", "upload", "array", "multi"]
PYCURL = ["exec", "copy", "upload", "multi", "reset"]
FORM_PATH = "/v1/audio/transcriptions"


def command(client, how, url, *models):
    program = ["php", CLIENTS / "client.php"] if client == "php" else [PYTHON, CLIENTS / f"client_{client}.py"]
    return [*program, how, url, *models]


def parse(done):
    assert done.returncode == 0 and done.stderr == b"", done
    return [json.loads(line) for line in done.stdout.splitlines()]


def url_of(provider, how):
    return provider.url(FORM_PATH) if how in ("array", "mime") else provider.url()


def is_refused(answer):
    return answer["status"] == 503 and "circuit_open" in answer["body"]


CELLS = [("php", how) for how in PHP] + [("pycurl", how) for how in PYCURL] + \
    [("ctypes", library) for library in (OPENSSL, GNUTLS)]


@pytest.mark.parametrize("client,how", CELLS)
def test_five_failures_then_refused(client, how, provider, breaker_env):
    """Seven processes; five reach the provider, two are answered by us in the same shape."""
    breaker_env.configure(open_seconds=60)
    provider.answer(Answer(500))
    url = url_of(provider, how)
    got = [parse(breaker_env.run(*command(client, how, url, "m")))[0] for _ in range(7)]
    assert [a["status"] for a in got] == [500] * 5 + [503] * 2
    assert provider.count() == 5
    for answer in got:
        assert answer["url"] == url and answer["code"] == 0
        assert answer.get("scheme", "HTTP") == "HTTP" and answer.get("type", "application/json") == "application/json"
    for answer in got[5:]:
        assert is_refused(answer), answer
    assert breaker_env.calls(provider.key("m"))["failure"] == 5


@pytest.mark.parametrize("client,how", [c for c in CELLS if c[1] != "multi"])
def test_one_handle_refused_and_real_in_turn(client, how, provider, breaker_env):
    """The handle afterwards is as the application set it, and its pool is as it was."""
    breaker_env.configure(open_seconds=60)
    breaker_env.command("trip", "--create", provider.key("shut"))
    models = ["shut", "fine", "shut", "shut", "fine", "fine"]
    got = parse(breaker_env.run(*command(client, how, url_of(provider, how), *models)))
    assert [a["status"] for a in got] == [503, 200, 503, 503, 200, 200]
    assert all(is_refused(a) == (model == "shut") for a, model in zip(got, models))
    assert provider.count() == 3
    if how not in ("copy", "upload"):  # its copies have pools of their own; an upload cut off closes its connection
        assert len({r.connection for r in provider.seen()}) == 1


def test_a_form_of_the_old_interface(provider, breaker_env):
    """pycurl's HTTPPOST is curl_formadd: its list is public, and read without a hook."""
    breaker_env.configure(open_seconds=60)
    provider.answer(Answer(500))
    got = [parse(breaker_env.run(*command("pycurl", "mime", provider.url(FORM_PATH), "m")))[0] for _ in range(7)]
    assert [a["status"] for a in got] == [500] * 5 + [503] * 2 and provider.count() == 5
    assert breaker_env.state(provider.key("m")) == "open"


@pytest.mark.parametrize("client", ["php", "pycurl"])
def test_multi_with_refused_and_real_siblings(client, provider, breaker_env):
    breaker_env.configure(open_seconds=60)
    breaker_env.command("trip", "--create", provider.key("shut"))
    provider.answer(Answer(404), model="odd")
    models = ["fine", "shut", "odd", "shut", "fine"]
    got = parse(breaker_env.run(*command(client, "multi", provider.url(), *models)))
    assert [a["status"] for a in got] == [200, 503, 404, 503, 200]
    assert sorted(r.model for r in provider.seen()) == ["fine", "fine", "odd"]
    assert breaker_env.calls(provider.key("fine"))["success"] == 2
    assert breaker_env.calls(provider.key("odd"))["neutral"] == 1


@pytest.mark.parametrize("client", ["php", "pycurl"])
def test_fail_on_error(client, provider, breaker_env):
    breaker_env.configure(open_seconds=60)
    provider.answer(Answer(500))
    got = [parse(breaker_env.run(*command(client, "fail", provider.url(), "m")))[0] for _ in range(7)]
    assert [(a["status"], a["code"]) for a in got] == [(500, 22)] * 5 + [(503, 22)] * 2
    assert provider.count() == 5


def test_php_streams_and_other_extensions_are_as_before(provider, breaker_env):
    """Only objects that need libcurl or libssl lose RTLD_DEEPBIND."""
    script = 'echo file_get_contents($argv[1]), extension_loaded("curl") ? "curl" : "", json_encode([1]);'
    commands = ["php", "-r", script, provider.url("/plain")]
    bare, done = breaker_env.run_bare(*commands), breaker_env.run(*commands)
    assert (done.returncode, done.stdout, done.stderr) == (bare.returncode, bare.stdout, bare.stderr)


def test_deepbind_can_be_kept(provider, breaker_env):
    """deepbind = keep: PHP's curl.so runs uncovered, as documented."""
    breaker_env.configure(deepbind="keep")
    provider.answer(Answer(500))
    for _ in range(7):
        parse(breaker_env.run(*command("php", "exec", provider.url(), "m")))
    assert provider.count() == 7


@pytest.mark.parametrize("order", [[OPENSSL, "pycurl"], ["pycurl", OPENSSL], [GNUTLS, OPENSSL, "pycurl", OPENSSL]],
                         ids=",".join)
def test_both_flavours_in_one_process(order, provider, breaker_env):
    """Each handle stays with its own library; all share the breaker."""
    breaker_env.configure(open_seconds=60)
    breaker_env.command("trip", "--create", provider.key("shut"))
    got = parse(breaker_env.run(*command("ctypes", ",".join(order), provider.url(), "fine", "shut", "fine")))
    number = len(order)
    assert [a["status"] for a in got] == [200] * number + [503] * number + [200] * number
    assert provider.count() == 2 * number


def test_failures_of_both_flavours_add_up(provider, breaker_env):
    breaker_env.configure(open_seconds=60)
    provider.answer(Answer(500))
    got = parse(breaker_env.run(*command("ctypes", f"{OPENSSL},pycurl", provider.url(), *["m"] * 4)))
    assert [a["status"] for a in got] == [500] * 5 + [503] * 3
    assert provider.count() == 5


# --- an unversioned libcurl, as upstream's configure builds it by default --------------------------

PT_DYNAMIC = 2
DT_DEBUG = 21
DEFINITION_TAGS = (0x6FFFFFFC, 0x6FFFFFFD)  # DT_VERDEF, DT_VERDEFNUM; it still needs libc's versions


def without_versions(image):
    """An ELF64 shared object that defines no symbol versions any more."""
    image = bytearray(image)
    (program_headers,) = struct.unpack_from("<Q", image, 32)
    size, count = struct.unpack_from("<HH", image, 54)
    for i in range(count):
        at = program_headers + i * size
        kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", image, at)
        if kind != PT_DYNAMIC:
            continue
        for entry in range(offset, offset + length, 16):
            (tag,) = struct.unpack_from("<Q", image, entry)
            if tag in DEFINITION_TAGS:
                struct.pack_into("<Q", image, entry, DT_DEBUG)  # a tag that says nothing here
    return bytes(image)


@pytest.fixture
def unversioned(tmp_path):
    listing = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    source = next(line.split(" => ")[1] for line in listing.splitlines() if line.split()[:1] == [OPENSSL])
    directory = tmp_path / "plain"
    directory.mkdir()
    library = directory / OPENSSL
    library.write_bytes(without_versions(Path(source).read_bytes()))
    return library


def test_unversioned_libcurl_by_ffi(unversioned, provider, breaker_env):
    breaker_env.configure(open_seconds=60)
    provider.answer(Answer(500))
    got = [parse(breaker_env.run(*command("ctypes", unversioned, provider.url(), "m")))[0] for _ in range(7)]
    assert [a["status"] for a in got] == [500] * 5 + [503] * 2 and provider.count() == 5


def test_unversioned_libcurl_linked(unversioned, provider, breaker_env, curl):
    """The loader itself warns of the missing versions; with us and without us alike."""
    breaker_env.configure(open_seconds=60)
    provider.answer(Answer(500))
    env = {"LD_LIBRARY_PATH": str(unversioned.parent)}
    bare = breaker_env.run_bare("curl", "-s", "-d", '{"model":"other"}', provider.url(), env=env)
    assert bare.returncode == 0 and b"no version information" in bare.stderr
    provider.clear()
    got = [curl(provider.url(), "m", env=env).status for _ in range(7)]
    assert got == [500] * 5 + [503] * 2 and provider.count() == 5


# --- one process for long ------------------------------------------------------------------------


def test_a_long_lived_process_follows_the_shared_state(provider, breaker_env, open_breaker):
    process = breaker_env.start(PYTHON, CLIENTS / "client_pycurl.py", "repl", stdin=subprocess.PIPE)

    def ask():
        process.stdin.write(f"{provider.url()} m\n".encode())
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    assert ask()["status"] == 200
    open_breaker(provider)  # by other processes
    assert is_refused(ask())
    provider.answer(Answer(200), model="m")
    breaker_env.wait_due(provider.key("m"))
    assert ask()["status"] == 200
    assert breaker_env.state(provider.key("m")) == "closed"
    breaker_env.command("force", "open", provider.key("m"))
    assert is_refused(ask())
    breaker_env.command("force", "closed", provider.key("m"))
    provider.answer(Answer(500), model="m")
    assert [ask()["status"] for _ in range(7)] == [500] * 7
    breaker_env.command("force", "none", provider.key("m"))
    breaker_env.command("reset", "--all")
    assert wait_until(lambda: ask()["status"] == 500 and breaker_env.calls(provider.key("m"))["failure"],
                      what="the fresh table in use")
