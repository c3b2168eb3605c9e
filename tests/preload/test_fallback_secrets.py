"""Issue 4, right when 2: no credential of a call goes to the fallback, and none of the fallback's comes back. A canary is
put in every place that libcurl takes a key from, several at once; it is looked for in all that the fallback received, and
in all that the breaker writes down or tells."""

import base64
import random
import re
import urllib.parse

import pytest

from fallbacks import GNUTLS, OPENSSL, SECOND_KEY, Bytes, Fallback, Remote, chain, chat, is_refused
from provider import Answer, Provider

CANARY = "canaryq7x"
SEED = 20240


# --- looking -------------------------------------------------------------------------------------


def in_base64(text):
    """What the inner part of it looks like in base64, at each of the three alignments."""
    return [base64.b64encode(b"\0" * shift + text)[(0, 2, 3)[shift]:].rstrip(b"=")[:-2] for shift in range(3)]


def shows(data, secret):
    """Is the secret in there, plain, in capitals, percent-encoded or in base64?"""
    secret = secret.encode()
    plain = [data, urllib.parse.unquote_to_bytes(data)]
    return any(secret.lower() in text.lower() for text in plain) or any(form in data for form in in_base64(secret))


def test_it_would_be_seen():
    for shift in range(6):
        assert shows(base64.b64encode(b"user:x"[:shift] + CANARY.encode() + b"-y:z"), CANARY)
    assert shows(b"a=%63anaryq7x", CANARY) and shows(b"CANARYQ7X", CANARY) and not shows(b"canary", CANARY)


def told_by(breaker_env, url):
    """All that the breaker keeps and tells, as bytes, by name."""
    told = {"log": breaker_env.log.read_bytes(), "table": breaker_env.table.read_bytes()}
    for words in (["status"], ["status", "--json"], ["config"], ["explain", url, "--model", "m"],
                  ["explain", "--json", url, "--model", "m"], ["check"]):
        done = breaker_env.command(*words)
        told[" ".join(words)] = (done.stdout + done.stderr).encode()
    return told


def assert_nothing_shows(breaker_env, provider, fallback):
    for request in fallback.provider.seen():
        assert not shows(request.raw, CANARY), Bytes(request.raw)
    for request in provider.seen():
        assert not shows(request.raw, SECOND_KEY), Bytes(request.raw)
    for place, data in told_by(breaker_env, provider.url()).items():
        assert not shows(data, CANARY) and not shows(data, SECOND_KEY), place


# --- the places ----------------------------------------------------------------------------------


class Call:
    """One request's options, to be filled."""

    def __init__(self, chance, directory):
        self.chance, self.directory = chance, directory
        self.user, self.query, self.headers, self.options, self.places = "", [], [], {}, []

    def value(self, place):
        self.places.append(place)
        return f"{CANARY}-{re.sub('[^A-Za-z]', '', place)}"

    def options_for(self, url):
        """`url` is the primary's."""
        around = [self.chance.choice(["a=b", "api-version=1", "stream", "x=%20"]) for _ in range(self.chance.randint(0, 2))]
        query = self.query + around
        self.chance.shuffle(query)
        self.chance.shuffle(self.headers)
        url = url.replace("//", f"//{self.user}@") if self.user else url
        options = {"URL": url + ("?" + "&".join(query) if query else ""), "POSTFIELDS": chat("m"),
                   "HTTPHEADER": ["X-App: 1", *self.headers], **self.options}
        return dict(self.chance.sample(sorted(options.items()), len(options)))  # in any order


HEADER_NAMES = [
    "Authorization", "Proxy-Authorization", "x-api-key", "api-key", "x-goog-api-key", "Cookie", "OpenAI-Organization",
    "OpenAI-Project", "X-Amz-Security-Token", "X-Amz-Date", "X-Amz-Content-Sha256", "X-My-Token", "Helicone-Auth",
    "Ocp-Apim-Subscription-Key", "X-Auth-Token", "X-Session-Id", "X-Client-Secret", "CF-Access-Client-Secret",
    "X_API_KEY", "X-Signature", "anthropic-api-key", "X-Password", "cookie2", "X-JWT-Assertion",
]
PARAMETER_NAMES = ["key", "api-key", "api_key", "k%65y", "KEY", "X-Amz-Signature", "X-Amz-Credential",
                   "X-Amz-Security-Token", "sig", "access_token", "subscription-key", "token", "apikey", "%73ig"]
SCHEMES = ["Bearer ", "Basic ", "bearer ", "Digest username=", "AWS4-HMAC-SHA256 Credential=", "Token ", ""]


def spelled(chance, name):
    return chance.choice([name, name.lower(), name.upper(), name.swapcase(),
                          "".join(c.upper() if chance.random() < 0.5 else c.lower() for c in name)])


def a_header(call):
    name = call.chance.choice(HEADER_NAMES)
    value = call.chance.choice(SCHEMES) + call.value(name)
    if name.lower() in ("cookie", "cookie2"):
        value = f"a=b; session={value.replace(' ', '')}; c=d"
    gap, lead = call.chance.choice([": ", ":", ":  ", ":\t", " : ", "\t:"]), call.chance.choice(["", "", "", " ", "\t"])
    call.headers.append(lead + spelled(call.chance, name) + gap + value + call.chance.choice(["", "", " ", "\t"]))


def a_scheme_under_any_name(call):
    call.headers.append(f"X-Whatever: {call.chance.choice(['Bearer', 'bearer', 'BASIC', 'Basic'])} {call.value('scheme')}")


def an_empty_header(call):
    call.headers.append(spelled(call.chance, call.chance.choice(HEADER_NAMES)) + call.chance.choice([";", ":"]))


def a_header_in_lines(call):
    name, end = call.chance.choice(HEADER_NAMES), call.chance.choice(["\r\n", "\n", "\r"])
    first = call.chance.choice(["X-One: 1", "X-Long: begins", "Accept-Language: en"])
    call.headers.append(first + end + call.chance.choice([f"{name}: ", f"\t{name}: ", " "]) + call.value("lines"))


def a_parameter(call):
    call.query.append(f"{spelled(call.chance, call.chance.choice(PARAMETER_NAMES))}={call.value('query')}")


def user_in_the_url(call):
    call.user = call.chance.choice(["{0}", "{0}:{0}", "user:{0}", ":{0}", "u%73er:%63{1}"])
    value = call.value("url")
    call.user = call.user.format(value, value[1:])


def options_of(**choices):
    """A place that is an option, or several that go together."""

    def put(call):
        for name, value in choices.items():
            value = value(call) if callable(value) else value
            call.options[name] = value.format(call.value(name), directory=call.directory) if isinstance(value, str) else value

    return put


def auth(call):
    return call.chance.choice([1, 2, 64, -17, -18, 1 | 2])  # Basic, Digest, Bearer, ANY, ANYSAFE


def netrc(call):
    value = call.value("netrc")
    (call.directory / "netrc").write_text(
        "".join(f"machine {host} login {value} password {value}\n" for host in ("127.0.0.1", "localhost")) +
        f"default login {value} password {value}\n")
    call.options |= {"NETRC": call.chance.choice([1, 2])}
    if call.chance.random() < 0.7:
        call.options["NETRC_FILE"] = str(call.directory / "netrc")


def cookie_file(call):
    """Of the primary's host: what libcurl has from others is theirs."""
    (call.directory / "cookies").write_text(f"127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\t{call.value('cookie file')}\n")
    call.options["COOKIEFILE"] = str(call.directory / "cookies")


def has_a_jar(options):
    return "COOKIEFILE" in options or "COOKIELIST" in options


PLACES = [
    a_header, a_header, a_header, a_scheme_under_any_name, an_empty_header, a_header_in_lines, a_parameter, a_parameter,
    user_in_the_url, netrc, cookie_file,
    options_of(USERPWD="{0}:{0}", HTTPAUTH=auth), options_of(USERNAME="{0}", PASSWORD="{0}", HTTPAUTH=auth),
    options_of(USERPWD="{0}:{0}", UNRESTRICTED_AUTH=1, FOLLOWLOCATION=1),
    options_of(XOAUTH2_BEARER="{0}", HTTPAUTH=64), options_of(XOAUTH2_BEARER="{0}", USERNAME="{0}"),
    options_of(AWS_SIGV4="aws:amz:us-east-1:bedrock", USERPWD="{0}:{0}"),
    options_of(COOKIE="session={0}"), options_of(COOKIEFILE="", COOKIELIST="Set-Cookie: s={0}; domain=127.0.0.1; path=/"),
    options_of(COOKIELIST="127.0.0.1\tFALSE\t/\tFALSE\t0\ts\t{0}"),
    options_of(PROXYUSERPWD="{0}:{0}"), options_of(HEADEROPT=1, PROXYHEADER=lambda call: [f"X-Api-Key: {call.value('p')}"]),
    options_of(LOGIN_OPTIONS="AUTH=PLAIN", USERPWD="{0}:{0}"), options_of(SASL_AUTHZID="{0}"),
]


def generated(chance, directory, url):
    call = Call(chance, directory)
    for place in chance.sample(PLACES, chance.randint(1, 6)):
        place(call)
    return call.options_for(url), call.places


BATCHES = [(OPENSSL, "localhost", "refused"), (GNUTLS, "127.0.0.1", "refused"), (OPENSSL, "127.0.0.1", "fails"),
           (GNUTLS, "localhost", "fails")]
EACH = 250


@pytest.fixture
def second(providers):
    return Fallback("second", providers())


@pytest.fixture
def known(breaker_env):
    """The fallback's key is in the environment of every program, the command's too."""
    breaker_env.environment["SECOND_KEY"] = SECOND_KEY
    return breaker_env


@pytest.mark.parametrize("batch", range(len(BATCHES)), ids=["-".join(b) for b in BATCHES])
def test_a_thousand_requests(batch, known, provider, providers, tmp_path):
    library, host, how = BATCHES[batch]
    chance = random.Random(SEED + batch)
    second = Fallback("second", providers(), host=host)
    known.configure(chain(provider, second), open_seconds=600, failure_threshold=0 if how == "fails" else 5)
    if how == "refused":
        known.command("trip", "--create", provider.key())
    else:
        provider.refuse()
    home = tmp_path / "home"
    used, gone, jar_is_kept = set(), 0, False
    with Remote(known, library) as curl:
        for number in range(EACH):
            options, places = generated(chance, home, provider.url())
            (home / ".netrc").write_bytes((home / "netrc").read_bytes() if (home / "netrc").exists() else b"")
            used.update(places)
            jar = has_a_jar(options)
            if number % 5 == 4:  # a handle on which options of earlier calls stay
                if number % 50 == 4:
                    curl.made("kept")
                    jar_is_kept = False
                curl.set("kept", **options)
                jar = jar_is_kept = jar_is_kept or jar
                done = curl.perform(name="kept")
            else:
                done = curl.once(options=options, multi=number % 2 == 0)
            if jar and host == "127.0.0.1":  # cookies know no ports: the call cannot go there
                assert is_refused(done) or how == "fails" and done.code == 7, (number, done, options)
                assert second.provider.count() == gone
                continue
            gone += 1
            assert second.provider.count() == gone, (number, "sent more than once", options)
            assert (done.code, done.status) == (0, 200), (number, done, options)
            assert done.url.startswith(second.url()) and not shows(done.url.encode(), CANARY), (number, done.url, options)
            request = second.provider.seen()[-1]
            assert not shows(request.raw, CANARY), (number, options, Bytes(request.raw))
            assert Bytes(request.raw).values("authorization") == [b"Bearer " + SECOND_KEY.encode()], (number, options)
    assert second.provider.count() == gone > EACH / 2 and provider.count() == 0
    assert len(used) > 35
    assert_nothing_shows(known, provider, second)
    # and back: the primary is asked again, on new handles, with all of it
    provider.listen()
    known.command("reset", "--all")
    with Remote(known, library) as curl:
        for number in range(20):
            options, _ = generated(chance, home, provider.url())
            curl.once(options=options, multi=number % 2 == 0)
    assert provider.count() > 10 and any(shows(r.raw, CANARY) for r in provider.seen())
    assert_nothing_shows(known, provider, second)


@pytest.mark.parametrize("library", [OPENSSL, GNUTLS])
@pytest.mark.parametrize("multi", [False, True], ids=["easy", "multi"])
def test_to_and_fro_on_one_handle(multi, library, known, provider, second, tmp_path):
    """Now here, now there, ten times; each time the handle has what it had. The primary redirects, challenges and sets
    cookies, all of which leaves something in a handle."""
    chance = random.Random(SEED)
    known.configure(chain(provider, second), open_seconds=600)
    provider.answer(Answer(307, {"Location": "/v1/embeddings", "Set-Cookie": f"session={CANARY}; path=/"}, b""),
                    path="/v1/chat/completions")
    provider.answer(Answer(200, {"Set-Cookie": f"more={CANARY}; path=/"}, digest=True), path="/v1/embeddings")
    with Remote(known, library) as curl:
        for _ in range(5):
            curl.made("a", URL=provider.url(), POSTFIELDS=chat("m"), COOKIEFILE="", FOLLOWLOCATION=1, HTTPAUTH=-17,
                      USERPWD=f"{CANARY}:{CANARY}", HTTPHEADER=[f"x-api-key: {CANARY}"])
            for _ in range(2):
                def perform():
                    return curl.perform(name="a", multi=multi)

                before = provider.count()
                assert perform().status == 200 and provider.count() > before
                known.command("trip", provider.key())
                before = provider.count()
                assert perform().url == second.url() and provider.count() == before
                known.command("reset", provider.key())
            curl.set("a", **generated(chance, tmp_path / "home", provider.url())[0])
            curl.perform(name="a")
            curl.cleanup(name="a")
    assert second.provider.count() == 10
    assert_nothing_shows(known, provider, second)


@pytest.mark.parametrize("options", [
    {"USERPWD": f"{CANARY}:{CANARY}", "HTTPAUTH": -17}, {"USERPWD": f"{CANARY}:{CANARY}", "HTTPAUTH": 2},
    {"XOAUTH2_BEARER": CANARY, "HTTPAUTH": -17 | 64}, {"NETRC": 2, "NETRC_FILE": "netrc"},
    {"USERPWD": f"{CANARY}:{CANARY}", "UNRESTRICTED_AUTH": 1, "FOLLOWLOCATION": 1},
], ids=lambda options: "-".join(options))
@pytest.mark.parametrize("challenge", ['Basic realm="r"', 'Digest realm="r", nonce="n", qop="auth"', "Bearer", "Negotiate"])
def test_a_fallback_that_asks_for_a_password(challenge, options, known, provider, providers, tmp_path):
    second = Fallback("second", providers(), auth=None)
    second.provider.answer(Answer(401, {"WWW-Authenticate": challenge}))
    (tmp_path / "netrc").write_text(f"default login {CANARY} password {CANARY}\n")
    known.configure(chain(provider, second), open_seconds=60)
    known.command("trip", "--create", provider.key())
    with Remote(known) as curl:
        done = curl.call(URL=provider.url(), POSTFIELDS=chat("m"), **options)
    assert (done.code, done.status, second.provider.count()) == (0, 401, 1)
    assert Bytes(second.provider.seen()[0].raw).values("authorization") == []
    assert_nothing_shows(known, provider, second)


@pytest.mark.parametrize("unrestricted", [0, 1])
@pytest.mark.parametrize("how", ["refused", "fails"])
def test_a_fallback_that_redirects(how, unrestricted, known, provider, providers, second):
    """libcurl's own rule: what is said to one host is not said to the next; what the application says of its own
    credentials is not said of others."""
    known.configure(chain(provider, second), open_seconds=60)
    if how == "refused":
        known.command("trip", "--create", provider.key())
    else:
        provider.refuse()
    third = providers()
    second.provider.answer(Answer(307, {"Location": third.url("/v1/chat/completions")}, b""))
    with Remote(known) as curl:
        done = curl.call(URL=provider.url(), POSTFIELDS=chat("m"), FOLLOWLOCATION=1, UNRESTRICTED_AUTH=unrestricted,
                         USERPWD=f"{CANARY}:{CANARY}", HTTPHEADER=[f"Authorization: Bearer {CANARY}", f"Cookie: s={CANARY}"])
    assert (done.status, third.count()) == (200, 1)
    assert not shows(third.seen()[0].raw, SECOND_KEY) and not shows(third.seen()[0].raw, CANARY)
    assert_nothing_shows(known, provider, second)


def test_where_all_names_are_one_address(known, provider, second):
    """The fallback's name would lead there, and its key with it."""
    known.configure(chain(provider, second), open_seconds=60)
    known.command("trip", "--create", provider.key())
    with Remote(known) as curl:
        done = curl.call(URL=provider.url(), POSTFIELDS=chat("m"), RESOLVE=[f"+*:{second.provider.port}:127.0.0.1"])
    assert is_refused(done) and second.provider.count() == provider.count() == 0


def test_own_credentials_go_along_to_the_same_place(known, provider):
    """Another model of the same (scheme, host, port): the key is meant for it."""
    smaller = Fallback("smaller", provider, host="127.0.0.1", path="/v1", model="*:small", auth=None, headers=())
    known.configure(chain(provider, smaller), open_seconds=60)
    known.command("trip", "--create", provider.key("m"))
    with Remote(known) as curl:
        curl.call(URL=provider.url("/v1/chat/completions?key=own"), POSTFIELDS=chat("m"),
                  HTTPHEADER=["Authorization: Bearer own"])
    request = provider.seen()[0]
    assert (request.model, request.headers["authorization"], request.target) == \
        ("small", "Bearer own", "/v1/chat/completions?key=own")


def test_a_key_in_a_url_is_told_by_nobody(known, provider, second):
    """Not by explain, which is given it, and not by the log, whatever becomes of the call."""
    known.configure(chain(provider, second), open_seconds=60)
    url = provider.url(f"/v1/chat/completions?key={CANARY}").replace("//", f"//{CANARY}:{CANARY}@")
    known.command("trip", "--create", provider.key())
    with Remote(known) as curl:
        assert curl.call(URL=url, POSTFIELDS=chat("m")).status == 200
        known.command("trip", second.key())
        assert is_refused(curl.call("b", URL=url, POSTFIELDS=chat("m")))
    for words in (["explain", url, "--model", "m"], ["explain", "--json", url, "--model", "m"]):
        assert not shows(known.command(*words).stdout.encode(), CANARY)
    assert_nothing_shows(known, provider, second)


# --- certificates --------------------------------------------------------------------------------


class Asking(Provider):
    """Asks each client for a certificate, and notes what it shows."""

    def __init__(self, authority):
        self.shown = []
        tls = authority.server()
        tls.verify_mode = 1  # ssl.CERT_OPTIONAL
        tls.load_verify_locations(authority.ca)
        super().__init__(tls=tls)

    def _exchange(self, connection, stream, number):
        if number > len(self.shown):
            self.shown.append(connection.getpeercert(binary_form=True))
        return super()._exchange(connection, stream, number)


@pytest.fixture
def asking(authority):
    with Asking(authority) as primary, Asking(authority) as other:
        yield primary, other


def certificates(authority):
    pem, key = str(authority.certificate), str(authority.key)
    return {"files": {"SSLCERT": pem, "SSLKEY": key},
            "blobs": {"SSLCERT_BLOB": {"file": pem}, "SSLKEY_BLOB": {"file": key}},
            "files with types": {"SSLCERTTYPE": "PEM", "SSLKEYTYPE": "PEM", "SSLCERT": pem, "SSLKEY": key,
                                 "KEYPASSWD": CANARY}}


@pytest.mark.parametrize("form,library", [("files", OPENSSL), ("blobs", OPENSSL), ("files with types", OPENSSL),
                                          ("files", GNUTLS)])
@pytest.mark.parametrize("multi", [False, True], ids=["easy", "multi"])
def test_client_certificates_stay_at_home(multi, form, library, known, authority, asking):
    primary, other = asking
    fallback = Fallback("other", other)
    known.configure(chain(primary, fallback, name="localhost"), open_seconds=60)
    options = {"URL": primary.url(name="localhost"), "POSTFIELDS": chat("m"), "CAINFO": str(authority.ca),
               **certificates(authority)[form]}
    with Remote(known, library) as curl:
        def perform():
            return curl.perform(name="a", multi=multi)

        curl.made("a", **options)
        assert perform().status == 200 and len(primary.shown) == 1 and primary.shown[0]
        known.command("trip", primary.key(name="localhost"))
        done = perform()
        assert (done.code, done.status, done.url) == (0, 200, fallback.url()) and other.shown == [None]
        known.command("reset", primary.key(name="localhost"))
        curl.set("a", FRESH_CONNECT=1)
        assert perform().status == 200 and len(primary.shown) == 2 and primary.shown[1]
    assert_nothing_shows(known, primary, fallback)


def test_a_connection_that_showed_a_certificate_is_not_taken(known, authority, asking):
    """The program has been at the fallback by itself, with its certificate, and that connection is still there."""
    primary, other = asking
    fallback = Fallback("other", other)
    known.configure(chain(primary, fallback, name="localhost"), open_seconds=60)
    known.command("trip", "--create", primary.key(name="localhost"))
    with Remote(known) as curl:
        curl.made("a", URL=fallback.url(), POSTFIELDS=chat("m"), CAINFO=str(authority.ca), **certificates(authority)["files"])
        assert curl.perform(name="a").status == 200 and other.shown[0]
        curl.set("a", URL=primary.url(name="localhost"))
        assert curl.perform(name="a").url == fallback.url()
        curl.set("a", URL=fallback.url())
        assert curl.perform(name="a").status == 200
    by_connection = [r.connection for r in other.seen()]
    assert other.shown[by_connection[1] - 1] is None and other.shown[by_connection[2] - 1]
