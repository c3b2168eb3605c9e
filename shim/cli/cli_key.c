#include "cli/cli.h"

#include "base/distance.h"

#include "http/url.h"
#include "table/slot.h"

#define NEAREST_MAX 3

void cli_key_split(struct span key, struct span *host, struct span *model)
{
    const char *slash = memchr(key.ptr, '/', key.len);

    *host = slash ? span_of(key.ptr, (size_t)(slash - key.ptr)) : key;
    *model = slash ? span_skip(key, host->len + 1) : SPAN_NONE;
}

/* Takes ":PORT" off the end of *host. False: what stands there is no port. */
static bool take_port(struct span *host, uint16_t *port)
{
    struct span part = url_port_part(*host);
    uint32_t value = 0;

    *port = 443;
    if (part.len == 0)
        return true;
    struct span digits = span_skip(part, 1);
    if (digits.len == 0 || digits.len > 5)
        return false;
    for (size_t i = 0; i < digits.len; i++) {
        if (digits.ptr[i] < '0' || digits.ptr[i] > '9')
            return false;
        value = value * 10 + (uint32_t)(digits.ptr[i] - '0');
    }
    if (value == 0 || value > 65535)
        return false;
    *port = (uint16_t)value;
    host->len -= part.len;
    return true;
}

bool cli_key_normalise(struct span text, char *buf, size_t size)
{
    struct span host, model;
    uint16_t port;

    cli_key_split(text, &host, &model);
    if (!take_port(&host, &port))
        return false;
    size_t len = url_host_key(host, port, buf, CLI_HOST_MAX < size ? CLI_HOST_MAX : size);
    if (len == 0 || len >= size)
        return false;
    if (model.ptr) {
        if (model.len == 0 || model.len > MODEL_MAX || len + 1 + model.len >= size ||
            span_has_control(model))
            return false;
        buf[len++] = '/';
        memcpy(buf + len, model.ptr, model.len);
        len += model.len;
    }
    buf[len] = '\0';
    return true;
}

bool cli_key_complain_long_host(size_t len)
{
    if (len > CLI_HOST_MAX)
        cli_text_complain("expected a host of at most %d bytes with its port, found one of %zu",
                          CLI_HOST_MAX, len);
    return len > CLI_HOST_MAX;
}

void cli_key_complain_form(struct span text)
{
    struct span host, model;

    cli_key_split(text, &host, &model);
    if (cli_key_complain_long_host(host.len))
        return;
    if (model.len > MODEL_MAX)
        cli_text_complain("expected a model of at most %d bytes, found one of %zu", MODEL_MAX,
                          model.len);
    else
        cli_text_complain("expected HOST[:PORT] or HOST[:PORT]/MODEL, found '%.*s'", (int)text.len,
                          text.ptr);
}

struct slot *cli_key_find(const struct table *table, struct span text)
{
    char key[CLI_KEY_SIZE];
    struct slot *slot = NULL;

    if (cli_key_normalise(text, key, sizeof key))
        slot = table_find(table, table_identity(table, span_str(key)));
    return slot ? slot : table_lookup_text(table, text);
}

/* A key that holds what was typed is nearer than any that only resembles it. */
static unsigned score(struct span typed, struct span key)
{
    bool part = typed.len && memmem(key.ptr, key.len, typed.ptr, typed.len);

    return (part ? 0 : 1000) + distance_of(typed, key);
}

struct near {
    unsigned score;
    char key[TABLE_KEY_TEXT_SIZE];
};

/* Keeps the best NEAREST_MAX, in order. */
static unsigned nearest(const struct table *table, struct span typed, struct near *best)
{
    unsigned count = 0;

    for (unsigned i = 0; i < TABLE_CAPACITY; i++) {
        const struct slot *slot = &table->slots[i];
        struct near found;
        if (atomic_load_explicit(&slot->identity, memory_order_acquire) == 0)
            continue;
        found.score =
            score(typed, span_of(found.key, table_key_read(slot, found.key, sizeof found.key)));
        unsigned at = count < NEAREST_MAX ? count++ : NEAREST_MAX;
        for (; at > 0 && best[at - 1].score > found.score; at--)
            if (at < NEAREST_MAX)
                best[at] = best[at - 1];
        if (at < NEAREST_MAX)
            best[at] = found;
    }
    return count;
}

void cli_key_complain(const struct table *table, struct span text, bool hint)
{
    struct near best[NEAREST_MAX];
    unsigned count = table ? nearest(table, text, best) : 0;
    char list[NEAREST_MAX * (TABLE_KEY_TEXT_SIZE + 2) + 1] = "";
    size_t used = 0;

    for (unsigned i = 0; i < count; i++)
        used +=
            (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", best[i].key);
    cli_text_complain("unknown key '%.*s'%s%s%s", (int)text.len, text.ptr,
                      count ? "; nearest: " : ": there are no breakers yet", list,
                      hint ? "; --create makes it" : "");
}
