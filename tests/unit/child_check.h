/* child_check.h - an assertion for the child of a test: cmocka's would go on as the parent. */
#ifndef BREAKER_TESTS_CHILD_CHECK_H
#define BREAKER_TESTS_CHILD_CHECK_H

#include <stdio.h>
#include <unistd.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

#endif
