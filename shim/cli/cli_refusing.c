#include "cli/cli.h"

#include "base/clock.h"

#include <stdlib.h>

struct refusing {
    char key[TABLE_KEY_TEXT_SIZE];
    struct cli_row row;
};

/* Does each of these keys have a say in some call of the other: a host's, and one of its models? */
static bool share_calls(struct span one, struct span other)
{
    struct span host, model, other_host, other_model;

    cli_key_split(one, &host, &model);
    cli_key_split(other, &other_host, &other_model);
    return span_eq(host, other_host) && !model.ptr != !other_model.ptr;
}

static bool refuses(const struct cli_row *row)
{
    switch (row->effective.state) {
    case BREAKER_SHOW_OPEN:
    case BREAKER_SHOW_HALF_OPEN:
    case BREAKER_SHOW_FORCED_OPEN:
        return true;
    case BREAKER_SHOW_FORCED_CLOSED:
        return false;
    default:
        return row->parked > 0;
    }
}

static bool read_refusing(const struct cli_context *context, const struct slot *slot,
                          struct span key, struct refusing *out)
{
    struct policy policy;

    if (atomic_load_explicit(&slot->identity, memory_order_acquire) == 0)
        return false;
    struct span other = span_of(out->key, table_key_read(slot, out->key, sizeof out->key));
    if (!share_calls(key, other))
        return false;
    cli_context_policy(context, other, &policy);
    cli_row_read(slot, &policy, clock_system.boot_ns(), &out->row);
    return policy.mode == MODE_ENFORCE && refuses(&out->row);
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct refusing *)a)->key, ((const struct refusing *)b)->key);
}

static void print(const struct refusing *refusing)
{
    const struct cli_row *row = &refusing->row;
    char safe[4 * TABLE_KEY_TEXT_SIZE], wait[32], who[16];

    cli_text_safe(span_str(refusing->key), safe, sizeof safe);
    printf("  %s: %s", safe, breaker_state_name(row->effective.state));
    if (cli_row_is_due(row))
        fputs(", probe due", stdout);
    else if (row->effective.state == BREAKER_SHOW_OPEN)
        printf(", probe in %s", cli_text_duration(row->retry_in_ms, wait, sizeof wait));
    if (row->parked)
        printf(", %s cooling down (%s)", cli_row_parked(row, who, sizeof who),
               cli_text_duration(row->parked_ms, wait, sizeof wait));
    putchar('\n');
}

void cli_refusing_tell(const struct cli_context *context, struct span key)
{
    struct refusing *list = calloc(TABLE_CAPACITY, sizeof *list);
    size_t count = 0;

    if (!list)
        return;
    for (unsigned i = 0; i < TABLE_CAPACITY; i++)
        count += read_refusing(context, &context->table.slots[i], key, &list[count]);
    qsort(list, count, sizeof *list, by_key);
    if (count > 0)
        puts("still refusing (a call needs its host's breaker and its model's):");
    for (size_t i = 0; i < count; i++)
        print(&list[i]);
    free(list);
}
