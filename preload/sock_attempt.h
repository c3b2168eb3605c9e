/*
 * sock_attempt.h - one attempt of the program to reach a name, over however many addresses it
 * walks: at most one outcome (FIELD-NOTES 3.2, 3.8).
 *
 * Nothing says which connects belong together, so per name and port it is counted how often each
 * address failed: when all of them have failed once more, one attempt has failed; a connect that
 * succeeds ends one attempt that failed elsewhere before. An attempt that went no further for half
 * a second (a program that takes the first address only) has failed as well, or that began again
 * with an address for which it had waited in vain; both are found out at the next connect to the
 * name, the first at exit too. Addresses that were given up early (happy eyeballs) or failed for
 * local reasons count as walked, not as failed.
 *
 * A grant of a half-open H is the attempt's: it covers one connect to each address, and goes to the
 * one that succeeds. Names with one address need none of this.
 */
#ifndef BREAKER_PRELOAD_SOCK_ATTEMPT_H
#define BREAKER_PRELOAD_SOCK_ATTEMPT_H

#include "sock_conn.h"

/* May it connect? `conn->host` was opened and is ready; admitted afterwards, or `conn->shares`.
 * Inside, with the connection locked or not yet shared, as for all of these. */
enum shim_verdict sock_attempt_admit(struct sock_conn *conn);

/* It was admitted, without a share in a grant, and goes elsewhere: no step of the attempt. */
void sock_attempt_withdraw(struct sock_conn *conn);

/* Its connect succeeded: what is admitted is in conn->host from here on, if anything is. */
void sock_attempt_connected(struct sock_conn *conn);

/* Its connect came to nothing. `blamed`: by the peer's fault, as `end` tells. */
void sock_attempt_failed(struct sock_conn *conn, const struct call_end *end, bool blamed);

/* At exit: attempts that went no further. */
void sock_attempt_finish(void);

/* Before a fence: nothing becomes of those that are under way. */
void sock_attempt_drop(void);

/* In the child of a fork. */
void sock_attempt_abandon(void);

#endif
