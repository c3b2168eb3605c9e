/*
 * flow_model_texts.h - what connections say, requests and answers at random, and where in it the
 * things are that matter.
 */
#ifndef BREAKER_TESTS_FLOW_MODEL_TEXTS_H
#define BREAKER_TESTS_FLOW_MODEL_TEXTS_H

#include "flow_model.h"

struct text {
    char bytes[TEXT_MAX];
    size_t len;
};

static inline void add(struct text *text, const char *format, ...)
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
static inline void add_body(struct text *text, const char *model, bool chunked, size_t *decided)
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

static inline size_t body_length(const char *model, uint64_t from)
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

static inline void key_of_host(const struct connection *conn, const char *host, struct asked *asked)
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

static inline void write_request(struct connection *conn)
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

static inline void write_answer(struct connection *conn)
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

#endif
