/*
 * flow_model_grants.h - connections whose host is asked at their connect, and breakers that are
 * half-open: whatever becomes of them, no grant is left.
 */
#ifndef BREAKER_TESTS_FLOW_MODEL_GRANTS_H
#define BREAKER_TESTS_FLOW_MODEL_GRANTS_H

#include "flow_model_texts.h"

#define HEAD                                                                                       \
    "POST /v1/chat/completions HTTP/1.1\r\nHost: api.openai.com:443\r\nContent-Length: 13\r\n\r\n"
#define GOOD "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define BAD  "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"

static const char *const asking[] = {HEAD "{\"model\":\"m\"}", HEAD "{\"model\":\"n\"}"};
static const char *const telling[] = {GOOD, BAD, BAD, BAD, BAD, BAD, "220 x\r\n"};

struct probing {
    struct shim_flow *flow;
    struct shim_call connect;
    const char *asked, *told; /* what is left of them */
    bool live;
};

static bool down; /* the host refuses */

static inline void connect_probing(struct probing *conn)
{
    static const struct shim_request host = {.scheme = SPAN_LIT("https"),
                                             .host = SPAN_LIT("api.openai.com"),
                                             .port = 443,
                                             .path = SPAN_LIT("")};

    if (one_in(12))
        down = !down;
    CHECK(shim_open(&conn->connect, &host) == SHIM_READY);
    if (shim_admit(&conn->connect) == SHIM_REFUSED)
        return;
    if (down) {
        end_kind(&conn->connect, END_CONNECT, PHASE_CONNECTING, 0.001);
        return;
    }
    shim_flow_init(conn->flow, SPAN_LIT("api.openai.com"), 443, &conn->connect);
    conn->asked = asking[upto(2)];
    conn->told = "";
    conn->live = true;
}

static inline struct span piece_of(const char **text)
{
    size_t len = one_in(2) ? strlen(*text) : upto((unsigned)strlen(*text) + 1);
    struct span piece = span_of(*text, len);

    *text += len;
    return piece;
}

static inline void go_on_probing(struct probing *conn)
{
    struct shim_flow *flow = conn->flow;

    if (one_in(8)) {
        shim_flow_end(flow, (enum shim_flow_end)upto(4));
        shim_drop(&conn->connect);
        conn->live = false;
    } else if (one_in(2)) {
        struct span piece = piece_of(&conn->asked);
        shim_flow_send_begin(flow);
        shim_flow_send(flow, piece);
        uint64_t allowed = shim_flow_send_end(flow), unsent = upto((unsigned)allowed + 1);
        if (flow->state != SHIM_FLOW_REFUSED && one_in(4)) {
            shim_flow_unsent(flow, unsent);
            conn->asked -= unsent;
        }
        if (!*conn->asked && one_in(2))
            conn->asked = asking[upto(2)];
    } else {
        if (!*conn->told)
            conn->told = telling[upto(7)];
        shim_flow_received(flow, piece_of(&conn->told));
    }
}

/* When nothing is under way a half-open breaker lets the next one through: no grant is left. */
static inline void expect_no_grant(struct probing *conn)
{
    char answer[SHIM_RESPONSE_MAX];

    for (size_t i = 0; i < 2; i++) {
        shim_flow_init(conn->flow, SPAN_LIT("api.openai.com"), 443, &nothing_yet);
        shim_flow_send_begin(conn->flow);
        shim_flow_send(conn->flow, span_str(asking[i]));
        shim_flow_send_end(conn->flow);
        if (shim_flow_answer_due(conn->flow)) {
            size_t len = shim_flow_answer(conn->flow, 0, answer, sizeof answer);
            CHECK(memmem(answer, len, "State: open\r\n", strlen("State: open\r\n")));
        }
        shim_flow_end(conn->flow, SHIM_FLOW_DROP);
    }
}

static inline void body_any_probes(void)
{
    static struct probing probing[CONNECTIONS];

    state = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
    for (int i = 0; i < CONNECTIONS; i++)
        probing[i].flow = &flows[i];
    for (int step = 0; step < 5 * STEPS; step++) {
        struct probing *conn = &probing[upto(CONNECTIONS)];
        if (!conn->live)
            connect_probing(conn);
        else
            go_on_probing(conn);
        if (one_in(20))
            advance(upto(20));
        if (step % 50 != 0)
            continue;
        for (int i = 0; i < CONNECTIONS; i++) {
            if (probing[i].live)
                shim_flow_end(probing[i].flow, (enum shim_flow_end)upto(4));
            shim_drop(&probing[i].connect);
            probing[i].live = false;
        }
        expect_no_grant(&probing[0]);
    }
}

#endif
