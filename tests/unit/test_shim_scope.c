/* scope = host: an LLM call has one breaker, H; see shim_fixture.h. Without it: test_shim.c. */
#include "shim_fixture.h"

#include "shim_flow.h"

#include <sys/stat.h>

#define HOST "api.openai.com"

static unsigned streak(void)
{
    return breaker_decode(slot_word(slot_of(HOST))).streak;
}

/* Opens and admits, ready at once: what its body will say matters to nobody. */
static enum shim_verdict ask(struct shim_call *call)
{
    CHECK(open_path(call, "/v1/chat/completions") == SHIM_READY);
    return shim_admit(call);
}

static enum shim_verdict ask_status(unsigned status)
{
    static struct shim_call call;
    enum shim_verdict verdict = ask(&call);

    if (verdict == SHIM_ADMITTED) {
        CHECK(!shim_model_pending(&call));
        CHECK(shim_body(&call, SPAN_LIT("{\"model\":\"m\"}"), true)); /* asked all the same */
        CHECK(shim_admit_model(&call) == SHIM_ADMITTED);
        shim_received(&call);
        end_status(&call, status);
    } else {
        shim_obeyed(&call);
    }
    return verdict;
}

static void open_host(void)
{
    for (int i = 0; i < 5; i++)
        CHECK(ask_status(500) == SHIM_ADMITTED);
    CHECK(ask_status(500) == SHIM_REFUSED);
}

/* Opened as a layer opens the connect's own call. */
static enum shim_verdict ask_connect(struct shim_call *call)
{
    CHECK(open_path(call, "") == SHIM_READY);
    return shim_admit(call);
}

static void body_statuses_open_the_host(void)
{
    static struct shim_call call;
    char text[SHIM_RESPONSE_MAX + 1];

    open_host();
    CHECK(ask(&call) == SHIM_REFUSED);
    text[shim_response(&call, text, SHIM_RESPONSE_MAX, false)] = '\0';
    CHECK(strcasestr(text, "X-Breaker-Key: " HOST "\r\n"));
    CHECK(strstr(text, "breaker of " HOST " is open"));
    /* A model in the path, and other traffic. */
    CHECK(open_path(&call, "/openai/deployments/d1/chat/completions") == SHIM_READY);
    CHECK(shim_admit(&call) == SHIM_REFUSED);
    CHECK(open_path(&call, "/v1/files") == SHIM_READY && shim_admit(&call) == SHIM_REFUSED);
    CHECK(ask_connect(&call) == SHIM_REFUSED);
    CHECK(!slot_of(HOST "/m") && !slot_of(HOST "/-") && !slot_of(HOST "/d1"));
    struct slot *host = slot_of(HOST);
    CHECK(slot_totals(host).failure == 5 && slot_totals(host).success == 0);
    CHECK(atomic_load(&host->last_failure) == (CAUSE_STATUS << 16 | 500));
}

static void body_one_streak_of_both(void)
{
    static struct shim_call call;

    CHECK(ask_status(503) == SHIM_ADMITTED);
    CHECK(ask(&call) == SHIM_ADMITTED);
    end_kind(&call, END_CONNECT, PHASE_CONNECTING, 0.001);
    CHECK(ask(&call) == SHIM_ADMITTED);
    shim_received(&call);
    end_kind(&call, END_BROKEN, PHASE_BODY, 0.001);
    CHECK(ask(&call) == SHIM_ADMITTED);
    end_kind(&call, END_TIMEOUT, PHASE_WAITING, 6);
    CHECK(streak() == 4);
    CHECK(ask(&call) == SHIM_ADMITTED);
    end_kind(&call, END_HANDSHAKE, PHASE_HANDSHAKE, 0.001);
    CHECK(ask(&call) == SHIM_REFUSED);
    CHECK(slot_totals(slot_of(HOST)).failure == 5);
}

static void body_what_ends_the_streak(void)
{
    static struct shim_call call;

    for (int i = 0; i < 4; i++)
        CHECK(ask_status(500) == SHIM_ADMITTED);
    CHECK(ask_status(404) == SHIM_ADMITTED);
    CHECK(ask_status(429) == SHIM_ADMITTED);
    CHECK(streak() == 4); /* a head came, and said nothing of the host */
    CHECK(ask(&call) == SHIM_ADMITTED);
    shim_received(&call);
    CHECK(shim_admitted(&call) && streak() == 4);
    end_kind(&call, END_ABORTED, PHASE_BODY, 0.001);
    CHECK(streak() == 4 && slot_totals(slot_of(HOST)).success == 0);
    CHECK(ask_status(200) == SHIM_ADMITTED);
    CHECK(streak() == 0 && slot_totals(slot_of(HOST)).success == 1);
}

/* What is no LLM call has no end that is judged: its first byte tells. */
static void body_other_traffic_succeeds_by_its_first_byte(void)
{
    static struct shim_call call;

    for (unsigned i = 0; i < 2; i++) {
        CHECK(ask_status(500) == SHIM_ADMITTED);
        CHECK(streak() == 1);
        CHECK((i                                             ? ask_connect(&call)
               : open_path(&call, "/v1/files") == SHIM_READY ? shim_admit(&call)
                                                             : SHIM_REFUSED) == SHIM_ADMITTED);
        shim_received(&call);
        CHECK(streak() == 0);
        end_status(&call, 500);
        CHECK(streak() == 0);
    }
}

static void body_one_probe(void)
{
    static struct shim_call probe, other;

    open_host();
    advance(31);
    CHECK(ask(&probe) == SHIM_ADMITTED && shim_is_probe(&probe));
    CHECK(ask(&other) == SHIM_REFUSED && ask_connect(&other) == SHIM_REFUSED);
    shim_received(&probe); /* the head of what may be a 500 */
    CHECK(ask(&other) == SHIM_REFUSED);
    end_status(&probe, 404); /* says nothing, hands the place on */
    CHECK(ask(&probe) == SHIM_ADMITTED);
    shim_received(&probe);
    end_status(&probe, 500);
    CHECK(ask(&other) == SHIM_REFUSED);
    advance(61); /* once more, with the back-off */
    CHECK(ask(&probe) == SHIM_ADMITTED && ask(&other) == SHIM_REFUSED);
    end_status(&probe, 200);
    CHECK(ask(&other) == SHIM_ADMITTED && !shim_is_probe(&other));
    end_status(&other, 200);
}

/* On sockets: the connect takes the grant, the first request has it, and its end tells. */
static void body_the_request_has_the_connects_grant(void)
{
    static struct shim_call connect, request, other;

    open_host();
    for (unsigned i = 0; i < 2; i++) {
        advance(i ? 61 : 31);
        CHECK(ask_connect(&connect) == SHIM_ADMITTED && shim_is_probe(&connect));
        CHECK(open_path(&request, "/v1/chat/completions") == SHIM_READY);
        CHECK(shim_admit_connected(&request, &connect) == SHIM_ADMITTED);
        CHECK(!shim_admitted(&connect) && shim_is_probe(&request));
        shim_received(&request);
        shim_received(&connect);
        CHECK(ask(&other) == SHIM_REFUSED && ask_connect(&other) == SHIM_REFUSED);
        end_status(&request, i ? 200 : 500);
        CHECK((ask(&other) == SHIM_ADMITTED) == (i == 1));
        shim_drop(&other);
    }
}

static struct shim_call connects;

/* The host's breaker is open, and a connect has its one grant. */
static void probe_by_connect(void)
{
    for (int i = 0; i < 5; i++) {
        CHECK(ask_connect(&connects) == SHIM_ADMITTED);
        end_kind(&connects, END_CONNECT, PHASE_CONNECTING, 0.001);
    }
    CHECK(ask_connect(&connects) == SHIM_REFUSED);
    advance(31);
    CHECK(ask_connect(&connects) == SHIM_ADMITTED && shim_is_probe(&connects));
}

static bool grant_is_free(void)
{
    static struct shim_call other;
    bool got = ask_connect(&other) == SHIM_ADMITTED && shim_is_probe(&other);

    shim_drop(&other);
    return got;
}

/* What it asks for is nobody's business: the grant goes back. */
static void body_a_request_that_is_off_leaves_the_grant(void)
{
    static struct shim_call request;
    char path[128];

    snprintf(path, sizeof path, "%s/ini", getenv("HOME"));
    FILE *file = fopen(path, "w");
    CHECK(file && fchmod(fileno(file), 0600) == 0);
    CHECK(fputs("[target " HOST "/d1]\nmode = off\n", file) >= 0 && fclose(file) == 0);
    setenv("BREAKER_CONFIG", path, 1);
    probe_by_connect();
    CHECK(!grant_is_free());
    CHECK(open_path(&request, "/openai/deployments/d1/chat/completions") == SHIM_READY);
    CHECK(shim_admit_connected(&request, &connects) == SHIM_ADMITTED);
    CHECK(!shim_admitted(&connects) && !shim_admitted(&request) && grant_is_free());
    end_status(&request, 500);
    CHECK(grant_is_free());
    unlink(path);
}

/* Of a caller that is told to wait: no more does it keep the grant. */
static void body_a_request_that_has_to_wait_leaves_the_grant(void)
{
    static struct shim_call request;
    const struct call_end limited = {.kind = END_COMPLETE,
                                     .phase = PHASE_BODY,
                                     .status = 429,
                                     .byte_received = true,
                                     .retry_after_ms = 120000};

    CHECK(open_path(&request, "/v1/chat/completions") == SHIM_READY);
    shim_credential(&request, SPAN_LIT("a"));
    CHECK(shim_admit(&request) == SHIM_ADMITTED);
    shim_settle(&request, &limited);
    probe_by_connect();
    for (int i = 0; i < 2; i++) {
        CHECK(!grant_is_free());
        CHECK(open_path(&request, "/v1/chat/completions") == SHIM_READY);
        shim_credential(&request, i ? SPAN_LIT("b") : SPAN_LIT("a"));
        CHECK((shim_admit_connected(&request, &connects) == SHIM_ADMITTED) == (i == 1));
        CHECK(shim_is_probe(&request) == (i == 1) && grant_is_free() == (i == 0));
        CHECK(i == 1 || ask_connect(&connects) == SHIM_ADMITTED);
    }
}

/* A connect that was let through healthy hears nothing of its own: one call, one outcome. */
static void body_a_connect_and_its_request_are_one(void)
{
    static struct shim_call connect, request;

    for (unsigned i = 0; i < 5; i++) {
        CHECK(ask_connect(&connect) == SHIM_ADMITTED);
        CHECK(open_path(&request, "/v1/chat/completions") == SHIM_READY);
        CHECK(shim_admit_connected(&request, &connect) == SHIM_ADMITTED);
        shim_received(&request);
        shim_received(&connect);
        end_status(&request, 500);
    }
    CHECK(ask_connect(&connect) == SHIM_REFUSED);
    CHECK(slot_totals(slot_of(HOST)).failure == 5 && slot_totals(slot_of(HOST)).success == 0);
}

static void body_a_suspend_is_neutral(void)
{
    static struct shim_call call;

    CHECK(ask_status(500) == SHIM_ADMITTED);
    for (int i = 0; i < 6; i++) {
        struct call_end end = {.kind = END_BROKEN,
                               .phase = PHASE_BODY,
                               .status = 200,
                               .byte_received = true,
                               .age_ns = 20 * CLOCK_NS_PER_S};
        CHECK(ask(&call) == SHIM_ADMITTED);
        advance(40);
        slept += UINT64_C(20) * CLOCK_NS_PER_S;
        shim_settle(&call, &end);
    }
    CHECK(streak() == 1);
}

/* The head decides: nothing of a refused request leaves, though its body comes in another write. */
static void body_a_head_alone_is_refused(void)
{
    static const char head[] = "POST /v1/chat/completions HTTP/1.1\r\nHost: gpu1:8000\r\n"
                               "Content-Length: 13\r\n\r\n",
                      body[] = "{\"model\":\"m\"}",
                      failed[] = "HTTP/1.1 500 No\r\n"
                                 "Content-Length: 0\r\n\r\n";
    static struct shim_flow flow;
    char answer[SHIM_RESPONSE_MAX];

    for (unsigned i = 0; i < 6; i++) {
        uint64_t whole = i < 5 ? sizeof head - 1 : 0;
        shim_flow_init(&flow, SPAN_LIT("10.0.0.1"), 8000, NULL);
        shim_flow_send_begin(&flow);
        shim_flow_send(&flow, span_of(head, sizeof head - 1));
        CHECK(shim_flow_send_end(&flow) == whole);
        if (i == 5)
            break;
        shim_flow_send_begin(&flow);
        shim_flow_send(&flow, span_of(body, sizeof body - 1));
        CHECK(shim_flow_send_end(&flow) == sizeof body - 1);
        shim_flow_received(&flow, span_of(failed, sizeof failed - 1));
        shim_flow_end(&flow, SHIM_FLOW_CLOSE);
    }
    CHECK(flow.state == SHIM_FLOW_REFUSED && shim_flow_answer_due(&flow));
    size_t len = shim_flow_answer(&flow, 0, answer, sizeof answer);
    CHECK(memmem(answer, len, "X-Breaker-Key: gpu1:8000\r\n", 26));
}

static void body_retry_after_lengthens_the_hosts_trip(void)
{
    static struct shim_call call;
    const struct call_end end = {.kind = END_COMPLETE,
                                 .phase = PHASE_BODY,
                                 .status = 503,
                                 .byte_received = true,
                                 .retry_after_ms = 100000};

    for (int i = 0; i < 5; i++) {
        CHECK(ask(&call) == SHIM_ADMITTED);
        shim_settle(&call, &end);
    }
    advance(90);
    CHECK(ask(&call) == SHIM_REFUSED);
    advance(11);
    CHECK(ask(&call) == SHIM_ADMITTED && shim_is_probe(&call));
    shim_drop(&call);
}

static void body_pass_counts_for_the_host(void)
{
    for (int i = 0; i < 8; i++)
        CHECK(ask_status(500) == SHIM_ADMITTED);
    CHECK(slot_totals(slot_of(HOST)).failure == 8 && !slot_of(HOST "/m"));
    CHECK(breaker_decode(slot_word(slot_of(HOST))).phase == BREAKER_OPEN);
}

IN_CHILD(statuses_open_the_host, "scope=host")
IN_CHILD(one_streak_of_both, "scope=host")
IN_CHILD(what_ends_the_streak, "scope=host")
IN_CHILD(other_traffic_succeeds_by_its_first_byte, "scope=host")
IN_CHILD(one_probe, "scope=host")
IN_CHILD(the_request_has_the_connects_grant, "scope=host")
IN_CHILD(a_request_that_is_off_leaves_the_grant, "")
IN_CHILD(a_request_that_has_to_wait_leaves_the_grant, "scope=host")
IN_CHILD(a_connect_and_its_request_are_one, "scope=host")
IN_CHILD(a_suspend_is_neutral, "scope=host")
IN_CHILD(a_head_alone_is_refused, "scope=host")
IN_CHILD(retry_after_lengthens_the_hosts_trip, "scope=host")
IN_CHILD(pass_counts_for_the_host, "scope=host\nwhen_exhausted=pass")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statuses_open_the_host),
        cmocka_unit_test(test_one_streak_of_both),
        cmocka_unit_test(test_what_ends_the_streak),
        cmocka_unit_test(test_other_traffic_succeeds_by_its_first_byte),
        cmocka_unit_test(test_one_probe),
        cmocka_unit_test(test_the_request_has_the_connects_grant),
        cmocka_unit_test(test_a_request_that_is_off_leaves_the_grant),
        cmocka_unit_test(test_a_request_that_has_to_wait_leaves_the_grant),
        cmocka_unit_test(test_a_connect_and_its_request_are_one),
        cmocka_unit_test(test_a_suspend_is_neutral),
        cmocka_unit_test(test_a_head_alone_is_refused),
        cmocka_unit_test(test_retry_after_lengthens_the_hosts_trip),
        cmocka_unit_test(test_pass_counts_for_the_host),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
