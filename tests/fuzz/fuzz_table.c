/* libFuzzer: a table in which anybody may have written anything. Attaching takes it or refuses it
 * and writes nothing; calls of a key are admitted, settled, parked and counted in its own slot
 * alone, and are not refused for ever; `breaker status`, `explain` and `trip` say what a terminal
 * and a JSON reader can bear.
 *
 * The input: 4 bytes, the tick that it is (24 bits) and what command is run; then the table, as
 * records on an empty one (lay_table.h); then, behind a byte of 7 (modulo 8), what calls do. */
#include "capture.h"
#include "lay_table.h"

#include "cli/cli.h"

#include <jansson.h>

static const struct breaker_policy policy = {
    .failure_threshold = 3,
    .degrade_threshold = 2,
    .half_open_probes = 2,
    .success_threshold = 2,
    .backoff_q8 = 512,
    .jitter_q16 = 6554,
    .open_ticks = 900,
    .open_max_ticks = 9000,
    .lease_ticks = 900,
    .failure_rate = 500000,
    .window_ms = 60000,
    .min_calls = 4,
};

/* --- calls ---------------------------------------------------------------------------------------
 */

/* No word keeps calls away for longer than a day, but what an operator forced. A time of noise that
 * is further ahead counts as over now, and would not when it has come near: the call that passes
 * meanwhile writes it anew. */
static void check_heals(const struct slot *s, uint32_t now)
{
    uint32_t later = (now + BREAKER_HORIZON_TICKS + 1) % (UINT32_C(1) << BREAKER_TIME_BITS);
    struct breaker_admission admission = slot_peek(s, now, &policy);
    enum breaker_state state = breaker_effective(slot_word(s), now, &policy).state;

    MUST(admission.wait_ticks <= BREAKER_HORIZON_TICKS);
    MUST((admission.verdict == BREAKER_REFUSE) >= (state == BREAKER_SHOW_FORCED_OPEN));
    MUST(admission.verdict != BREAKER_REFUSE ||
         (state != BREAKER_SHOW_CLOSED && state != BREAKER_SHOW_DEGRADED &&
          state != BREAKER_SHOW_FORCED_CLOSED));
    MUST(admission.verdict != BREAKER_REFUSE || state == BREAKER_SHOW_FORCED_OPEN ||
         slot_peek(s, later, &policy).verdict != BREAKER_REFUSE);
    MUST(slot_cooldown_left(s, COOLDOWN_ALL, now) <= BREAKER_HORIZON_TICKS);
    MUST(slot_cooldown_left(s, COOLDOWN_ALL, now) == 0 ||
         slot_cooldown_left(s, COOLDOWN_ALL, later) == 0);
}

static void call(struct slot *s, uint32_t now, struct span *input)
{
    static const enum breaker_outcome outcomes[] = {BREAKER_NEUTRAL, BREAKER_SUCCESS,
                                                    BREAKER_FAILURE, BREAKER_FAILURE};
    unsigned what = take(input), shard = take(input);
    enum breaker_outcome outcome = outcomes[what % 4];
    struct breaker_extra extra = {.random = (uint16_t)(shard << 8),
                                  .retry_after_ticks = what & 16 ? UINT32_MAX : 0,
                                  .provisional = what & 32};
    struct slot_totals first = slot_totals(s), last;
    struct breaker_admission admission = slot_admit(s, now, &policy, NULL);

    if (admission.verdict == BREAKER_REFUSE) {
        slot_count_refused(s, shard);
        slot_count_rerouted(s, identity_of(what % KEYS), shard, breaker_tick_ns(now), 1000);
    } else {
        slot_settle(s, &admission.ticket, outcome, now + what / 64, &policy, &extra);
        slot_count(s, outcome, shard);
        if (outcome == BREAKER_FAILURE)
            slot_note_failure(s, CAUSE_STATUS, 503, breaker_tick_ns(now));
    }
    if (what & 4) {
        slot_cooldown_set(s, cooldown_credential(shard + 1), 100, now);
        MUST(slot_cooldown_left(s, cooldown_credential(shard + 1), now) >= 100);
    }
    if (what & 8)
        slot_cooldown_clear(s);
    last = slot_totals(s);
    MUST(last.success + last.failure + last.neutral + last.refused ==
         first.success + first.failure + first.neutral + first.refused + 1);
    check_heals(s, now + what / 64);
}

static void check_found(const struct table *t, unsigned key, const struct slot *s)
{
    MUST(s >= t->slots && s < t->slots + TABLE_CAPACITY);
    MUST(s->identity == table_identity(t, keys[key]));
}

/* All that one key's calls do is in the key's slot. */
static void use_key(const struct table *t, unsigned key, uint32_t now, struct span *input)
{
    uint64_t identity = table_identity(t, keys[key]);
    struct slot *s = table_find(t, identity);
    char text[TABLE_KEY_TEXT_SIZE];

    memcpy(before, image, sizeof before);
    if (s) {
        check_found(t, key, s);
        check_heals(s, now);
        check_untouched(SIZE_MAX); /* looking is no touching */
    }
    s = table_claim(t, identity, keys[key], take(input) % 2);
    if (!s) {
        check_untouched(SIZE_MAX);
        return;
    }
    check_found(t, key, s);
    MUST(table_find(t, identity) == s);
    /* Whoever claims it writes the key right again. */
    size_t len = table_key_read(s, text, sizeof text);
    size_t whole = keys[key].len < TABLE_KEY_MAX ? keys[key].len : TABLE_KEY_MAX;
    MUST(len >= whole && memcmp(text, keys[key].ptr, whole) == 0);
    MUST((len == whole) == (keys[key].len <= TABLE_KEY_MAX));
    MUST(table_lookup_text(t, span_of(text, len)) == s);
    for (unsigned calls = take(input) % 16; calls > 0; calls--)
        call(s, now, input);
    check_untouched((size_t)(s - t->slots));
}

/* --- commands ------------------------------------------------------------------------------------
 */

typedef int command(int argc, char **argv);

static void run(command *run_it, char **argv, int code, struct captured *said)
{
    int argc = 0, found;

    while (argv[argc])
        argc++;
    capture_begin();
    found = run_it(argc, argv);
    *said = capture_end();
    MUST(found == code);
}

/* A terminal can bear it: lines of text. */
static void check_harmless(struct span text)
{
    char safe[4096];

    while (text.len > 0) {
        struct span line = span_take(&text, '\n');
        size_t len = line.len < 1000 ? cli_text_safe(line, safe, sizeof safe) : 0;
        MUST(line.len >= 1000 || span_eq(line, span_of(safe, len)));
    }
}

static json_t *check_json(struct span text)
{
    json_error_t error;
    json_t *root =
        json_loadb(text.ptr, text.len,
                   JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, &error);

    MUST(root && json_is_object(root));
    return root;
}

/* Once as text, once as JSON; NULL: there is no table to tell of. */
static void run_status(const struct table *t, bool as_json)
{
    char *text[] = {"breaker status", NULL}, *json[] = {"breaker status", "--json", NULL};
    struct captured said;

    run(cmd_status, as_json ? json : text, t ? CLI_OK : CLI_WRONG, &said);
    check_harmless(said.err);
    MUST(t || said.err.len > 0);
    if (!as_json)
        check_harmless(said.out);
    if (t && as_json) {
        json_t *root = check_json(said.out);
        MUST(json_array_size(json_object_get(root, "breakers")) == table_used(t));
        json_decref(root);
    }
    capture_free(&said);
}

static void run_explain(const struct table *t, bool as_json)
{
    char url[] = "https://api.openai.com/v1/chat/completions";
    char *text[] = {"breaker explain", "--model", "gpt-4o", url, NULL};
    char *json[] = {"breaker explain", "--json", "--model", "gpt-4o", url, NULL};
    struct captured said;

    run(cmd_explain, as_json ? json : text, t ? CLI_OK : CLI_WRONG, &said);
    check_harmless(said.err);
    if (as_json)
        json_decref(check_json(said.out));
    else
        check_harmless(said.out);
    capture_free(&said);
}

/* Changes the one slot that it names; of a key that nobody has, it names the nearest. */
static void run_trip(const struct table *t)
{
    char *known[] = {"breaker trip", "api.openai.com", NULL};
    char *unknown[] = {"breaker trip", "api.openai.con/x", NULL};
    struct captured said;
    struct slot *s = table_find(t, table_identity(t, keys[0]));

    memcpy(before, image, sizeof before);
    run(cmd_trip, known, s ? CLI_OK : CLI_WRONG, &said);
    check_harmless(said.out);
    check_harmless(said.err);
    capture_free(&said);
    check_untouched(s ? (size_t)(s - t->slots) : SIZE_MAX);
    memcpy(before, image, sizeof before);
    run(cmd_trip, unknown, CLI_WRONG, &said);
    check_harmless(said.err);
    capture_free(&said);
    check_untouched(SIZE_MAX);
}

/* A full table takes its time to show: one command at most. */
static void run_command(const struct table *t, unsigned which)
{
    memcpy(before, image, sizeof before);
    if (which % 8 < 2)
        run_status(t, which & 1);
    else if (which % 8 < 4)
        run_explain(t, which & 1);
    MUST(memcmp(before, image, sizeof before) == 0); /* these only look */
    if (which % 8 == 4 && t)
        run_trip(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span input = span_of((const char *)data, size);
    struct table t;

    if (!image)
        set_up();
    uint32_t now = take(&input) | take(&input) << 8 | take(&input) << 16;
    unsigned command_number = take(&input);
    lay_table(&input);
    memcpy(before, image, sizeof before);
    int error = table_attach(&t, path, true);
    MUST(memcmp(before, image, sizeof before) == 0);
    MUST(error == (is_header_good() ? TABLE_OK : TABLE_E_FORMAT) || error == TABLE_E_ABSENT);
    if (error == TABLE_E_ABSENT) /* of another boot */
        return 0;
    for (unsigned i = 0; error == TABLE_OK && i < KEYS; i++)
        use_key(&t, i, now, &input);
    run_command(error == TABLE_OK ? &t : NULL, command_number);
    if (error == TABLE_OK)
        table_close(&t);
    return 0;
}
