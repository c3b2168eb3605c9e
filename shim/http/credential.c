#include "http/credential.h"

#include "base/hash.h"

uint64_t credential_hash(uint64_t before, struct span part)
{
    uint64_t hash = hash64(part.ptr, part.len, before);

    return hash > 0 ? hash : 1;
}

/* The same key is the same whether it is said by Authorization or by a header of the provider's. */
static struct span without_bearer(struct span value)
{
    static const struct span bearer = SPAN_LIT("bearer ");

    return span_istarts(value, bearer) ? span_trim(span_skip(value, bearer.len)) : value;
}

bool credential_in_header(struct span line, struct span *key)
{
    static const struct span names[] = {SPAN_LIT("authorization"), SPAN_LIT("x-api-key"),
                                        SPAN_LIT("api-key"), SPAN_LIT("x-goog-api-key")};
    char first = line.len > 0 ? span_lower(line.ptr[0]) : '\0';
    bool found = false;

    if (first != 'a' && first != 'x') /* nearly all lines, and each call has some */
        return false;
    struct span name = span_until(line, ':');
    if (name.len == line.len)
        return false;
    for (unsigned i = 0; !found && i < sizeof names / sizeof *names; i++)
        found = span_ieq(name, names[i]);
    if (!found)
        return false;
    struct span value = span_trim(span_skip(line, name.len + 1));
    if (value.len == 0)
        return false;
    *key = without_bearer(value);
    return true;
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
