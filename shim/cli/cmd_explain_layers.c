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
    if (explanation->connects_elsewhere)
        snprintf(explanation->connect, sizeof explanation->connect,
                 "connects to %s instead, by fallback_address, where that has an address of the "
                 "socket's family",
                 explanation->address.host.key);
    else if (explanation->at_connect)
        snprintf(explanation->connect, sizeof explanation->connect, "%s",
                 connect_to_host(&explanation->chain[0].host));
}

bool explain_layers(const struct explanation *explanation,
                    struct explain_layer layers[EXPLAIN_LAYERS])
{
    const struct explain_stop *stop = &explanation->chain[0];
    bool clear = span_ieq(explanation->url.scheme, SPAN_LIT("http"));
    bool ends_at_connect = explanation->at_connect && (explanation->connects_elsewhere ||
                                                       explain_refuses_connect(&stop->host, false));

    if (explanation->disabled || !explanation->is_http || !route_is_covered(explanation->cover) ||
        stop->host.policy.mode == MODE_OFF || stop->reason == EXPLAIN_TABLE_REFUSED)
        return false;
    layers[0] = (struct explain_layer){"libcurl", "the whole request", explanation->verdict};
    layers[1].name = "sockets";
    layers[1].sees = clear && explanation->at_connect ? "the connect, then the whole request"
                     : clear                          ? "the whole request, no connect"
                     : explanation->at_connect        ? "the host, at connect"
                                               : "nothing: of TLS only the connect could be seen, "
                                                 "and the host alone is none that counts";
    layers[1].now = clear && !ends_at_connect ? explanation->direct
                    : explanation->at_connect ? explanation->connect
                                              : "passes uncounted";
    layers[2] = (struct explain_layer){"static, Go, set-uid", "nothing", "passes uncounted"};
    return true;
}
