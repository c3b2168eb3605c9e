/* fallback_address: where a connect goes while its host's breaker refuses it; see shim_fixture.h.
 */
#include "shim_fixture.h"

#include "route/route.h"
#include "shim_flow.h"

#include <fcntl.h>

#define HOST "api.openai.com"

static struct shim_call call, there;

static enum shim_need open_host(struct shim_call *opened, struct span name, uint16_t port,
                                bool is_fallback)
{
    const struct shim_request request = {.scheme = SPAN_LIT("https"),
                                         .host = name,
                                         .port = port,
                                         .path = SPAN_LIT(""),
                                         .is_fallback = is_fallback};

    return shim_open(opened, &request);
}

static enum shim_verdict ask(void)
{
    CHECK(open_host(&call, SPAN_LIT(HOST), 443, false) == SHIM_READY);
    return shim_admit(&call);
}

static void fail_once(struct shim_call *failed)
{
    end_kind(failed, END_CONNECT, PHASE_CONNECTING, 0.001);
}

static void open_breaker(void)
{
    for (int i = 0; i < 5; i++) {
        CHECK(ask() == SHIM_ADMITTED);
        fail_once(&call);
    }
}

static bool leads_to(const struct shim_call *from, const char *name, uint16_t wanted)
{
    struct span host;
    uint16_t port;

    return shim_fallback_address(from, &host, &port) && span_eq(host, span_str(name)) &&
           port == wanted;
}

static bool leads_nowhere(const struct shim_call *from)
{
    struct span host;
    uint16_t port;

    return !shim_fallback_address(from, &host, &port);
}

static void body_only_what_is_refused_goes(void)
{
    CHECK(ask() == SHIM_ADMITTED && leads_nowhere(&call));
    shim_drop(&call);
    CHECK(leads_nowhere(&call));
    open_breaker();
    CHECK(ask() == SHIM_REFUSED && leads_to(&call, "gpu2", 8000));
    advance(31);
    CHECK(ask() == SHIM_ADMITTED && shim_is_probe(&call) && leads_nowhere(&call));
    CHECK(open_host(&there, SPAN_LIT(HOST), 443, false) == SHIM_READY);
    CHECK(shim_admit(&there) == SHIM_REFUSED && leads_to(&there, "gpu2", 8000));
    shim_received(&call);
    shim_drop(&call);
    CHECK(ask() == SHIM_ADMITTED && leads_nowhere(&call));
}

/* The fallback's breaker is its own, though no `match` speaks of it. */
static void body_it_counts_there(void)
{
    open_breaker();
    for (uint64_t i = 1; i <= 5; i++) {
        CHECK(ask() == SHIM_REFUSED);
        CHECK(open_host(&there, SPAN_LIT("gpu2"), 8000, false) == SHIM_UNCOVERED);
        CHECK(open_host(&there, SPAN_LIT("gpu2"), 8000, true) == SHIM_READY);
        CHECK(shim_admit(&there) == SHIM_ADMITTED);
        shim_rerouted(&call, &there);
        fail_once(&there);
        CHECK(totals_of(HOST).rerouted == i && totals_of("gpu2:8000").failure == i);
    }
    CHECK(totals_of(HOST).refused == 0 && totals_of(HOST).failure == 5);
    CHECK(open_host(&there, SPAN_LIT("gpu2"), 8000, true) == SHIM_READY);
    CHECK(shim_admit(&there) == SHIM_REFUSED);
    CHECK(leads_nowhere(&there)); /* its own address, by the same setting */
    CHECK(open_host(&there, SPAN_LIT("gpu2"), 8000, false) == SHIM_UNCOVERED);
}

static void body_where_it_is_443(void)
{
    open_breaker();
    CHECK(ask() == SHIM_REFUSED && leads_to(&call, "[::1]", 443));
}

static void body_nowhere(void)
{
    open_breaker();
    CHECK(ask() == SHIM_REFUSED && leads_nowhere(&call));
}

/* A model's refusal is no connect's. */
static void body_not_for_models(void)
{
    trip("m");
    CHECK(chat(&call, "m") == SHIM_REFUSED && leads_nowhere(&call));
}

static void body_pass_is_told_apart(void)
{
    CHECK(ask() == SHIM_ADMITTED && !shim_overruled(&call));
    shim_drop(&call);
    open_breaker();
    CHECK(ask() == SHIM_ADMITTED && shim_overruled(&call) && leads_to(&call, "gpu2", 8000));
    CHECK(open_host(&there, SPAN_LIT("gpu2"), 8000, true) == SHIM_READY);
    CHECK(shim_admit(&there) == SHIM_ADMITTED && !shim_overruled(&there));
    shim_rerouted(&call, &there);
    CHECK(!shim_admitted(&call) && totals_of(HOST).rerouted == 1);
    shim_drop(&there);
    advance(31);
    CHECK(ask() == SHIM_ADMITTED && shim_is_probe(&call) && !shim_overruled(&call));
    shim_drop(&call);
    /* A breaker that never refuses is none that does. */
    struct slot *slot = slot_of(HOST);
    atomic_store(&slot->word, breaker_force_closed(slot_word(slot)));
    CHECK(ask() == SHIM_ADMITTED && !shim_overruled(&call) && leads_nowhere(&call));
    shim_drop(&call);
}

static void body_one_line_of_many(void)
{
    static char text[16384];
    char path[128];

    snprintf(path, sizeof path, "%s/log", getenv("HOME"));
    setenv("BREAKER_LOG", path, 1);
    open_breaker();
    for (int i = 0; i < 3; i++) {
        CHECK(ask() == SHIM_REFUSED);
        CHECK(open_host(&there, SPAN_LIT("gpu2"), 8000, true) == SHIM_READY);
        CHECK(shim_admit(&there) == SHIM_ADMITTED);
        shim_rerouted(&call, &there);
        shim_drop(&there);
    }
    int fd = open(path, O_RDONLY);
    CHECK(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
    close(fd);
    unlink(path);
    const char *line = strstr(text, "\"event\":\"rerouted\",\"key\":\"" HOST
                                    "\",\"from\":\"open\",\"to\":\"gpu2:8000\","
                                    "\"cause\":\"open\",\"detail\":\"fallback_address\"");
    CHECK(line && !strstr(line + 1, "\"event\":\"rerouted\""));
    CHECK(!strstr(text, "\"event\":\"refused\""));
}

/* --- names to be resolved ------------------------------------------------------------------------
 */

static unsigned wanted(const char *host, uint16_t port)
{
    struct span names[4];
    unsigned count = shim_fallbacks_wanted(span_str(host), port, names, 4);

    CHECK(count <= 1 && (count == 0 || span_eq(names[0], SPAN_LIT("gpu2"))));
    return count;
}

static void body_none_is_wanted_while_all_is_well(void)
{
    CHECK(wanted(HOST, 443) == 0 && wanted(HOST, 0) == 0);
    CHECK(ask() == SHIM_ADMITTED);
    shim_received(&call);
    shim_drop(&call);
    CHECK(wanted(HOST, 443) == 0 && wanted(HOST, 0) == 0);
    CHECK(ask() == SHIM_ADMITTED);
    fail_once(&call); /* it may open before long */
    CHECK(wanted(HOST, 443) == 1 && wanted("API.openai.com.", 0) == 1);
    CHECK(wanted(HOST, 80) == 0 && wanted("openai.com", 0) == 0 && wanted("api.openai.co", 0) == 0);
    CHECK(wanted("a b", 0) == 0 && wanted("", 443) == 0);
    for (int i = 0; i < 4; i++) {
        CHECK(ask() == SHIM_ADMITTED);
        fail_once(&call);
    }
    CHECK(ask() == SHIM_REFUSED && wanted(HOST, 443) == 1 && wanted(HOST, 0) == 1);
}

/* Of a host with several ports, whose setting is a target's. */
static void body_at_any_port(void)
{
    char path[128];

    snprintf(path, sizeof path, "%s/ini", getenv("HOME"));
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    static const char ini[] =
        "[target gpu*:8000]\nfallback_address = gpu2:8001\n"
        "[target other:80]\nallow_fallbacks = false\nfallback_address = x:1\n";
    CHECK(fd >= 0 && write(fd, ini, sizeof ini - 1) == sizeof ini - 1);
    close(fd);
    setenv("BREAKER_CONFIG", path, 1);
    CHECK(wanted("gpu1", 0) == 0);
    CHECK(open_host(&call, SPAN_LIT("gpu1"), 8000, false) == SHIM_READY);
    CHECK(shim_admit(&call) == SHIM_ADMITTED);
    fail_once(&call);
    CHECK(wanted("gpu1", 0) == 1 && wanted("gpu1", 8000) == 1 && wanted("gpu1", 8001) == 0);
    CHECK(open_host(&call, SPAN_LIT("other"), 80, false) == SHIM_READY);
    CHECK(shim_admit(&call) == SHIM_ADMITTED);
    fail_once(&call);
    CHECK(wanted("other", 0) == 0 && wanted("other", 80) == 0);
    unlink(path);
}

/* One name is asked for once, however many ports of the host go there; and of a host whose key has
 * no room for a target's port, that target says nothing. */
static void body_at_several_ports(void)
{
    char path[128], host[ROUTE_HOST_MAX];

    snprintf(path, sizeof path, "%s/ini", getenv("HOME"));
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    static const char ini[] = "[target *:8000]\nfallback_address = gpu2:8001\n"
                              "[target gpu1:9000]\nfallback_address = gpu2:9001\n";
    CHECK(fd >= 0 && write(fd, ini, sizeof ini - 1) == sizeof ini - 1);
    close(fd);
    setenv("BREAKER_CONFIG", path, 1);
    memset(host, 'a', sizeof host);
    host[sizeof host - 4] = '\0';
    CHECK(wanted(host, 0) == 0 && access(getenv("BREAKER_TABLE"), F_OK) != 0);
    host[sizeof host - 6] = '\0'; /* ":8000" fits: the table is asked */
    CHECK(wanted(host, 0) == 0 && access(getenv("BREAKER_TABLE"), F_OK) == 0);
    for (uint16_t port = 8000; port <= 9000; port += 1000) {
        CHECK(open_host(&call, SPAN_LIT("gpu1"), port, false) == SHIM_READY);
        CHECK(shim_admit(&call) == SHIM_ADMITTED);
        fail_once(&call);
        CHECK(wanted("gpu1", port) == 1 && wanted("gpu1", 0) == 1);
    }
    unlink(path);
}

/* --- requests on the connection that led elsewhere -----------------------------------------------
 */

#define CHAT                                                                                       \
    "POST /v1/chat/completions HTTP/1.1\r\nHost: " HOST "\r\nContent-Length: 13\r\n\r\n"           \
    "{\"model\":\"m\"}"
#define PROXIED "GET http://other:80/v1/models HTTP/1.1\r\nHost: other:80\r\n\r\n"

static struct shim_flow flow;

static uint64_t offer(const char *bytes)
{
    shim_flow_send_begin(&flow);
    shim_flow_send(&flow, span_str(bytes));
    return shim_flow_send_end(&flow);
}

static void body_requests_are_the_fallbacks(void)
{
    char answer[SHIM_RESPONSE_MAX];

    for (int i = 0; i < 5; i++) {
        shim_flow_init(&flow, SPAN_LIT("gpu2"), 8000, NULL);
        shim_flow_divert(&flow);
        CHECK(offer(CHAT) == strlen(CHAT));
        shim_flow_received(&flow, SPAN_LIT("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"));
        CHECK(offer(PROXIED) == strlen(PROXIED));
        shim_flow_end(&flow, SHIM_FLOW_CLOSE);
    }
    CHECK(totals_of("gpu2:8000/m").failure == 5 && totals_of("gpu2:8000").success == 5);
    CHECK(!slot_of(HOST) && !slot_of(HOST "/m") && !slot_of("other:80"));
    shim_flow_init(&flow, SPAN_LIT("gpu2"), 8000, NULL);
    shim_flow_divert(&flow);
    CHECK(offer(CHAT) == 0 && shim_flow_answer_due(&flow));
    size_t len = shim_flow_answer(&flow, 0, answer, sizeof answer);
    CHECK(memmem(answer, len, "X-Breaker-Key: gpu2:8000/m\r\n", 28));
    CHECK(memmem(answer, len, "breaker of gpu2:8000/m is open", 30));
    shim_flow_end(&flow, SHIM_FLOW_CLOSE);
    /* The next connection of this memory is an ordinary one. */
    shim_flow_init(&flow, SPAN_LIT("10.0.0.1"), 443, NULL);
    CHECK(offer(CHAT) == strlen(CHAT));
    shim_flow_received(&flow, SPAN_LIT("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
    CHECK(totals_of(HOST "/m").success == 1);
}

#define ELSEWHERE "fallback_address=gpu2:8000"

IN_CHILD(only_what_is_refused_goes, ELSEWHERE)
IN_CHILD(it_counts_there, ELSEWHERE)
IN_CHILD(where_it_is_443, "fallback_address=[::1]:443")
static void test_nowhere(void **state)
{
    (void)state;
    in_child(body_nowhere, "");
    in_child(body_nowhere, ELSEWHERE "\nallow_fallbacks=false");
    in_child(body_nowhere, "fallback_address=" HOST ":443");
}
IN_CHILD(not_for_models, ELSEWHERE)
IN_CHILD(pass_is_told_apart, ELSEWHERE "\nwhen_exhausted=pass")
IN_CHILD(one_line_of_many, ELSEWHERE)
IN_CHILD(none_is_wanted_while_all_is_well, ELSEWHERE)
IN_CHILD(at_any_port, "open_seconds=30")
IN_CHILD(at_several_ports, "open_seconds=30")
IN_CHILD(requests_are_the_fallbacks, ELSEWHERE)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_what_is_refused_goes),
        cmocka_unit_test(test_it_counts_there),
        cmocka_unit_test(test_where_it_is_443),
        cmocka_unit_test(test_nowhere),
        cmocka_unit_test(test_not_for_models),
        cmocka_unit_test(test_pass_is_told_apart),
        cmocka_unit_test(test_one_line_of_many),
        cmocka_unit_test(test_none_is_wanted_while_all_is_well),
        cmocka_unit_test(test_at_any_port),
        cmocka_unit_test(test_at_several_ports),
        cmocka_unit_test(test_requests_are_the_fallbacks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
