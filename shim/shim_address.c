/*
 * shim_address.c - fallback_address: where connects go while their host's breaker refuses them.
 */
#include "call.h"
#include "http/url.h"
#include "route/fallback.h"

/* --- the connect ---------------------------------------------------------------------------------
 */

static bool breaker_refuses(const struct call_side *side, uint64_t now)
{
    return slot_peek(side->slot, breaker_tick(now), &side->policy.breaker).verdict ==
           BREAKER_REFUSE;
}

bool shim_overruled(const struct shim_call *shim_call)
{
    const struct call *call = call_of_const(shim_call);

    /* A cool-down is looked at by the time of the admission: no clock for each connect. */
    return call->state == CALL_ADMITTED && call->host.admitted &&
           (call_parked(call, &call->host, call->admitted_ns) > 0 ||
            (!call->host.ticket.counted && breaker_refuses(&call->host, process_clock->boot_ns())));
}

bool shim_fallback_address(const struct shim_call *shim_call, struct span *host, uint16_t *port)
{
    const struct call *call = call_of_const(shim_call);

    if (!(call->state == CALL_REFUSED && !call->refusal.model) && !shim_overruled(shim_call))
        return false;
    return fallback_address(&call->host.policy, call_host_key(call), host, port);
}

void shim_rerouted(struct shim_call *from, struct shim_call *to)
{
    struct call *call = call_of(from);
    struct call_side *side = &call->host;
    struct span key = call_host_key(call_of(to));
    uint64_t now = process_clock->boot_ns();

    if (call->state != CALL_REFUSED) { /* it would have passed */
        call->refusal.model = false;
        call->refusal.state = call_shown(side, now).state;
        call->refusal.parked = !breaker_refuses(side, now);
    }
    if (slot_count_rerouted(side->slot, table_identity(call->table, key), call_stat_shard(), now,
                            CALL_LOG_QUIET_NS))
        call_log_reroute(call, key, false, "fallback_address");
    shim_drop(from);
}

/* --- the names of addresses ----------------------------------------------------------------------
 */

/* What is asked for, and what was found. */
struct wanted {
    const struct config *config;
    uint32_t tick; /* now */
    struct span *names;
    unsigned count, max;
};

static void add_name(struct wanted *wanted, struct span name)
{
    for (unsigned i = 0; i < wanted->count; i++)
        if (span_eq(wanted->names[i], name))
            return;
    if (wanted->count < wanted->max)
        wanted->names[wanted->count++] = name;
}

static bool name_of_key(const struct config *config, struct span key, struct span *name)
{
    struct policy policy;
    uint16_t port;

    config_policy(config, key, SPAN_NONE, &policy);
    return policy.mode != MODE_OFF && fallback_address(&policy, key, name, &port);
}

static bool is_healthy(const struct slot *slot, uint32_t tick)
{
    return !slot || (breaker_is_clean(slot_word(slot)) && !slot_cooldown_may_be(slot, tick));
}

static void add_of_key(struct wanted *wanted, const struct table *table, struct span key)
{
    struct span name;

    if (!is_healthy(table_find(table, table_identity(table, key)), wanted->tick) &&
        name_of_key(wanted->config, key, &name))
        add_name(wanted, name);
}

/* May a key of the host, at whatever port, have an address? Asks each target's pattern, with the
 * host in its place: nothing is attached to for names that no setting is for. */
static bool any_address(const struct config *config, struct span host)
{
    struct config_target_info target;
    struct span name;

    if (name_of_key(config, host, &name))
        return true;
    for (unsigned i = 0; config_target(config, i, &target); i++) {
        struct span pattern = span_until(span_str(target.pattern), '/');
        struct span port = url_port_part(pattern);
        char key[ROUTE_HOST_MAX];
        if (host.len + port.len > sizeof key)
            continue;
        memcpy(key, host.ptr, host.len);
        memcpy(key + host.len, port.ptr, port.len);
        if (name_of_key(config, span_of(key, host.len + port.len), &name))
            return true;
    }
    return false;
}

/* The keys of the host are looked for in the table: those that are not there are healthy. What is
 * written there only says whom to ask the configuration for. */
static void add_of_host(struct wanted *wanted, const struct table *table, struct span host)
{
    char text[TABLE_KEY_TEXT_SIZE];

    for (unsigned i = 0; i < TABLE_CAPACITY; i++) {
        const struct slot *slot = &table->slots[i];
        if (is_healthy(slot, wanted->tick))
            continue;
        struct span key = span_of(text, table_key_read(slot, text, sizeof text));
        if (span_starts(key, host) && span_eq(span_skip(key, host.len), url_port_part(key)))
            add_of_key(wanted, table, key);
    }
}

unsigned shim_fallbacks_wanted(struct span host, uint16_t port, struct span *names, unsigned max)
{
    uint64_t now = process_clock->boot_ns();
    struct wanted wanted = {.tick = breaker_tick(now), .names = names, .max = max};
    char text[ROUTE_HOST_MAX];
    struct span key = span_of(text, url_host_key(host, port ? port : 443, text, sizeof text)), name;

    if (key.len == 0 || shim_disabled() || !(wanted.config = process_config(now)) ||
        !(port ? name_of_key(wanted.config, key, &name) : any_address(wanted.config, key)))
        return 0;
    const struct table *table = process_table(wanted.config, now);
    if (table && port)
        add_of_key(&wanted, table, key);
    else if (table)
        add_of_host(&wanted, table, key);
    return wanted.count;
}
