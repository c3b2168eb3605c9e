/* The book of names beside threads that write it, and in a child that was forked meanwhile. */
#include "child_check.h"
#include "sock_names_fixture.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

static atomic_bool stop;

static void stress_learn(const char *node, unsigned from, unsigned count, unsigned port)
{
    struct sockaddr_in addresses[8] = {0};
    struct addrinfo infos[8] = {0};

    for (unsigned i = 0; i < count; i++) {
        addresses[i] = (struct sockaddr_in){.sin_family = AF_INET,
                                            .sin_port = htons((uint16_t)port),
                                            .sin_addr.s_addr = htonl(0x0a140000 + from + i)};
        infos[i] = (struct addrinfo){.ai_family = AF_INET,
                                     .ai_addrlen = sizeof addresses[i],
                                     .ai_addr = (struct sockaddr *)&addresses[i],
                                     .ai_next = i + 1 < count ? &infos[i + 1] : NULL};
    }
    sock_names_learn(node, AF_INET, infos, now);
}

/* The set of "turn.a" or "turn.b" is always the one half or the other, of four or three. */
static void *turn(void *name)
{
    unsigned base = strcmp(name, "turn.a") == 0 ? 0 : 100;

    for (unsigned i = 0; !atomic_load(&stop); i++)
        stress_learn(name, base + (i % 2) * 8, i % 2 ? 3 : 4, 443);
    return NULL;
}

static void *look(void *data)
{
    unsigned long *named = data;

    for (unsigned i = 0; i < 100000; i++) {
        unsigned at = i % 8 + (i / 8 % 2) * 8 + (i / 16 % 2) * 100;
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_port = htons(443),
                                      .sin_addr.s_addr = htonl(0x0a140000 + at)};
        struct sock_place place;
        if (!sock_names_find((struct sockaddr *)&address, sizeof address, now, &place))
            abort();
        if (place.resolution == 0)
            continue; /* not yet learnt, none of theirs, or no consistent view: then shared */
        if (strcmp(place.name, at < 100 ? "turn.a" : "turn.b") != 0 || place.name_len != 6 ||
            (place.address_count != 4 && place.address_count != 3) ||
            (place.address_index != SOCK_NAMES_UNKNOWN &&
             (place.address_index >= place.address_count ||
              place.address_count != (at % 100 < 8 ? 4 : 3))))
            abort();
        ++*named;
    }
    return NULL;
}

static void readers_see_whole_results(void **state)
{
    pthread_t writers[2], readers[2];
    unsigned long named[2] = {0};

    (void)state;
    stress_learn("turn.a", 0, 4, 443);
    stress_learn("turn.b", 100, 4, 443);
    pthread_create(&writers[0], NULL, turn, "turn.a");
    pthread_create(&writers[1], NULL, turn, "turn.b");
    for (int i = 0; i < 2; i++)
        pthread_create(&readers[i], NULL, look, &named[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(readers[i], NULL);
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++)
        pthread_join(writers[i], NULL);
    assert_true(named[0] + named[1] > 0);
}

/* Who waits for a writer has nothing by which it could be seen to. */
static void somebody_else_runs(void)
{
    const struct timespec a_slice = {0, 5000000};

    nanosleep(&a_slice, NULL);
}

/* A writer whose core is somebody else's for a while, in the middle of its work. */
static void *write_slowly(void *begun)
{
    assert_true(sock_lock(&sock_book.lock));
    atomic_fetch_add(&sock_book.version, 1);
    atomic_store((atomic_bool *)begun, true);
    somebody_else_runs();
    atomic_fetch_add(&sock_book.version, 1);
    sock_unlock(&sock_book.lock);
    return NULL;
}

static void begin_slowly(pthread_t *writer)
{
    atomic_bool begun = false;

    pthread_create(writer, NULL, write_slowly, &begun);
    while (!atomic_load(&begun))
        sched_yield();
}

static void a_slow_writer_is_waited_for(void **state)
{
    pthread_t writer;

    (void)state;
    learn("slow.a", AF_UNSPEC, "10.15.0.1", 443);
    begin_slowly(&writer);
    assert_name("10.15.0.1", 443, "slow.a");
    assert_false(find("10.15.0.1", 443).shared);
    pthread_join(writer, NULL);
    begin_slowly(&writer);
    learn("slow.b", AF_UNSPEC, "10.15.0.2", 443);
    pthread_join(writer, NULL);
    assert_name("10.15.0.2", 443, "slow.b");
    assert_false(find("10.15.0.2", 443).shared);
}

static void body_whole(void)
{
    sock_names_in_child();
    CHECK(strcmp(find("10.14.0.1", 443).name, "fork.example") == 0);
    CHECK(!find("10.14.0.1", 443).shared);
    learn("fork.child", AF_UNSPEC, "10.14.0.2", 443); /* it can be written */
    CHECK(strcmp(find("10.14.0.2", 443).name, "fork.child") == 0);
}

/* As if a writer, here this test, was at work all the time that the fork waits. */
static void body_half(void)
{
    sock_names_in_child();
    CHECK(strcmp(find("10.14.0.1", 443).name, "10.14.0.1") == 0);
    CHECK(find("10.14.0.1", 443).shared);
    learn("fork.child", AF_UNSPEC, "10.14.0.2", 443);
    CHECK(strcmp(find("10.14.0.2", 443).name, "fork.child") == 0);
    CHECK(find("10.14.0.2", 443).shared);
    now += HOUR;
    learn("fork.child", AF_UNSPEC, "10.14.0.2", 443);
    CHECK(!find("10.14.0.2", 443).shared);
}

static void *hold_the_lock(void *data)
{
    (void)data;
    sock_names_before_fork();
    return NULL;
}

static void a_child_never_finds_it_locked(void **state)
{
    pthread_t holder;

    (void)state;
    now += HOUR;
    learn("fork.example", AF_UNSPEC, "10.14.0.1", 443);
    sock_names_before_fork();
    assert_true(child_ends_well(body_whole));
    sock_names_after_fork();
    learn("fork.parent", AF_UNSPEC, "10.14.0.3", 443);
    assert_name("10.14.0.3", 443, "fork.parent");

    pthread_create(&holder, NULL, hold_the_lock, NULL);
    pthread_join(holder, NULL);
    sock_names_before_fork(); /* gives up */
    assert_true(child_ends_well(body_half));
    sock_names_after_fork();

    /* The lock is held for ever: nothing is learnt, nobody waits for long, further names are
     * marked. */
    learn("fork.late", AF_UNSPEC, "10.14.0.1 10.14.0.4", 443);
    assert_numeric("10.14.0.4", 443, "10.14.0.4");
    assert_name("10.14.0.1", 443, "fork.example");
    assert_true(find("10.14.0.1", 443).shared);
    assert_false(find("10.14.0.3", 443).shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_see_whole_results),
        cmocka_unit_test(a_slow_writer_is_waited_for),
        /* the last: leaves it locked */
        cmocka_unit_test(a_child_never_finds_it_locked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
