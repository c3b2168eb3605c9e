/* URLs taken apart as libcurl does, key H, percent-decoding. */
#include "http/url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

static void assert_span(const char *text, const char *what, struct span got, const char *expected)
{
    if (!(expected ? got.ptr && span_eq(got, span_str(expected)) : !got.ptr))
        fail_msg("%s: %s is '%.*s', not '%s'", text, what, (int)got.len, got.ptr ? got.ptr : "",
                 expected ? expected : "(none)");
}

static void test_taken_apart(void **state)
{
    static const struct {
        const char *text, *scheme, *host;
        unsigned port;
        const char *path, *query;
    } cases[] = {
        {"https://api.openai.com/v1/chat/completions", "https", "api.openai.com", 443,
         "/v1/chat/completions", NULL},
        {"HTTPS://API.OpenAI.com", "HTTPS", "API.OpenAI.com", 443, "", NULL},
        {"http://h:8080/p?a=b&c=d?e#f?g", "http", "h", 8080, "/p", "a=b&c=d?e"},
        {"http://h/p#f", "http", "h", 80, "/p", NULL},
        {"http://h?q", "http", "h", 80, "", "q"},
        {"http://h/?", "http", "h", 80, "/", ""},
        {"http://h#f", "http", "h", 80, "", NULL},
        {"example.com/x", "http", "example.com", 80, "/x", NULL},
        {"example.com:81/x", "http", "example.com", 81, "/x", NULL},
        {"localhost:11434", "http", "localhost", 11434, "", NULL},
        {"https://u:p@h:444/x", "https", "h", 444, "/x", NULL},
        {"https://u:p@ss@h/x@y", "https", "h", 443, "/x@y", NULL},
        {"http://[::1]:8000/v1", "http", "[::1]", 8000, "/v1", NULL},
        {"https://[2001:db8::1]/v1", "https", "[2001:db8::1]", 443, "/v1", NULL},
        {"http://[fe80::1%25eth0]/", "http", "[fe80::1%25eth0]", 80, "/", NULL},
        {"http://h:/p", "http", "h", 80, "/p", NULL},
        {"http://h:00080/p", "http", "h", 80, "/p", NULL},
        {"http://h:65535/p", "http", "h", 65535, "/p", NULL},
        {"http:/h/p", "http", "h", 80, "/p", NULL},
        {"http:///h/p", "http", "h", 80, "/p", NULL},
        {"http://h/a b\\c", "http", "h", 80, "/a b\\c", NULL},
        {"wss://h/x", "wss", "h", 443, "/x", NULL},
        {"ws://h/x", "ws", "h", 80, "/x", NULL},
        {"ftp://h/x", "ftp", "h", 80, "/x", NULL},
        {"h/redirect?to=http://other/", "http", "h", 80, "/redirect", "to=http://other/"},
        {"http://h//double//x", "http", "h", 80, "//double//x", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct url url;
        const char *text = cases[i].text;
        if (!url_parse(span_str(text), &url))
            fail_msg("%s: refused", text);
        assert_span(text, "scheme", url.scheme, cases[i].scheme);
        assert_span(text, "host", url.host, cases[i].host);
        assert_span(text, "path", url.path, cases[i].path);
        assert_span(text, "query", url.query, cases[i].query);
        if (url.port != cases[i].port)
            fail_msg("%s: port %u", text, url.port);
    }
}

static void test_refused(void **state)
{
    static const char *const texts[] = {
        "",
        " ",
        "http://",
        "http:///",
        "file:///etc/passwd",
        "FILE://h/x",
        "/path/only",
        "?q",
        "#f",
        "http://h:0/",
        "http://h:65536/",
        "http://h:999999/",
        "http://h:80a/",
        "http://h:-1/",
        "http://:80/",
        "http://u:p@/",
        "http://[::1/",
        "http://[::1]x/",
        "http://[::1]80/",
        "http:////h/",
        "  http://h/",
        "\thttp://h/",
        "\nh/",
        "http://h /",
        "http://a b:80/",
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct url url = {.port = 7};
        if (url_parse(span_str(texts[i]), &url))
            fail_msg("%s: accepted", texts[i]);
        assert_int_equal(url.port, 7);
        assert_null(url.host.ptr);
    }
    struct url url;
    assert_false(url_parse(SPAN_NONE, &url));
}

static void assert_key(const char *host, unsigned port, const char *expected)
{
    char buf[64] = "";
    size_t len = url_host_key(span_str(host), (uint16_t)port, buf, sizeof buf);

    if (!span_eq(span_of(buf, len), span_str(expected)))
        fail_msg("%s %u: '%.*s', not '%s'", host, port, (int)len, buf, expected);
}

static void test_host_key(void **state)
{
    (void)state;
    assert_key("api.openai.com", 443, "api.openai.com");
    assert_key("API.OpenAI.com.", 443, "api.openai.com");
    assert_key("api.openai.com", 80, "api.openai.com:80");
    assert_key("Localhost", 11434, "localhost:11434");
    assert_key("127.0.0.1", 65535, "127.0.0.1:65535");
    assert_key("[2001:DB8::1]", 443, "[2001:db8::1]");
    assert_key("[::1]", 8000, "[::1]:8000");
    assert_key("[fe80::1%25eth0]", 8000, "[fe80::1]:8000");
    assert_key("[fe80::1%eth0]", 443, "[fe80::1]");
    assert_key("%31%32%37.0.0.1", 8000, "127.0.0.1:8000");
    assert_key("API%2eOpenAI%2Ecom%2e", 443, "api.openai.com");
    assert_key("b%C3%bccher.example", 443,
               "b\xc3\xbc"
               "cher.example");
    assert_key("b\xc3\xbc"
               "cher.example",
               443,
               "b\xc3\xbc"
               "cher.example");
}

static void test_host_key_refuses(void **state)
{
    static const char *const hosts[] = {"",      "a/b",   "a%2fb", "a%20b",   "a%00b", "u%40h",
                                        "100%",  "a%3ab", "a:b",   "%5B::1]", "[::1",  "[[::1]]",
                                        "[]",    "[%1]",  "a%3fb", "a\\b",    "a b",   "a\nb",
                                        "a\x7f", "a\tb",  "u@h",   "a..",     "a.%2e", ".."};
    char buf[64];

    (void)state;
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        assert_int_equal(url_host_key(span_str(hosts[i]), 443, buf, sizeof buf), 0);
    assert_int_equal(url_host_key(SPAN_LIT("a\0b"), 443, buf, sizeof buf), 0);
    assert_int_equal(url_host_key(SPAN_NONE, 443, buf, sizeof buf), 0);
    assert_int_equal(url_host_key(SPAN_LIT("host"), 80, buf, 7), 7);
    assert_int_equal(url_host_key(SPAN_LIT("host"), 80, buf, 6), 0);
    assert_int_equal(url_host_key(SPAN_LIT("host"), 443, buf, 4), 4);
    assert_int_equal(url_host_key(SPAN_LIT("host"), 443, buf, 3), 0);
    for (size_t size = 0; size < 5; size++) {
        assert_int_equal(url_host_key(SPAN_LIT("[::1]"), 443, buf, size), 0);
        assert_int_equal(url_host_key(SPAN_LIT("[::1%1]"), 443, buf, size), 0);
    }
    assert_int_equal(url_host_key(SPAN_LIT("[::1%1]"), 443, buf, 5), 5);
}

static void test_port_part(void **state)
{
    static const char *const cases[][2] = {
        {"h", ""},           {"h:80", ":80"},   {"h:", ":"}, {"[::1]", ""},
        {"[::1]:80", ":80"}, {"a:b:cc", ":cc"}, {"", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_true(span_eq(url_port_part(span_str(cases[i][0])), span_str(cases[i][1])));
    assert_int_equal(url_port_part(SPAN_NONE).len, 0);
}

static void assert_decoded(const char *text, struct span expected)
{
    char buf[64];
    size_t len = url_decode(span_str(text), buf, sizeof buf);

    if (!span_eq(span_of(buf, len), expected))
        fail_msg("%s: '%.*s'", text, (int)len, buf);
}

static void test_decode(void **state)
{
    char buf[8];

    (void)state;
    assert_decoded("plain", SPAN_LIT("plain"));
    assert_decoded("a%3Ab%2fc", SPAN_LIT("a:b/c"));
    assert_decoded("%00%ff", SPAN_LIT("\0\xff"));
    assert_decoded("a+b", SPAN_LIT("a+b"));
    assert_decoded("100%", SPAN_LIT("100%"));
    assert_decoded("%4", SPAN_LIT("%4"));
    assert_decoded("%zz%4g%41", SPAN_LIT("%zz%4gA"));
    assert_decoded("%%41", SPAN_LIT("%A"));
    assert_decoded("%2541", SPAN_LIT("%41"));
    assert_int_equal(url_decode(SPAN_LIT("12345678"), buf, sizeof buf), 8);
    assert_int_equal(url_decode(SPAN_LIT("123456789"), buf, sizeof buf), 0);
    assert_int_equal(url_decode(SPAN_LIT("1234567%38"), buf, sizeof buf), 8);
    assert_int_equal(url_decode(SPAN_NONE, buf, sizeof buf), 0);
}

static void test_userinfo(void **state)
{
    static const char *const texts[][2] = {
        {"https://a:b@h/p?x=c@d", "a:b"},
        {"https://a@b@h:1", "a@b"},
        {"a:b@h", "a:b"},
        {"http:/a@h", "a"},
        {"https://@h", ""},
        {"https://h/a@b", ""},
        {"h", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct span text = span_str(texts[i][0]);
        struct url url;
        assert_true(url_parse(text, &url));
        assert_true(span_eq(url_userinfo(text, &url), span_str(texts[i][1])));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_taken_apart), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_host_key),    cmocka_unit_test(test_host_key_refuses),
        cmocka_unit_test(test_decode),      cmocka_unit_test(test_port_part),
        cmocka_unit_test(test_userinfo),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
