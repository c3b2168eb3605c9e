/* One attempt, however many addresses it walks, is at most one outcome; see shim_fixture.h. */
#include "shim_fixture.h"

#include "sock_attempt.h"
#include "table/slot.h"

/* Connects of a name with two addresses, as the connect hook makes them. */
static struct sock_conn conns[32];

static struct sock_conn *connect_begun(unsigned number, unsigned index, uint64_t started_ns)
{
    struct sock_conn *conn = &conns[number];
    struct shim_request host = {.scheme = SPAN_LIT("https"),
                                .host = SPAN_LIT("api.openai.com"),
                                .port = 443,
                                .path = SPAN_LIT("")};

    conn->pending = conn->shares = false;
    conn->started_ns = started_ns;
    conn->place = (struct sock_place){.name = "api.openai.com",
                                      .name_len = 14,
                                      .port = 443,
                                      .address_count = 2,
                                      .address_index = (uint8_t)index,
                                      .resolution = 1};
    CHECK(shim_open(&conn->host, &host) == SHIM_READY);
    return sock_attempt_admit(conn) == SHIM_ADMITTED ? conn : NULL;
}

static struct sock_conn *connect_to(unsigned number, unsigned index)
{
    return connect_begun(number, index, shim_mono_ns());
}

static void fail_as(struct sock_conn *conn, enum call_end_kind kind, double age, bool blamed)
{
    const struct call_end end = {
        .kind = kind, .phase = PHASE_CONNECTING, .age_ns = (uint64_t)(age * 1e9)};

    CHECK(conn);
    sock_attempt_failed(conn, &end, blamed);
}

static void refuse(struct sock_conn *conn)
{
    fail_as(conn, END_CONNECT, 0.001, true);
}

/* The connect, and the first byte after it. */
static void succeed(struct sock_conn *conn)
{
    CHECK(conn);
    sock_attempt_connected(conn);
    shim_received(&conn->host);
    shim_drop(&conn->host);
}

static struct slot_totals totals(void)
{
    return totals_of("api.openai.com");
}

static void walk_in_vain(void)
{
    refuse(connect_to(0, 0));
    refuse(connect_to(0, 1));
}

static void body_a_walk_in_vain_is_one_failure(void)
{
    for (uint64_t i = 1; i <= 5; i++) {
        walk_in_vain();
        CHECK(totals().failure == i);
    }
    CHECK(!connect_to(0, 0) && !connect_to(0, 1));
}

static void body_a_walk_that_arrives_is_none(void)
{
    for (int i = 0; i < 20; i++) {
        refuse(connect_to(0, 0));
        succeed(connect_to(0, 1));
    }
    CHECK(totals().failure == 0 && totals().success == 20);
}

/* Twenty at once, whose first address is refused before any of them tries the second. */
static void body_many_at_once(void)
{
    struct sock_conn *first[20], *second[20];

    for (unsigned i = 0; i < 20; i++)
        first[i] = connect_to(i, 0);
    for (unsigned i = 0; i < 20; i++)
        refuse(first[i]);
    for (unsigned i = 0; i < 20; i++)
        second[i] = connect_to(i, 1);
    for (unsigned i = 0; i < 16; i++)
        succeed(second[i]);
    CHECK(totals().failure == 0);
    for (unsigned i = 16; i < 20; i++)
        refuse(second[i]);
    CHECK(totals().failure == 4);
    advance(1);
    walk_in_vain();
    CHECK(totals().failure == 5);
}

/* A program that takes the first address only: known when it comes again, or ends. */
static void body_who_goes_no_further(void)
{
    for (uint64_t i = 0; i < 3; i++) {
        refuse(connect_to(0, 0));
        CHECK(totals().failure == i);
        advance(1);
    }
    sock_attempt_finish();
    CHECK(totals().failure == 3);
    sock_attempt_finish();
    CHECK(totals().failure == 3);
}

/* Nothing becomes of those that are under way. */
static void body_a_fence(void)
{
    refuse(connect_to(0, 0));
    sock_attempt_drop();
    advance(1);
    sock_attempt_finish();
    CHECK(totals().failure == 0);
}

/* The second address takes long: the attempt goes on as long as it does. */
static void body_a_long_walk_goes_on(void)
{
    struct sock_conn *slow;

    refuse(connect_to(0, 0));
    slow = connect_to(1, 1);
    advance(5);
    succeed(connect_to(2, 0)); /* somebody else's */
    CHECK(totals().failure == 0);
    fail_as(slow, END_ABORTED, 5, true); /* given up after connect_hang_after */
    advance(1);
    succeed(connect_to(0, 0));
    CHECK(totals().failure == 1 && totals().success == 2);
}

/* A thread that looked at the clock before another one's connect was refused comes after it. */
static void body_looks_at_the_clock_cross(void)
{
    uint64_t before = shim_mono_ns();

    advance(0.001);
    refuse(connect_to(0, 0));
    succeed(connect_begun(1, 1, before));
    struct sock_conn *slow = connect_to(2, 0);
    before = shim_mono_ns();
    advance(0.001);
    refuse(connect_to(0, 0));
    succeed(connect_begun(1, 1, before));
    succeed(slow);
    CHECK(totals().failure == 0 && totals().success == 3);
}

/* Happy eyeballs: given up early, or no route at all, says nothing; what is refused then does. */
static void body_addresses_given_up_early(void)
{
    fail_as(connect_to(0, 0), END_ABORTED, 0.25, false);
    succeed(connect_to(0, 1));
    fail_as(connect_to(0, 0), END_LOCAL, 0.001, false);
    fail_as(connect_to(0, 1), END_ABORTED, 0.25, false);
    CHECK(totals().failure == 0 && totals().success == 1);
    fail_as(connect_to(0, 0), END_LOCAL, 0.001, false);
    refuse(connect_to(0, 1));
    CHECK(totals().failure == 1);
}

/* What the program waited for is the whole walk. */
static void body_a_walk_given_up_when_old(void)
{
    struct sock_conn *slow = connect_to(0, 0);

    advance(2);
    fail_as(slow, END_ABORTED, 2, true);
    slow = connect_to(1, 1);
    advance(2);
    fail_as(slow, END_ABORTED, 2, true);
    CHECK(totals().failure == 1);
    fail_as(connect_to(0, 0), END_CONNECT, 0.001, true);
    fail_as(connect_to(0, 1), END_ABORTED, 0.02, true); /* a cancellation */
    CHECK(totals().failure == 1);
}

/* Admitted and then taken elsewhere: nobody waits for how that went. */
static void body_a_step_that_went_elsewhere(void)
{
    refuse(connect_to(0, 0));
    struct sock_conn *gone = connect_to(1, 1);
    CHECK(gone && gone->pending);
    sock_attempt_withdraw(gone);
    CHECK(!gone->pending && totals().failure == 0);
    shim_drop(&gone->host);
    advance(1);
    succeed(connect_to(0, 0));
    CHECK(totals().failure == 1 && totals().success == 1);
}

static void open_it(void)
{
    for (int i = 0; i < 5; i++)
        walk_in_vain();
    CHECK(!connect_to(0, 0));
    advance(31);
}

static bool is_open(void)
{
    static struct shim_call other;
    struct shim_request host = {.scheme = SPAN_LIT("https"),
                                .host = SPAN_LIT("api.openai.com"),
                                .port = 443,
                                .path = SPAN_LIT("")};

    CHECK(shim_open(&other, &host) == SHIM_READY);
    return shim_admit(&other) == SHIM_REFUSED;
}

/* The first refusal of a probe must not re-open, nor the second connect be denied. */
static void body_a_grant_covers_the_walk(void)
{
    open_it();
    struct sock_conn *first = connect_to(0, 0);
    CHECK(first && is_open());
    refuse(first);
    CHECK(is_open());
    struct sock_conn *second = connect_to(1, 1);
    CHECK(second && !connect_to(2, 1) && is_open()); /* one connect to each */
    succeed(second);
    CHECK(!is_open() && totals().failure == 5);
}

static void body_a_grant_in_parallel(void)
{
    open_it();
    struct sock_conn *first = connect_to(0, 0), *second = connect_to(1, 1);
    CHECK(first && second && !connect_to(2, 0));
    succeed(second);
    fail_as(first, END_ABORTED, 0.3, false); /* abandoned */
    CHECK(!is_open() && totals().failure == 5);
}

/* Two probes at a time: the second does not hand the first one's grant back. */
static void body_two_grants(void)
{
    open_it();
    struct sock_conn *first = connect_to(0, 0);
    struct sock_conn *other = connect_to(1, 0); /* another attempt: its own grant */
    CHECK(first && other && is_open());
    succeed(other);
    succeed(first);
    CHECK(!is_open());
}

static void body_a_grant_before_a_fence(void)
{
    open_it();
    fail_as(connect_to(0, 0), END_LOCAL, 0.001, false);
    CHECK(is_open()); /* it is the attempt's, which may go on */
    sock_attempt_drop();
    CHECK(!is_open() && totals().failure == 5);
}

static void body_a_grant_in_vain(void)
{
    open_it();
    walk_in_vain();
    CHECK(totals().failure == 6 && is_open());
    advance(31);
    CHECK(is_open()); /* twice as long */
    advance(31);
    fail_as(connect_to(0, 0), END_LOCAL, 0.001, false);
    fail_as(connect_to(0, 1), END_LOCAL, 0.001, false);
    CHECK(totals().failure == 6);
    struct sock_conn *probe = connect_to(0, 0); /* handed back */
    refuse(probe);
    advance(1);
    CHECK(!connect_to(1, 0)); /* it went no further, that was the failure */
    CHECK(totals().failure == 7);
}

IN_CHILD(a_walk_in_vain_is_one_failure, "")
IN_CHILD(a_walk_that_arrives_is_none, "")
IN_CHILD(many_at_once, "")
IN_CHILD(who_goes_no_further, "")
IN_CHILD(a_fence, "")
IN_CHILD(a_grant_before_a_fence, "")
IN_CHILD(a_long_walk_goes_on, "")
IN_CHILD(looks_at_the_clock_cross, "")
IN_CHILD(addresses_given_up_early, "")
IN_CHILD(a_walk_given_up_when_old, "")
IN_CHILD(a_step_that_went_elsewhere, "")
IN_CHILD(a_grant_covers_the_walk, "")
IN_CHILD(a_grant_in_parallel, "")
IN_CHILD(two_grants, "half_open_probes=2")
IN_CHILD(a_grant_in_vain, "")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_walk_in_vain_is_one_failure),
        cmocka_unit_test(test_a_walk_that_arrives_is_none),
        cmocka_unit_test(test_many_at_once),
        cmocka_unit_test(test_who_goes_no_further),
        cmocka_unit_test(test_a_fence),
        cmocka_unit_test(test_a_grant_before_a_fence),
        cmocka_unit_test(test_a_long_walk_goes_on),
        cmocka_unit_test(test_looks_at_the_clock_cross),
        cmocka_unit_test(test_addresses_given_up_early),
        cmocka_unit_test(test_a_walk_given_up_when_old),
        cmocka_unit_test(test_a_step_that_went_elsewhere),
        cmocka_unit_test(test_a_grant_covers_the_walk),
        cmocka_unit_test(test_a_grant_in_parallel),
        cmocka_unit_test(test_two_grants),
        cmocka_unit_test(test_a_grant_in_vain),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
