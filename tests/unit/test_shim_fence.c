/* A process that gives up system calls (shim_fence): what is under way is neutral and handed back,
 * nothing comes about any more, and no function asks the kernel. */
#include "detour_fixture.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static struct shim_call second;

static void take_the_probe(struct shim_call *one)
{
    CHECK(chat(one, "m") == SHIM_ADMITTED && shim_is_probe(one));
}

/* A probe is under way in a process that is fenced in now. */
static void fence_a_probe(void)
{
    trip("m");
    advance(31);
    take_the_probe(&call);
    CHECK(chat(&second, "m") == SHIM_REFUSED);
    shim_fence();
    CHECK(shim_fenced() && shim_disabled());
}

/* Whether the fence stood or not. */
static void assert_handed_back(void)
{
    struct slot_totals totals = totals_of(HOST "/m");

    shim_unfence();
    CHECK(!shim_fenced() && !shim_disabled());
    take_the_probe(&second);
    CHECK(totals_of(HOST "/m").success == totals.success &&
          totals_of(HOST "/m").failure == totals.failure);
}

static void body_a_probe_that_is_dropped(void)
{
    fence_a_probe();
    shim_drop(&call);
    assert_handed_back();
}

static void body_a_probe_that_ends_well_is_neutral(void)
{
    fence_a_probe();
    end_status(&call, 200);
    CHECK(!shim_admitted(&call));
    assert_handed_back();
}

static void body_a_probe_that_fails_is_neutral(void)
{
    fence_a_probe();
    CHECK(!shim_watches(&call));
    shim_received(&call);
    end_kind(&call, END_CONNECT, PHASE_CONNECTING, 1);
    assert_handed_back();
}

/* Each fence ends an epoch: programs ask for one of all threads, are refused, and go on to ask for
 * their own, or put one around the other. */
static void body_a_probe_behind_two_fences(void)
{
    fence_a_probe();
    shim_unfence();
    shim_fence();
    shim_fence();
    end_status(&call, 200);
    CHECK(!shim_admitted(&call));
    shim_unfence();
    assert_handed_back();
}

/* A parent's is the parent's, in the child of a process that was fenced in as well. */
static void body_a_child_hands_nothing_back(void)
{
    int status;

    fence_a_probe();
    pid_t child = fork();
    if (child == 0) {
        shim_fence();
        end_status(&call, 200);
        CHECK(shim_fenced());
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    shim_unfence();
    CHECK(chat(&second, "m") == SHIM_REFUSED);
}

/* Of two that are tried one stands. */
static void body_one_of_two(void)
{
    CHECK(call_status("m", 200) == SHIM_ADMITTED);
    shim_fence();
    shim_fence();
    shim_unfence();
    CHECK(shim_fenced() && open_path(&call, "/v1/chat/completions") == SHIM_UNCOVERED);
    shim_unfence();
    CHECK(!shim_fenced() && call_status("m", 200) == SHIM_ADMITTED);
    CHECK(totals_of(HOST "/m").success == 2);
}

static void body_nothing_is_loaded(void)
{
    configure(TARGET(""));
    shim_fence();
    CHECK(open_path(&call, "/v1/chat/completions") == SHIM_UNCOVERED);
    CHECK(access(getenv("BREAKER_TABLE"), F_OK) != 0);
    shim_unfence();
    CHECK(call_status("m", 200) == SHIM_ADMITTED && access(getenv("BREAKER_TABLE"), F_OK) == 0);
    clean_up();
}

/* By the clocks of the system, in a configuration with a log. */
static void body_the_kernel_is_not_asked(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    const struct sock_fprog program = {.len = sizeof rules / sizeof *rules, .filter = rules};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    printf("not under a sanitizer, whose own calls would end the child: the filter is left out\n");
    return;
#endif
    configure(TARGET("open_seconds = 1"));
    shim_set_clock(NULL);
    CHECK(chat(&call, "m") == SHIM_ADMITTED && chat(&second, "n") == SHIM_ADMITTED);
    clean_up();
    shim_fence();
    uint64_t before = shim_mono_ns();
#if defined(__x86_64__)
    CHECK(prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) ==
          0); /* as strict mode: no clock by the vDSO */
#endif
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0);
    for (int i = 0; i < 1000; i++) {
        end_kind(&call, END_CONNECT, PHASE_CONNECTING, 60);
        end_status(&second, 503);
        CHECK(open_path(&call, "/v1/chat/completions") == SHIM_UNCOVERED);
        CHECK(shim_age_ns(&second) < CLOCK_NS_PER_S * 60);
    }
    CHECK(shim_mono_ns() == before && before > 0);
}

/* Asks the system, past what a fence holds, until a millisecond is over: the passing itself is what
 * is wanted. */
static void let_a_millisecond_pass(void)
{
    struct timespec begun, now;

    clock_gettime(CLOCK_MONOTONIC, &begun);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begun.tv_sec) * 1000000000 + now.tv_nsec - begun.tv_nsec < 1000000);
}

static void body_the_clocks_go_on(void)
{
    uint64_t before;

    shim_set_clock(NULL);
    before = shim_mono_ns();
    shim_fence();
    uint64_t held = shim_mono_ns();
    CHECK(held >= before && held - before < CLOCK_NS_PER_S * 60);
    let_a_millisecond_pass();
    CHECK(shim_mono_ns() == held);
    shim_unfence();
    CHECK(shim_mono_ns() >= held + 1000000);
}

IN_CHILD(a_probe_that_is_dropped, "")
IN_CHILD(a_probe_that_ends_well_is_neutral, "")
IN_CHILD(a_probe_that_fails_is_neutral, "")
IN_CHILD(a_probe_behind_two_fences, "")
IN_CHILD(a_child_hands_nothing_back, "")
IN_CHILD(one_of_two, "")
IN_CHILD(nothing_is_loaded, "")
IN_CHILD(the_kernel_is_not_asked, "")
IN_CHILD(the_clocks_go_on, "")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_probe_that_is_dropped),
        cmocka_unit_test(test_a_probe_that_ends_well_is_neutral),
        cmocka_unit_test(test_a_probe_that_fails_is_neutral),
        cmocka_unit_test(test_a_probe_behind_two_fences),
        cmocka_unit_test(test_a_child_hands_nothing_back),
        cmocka_unit_test(test_one_of_two),
        cmocka_unit_test(test_nothing_is_loaded),
        cmocka_unit_test(test_the_kernel_is_not_asked),
        cmocka_unit_test(test_the_clocks_go_on),
    };

    return cmocka_run_group_tests_name("shim_fence", tests, NULL, NULL);
}
