"""FIELD-NOTES 1: getting into the process, and doing no harm there. No network but loopback, most of it none.

The libcurls of most tests are fakes (fake_curl.c) that answer 43 when they are given a foreign handle.
"""

import os
import struct
import subprocess
from pathlib import Path

import pytest

from provider import Answer
from support import PYTHON, chat

HERE = Path(__file__).parent
OK = "own 0 0 libbreaker.so"


def run(command, env, code=0):
    done = subprocess.run([str(c) for c in command], env=env, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=50)
    assert (done.returncode, done.stderr) == (code, ""), done
    return done.stdout.splitlines()


class Workshop:
    """Makes shared objects and programs in one folder each."""

    def __init__(self, directory):
        self.directory, self.number = directory, 0

    def folder(self):
        self.number += 1
        made = self.directory / str(self.number)
        made.mkdir()
        return made

    def compile(self, output, *arguments, compiler="gcc"):
        done = subprocess.run([compiler, "-D_GNU_SOURCE", "-O1", "-g", "-o", output, *map(str, arguments)],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return output

    def object(self, name, source, *flags, soname=None):
        folder = self.folder()
        if not isinstance(source, Path):
            text, source = source, folder / "source.c"
            source.write_text(text)
        return self.compile(folder / name, "-shared", "-fPIC", f"-Wl,-soname,{soname or name}", source, *flags)

    def fake(self, tag, name="libcurl.so.4", version=None):
        """A fake libcurl; its functions under one version node, or none."""
        flags = [f'-DTAG="{tag}"']
        if version:
            script = self.folder() / "versions"
            script.write_text(f"{version} {{ global: curl_*; local: *; }};\n")
            flags.append(f"-Wl,--version-script={script}")
        return self.object(name, HERE / "fake_curl.c", *flags)

    def extension(self, library):
        """An extension linked to that libcurl and finding it by its RUNPATH."""
        return self.object("extension.so", HERE / "extension.c", library, f"-Wl,-rpath,{library.parent}")


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    return Workshop(tmp_path_factory.mktemp("loader"))


@pytest.fixture(scope="module")
def fakes(workshop):
    return {"openssl": workshop.fake("openssl", version="CURL_OPENSSL_4"),
            "gnutls": workshop.fake("gnutls", "libcurl-gnutls.so.4", "CURL_GNUTLS_3"),
            # Copies inside Python wheels have names of their own.
            "second": workshop.fake("second", "libcurl-0f1e2d3c.so.4.8.0", "CURL_OPENSSL_4"),
            "odd": workshop.fake("odd", "libcurl-odd.so.4", "SOMEBODYS_CURL_9"),
            "plain": workshop.fake("plain", "libcurl-4b5a6978.so.4.8.0"),
            "plain2": workshop.fake("plain2", "libcurl-x64.so.4"),
            "renamed": workshop.fake("renamed", "libtransfer.so.1", "CURL_OPENSSL_4")}


@pytest.fixture(scope="module")
def extensions(workshop, fakes):
    return {name: workshop.extension(library) for name, library in fakes.items()}


@pytest.fixture(scope="module")
def client(workshop):
    return workshop.compile(workshop.folder() / "loader_client", HERE / "loader_client.c", "-rdynamic", "-pthread")


@pytest.fixture(scope="module")
def edge(workshop):
    return workshop.compile(workshop.folder() / "edge", HERE / "edge.c")


@pytest.fixture(params=["lazy", "now"])
def preloaded(request, breaker_env):
    """The environment of a bare LD_PRELOAD, with lazy and with immediate binding."""
    return breaker_env.preloaded(**({"LD_BIND_NOW": "1"} if request.param == "now" else {}))


@pytest.fixture
def copy(build, workshop):
    """Another libbreaker.so, which the loader takes for a library of its own."""
    made = workshop.folder() / "libbreaker.so"
    made.write_bytes((build / "libbreaker.so").read_bytes())
    return made


# --- what the file is ---------------------------------------------------------------------------------------

SCRIPTS = HERE.parents[2] / "scripts"


def check(script, *arguments):
    return subprocess.run([SCRIPTS / script, *map(str, arguments)], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("script", ["check-exports", "check-glibc", "check-tail-jumps"])
def test_checks_of_the_library_pass(script, build):
    done = check(script, build / "libbreaker.so")
    assert done.returncode == 0 and done.stdout.startswith("ok "), done


def test_versions_survive_the_flags_of_a_distribution(tmp_path):
    """Several build everything with LTO, by which the versions of libcurl's functions get lost."""
    made = tmp_path / "preload/curl_entries.o"
    subprocess.run(["make", "-s", "-C", HERE.parents[2], "CFLAGS=-O2 -flto", f"BUILD={tmp_path}", made], check=True)
    names = subprocess.run(["nm", made], check=True, capture_output=True, text=True).stdout
    assert " T curl_easy_perform@@CURL_OPENSSL_4\n" in names


@pytest.mark.parametrize("script,text,flags,complaint", [
    ("check-exports", "int more(void) { return 0; }", [], "> more"),
    ("check-exports", "void *curl_easy_init(void) { return 0; }", [], "> curl_easy_init"),
    ("check-exports", "int connect(void) { return 0; }", ["versions"], "< connect"),
    ("check-glibc", "#include <stdlib.h>\nunsigned f(void) { return arc4random(); }", [], "newer than 2.34"),
    ("check-glibc", "#include <math.h>\n#include <stdio.h>\ndouble f(double x) { puts(\"\"); return cos(x); }", ["-lm"],
     "libm.so.6"),
    ("check-glibc", "int nobodys(void);\n#include <stdio.h>\nint f(void) { puts(\"\"); return nobodys(); }", [], "nobodys"),
    ("check-tail-jumps", "void *dlopen(void *(*f)(void)) { return f(); }\nvoid *dlsym(void *(*f)(void)) { return f(); }",
     ["-O0"], "dlopen returns by itself"),
    ("check-tail-jumps", "void *dlopen(void *(*f)(void)) { return f(); }", ["-O2"], "no dlsym"),
])
def test_checks_of_the_library_can_fail(script, text, flags, complaint, workshop):
    if flags == ["versions"]:  # a node of our own with `local: *`: every hook would be switched off
        map_file = workshop.folder() / "map"
        map_file.write_text("OURS { local: *; };\n")
        flags = [f"-Wl,--version-script={map_file}"]
    done = check(script, workshop.object("bad.so", text, *flags))
    assert done.returncode != 0 and complaint in done.stderr, done


def test_what_is_behind_us_is_what_the_loader_says(workshop, copy):
    """real_next.c reads the loader's tables by itself: the same for every name, whatever preloads stand behind."""
    top = HERE.parents[2]
    teller = workshop.object("teller.so", f"""
        #include "{top}/preload/real_next.c"
        #include <dlfcn.h>
        #include <stdio.h>
        #define SAY(name) printf("%s %s\\n", name, !real_next(name) ? "unknown" : real_next(name) == dlsym(RTLD_NEXT, name) ? \\
                                 "same" : "other")
        static __attribute__((constructor)) void tell(void)
        {{
            SAY("read"); SAY("close"); SAY("syscall"); SAY("__read_chk"); SAY("clone"); SAY("fcntl64"); SAY("fsync");
            SAY("send"); SAY("memcpy"); SAY("no_such_function"); SAY("pthread_create"); SAY("hidden_one");
        }}
    """, "-I", top / "preload")
    other = workshop.object("other.so", """
        __attribute__((visibility("hidden"))) void hidden_one(void) {}
        long send(void) { return 1; }
        int fsync(int fd) { return fd; }
        int close(int fd) { return fd; }""")
    sysv = workshop.object("sysv.so", "long read(void) { return 1; }", "-Wl,--hash-style=sysv")
    told = {}
    for behind in ([], [other], ["libeatmydata.so"], [other, "libeatmydata.so", copy], [sysv]):
        env = {"LD_PRELOAD": ":".join(map(str, [teller, *behind])), "PATH": "/usr/bin:/bin"}
        lines = run(["/bin/true"], env)
        told[len(told)] = dict(line.split() for line in lines)
        assert lines[9] == "no_such_function unknown" and "hidden_one unknown" in lines
    for index, says in told.items():
        assert "other" not in says.values(), (index, says)
        assert says["memcpy"] == "unknown"  # the loader's to resolve (ifunc)
        # Of an object with a hash of the old kind alone nothing is read.
        assert all(what == "unknown" for what in says.values()) if index == 4 else all(says[name] == "same" for name in ("close", "syscall", "clone", "send", "pthread_create")), says


FLAVOURS = [(compiler, flags) for compiler in ("gcc", "clang")
            for flags in ("-O0", "-O2", "-Os", "-O0 -fsanitize=address,undefined", "-O2 -fsanitize=thread",
                          "-O2 -fno-optimize-sibling-calls", "-O1 -fstack-protector-all", "-O0 --coverage",
                          "-O2 -fno-omit-frame-pointer -fcf-protection=full")]


@pytest.mark.parametrize("compiler,flags", FLAVOURS, ids=[f"{c} {f}" for c, f in FLAVOURS])
def test_tail_jumps_in_every_flavour(compiler, flags, workshop):
    folder, top = workshop.folder(), HERE.parents[2]
    made = []
    for name in ("dl_open", "dl_sym", "sock_fence", "sock_syscall"):
        made.append(folder / f"{name}.o")
        workshop.compile(made[-1], "-std=gnu11", "-fPIC", "-fvisibility=hidden", "-fexceptions", f"-I{top}/shim",
                         f"-I{top}/preload", "-c", top / "preload" / f"{name}.c", *flags.split(), compiler=compiler)
    done = check("check-tail-jumps", *made)
    assert done.returncode == 0, done.stderr


def bindings(command, env, directory):
    """(object, symbol) -> the object that the loader bound it to first."""
    run_env = {**env, "LD_DEBUG": "bindings", "LD_DEBUG_OUTPUT": str(directory / "bindings")}
    subprocess.run([str(c) for c in command], env=run_env, stdin=subprocess.DEVNULL, capture_output=True, timeout=50)
    found = {}
    for log in directory.glob("bindings.*"):
        for line in log.read_text(errors="replace").splitlines():
            if "binding file" in line and "symbol" in line:
                words = line.split()
                at = words.index("file")
                symbol = line.split("symbol `")[1].split("'")[0]
                to = os.path.basename(words[words.index("to") + 1])
                found.setdefault((os.path.basename(words[at + 1]), symbol), to)  # later ones are our questions
    return found


def test_programs_reach_the_hooks(edge, breaker_env, preloaded, tmp_path):
    found = bindings([edge, "vfork"], preloaded, tmp_path)
    assert found["edge", "connect"] == "libbreaker.so"
    found = bindings([edge, "next"], preloaded, tmp_path)
    assert found["edge", "dlsym"] == "libbreaker.so"


def test_versioned_calls_reach_the_hooks(breaker_env, preloaded, tmp_path, provider):
    found = bindings(["curl", "-s", provider.url()], preloaded, tmp_path)
    assert found["curl", "curl_easy_perform"] == "libbreaker.so"
    assert found["libcurl.so.4", "connect"] == "libbreaker.so"
    assert found["curl", "curl_global_init"] == "libcurl.so.4"
    script = f"import pycurl; c = pycurl.Curl(); c.setopt(c.URL, '{provider.url()}'); c.perform()"
    found = bindings([PYTHON, "-c", script], preloaded, tmp_path)
    ours = {symbol for (file, symbol), to in found.items() if file.startswith("pycurl.") and to == "libbreaker.so"}
    assert {"curl_easy_init", "curl_easy_perform", "curl_easy_setopt", "curl_easy_cleanup"} <= ours


# --- which libcurl: by dlsym ---------------------------------------------------------------------------------

SETS = [["openssl"], ["gnutls"], ["plain"], ["renamed"], ["odd"], ["openssl", "gnutls"], ["gnutls", "openssl"],
        ["gnutls", "openssl", "plain"], ["plain", "gnutls", "openssl"]]


@pytest.mark.parametrize("names", SETS, ids=",".join)
def test_ffi_gets_the_entry_of_its_library(names, client, fakes, preloaded):
    assert run([client, "ffi", *(fakes[n] for n in names)], preloaded) == [OK] * len(names) * 2


@pytest.mark.parametrize("names,uncovered", [
    (["openssl", "second"], {"second"}), (["second", "gnutls", "openssl"], {"openssl"}),
    (["openssl", "second", "plain"], {"second"}), (["plain", "plain2", "gnutls"], {"plain2"})])
def test_a_second_library_of_one_flavour_runs_uncovered_by_ffi(names, uncovered, client, fakes, preloaded):
    """One entry cannot serve two; the one that came first has it."""
    got = run([client, "ffi", *(fakes[n] for n in names)], preloaded)
    assert got == [f"own 0 0 {fakes[n].name if n in uncovered else 'libbreaker.so'}" for n in names] * 2


def test_ffi_while_disabled_gets_the_real_one(client, fakes, preloaded):
    got = run([client, "ffi", fakes["openssl"], fakes["plain"]], {**preloaded, "BREAKER_DISABLED": "1"})
    assert got == ["own 0 0 libcurl.so.4", f"own 0 0 {fakes['plain'].name}"] * 2


@pytest.mark.parametrize("name", ["openssl", "gnutls", "plain", "odd"])
def test_dlerror_and_errno_are_as_without_us(name, client, fakes, preloaded, breaker_env):
    command = [client, "errors", fakes[name]]
    assert run(command, preloaded) == run(command, breaker_env.bare) == ["1 none 1 1 1 1"]


def test_where_no_libcurl_is(client, preloaded, breaker_env):
    """A documented limit: RTLD_DEFAULT and weak references find our entries; they say that set-up failed."""
    assert run([client, "missing"], breaker_env.bare) == ["none"]
    assert run([client, "missing"], preloaded) == ["(nil) 2 2 4"]


# --- which libcurl: linked, and loaded with RTLD_LOCAL ---------------------------------------------------------

LINKED = [["openssl"], ["gnutls"], ["plain"], ["renamed"], ["odd"], ["openssl", "gnutls"], ["openssl", "second"],
          ["second", "openssl", "gnutls"], ["openssl", "plain"], ["plain", "openssl"], ["gnutls", "plain"],
          ["plain", "plain2", "openssl"], ["odd", "openssl"], ["renamed", "second", "plain", "gnutls"]]


@pytest.mark.parametrize("names", LINKED, ids=",".join)
def test_linked_extensions_keep_to_their_own_library(names, client, extensions, preloaded, breaker_env):
    """As the loader would bind them without us, RUNPATHs and private copies included."""
    command = [client, "extension", *(extensions[n] for n in names)]
    assert run(command, preloaded) == run(command, breaker_env.bare) == [f"{n} 0" for n in names] * 2


@pytest.mark.parametrize("name", ["openssl", "plain", "gnutls"])
def test_global_library(name, client, fakes, extensions, preloaded, breaker_env):
    """One in the global scope serves those that it serves without us."""
    env = {**preloaded, "LD_PRELOAD": f"{preloaded['LD_PRELOAD']}:{fakes[name]}"}
    bare = {**breaker_env.bare, "LD_PRELOAD": str(fakes[name])}
    for linked in ("openssl", "second", "gnutls"):
        command = [client, "extension", extensions[linked]]
        assert run(command, env) == run(command, bare), linked


@pytest.mark.parametrize("name", ["openssl", "plain"])
def test_an_extension_goes_away_when_closed(name, client, extensions, preloaded):
    assert run([client, "unload", extensions[name]], preloaded) == ["0", "gone"]


@pytest.mark.parametrize("name", ["openssl", "gnutls", "plain"])
def test_first_call_from_many_threads(name, client, extensions, preloaded):
    for _ in range(5):
        assert run([client, "threads", extensions[name]], preloaded) == ["0" * 8]


# --- dlopen --------------------------------------------------------------------------------------------------

ASKS = 'const char *who(void) { return "object\'s"; }\nconst char *ask(void) { return who(); }\n'


@pytest.fixture(scope="module")
def deep(workshop, fakes):
    """Objects by what they need."""
    needed = {"nothing": [], "curl": [fakes["openssl"]], "gnutls": [fakes["gnutls"]],
              "ssl": [workshop.object("libssl.so.3", "int ssl;")],
              "wheel": [workshop.object("libssl-0f1e2d3c.so.3", "int ssl;")],
              "nss": [workshop.object("libssl3.so", "int ssl;")],
              "other": [workshop.object("libcur.so.4", "int cur;")]}
    return {name: workshop.object("object.so", ASKS, "-Wl,--no-as-needed", *libraries,
                                  *(f"-Wl,-rpath,{x.parent}" for x in libraries))
            for name, libraries in needed.items()}


@pytest.mark.parametrize("name", ["nothing", "curl", "gnutls", "ssl", "wheel", "nss", "other"])
def test_deep_binding_is_masked_for_curl_and_ssl_only(name, deep, client, preloaded, breaker_env):
    command = [client, "open", deep[name], "deep"]
    masked = name in ("curl", "gnutls", "ssl", "wheel")
    assert run(command, breaker_env.bare) == ["object's 40"]
    assert run(command, preloaded) == ["program's 40" if masked else "object's 40"]
    assert run([client, "open", deep[name], "plain"], preloaded) == ["program's 40"]


def test_deep_binding_can_be_kept(deep, client, preloaded, breaker_env):
    breaker_env.configure(deepbind="keep")
    assert run([client, "open", deep["curl"], "deep"], preloaded) == ["object's 40"]
    breaker_env.configure()
    assert run([client, "open", deep["curl"], "deep"], {**preloaded, "BREAKER_DEEPBIND": "keep"}) == ["object's 40"]
    assert run([client, "open", deep["curl"], "deep"], {**preloaded, "BREAKER_DISABLED": "1"}) == ["object's 40"]


@pytest.mark.parametrize("how", ["bare name", "relative"])
def test_deep_names(how, deep, workshop, preloaded, breaker_env):
    """A bare name follows the caller's RUNPATH, through the hook too, and keeps its flag; a documented limit."""
    folder = deep["curl"].parent
    program = workshop.compile(workshop.folder() / "program", HERE / "loader_client.c", "-rdynamic", "-pthread",
                               f"-Wl,-rpath,{folder}", "-Wl,--enable-new-dtags")
    if how == "bare name":
        assert run([program, "open", "object.so", "deep"], preloaded) == ["object's 40"]
        assert run([program, "open", "object.so", "plain"], preloaded) == ["program's 40"]
    else:
        command = ["sh", "-c", f"cd {folder} && exec {program} open ./object.so deep"]
        assert run(command, preloaded) == ["program's 40"]


def names_nowhere(image):
    """The object with its table of names where no segment is."""
    at, count = struct.unpack_from("<Q", image, 32)[0], struct.unpack_from("<H", image, 56)[0]
    segments = [struct.unpack_from("<IIQQQQ", image, at + 56 * i) for i in range(count)]
    dynamic, size = next((offset, size) for kind, _, offset, _, _, size in segments if kind == 2)
    entry = next(e for e in range(dynamic, dynamic + size, 16) if struct.unpack_from("<Q", image, e)[0] == 5)
    return image[:entry + 8] + struct.pack("<Q", 1 << 40) + image[entry + 16:]


def other_machine(image):
    """The loader refuses it before it looks at its names."""
    return image[:18] + b"\xff\xff" + image[20:]


def test_files_that_are_no_objects(workshop, deep, client, preloaded, breaker_env):
    """Truncated, wild, no file at all: the loader's own words."""
    folder = workshop.folder()
    image = deep["curl"].read_bytes()
    cases = {"short": image[:40], "headers": image[:64], "text": b"int main;\n", "empty": b"",
             "wild": image[:32] + b"\xff" * 8 + image[40:], "segments": image[:56] + b"\xff\xff" + image[58:],
             "names": other_machine(names_nowhere(image))}
    for name, content in cases.items():
        (folder / name).write_bytes(content)
    (folder / "folder").mkdir()
    for name in [*cases, "folder", "absent"]:
        command = [client, "open", folder / name, "deep"]
        assert run(command, preloaded, code=1) == run(command, breaker_env.bare, code=1), name


# --- other preloads --------------------------------------------------------------------------------------------


def test_what_the_pseudo_handles_are(edge, preloaded):
    assert run([edge, "next"], preloaded) == ["libbreaker.so libbreaker.so"]


def test_calls_before_our_constructor(workshop, preloaded, breaker_env):
    early = workshop.object("libearly.so", HERE / "edge.c", "-DEARLY")
    program = workshop.compile(workshop.folder() / "early", HERE / "edge.c", "-Wl,--no-as-needed", early,
                               f"-Wl,-rpath,{early.parent}")
    assert run([program, "early"], preloaded) == run([program, "early"], breaker_env.bare) == ["1 1 1 1"]


def test_child_of_vfork(edge, preloaded):
    assert run([edge, "vfork"], preloaded) == ["7 1"]


@pytest.mark.parametrize("first", [True, False], ids=["before us", "after us"])
def test_hooks_of_a_neighbour_are_still_called(first, workshop, edge, preloaded, breaker_env):
    """proxychains and the like: their connect and dlopen happen whichever comes first."""
    neighbour = workshop.object("libneighbour.so", HERE / "neighbour.c")
    pair = [str(neighbour), preloaded["LD_PRELOAD"]]
    env = {**preloaded, "LD_PRELOAD": ":".join(pair if first else pair[::-1])}
    alone = {**breaker_env.bare, "LD_PRELOAD": str(neighbour)}
    assert run([edge, "neighbour"], env) == run([edge, "neighbour"], alone) == ["1 1 1 libc.so.6"]


@pytest.mark.parametrize("names", SETS, ids=",".join)
@pytest.mark.parametrize("first", [True, False], ids=["copy first", "copy second"])
def test_two_copies_of_us(first, names, copy, client, fakes, extensions, preloaded):
    pair = [str(copy), preloaded["LD_PRELOAD"]]
    env = {**preloaded, "LD_PRELOAD": ":".join(pair if first else pair[::-1])}
    assert run([client, "ffi", *(fakes[n] for n in names)], env) == [OK] * len(names) * 2
    got = run([client, "extension", *(extensions[n] for n in names)], env)
    assert got == [f"{n} 0" for n in names] * 2


POST = {"curl": ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-d", chat("m")],
        "pycurl": [PYTHON, "-c", "import pycurl, sys\nc = pycurl.Curl(); c.setopt(c.URL, sys.argv[1])\n"
                   f"c.setopt(c.POSTFIELDS, '{chat('m')}'); c.setopt(c.WRITEFUNCTION, lambda b: None); c.perform()\n"
                   "sys.stdout.write(str(c.getinfo(c.RESPONSE_CODE)))"],
        "php": ["php", "-r", "$c = curl_init($argv[1]); curl_setopt($c, CURLOPT_RETURNTRANSFER, true);"
                f"curl_setopt($c, CURLOPT_POSTFIELDS, '{chat('m')}'); curl_exec($c);"
                "echo curl_getinfo($c, CURLINFO_RESPONSE_CODE);"]}


def status_of(program, url, env):
    return run([*POST[program], url], env)


@pytest.mark.parametrize("program", POST)
def test_two_copies_count_once(program, copy, provider, breaker_env):
    breaker_env.configure(open_seconds=60)
    provider.answer(Answer(500))
    env = breaker_env.preloaded(LD_PRELOAD=f"{copy}:{breaker_env.library}")
    got = [status_of(program, provider.url(), env) for _ in range(7)]
    assert got == [["500"]] * 5 + [["503"]] * 2 and provider.count() == 5


@pytest.mark.parametrize("first", [True, False], ids=["copy first", "copy second"])
def test_two_copies_count_sockets_once(first, copy, provider, breaker_env):
    """And a probe is one probe: neither takes the other's for one too many."""
    breaker_env.configure()
    pair = [str(copy), str(breaker_env.library)]
    env = breaker_env.preloaded(LD_PRELOAD=":".join(pair if first else pair[::-1]))
    post = [PYTHON, "-c", "import http.client, sys\nc = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]))\n"
            f"c.request('POST', '/v1/chat/completions', '{chat('m')}'); print(c.getresponse().status)", provider.port]
    provider.then(*[Answer(500)] * 5)
    assert [run(post, env) for _ in range(6)] == [["500"]] * 5 + [["503"]] and provider.count() == 5
    breaker_env.wait_due(provider.key("m"))
    assert [run(post, env) for _ in range(2)] == [["200"]] * 2
    assert breaker_env.calls(provider.key("m"))["success"] == 2


def library_of(soname):
    listing = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    found = [line.split(" => ")[1] for line in listing.splitlines() if line.split()[:1] == [soname]]
    return found[0] if found else None


OTHERS = ["libjemalloc.so.2", "libeatmydata.so", "libfakeroot-sysv.so"]
PLACES = {"libeatmydata.so": ["libeatmydata.so"], "libfakeroot-sysv.so": ["libfakeroot/libfakeroot-sysv.so"]}


def preload_of(name):
    found = library_of(name)
    roots = [Path("/usr/lib"), *Path("/usr/lib").glob("*-linux-gnu")]
    for place in PLACES.get(name, []):
        found = found or next((str(r / place) for r in roots if (r / place).exists()), None)
    assert found, f"{name} is not installed: scripts/deps check"
    return found


# Debian's PHP deep-binds its extensions past any malloc but libc's: with jemalloc it aborts without us. Of curl and
# others: test_coexistence.py.
NEIGHBOURS = [(p, o) for p in ("pycurl", "php") for o in OTHERS if (p, o) != ("php", "libjemalloc.so.2")]


@pytest.mark.parametrize("program,other", NEIGHBOURS)
@pytest.mark.parametrize("first", [True, False], ids=["before us", "after us"])
def test_other_preloads(program, first, other, provider, breaker_env):
    breaker_env.configure(open_seconds=60, failure_threshold=1)
    provider.answer(Answer(500))
    pair = [preload_of(other), str(breaker_env.library)]
    env = breaker_env.preloaded(LD_PRELOAD=":".join(pair if first else pair[::-1]))
    got = [status_of(program, provider.url(), env) for _ in range(2)]
    assert got == [["500"], ["503"]] and provider.count() == 1


def test_fakeroot_itself(provider, breaker_env):
    breaker_env.configure(open_seconds=60, failure_threshold=1)
    provider.answer(Answer(500))
    got = [breaker_env.run("fakeroot", *POST["curl"], provider.url()).stdout for _ in range(2)]
    assert got == [b"500", b"503"]
    assert breaker_env.run("fakeroot", "id", "-u").stdout == b"0\n"


@pytest.mark.parametrize("program", POST)
def test_immediate_binding(program, provider, breaker_env):
    breaker_env.configure(open_seconds=60, failure_threshold=1)
    provider.answer(Answer(500))
    env = breaker_env.preloaded(LD_BIND_NOW="1")
    assert [status_of(program, provider.url(), env) for _ in range(2)] == [["500"], ["503"]]
    assert status_of(program, provider.url(), {**env, "BREAKER_DISABLED": "1"}) == ["500"]
