/* What of a request changes on its way to a fallback: body, model, headers; what a way lives
 * through; and that nothing of it costs a healthy call. See test_detour_chain.c. */
#include "detour_fixture.h"

#include "http/model_scan.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define PLACES                                                                                     \
    "[target openai]\nmatch = " HOST "\nfallback = one, same\nfallback_address = gpu2:8000\n"      \
    "[fallback one]\nbase = https://one.example/v1\nmodel = *:{model}-\"x\"\n"                     \
    "auth = Authorization: Bearer ${DETOUR_KEY}\nheader = X-Two: ${DETOUR_A}-$$-${DETOUR_B}\n"     \
    "[fallback same]\nbase = https://" HOST "/v2\nmodel = *:other\n"

/* A way whose candidates are still to come. */
static void refused_with(const char *body)
{
    configure(PLACES);
    open_host(URL);
    CHECK(ask("m") == SHIM_REFUSED && begin(NULL));
    if (body)
        shim_detour_body(&way, span_str(body));
}

static bool body_is(const char *expected)
{
    char text[1024];
    size_t len = shim_detour_body_len(&way);

    memset(text, '#', sizeof text);
    CHECK(len < sizeof text);
    if (len > 0)
        shim_detour_write_body(&way, text);
    return len == strlen(expected) && memcmp(text, expected, len) == 0 && text[len] == '#';
}

static void body_json(void)
{
    refused_with(" { \"a\":[{\"model\":\"no\"}], \"model\" : \"m\" , \"z\":1}\n");
    CHECK(next_is("fallback_address") && body_is(""));
    CHECK(next_is("one") && span_eq(way.model, SPAN_LIT("m-\"x\"")));
    CHECK(body_is(" { \"a\":[{\"model\":\"no\"}], \"model\" : \"m-\\\"x\\\"\" , \"z\":1}\n"));
    /* Once more, and for the next one. */
    CHECK(body_is(" { \"a\":[{\"model\":\"no\"}], \"model\" : \"m-\\\"x\\\"\" , \"z\":1}\n"));
    shim_detour_body(&way, SPAN_LIT("{\"model\":\"m\"}"));
    CHECK(body_is("{\"model\":\"m-\\\"x\\\"\"}"));
    clean_up();
}

static void body_none_or_no_json(void)
{
    static const char *const bodies[] = {"", "{}", "[\"model\"]", "{\"model\":1}", "model=m", "{"};

    refused_with(NULL);
    CHECK(next_is("fallback_address") && next_is("one") && way.model.ptr && body_is(""));
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        shim_detour_body(&way, span_str(bodies[i]));
        CHECK(body_is(""));
    }
    shim_detour_body(&way, SPAN_NONE);
    CHECK(body_is(""));
    clean_up();
}

/* The model of a form is known in another way. */
static void body_a_form(void)
{
    static const char form[] = "https://" HOST "/v1/audio/transcriptions";
    struct shim_request request = request_to(form, true);

    configure(PLACES);
    open_host(URL);
    CHECK(shim_open(&call, &request) == SHIM_NEEDS_BODY && shim_admit(&call) == SHIM_REFUSED);
    CHECK(begin_at(form, NULL) && shim_detour_wants_model(&way));
    char much[MODEL_MAX + 1] = {'m'};
    shim_detour_model(&way, SPAN_LIT("")); /* neither is one */
    shim_detour_model(&way, span_of(much, sizeof much));
    CHECK(shim_detour_wants_model(&way));
    shim_detour_model(&way, SPAN_LIT("w"));
    CHECK(!shim_detour_wants_model(&way));
    shim_detour_model(&way, SPAN_LIT("later")); /* it is known already */
    CHECK(next_is("fallback_address") && shim_detour_admit(&way) == SHIM_ADMITTED);
    shim_settle(&way.call, &good_end);
    CHECK(totals_of("gpu2:8000/w").success == 1);
    CHECK(next_is("one") && span_eq(way.model, SPAN_LIT("w-\"x\"")) && body_is(""));
    /* It names none. */
    CHECK(begin_at(form, NULL));
    shim_detour_model(&way, SPAN_NONE);
    CHECK(next_is("fallback_address") && shim_detour_admit(&way) == SHIM_ADMITTED);
    shim_settle(&way.call, &good_end);
    CHECK(totals_of("gpu2:8000/-").success == 1 && !shim_detour_next(&way));
    clean_up();
}

static void body_who_wants_the_model(void)
{
    struct shim_request request = request_to(URL, true);

    configure("[target openai]\nmatch = " HOST "\nfallback = plain, gone, same\n"
              "[fallback plain]\nbase = https://plain.example/v1\n"
              "[fallback same]\nbase = https://" HOST "/v2\nmodel = *:other\n"
              "[target plain]\nmatch = api.two.example\nfallback = plain\n");
    open_host(URL);
    CHECK(shim_open(&call, &request) == SHIM_NEEDS_BODY && shim_admit(&call) == SHIM_REFUSED);
    CHECK(begin(NULL) && shim_detour_wants_model(&way) && next_is("plain"));
    CHECK(shim_detour_wants_model(&way)); /* of those to come */
    CHECK(!shim_detour_next(&way) && !shim_detour_wants_model(&way));
    open_host("https://api.two.example/v1/chat/completions");
    CHECK(ask_at("https://api.two.example/v1/chat/completions", NULL) == SHIM_REFUSED);
    CHECK(begin_at("https://api.two.example/v1/chat/completions", NULL));
    CHECK(!shim_detour_wants_model(&way) && next_is("plain") && !way.model.ptr);
    CHECK(ask("m") == SHIM_REFUSED && begin(NULL) && !shim_detour_wants_model(&way));
    clean_up();
}

static void body_headers(void)
{
    const char *why;
    char long_value[9000];

    setenv("DETOUR_KEY", "canary", 1);
    refused_with("{\"model\":\"m\"}");
    setenv("DETOUR_A", "a", 1); /* after the configuration was read */
    setenv("DETOUR_B", "b", 1);
    CHECK(next_is("fallback_address") && !shim_detour_header(&way, 0, &why) && !why);
    CHECK(next_is("one"));
    CHECK(!strcmp(shim_detour_header(&way, 0, &why), "Authorization: Bearer canary") && !why);
    CHECK(!strcmp(shim_detour_header(&way, 1, &why), "X-Two: a-$-b") && !why);
    CHECK(!shim_detour_header(&way, 2, &why) && !why);
    const char *const bad[] = {NULL, "", "x\ny", "x\r"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (bad[i])
            setenv("DETOUR_B", bad[i], 1);
        else
            unsetenv("DETOUR_B");
        CHECK(!shim_detour_header(&way, 1, &why) && strstr(why, "is not set"));
        CHECK(shim_detour_header(&way, 0, &why) && !why);
    }
    memset(long_value, 'x', sizeof long_value - 1);
    long_value[sizeof long_value - 1] = '\0';
    setenv("DETOUR_B", long_value, 1);
    CHECK(!shim_detour_header(&way, 1, &why) && strstr(why, "too long"));
    long_value[8192 - 1 - (sizeof "X-Two: a-$-" - 1)] = '\0';
    setenv("DETOUR_B", long_value, 1);
    CHECK(shim_detour_header(&way, 1, &why) && strlen(shim_detour_header(&way, 1, &why)) == 8191);
    shim_detour_skip(&way, "it is a test");
    CHECK(next_is("same") && !shim_detour_header(&way, 0, &why) && !why);
    clean_up();
}

static void body_what_stays_behind(void)
{
    refused_with("{\"model\":\"m\"}");
    CHECK(next_is("fallback_address") && !way.foreign);
    CHECK(!shim_detour_withholds(&way, SPAN_LIT("Authorization: Bearer k")));
    CHECK(next_is("one") && way.foreign);
    CHECK(shim_detour_withholds(&way, SPAN_LIT("Authorization: Bearer k")));
    CHECK(shim_detour_withholds(&way, SPAN_LIT("x-api-key: k")));
    CHECK(!shim_detour_withholds(&way, SPAN_LIT("Content-Type: application/json")));
    /* The target's own host under another base; its breaker refuses all the same. */
    CHECK(next_is("same") && !way.foreign);
    CHECK(!shim_detour_withholds(&way, SPAN_LIT("Authorization: Bearer k")));
    CHECK(strcmp(way.url, "https://" HOST "/v2/chat/completions") == 0);
    CHECK(shim_detour_admit(&way) == SHIM_REFUSED && !shim_detour_next(&way));
    clean_up();
}

/* The chain is that of the configuration under which the call was opened; the fallback's breakers
 * are those of today. */
static void body_a_reload_on_the_way(void)
{
    configure(TARGET(""));
    open_model(URL, "m");
    CHECK(ask("m") == SHIM_REFUSED);
    write_ini("[target one]\nmatch = one.example\nfailure_threshold = 1\n");
    advance(2);
    CHECK(begin("m") && taken_by("one"));
    CHECK(strcmp(way.url, "https://one.example/v1/chat/completions") == 0);
    shim_settle(&way.call, &bad_end);
    CHECK(phase_of("one.example/x/m") == BREAKER_OPEN && next_is("three"));
    CHECK(shim_detour_admit(&way) == SHIM_ADMITTED);
    shim_detour_taken(&way);
    shim_detour_end(&way);
    CHECK(ask("m") == SHIM_REFUSED && !shim_detour_possible(&call));
    clean_up();
}

static void go_the_whole_way(void)
{
    CHECK(next_is("one") && shim_detour_admit(&way) == SHIM_REFUSED && taken_by("three"));
    shim_settle(&way.call, &good_end);
    shim_detour_end(&way);
}

static void end_the_way(void)
{
    shim_detour_end(&way);
}

static void body_a_fork_on_the_way(void)
{
    configure(TARGET(""));
    open_model(URL, "m");
    open_model("https://one.example/v1/chat/completions", "x/m");
    CHECK(ask("m") == SHIM_REFUSED && begin("m"));
    CHECK(child_ends_well(go_the_whole_way));
    CHECK(totals_of("127.0.0.1:3000/llama").success == 1 && totals_of(HOST "/m").rerouted == 1);
    advance(31); /* and a grant that was taken before the fork is the parent's alone */
    CHECK(next_is("one") && shim_detour_admit(&way) == SHIM_ADMITTED && shim_is_probe(&way.call));
    CHECK(child_ends_well(end_the_way));
    struct shim_request there = request_to("https://one.example/v1/chat/completions", false);
    CHECK(shim_open(&call, &there) == SHIM_NEEDS_BODY && shim_body(&call, body_of("x/m"), true));
    CHECK(shim_admit(&call) == SHIM_REFUSED);
    clean_up();
}

static void body_a_handle_is_used_again(void)
{
    enum shim_need need;

    configure(TARGET(""));
    open_model(URL, "m");
    for (int i = 0; i < 3; i++)
        reroute("m", "one", &good_end);
    for (int i = 0; i < 3; i++) {
        CHECK(shim_open_again(&call, &need) && need == SHIM_NEEDS_BODY);
        CHECK(shim_body(&call, body_of("m"), true) && shim_admit(&call) == SHIM_REFUSED);
        CHECK(begin("m") && taken_by("one"));
        shim_settle(&way.call, &good_end);
        shim_detour_end(&way);
    }
    advance(31);
    CHECK(ask("m") == SHIM_ADMITTED && shim_is_probe(&call));
    shim_settle(&call, &good_end);
    CHECK(ask("m") == SHIM_ADMITTED && !shim_is_probe(&call));
    CHECK(totals_of(HOST "/m").rerouted == 6 && totals_of("one.example/x/m").success == 6);
    clean_up();
}

/* What libcurl would not take either; and errno stays. */
static void body_no_way_at_all(void)
{
    configure(TARGET(""));
    open_model(URL, "m");
    CHECK(ask("m") == SHIM_REFUSED);
    static const char *const urls[] = {"", "://", "https://"};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++)
        CHECK(!begin_at(urls[i], NULL));
    CHECK(shim_exhausted(&call) == SHIM_REFUSED);
    errno = 77;
    CHECK(begin("m") && taken_by("one") && errno == 77);
    clean_up();
}

static void body_disabled(void)
{
    struct shim_request request = request_to(URL, true);

    configure(TARGET(""));
    setenv("BREAKER_DISABLED", "1", 1);
    CHECK(!shim_mask_deepbind());
    CHECK(shim_open(&call, &request) == SHIM_UNCOVERED && shim_admit(&call) == SHIM_ADMITTED);
    CHECK(!shim_detour_possible(&call) && !begin("m") && !shim_detour_on_failure(&call));
    clean_up();
}

/* While everything is closed a chain costs nothing: the table is read only. */
static void body_the_healthy_path_stores_nothing(void)
{
    static unsigned char before[sizeof(struct slot)];

    configure(TARGET("fallback_address = gpu2.internal:8443"));
    end_call(URL, "m", &good_end);
    struct slot *slot = slot_of(HOST "/m");
    CHECK(ask("m") == SHIM_ADMITTED);
    shim_settle(&call, &good_end);
    memcpy(before, slot, sizeof before);
    uint64_t h = slot_word(slot_of(HOST)), successes = totals_of(HOST "/m").success;
    for (int i = 0; i < 1000; i++) {
        CHECK(ask("m") == SHIM_ADMITTED);
        CHECK(shim_detour_on_failure(&call));
        CHECK(memcmp(before, slot, sizeof before) == 0); /* until it has an end to count */
        shim_received(&call);
        shim_settle(&call, &good_end);
        memcpy(before, slot, sizeof before);
    }
    CHECK(totals_of(HOST "/m").success == successes + 1000);
    CHECK(totals_of(HOST "/m").rerouted == 0 && slot_word(slot_of(HOST)) == h);
    CHECK(!slot_of("one.example") && !slot_of("gpu2.internal:8443"));
    clean_up();
}

/* From here on any system call but the end of the process kills it. */
static void allow_no_system_call(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL),
    };
    const struct sock_fprog program = {.len = sizeof rules / sizeof *rules, .filter = rules};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    printf("not under a sanitizer, whose own calls would end the child: the filter is left out\n");
    return;
#endif
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0);
}

static void body_the_healthy_path_asks_no_kernel(void)
{
    configure(TARGET("fallback_address = gpu2.internal:8443"));
    for (int i = 0; i < 1001; i++) {
        CHECK(ask("m") == SHIM_ADMITTED && shim_detour_on_failure(&call));
        shim_received(&call);
        shim_settle(&call, &good_end);
        if (i == 0) {
            clean_up();
            allow_no_system_call();
        }
    }
}

IN_CHILD(json, "")
IN_CHILD(none_or_no_json, "")
IN_CHILD(a_form, "")
IN_CHILD(who_wants_the_model, "")
IN_CHILD(headers, "")
IN_CHILD(what_stays_behind, "")
IN_CHILD(a_reload_on_the_way, "")
IN_CHILD(a_fork_on_the_way, "")
IN_CHILD(a_handle_is_used_again, "")
IN_CHILD(no_way_at_all, "")
IN_CHILD(disabled, "")
IN_CHILD(the_healthy_path_stores_nothing, "")
IN_CHILD(the_healthy_path_asks_no_kernel, "")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_none_or_no_json),
        cmocka_unit_test(test_a_form),
        cmocka_unit_test(test_who_wants_the_model),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_what_stays_behind),
        cmocka_unit_test(test_a_reload_on_the_way),
        cmocka_unit_test(test_a_fork_on_the_way),
        cmocka_unit_test(test_a_handle_is_used_again),
        cmocka_unit_test(test_no_way_at_all),
        cmocka_unit_test(test_disabled),
        cmocka_unit_test(test_the_healthy_path_stores_nothing),
        cmocka_unit_test(test_the_healthy_path_asks_no_kernel),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
