/*
 * killed_trace.h - one process, an instruction at a time.
 */
#ifndef BREAKER_TESTS_KILLED_TRACE_H
#define BREAKER_TESTS_KILLED_TRACE_H

#include "killed_place.h"

#include <elf.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

/* More than any way through: one that goes round in circles is found by it. */
#define TRACE_MOST_STEPS 2000000

/* Shared with the victim. */
struct trace_mark {
    volatile enum { TRACE_BEFORE, TRACE_WITHIN, TRACE_AFTER } at;
};

struct trace {
    pid_t pid;
    struct trace_mark *mark;
    void (*ready)(void), (*act)(void);
    bool begins_later; /* the act calls trace_begin() by itself */
};

/* In the victim: from here on each step counts. */
static inline void trace_begin(const struct trace *trace)
{
    raise(SIGSTOP);
    trace->mark->at = TRACE_WITHIN;
}

static inline bool trace_is_allowed(void)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0)
        _exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static inline void trace_victim(const struct trace *trace)
{
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    trace->ready();
    if (!trace->begins_later)
        trace_begin(trace);
    trace->act();
    trace->mark->at = TRACE_AFTER;
    for (;;)
        raise(SIGSTOP);
}

static inline void trace_wait(const struct trace *trace, int expected)
{
    int status = 0;

    place_must(waitpid(trace->pid, &status, 0) == trace->pid, "waitpid");
    if (WIFSTOPPED(status) && WSTOPSIG(status) == expected)
        return;
    fprintf(stderr, "the victim has wait status %#x\n", (unsigned)status);
    exit(2);
}

static inline void trace_step(const struct trace *trace)
{
    place_must(ptrace(PTRACE_SINGLESTEP, trace->pid, NULL, NULL) == 0, "PTRACE_SINGLESTEP");
    trace_wait(trace, SIGTRAP);
}

/* Starts a victim that is at the first instruction of its act. */
static inline void trace_start(struct trace *trace)
{
    trace->mark->at = TRACE_BEFORE;
    fflush(NULL);
    trace->pid = fork();
    place_must(trace->pid >= 0, "fork");
    if (trace->pid == 0)
        trace_victim(trace);
    trace_wait(trace, SIGSTOP);
    place_must(
        ptrace(PTRACE_SETOPTIONS, trace->pid, NULL, PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD) == 0,
        "PTRACE_SETOPTIONS");
    for (unsigned i = 0; trace->mark->at == TRACE_BEFORE && i < TRACE_MOST_STEPS; i++)
        trace_step(trace);
}

/* SIGKILL, where it stands. */
static inline void trace_kill(const struct trace *trace)
{
    int status = 0;

    place_must(kill(trace->pid, SIGKILL) == 0, "kill");
    while (waitpid(trace->pid, &status, 0) == trace->pid && WIFSTOPPED(status))
        ;
    place_must(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "the victim's death");
}

/* Is the instruction that comes next a system call? The victim is a fork: its code is ours. */
static inline bool trace_at_system_call(const struct trace *trace)
{
    struct user_regs_struct regs;
    struct iovec all = {&regs, sizeof regs};

    place_must(ptrace(PTRACE_GETREGSET, trace->pid, (void *)NT_PRSTATUS, &all) == 0,
               "PTRACE_GETREGSET");
#if defined __x86_64__
    return memcmp((const void *)regs.rip, "\x0f\x05", 2) == 0;
#elif defined __aarch64__
    return memcmp((const void *)regs.pc, "\x01\x00\x00\xd4", 4) == 0;
#else
#error "how does a system call look here?"
#endif
}

/* A point in the act: so many instructions behind the end of its n-th system call. Between two of
 * them the way depends on random numbers (the digits of a name), so a further one ends it. */
struct trace_point {
    unsigned calls, behind;
};

static inline void trace_go(const struct trace *trace, struct trace_point to)
{
    for (unsigned stops = 0; stops < 2 * to.calls; stops++) {
        place_must(ptrace(PTRACE_SYSCALL, trace->pid, NULL, NULL) == 0, "PTRACE_SYSCALL");
        trace_wait(trace, SIGTRAP | 0x80);
    }
    for (unsigned i = 0; i < to.behind && !trace_at_system_call(trace); i++)
        trace_step(trace);
}

#endif
