#include "http/body_search.h"

#define TAIL_MAX (BODY_SEARCH_TEXT_MAX - 1)

static struct span first_of(struct span bytes, size_t most)
{
    return span_of(bytes.ptr, bytes.len < most ? bytes.len : most);
}

static bool has(struct span bytes, struct span text)
{
    return memmem(bytes.ptr, bytes.len, text.ptr, text.len) != NULL;
}

/* Does the text begin in the tail and end in the bytes behind it? */
static bool is_astride(const struct body_search *search, struct span bytes, struct span text)
{
    char joint[2 * TAIL_MAX];
    size_t before = search->tail_len < text.len ? search->tail_len : text.len - 1;
    struct span begin = first_of(bytes, text.len - 1);

    memcpy(joint, search->tail + (search->tail_len - before), before);
    memcpy(joint + before, begin.ptr, begin.len);
    return has(span_of(joint, before + begin.len), text);
}

static void keep_tail(struct body_search *search, struct span bytes)
{
    struct span last = bytes.len > TAIL_MAX ? span_skip(bytes, bytes.len - TAIL_MAX) : bytes;
    size_t room = TAIL_MAX - last.len, old = search->tail_len < room ? search->tail_len : room;

    memmove(search->tail, search->tail + (search->tail_len - old), old);
    memcpy(search->tail + old, last.ptr, last.len);
    search->tail_len = (uint8_t)(old + last.len);
}

bool body_search_feed(struct body_search *search, struct span bytes, const struct span *texts,
                      size_t count)
{
    bytes = first_of(bytes, BODY_SEARCH_LIMIT - (size_t)search->seen);
    if (search->found || bytes.len == 0)
        return search->found;
    for (size_t i = 0; i < count && !search->found; i++)
        if (texts[i].len > 0 && texts[i].len <= BODY_SEARCH_TEXT_MAX)
            search->found = is_astride(search, bytes, texts[i]) || has(bytes, texts[i]);
    search->seen = (uint16_t)(search->seen + bytes.len);
    keep_tail(search, bytes);
    return search->found;
}
