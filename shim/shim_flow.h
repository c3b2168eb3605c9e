/*
 * shim_flow.h - one HTTP/1.x connection as its client's bytes go by, in clear: finds the requests,
 * opens, admits and settles a call for each (shim.h), and says which bytes may leave.
 *
 * A layer that sees bytes (sockets; TLS above its records) calls, around each real write:
 *
 *   shim_flow_send_begin, shim_flow_send per run of bytes, shim_flow_send_end -> so many may leave
 *   shim_flow_obeyed     if that refuses a request, and the layer is sure of what it swallows
 *   shim_flow_unsent     if fewer left
 *
 * and after each real read shim_flow_received; shim_flow_end when it is over. Nothing is held back
 * or buffered: the decision falls at the write in which the model becomes known. If it is a
 * refusal, that write and all that follow are swallowed, but for what belongs to earlier requests;
 * when those are answered (shim_flow_answer_due), the program reads shim_flow_answer, then the end.
 *
 * What cannot be followed with certainty is lost: SHIM_FLOW_LOST, everything open is neutral, and
 * the layer lets go of the connection. Fail open, errno, threads and signals: as shim.h. A flow
 * belongs to one thread at a time.
 */
#ifndef BREAKER_SHIM_FLOW_H
#define BREAKER_SHIM_FLOW_H

#include "http/body.h"
#include "http/head.h"
#include "shim.h"

/* Requests under way on one connection (pipelining). With more it is lost. */
#define SHIM_FLOW_DEPTH 8

/* One request and its response. Private. */
struct shim_exchange {
    bool judged;            /* shim_open took it */
    bool decided;           /* its model is decided */
    bool asked;             /* it was admitted or refused */
    bool head_only;         /* a HEAD */
    bool proxied;           /* to a proxy: the peer is not the host */
    bool received;          /* a byte of its response is there */
    bool times;             /* it matters how long its first byte takes */
    uint64_t due_ns;        /* CLOCK_BOOTTIME, from when on its response could come */
    uint64_t first_byte_ns; /* what the first byte of its final head took; 0: not there, or not
                               asked for */
    struct shim_call call;
};

enum shim_flow_state {
    SHIM_FLOW_FOLLOWED,
    SHIM_FLOW_REFUSED, /* a request was refused: nothing of it leaves any more */
    SHIM_FLOW_LOST,    /* no HTTP/1.x, an upgrade, or not to be followed */
};

/* Private but for `state` and `send_failed`. */
struct shim_flow {
    enum shim_flow_state state;
    bool in_request, in_response;    /* their heads are read, their bodies are not */
    bool send_failed;                /* set by the layer: a write said that the peer is gone */
    bool watches;                    /* the door wants the response's body */
    bool times;                      /* some exchange does */
    bool listens;                    /* it matters how long the response's body is silent */
    bool diverted;                   /* the peer is another than the requests' heads name */
    bool secure, named;              /* over TLS; and `host` is who the client asked for in it */
    uint16_t port;                   /* of the peer, for a request that names no host */
    struct span host;                /* of the peer, borrowed */
    struct shim_call *connect;       /* what the connect was admitted with; borrowed; NULL: none */
    struct shim_exchange *uploading; /* whose body is under way; NULL: nobody's that matters */
    struct shim_exchange *refused;
    struct shim_exchange *opened; /* whose call judged the last request's head; NULL: nobody's */
    uint64_t requests, responses; /* numbers of the last that began, of the last that ended */
    /* Of the exchanges, from 1 in order of the requests; 0: free. Here, on one line of the cache.
     */
    uint64_t numbers[SHIM_FLOW_DEPTH];
    uint64_t ahead; /* bytes that were looked at and did not leave: they come again, first */
    uint64_t at;    /* bytes of the write under way that were looked at */
    uint64_t began; /* where in it the request under way began */
    uint64_t before_refused; /* bytes of earlier requests that are still to leave */
    size_t answered;         /* bytes of the answer that the program has */
    uint64_t heard_ns; /* CLOCK_BOOTTIME, while it listens: when bytes of the peer came last */
    uint64_t lain_ns;  /* how long those that are shown next had lain there */
    struct http_head request, response;
    struct http_body request_body, response_body;
    struct shim_exchange exchanges[SHIM_FLOW_DEPTH];
};

/* `host` (as it would stand in a URL) and `connect` must outlive the flow. `flow` is all-zero, or
 * was one that ended: what it remembers of its last request saves work. */
void shim_flow_init(struct shim_flow *flow, struct span host, uint16_t port,
                    struct shim_call *connect);

/* Right after: the peer is the fallback of the host that the program meant, and `host` and `port`
 * are its own. Requests are its calls, whatever host they name; but in absolute form, which are for
 * a proxy. */
void shim_flow_divert(struct shim_flow *flow);

/* Right after: what goes by is the clear text of TLS. `named`: `host` is the name that the client
 * gave in its handshake, for which the certificate stands: requests are for it, whatever their Host
 * says, as they are for the host of the URL where that is known. */
void shim_flow_secure(struct shim_flow *flow, bool named);

/* Before a write. */
void shim_flow_send_begin(struct shim_flow *flow);
void shim_flow_send(struct shim_flow *flow, struct span bytes);
/* How many of the bytes shown may leave: all of them, unless `state` is SHIM_FLOW_REFUSED; then the
 * others are to be taken as if they had left. */
uint64_t shim_flow_send_end(struct shim_flow *flow);
/* After a refusal, once the layer is sure of what it swallows: it is obeyed (shim_obeyed). */
void shim_flow_obeyed(struct shim_flow *flow);
/* After a write that let fewer leave (none, when it failed): so many did not. They come again,
 * first. */
void shim_flow_unsent(struct shim_flow *flow, uint64_t count);
/* After a write, where it is asked for: no response is due before the last byte has left. */
static inline bool shim_flow_times(const struct shim_flow *flow)
{
    return flow->times;
}
void shim_flow_sent(struct shim_flow *flow);
/* So many of the next bytes that come were seen: they may be shown or left out. */
uint64_t shim_flow_seen(const struct shim_flow *flow);
/* Leaves them out. */
void shim_flow_send_seen(struct shim_flow *flow, uint64_t count);

/* Bytes that the program read, in order, each once. */
void shim_flow_received(struct shim_flow *flow, struct span bytes);

/* Is a first byte late that comes next, or that the program does not wait for any more? The layer
 * may want to make sure, and say before it is shown, or the end is told, how long ago it came, and
 * how long ago the last of the request left. Times that are too long are "at once". */
bool shim_flow_is_late(const struct shim_flow *flow);
void shim_flow_lay(struct shim_flow *flow, uint64_t ns);
void shim_flow_left(struct shim_flow *flow, uint64_t ns);

/* Does it matter, should the program give up now, how long the peer was silent? Then bytes that are
 * there and that nobody has read are to be told of before the end. */
static inline bool shim_flow_listens(const struct shim_flow *flow)
{
    return flow->listens;
}
void shim_flow_unread(struct shim_flow *flow);

/* Would these bytes garble the response that is waited for, from their first on? The layer may want
 * to make sure of their origin, before they count. */
bool shim_flow_is_odd(const struct shim_flow *flow, struct span bytes);

/* Is a response waited for, or under way? And is its final head there? */
bool shim_flow_waits(const struct shim_flow *flow);
bool shim_flow_has_head(const struct shim_flow *flow);

/* Is there a request that has not left whole, and may still? */
bool shim_flow_sends(const struct shim_flow *flow);

/* Is it time for our answer: refused, and what was asked for before is answered? */
bool shim_flow_answer_due(const struct shim_flow *flow);
/* Its bytes from `at` behind those that were taken, at most `size`; 0: it is at its end. `buf`
 * NULL: nobody wants to see them. */
size_t shim_flow_answer(const struct shim_flow *flow, size_t at, char *buf, size_t size);
/* The program has so many more of them. */
void shim_flow_answer_taken(struct shim_flow *flow, size_t count);

enum shim_flow_end {
    SHIM_FLOW_EOF,   /* the peer closed its side */
    SHIM_FLOW_RESET, /* the connection broke */
    SHIM_FLOW_CLOSE, /* the program ended it */
    SHIM_FLOW_DROP,  /* nothing is known of its end: all is neutral */
};
/* Settles what is open. The flow is SHIM_FLOW_LOST afterwards. */
void shim_flow_end(struct shim_flow *flow, enum shim_flow_end end);

#endif
