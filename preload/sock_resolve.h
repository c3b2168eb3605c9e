/*
 * sock_resolve.h - the getaddrinfo hook, which keeps the book of names (sock_names.h).
 */
#ifndef BREAKER_PRELOAD_SOCK_RESOLVE_H
#define BREAKER_PRELOAD_SOCK_RESOLVE_H

/* The book's part in a fork. Called by the constructor, while there is one thread; otherwise with
 * the first name. */
void sock_resolve_prepare(void);

#endif
