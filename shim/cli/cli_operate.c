#include "cli/cli.h"

#include "base/clock.h"
#include "base/log.h"
#include "table/slot.h"

#include <errno.h>
#include <sys/random.h>

static uint64_t word_after(enum cli_operation operation, uint64_t word, uint32_t now,
                           const struct breaker_policy *policy)
{
    uint16_t random = 0;

    switch (operation) {
    case CLI_TRIP:
        /* Without randomness the trip lasts its plain time: the jitter is no promise. */
        if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
            random = 0;
        return breaker_trip(word, now, policy, random);
    case CLI_FORCE_OPEN:
        return breaker_force_open(word);
    case CLI_FORCE_CLOSED:
        return breaker_force_closed(word);
    case CLI_RESET:
        break;
    }
    return breaker_reset(word);
}

/* CAS until done: an operator's word is never dropped. Returns the word that it replaced. */
static uint64_t apply(enum cli_operation operation, struct slot *slot, uint32_t now,
                      const struct breaker_policy *policy, uint64_t *next)
{
    uint64_t word = slot_word(slot);

    do
        *next = word_after(operation, word, now, policy);
    while (!atomic_compare_exchange_weak_explicit(&slot->word, &word, *next, memory_order_acq_rel,
                                                  memory_order_acquire));
    if (operation == CLI_TRIP)
        slot_note_opened(slot);
    if (operation == CLI_RESET)
        slot_cooldown_clear(slot);
    return word;
}

static void tell(const struct cli_context *context, const char *key, enum breaker_state before,
                 const struct breaker_effective *after)
{
    const char *from = breaker_state_name(before), *to = breaker_state_name(after->state);
    const char *log = config_log_path(context->config);
    struct log_event event = {
        .event = "transition", .key = span_str(key), .from = from, .to = to, .cause = "manual"};
    char safe[4 * TABLE_KEY_TEXT_SIZE], wait[32];

    cli_text_safe(span_str(key), safe, sizeof safe);
    printf("%s: %s -> %s", safe, from, to);
    if (after->state == BREAKER_SHOW_OPEN)
        printf(", probe in %s",
               cli_text_duration(breaker_tick_ns(after->wait_ticks) / CLOCK_NS_PER_MS, wait,
                                 sizeof wait));
    putchar('\n');
    if (*log)
        log_write(log, &event, clock_system.wall_ms());
}

static int change(struct cli_context *context, enum cli_operation operation, struct slot *slot)
{
    char key[TABLE_KEY_TEXT_SIZE];
    struct policy policy;
    uint64_t next;
    uint32_t now = breaker_tick(clock_system.boot_ns());

    cli_context_policy(context, span_of(key, table_key_read(slot, key, sizeof key)), &policy);
    uint64_t word = apply(operation, slot, now, &policy.breaker, &next);
    struct breaker_effective before = breaker_effective(word, now, &policy.breaker);
    struct breaker_effective after = breaker_effective(next, now, &policy.breaker);
    tell(context, key, before.state, &after);
    if (operation == CLI_FORCE_CLOSED || operation == CLI_RESET)
        cli_refusing_tell(context, span_str(key));
    return CLI_OK;
}

/* A key is of one host and one model: what a target's pattern would name no call ever asks for. */
static bool is_pattern(const char *key)
{
    return strpbrk(key, "*?") != NULL;
}

static int change_unknown(struct cli_context *context, enum cli_operation operation,
                          const char *text, bool create)
{
    char key[CLI_KEY_SIZE];
    const struct table *table = context->table.slots ? &context->table : NULL;

    bool well_formed = cli_key_normalise(span_str(text), key, sizeof key);
    if (!create) {
        cli_key_complain(table, span_str(text),
                         well_formed && !is_pattern(key) && operation != CLI_RESET);
        return CLI_WRONG;
    }
    /* Only a well-formed key gets here with `create`: cli_operate() saw to it. */
    struct span claimed = span_str(key);
    struct slot *slot = table_claim(table, table_identity(table, claimed), claimed, true);
    if (!slot) {
        cli_text_complain("no room for this key: the table holds about 700, and frees none; "
                          "`breaker reset --all` makes a fresh one");
        return CLI_WRONG;
    }
    return change(context, operation, slot);
}

/* By the key that the operator knows: its claimer may have been killed before it wrote it, and the
 * policy goes by what is written. */
static struct slot *find(const struct table *table, const char *text)
{
    struct slot *slot = cli_key_find(table, span_str(text));
    char key[CLI_KEY_SIZE];

    if (!slot || !table_key_is_missing(slot) || !cli_key_normalise(span_str(text), key, sizeof key))
        return slot;
    uint64_t identity = table_identity(table, span_str(key));
    if (table_find(table, identity) == slot)
        table_claim(table, identity, span_str(key), true);
    return slot;
}

static int operate_on(struct cli_context *context, enum cli_operation operation, const char *text,
                      bool create)
{
    if (!context->table_sure) {
        cli_text_complain("a bad configuration may name another table: mend it or give --table");
        return CLI_WRONG;
    }
    int error = cli_context_attach(context, create);
    if (error != TABLE_OK && error != TABLE_E_ABSENT)
        return CLI_WRONG;
    struct slot *slot = error == TABLE_OK ? find(&context->table, text) : NULL;
    return slot ? change(context, operation, slot)
                : change_unknown(context, operation, text, create);
}

int cli_operate(enum cli_operation operation, const char *key, bool create)
{
    struct cli_context context;
    char normalised[CLI_KEY_SIZE];

    /* "#<identity>" and cut keys are shown by status and taken here, but are no hosts. */
    bool well_formed = cli_key_normalise(span_of(key, strlen(key)), normalised, sizeof normalised);
    if (!well_formed && !strchr(key, '#')) {
        cli_key_complain_form(span_str(key));
        return CLI_USAGE;
    }
    if (create && is_pattern(key)) {
        cli_text_complain("expected one host or one model, found the pattern '%s': it would make a "
                          "breaker that no call asks",
                          key);
        return CLI_USAGE;
    }
    int code = cli_context_open(&context);
    if (code != CLI_OK)
        return code;
    code = operate_on(&context, operation, key, create && well_formed);
    cli_context_close(&context);
    return code;
}
