/*
 * real.h - finds the functions that our hooks stand before.
 *
 * Every libcurl in the process that a call came to is a `struct curl_real`, one per library, found
 * once and kept for the life of the process (its library is held by a dlopen reference, so it
 * stays). A handle belongs for life to the library that made it (FIELD-NOTES 1.2); easymap keeps
 * that tie.
 *
 * Order of the search (FIELD-NOTES 1.3), for a call that no known handle ties to a library: what
 * the loader would have bound the caller to, then anything better than nothing.
 *   1. the object that the call comes from, if it defines curl_easy_init itself (an inner call);
 *   2. by exact version, the global scope behind us;
 *   3. where the caller's object needs a libcurl (that version, or an unversioned one): an
 *      unversioned one in the global scope, else the needed one;
 *   4. by exact version: dlopen(soname, RTLD_NOLOAD); every loaded libcurl*;
 *   5. without version: the global scope behind us; the soname; every loaded libcurl*.
 * An address inside ourselves is never accepted; only success is remembered.
 *
 * Limits: an object that carries a libcurl of its own and exports it is taken for that libcurl, so
 * its calls run uncovered. A wrapper of single curl functions preloaded behind us is passed by.
 * dlsym(RTLD_DEFAULT, "curl_…") and weak references find our entries where no libcurl is loaded.
 */
#ifndef BREAKER_PRELOAD_REAL_H
#define BREAKER_PRELOAD_REAL_H

#define CURL_DISABLE_TYPECHECK
#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>
#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt
#if LIBCURL_VERSION_NUM < 0x075500 /* since 7.85.0; the libcurl at run time may have it */
#define CURLOPT_PROTOCOLS_STR ((CURLoption)(CURLOPTTYPE_OBJECTPOINT + 318))
#endif
#if LIBCURL_VERSION_NUM < 0x075000 /* since 7.80.0 */
#define CURLOPT_PREREQFUNCTION ((CURLoption)(CURLOPTTYPE_FUNCTIONPOINT + 312))
#endif

#include <netdb.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

/* X(suffix of the C name, version node, soname): the versions under which distributions export
 * libcurl. The first is the default version (@@), which serves unversioned libcurls too. */
#define CURL_FLAVOURS(X)                                                                           \
    X(openssl4, "CURL_OPENSSL_4", "libcurl.so.4")                                                  \
    X(gnutls3, "CURL_GNUTLS_3", "libcurl-gnutls.so.4")                                             \
    X(nss3, "CURL_NSS_3", "libcurl-nss.so.4")                                                      \
    X(curl4, "CURL_4", "libcurl.so.4")                                                             \
    X(multissl4, "CURL_MULTISSL_4", "libcurl.so.4")                                                \
    X(mbedtls4, "CURL_MBEDTLS_4", "libcurl.so.4")                                                  \
    X(wolfssl4, "CURL_WOLFSSL_4", "libcurl.so.4")                                                  \
    X(gnutls4, "CURL_GNUTLS_4", "libcurl.so.4")                                                    \
    X(rustls4, "CURL_RUSTLS_4", "libcurl.so.4")

enum curl_flavour {
#define X(id, version, soname) FLAVOUR_##id,
    CURL_FLAVOURS(X)
#undef X
    /* An unversioned libcurl whose functions came by dlsym: entries that are not exported, so that
       its handles do not end up in a versioned libcurl beside it. */
    FLAVOUR_plain,
    FLAVOUR_COUNT
};

/* One libcurl: its own functions. A member is NULL when that libcurl lacks it. */
struct curl_real {
#define CURL_HOOK(type, name, parameters, arguments) type(*name) parameters;
#define CURL_HOOK_VARIADIC(type, name, first_type, second_type)                                    \
    type (*name)(first_type, second_type, ...);
#define CURL_REAL(type, name, parameters) type(*name) parameters;
#include "hooks.def"
    unsigned version;  /* e.g. 0x075801 for 7.88.1, from curl_version_info */
    const char *begin; /* the object's addresses: a call from here is libcurl's own inner one */
    size_t size;
    const struct curl_real *next; /* real_library.h */
    bool is_breaker; /* another copy of libbreaker behind us: it decides, our calls pass to it */
};

/* The library for a call of `flavour` from `caller` (a return address) that no handle ties down and
 * that is no known libcurl's inner one (library_known()); NULL when none is found: the entry then
 * returns what libcurl gives for failed set-up. Thread-safe; takes the loader's locks and may call
 * malloc. Keeps errno. */
const struct curl_real *real_curl(enum curl_flavour flavour, const void *caller);

/* What stands behind us, another preload or libc; resolved by real_prepare(), async-signal-safe
 * afterwards. */
typedef int connect_function(int fd, const struct sockaddr *address, socklen_t length);
typedef void *dlopen_function(const char *file, int mode);
typedef void *dlsym_function(void *handle, const char *name);
typedef int getaddrinfo_function(const char *node, const char *service,
                                 const struct addrinfo *hints, struct addrinfo **result);
typedef void freeaddrinfo_function(struct addrinfo *list);
connect_function *real_connect(void);
dlopen_function *real_dlopen(void);
dlsym_function *real_dlsym(void);
getaddrinfo_function *real_getaddrinfo(void);
/* For the lists of real_getaddrinfo() that are our own; NULL: there is none. Seldom needed, so it
 * is looked up each time: not async-signal-safe. */
freeaddrinfo_function *real_freeaddrinfo(void);

/* X(type, name, parameters): what the socket layer's hooks stand before, and calls. */
#define REAL_SOCK(X)                                                                               \
    X(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *size))                \
    X(int, getpeername, (int fd, struct sockaddr *address, socklen_t *length))                     \
    X(int, close, (int fd))                                                                        \
    X(int, close_range, (unsigned first, unsigned last, int flags))                                \
    X(void, closefrom, (int first))                                                                \
    X(int, shutdown, (int fd, int how))                                                            \
    X(int, dup, (int fd))                                                                          \
    X(int, dup2, (int from, int to))                                                               \
    X(int, dup3, (int from, int to, int flags))                                                    \
    X(int, fcntl, (int fd, int command, ...))                                                      \
    X(int, fcntl64, (int fd, int command, ...))                                                    \
    X(int, vfork, (void))                                                                          \
    X(int, _Fork, (void))                                                                          \
    X(int, clone,                                                                                  \
      (void *function, void *stack, long flags, void *argument, long a, long b, long c))           \
    X(int, prctl, (int option, long a, long b, long c, long d))                                    \
    X(long, syscall, (long number, long a, long b, long c, long d, long e, long f))                \
    X(ssize_t, write, (int fd, const void *buf, size_t size))                                      \
    X(ssize_t, writev, (int fd, const struct iovec *parts, int count))                             \
    X(ssize_t, send, (int fd, const void *buf, size_t size, int flags))                            \
    X(ssize_t, sendto,                                                                             \
      (int fd, const void *buf, size_t size, int flags, const struct sockaddr *address,            \
       socklen_t length))                                                                          \
    X(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags))                         \
    X(int, sendmmsg, (int fd, struct mmsghdr *messages, unsigned count, int flags))                \
    X(ssize_t, sendfile, (int out, int in, off_t *offset, size_t count))                           \
    X(ssize_t, sendfile64, (int out, int in, off64_t *offset, size_t count))                       \
    X(ssize_t, read, (int fd, void *buf, size_t size))                                             \
    X(ssize_t, readv, (int fd, const struct iovec *parts, int count))                              \
    X(ssize_t, recv, (int fd, void *buf, size_t size, int flags))                                  \
    X(ssize_t, recvfrom,                                                                           \
      (int fd, void *buf, size_t size, int flags, struct sockaddr *address, socklen_t *length))    \
    X(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags))                               \
    X(int, recvmmsg,                                                                               \
      (int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout))     \
    X(ssize_t, __read_chk, (int fd, void *buf, size_t size, size_t room))                          \
    X(ssize_t, __recv_chk, (int fd, void *buf, size_t size, size_t room, int flags))               \
    X(ssize_t, __recvfrom_chk,                                                                     \
      (int fd, void *buf, size_t size, size_t room, int flags, struct sockaddr *address,           \
       socklen_t *length))

/* Plain system calls until the constructor has asked for what stands behind us. Members are written
 * there alone, and read with one plain load: whoever sees the old value makes the same call. */
struct real_sock {
#define X(type, name, parameters) type(*name) parameters;
    REAL_SOCK(X)
#undef X
};
extern struct real_sock real_sock_found;
void real_sock_prepare(void);

/* Another copy of libbreaker stands behind us: it counts and refuses, our socket layer tracks
 * nothing. Written by the constructor alone. */
extern bool real_sock_other_decides;

/* Async-signal-safe, before the constructor too. */
static inline const struct real_sock *real_sock(void)
{
    return &real_sock_found;
}

/* libc's own, past every preload: for our own questions. */
dlopen_function *real_libc_dlopen(void);
dlsym_function *real_libc_dlsym(void);

/* Resolves libc's functions; called by the constructor, and by whichever hook comes before it. */
void real_prepare(void);

/* Our entry in place of `real`, the address that dlsym(handle, name) found; NULL when `name` is not
 * hooked, `real` is another libbreaker's or ours, or the entry would not lead back to the library
 * of `real` (a second copy of the same flavour): that one then runs uncovered. The flavour is told
 * by comparing with dlvsym(handle, name, version). Keeps errno; leaves no dlerror(). */
void *real_entry_for(void *handle, const char *name, void *real);

/* curl_entries.c: our entry of that name (with its "curl_") and flavour; NULL when not hooked. */
void *curl_entry(const char *name, enum curl_flavour flavour);

/* Is the address inside libbreaker.so? */
bool real_is_ours(const void *address);

#endif
