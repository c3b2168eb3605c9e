#include "http/credential.h"

#include "base/hash.h"
#include "http/field_name.h"

uint64_t credential_hash(uint64_t before, struct span part)
{
    uint64_t hash = hash64(part.ptr, part.len, before);

    return hash > 0 ? hash : 1;
}

/* Of "AWS4-… Credential=ID/DATE/REGION/SERVICE/aws4_request, …, Signature=…", where all but the
 * first changes from call to call or from day to day. Else SPAN_NONE. */
static struct span id_of_signature(struct span value)
{
    static const struct span begin = SPAN_LIT("aws4-"), name = SPAN_LIT("Credential=");
    const char *found;

    if (!span_istarts(value, begin) || !(found = memmem(value.ptr, value.len, name.ptr, name.len)))
        return SPAN_NONE;
    struct span id = span_skip(value, (size_t)(found - value.ptr) + name.len);
    id = span_until(span_until(id, ','), '/');
    return id.len > 0 ? id : SPAN_NONE;
}

/* The same key is the same whether it is said by Authorization or by a header of the provider's. */
static struct span key_of(struct span value)
{
    static const struct span bearer = SPAN_LIT("bearer "), usual = SPAN_LIT("Bearer ");

    if (span_starts(value, usual) || span_istarts(value, bearer))
        return span_trim(span_skip(value, bearer.len));
    struct span id = id_of_signature(value);
    return id.ptr ? id : value;
}

static bool is_one_of(struct span name, const struct span *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (name.len == names[i].len && field_name_is(name.ptr, names[i]))
            return true;
    return false;
}

#define IS_ONE_OF(name, names) is_one_of((name), (names), sizeof(names) / sizeof *(names))

/* Each call has some lines, and nearly all are told by two letters. */
static bool may_be_one(struct span name)
{
    if (name.len < 3)
        return false;
    unsigned char before = (unsigned char)span_lower(name.ptr[name.len - 2]);
    unsigned char last = (unsigned char)span_lower(name.ptr[name.len - 1]);
    switch (before << 8 | last) {
    case 'e' << 8 | 'y': /* key */
    case 'e' << 8 | 'n': /* token */
    case 't' << 8 | 'h': /* auth */
    case 'o' << 8 | 'n': /* authorization */
    case 'e' << 8 | 't': /* secret */
    case 'i' << 8 | 'e': /* cookie */
        return true;
    default:
        return false;
    }
}

static enum credential_kind kind_of(struct span name)
{
    static const struct span providers[] = {SPAN_LIT("authorization"), SPAN_LIT("x-api-key"),
                                            SPAN_LIT("api-key"), SPAN_LIT("x-goog-api-key")};
    static const struct span ends[] = {SPAN_LIT("key"),    SPAN_LIT("token"),
                                       SPAN_LIT("auth"),   SPAN_LIT("authorization"),
                                       SPAN_LIT("secret"), SPAN_LIT("cookie")};
    /* Drawn anew for each call, or the proxy's. */
    static const struct span none[] = {SPAN_LIT("idempotency-key"), SPAN_LIT("x-idempotency-key"),
                                       SPAN_LIT("proxy-authorization")};

    if (IS_ONE_OF(name, providers))
        return CREDENTIAL_PROVIDERS;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (name.len >= ends[i].len && field_name_is(name.ptr + name.len - ends[i].len, ends[i]))
            return IS_ONE_OF(name, none) ? CREDENTIAL_NONE : CREDENTIAL_OTHER;
    return CREDENTIAL_NONE;
}

static __attribute__((noinline)) enum credential_kind
credential_in_field(struct span name, struct span value, struct span *key)
{
    enum credential_kind kind = kind_of(name);

    value = span_trim(value);
    if (kind == CREDENTIAL_NONE || value.len == 0)
        return CREDENTIAL_NONE;
    *key = key_of(value);
    return kind;
}

enum credential_kind credential_in_header(struct span line, struct span *key)
{
    struct span name = span_until(line, ':');

    if (name.len == line.len || !may_be_one(name))
        return CREDENTIAL_NONE;
    return credential_in_field(name, span_skip(line, name.len + 1), key);
}

bool credential_in_query(struct span query, struct span *key)
{
    static const struct span names[] = {SPAN_LIT("key="), SPAN_LIT("api-key=")};

    while (query.len > 0) {
        struct span parameter = span_take(&query, '&');
        for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
            if (parameter.len > names[i].len && span_starts(parameter, names[i])) {
                *key = span_skip(parameter, names[i].len);
                return true;
            }
    }
    return false;
}
