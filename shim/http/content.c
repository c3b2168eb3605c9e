#include "http/content.h"

enum content_kind content_kind_of(struct span type)
{
    static const struct {
        struct span type;
        enum content_kind kind;
    } types[] = {
        {SPAN_LIT("text/event-stream"), CONTENT_EVENTS},
        {SPAN_LIT("application/json"), CONTENT_DOCUMENT},
        {SPAN_LIT("application/x-ndjson"), CONTENT_DOCUMENTS},
        {SPAN_LIT("application/stream+json"), CONTENT_DOCUMENTS},
        {SPAN_LIT("application/vnd.amazon.eventstream"), CONTENT_FRAMES},
    };

    type = span_trim(span_until(type, ';'));
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (span_ieq(type, types[i].type))
            return types[i].kind;
    return CONTENT_OTHER;
}
