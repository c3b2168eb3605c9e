/* child_check.h - children of a test, and an assertion for them: cmocka's would go on as the
 * parent. */
#ifndef BREAKER_TESTS_CHILD_CHECK_H
#define BREAKER_TESTS_CHILD_CHECK_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* Runs `body` in a child: does that end, and well? */
static inline bool child_ends_well(void (*body)(void))
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        alarm(10); /* or it could wait for ever */
        body();
        _exit(0);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

#endif
