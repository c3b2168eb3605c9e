/* Connections at random (requests in any pieces, short writes, pipelining, answers in any pieces,
 * any end), several at once over flows that were used before: what leaves, what is refused and what
 * is counted is what a plain reckoning from the whole texts says. See shim_fixture.h. */
#include "shim_fixture.h"

#include "shim_flow.h"
#include "table/slot.h"

#define ROUNDS      150
#define STEPS       600
#define CONNECTIONS 3
#define REQUESTS    10
#define MODELS      4
#define THRESHOLD   5
#define TEXT_MAX    40000

static uint64_t seed, state;

static unsigned upto(unsigned bound) /* 0..bound-1 */
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (unsigned)((state >> 20) % bound);
}

static bool one_in(unsigned n)
{
    return upto(n) == 0;
}

/* --- what is to be counted -----------------------------------------------------------------------
 */

#define KEYS 64
struct reckoned {
    char key[96];
    unsigned success, failure, neutral, refused;
    unsigned streak;
    uint64_t streak_began;
    bool open;
};
static struct reckoned reckoned[KEYS];

static struct reckoned *of_key(const char *key)
{
    unsigned i = 0;

    for (; i < KEYS && reckoned[i].key[0]; i++)
        if (strcmp(reckoned[i].key, key) == 0)
            return &reckoned[i];
    CHECK(i < KEYS && strlen(key) < sizeof reckoned[i].key);
    strcpy(reckoned[i].key, key);
    return &reckoned[i];
}

enum said { SUCCESS, FAILURE, NEUTRAL };

static enum said of_status(unsigned status)
{
    return status == 500 ? FAILURE : status == 400 ? NEUTRAL : SUCCESS;
}

/* What began before a row of failures does not end it. */
static void count(struct reckoned *at, enum said said, uint64_t admitted)
{
    if (said == SUCCESS) {
        at->success++;
        if (admitted >= at->streak_began)
            at->streak = 0;
    } else if (said == FAILURE) {
        at->failure++;
        if (at->streak == 0)
            at->streak_began = boot;
        at->open |= ++at->streak == THRESHOLD;
    } else {
        at->neutral++;
    }
}

/* --- texts ---------------------------------------------------------------------------------------
 */

struct text {
    char bytes[TEXT_MAX];
    size_t len;
};

static void add(struct text *text, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int len = vsnprintf(text->bytes + text->len, sizeof text->bytes - text->len, format, args);
    va_end(args);
    CHECK(len >= 0 && text->len + (size_t)len < sizeof text->bytes);
    text->len += (size_t)len;
}

/* Where things are in its connection's texts: offsets behind the byte that they happen at. */
struct asked {
    size_t begin, headed, decided, end; /* of the request */
    bool covered, proxied, head_only;
    char host[64], model[96];                                /* keys */
    size_t answer, answer_headed, answer_done, answer_whole; /* 0: never */
    unsigned status;
    bool until_close;
    /* as the connection goes on */
    bool opened, host_admitted, model_admitted, refused, ended, received;
    uint64_t opened_at, admitted_at;
};

struct connection {
    struct shim_flow *flow;
    struct text sent, heard;
    struct asked asked[REQUESTS];
    unsigned count, next_answer;
    uint16_t port;
    const char *peer;
    size_t at, looked, taken;
    size_t free_to; /* of a refused one: so much of the text leaves */
    unsigned answered;
    bool live, lost, refused, send_failed;
};

static struct shim_flow flows[CONNECTIONS];
static struct connection connections[CONNECTIONS];
static struct shim_call nothing_yet;

/* A body with a model or without, whole or in chunks. *decided: behind the model in `text`, else
 * 0. */
static void add_body(struct text *text, const char *model, bool chunked, size_t *decided)
{
    static struct text body;
    size_t named = 0, at = 0;

    body.len = 0;
    add(&body, "{\"stream\":true,");
    for (unsigned i = upto(4); i > 0; i--)
        add(&body, "\"pad%u\":[{\"model\":\"no\\\"%.*s\"}],", i, (int)upto(60),
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
    if (model) {
        add(&body, "\"model\" :\"%s\"", model);
        named = body.len;
        add(&body, ",");
    }
    add(&body, "\"last\":1}");
    if (!chunked) {
        *decided = named ? text->len + named : 0;
        add(text, "%s", body.bytes);
        return;
    }
    while (at < body.len) {
        size_t piece = 1 + upto((unsigned)(body.len - at));
        add(text, one_in(2) ? "%zx\r\n" : "%zX;ext=1\r\n", piece);
        if (named > at && named <= at + piece)
            *decided = text->len + named - at;
        add(text, "%.*s\r\n", (int)piece, body.bytes + at);
        at += piece;
    }
    add(text, "0\r\n%s\r\n", one_in(3) ? "X-Trailer: 1\r\n" : "");
}

static size_t body_length(const char *model, uint64_t from)
{
    static struct text measured;
    uint64_t kept = state;
    size_t decided = 0;

    state = from;
    measured.len = 0;
    add_body(&measured, model, false, &decided);
    state = kept;
    return measured.len;
}

struct shape_of_head {
    const char *method, *path;
    bool covered, in_body;
};
static const struct shape_of_head shapes[] = {
    {"POST", "/v1/chat/completions", true, true},
    {"POST", "/v1/chat/completions", true, true},
    {"POST", "/v1/chat/completions?x=1", true, true},
    {"POST", "/v1/responses", true, true},
    {"POST", "/v1/other/completion", false, false},
    {"GET", "/v1/models", false, false},
    {"HEAD", "/v1/models", false, false},
};
static const char *const hosts[] = {"gpu1:8000", "gpu1:8000", "gpu1:8001",
                                    "gpu2",      "GPU1:8000", NULL};

static void key_of_host(const struct connection *conn, const char *host, struct asked *asked)
{
    char name[64];
    unsigned port = asked->proxied ? 80 : conn->port;

    snprintf(name, sizeof name, "%s", host ? host : conn->peer);
    char *colon = strchr(name, ':');
    if (colon) {
        port = (unsigned)atoi(colon + 1);
        *colon = '\0';
    }
    for (char *c = name; *c; c++)
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
    snprintf(asked->host, sizeof asked->host, "%.40s:%u", name, port);
}

static void write_request(struct connection *conn)
{
    static const char *const names[MODELS] = {"m", "n", "o", "model-p"};
    struct text *text = &conn->sent;
    struct asked *asked = &conn->asked[conn->count++];
    const struct shape_of_head *shape = &shapes[one_in(3) ? upto(7) : 0];
    const char *host = hosts[one_in(3) ? upto(6) : seed % 2 ? 0 : 5]; /* mostly the same head */
    bool posts = shape->method[0] == 'P', chunked = posts && one_in(3);
    const char *model = !chunked && one_in(8) ? NULL : names[upto(MODELS)];

    memset(asked, 0, sizeof *asked);
    asked->begin = text->len;
    asked->covered = shape->covered;
    asked->head_only = strcmp(shape->method, "HEAD") == 0;
    asked->proxied = host && one_in(10);
    key_of_host(conn, host, asked);
    strcat(strcat(strcpy(asked->model, asked->host), "/"), model ? model : "-");
    if (one_in(12))
        add(text, "\r\n");
    if (asked->proxied)
        add(text, "%s http://%s%s HTTP/1.1\r\n", shape->method, host, shape->path);
    else
        add(text, "%s %s HTTP/1.1\r\n", shape->method, shape->path);
    if (host)
        add(text, "Host: %s\r\n", asked->proxied ? "elsewhere" : host);
    if (one_in(12)) /* longer than what is kept of a head */
        for (unsigned i = 0; i < 20; i++)
            add(text, "X-Long-%02u: %.60s\r\n", i,
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    if (one_in(6))
        add(text, "X-%c: content-length: 7\r\n", 'a' + (char)upto(2));
    uint64_t from = state;
    if (chunked)
        add(text, "Transfer-Encoding: chunked\r\n");
    else if (posts)
        add(text, "Content-Length: %s%zu\r\n", from % 16 == 0 ? "00" : "",
            body_length(model, from));
    add(text, "%s\r\n", from % 5 == 0 ? "Accept: */*\r\n" : "");
    asked->headed = text->len;
    state = from;
    if (posts)
        add_body(text, model, chunked, &asked->decided);
    asked->end = text->len;
    if (!asked->decided)
        asked->decided = asked->end;
}

static void write_answer(struct connection *conn)
{
    static const unsigned statuses[] = {200, 200, 200, 500, 500, 500, 500, 400};
    struct text *text = &conn->heard;
    struct asked *asked = &conn->asked[conn->next_answer++];
    unsigned way = upto(8);

    asked->status = statuses[upto(8)];
    asked->answer = text->len;
    if (one_in(8))
        add(text, "HTTP/1.1 100 Continue\r\n\r\n");
    add(text, "HTTP/1.1 %u Some\r\nServer: x\r\n", asked->status);
    if (way < 3 || asked->head_only)
        add(text, "Content-Length: 12\r\n");
    else if (way < 7)
        add(text, "content-type: Text/event-stream;charset=utf-8\r\n"
                  "Transfer-Encoding: chunked\r\n");
    add(text, "\r\n");
    asked->answer_headed = text->len;
    asked->until_close = way == 7 && !asked->head_only;
    if (asked->head_only) {
        ;
    } else if (way < 3) {
        add(text, "Hello world.");
    } else if (way < 7) {
        for (unsigned i = 1 + upto(3); i > 0; i--)
            add(text, "%x\r\ndata: %.*s[DONE]\r\n\r\n\r\n", 16 + i, (int)i, "1234567");
        if (way < 6) {
            add(text, "e\r\ndata: [DONE]\n\n");
            asked->answer_done = text->len - 2;
            add(text, "\r\n");
        }
        add(text, "0\r\n\r\n");
    } else {
        add(text, "so far\n");
    }
    if (!asked->until_close)
        asked->answer_whole = text->len;
}

/* --- a connection --------------------------------------------------------------------------------
 */

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

static void compare(void)
{
    static struct table table;
    static const struct slot_totals none;
    static bool open;

    open = open || table_open(&table, getenv("BREAKER_TABLE"), true) == TABLE_OK;
    for (unsigned i = 0; i < KEYS && reckoned[i].key[0] && open; i++) {
        struct reckoned *at = &reckoned[i];
        struct slot *slot = table_find(&table, table_identity(&table, span_str(at->key)));
        struct slot_totals found = slot ? slot_totals(slot) : none;
        if (found.success == at->success && found.failure == at->failure &&
            found.neutral == at->neutral && found.refused == at->refused)
            continue;
        fprintf(stderr, "%s: %u %u %u %u reckoned, counted %u %u %u %u\n", at->key, at->success,
                at->failure, at->neutral, at->refused, (unsigned)found.success,
                (unsigned)found.failure, (unsigned)found.neutral, (unsigned)found.refused);
        CHECK(!"the same");
    }
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

/* --- grants --------------------------------------------------------------------------------------
 */

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

static void connect_probing(struct probing *conn)
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

static struct span piece_of(const char **text)
{
    size_t len = one_in(2) ? strlen(*text) : upto((unsigned)strlen(*text) + 1);
    struct span piece = span_of(*text, len);

    *text += len;
    return piece;
}

static void go_on_probing(struct probing *conn)
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
static void expect_no_grant(struct probing *conn)
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

static void body_any_probes(void)
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
