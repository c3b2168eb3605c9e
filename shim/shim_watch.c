/* What the answer's body says of the call, as it goes by. */
#include "call.h"

#include "http/encoding.h"

#include <errno.h>

_Static_assert(sizeof(union call_body) <= SHIM_WATCHED_SIZE, "struct shim_watched is too small");
_Static_assert(_Alignof(union call_body) <= 8, "struct shim_watched is not aligned");
_Static_assert(CONFIG_TEXT_MAX == BODY_SEARCH_TEXT_MAX, "what is longer is never found");

bool shim_watches(const struct shim_call *shim_call)
{
    const struct call *call = call_of_const(shim_call);

    return call->state == CALL_ADMITTED && call->judged_shape.place != MODEL_NONE &&
           call->epoch == process_epoch();
}

bool shim_times_first_byte(const struct shim_call *shim_call)
{
    return shim_watches(shim_call) &&
           call_outcome_policy(call_of_const(shim_call))->slow_first_byte_ns > 0;
}

bool shim_is_late(const struct shim_call *shim_call, uint64_t first_byte_ns)
{
    return shim_watches(shim_call) &&
           outcome_is_late(first_byte_ns, call_outcome_policy(call_of_const(shim_call)));
}

bool shim_times_silence(const struct shim_call *shim_call)
{
    return shim_watches(shim_call) &&
           call_outcome_policy(call_of_const(shim_call))->stall_after_ns > 0;
}

/* Nobody waits for a stream's end with a probe (DESIGN, Streams). One that came too late is a
 * failure, which its end tells. */
static void settle_probe(struct call *call, const struct call_head *head)
{
    struct call_side *side = call->host_alone ? &call->host : &call->model;
    const struct outcome_policy *policy = call_outcome_policy(call);

    if (side->admitted && side->ticket.probe && content_is_stream(head->kind) &&
        head->status < 300 && outcome_of_status(head->status, policy) == BREAKER_SUCCESS &&
        !outcome_is_late(head->first_byte_ns, policy))
        call_settle_provisionally(call, side);
}

static bool reads_stream(const struct call *call)
{
    return !call->limited && !call->excusable;
}

/* Looks for the texts of neutral_body. */
static bool feed_excuse(const struct call *call, struct body_search *search, struct span bytes)
{
    struct span list = span_str(call_outcome_policy(call)->neutral_body);
    struct span texts[CONFIG_TEXTS_MAX];
    size_t count = 0;

    while (count < CONFIG_TEXTS_MAX && config_next_text(&list, &texts[count]))
        count++;
    body_search_feed(search, bytes, texts, count);
    return !body_search_over(search);
}

/* Are more bytes of the body needed, after these? */
static bool feed(const struct call *call, union call_body *body, struct span bytes)
{
    if (reads_stream(call))
        return stream_feed(&body->stream, bytes) == STREAM_RUNNING;
    bool more = call->limited && quota_feed(&body->quota, bytes) == QUOTA_MORE;
    return (call->excusable && feed_excuse(call, &body->excuse, bytes)) || more;
}

/* No more than what is in use: streams are copied with each of their pieces. */
static void copy_body(const struct call *call, union call_body *to, const union call_body *from)
{
    if (reads_stream(call))
        to->stream = from->stream;
    else
        *to = *from;
}

bool call_head(struct shim_call *shim_call, const struct call_head *head)
{
    struct call *call = call_of(shim_call);

    if (!shim_watches(shim_call))
        return false;
    const struct outcome_policy *policy = call_outcome_policy(call);
    call->limited = head->status == 429;
    call->excusable = *policy->neutral_body && !head->encoded &&
                      outcome_of_status(head->status, policy) == BREAKER_FAILURE;
    if (call->limited)
        quota_init(&call->body.quota, call->api, head->encoded ? SPAN_LIT("encoded") : SPAN_NONE);
    if (call->excusable)
        call->body.excuse = (struct body_search){0};
    if (reads_stream(call)) {
        stream_init_kind(&call->body.stream, call->api, head->status, head->kind, head->encoded);
        settle_probe(call, head);
    }
    return feed(call, &call->body, SPAN_LIT(""));
}

bool shim_head(struct shim_call *call, unsigned status, struct span type, struct span encoding,
               uint64_t first_byte_ns)
{
    const struct call_head head = {status, content_kind_of(type), !encoding_is_plain(encoding),
                                   first_byte_ns};
    int saved = errno;
    bool more = call_head(call, &head);

    errno = saved;
    return more;
}

enum stream_state call_body_said(struct call *call)
{
    return reads_stream(call) ? stream_end(&call->body.stream) : STREAM_BLIND;
}

bool call_quota_is_spent(struct call *call)
{
    return call->limited && quota_end(&call->body.quota) == QUOTA_SPENT;
}

bool call_is_excused(const struct call *call)
{
    return call->excusable && call->body.excuse.found;
}

bool shim_watch(struct shim_call *shim_call, struct span bytes)
{
    struct call *call = call_of(shim_call);

    return feed(call, &call->body, bytes);
}

bool shim_told_error(const struct shim_call *shim_call)
{
    const struct call *call = call_of_const(shim_call);

    if (!shim_watches(shim_call) || !reads_stream(call))
        return false;
    switch (stream_state(&call->body.stream)) {
    case STREAM_FAILURE:
    case STREAM_CALLER:
    case STREAM_RATE:
    case STREAM_QUOTA:
        return true;
    case STREAM_BLIND:
    case STREAM_RUNNING:
    case STREAM_OVER:
        break;
    }
    return false;
}

void shim_watch_ahead(const struct shim_call *shim_call, struct span bytes,
                      struct shim_watched *watched)
{
    const struct call *call = call_of_const(shim_call);
    union call_body *body = (union call_body *)(void *)watched->opaque;

    copy_body(call, body, &call->body);
    feed(call, body, bytes);
}

bool shim_watch_taken(struct shim_call *shim_call, const struct shim_watched *watched)
{
    struct call *call = call_of(shim_call);

    copy_body(call, &call->body, (const union call_body *)(const void *)watched->opaque);
    return feed(call, &call->body, SPAN_LIT(""));
}
