/* What the answer's body says of the call, as it goes by. */
#include "call.h"

#include "http/encoding.h"

#include <errno.h>

_Static_assert(sizeof(struct stream) <= SHIM_WATCHED_SIZE, "struct shim_watched is too small");
_Static_assert(sizeof(struct quota) <= SHIM_WATCHED_SIZE, "struct shim_watched is too small");
_Static_assert(_Alignof(struct stream) <= 8, "struct shim_watched is not aligned");

bool shim_watches(const struct shim_call *shim_call)
{
    const struct call *call = call_of_const(shim_call);

    return call->state == CALL_ADMITTED && call->judged_shape.place != MODEL_NONE &&
           call->epoch == process_epoch();
}

/* Nobody waits for a stream's end with a probe (DESIGN, Streams). */
static void settle_probe(struct call *call, unsigned status, enum content_kind kind)
{
    struct call_side *side = call->host_alone ? &call->host : &call->model;

    if (side->admitted && side->ticket.probe && content_is_stream(kind) && status < 300 &&
        outcome_of_status(status, call_outcome_policy(call)) == BREAKER_SUCCESS)
        call_settle_provisionally(call, side);
}

bool call_head(struct shim_call *shim_call, unsigned status, enum content_kind kind, bool encoded)
{
    struct call *call = call_of(shim_call);

    if (!shim_watches(shim_call))
        return false;
    call->limited = status == 429;
    if (call->limited) {
        quota_init(&call->quota, call->api, encoded ? SPAN_LIT("encoded") : SPAN_NONE);
        return quota_feed(&call->quota, SPAN_LIT("")) == QUOTA_MORE;
    }
    stream_init_kind(&call->stream, call->api, status, kind, encoded);
    settle_probe(call, status, kind);
    return call->stream.state == STREAM_RUNNING;
}

bool shim_head(struct shim_call *call, unsigned status, struct span type, struct span encoding)
{
    int saved = errno;
    bool more = call_head(call, status, content_kind_of(type), !encoding_is_plain(encoding));

    errno = saved;
    return more;
}

bool call_quota_is_spent(struct call *call)
{
    return call->limited && quota_end(&call->quota) == QUOTA_SPENT;
}

bool shim_watch(struct shim_call *shim_call, struct span bytes)
{
    struct call *call = call_of(shim_call);

    return call->limited ? quota_feed(&call->quota, bytes) == QUOTA_MORE
                         : stream_feed(&call->stream, bytes) == STREAM_RUNNING;
}

void shim_watch_ahead(const struct shim_call *shim_call, struct span bytes,
                      struct shim_watched *watched)
{
    const struct call *call = call_of_const(shim_call);
    struct quota *quota = (struct quota *)(void *)watched->opaque;
    struct stream *stream = (struct stream *)(void *)watched->opaque;

    if (call->limited) {
        *quota = call->quota;
        quota_feed(quota, bytes);
    } else {
        *stream = call->stream;
        stream_feed(stream, bytes);
    }
}

bool shim_watch_taken(struct shim_call *shim_call, const struct shim_watched *watched)
{
    struct call *call = call_of(shim_call);

    if (call->limited) {
        call->quota = *(const struct quota *)(const void *)watched->opaque;
        return quota_feed(&call->quota, SPAN_LIT("")) == QUOTA_MORE;
    }
    call->stream = *(const struct stream *)(const void *)watched->opaque;
    return call->stream.state == STREAM_RUNNING;
}
