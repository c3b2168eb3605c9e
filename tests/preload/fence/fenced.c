/*
 * fenced.c - programs that open their connections, fence themselves in by seccomp, and go on.
 *
 *   fenced MODE PORT
 *
 * Prints the statuses of its calls, all of the model "m".
 */
#include "fence.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>

static unsigned port;
static const char *port_text;

static void call(int fd)
{
    post(fd, port, "m");
    told(read_status(fd));
}

static void call_anew(void)
{
    int fd = connected(port);

    call(fd);
    KEPT(close(fd));
}

static void strict(void)
{
    int fd = connected(port);

    KEPT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0));
    call(fd);
    call(fd);
    syscall(SYS_exit, 0); /* exit_group is not allowed */
}

static void strict_kept(void)
{
    int fd = connected(port);

    call(fd);
    KEPT(syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL));
    call(fd);
    syscall(SYS_exit, 0);
}

static void first(void)
{
    int fd = connected(port);

    fence_by_prctl(&speaking);
    call(fd);
    call(fd);
}

static void kept(void)
{
    int fd = connected(port);

    call(fd);
    fence_by_prctl(&speaking);
    call(fd);
    call(fd);
}

static void by_seccomp(void)
{
    int fd = connected(port);

    call(fd);
    fence_by_seccomp(&speaking, 0);
    call(fd);
}

static void by_syscall_of_prctl(void)
{
    int fd = connected(port);

    KEPT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    KEPT(syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &speaking, 0, 0));
    call(fd);
}

/* What was asked before the fence is answered within. */
static void under_way(void)
{
    int fd = connected(port);

    post(fd, port, "m");
    fence_by_prctl(&speaking);
    told(read_status(fd));
    call(fd);
}

/* Two descriptors of one connection. */
static void duplicated(void)
{
    int fd = connected(port), other = KEPT(dup(fd));

    call(fd);
    fence_by_prctl(&speaking);
    call(other);
    call(fd);
}

/* Connections, and processes, that are made within. */
static void within(void)
{
    int status;

    call_anew();
    fence_by_prctl(&unasking);
    call_anew();
    pid_t child = KEPT(fork());
    if (child == 0) {
        call_anew();
        _exit(0);
    }
    KEPT(waitpid(child, &status, 0));
    MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0, "but %x", status);
    call_anew();
}

/* The first connection of all is one made within. */
static void within_at_once(void)
{
    fence_by_prctl(&unasking);
    call_anew();
}

/* A child alone: the parent goes on as it was. */
static void child(void)
{
    int fd = connected(port), status;

    call(fd);
    pid_t child = KEPT(fork());
    if (child == 0) {
        int own = connected(port);
        fence_by_prctl(&speaking);
        call(own);
        _exit(0);
    }
    KEPT(waitpid(child, &status, 0));
    MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0, "but %x", status);
    call(fd);
}

/* One that has our very memory. */
static void vfork_child(void)
{
    int fd = connected(port), status;

    call(fd);
    pid_t child = vfork();
    if (child == 0) {
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &speaking, 0, 0);
        _exit(0);
    }
    MUST(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    call(fd);
}

static void call_thrice(void)
{
    for (int i = 0; i < 3; i++)
        call_anew();
}

/* Another program, in the fence of the one before. */
static void inherited(void)
{
    fence_by_prctl(&unanswered);
    execl("/proc/self/exe", "fenced", "thrice", port_text, NULL);
    MUST(!"executed");
}

/* What the kernel refuses is no fence. */
static void failing(void)
{
    const struct sock_fprog empty = {.len = 0, .filter = (struct sock_filter *)speaks_only};
    int fd = connected(port);

    call(fd);
    MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0) == -1 && errno == EFAULT);
    MUST(prctl(PR_SET_SECCOMP, 77, 0, 0, 0) == -1 && errno == EINVAL);
    MUST(syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL) == -1 && errno == EINVAL);
    MUST(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_LOG, NULL) == -1 &&
         errno == EFAULT);
    call(fd); /* as before */
    MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &empty, 0, 0) == -1 && errno == EINVAL);
    MUST(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &empty) == -1 && errno == EINVAL);
    KEPT(close(fd));
    call_anew();
}

/* No fence at all; and all five arguments arrive. */
static void others(void)
{
    char name[17] = "";
    int fd = connected(port), signal;

    KEPT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 1) == -1 && errno == EINVAL);
    KEPT(prctl(PR_SET_NAME, "of another name"));
    KEPT(prctl(PR_GET_NAME, name));
    MUST(strcmp(name, "of another name") == 0);
    KEPT(prctl(PR_SET_PDEATHSIG, 9));
    KEPT(prctl(PR_GET_PDEATHSIG, &signal));
    MUST(signal == 9);
    MUST(prctl(PR_GET_SECCOMP) == 0);
    call(fd);
}

/* --- all threads at once ------------------------------------------------------------------------
 */

static atomic_int asked;

static void *speak(void *unused)
{
    int fd = connected(port);

    post(fd, port, "m");
    atomic_store(&asked, 1);
    told(read_status(fd));
    call(fd);
    _exit(0); /* the other one may do nothing any more */
    return unused;
}

static void fence_all_threads(bool within)
{
    pthread_t thread;
    char byte;
    int never[2];

    MUST(pipe(never) == 0 && pthread_create(&thread, NULL, speak, NULL) == 0);
    while (!atomic_load(&asked))
        sched_yield();
    if (within)
        fence_by_prctl(&unasking);
    fence_by_seccomp(&speaking, SECCOMP_FILTER_FLAG_TSYNC);
    MUST(read(never[0], &byte, 1) == -1);
}

static void all_threads(void)
{
    fence_all_threads(false);
}

/* Within one that forbids to wait. */
static void all_threads_within(void)
{
    fence_all_threads(true);
}

static atomic_uint made;

static void *keep_calling(void *unused)
{
    for (;;) {
        int fd = connected(port);
        call_on(fd, port, "m");
        KEPT(close(fd));
        if (atomic_fetch_add(&made, 1) == 400) {
            told(1);
            _exit(0);
        }
    }
    return unused;
}

/* Some of them are always at our work. */
static void busy_threads(void)
{
    pthread_t thread;
    char byte;
    int never[2];

    MUST(pipe(never) == 0);
    for (int i = 0; i < 4; i++)
        MUST(pthread_create(&thread, NULL, keep_calling, NULL) == 0);
    while (atomic_load(&made) < 100)
        sched_yield();
    fence_by_seccomp(&unasking, SECCOMP_FILTER_FLAG_TSYNC);
    MUST(read(never[0], &byte, 1) == -1);
}

/* --- a call that another is to make instead -----------------------------------------------------
 */

static void probe(void)
{
    int fd = connected(port);

    post(fd, port, "m");
    fence_by_prctl(&speaking);
    told(1);
    told(read_status(fd));
}

/* The answer of ours that is under way breaks off. */
static void refused(void)
{
    int fd = connected(port);

    post(fd, port, "shut");
    fence_by_prctl(&speaking);
    told(read_status(fd));
}

int main(int count, char **argument)
{
    static const struct mode modes[] = {
        {"strict", strict},
        {"strict-kept", strict_kept},
        {"first", first},
        {"kept", kept},
        {"by-seccomp", by_seccomp},
        {"by-syscall-of-prctl", by_syscall_of_prctl},
        {"under-way", under_way},
        {"duplicated", duplicated},
        {"within", within},
        {"within-at-once", within_at_once},
        {"child", child},
        {"vfork-child", vfork_child},
        {"thrice", call_thrice},
        {"inherited", inherited},
        {"failing", failing},
        {"others", others},
        {"all-threads", all_threads},
        {"all-threads-within", all_threads_within},
        {"busy-threads", busy_threads},
        {"probe", probe},
        {"refused", refused},
    };

    MUST(count == 3);
    port_text = argument[2];
    port = (unsigned)atoi(port_text);
    RUN_MODE(modes, argument[1]);
    _exit(0);
}
