/*
 * shim.h - the only door to the deciding half, in the steps that a call has.
 *
 *   shim_open        what is this request?            (host, path -> covered or not, keys)
 *   shim_body        bytes of its body, until the model is known
 *   shim_credential  whose quota does it draw on?
 *   shim_timeout     how long does its caller wait?
 *   shim_admit       may it go?                       (H, and M when it is known)
 *   shim_admit_model may it go on?                    (M, when it became known after shim_admit)
 *   shim_received    the peer's first byte is there   (H's success)
 *   shim_head        the final head is there          (a stream's settles a probe)
 *   shim_watch       bytes of the answer's body       (an error in a good answer counts)
 *   shim_obeyed      it does not go                   (a refusal that is kept is counted)
 *   shim_response    the synthetic answer
 *   shim_settle      how did it end?                  (exactly once per admission)
 *
 * Where scope = host, M has no part in an LLM call: it is ready when it is opened, whatever its
 * body will say, and all that would be M's is H's.
 *
 * Fail open: with no table, a full table, a bad configuration, no memory, or BREAKER_DISABLED=1,
 * shim_open says "not covered" or shim_admit says SHIM_ADMITTED, and nothing is counted. No
 * function prints, aborts, exits, or lets a signal happen. errno is the caller's to keep
 * (preload/guard.h).
 *
 * Healthy path: shim_admit + shim_settle make no system call (vDSO clock; a look at the
 * configuration's file and at the table's a second), take no lock, allocate nothing, store nothing
 * to a breaker's word.
 *
 * Threads: a struct shim_call belongs to one thread at a time; everything else is shared safely.
 * Fork: a call admitted before a fork settles in the parent only. Signals: a handler may take calls
 * of its own through all steps (no malloc, no lock that its own thread may hold; the first load is
 * told of in process.h), but touch none whose step it interrupted.
 */
#ifndef BREAKER_SHIM_H
#define BREAKER_SHIM_H

#include "base/clock.h"
#include "base/span.h"
#include "http/outcome.h"

#include <stdbool.h>
#include <stdint.h>

/* Reads the environment (BREAKER_DISABLED first, BREAKER_CONFIG, BREAKER_TABLE, BREAKER_LOG,
 * BREAKER_SET, BREAKER_<KEY>, HOME) into static storage. Called by the library's constructor; any
 * other function calls it when none did. Opens nothing, allocates nothing. Idempotent. */
void shim_capture_environment(void);

/* BREAKER_DISABLED=1, a set-uid process (AT_SECURE), or one that is fenced in: the hooks pass
 * everything. */
bool shim_disabled(void);

/* The program is about to give up system calls (seccomp), and may be ended for one: from here on no
 * function makes any, or reads a clock. Nothing is opened any more; what is admitted is neutral
 * whatever becomes of it, and is handed back where it ends. In children, too. Async-signal-safe. */
void shim_fence(void);
/* It came to nothing: takes back one shim_fence(). What was admitted before it stays neutral. */
void shim_unfence(void);
bool shim_fenced(void);

/* For tests and benches: other clocks; NULL = the system's. Not thread-safe. */
void shim_set_clock(const struct clock_ops *ops);
/* CLOCK_MONOTONIC of the clocks in force, for the ages of calls. Async-signal-safe. */
uint64_t shim_mono_ns(void);

/* The `deepbind` option, asked for by the dlopen hook: true = mask. Loads the configuration,
 * attaches to no table; true when it cannot be told. */
bool shim_mask_deepbind(void);

/* One call, from open to settle; lives in the caller's per-handle or per-connection struct.
 * All-zero is "nothing open". Reusing it for the next call on the same handle keeps the caches
 * (key, shape, policy). Private inside; copy nothing out of it. It may be moved as a whole: the
 * copy is the call, and the source is to be all-zero afterwards. */
#define SHIM_CALL_SIZE 2560
struct shim_call {
    _Alignas(16) unsigned char opaque[SHIM_CALL_SIZE];
};

struct shim_request {
    struct span method; /* "POST"; SPAN_NONE = GET */
    struct span scheme; /* "https"; only http and https are covered */
    struct span host;   /* as in the URL, IPv6 in brackets, no port */
    uint16_t port;
    struct span path; /* percent-encoded, without query; may be empty */
    bool reroutes;    /* the layer can take an LLM call elsewhere (struct shim_detour): where there
                         is a fallback it is refused, whatever when_exhausted says, and the layer
                         asks shim_exhausted() when none of them takes it */
    bool is_fallback; /* the host stands in for another: covered whatever `match` says */
};

/* Fills scheme, host, port and path from a URL as libcurl takes them (no scheme: http); the spans
 * point into `url`. False: no URL with a host; *request untouched. */
bool shim_request_of_url(struct span url, struct shim_request *request);

enum shim_need {
    SHIM_UNCOVERED,  /* not ours: do nothing more for this call */
    SHIM_READY,      /* everything that admission needs is known */
    SHIM_NEEDS_BODY, /* covered; the model is in the body: shim_body, then shim_admit. A layer that
                        does not have the body yet admits now and asks shim_admit_model later */
};

/* Step 1. Attaches to the table and loads the configuration at the first covered call. Drops
 * whatever was open in `call` before (as neutral, handing a grant back). */
enum shim_need shim_open(struct shim_call *call, const struct shim_request *request);

/* Step 1 for the request that the last shim_open of `call` was given, its spans still valid: what
 * was found out then is taken over, unless the configuration is another. False: shim_open must be
 * asked, *need untouched. */
bool shim_open_again(struct shim_call *call, enum shim_need *need);

/*
 * Whose quota an LLM call draws on, after each step 1 and before step 3: a credential that was told
 * to wait (429, or as much inside a good answer) does so at its key M, in every process. Nothing of
 * it is kept but a hash. Of a call whose credential no layer tells, none is parked; one without any
 * is told so, by SPAN_NONE: those calls wait together.
 *
 * It matters where somebody waits already, or is told to by the answer, which is seldom; working it
 * out costs as much as admitting the call. A layer that can still tell it then may do so:
 */
/* From now on `tell` is asked for the credential of each call in `call`: once at most, inside of
 * another function of this door but shim_drop, and it says so by those below. */
typedef void shim_credential_tell(void *data);
void shim_credential_later(struct shim_call *call, shim_credential_tell *tell, void *data);
/* What `tell` reads may not be there any more later on: it is asked now, if at all. After step 1;
 * harmless of what is no LLM call, and when asked again. */
void shim_credential_now(struct shim_call *call);
/* It is not there any more, or another's: whoever was not asked yet is not. */
void shim_credential_lost(struct shim_call *call);
/* Asked several times, it is of all those together (a name and its password). */
void shim_credential(struct shim_call *call, struct span credential);
/* A line of the request's head ("Name: value"); its URL (a key in the query, a user). True: the
 * credential was there, and it is told. Else *other, if asked for, is set where the line is one for
 * shim_credential_other_header(). */
bool shim_credential_header(struct shim_call *call, struct span line, bool *other);
bool shim_credential_url(struct shim_call *call, struct span url);
/* Once no line of the head was one: by the names that credentials of others have. */
bool shim_credential_other_header(struct shim_call *call, struct span line);

/*
 * How long the caller waits for the whole call, in ms, if it sets a limit and the layer knows it;
 * after each step 1 and before step 3. With probe_lease = call a probe keeps its place for so long.
 */
/* Would anything be made of it? */
bool shim_wants_timeout(const struct shim_call *call);
void shim_timeout(struct shim_call *call, uint64_t ms);

/* Step 2. Feeds body bytes in order; `last` when they end the body. Returns true when the model is
 * decided (found, or known to be absent: then it is "-"): no more bytes are needed. */
bool shim_body(struct shim_call *call, struct span bytes, bool last);

/* The application names the model itself (multipart APIs): decides like a found member. */
void shim_model(struct shim_call *call, struct span model);

enum shim_verdict {
    SHIM_ADMITTED,
    SHIM_REFUSED, /* to be obeyed: shim_obeyed(), shim_response(); nothing to settle */
};

/* Step 3, right after step 1 and what of step 2 needs no waiting: the call counts as admitted when
 * it was opened. H and, when the model is decided or not needed, M. Reads both, and whom they have
 * wait; if either refuses, writes nothing. A grant that was taken is handed back by any of: settle,
 * refusal at shim_admit_model, shim_drop. */
enum shim_verdict shim_admit(struct shim_call *call);

/* Step 3 for the first request of a connection whose connect was admitted by a call of its own
 * (opened without a path: H only). If both have the same H, a grant that `connect` holds becomes
 * this call's, and nothing is admitted in `connect` afterwards; with another H it goes its own way.
 */
enum shim_verdict shim_admit_connected(struct shim_call *call, struct shim_call *connect);

/* Time since shim_open of a covered request. Runs on while the machine sleeps; who sleeps in
 * between is not blamed anyway (shim_settle). */
uint64_t shim_age_ns(const struct shim_call *call);

/* Does the admitted call hold a grant, of H or M: is it a probe? */
bool shim_is_probe(const struct shim_call *call);

/* Is the model's admission still to come (admitted before the model was decided)? */
bool shim_model_pending(const struct shim_call *call);

/* Step 3b, once the model is decided. SHIM_REFUSED hands H's grant back. */
enum shim_verdict shim_admit_model(struct shim_call *call);

/* The first byte came from the peer itself (no proxy): H's success, at once and once, however the
 * call goes on; but of an LLM call with scope = host, whose end tells. Harmless when nothing is
 * admitted, and when asked again. */
void shim_received(struct shim_call *call);

/* Step 3c, for a layer that sees the answer's body. Is there something to be seen in that of an
 * admitted call? Of LLM calls alone. */
bool shim_watches(const struct shim_call *call);

/* Does it matter to the admitted call how long its first byte takes (slow_first_byte)? How long its
 * body is silent (stall_after)? To LLM calls alone, and by M's policy as soon as it is admitted. A
 * layer that is told no reads no clock for it. */
bool shim_times_first_byte(const struct shim_call *call);
bool shim_times_silence(const struct shim_call *call);
/* Did it take too long? A layer may want to look closer then. */
bool shim_is_late(const struct shim_call *call, uint64_t first_byte_ns);

/* The final head, not a redirect's that is followed: its Content-Type and Content-Encoding,
 * SPAN_NONE where there is none, or where the layer gets the body decoded; and how long its first
 * byte took (struct call_end), 0 where shim_times_first_byte() does not ask. A good one of a stream
 * that was not late settles a probe of M at once, as DESIGN says; the call is to be settled all the
 * same. False: the body's bytes say nothing, shim_watch needs none. */
bool shim_head(struct shim_call *call, unsigned status, struct span type, struct span encoding,
               uint64_t first_byte_ns);

/* Bytes of the body as the program gets them, without transfer coding, in order, each once. False:
 * no more are needed. Harmless without shim_head. */
bool shim_watch(struct shim_call *call, struct span bytes);

/* Did the body tell of an error? Nothing that follows tells otherwise: the call may be settled
 * without waiting for its end. */
bool shim_told_error(const struct shim_call *call);

/* As shim_watch where the program may put off bytes that it is shown, and be shown them again: what
 * becomes of the call with them, to be said to shim_watch_taken() once it will not be. */
#define SHIM_WATCHED_SIZE 272
struct shim_watched {
    _Alignas(8) unsigned char opaque[SHIM_WATCHED_SIZE];
};
void shim_watch_ahead(const struct shim_call *call, struct span bytes,
                      struct shim_watched *watched);
bool shim_watch_taken(struct shim_call *call, const struct shim_watched *watched);

/* Step 4, after SHIM_REFUSED, when the call is indeed kept from going: counts and logs it, once. A
 * layer that finds that it cannot keep it (it is no call after all) does not ask. */
void shim_obeyed(struct shim_call *call);

/* Step 4 for a layer that reroutes, before shim_obeyed: no fallback took the call. SHIM_ADMITTED:
 * it passes, uncounted (when_exhausted = pass). */
enum shim_verdict shim_exhausted(struct shim_call *call);

/* The answer after SHIM_REFUSED: the whole HTTP/1.1 response, at most SHIM_RESPONSE_MAX bytes.
 * Returns its length (never 0). `head_only` for HEAD requests. */
#define SHIM_RESPONSE_MAX 4096
size_t shim_response(const struct shim_call *call, char *buf, size_t size, bool head_only);

/* What of an answer's head says when to come again, SPAN_NONE where it does not: retry-after-ms,
 * x-amz-retry-after, Retry-After. In ms, for struct call_end; 0: it does not. */
struct shim_retry {
    struct span ms, amz, after;
};
uint32_t shim_retry_after_ms(const struct shim_retry *said);

/* Step 5. Exactly once after SHIM_ADMITTED; harmless when nothing is admitted. */
void shim_settle(struct shim_call *call, const struct call_end *end);

/* Nothing became of it: neutral, grants handed back. Harmless when nothing is admitted. */
void shim_drop(struct shim_call *call);

/* Is something admitted and not yet settled? */
bool shim_admitted(const struct shim_call *call);

/*
 * The way of one call to a fallback, for a layer that can take it there: after SHIM_REFUSED, or
 * after a connect that failed before a byte of the request went out (failover).
 *
 *   shim_detour_begin     once; then shim_detour_body or shim_detour_model, if the body is known
 *   shim_detour_next      the next candidate of the chain; false: there is none (shim_exhausted)
 *   shim_detour_skip      the layer cannot take this one
 *   shim_detour_header    its headers
 *   shim_detour_timeout   as shim_timeout, if the caller sets a limit: what is left of it
 *   shim_detour_admit     its own breakers; SHIM_REFUSED: the next one
 *   shim_detour_taken     at the end, where it got its answer there: counted and logged
 *
 * After shim_detour_admit `call` is the call, to be received, settled or dropped like any other; if
 * it could not connect, or its model was refused late, it is skipped, and shim_detour_next goes on.
 * A detour lives in the caller's memory, belongs to one thread at a time, and is not to be moved
 * once it has begun. It is no work for signal handlers.
 */
#define SHIM_DETOUR_SIZE (19 * 1024)
struct shim_detour {
    /* Of the candidate; borrowed from the detour or the configuration. */
    const char *name;    /* of the [fallback NAME], or "fallback_address" */
    const char *url;     /* where it goes; NULL: to the call's own, see `address` */
    const char *address; /* "HOST:PORT" to be connected to under the call's own URL, with all that
                            is in the request; NULL: see `url` */
    struct span model;   /* to be put into the body; SPAN_NONE: the body stays */
    bool foreign;        /* another (scheme, host, port): no credential may go along */
    bool loopback;       /* this machine: no proxy leads there */
    struct shim_call call;
    _Alignas(16) unsigned char opaque[SHIM_DETOUR_SIZE];
};

/* `from` was refused, or was settled as a failed connect; it, `method` and `url` (as libcurl spells
 * it) must stay. `port`: 0, or what is connected to instead of the URL's own. `*detour` is
 * all-zero. False: there is no chain for this call; nothing to end then. */
bool shim_detour_begin(struct shim_detour *detour, struct shim_call *from, struct span method,
                       struct span url, uint16_t port);
/* For a call that was opened: is there a chain? */
bool shim_detour_possible(const struct shim_call *call);
/* The same, and may the call go there when its connect fails? */
bool shim_detour_on_failure(const struct shim_call *call);
/* The whole body, to stay until the end; or the model that the layer knows otherwise (SPAN_NONE:
 * that there is none). */
void shim_detour_body(struct shim_detour *detour, struct span body);
/* Is the model still to be known, and does it matter to a fallback of the chain? */
bool shim_detour_wants_model(const struct shim_detour *detour);
void shim_detour_model(struct shim_detour *detour, struct span model);
bool shim_detour_next(struct shim_detour *detour);
/* `why`: a clause for the log, copied; NULL: its breaker refuses (late, by the model). Hands back
 * what was admitted. */
void shim_detour_skip(struct shim_detour *detour, const char *why);
/* The n-th header line of the candidate, NUL-terminated and good until the next one is asked for;
 * NULL: there are no more, or it cannot be had: then *why_not is why. A secret. */
const char *shim_detour_header(struct shim_detour *detour, unsigned n, const char **why_not);
/* For the candidates from now on; 0: none. */
void shim_detour_timeout(struct shim_detour *detour, uint64_t ms);
enum shim_verdict shim_detour_admit(struct shim_detour *detour);
void shim_detour_taken(struct shim_detour *detour);
/* The body with `model` in it: its length, and its bytes into a buffer of that length. 0: it cannot
 * be done (no JSON, no such member), or no body was shown. */
size_t shim_detour_body_len(struct shim_detour *detour);
void shim_detour_write_body(struct shim_detour *detour, char *buf);
/* Must this line of the application's head (as CURLOPT_HTTPHEADER has it) stay behind? */
bool shim_detour_withholds(const struct shim_detour *detour, struct span header);
/* `from` forgets it; what is admitted is handed back. */
void shim_detour_end(struct shim_detour *detour);

/*
 * The way of one connect to its host's fallback_address, for a layer that connects. `call` is the
 * connect's own (opened without a path), of which shim_admit was asked.
 */

/* Where it may go instead, since H's breaker refuses it, when_exhausted = pass or not. `host` is
 * borrowed from the configuration. False: nowhere. Async-signal-safe. */
bool shim_fallback_address(const struct shim_call *call, struct span *host, uint16_t *port);

/* Was the call admitted although H's breaker refuses it, or H is cooling down, as when_exhausted =
 * pass says? */
bool shim_overruled(const struct shim_call *call);

/* `from` goes to the host that `to` was opened for: counted and logged, in place of shim_obeyed.
 * Nothing is admitted in `from` afterwards. */
void shim_rerouted(struct shim_call *from, struct shim_call *to);

/* The hosts that connects to `host` may soon go to instead: those of its keys (`port`; 0: of any
 * port) whose breakers are not simply healthy. For who resolves names, not for connects: it may
 * look through the whole table. Returns how many, at most `max`; borrowed from the configuration.
 */
unsigned shim_fallbacks_wanted(struct span host, uint16_t port, struct span *names, unsigned max);

#endif
