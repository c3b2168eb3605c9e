/*
 * fenced_tls.c - a client of libssl that fences itself in after its handshake, or between two
 * calls.
 *
 *   fenced_tls first|kept PORT
 */
#include "tls.h"

#include "fence.h"

int main(int count, char **argument)
{
    MUST(count == 3);
    begin_program(argument[2]);
    SSL *ssl = shaken();
    bool kept = strcmp(argument[1], "kept") == 0;
    if (kept)
        told(ssl_call(ssl, "m"));
    fence_by_prctl(&speaking);
    told(ssl_call(ssl, "m"));
    told(ssl_call(ssl, "m"));
    _exit(0);
}
