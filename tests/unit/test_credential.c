/* Whose quota a request draws on, by its head or its query. */
#include "http/credential.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void assert_key(bool found, struct span key, const char *wanted)
{
    assert_int_equal(found, wanted != NULL);
    if (wanted)
        assert_true(span_eq(key, span_str(wanted)));
}

static void the_headers_of_the_providers(void **state)
{
    static const char *const lines[][2] = {
        {"Authorization: Bearer sk-1", "sk-1"},
        {"authorization:bearer  sk-1 ", "sk-1"},
        {"Authorization: Basic dTpw", "Basic dTpw"},
        {"Authorization: Bearer", "Bearer"},
        {"x-api-key: sk-ant-1", "sk-ant-1"},
        {"X-Goog-Api-Key:\tAIza1", "AIza1"},
        {"api-key: a:b", "a:b"},
        /* A signature is another one each time. */
        {"Authorization: AWS4-HMAC-SHA256 "
         "Credential=AKIA1/20261130/us-east-1/bedrock/aws4_request, "
         "SignedHeaders=host;x-amz-date, Signature=0a",
         "AKIA1"},
        {"authorization: aws4-ecdsa-p256-sha256 "
         "SignedHeaders=host,Credential=AKIA1/20261130/bedrock",
         "AKIA1"},
        {"Authorization: AWS4-HMAC-SHA256 Credential=AKIA1", "AKIA1"},
        {"Authorization: AWS4-HMAC-SHA256 Credential=/x", "AWS4-HMAC-SHA256 Credential=/x"},
        {"Authorization: AWS4-HMAC-SHA256 x", "AWS4-HMAC-SHA256 x"},
        {"Authorization: Bearer AWS4- Credential=a/b", "AWS4- Credential=a/b"},
        {"Authorization:", NULL},
        {"Authorization;", NULL},
        {"Authorization", NULL},
        {"x-api-key:  ", NULL},
        {"x-api-keys: k", NULL},
        {"Proxy-Authorization: Bearer k", NULL},
        {"Idempotency-Key: k", NULL},
        {"", NULL},
        {":", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct span key = SPAN_NONE;
        bool found = credential_in_header(span_str(lines[i][0]), &key) == CREDENTIAL_PROVIDERS;
        assert_key(found, key, lines[i][1]);
    }
}

static void the_headers_of_gateways(void **state)
{
    static const char *const lines[][2] = {
        {"Ocp-Apim-Subscription-Key: a", "a"},
        {"x-portkey-api-key:a", "a"},
        {"X-Auth-Token: Bearer a", "a"},
        {"cf-aig-authorization: Bearer a", "a"},
        {"Helicone-Auth: a", "a"},
        {"Cookie: s=a; t=b", "s=a; t=b"},
        {"Idempotency-Key: a", NULL},
        {"X-Idempotency-Key: a", NULL},
        {"Proxy-Authorization: Bearer a", NULL},
        {"X-Auth-Token:", NULL},
        {"X-Auth-Token", NULL},
        {"Connection: keep-alive", NULL},
        {"Content-Type: application/json", NULL},
        {"X-Stainless-Retry-Count: 0", NULL},
        {"X-\xfe\xff\xf7\x13: a", NULL},
        {"X-\xffy: a", NULL},
        {"", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct span key = SPAN_NONE;
        bool found = credential_in_header(span_str(lines[i][0]), &key) == CREDENTIAL_OTHER;
        assert_key(found, key, lines[i][1]);
    }
}

static void the_query(void **state)
{
    static const char *const queries[][2] = {
        {"key=AIza1", "AIza1"},   {"alt=sse&key=AIza1&x=y", "AIza1"},
        {"api-key=k&key=l", "k"}, {"key=", NULL},
        {"monkey=1", NULL},       {"", NULL},
        {"&&key=1&", "1"},        {"alt=key=1", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        struct span key = SPAN_NONE;
        bool found = credential_in_query(span_str(queries[i][0]), &key);
        assert_key(found, key, queries[i][1]);
    }
    struct span key;
    assert_false(credential_in_query(SPAN_NONE, &key));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_headers_of_the_providers),
        cmocka_unit_test(the_headers_of_gateways),
        cmocka_unit_test(the_query),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
