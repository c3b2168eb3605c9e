/* How long a breaker stays open and what closes it, as the keys of breaker.ini say; see
 * detour_fixture.h. */
#include "detour_fixture.h"

#define KEY HOST "/m"

/* Its open time is over after so many seconds, and no sooner; the probe that finds out ends so. */
static void stays_open(double seconds, unsigned status)
{
    advance(seconds - 0.2);
    CHECK(call_status("m", 200) == SHIM_REFUSED);
    advance(0.4);
    CHECK(call_status("m", status) == SHIM_ADMITTED);
}

static void body_as_open_seconds_says(void)
{
    trip("m");
    stays_open(30, 500);
    stays_open(60, 500);
    stays_open(120, 200);
    CHECK(phase_of(KEY) == BREAKER_CLOSED);
}

static void body_backed_off_to_the_longest(void)
{
    trip("m");
    stays_open(30, 500);
    stays_open(90, 500);
    stays_open(200, 500); /* not 270 */
    stays_open(200, 200);
}

static void body_not_backed_off(void)
{
    trip("m");
    for (int i = 0; i < 5; i++)
        stays_open(30, 500);
}

/* What is added differs from trip to trip. */
static void body_with_jitter(void)
{
    double least = 1000, most = 0;
    char model[16], key[64];

    for (int i = 0; i < 40; i++) {
        snprintf(model, sizeof model, "m%d", i);
        trip(model);
        snprintf(key, sizeof key, HOST "/%s", model);
        uint32_t until = breaker_decode(slot_word(slot_of(key))).time;
        double seconds = (double)breaker_tick_ns(until - breaker_tick(boot)) / 1e9;
        least = seconds < least ? seconds : least;
        most = seconds > most ? seconds : most;
    }
    CHECK(least >= 30 && most <= 45.1);
    CHECK(most - least > 5);
}

static void body_so_many_successes_close(void)
{
    trip("m");
    advance(31);
    for (int i = 0; i < 2; i++) {
        CHECK(call_status("m", 200) == SHIM_ADMITTED);
        CHECK(phase_of(KEY) == BREAKER_HALF_OPEN);
    }
    CHECK(call_status("m", 200) == SHIM_ADMITTED);
    CHECK(phase_of(KEY) == BREAKER_CLOSED);
}

static void body_so_many_probes_at_a_time(void)
{
    static struct shim_call probes[3];

    trip("m");
    advance(31);
    for (int i = 0; i < 3; i++)
        CHECK(chat(&probes[i], "m") == SHIM_ADMITTED && shim_is_probe(&probes[i]));
    CHECK(call_status("m", 200) == SHIM_REFUSED);
    shim_drop(&probes[0]);
    CHECK(chat(&probes[0], "m") == SHIM_ADMITTED);
    CHECK(call_status("m", 200) == SHIM_REFUSED);
}

/* The lease of one that never answers. */
static void body_a_lost_probe_keeps_its_place_so_long(void)
{
    static struct shim_call lost;

    trip("m");
    advance(31);
    CHECK(chat(&lost, "m") == SHIM_ADMITTED && shim_is_probe(&lost));
    stays_open(50, 200);
    CHECK(phase_of(KEY) == BREAKER_CLOSED);
}

IN_CHILD(as_open_seconds_says, "")
IN_CHILD(backed_off_to_the_longest, "backoff=3\nopen_max=200")
IN_CHILD(not_backed_off, "backoff=1")
IN_CHILD(with_jitter, "jitter=0.5")
IN_CHILD(so_many_successes_close, "success_threshold=3")
IN_CHILD(so_many_probes_at_a_time, "half_open_probes=3")
IN_CHILD(a_lost_probe_keeps_its_place_so_long, "probe_lease=50")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_open_seconds_says),
        cmocka_unit_test(test_backed_off_to_the_longest),
        cmocka_unit_test(test_not_backed_off),
        cmocka_unit_test(test_with_jitter),
        cmocka_unit_test(test_so_many_successes_close),
        cmocka_unit_test(test_so_many_probes_at_a_time),
        cmocka_unit_test(test_a_lost_probe_keeps_its_place_so_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
