#include "flow_exchange.h"

#include "call.h"
#include "http/url.h"

void flow_lose(struct shim_flow *flow)
{
    for (unsigned i = 0; i < SHIM_FLOW_DEPTH; i++) {
        if (flow->numbers[i] != 0)
            shim_drop(&flow->exchanges[i].call);
        flow->numbers[i] = 0;
    }
    flow->uploading = flow->refused = NULL;
    flow->state = SHIM_FLOW_LOST;
}

static struct shim_exchange *exchange_numbered(const struct shim_flow *flow, uint64_t number)
{
    for (unsigned i = 0; i < SHIM_FLOW_DEPTH; i++)
        if (flow->numbers[i] == number)
            return (struct shim_exchange *)&flow->exchanges[i];
    return NULL;
}

static uint64_t *number_of(struct shim_flow *flow, const struct shim_exchange *exchange)
{
    return &flow->numbers[exchange - flow->exchanges];
}

struct shim_exchange *flow_oldest(const struct shim_flow *flow)
{
    return exchange_numbered(flow, flow->responses + 1);
}

struct shim_exchange *flow_newest(const struct shim_flow *flow)
{
    return flow->requests > 0 ? exchange_numbered(flow, flow->requests) : NULL;
}

/* --- requests ------------------------------------------------------------------------------------
 */

/* A port of digits, 1..65535; 0: none. */
static uint16_t port_of(struct span text)
{
    unsigned port = 0;

    for (size_t i = 1; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9' || port > 6553)
            return 0;
        port = port * 10 + (unsigned)(text.ptr[i] - '0');
    }
    return port > 65535 ? 0 : (uint16_t)port;
}

/* Where the head says that the request goes. A Host without a port is that of the connection: what
 * counts is who answers, and scripts leave it out. A proxy's port says nothing of it. */
static void place_of(const struct shim_flow *flow, const struct http_head_facts *head,
                     struct shim_request *request)
{
    struct span host = span_of(head->host, head->host_len);
    struct span port = url_port_part(host);

    if (flow->diverted && !head->absolute) {
        request->host = flow->host;
        request->port = flow->port;
        return;
    }
    request->host = host.len > 0 && (!flow->named || head->absolute)
                        ? span_of(host.ptr, host.len - port.len)
                        : flow->host;
    request->port = port.len > 1 ? port_of(port) : head->absolute ? 80 : flow->port;
}

/* Is it the peer itself that is asked, in absolute form too? */
static bool is_for_peer(const struct shim_flow *flow, const struct http_head_facts *head)
{
    struct shim_request request;

    place_of(flow, head, &request);
    return request.port == flow->port && span_ieq(request.host, flow->host);
}

/* What the head says is judged. Out of line: clients say the same again and again. */
static __attribute__((noinline)) enum shim_need open_anew(struct shim_flow *flow,
                                                          struct shim_exchange *exchange)
{
    const struct http_head_facts *head = &flow->request.facts;
    struct shim_request request = {
        .method = span_of(head->method, head->method_len),
        .scheme = flow->secure ? SPAN_LIT("https") : SPAN_LIT("http"),
        .path = span_of(head->path, head->path_len),
        .is_fallback = flow->diverted && !head->absolute,
    };

    flow->opened = NULL;
    place_of(flow, head, &request);
    if (request.port == 0)
        return SHIM_UNCOVERED;
    flow->opened = exchange;
    return shim_open(&exchange->call, &request);
}

/* But for one that was by the same call. */
static inline enum shim_need open_call(struct shim_flow *flow, struct shim_exchange *exchange)
{
    enum shim_need need;

    return exchange == flow->opened && http_head_is_again(&flow->request) &&
                   shim_open_again(&exchange->call, &need)
               ? need
               : open_anew(flow, exchange);
}

/* Of a key in the query nothing is known. */
static void tell_credential(struct shim_call *shim_call, const struct http_head_facts *head)
{
    struct call *call = call_of(shim_call);

    call->credential = head->credential;
    call->credential_known = head->credential != 0 || !head->has_query;
}

void flow_open(struct shim_flow *flow)
{
    struct shim_exchange *exchange = exchange_numbered(flow, 0);
    const struct http_head_facts *head = &flow->request.facts;

    if (!exchange) {
        flow_lose(flow);
        return;
    }
    *number_of(flow, exchange) = ++flow->requests;
    exchange->head_only = span_eq(span_of(head->method, head->method_len), SPAN_LIT("HEAD"));
    exchange->proxied = head->absolute && !is_for_peer(flow, head);
    exchange->asked = exchange->received = exchange->times = false;
    exchange->first_byte_ns = 0;
    enum shim_need need = open_call(flow, exchange);
    if (need != SHIM_UNCOVERED) {
        tell_credential(&exchange->call, head);
        exchange->due_ns = call_of(&exchange->call)->admitted_ns;
    }
    exchange->decided = need != SHIM_NEEDS_BODY;
    exchange->judged = need != SHIM_UNCOVERED;
    flow->uploading = exchange->judged ? exchange : NULL;
    if (need == SHIM_READY)
        flow_ask(flow, exchange);
}

static void refuse(struct shim_flow *flow, struct shim_exchange *exchange)
{
    flow->state = SHIM_FLOW_REFUSED;
    flow->refused = exchange;
    flow->before_refused = flow->began;
    flow->answered = 0;
}

static void note_times(struct shim_flow *flow, struct shim_exchange *exchange)
{
    exchange->times = shim_times_first_byte(&exchange->call);
    flow->times |= exchange->times;
}

void flow_ask(struct shim_flow *flow, struct shim_exchange *exchange)
{
    struct shim_call *connect = flow->connect;

    exchange->asked = true;
    if ((connect && shim_admitted(connect) ? shim_admit_connected(&exchange->call, connect)
                                           : shim_admit(&exchange->call)) == SHIM_REFUSED)
        refuse(flow, exchange);
    else
        note_times(flow, exchange);
}

void flow_body(struct shim_flow *flow, struct span payload, bool last)
{
    struct shim_exchange *exchange = flow->uploading;

    if (!exchange || exchange->decided || (payload.len == 0 && !last) ||
        !shim_body(&exchange->call, payload, last))
        return;
    exchange->decided = true;
    if (!exchange->asked)
        flow_ask(flow, exchange);
    else if (shim_model_pending(&exchange->call) &&
             shim_admit_model(&exchange->call) == SHIM_REFUSED)
        refuse(flow, exchange);
    else
        note_times(flow, exchange);
}

/* --- responses -----------------------------------------------------------------------------------
 */

void flow_await_response(struct shim_flow *flow)
{
    http_head_init_response(&flow->response);
    flow->in_response = false;
    flow->watches = flow->listens = false;
}

void flow_first_byte(struct shim_flow *flow, struct shim_exchange *exchange)
{
    exchange->received = true;
    if (!exchange->proxied)
        shim_received(&exchange->call);
    if (flow->connect) { /* of the peer, a proxy too */
        shim_received(flow->connect);
        shim_drop(flow->connect); /* nothing more is to be heard of it */
    }
}

/* Never 0, which is for none. */
static uint64_t waited(const struct shim_exchange *exchange, uint64_t until)
{
    return until > exchange->due_ns ? until - exchange->due_ns : 1;
}

void flow_head_begins(struct shim_flow *flow, struct shim_exchange *exchange)
{
    if (exchange->times) {
        uint64_t now = process_clock->boot_ns();
        exchange->first_byte_ns = waited(exchange, now > flow->lain_ns ? now - flow->lain_ns : 0);
    }
    flow->lain_ns = 0;
}

/* Only of a good answer it matters. */
static bool is_listened_to(const struct shim_exchange *exchange, unsigned status)
{
    return shim_times_silence(&exchange->call) &&
           outcome_of_status(status, call_outcome_policy(call_of_const(&exchange->call))) ==
               BREAKER_SUCCESS;
}

void flow_head(struct shim_flow *flow, struct shim_exchange *exchange)
{
    const struct http_head_facts *head = &flow->response.facts;
    const struct call_head told = {head->status, (enum content_kind)head->content, head->encoded,
                                   exchange->first_byte_ns};

    flow->watches = exchange->judged && call_head(&exchange->call, &told);
    flow->listens = exchange->judged && is_listened_to(exchange, head->status);
}

/* A clock is asked only where it can matter. */
static uint32_t retry_ms_of(const struct http_head_facts *head)
{
    return http_head_retry_ms(head, head->retry_is_date ? process_clock->wall_ms() / 1000 : 0);
}

/* Who gave up before all of the request had left waited for nothing yet. */
static void tell_slowness(const struct shim_flow *flow, const struct shim_exchange *exchange,
                          struct call_end *end)
{
    uint64_t now = process_clock->boot_ns();

    if (exchange->times && end->phase == PHASE_WAITING && end->first_byte_ns == 0 &&
        !shim_flow_sends(flow))
        end->first_byte_ns = waited(exchange, now);
    if (flow->listens)
        end->silent_ns = now - flow->heard_ns;
}

void flow_settle(struct shim_flow *flow, struct shim_exchange *exchange, enum call_end_kind kind,
                 enum call_phase phase)
{
    const struct http_head_facts *head = &flow->response.facts;
    struct call_end end = {
        .kind = kind,
        .phase = phase,
        .status = flow->in_response || head->status == 101 ? head->status : 0,
        .byte_received = exchange->received && !exchange->proxied,
        .retry_after_ms = flow->in_response ? retry_ms_of(head) : 0,
        .first_byte_ns = exchange->first_byte_ns,
    };

    if (!exchange->judged)
        return;
    if (kind != END_COMPLETE) { /* hangs are told by it */
        end.age_ns = shim_age_ns(&exchange->call);
        if (exchange->times || flow->listens)
            tell_slowness(flow, exchange, &end);
    }
    shim_settle(&exchange->call, &end);
}

void flow_answered(struct shim_flow *flow, struct shim_exchange *exchange)
{
    flow_settle(flow, exchange, END_COMPLETE, PHASE_BODY);
    if (flow->uploading == exchange) /* answered before it was sent whole */
        flow->uploading = NULL;
    *number_of(flow, exchange) = 0;
    flow->responses++;
    flow_await_response(flow);
    if (flow->times && (exchange = flow_oldest(flow))) /* it stood behind this one */
        exchange->due_ns = process_clock->boot_ns();
}
