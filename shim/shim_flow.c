#include "shim_flow.h"

#include "flow_exchange.h"
#include "process.h"

void shim_flow_init(struct shim_flow *flow, struct span host, uint16_t port,
                    struct shim_call *connect)
{
    flow->state = SHIM_FLOW_FOLLOWED;
    flow->in_request = flow->in_response = flow->send_failed = false;
    flow->diverted = flow->secure = flow->named = flow->times = false;
    flow->lain_ns = 0;
    flow->port = port;
    flow->host = host;
    flow->connect = connect;
    flow->uploading = flow->refused = flow->opened = NULL;
    flow->requests = flow->responses = 0;
    flow->ahead = flow->at = flow->began = flow->before_refused = 0;
    flow->answered = 0;
    for (unsigned i = 0; i < SHIM_FLOW_DEPTH; i++)
        flow->numbers[i] = 0;
    http_head_next_request(&flow->request); /* of a client that connects anew for each */
    flow_await_response(flow);
}

void shim_flow_divert(struct shim_flow *flow)
{
    flow->diverted = true;
}

void shim_flow_secure(struct shim_flow *flow, bool named)
{
    flow->secure = true;
    flow->named = named;
}

/* --- what the program sends ---------------------------------------------------------------------
 */

static void begin_request(struct shim_flow *flow)
{
    flow_open(flow);
    if (flow->state == SHIM_FLOW_LOST)
        return;
    http_body_init_request(&flow->request_body, &flow->request.facts);
    flow->in_request = true;
}

static void end_request(struct shim_flow *flow)
{
    flow_body(flow, SPAN_LIT(""), true);
    flow->uploading = NULL;
    flow->in_request = false;
    http_head_next_request(&flow->request);
    if (flow->state == SHIM_FLOW_FOLLOWED)
        flow->began = flow->at;
}

/* Returns how many bytes it took. */
static size_t send_some(struct shim_flow *flow, struct span bytes)
{
    struct span payload = SPAN_NONE;
    size_t taken;

    if (!flow->in_request) {
        taken = http_head_feed(&flow->request, bytes);
        flow->at += taken;
        if (flow->request.state == HTTP_HEAD_ALIEN)
            flow_lose(flow);
        else if (flow->request.state == HTTP_HEAD_DONE)
            begin_request(flow);
    } else {
        taken = http_body_feed(&flow->request_body, bytes, &payload);
        flow->at += taken;
        if (flow->request_body.state == HTTP_BODY_ALIEN)
            flow_lose(flow);
        else
            flow_body(flow, payload, false);
    }
    if (flow->state == SHIM_FLOW_FOLLOWED && flow->in_request &&
        flow->request_body.state == HTTP_BODY_DONE)
        end_request(flow);
    return taken;
}

void shim_flow_send_begin(struct shim_flow *flow)
{
    flow->at = 0;
    flow->began = flow->ahead; /* what may leave already may leave in any case */
}

void shim_flow_send(struct shim_flow *flow, struct span bytes)
{
    if (flow->at < flow->ahead) {
        uint64_t again = flow->ahead - flow->at;
        if (again > bytes.len)
            again = bytes.len;
        flow->at += again;
        bytes = span_skip(bytes, (size_t)again);
    }
    while (bytes.len > 0 && flow->state == SHIM_FLOW_FOLLOWED)
        bytes = span_skip(bytes, send_some(flow, bytes));
    flow->at += bytes.len; /* not looked at any more */
}

/* Reckoned as if all of it will leave: the usual case needs no second look. */
uint64_t shim_flow_send_end(struct shim_flow *flow)
{
    uint64_t allowed = flow->at;

    /* The model is still to come: H has its say now, before the first bytes leave. */
    if (flow->state == SHIM_FLOW_FOLLOWED && flow->uploading && !flow->uploading->asked)
        flow_ask(flow, flow->uploading);
    flow->ahead -= flow->ahead < flow->at ? flow->ahead : flow->at;
    if (flow->state != SHIM_FLOW_REFUSED)
        return allowed;
    if (allowed > flow->before_refused)
        allowed = flow->before_refused;
    flow->before_refused -= allowed;
    return allowed;
}

void shim_flow_obeyed(struct shim_flow *flow)
{
    shim_obeyed(&flow->refused->call);
}

void shim_flow_unsent(struct shim_flow *flow, uint64_t count)
{
    if (flow->state == SHIM_FLOW_REFUSED)
        flow->before_refused += count;
    else
        flow->ahead += count;
}

void shim_flow_sent(struct shim_flow *flow)
{
    struct shim_exchange *exchange = flow_newest(flow);

    if (exchange && exchange->times)
        exchange->due_ns = process_clock->boot_ns();
}

uint64_t shim_flow_seen(const struct shim_flow *flow)
{
    return flow->ahead;
}

void shim_flow_send_seen(struct shim_flow *flow, uint64_t count)
{
    flow->at += count;
}

/* --- what the peer sends ------------------------------------------------------------------------
 */

static void take_head(struct shim_flow *flow, struct shim_exchange *exchange)
{
    unsigned status = flow->response.facts.status;

    if (status == 101) {
        flow_settle(flow, exchange, END_COMPLETE, PHASE_BODY);
        flow_lose(flow);
    } else if (status < 200) {
        exchange->first_byte_ns = 0;
        flow_await_response(flow);
    } else {
        http_body_init_response(&flow->response_body, &flow->response.facts, exchange->head_only);
        flow->in_response = true;
        flow_head(flow, exchange);
    }
}

/* An error that the body tells of counts at once: a program that has heard it may leave the rest
 * unread, and the connection to its garbage collector. */
static void watch(struct shim_flow *flow, struct shim_exchange *exchange, struct span payload)
{
    flow->watches = shim_watch(&exchange->call, payload);
    if (!flow->watches && shim_told_error(&exchange->call))
        flow_settle(flow, exchange, END_COMPLETE, PHASE_BODY);
}

static size_t receive_some(struct shim_flow *flow, struct shim_exchange *exchange,
                           struct span bytes)
{
    struct span payload = SPAN_LIT("");
    size_t taken;

    if (!flow->in_response) {
        taken = http_head_feed(&flow->response, bytes);
        if (flow->response.state == HTTP_HEAD_ALIEN) {
            /* What does not even begin like HTTP was garbled by the peer; else it is our doubt. */
            if (flow->response.facts.status == 0)
                flow_settle(flow, exchange, END_BROKEN, PHASE_WAITING);
            flow_lose(flow);
        } else if (flow->response.state == HTTP_HEAD_DONE) {
            take_head(flow, exchange);
        }
    } else {
        taken = http_body_feed(&flow->response_body, bytes, &payload);
        if (flow->watches && payload.len > 0)
            watch(flow, exchange, payload);
        if (flow->response_body.state == HTTP_BODY_ALIEN) {
            flow_settle(flow, exchange, END_BROKEN, PHASE_BODY);
            flow_lose(flow);
        }
    }
    if (flow->state != SHIM_FLOW_LOST && flow->in_response &&
        flow->response_body.state == HTTP_BODY_DONE)
        flow_answered(flow, exchange);
    return taken;
}

static bool is_head_to_come(const struct shim_flow *flow)
{
    return !flow->in_response && flow->response.total == 0;
}

void shim_flow_received(struct shim_flow *flow, struct span bytes)
{
    while (bytes.len > 0 && flow->state != SHIM_FLOW_LOST) {
        struct shim_exchange *exchange = flow_oldest(flow);
        if (exchange && exchange == flow->refused)
            return; /* the peer speaks to a request that it did not get whole */
        if (!exchange) {
            flow_lose(flow); /* it speaks unasked */
            return;
        }
        if (!exchange->received)
            flow_first_byte(flow, exchange);
        if (is_head_to_come(flow))
            flow_head_begins(flow, exchange);
        bytes = span_skip(bytes, receive_some(flow, exchange, bytes));
    }
    if (flow->listens)
        flow->heard_ns = process_clock->boot_ns();
}

bool shim_flow_is_late(const struct shim_flow *flow)
{
    const struct shim_exchange *exchange =
        flow->times && is_head_to_come(flow) ? flow_oldest(flow) : NULL;
    uint64_t now = exchange && exchange->times ? process_clock->boot_ns() : 0;

    return now > 0 && now > exchange->due_ns &&
           shim_is_late(&exchange->call, now - exchange->due_ns);
}

void shim_flow_lay(struct shim_flow *flow, uint64_t ns)
{
    flow->lain_ns = ns;
}

void shim_flow_left(struct shim_flow *flow, uint64_t ns)
{
    struct shim_exchange *exchange = flow_oldest(flow);
    uint64_t now = process_clock->boot_ns();

    if (exchange && ns < now && now - ns > exchange->due_ns)
        exchange->due_ns = now - ns;
}

void shim_flow_unread(struct shim_flow *flow)
{
    flow->heard_ns = process_clock->boot_ns();
}

/* Is everything before it answered? */
static bool is_next(const struct shim_flow *flow, const struct shim_exchange *exchange)
{
    return flow->numbers[exchange - flow->exchanges] == flow->responses + 1;
}

bool shim_flow_waits(const struct shim_flow *flow)
{
    return flow->state != SHIM_FLOW_LOST && flow->requests > flow->responses &&
           !(flow->refused && is_next(flow, flow->refused));
}

bool shim_flow_has_head(const struct shim_flow *flow)
{
    return flow->in_response;
}

bool shim_flow_sends(const struct shim_flow *flow)
{
    return flow->state == SHIM_FLOW_FOLLOWED &&
           (flow->in_request || flow->request.total > 0 || flow->ahead > 0);
}

bool shim_flow_is_odd(const struct shim_flow *flow, struct span bytes)
{
    return shim_flow_waits(flow) && is_head_to_come(flow) && bytes.len > 0 && bytes.ptr[0] != 'H';
}

/* --- our answer
 * -----------------------------------------------------------------------------------
 */

bool shim_flow_answer_due(const struct shim_flow *flow)
{
    return flow->state == SHIM_FLOW_REFUSED && flow->before_refused == 0 &&
           is_next(flow, flow->refused);
}

size_t shim_flow_answer(const struct shim_flow *flow, size_t at, char *buf, size_t size)
{
    char response[SHIM_RESPONSE_MAX];
    size_t len =
        shim_response(&flow->refused->call, response, sizeof response, flow->refused->head_only);
    struct span rest = span_skip(span_of(response, len), flow->answered + at);

    if (rest.len > size)
        rest.len = size;
    if (buf)
        memcpy(buf, rest.ptr, rest.len);
    return rest.len;
}

void shim_flow_answer_taken(struct shim_flow *flow, size_t count)
{
    flow->answered += count;
}

/* --- the end
 * --------------------------------------------------------------------------------------
 */

#define STALE_NS CLOCK_NS_PER_S

static void end_oldest(struct shim_flow *flow, struct shim_exchange *exchange,
                       enum shim_flow_end end)
{
    enum call_phase phase = flow->in_response ? PHASE_BODY : PHASE_WAITING;

    if (end == SHIM_FLOW_CLOSE && !flow->send_failed)
        flow_settle(flow, exchange, END_ABORTED, phase);
    else if (end == SHIM_FLOW_EOF && flow->in_response && flow->response_body.until_close)
        flow_settle(flow, exchange, END_COMPLETE, phase);
    else if (!exchange->received && flow->responses > 0 && shim_age_ns(&exchange->call) < STALE_NS)
        /* A kept connection that the peer had closed when the request came: clients try again on a
         * new one, as libcurl does by itself. Older, the peer had it, and died over it. */
        flow_settle(flow, exchange, END_LOCAL, phase);
    else
        flow_settle(flow, exchange, END_BROKEN, phase);
}

void shim_flow_end(struct shim_flow *flow, enum shim_flow_end end)
{
    struct shim_exchange *exchange = flow_oldest(flow);

    if (exchange && exchange != flow->refused && flow->state != SHIM_FLOW_LOST &&
        end != SHIM_FLOW_DROP)
        end_oldest(flow, exchange, end);
    flow_lose(flow);
}
