/* neutral_body, through the door: a failing answer whose body says that this one conversation is at
 * fault counts for nothing (FIELD-NOTES 7.13); see detour_fixture.h. */
#include "detour_fixture.h"

#define KEY      HOST "/m"
#define TOO_LONG "{\"error\":{\"message\":\"no\",\"code\":\"context_length_exceeded\"}}"
#define TEXTS    "neutral_body=context_length_exceeded, maximum context length"
#define LIMIT    4096

static unsigned streak(void)
{
    return breaker_decode(slot_word(slot_of(KEY))).streak;
}

static struct call_end end_of(unsigned status)
{
    return (struct call_end){.kind = END_COMPLETE,
                             .phase = PHASE_BODY,
                             .status = (uint16_t)status,
                             .byte_received = true,
                             .age_ns = 1};
}

/* The answer to the call in hand, its body in pieces of so many bytes. */
static void answer(unsigned status, struct span body, size_t piece)
{
    const struct call_end end = end_of(status);
    bool more = shim_head(&call, status, SPAN_LIT("application/json"), SPAN_NONE, 0);

    for (; more && body.len > 0; body = span_skip(body, piece))
        more = shim_watch(&call, span_of(body.ptr, body.len < piece ? body.len : piece));
    shim_settle(&call, &end);
}

static void answered(unsigned status, const char *body)
{
    CHECK(chat(&call, "m") == SHIM_ADMITTED);
    answer(status, span_str(body), SIZE_MAX);
}

static void body_excused_answers_open_nothing(void)
{
    for (int i = 0; i < 4; i++)
        answered(500, "{\"error\":\"down\"}");
    for (int i = 0; i < 20; i++)
        answered(i % 2 ? 500 : 503, TOO_LONG);
    CHECK(streak() == 4 && totals_of(KEY).failure == 4 && totals_of(KEY).neutral == 20);
    CHECK(totals_of(HOST).failure == 0 && totals_of(HOST).success == 24);
    answered(500, "This model's maximum context length is 8192 tokens.");
    CHECK(streak() == 4);
    answered(500, "{\"error\":\"down\"}");
    CHECK(chat(&call, "m") == SHIM_REFUSED);
}

/* Nobody needs the body, and what is shown all the same says nothing. */
static void body_without_texts_nothing_is_read(void)
{
    CHECK(chat(&call, "m") == SHIM_ADMITTED);
    CHECK(!shim_head(&call, 500, SPAN_LIT("application/json"), SPAN_NONE, 0));
    shim_watch(&call, SPAN_LIT(TOO_LONG));
    end_status(&call, 500);
    CHECK(totals_of(KEY).failure == 1);
}

/* Case counts, and so do blanks. */
static void body_what_is_not_there_excuses_nothing(void)
{
    static const char *const bodies[] = {"",
                                         "Context_length_exceeded",
                                         "context_length_exceede",
                                         "maximumcontext length",
                                         "maximum, context length",
                                         ", "};

    for (unsigned i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        answered(500, bodies[i]);
        CHECK(streak() == i + 1);
    }
}

static void body_any_cut_finds_the_same(void)
{
    for (size_t piece = 1; piece <= sizeof TOO_LONG; piece++) {
        CHECK(chat(&call, "m") == SHIM_ADMITTED);
        answer(500, SPAN_LIT(TOO_LONG), piece);
        CHECK(totals_of(KEY).neutral == piece && totals_of(KEY).failure == 0);
    }
}

/* The text ends `at` so many bytes of the body. */
static bool excuses_at(size_t at, size_t piece)
{
    static const struct span text = SPAN_LIT("maximum context length");
    static char body[2 * LIMIT];

    memset(body, 'x', sizeof body);
    memcpy(body + at - text.len, text.ptr, text.len);
    CHECK(chat(&call, "m") == SHIM_ADMITTED);
    uint64_t before = totals_of(KEY).neutral;
    answer(500, span_of(body, sizeof body), piece);
    return totals_of(KEY).neutral > before;
}

static void body_the_first_4_kib_are_read(void)
{
    static const size_t pieces[] = {1, 1000, LIMIT, SIZE_MAX};

    for (unsigned i = 0; i < sizeof pieces / sizeof *pieces; i++)
        CHECK(excuses_at(LIMIT, pieces[i]) && !excuses_at(LIMIT + 1, pieces[i]));
}

static struct shim_watched watched;

static void show(struct span bytes)
{
    memset(&watched, 0xa5, sizeof watched); /* a layer has it on its stack */
    shim_watch_ahead(&call, bytes, &watched);
}

/* An application that pauses refuses bytes, and is shown them again. */
static void body_what_is_refused_comes_again(void)
{
    const struct span body = SPAN_LIT(TOO_LONG);

    for (size_t cut = 0; cut <= body.len; cut++) {
        CHECK(chat(&call, "m") == SHIM_ADMITTED);
        CHECK(shim_head(&call, 500, SPAN_NONE, SPAN_NONE, 0));
        show(span_of(body.ptr, cut));
        show(span_of(body.ptr, cut));
        if (shim_watch_taken(&call, &watched)) {
            show(span_skip(body, cut));
            CHECK(!shim_watch_taken(&call, &watched));
        }
        end_status(&call, 500);
        CHECK(totals_of(KEY).neutral == cut + 1 && totals_of(KEY).failure == 0);
    }
    CHECK(chat(&call, "m") == SHIM_ADMITTED && shim_head(&call, 500, SPAN_NONE, SPAN_NONE, 0));
    show(body); /* never taken: the program knows nothing of it */
    end_status(&call, 500);
    CHECK(totals_of(KEY).failure == 1);
}

static void body_a_body_that_cannot_be_read_excuses_nothing(void)
{
    CHECK(chat(&call, "m") == SHIM_ADMITTED);
    CHECK(!shim_head(&call, 500, SPAN_NONE, SPAN_LIT("gzip"), 0));
    shim_watch(&call, SPAN_LIT(TOO_LONG));
    end_status(&call, 500);
    CHECK(streak() == 1);
    CHECK(chat(&call, "m") == SHIM_ADMITTED);
    end_status(&call, 500); /* it was never shown: a HEAD, FAILONERROR, a caller in a hurry */
    CHECK(streak() == 2);
}

static void body_what_the_last_call_saw_is_forgotten(void)
{
    answered(500, TOO_LONG);
    CHECK(chat(&call, "m") == SHIM_ADMITTED);
    end_status(&call, 500);
    answered(500, TOO_LONG);
    answered(500, "down");
    CHECK(streak() == 2 && totals_of(KEY).neutral == 2);
}

/* What was read of it excuses it, as its status would count, whatever came then. */
static void body_however_it_ends(void)
{
    static const enum call_end_kind kinds[] = {END_BROKEN, END_TIMEOUT, END_ABORTED};

    for (unsigned i = 0; i < 3; i++) {
        struct call_end end = end_of(500);
        end.kind = kinds[i];
        end.age_ns = 100 * CLOCK_NS_PER_S;
        CHECK(chat(&call, "m") == SHIM_ADMITTED);
        CHECK(shim_head(&call, 500, SPAN_NONE, SPAN_NONE, 0));
        CHECK(!shim_watch(&call, SPAN_LIT(TOO_LONG)));
        shim_settle(&call, &end);
    }
    CHECK(totals_of(KEY).neutral == 3 && totals_of(KEY).failure == 0);
}

/* Only what would be a failure is excused: a good answer's body has its own rules (stream.h). */
static void body_other_answers_are_what_they_were(void)
{
    answered(500, "down");
    answered(400, TOO_LONG);
    answered(501, TOO_LONG);
    CHECK(streak() == 1 && totals_of(KEY).neutral == 2);
    answered(200, "{\"error\":{\"message\":\"maximum context length\",\"code\":502}}");
    CHECK(streak() == 2);
    answered(200, "{\"choices\":[{\"message\":\"maximum context length\"}]}");
    CHECK(streak() == 0 && totals_of(KEY).success == 1);
}

/* --- probes ---------------------------------------------------------------------------------- */

static void body_a_probe_hands_its_grant_back(void)
{
    trip("m");
    for (int i = 0; i < 3; i++) {
        advance(i == 0 ? 31 : 0);
        CHECK(chat(&call, "m") == SHIM_ADMITTED && shim_is_probe(&call));
        answer(500, SPAN_LIT(TOO_LONG), 7);
        CHECK(phase_of(KEY) == BREAKER_HALF_OPEN);
    }
    CHECK(chat(&call, "m") == SHIM_ADMITTED && shim_is_probe(&call));
    answer(500, SPAN_LIT("down"), 7);
    CHECK(phase_of(KEY) == BREAKER_OPEN && chat(&call, "m") == SHIM_REFUSED);
    advance(61);
    CHECK(chat(&call, "m") == SHIM_ADMITTED);
    answer(200, SPAN_LIT("{}"), 7);
    CHECK(phase_of(KEY) == BREAKER_CLOSED);
}

/* --- elsewhere than at M --------------------------------------------------------------------- */

static void body_a_host_alone_is_excused_too(void)
{
    for (int i = 0; i < 9; i++) {
        CHECK(open_path(&call, "/v1/chat/completions") == SHIM_READY);
        CHECK(shim_admit(&call) == SHIM_ADMITTED);
        answer(500, i == 8 ? SPAN_LIT("down") : SPAN_LIT(TOO_LONG), 7);
    }
    CHECK(totals_of(HOST).neutral == 8 && totals_of(HOST).failure == 1);
    CHECK(!slot_of(KEY));
}

static void body_a_target_has_texts_of_its_own(void)
{
    configure("[breaker]\nneutral_body = context_length\n"
              "[target own]\nmatch = " HOST "/own\nneutral_body = too long\n"
              "[target none]\nmatch = " HOST "/none\nneutral_body =\n");
    static const struct {
        const char *model, *body;
        bool excused;
    } cases[] = {{"m", TOO_LONG, true},
                 {"m", "too long", false},
                 {"own", TOO_LONG, false},
                 {"own", "too long, so", true},
                 {"none", TOO_LONG, false}};

    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        char key[40];
        snprintf(key, sizeof key, HOST "/%s", cases[i].model);
        CHECK(chat(&call, cases[i].model) == SHIM_ADMITTED);
        uint64_t before = totals_of(key).neutral;
        answer(500, span_str(cases[i].body), 7);
        CHECK((totals_of(key).neutral > before) == cases[i].excused);
    }
    clean_up();
}

static void body_it_is_in_no_share(void)
{
    for (int i = 0; i < 30; i++)
        answered(500, TOO_LONG);
    for (int i = 0; i < 20; i++)
        answered(i % 2 ? 500 : 200, i % 2 ? "down" : "{}"); /* 10 of 20 */
    CHECK(chat(&call, "m") == SHIM_REFUSED);
    CHECK(totals_of(KEY).failure == 10 && totals_of(KEY).neutral == 30);
}

/* --- cool-downs ------------------------------------------------------------------------------ */

static enum shim_verdict ask_as(const char *credential)
{
    CHECK(open_path(&call, "/v1/chat/completions") == SHIM_NEEDS_BODY);
    shim_credential(&call, span_str(credential));
    CHECK(shim_body(&call, body_of("m"), true));
    return shim_admit(&call);
}

static void body_it_parks_nobody(void)
{
    CHECK(ask_as("a") == SHIM_ADMITTED);
    answer(503, SPAN_LIT(TOO_LONG), 7);
    CHECK(ask_as("a") == SHIM_ADMITTED);
    answer(503, SPAN_LIT("down"), 7);
    CHECK(ask_as("a") == SHIM_REFUSED && ask_as("b") == SHIM_REFUSED);
    CHECK(totals_of(KEY).neutral == 1 && totals_of(KEY).failure == 1);
}

#define SPENT "{\"error\":{\"code\":\"insufficient_quota\"}}"

/* Where a 429 counts it may be excused, and then it says nothing of the credential either; both are
 * looked for in the same body. */
static void body_a_429_that_counts(void)
{
    CHECK(ask_as("a") == SHIM_ADMITTED);
    answer(429, SPAN_LIT(SPENT TOO_LONG), 7);
    CHECK(totals_of(KEY).neutral == 1);
    CHECK(ask_as("a") == SHIM_ADMITTED);
    answer(429, SPAN_LIT("slow down"), 7);
    CHECK(streak() == 1);
    CHECK(ask_as("a") == SHIM_ADMITTED);
    answer(429, SPAN_LIT(SPENT), 7);
    CHECK(streak() == 2 && ask_as("a") == SHIM_REFUSED && ask_as("b") == SHIM_ADMITTED);
}

static void body_a_429_that_counts_for_nothing_parks(void)
{
    CHECK(ask_as("a") == SHIM_ADMITTED);
    answer(429, SPAN_LIT(SPENT TOO_LONG), 7);
    CHECK(ask_as("a") == SHIM_REFUSED && totals_of(KEY).failure == 0);
}

IN_CHILD(excused_answers_open_nothing, TEXTS)
IN_CHILD(without_texts_nothing_is_read, "neutral_body=")
IN_CHILD(what_is_not_there_excuses_nothing, TEXTS "\nfailure_threshold=0")
IN_CHILD(any_cut_finds_the_same, TEXTS)
IN_CHILD(the_first_4_kib_are_read, TEXTS "\nfailure_threshold=0")
IN_CHILD(what_is_refused_comes_again, TEXTS)
IN_CHILD(a_body_that_cannot_be_read_excuses_nothing, TEXTS)
IN_CHILD(what_the_last_call_saw_is_forgotten, TEXTS)
IN_CHILD(however_it_ends, TEXTS)
IN_CHILD(other_answers_are_what_they_were, TEXTS)
IN_CHILD(a_probe_hands_its_grant_back, TEXTS)
IN_CHILD(a_host_alone_is_excused_too, TEXTS "\nscope=host")
IN_CHILD(a_target_has_texts_of_its_own, "")
IN_CHILD(it_is_in_no_share, TEXTS "\nfailure_rate=0.5\nmin_calls=20")
IN_CHILD(it_parks_nobody, TEXTS "\ncooldown_seconds=60")
IN_CHILD(a_429_that_counts, TEXTS "\nrate_limit=cooldown, count")
IN_CHILD(a_429_that_counts_for_nothing_parks, TEXTS)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_excused_answers_open_nothing),
        cmocka_unit_test(test_without_texts_nothing_is_read),
        cmocka_unit_test(test_what_is_not_there_excuses_nothing),
        cmocka_unit_test(test_any_cut_finds_the_same),
        cmocka_unit_test(test_the_first_4_kib_are_read),
        cmocka_unit_test(test_what_is_refused_comes_again),
        cmocka_unit_test(test_a_body_that_cannot_be_read_excuses_nothing),
        cmocka_unit_test(test_what_the_last_call_saw_is_forgotten),
        cmocka_unit_test(test_however_it_ends),
        cmocka_unit_test(test_other_answers_are_what_they_were),
        cmocka_unit_test(test_a_probe_hands_its_grant_back),
        cmocka_unit_test(test_a_host_alone_is_excused_too),
        cmocka_unit_test(test_a_target_has_texts_of_its_own),
        cmocka_unit_test(test_it_is_in_no_share),
        cmocka_unit_test(test_it_parks_nobody),
        cmocka_unit_test(test_a_429_that_counts),
        cmocka_unit_test(test_a_429_that_counts_for_nothing_parks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
