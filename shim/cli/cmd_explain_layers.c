/*
 * cmd_explain_layers.c - who sees the call, and what it meets there.
 */
#include "cli/cmd_explain.h"

/* What a connect meets, which is judged by H alone. */
static const char *connect_to_host(const struct explain_side *host)
{
    return explain_refuses_connect(host, false)       ? "connect fails with ECONNREFUSED"
           : host->admission.verdict == BREAKER_GRANT ? "connects as the probe"
                                                      : "connects";
}

void explain_say_connect(struct explanation *explanation)
{
    if (explanation->disabled || explanation->chain[0].host.policy.mode == MODE_OFF ||
        table_is_refused(explanation->table_error))
        return;
    if (explanation->connects_elsewhere)
        snprintf(explanation->connect, sizeof explanation->connect,
                 "connects to %s instead, by fallback_address, where that has an address of the "
                 "socket's family",
                 explanation->address.host.key);
    else if (explanation->at_connect)
        snprintf(explanation->connect, sizeof explanation->connect, "%s",
                 connect_to_host(&explanation->chain[0].host));
}

static const struct explain_layer beyond_reach = {"static, Go, set-uid", "nothing",
                                                  "passes uncounted"};

/* Of a URL that is not http or https: a WebSocket begins as a request of HTTP, of the others
 * nothing is known but that they connect. */
static unsigned layers_of_scheme(const struct explanation *explanation,
                                 struct explain_layer layers[EXPLAIN_LAYERS])
{
    bool secure = span_ieq(explanation->url.scheme, SPAN_LIT("wss"));
    bool websocket = secure || span_ieq(explanation->url.scheme, SPAN_LIT("ws"));
    unsigned count = 0;

    if (!*explanation->connect)
        return 0;
    layers[count++] =
        (struct explain_layer){"libcurl", "nothing of this scheme", "passes uncounted"};
    layers[count++] = (struct explain_layer){secure ? "libssl" : "sockets",
                                             websocket ? "the connect, then the request's head"
                                                       : "the host, at connect",
                                             explanation->connect};
    if (secure)
        layers[count++] =
            (struct explain_layer){"other TLS", "the host, at connect", explanation->connect};
    layers[count++] = beyond_reach;
    return count;
}

unsigned explain_layers(const struct explanation *explanation,
                        struct explain_layer layers[EXPLAIN_LAYERS])
{
    const struct explain_stop *stop = &explanation->chain[0];
    bool clear = span_ieq(explanation->url.scheme, SPAN_LIT("http")),
         judged = explanation->at_connect;
    bool ends_at_connect =
        judged && (explanation->connects_elsewhere || explain_refuses_connect(&stop->host, false));
    unsigned count = 0;

    if (!explanation->is_http)
        return layers_of_scheme(explanation, layers);
    if (explanation->disabled || !route_is_covered(explanation->cover) ||
        stop->host.policy.mode == MODE_OFF || stop->reason == EXPLAIN_TABLE_REFUSED)
        return 0;
    layers[count++] = (struct explain_layer){"libcurl", "the whole request", explanation->verdict};
    layers[count++] = (struct explain_layer){
        clear ? "sockets" : "libssl",
        judged ? "the connect, then the whole request" : "the whole request, no connect",
        ends_at_connect ? explanation->connect : explanation->direct};
    if (!clear)
        layers[count++] = (struct explain_layer){
            "other TLS",
            judged ? "the host, at connect"
                   : "nothing: only the connect could be seen, and the host alone is none that "
                     "counts",
            judged ? explanation->connect : "passes uncounted"};
    layers[count++] = beyond_reach;
    return count;
}
