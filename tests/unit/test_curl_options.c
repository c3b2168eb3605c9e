/* Options that libcurl keeps in one field, set by the application while libcurl must not see them:
 * what it set last is what is put back. */
#include "curl_options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The field of a handle of the fake libcurl. */
static const char *socket_path;
static bool socket_is_abstract;

static CURLcode fake_setopt(CURL *easy, CURLoption option, ...)
{
    va_list list;

    (void)easy;
    va_start(list, option);
    if (option == CURLOPT_UNIX_SOCKET_PATH || option == CURLOPT_ABSTRACT_UNIX_SOCKET) {
        socket_path = va_arg(list, const char *);
        socket_is_abstract = option == CURLOPT_ABSTRACT_UNIX_SOCKET;
    }
    va_end(list);
    return CURLE_OK;
}

static const struct curl_real fake = {.easy_setopt = fake_setopt};

static void application_sets(struct curl_options *options, CURLoption option, const char *path)
{
    void *value = (void *)(uintptr_t)path;

    if (!curl_options_withheld(options, option))
        fake_setopt(NULL, option, value);
    assert_true(curl_options_note(options, option, value));
}

/* Before a transfer that goes elsewhere, or inside a callback of it. */
static void check_socket(CURLoption before, CURLoption inside)
{
    struct curl_options options = {0};

    socket_path = NULL;
    if (before)
        application_sets(&options, before, "/before");
    curl_options_neutralise(&options, &fake, NULL, SHADOW_UNIX_SOCKET_PATH);
    curl_options_neutralise(&options, &fake, NULL, SHADOW_ABSTRACT_UNIX_SOCKET);
    assert_null(socket_path);
    if (inside)
        application_sets(&options, inside, "/inside");
    assert_null(socket_path);
    curl_options_restore(&options, &fake, NULL);
    assert_non_null(socket_path);
    assert_string_equal(socket_path, inside ? "/inside" : "/before");
    assert_int_equal(socket_is_abstract,
                     (inside ? inside : before) == CURLOPT_ABSTRACT_UNIX_SOCKET);
    curl_options_clear(&options);
}

static void test_sockets_of_two_kinds(void **state)
{
    static const CURLoption kinds[] = {0, CURLOPT_UNIX_SOCKET_PATH, CURLOPT_ABSTRACT_UNIX_SOCKET};

    (void)state;
    for (int before = 0; before < 3; before++)
        for (int inside = before == 0; inside < 3; inside++)
            check_socket(kinds[before], kinds[inside]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sockets_of_two_kinds)};

    return cmocka_run_group_tests_name("curl_options", tests, NULL, NULL);
}
