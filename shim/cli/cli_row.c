#include "cli/cli.h"

#include "base/clock.h"
#include "http/outcome.h"

#include <inttypes.h>

/* Each field is taken as it stands: others may be writing, and anybody may have written nonsense. A
 * place that was taken by a call that is not counted yet is none. */
static void read_destinations(const struct slot *slot, struct cli_row *row)
{
    row->elsewhere = row->totals.rerouted;
    for (unsigned i = 0; i < TABLE_STAT_SHARDS; i++) {
        const struct slot_destination *from = &slot->stats[i].to;
        struct cli_destination *to = &row->to[i];
        to->identity = atomic_load_explicit(&from->identity, memory_order_relaxed);
        to->count = atomic_load_explicit(&from->count, memory_order_relaxed);
        if (to->count == 0)
            to->identity = 0;
        if (to->identity != 0)
            row->elsewhere -= to->count < row->elsewhere ? to->count : row->elsewhere;
    }
}

void cli_row_read(const struct slot *slot, const struct policy *policy, uint64_t now,
                  struct cli_row *row)
{
    uint32_t longest;

    memset(row, 0, sizeof *row);
    row->word = slot_word(slot);
    row->effective = breaker_effective(row->word, breaker_tick(now), &policy->breaker);
    row->observed = policy->mode == MODE_OBSERVE;
    row->retry_in_ms = breaker_tick_ns(row->effective.wait_ticks) / CLOCK_NS_PER_MS;
    row->rated = rate_is_on(&policy->breaker);
    row->rate = slot_rate(slot, row->effective.generation, breaker_tick(now), &policy->breaker);
    row->window_ms = policy->breaker.window_ms;
    if (!slot)
        return;
    row->parked = slot_cooldown_count(slot, breaker_tick(now), &longest);
    row->parks_all = slot_cooldown_left(slot, COOLDOWN_ALL, breaker_tick(now)) > 0;
    row->parked_ms = breaker_tick_ns(longest) / CLOCK_NS_PER_MS;
    row->opened = atomic_load_explicit(&slot->opened, memory_order_relaxed);
    row->totals = slot_totals(slot);
    read_destinations(slot, row);
    uint64_t failed_at = atomic_load_explicit(&slot->last_failure_ns, memory_order_relaxed);
    uint32_t failure = atomic_load_explicit(&slot->last_failure, memory_order_relaxed);
    row->failed = failed_at != 0;
    row->cause = failure >> 16;
    row->status = failure & 0xffff;
    row->age_ms = now > failed_at ? (now - failed_at) / CLOCK_NS_PER_MS : 0;
}

bool cli_row_is_due(const struct cli_row *row)
{
    enum breaker_state state = row->effective.state;

    return (state == BREAKER_SHOW_OPEN || state == BREAKER_SHOW_HALF_OPEN) &&
           row->effective.wait_ticks == 0;
}

/* Seconds as people write them, with as many decimals as there are: "60", "0.5". */
static const char *seconds_text(uint32_t ms, char *buf, size_t size)
{
    size_t len = (size_t)snprintf(buf, size, "%u.%03u", ms / 1000, ms % 1000);

    while (buf[len - 1] == '0')
        buf[--len] = '\0';
    if (buf[len - 1] == '.')
        buf[--len] = '\0';
    return buf;
}

const char *cli_row_rate(const struct cli_row *row, char *buf, size_t size)
{
    char window[32];

    snprintf(buf, size, "%u/%u in %ss", row->rate.failures, row->rate.calls,
             seconds_text(row->window_ms, window, sizeof window));
    return buf;
}

const char *cli_row_parked(const struct cli_row *row, char *buf, size_t size)
{
    if (row->parks_all)
        snprintf(buf, size, "all");
    else
        snprintf(buf, size, "%u", row->parked);
    return buf;
}

const char *cli_row_failure(const struct cli_row *row, char *buf, size_t size)
{
    char age[32], status[16] = "";

    if (row->status)
        snprintf(status, sizeof status, " %u", row->status);
    if (row->failed)
        snprintf(buf, size, "%s%s, %s ago", outcome_cause_name((enum outcome_cause)row->cause),
                 status, cli_text_duration(row->age_ms, age, sizeof age));
    else
        snprintf(buf, size, "-");
    return buf;
}

const char *cli_row_destination(const struct table *table, const struct cli_destination *to,
                                char buf[TABLE_KEY_TEXT_SIZE])
{
    const struct slot *slot = table->slots ? table_find(table, to->identity) : NULL;

    if (slot)
        table_key_read(slot, buf, TABLE_KEY_TEXT_SIZE);
    else
        snprintf(buf, TABLE_KEY_TEXT_SIZE, "#%016" PRIx64, to->identity);
    return buf;
}

static void json_destinations(const struct table *table, const struct cli_row *row)
{
    char key[TABLE_KEY_TEXT_SIZE];
    const char *comma = "";

    fputs(",\"rerouted_to\":[", stdout);
    for (unsigned i = 0; i < TABLE_STAT_SHARDS; i++) {
        if (row->to[i].identity == 0)
            continue;
        printf("%s{", comma);
        cli_text_json_member("key", span_str(cli_row_destination(table, &row->to[i], key)));
        printf(",\"count\":%" PRIu64 "}", row->to[i].count);
        comma = ",";
    }
    putchar(']');
    if (row->elsewhere)
        printf(",\"elsewhere\":%" PRIu64, row->elsewhere);
}

void cli_row_json_key(struct span key)
{
    struct span host, model;

    cli_key_split(key, &host, &model);
    cli_text_json_member("key", key);
    printf(",\"level\":\"%s\",", model.ptr ? "model" : "host");
    cli_text_json_member("host", host);
    putchar(',');
    cli_text_json_member("model", model);
}

static void json_rate(const struct cli_row *row)
{
    char window[32];

    if (row->rated)
        printf(",\"rate\":{\"calls\":%u,\"failures\":%u,\"window\":%s}", row->rate.calls,
               row->rate.failures, seconds_text(row->window_ms, window, sizeof window));
}

void cli_row_json_state(const struct table *table, const struct cli_row *row)
{
    printf("\"state\":\"%s\",\"streak\":%u,\"generation\":%u,\"retry_in_ms\":%" PRIu64
           ",\"opened\":%" PRIu64,
           breaker_state_name(row->effective.state), row->effective.streak,
           row->effective.generation, row->retry_in_ms, row->opened);
    printf(",\"calls\":{\"success\":%" PRIu64 ",\"failure\":%" PRIu64 ",\"neutral\":%" PRIu64
           ",\"refused\":%" PRIu64 ",\"rerouted\":%" PRIu64 "},\"last_failure\":",
           row->totals.success, row->totals.failure, row->totals.neutral, row->totals.refused,
           row->totals.rerouted);
    if (row->failed)
        printf("{\"class\":\"%s\",\"status\":%u,\"age_ms\":%" PRIu64 "}",
               outcome_cause_name((enum outcome_cause)row->cause), row->status, row->age_ms);
    else
        fputs("null", stdout);
    if (row->observed)
        fputs(",\"mode\":\"observe\"", stdout);
    json_rate(row);
    if (row->parked)
        printf(",\"cooldowns\":{\"credentials\":%u,\"all\":%s,\"longest_ms\":%" PRIu64 "}",
               row->parked, row->parks_all ? "true" : "false", row->parked_ms);
    json_destinations(table, row);
}
