/*
 * fenced_libseccomp.c - the same by libseccomp, as most programs do it.
 *
 *   fenced_libseccomp PORT
 */
#include "fence.h"

#include <seccomp.h>

int main(int count, char **argument)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);

    MUST(count == 2 && filter);
    unsigned port = (unsigned)atoi(argument[1]);
    MUST(seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(read), 0) == 0 &&
         seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(write), 0) == 0 &&
         seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(exit_group), 0) == 0);
    int fd = connected(port);
    call_on(fd, port, "m");
    MUST(seccomp_load(filter) == 0);
    post(fd, port, "m");
    told(read_status(fd));
    _exit(0);
}
