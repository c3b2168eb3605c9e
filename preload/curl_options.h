/*
 * curl_options.h - the shadow of a handle's options: libcurl has no getopt.
 *
 * Only what is needed is kept: what tells the request (URL, method, body), and what we override for
 * the synthetic answer or while a body is watched, so that it can be put back exactly. Strings are
 * copied, as libcurl copies them; POSTFIELDS is the application's pointer, as in libcurl.
 *
 * While an option is overridden the application's setopt changes the shadow only, and is what gets
 * restored.
 */
#ifndef BREAKER_PRELOAD_CURL_OPTIONS_H
#define BREAKER_PRELOAD_CURL_OPTIONS_H

#include "base/span.h"
#include "curl_hooks.h"

#include <stdint.h>

enum option_kind { KIND_LONG, KIND_STRING, KIND_POINTER, KIND_BLOB };

/* SHADOW(id, kind): one line per option that is kept. */
#define CURL_SHADOWED(SHADOW)                                                                      \
    SHADOW(URL, STRING)                                                                            \
    SHADOW(CURLU, POINTER)                                                                         \
    SHADOW(DEFAULT_PROTOCOL, STRING)                                                               \
    SHADOW(PATH_AS_IS, LONG)                                                                       \
    SHADOW(PORT, LONG)                                                                             \
    SHADOW(CUSTOMREQUEST, STRING)                                                                  \
    SHADOW(POSTFIELDS, POINTER)                                                                    \
    SHADOW(MIMEPOST, POINTER)                                                                      \
    SHADOW(HTTPPOST, POINTER)                                                                      \
    SHADOW(POSTFIELDSIZE_LARGE, LONG)                                                              \
    SHADOW(INFILESIZE_LARGE, LONG)                                                                 \
    SHADOW(WRITEFUNCTION, POINTER)                                                                 \
    SHADOW(WRITEDATA, POINTER)                                                                     \
    SHADOW(HEADER, LONG)                                                                           \
    SHADOW(HEADERFUNCTION, POINTER)                                                                \
    SHADOW(HEADERDATA, POINTER)                                                                    \
    SHADOW(READFUNCTION, POINTER)                                                                  \
    SHADOW(READDATA, POINTER)                                                                      \
    SHADOW(SEEKFUNCTION, POINTER)                                                                  \
    SHADOW(SEEKDATA, POINTER)                                                                      \
    SHADOW(IOCTLFUNCTION, POINTER)                                                                 \
    SHADOW(IOCTLDATA, POINTER)                                                                     \
    SHADOW(OPENSOCKETFUNCTION, POINTER)                                                            \
    SHADOW(OPENSOCKETDATA, POINTER)                                                                \
    SHADOW(SOCKOPTFUNCTION, POINTER)                                                               \
    SHADOW(CLOSESOCKETFUNCTION, POINTER)                                                           \
    SHADOW(CLOSESOCKETDATA, POINTER)                                                               \
    SHADOW(CONNECT_TO, POINTER)                                                                    \
    SHADOW(FRESH_CONNECT, LONG)                                                                    \
    SHADOW(FORBID_REUSE, LONG)                                                                     \
    SHADOW(PROXY, STRING)                                                                          \
    SHADOW(PRE_PROXY, STRING)                                                                      \
    SHADOW(NOPROXY, STRING)                                                                        \
    SHADOW(HTTP_VERSION, LONG)                                                                     \
    SHADOW(PROTOCOLS, LONG)                                                                        \
    SHADOW(PROTOCOLS_STR, STRING)                                                                  \
    SHADOW(INTERFACE, STRING)                                                                      \
    SHADOW(LOCALPORT, LONG)                                                                        \
    SHADOW(IPRESOLVE, LONG)                                                                        \
    SHADOW(UNIX_SOCKET_PATH, STRING)                                                               \
    SHADOW(ABSTRACT_UNIX_SOCKET, STRING)                                                           \
    SHADOW(RESUME_FROM_LARGE, LONG)                                                                \
    SHADOW(PREREQFUNCTION, POINTER)                                                                \
    SHADOW(TCP_NODELAY, LONG)                                                                      \
    SHADOW(TCP_FASTOPEN, LONG)                                                                     \
    SHADOW(IGNORE_CONTENT_LENGTH, LONG)                                                            \
    SHADOW(CONNECT_ONLY, LONG)                                                                     \
    SHADOW(HTTPAUTH, LONG)                                                                         \
    SHADOW(PIPEWAIT, LONG)                                                                         \
    SHADOW(FOLLOWLOCATION, LONG)                                                                   \
    SHADOW(ERRORBUFFER, POINTER)                                                                   \
    SHADOW(HTTPHEADER, POINTER)                                                                    \
    SHADOW(REQUEST_TARGET, STRING)                                                                 \
    SHADOW(TIMEOUT_MS, LONG)                                                                       \
    SHADOW(USERNAME, STRING)                                                                       \
    SHADOW(PASSWORD, STRING)                                                                       \
    SHADOW(XOAUTH2_BEARER, STRING)                                                                 \
    SHADOW(AWS_SIGV4, STRING)                                                                      \
    SHADOW(NETRC, LONG)                                                                            \
    SHADOW(COOKIE, STRING)                                                                         \
    SHADOW(UNRESTRICTED_AUTH, LONG)                                                                \
    SHADOW(SSLCERT, STRING)                                                                        \
    SHADOW(SSLKEY, STRING)                                                                         \
    SHADOW(KEYPASSWD, STRING)                                                                      \
    SHADOW(SSLCERT_BLOB, BLOB)                                                                     \
    SHADOW(SSLKEY_BLOB, BLOB)                                                                      \
    SHADOW(TLSAUTH_USERNAME, STRING)                                                               \
    SHADOW(TLSAUTH_PASSWORD, STRING)                                                               \
    SHADOW(SSL_VERIFYPEER, LONG)                                                                   \
    SHADOW(SSL_VERIFYHOST, LONG)                                                                   \
    SHADOW(SSL_CTX_FUNCTION, POINTER)                                                              \
    SHADOW(SSL_OPTIONS, LONG)                                                                      \
    SHADOW(SOCKOPTDATA, POINTER)                                                                   \
    SHADOW(RESOLVE, POINTER)                                                                       \
    SHADOW(REFERER, STRING)                                                                        \
    SHADOW(TRAILERFUNCTION, POINTER)                                                               \
    SHADOW(HAPROXYPROTOCOL, LONG)                                                                  \
    SHADOW(PINNEDPUBLICKEY, STRING)

enum shadow_index {
#define SHADOW(id, kind) SHADOW_##id,
    CURL_SHADOWED(SHADOW)
#undef SHADOW
        SHADOW_COUNT
};
#define SHADOW_WORDS ((SHADOW_COUNT + 63) / 64)

struct shadow_value {
    union {
        long number;   /* curl_off_t too: LP64 */
        char *string;  /* owned */
        void *pointer; /* of a KIND_BLOB owned: a copy, and that is put back */
    };
    bool set;        /* false: libcurl's default */
    bool overridden; /* libcurl holds another value than the application's */
    bool guarded;    /* libcurl has the application's, and must not get another one now */
};

enum body_source { BODY_NONE, BODY_FIELDS, BODY_READ, BODY_MIME, BODY_FORM };

struct curl_options {
    struct shadow_value value[SHADOW_COUNT];
    unsigned overridden;           /* how many of them are, or are guarded */
    uint64_t marked[SHADOW_WORDS]; /* which, one bit each: no other is looked at */
    /* The request as libcurl derives it, option by option in the application's order. */
    enum {
        REQUEST_GET,
        REQUEST_HEAD,
        REQUEST_POST,
        REQUEST_PUT,
        REQUEST_MIME,
        REQUEST_FORM
    } request;
    bool upload;         /* UPLOAD: a PUT, whatever the request says */
    bool no_body;        /* NOBODY: nothing is read behind the head of the response */
    char *copied_fields; /* COPYPOSTFIELDS, owned; NULL when POSTFIELDS rules */
    size_t copied_size;
    bool protocols_by_name; /* PROTOCOLS_STR came last */
    bool auth_by_signature; /* AWS_SIGV4 came after HTTPAUTH, and set it */
    bool may_have_hsts;     /* a known host may be upgraded to https */
    bool has_cookie_jar;    /* libcurl's own is in use */
    bool may_share_cookies; /* with other handles */
};

/* Follows a setopt that libcurl accepted, or one that is kept from it (overridden). Returns false
 * when there was no memory: the shadow is then not to be trusted. */
bool curl_options_note(struct curl_options *options, CURLoption option, void *value);

/* Asked before it is noted: may the option lead to another place, or name a method of its own? */
bool curl_options_change_place(const struct curl_options *options, CURLoption option,
                               const void *value);

/* Is the option one that libcurl must not see now? */
bool curl_options_withheld(const struct curl_options *options, CURLoption option);

void curl_options_clear(struct curl_options *options);
/* The application's values, none overridden. False: no memory; `to` is cleared then. */
bool curl_options_copy(struct curl_options *to, const struct curl_options *from);

/* Puts `value` into libcurl and marks the option as overridden. */
void curl_options_override(struct curl_options *options, real_t real, CURL *easy,
                           enum shadow_index index, void *value);
/* Has libcurl keep what it has: what the application sets from now on waits until the restore. */
void curl_options_guard(struct curl_options *options, enum shadow_index index);
/* Has libcurl keep its default, which overrides the application's value if it set another one. */
void curl_options_neutralise(struct curl_options *options, real_t real, CURL *easy,
                             enum shadow_index index);
/* Puts every overridden option back. Harmless when there is none. */
void curl_options_restore_all(struct curl_options *options, real_t real, CURL *easy);
static inline void curl_options_restore(struct curl_options *options, real_t real, CURL *easy)
{
    if (options->overridden > 0)
        curl_options_restore_all(options, real, easy);
}

/* This one alone, if it is overridden; none that shares a field of libcurl's with another. */
void curl_options_put_back(struct curl_options *options, real_t real, CURL *easy,
                           enum shadow_index index);

/* The same as restore for `copy`, a handle that libcurl duplicated from that of `options` and that
 * carries our values. Needs no memory of ours. */
void curl_options_restore_copy(const struct curl_options *options, real_t real, CURL *copy);
/* Lets the option go without putting it back: the application's own setopt is about to. */
void curl_options_release(struct curl_options *options, enum shadow_index index);

/* Lets URLs of http and https pass where the application allows some protocols only. */
void curl_options_allow_http(struct curl_options *options, real_t real, CURL *easy);

/* The port that CURLOPT_PORT has libcurl connect to; 0: the URL's own. */
uint16_t curl_options_port(const struct curl_options *options);

/* How long the application gives a transfer, in ms; 0: as long as it takes. TIMEOUT and TIMEOUT_MS
 * are one field of libcurl's: whichever was set last. */
static inline long curl_options_timeout_ms(const struct curl_options *options)
{
    const struct shadow_value *timeout = &options->value[SHADOW_TIMEOUT_MS];

    return timeout->set && timeout->number > 0 ? timeout->number : 0;
}

/* "POST", … For methods that are not CUSTOMREQUEST's always the same pointer. */
const char *curl_options_method(const struct curl_options *options);
enum body_source curl_options_body(const struct curl_options *options);
/* The body that BODY_FIELDS sends, in memory. */
struct span curl_options_fields(const struct curl_options *options);
/* Which option tells of a BODY_READ body how long it is. */
enum shadow_index curl_options_size_of_body(const struct curl_options *options);
/* How long a BODY_READ body is as the application told; -1: until its end. */
curl_off_t curl_options_body_size(const struct curl_options *options);

#endif
