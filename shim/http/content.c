#include "http/content.h"

/* Nothing follows, or parameters do; no blanks are at the type's end. */
static bool ends_at(struct span type, size_t len)
{
    return type.len == len || span_trim(span_skip(type, len)).ptr[0] == ';';
}

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

    type = span_trim(type);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (span_istarts(type, types[i].type) && ends_at(type, types[i].type.len))
            return types[i].kind;
    return CONTENT_OTHER;
}
