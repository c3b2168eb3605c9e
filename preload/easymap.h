/*
 * easymap.h - CURL*, CURLM*, mime handles and parts -> what we know of them.
 *
 * One hash (uthash) in shards, each under a lock that is held for a look-up only, never across a
 * real call. A fork takes all locks first, so that a child never finds one held by a thread that it
 * does not have. What an entry points to belongs to the thread that uses the handle, as with
 * libcurl.
 */
#ifndef BREAKER_PRELOAD_EASYMAP_H
#define BREAKER_PRELOAD_EASYMAP_H

#include "curl_hooks.h"
#include "curl_options.h"
#include "shim.h"

#include <stdatomic.h>

struct multi;
struct synth_socket;
struct detour;

/* Where a pulled body comes from. libcurl takes these over when a transfer begins: what the
 * application sets later is for the next one. */
struct pulled_body {
    curl_read_callback read; /* NULL: fread */
    curl_seek_callback seek;
    curl_ioctl_callback ioctl;
    void *read_data, *seek_data, *ioctl_data;
    curl_off_t start; /* where libcurl's own fread began; -1: not known */
    uint64_t unsent;  /* so much of its beginning libcurl skips (RESUME_FROM), or reads in vain */
    bool known;       /* taken over, at the first read or seek */
};

struct easy {
    CURL *handle;
    real_t real;
    struct curl_options options;
    struct shim_call call;           /* as the application means it */
    const struct shim_call *refuser; /* whose refusal our answer tells of */
    struct shim_call *active;        /* whose transfer is under way: `call`, or that of `detour` */
    uint64_t began_ns;               /* CLOCK_MONOTONIC when the call began, if it has fallbacks */
    struct detour *detour; /* on the way to a fallback, or looking for one (curl_detour.h) */
    struct multi *multi;   /* added to; NULL outside */
    struct easy *previous_member, *next_member; /* in multi->members */
    struct easy *next_superseded;               /* in multi->superseded */
    uint64_t added_round;                       /* multi->rounds when it was added to it */
    uint64_t started_ns;                        /* CLOCK_MONOTONIC when it was added to its multi */
    uint64_t left_queue_ns; /* when it was first seen to have left that multi's queue; 0: not yet */
    uint64_t body_at;       /* where in its body the next byte of our read callback stands */
    struct pulled_body source;   /* of the watched body under way */
    uint64_t body_shown;         /* so much of it the door has seen */
    struct shim_request request; /* of the URL option, its spans inside `url` */
    char *url;                   /* owned: as libcurl spells it; NULL: it does not take it */
    unsigned url_flags;          /* what it was spelled with */
    const char *method;          /* curl_options_method() at the last shim_open */
    bool request_known;          /* url and request are those of the URL option */
    bool https;                  /* the scheme of the request that was opened last */
    bool same_request;           /* the place is that of the last shim_open, and so is `method` */
    bool url_doubtful;           /* a CURLU was used, and no URL set since (curl_call.c) */
    bool unreliable;             /* the shadow is not to be trusted: the handle runs uncovered */
    bool performing;             /* inside its own curl_easy_perform */
    bool superseded;             /* the transfer under way is not what the application gets: its
                                    model was refused late, or its connect failed */
    bool synthetic;              /* our answer is under way */
    bool answered;               /* the last answer was ours: getinfo tells the application's URL */
    bool answered_https;
    bool rerouted;   /* the last answer was a fallback's: getinfo tells its URL */
    bool fails_over; /* when it cannot connect, it may go to a fallback */
    bool prepared;   /* `superseded`, and what follows is prepared already */
    bool paused;
    bool headed, watching; /* of the body that our write callback sees: its head is known; the door
                              wants more of it */
    bool sees_body;        /* our write callback stands there */
    bool listens;          /* and notes when it was called last, in heard_ns */
    bool held;             /* the application paused it, or went on, before its body began */
    uint64_t heard_ns;     /* CLOCK_MONOTONIC, when the application had taken what came last */
    struct easy *next_unread; /* in multi->unread, while `done_unread` */
    bool done_unread;
    bool stranded;               /* libcurl did not take it back for our answer: ours to remove */
    struct call_end end;         /* of a multi that is cleaned up under it: how far it came */
    char *answered_url;          /* owned: what getinfo tells while `answered` or `rerouted` */
    struct synth_socket *socket; /* of the answer under way, else NULL */
    struct mime_node *mimes;
    char mime_model[256];         /* of a MIMEPOST that libcurl duplicated; empty: none */
    char errors[CURL_ERROR_SIZE]; /* libcurl's words where the application does not ask for them */
    CURLMsg message;              /* the DONE that waits in multi->unread, or was read from there */
};

struct multi {
    CURLM *handle;
    real_t real;
    struct easy *members;
    uint64_t rounds;            /* performs so far, the one under way included */
    struct easy *superseded;    /* to be added anew after the perform under way */
    struct easy *unread, *last; /* whose DONE we read and the application did not; oldest first */
    bool queues;                /* a member may wait in it before it connects */
    bool fails_over;            /* a member may, when it cannot connect */
    bool in_round;              /* inside a perform, or right behind it */
    curl_off_t broken_port;     /* local port of the connection that failed last */
    uint64_t broken_ns;         /* and when */
};

/* A mime handle or part of an easy handle. Freed with the mime or with the easy handle. */
struct mime_node {
    const void *key;
    struct mime_node *root; /* the mime that it belongs to, or itself */
    struct easy *easy;
    struct mime_node *next;
    bool is_model;
    bool in_memory; /* of a part: `data` is its content, whole */
    char data[256]; /* of a part: its content; of a mime: the model */
};

enum easymap_kind { EASYMAP_EASY, EASYMAP_MULTI, EASYMAP_MIME };

/* What a key is and whose. */
struct easymap_node {
    const void *key;
    real_t real;
    void *what; /* struct easy, multi or mime_node */
    enum easymap_kind kind;
};

/*
 * What this thread found last, absence included: one transfer asks several times for the same few
 * handles. Good as long as nothing was added or dropped by anyone: `easymap_changes` counts that,
 * raised after the change (release) and read before the look-up (acquire). A handle passes between
 * threads by the application's own synchronisation, which orders the count with it. Initial-exec:
 * we are loaded at start, and a hook must not allocate. Private to the inline function below.
 */
#define EASYMAP_REMEMBERED 8
struct easymap_memory {
    struct easymap_node node; /* .what NULL: absent */
    unsigned changes;
};
extern atomic_uint easymap_changes;
extern __thread struct easymap_memory easymap_memory[EASYMAP_REMEMBERED]
    __attribute__((tls_model("initial-exec")));
const struct easymap_node *easymap_search(const void *key, struct easymap_memory *memory,
                                          unsigned changes);

/* NULL when unknown; good until this thread asks for another key. */
static inline const struct easymap_node *easymap_find(const void *key)
{
    unsigned changes = atomic_load_explicit(&easymap_changes, memory_order_acquire);
    struct easymap_memory *memory =
        &easymap_memory[((uintptr_t)key >> 4 ^ (uintptr_t)key >> 8) % EASYMAP_REMEMBERED];

    if (memory->node.key != key || memory->changes != changes)
        return easymap_search(key, memory, changes);
    return memory->node.what ? &memory->node : NULL;
}

static inline void *easymap_what(const void *key, enum easymap_kind kind)
{
    const struct easymap_node *node = easymap_find(key);

    return node && node->kind == kind ? node->what : NULL;
}

/* NULL when unknown (internal handles of libcurl, handles made past us). */
static inline struct easy *easymap_easy(CURL *handle)
{
    return easymap_what(handle, EASYMAP_EASY);
}

static inline struct multi *easymap_multi(CURLM *handle)
{
    return easymap_what(handle, EASYMAP_MULTI);
}

static inline struct mime_node *easymap_mime(const void *key)
{
    return easymap_what(key, EASYMAP_MIME);
}

/* The library that a handle (CURL *, CURLM *, curl_mime * or part) is known to belong to; NULL when
 * unknown. Thread-safe. */
static inline real_t easymap_owner(const void *handle)
{
    const struct easymap_node *node = easymap_find(handle);

    return node ? node->real : NULL;
}

/* Make known; NULL when there is no memory. `root`: NULL for a mime itself. */
struct easy *easymap_add_easy(CURL *handle, real_t real);
struct multi *easymap_add_multi(CURLM *handle, real_t real);
struct mime_node *easymap_add_mime(const void *key, struct mime_node *root, struct easy *easy);

/* Called by the constructor, while there is one thread; otherwise with the first handle. */
void easymap_prepare(void);

/* Hands back what the calls under way hold. Only while there is one thread. */
void easymap_drop_calls(void);

void easymap_remove_easy(struct easy *easy);    /* and its mimes; frees */
void easymap_remove_multi(struct multi *multi); /* frees */
void easymap_remove_mime(const void *mime);     /* with its parts */

#endif
