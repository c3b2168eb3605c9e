/* Connections at random (requests in any pieces, short writes, pipelining, answers in any pieces,
 * any end), several at once over flows that were used before: what leaves, what is refused and what
 * is counted is what a plain reckoning from the whole texts says. See shim_fixture.h. */
#include "flow_model_grants.h"

static void connect_anew(struct connection *conn)
{
    static const char *const peers[] = {"10.0.0.1", "10.0.0.2"};
    struct shim_flow *flow = &flows[upto(CONNECTIONS)];

    for (int i = 0; i < CONNECTIONS; i++)
        if (connections[i].live && connections[i].flow == flow)
            return; /* another time */
    conn->sent.len = conn->heard.len = 0;
    conn->count = conn->next_answer = conn->answered = 0;
    conn->at = conn->looked = conn->taken = conn->free_to = 0;
    conn->lost = conn->refused = conn->send_failed = false;
    conn->live = true;
    conn->flow = flow;
    conn->peer = peers[upto(2)];
    conn->port = (uint16_t)(8000 + upto(2));
    shim_flow_init(flow, span_str(conn->peer), conn->port, &nothing_yet);
}

/* The text was looked at up to `looked`: which requests came to be known, and go? */
static void reckon_sent(struct connection *conn, size_t before, size_t looked)
{
    if (conn->lost || conn->refused)
        return;
    for (unsigned i = conn->answered; i < conn->count && !conn->refused; i++) {
        struct asked *asked = &conn->asked[i];
        if (asked->headed > looked)
            break;
        if (!asked->opened && i - conn->answered >= SHIM_FLOW_DEPTH) {
            conn->lost = true;
            return;
        }
        if (!asked->opened) {
            asked->opened = true;
            asked->opened_at = boot;
        }
        if (!asked->covered || asked->ended)
            continue;
        asked->host_admitted = true;
        if (asked->decided > looked || asked->model_admitted)
            continue;
        if (of_key(asked->model)->open) {
            of_key(asked->model)->refused++;
            conn->refused = asked->refused = true;
            conn->free_to = asked->begin > before ? asked->begin : before;
            return;
        }
        asked->model_admitted = true;
        asked->admitted_at = boot;
    }
}

static void send_some(struct connection *conn)
{
    if (conn->count < REQUESTS && (conn->count == 0 || one_in(3)))
        write_request(conn);
    size_t left = conn->sent.len - conn->at;
    if (left == 0)
        return;
    size_t offered = one_in(3) ? left : 1 + upto((unsigned)left), cut = upto((unsigned)offered + 1);
    shim_flow_send_begin(conn->flow);
    shim_flow_send(conn->flow, span_of(conn->sent.bytes + conn->at, cut));
    shim_flow_send(conn->flow, span_of(conn->sent.bytes + conn->at + cut, offered - cut));
    uint64_t allowed = shim_flow_send_end(conn->flow);
    if (conn->flow->state == SHIM_FLOW_REFUSED)
        shim_flow_obeyed(conn->flow);
    size_t end = conn->at + offered;
    reckon_sent(conn, conn->looked, end);
    if (end > conn->looked)
        conn->looked = end;
    uint64_t expected = offered;
    if (conn->refused && end > conn->free_to)
        expected = conn->free_to > conn->at ? conn->free_to - conn->at : 0;
    CHECK(allowed == expected);
    CHECK((conn->flow->state == SHIM_FLOW_REFUSED) == conn->refused);
    CHECK((conn->flow->state == SHIM_FLOW_LOST) == conn->lost);
    uint64_t gone = allowed > 0 && one_in(3) ? upto((unsigned)allowed + 1) : allowed;
    if (gone < allowed)
        shim_flow_unsent(conn->flow, allowed - gone);
    /* What was swallowed passes for sent, where all that was allowed left. */
    conn->at += gone < allowed ? gone : offered;
}

static struct asked *oldest(struct connection *conn)
{
    struct asked *asked = &conn->asked[conn->answered];

    return conn->answered < conn->count && asked->opened ? asked : NULL;
}

static void count_end(struct asked *asked, enum said said)
{
    if (asked->host_admitted && !(asked->received && !asked->proxied))
        count(of_key(asked->host), NEUTRAL, 0);
    if (asked->model_admitted)
        count(of_key(asked->model), said, asked->admitted_at);
    asked->ended = true;
}

/* The peer said something, up to `taken` of all that it says. */
static void reckon_heard(struct connection *conn, size_t taken)
{
    struct asked *asked;

    while ((asked = oldest(conn)) && !conn->lost && !asked->refused &&
           conn->next_answer > conn->answered && taken > asked->answer) {
        if (!asked->received && asked->host_admitted && !asked->proxied)
            count(of_key(asked->host), SUCCESS, boot);
        asked->received = true;
        if (asked->answer_whole == 0 || taken < asked->answer_whole)
            return;
        count_end(asked, of_status(asked->status));
        conn->answered++;
    }
}

static void hear_some(struct connection *conn)
{
    /* An answer to what has left, as far as anybody can know of it; early ones, too. */
    while (conn->next_answer < conn->count && conn->asked[conn->next_answer].opened &&
           !conn->asked[conn->next_answer].refused &&
           (conn->next_answer == 0 || !conn->asked[conn->next_answer - 1].until_close))
        write_answer(conn);
    size_t left = conn->heard.len - conn->taken;
    if (left == 0)
        return;
    size_t len = one_in(3) ? left : 1 + upto((unsigned)left);
    shim_flow_received(conn->flow, span_of(conn->heard.bytes + conn->taken, len));
    conn->taken += len;
    reckon_heard(conn, conn->taken);
    CHECK((conn->flow->state == SHIM_FLOW_LOST) == conn->lost);
    CHECK(shim_flow_waits(conn->flow) ==
          (!conn->lost && oldest(conn) != NULL && !oldest(conn)->refused));
}

/* Bytes that are no response, to whatever is waited for. */
static void hear_nonsense(struct connection *conn)
{
    struct asked *asked = oldest(conn);

    if (conn->next_answer > conn->answered || conn->taken < conn->heard.len)
        return; /* it has begun to answer well */
    shim_flow_received(conn->flow, SPAN_LIT("220 ready\r\n"));
    if (asked && asked->refused)
        return;
    if (asked && !conn->lost) {
        if (asked->host_admitted && !asked->proxied)
            count(of_key(asked->host), SUCCESS, boot);
        asked->received = true;
        count_end(asked, FAILURE);
    }
    conn->lost = true;
    CHECK(conn->flow->state == SHIM_FLOW_LOST);
}

static void check_answer(struct connection *conn)
{
    char answer[SHIM_RESPONSE_MAX];
    struct asked *asked = oldest(conn);
    bool due = conn->refused && !conn->lost && asked && asked->refused && conn->at >= conn->free_to;

    CHECK(shim_flow_answer_due(conn->flow) == due);
    if (due) {
        size_t len = shim_flow_answer(conn->flow, 0, answer, sizeof answer);
        CHECK(len > 20 && memcmp(answer, "HTTP/1.1 503", 12) == 0);
        CHECK(memmem(answer, len, asked->model, strlen(asked->model)));
    }
}

static void reckon_end(struct connection *conn, enum shim_flow_end end)
{
    struct asked *asked = oldest(conn);

    if (!asked || conn->lost || asked->refused || end == SHIM_FLOW_DROP)
        return;
    bool answers = conn->next_answer > conn->answered;
    bool headed = answers && conn->taken >= asked->answer_headed;
    if (headed && asked->answer_done && conn->taken >= asked->answer_done)
        count_end(asked, of_status(asked->status));
    else if (headed && asked->status != 200)
        count_end(asked, of_status(asked->status));
    else if (end == SHIM_FLOW_CLOSE && !conn->send_failed)
        count_end(asked, NEUTRAL);
    else if (headed && end == SHIM_FLOW_EOF && asked->until_close)
        count_end(asked, SUCCESS);
    else if (!asked->received && conn->answered > 0 && boot - asked->opened_at < CLOCK_NS_PER_S)
        count_end(asked, NEUTRAL);
    else
        count_end(asked, FAILURE);
}

static void end_some(struct connection *conn)
{
    enum shim_flow_end end = (enum shim_flow_end)upto(4);

    if (one_in(3))
        conn->flow->send_failed = conn->send_failed = true;
    reckon_end(conn, end);
    shim_flow_end(conn->flow, end);
    CHECK(conn->flow->state == SHIM_FLOW_LOST && !shim_flow_waits(conn->flow));
    for (unsigned i = 0; i < SHIM_FLOW_DEPTH; i++)
        CHECK(!shim_admitted(&conn->flow->exchanges[i].call));
    conn->live = false;
}

static void body_any_connections(void)
{
    uint64_t until = boot + 20 * CLOCK_NS_PER_S; /* nothing opens again */

    state = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
    for (int step = 0; step < STEPS; step++) {
        struct connection *conn = &connections[upto(CONNECTIONS)];
        if (!conn->live)
            connect_anew(conn);
        else if (one_in(14))
            end_some(conn);
        else if (one_in(100))
            hear_nonsense(conn);
        else if (one_in(2))
            send_some(conn);
        else
            hear_some(conn);
        if (conn->live)
            check_answer(conn);
        compare();
        if (one_in(40) && boot < until)
            advance(1.25);
    }
}

static void test_any_connections(void **unused)
{
    const char *only = getenv("FLOW_MODEL_SEED"), *rounds = getenv("FLOW_MODEL_ROUNDS");
    uint64_t first = only ? strtoull(only, NULL, 10) : 1;
    uint64_t last = first + (rounds ? strtoull(rounds, NULL, 10) : only ? 1 : ROUNDS);

    (void)unused;
    for (seed = first; seed < last; seed++)
        for (int probes = 0; probes < 2; probes++)
            in_child(probes ? body_any_probes : body_any_connections, "failure_threshold=5");
}

/* FLOW_MODEL_SEED=N does one of them alone. */
static int tell_seed(void **unused)
{
    (void)unused;
    print_message("up to seed %llu\n", (unsigned long long)seed);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_teardown(test_any_connections, tell_seed)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
