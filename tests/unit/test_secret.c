/* What of a request must not go along to another host, and what must. */
#include "http/secret.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#define EACH(list) (size_t i = 0; i < sizeof(list) / sizeof *(list); i++)

static struct span heap_copy(struct span bytes)
{
    return span_of(memcpy(malloc(bytes.len + 1), bytes.ptr, bytes.len), bytes.len);
}

static void assert_header(struct span line, bool secret)
{
    struct span copy = heap_copy(line);
    bool answer = secret_is_header(copy);

    free((void *)(uintptr_t)copy.ptr);
    if (answer != secret)
        fail_msg("%s: %.*s", secret ? "goes along" : "stays behind", (int)line.len, line.ptr);
}

/* The name with an innocent value, in each spelling that libcurl takes. */
static void assert_header_name(const char *name, bool secret)
{
    static const char *const forms[] = {"%s: x", "%s:x", "%s:", "%s;", " %s : x", "\t%s\t:\tx"};
    char line[300], upper[128];

    for
        EACH(forms)
        {
            snprintf(line, sizeof line, forms[i], name);
            assert_header(span_str(line), secret);
            for (size_t c = 0; c <= strlen(name); c++)
                upper[c] = (char)(name[c] >= 'a' && name[c] <= 'z' ? name[c] - 32 : name[c]);
            snprintf(line, sizeof line, forms[i], upper);
            assert_header(span_str(line), secret);
        }
}

static void headers_that_are_secret(void **state)
{
    static const char *const names[] = {
        "Authorization",
        "Proxy-Authorization",
        "x-api-key",
        "api-key",
        "x-goog-api-key",
        "x-goog-user-project",
        "Cookie",
        "Set-Cookie",
        "Cookie2",
        "OpenAI-Organization",
        "OpenAI-Project",
        "X-Amz-Date",
        "X-Amz-Security-Token",
        "x-amz-content-sha256",
        "Ocp-Apim-Subscription-Key",
        "CF-Access-Client-Id",
        "cf-access-client-secret",
        "X-Auth-Token",
        "PRIVATE-TOKEN",
        "accessToken",
        "X_API_KEY",
        "x.api.key",
        "apikey",
        "X-Subscriptionkey",
        "X-OAuth2-Thing",
        "X-Key1",
        "Helicone-Auth",
        "X-Portkey-Virtual-Key",
        "Signature",
        "Signature-Input",
        "X-Session-Id",
        "DPoP",
        "X-JWT-Assertion",
        "X-Passwd",
        "X-SID",
        "X-CSRF",
        "AWSAccessKeyId",
        "X-ClientCredential",
    };

    (void)state;
    for
        EACH(names)
    assert_header_name(names[i], true);
}

static void headers_that_go_along(void **state)
{
    static const char *const names[] = {
        "Idempotency-Key",
        "X-Idempotency-Key",
        "Sec-WebSocket-Key",
        "anthropic-version",
        "anthropic-beta",
        "Content-Type",
        "Content-Length",
        "Accept",
        "Expect",
        "User-Agent",
        "HTTP-Referer",
        "X-Title",
        "X-Stainless-Lang",
        "X-Stainless-Retry-Count",
        "X-Stainless-Package-Version",
        "traceparent",
        "X-Request-Id",
        "OpenAI-Beta",
        "x-goog-api-client",
        "x-max-tokens",
        "Author",
        "X-Keyboard",
        "X-Amzn-Trace-Id",
        "-",
    };

    (void)state;
    for
        EACH(names)
    assert_header_name(names[i], false);
    assert_header(SPAN_LIT(""), false);
    assert_header(SPAN_LIT(":"), false);
    assert_false(secret_is_header(SPAN_NONE));
}

static void values_that_are_secret(void **state)
{
    static const char *const secret[] = {
        "Bearer x",
        "bearer\tx",
        "BASIC x",
        "Digest username=\"u\"",
        "Negotiate x",
        "Token x",
        "ApiKey x",
        "sk-x",
        "sk_live",
        "gsk_x",
        "xai-x",
        "AIzaSy",
        "hf_x",
        "r8_x",
        "AKIAIOSFODNN7EXAMPLE",
        "ASIAX",
        "eyJhbGciOiJub",
        "\"sk-x\"",
        "AWS4-HMAC-SHA256 Credential=x",
    };
    static const char *const open[] = {
        "Bearers of news",
        "Basics",
        "bearer",
        "Tokenizer x",
        "a sk-x",
        "task-x",
        "SK-X",
        "aiza",
        "",
    };
    char line[128];

    (void)state;
    for
        EACH(secret)
        {
            snprintf(line, sizeof line, "X-Mine:%s", secret[i]);
            assert_header(span_str(line), true);
            snprintf(line, sizeof line, "X-Mine: \t%s", secret[i]);
            assert_header(span_str(line), true);
        }
    for
        EACH(open)
        {
            snprintf(line, sizeof line, "X-Mine: %s", open[i]);
            assert_header(span_str(line), false);
        }
}

static void lines_that_are_several(void **state)
{
    char long_name[400];

    (void)state;
    assert_header(SPAN_LIT("X-A: b\r\nX-C: d"), true);
    assert_header(SPAN_LIT("X-A: b\n"), true);
    assert_header(SPAN_LIT("X-A\r: b"), true);
    assert_header(SPAN_LIT("X-A: b\0c"), true);
    memset(long_name, 'n', sizeof long_name);
    long_name[256] = ':';
    assert_header(span_of(long_name, sizeof long_name), false);
    long_name[256] = 'n';
    long_name[257] = ':';
    assert_header(span_of(long_name, sizeof long_name), true);
}

static void parameter_names(void **state)
{
    static const char *const secret[] = {
        "key",
        "KEY",
        "api-key",
        "api_key",
        "apikey",
        "apiKey",
        "access_token",
        "token",
        "sig",
        "signature",
        "subscription-key",
        "X-Amz-Signature",
        "X-Amz-Date",
        "X-Amz-Expires",
        "X-Goog-Signature",
        "X-Goog-Credential",
        "code",
        "AWSAccessKeyId",
        "k%65y",
        "%6bey",
        "api%5Fkey",
        "api+key",
        "+key+",
        "%20key",
        "auth%5Bx%5D",
        "x%3Bkey",
        "a;key",
        "%63ode",
        "openai%2Dproject",
    };
    static const char *const open[] = {
        "api-version", "alt",   "beta", "sv",  "se",         "sr",      "sp", "stream",
        "max_tokens",  "codec", "$alt", "zip", "k%2565y",    "keyword", "",   "%",
        "%6",          "+",     "q",    "ke%", "X-Amzn-Foo", "keyed",
    };
    char long_name[300];

    (void)state;
    for
        EACH(secret)
    if (!secret_is_parameter(span_str(secret[i])))
        fail_msg("goes along: %s", secret[i]);
    for
        EACH(open)
    if (secret_is_parameter(span_str(open[i])))
        fail_msg("stays behind: %s", open[i]);
    memset(long_name, 'n', sizeof long_name);
    assert_false(secret_is_parameter(span_of(long_name, 256)));
    assert_true(secret_is_parameter(span_of(long_name, 257)));
    assert_false(secret_is_parameter(SPAN_NONE));
}

static void assert_stripped(const char *query, const char *expected)
{
    struct span copy = heap_copy(span_str(query));
    char *buf = malloc(copy.len + 1); /* at least one, for malloc */
    size_t len;

    buf[copy.len] = '#';
    len = secret_strip_query(copy, buf);
    if (buf[copy.len] != '#' || !span_eq(span_of(buf, len), span_str(expected)))
        fail_msg("'%s' became '%.*s'", query, (int)len, buf);
    free(buf);
    free((void *)(uintptr_t)copy.ptr);
}

static void queries(void **state)
{
    (void)state;
    assert_stripped("", "");
    assert_stripped("api-version=2024-06-01", "api-version=2024-06-01");
    assert_stripped("key=CANARY", "");
    assert_stripped("key", "");
    assert_stripped("alt=sse&key=CANARY", "alt=sse");
    assert_stripped("key=CANARY&alt=sse", "alt=sse");
    assert_stripped("a=1&key=CANARY&b=2", "a=1&b=2");
    assert_stripped("a=1&&b=2&", "a=1&&b=2&");
    assert_stripped("&a", "&a");
    assert_stripped("a=%20+x&b==&c", "a=%20+x&b==&c");
    assert_stripped("%6Bey=CANARY&K%45Y=CANARY&a", "a");
    assert_stripped("X-Amz-Algorithm=x&X-Amz-Credential=CANARY&a=X-Amz-Date", "a=X-Amz-Date");
    assert_stripped("a=1;key=CANARY&b", "b");
    assert_stripped("x;amz;date=1&b", "b");
    assert_stripped("a=1;b=2", "a=1;b=2");
    assert_stripped("mine=sk-CANARY&b", "b");
    assert_stripped("mine=Bearer+CANARY&mine=%42earer%20CANARY&b", "b");
    assert_stripped("sv=1&sig=CANARY&se=2", "sv=1&se=2");
    assert_int_equal(secret_strip_query(SPAN_NONE, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_that_are_secret), cmocka_unit_test(headers_that_go_along),
        cmocka_unit_test(values_that_are_secret),  cmocka_unit_test(lines_that_are_several),
        cmocka_unit_test(parameter_names),         cmocka_unit_test(queries),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
