#include "route/route.h"

#include "http/url.h"

bool route_is_http(struct span scheme)
{
    return span_ieq(scheme, SPAN_LIT("http")) || span_ieq(scheme, SPAN_LIT("https"));
}

bool route_key_of(struct span method, struct span host, uint16_t port, struct span path,
                  struct route_key *out)
{
    if (!method.ptr)
        method = SPAN_LIT("GET");
    out->len = url_host_key(host, port, out->text, sizeof out->text);
    if (out->len == 0)
        return false;
    out->name_len = out->len - url_port_part(span_of(out->text, out->len)).len;
    out->shape = shape_of(method, span_of(out->text, out->name_len), path);
    return true;
}

enum route_cover route_cover(const struct config *config, const struct route_key *key)
{
    enum config_match match = config_match(config);

    if (match == MATCH_ALL)
        return ROUTE_MATCH_ALL;
    if (config_lists_host(config, span_of(key->text, key->len)))
        return ROUTE_LISTED;
    if (match == MATCH_LISTED)
        return ROUTE_NOT_LISTED;
    if (key->shape.place != MODEL_NONE)
        return ROUTE_LLM_SHAPE;
    return shape_known_host(span_of(key->text, key->name_len)) ? ROUTE_KNOWN_HOST
                                                               : ROUTE_NO_LLM_CALL;
}

struct span route_model_in_path(const struct shape *shape, char buf[MODEL_MAX])
{
    return span_of(buf, url_decode(shape->model, buf, MODEL_MAX));
}
