/*
 * forks.c - connections that a child inherits, uses, closes.
 *
 *   forks MODE PORT
 *
 * Prints "fine" and how many calls of "m" went well that have to be counted: those on connections
 * that the process itself opened.
 */
#include "called.h"

#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;

static void must_end_well(pid_t pid)
{
    int status = -1;

    MUST(KEPT(waitpid(pid, &status, 0)) == pid);
    MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", status);
}

static pid_t forked(void)
{
    pid_t pid = KEPT(fork());

    if (pid == 0)
        alarm(BOUND_S);
    return pid;
}

/* An inherited connection works in the child, uncounted; its own ones count, on the same number
 * too. */
static void child_uses(void)
{
    int fd = called();
    pid_t pid = forked();

    if (pid == 0) {
        call_on(fd, port, "m");
        KEPT(close(fd));
        MUST(called() == fd);
        call_again(fd);
        KEPT(close(fd));
        _exit(0);
    }
    must_end_well(pid);
    calls += 2;
    call_again(fd);
    KEPT(close(fd));
}

/* The child goes on after the parent closed. */
static void parent_closes(void)
{
    int fd = called(), go[2];
    char byte;

    KEPT(pipe2(go, O_CLOEXEC));
    pid_t pid = forked();
    if (pid == 0) {
        KEPT(close(go[1]));
        MUST(KEPT(read(go[0], &byte, 1)) == 0);
        for (int i = 0; i < 3; i++)
            call_on(fd, port, "m");
        KEPT(close(fd));
        _exit(0);
    }
    KEPT(close(fd));
    KEPT(close(go[0]));
    MUST((fd = called()) >= 0);
    KEPT(close(go[1]));
    must_end_well(pid);
    call_again(fd);
    KEPT(close(fd));
}

/* A fork between a request and its answer: the child's end says nothing of the call. */
static void in_the_middle(void)
{
    int fd = connected(port);

    post(fd, port, "m");
    pid_t pid = forked();
    if (pid == 0) {
        KEPT(close(fd));
        _exit(0);
    }
    must_end_well(pid);
    MUST(read_status(fd) == 200);
    calls++;
    pid = forked();
    if (pid == 0)
        exit(0); /* leaves it open */
    must_end_well(pid);
    call_again(fd);
    KEPT(close(fd));
}

static void crowd(void)
{
    enum { CHILDREN = 20, CALLS = 5 };
    pid_t pids[CHILDREN];
    int fd = called();

    for (int i = 0; i < CHILDREN; i++) {
        pids[i] = forked();
        if (pids[i] == 0) {
            if (i % 2)
                close(fd);
            for (int k = 0; k < CALLS; k++)
                whole_call(port, "m");
            _exit(0);
        }
        call_again(fd);
    }
    for (int i = 0; i < CHILDREN; i++)
        must_end_well(pids[i]);
    calls += CHILDREN * CALLS;
    call_again(fd);
    KEPT(close(fd));
}

/* What a vfork child does to its descriptors is not done to its parent's (FIELD-NOTES 1.9). */
static void vfork_closes(void)
{
    int fd = called(), other = called(), null = KEPT(open("/dev/null", O_RDWR | O_CLOEXEC));

    for (int i = 0; i < 20; i++) {
        pid_t pid = vfork();
        if (pid == 0) {
            close(fd);
            dup2(null, other);
            dup2(other, fd);
            if (i % 2)
                close_range(3, ~0u, 0);
            _exit(0);
        }
        MUST(pid > 0);
        must_end_well(pid);
        call_again(fd);
        call_again(other);
    }
    KEPT(close(fd));
    KEPT(close(other));
    KEPT(close(null));
}

/* It may write to what the number is in it, though few do. The parent's calls may go uncounted
 * then. */
static void vfork_writes(void)
{
    int fd = called(), null = KEPT(open("/dev/null", O_RDWR | O_CLOEXEC));

    for (int i = 0; i < 5; i++) {
        pid_t pid = vfork();
        if (pid == 0) {
            dup2(null, fd);
            write(fd, "x", 1);
            shutdown(fd, SHUT_RD);
            _exit(0);
        }
        MUST(pid > 0);
        must_end_well(pid);
        call_on(fd, port, "m");
    }
    KEPT(close(fd));
    KEPT(close(null));
}

/* A child with our memory that goes on beside us, descriptors its own: it closes after we were at
 * it again. */
struct beside {
    int fd, go[2];
};

static int close_beside(void *data)
{
    struct beside *beside = data;
    char go;

    if (read(beside->go[0], &go, 1) != 1)
        return 1;
    close(beside->fd);
    dup2(beside->go[0], beside->fd);
    return 0;
}

static void cloned(void)
{
    static char stack[65536] __attribute__((aligned(16)));
    struct beside beside = {.fd = called()};

    KEPT(pipe2(beside.go, O_CLOEXEC));
    for (int i = 0; i < 20; i++) {
        pid_t pid = clone(close_beside, stack + sizeof stack, CLONE_VM | SIGCHLD, &beside);
        MUST(pid > 0);
        call_again(beside.fd);
        MUST(write(beside.go[1], "!", 1) == 1);
        must_end_well(pid);
        call_again(beside.fd);
    }
    KEPT(close(beside.fd));
    KEPT(close(beside.go[0]));
    KEPT(close(beside.go[1]));
}

/* And with a request on its way. */
static void vfork_executes(void)
{
    int fd = called();
    char *arguments[] = {"true", NULL};

    for (int i = 0; i < 20; i++) {
        post(fd, port, "m");
        pid_t pid = vfork();
        if (pid == 0) {
            close(fd);
            execvp("true", arguments);
            _exit(1);
        }
        MUST(pid > 0);
        MUST(read_status(fd) == 200);
        calls++;
        must_end_well(pid);
    }
    KEPT(close(fd));
}

static void spawned(void)
{
    int fd = called(), other = called();
    char *arguments[] = {"true", NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addclose(&actions, fd);
    posix_spawn_file_actions_adddup2(&actions, 0, other);
    posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    for (int i = 0; i < 20; i++) {
        MUST(posix_spawnp(&pid, "true", &actions, NULL, arguments, environ) == 0);
        call_again(fd);
        must_end_well(pid);
        call_again(other);
    }
    posix_spawn_file_actions_destroy(&actions);
    KEPT(close(fd));
    KEPT(close(other));
}

static void shelled(void)
{
    int fd = called();

    for (int i = 0; i < 5; i++) {
        MUST(system("true") == 0);
        call_again(fd);
        FILE *stream = popen("cat >/dev/null", "w");
        MUST(stream && fputs("x", stream) >= 0);
        call_again(fd);
        MUST(pclose(stream) == 0);
        call_again(fd);
    }
    KEPT(close(fd));
}

/* Asked by one process, answered to the other. */
static void shared(void)
{
    int fd = called();

    for (int i = 0; i < 3; i++) {
        pid_t pid = forked();
        if (pid == 0) {
            post(fd, port, "m");
            _exit(0);
        }
        must_end_well(pid);
        MUST(read_status(fd) == 200);
        post(fd, port, "m");
        pid = forked();
        if (pid == 0)
            _exit(read_status(fd) != 200);
        must_end_well(pid);
    }
    KEPT(close(fd));
}

/* Goes on in another program, which knows nothing of the connection (bash's exec 3<>/dev/tcp/...).
 */
static void executed(void)
{
    char number[16], text[16];
    int fd = called();

    KEPT(fcntl(fd, F_SETFD, 0));
    post(fd, port, "m");
    snprintf(number, sizeof number, "%d", fd);
    snprintf(text, sizeof text, "%u", port);
    fflush(stdout);
    execl("/proc/self/exe", "forks", "after-exec", text, number, NULL);
    MUST(!"executed");
}

static int inherited;

static void after_exec(void)
{
    MUST(read_status(inherited) == 200);
    call_on(inherited, port, "m");
    MUST((size_t)KEPT(write(inherited, "x", 1)) == 1);
    KEPT(close(inherited));
    MUST(called() == inherited); /* its own on the same number */
    KEPT(close(inherited));
    calls++; /* the one before */
}

static pid_t by_Fork(void)
{
    return _Fork();
}

static pid_t by_system_call(void)
{
#ifdef SYS_fork
    return (pid_t)syscall(SYS_fork);
#else
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
#endif
}

/* What its flags are lies in memory, which is not looked at. */
static pid_t by_clone3(void)
{
    struct clone_args arguments = {.exit_signal = SIGCHLD};
    pid_t pid = (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);

    return pid < 0 && errno == ENOSYS ? (errno = 0, fork()) : pid; /* containers forbid it */
}

/* Ways to fork that no pthread_atfork() hears of: the child takes the answer, uncounted. */
static void unheard(void)
{
    pid_t (*const ways[])(void) = {by_Fork, by_system_call, by_clone3};

    for (unsigned i = 0; i < 3; i++) {
        int fd = called();
        post(fd, port, "m");
        pid_t pid = KEPT(ways[i]());
        if (pid == 0) {
            alarm(BOUND_S);
            MUST(read_status(fd) == 200);
            call_on(fd, port, "m");
            KEPT(close(fd));
            _exit(0);
        }
        must_end_well(pid);
        KEPT(close(fd));
        KEPT(close(called()));
    }
}

static const struct mode modes[] = {
    {"unheard", unheard},
    {"child-uses", child_uses},
    {"parent-closes", parent_closes},
    {"in-the-middle", in_the_middle},
    {"crowd", crowd},
    {"vfork-closes", vfork_closes},
    {"vfork-writes", vfork_writes},
    {"cloned", cloned},
    {"vfork-executes", vfork_executes},
    {"spawned", spawned},
    {"shared", shared},
    {"executed", executed},
    {"after-exec", after_exec},
    {"shelled", shelled},
};

int main(int argc, char **argv)
{
    MUST(argc >= 3);
    port = (unsigned)atoi(argv[2]);
    inherited = argc > 3 ? atoi(argv[3]) : -1;
    unsigned before = open_descriptors() - (inherited >= 0);
    RUN_MODE(modes, argv[1]);
    printf("fine %u\n", calls);
    MUST(open_descriptors() == before);
    return 0;
}
