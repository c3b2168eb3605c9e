/* client_options.c - options that change the call or its connection. */
#include "client.h"

#include <sys/socket.h>

static void prepare_failonerror(struct request *r)
{
    post_fields(r);
    curl_easy_setopt(r->easy, CURLOPT_FAILONERROR, 1L);
}

static void prepare_nobody(struct request *r)
{
    post_fields(r);
    curl_easy_setopt(r->easy, CURLOPT_NOBODY, 1L);
    curl_easy_setopt(r->easy, CURLOPT_CUSTOMREQUEST, "POST");
}

static void prepare_bound(struct request *r)
{
    post_fields(r);
    curl_easy_setopt(r->easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(r->easy, CURLOPT_INTERFACE, "lo");
    curl_easy_setopt(r->easy, CURLOPT_IPRESOLVE, (long)CURL_IPRESOLVE_V4);
    curl_easy_setopt(r->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_0);
    curl_easy_setopt(r->easy, CURLOPT_TCP_FASTOPEN, 0L);
    curl_easy_setopt(r->easy, CURLOPT_KEEP_SENDING_ON_ERROR, 1L);
    curl_easy_setopt(r->easy, CURLOPT_RANGE, "0-");
}

static void prepare_curlu(struct request *r)
{
    static CURLU *parts;

    if (!parts)
        parts = curl_url();
    curl_url_set(parts, CURLUPART_URL, url, 0);
    post_fields(r);
    curl_easy_setopt(r->easy, CURLOPT_URL, NULL);
    curl_easy_setopt(r->easy, CURLOPT_CURLU, parts);
}

static void prepare_no_writedata(struct request *r)
{
    post_fields(r);
    curl_easy_reset(r->easy);
    curl_easy_setopt(r->easy, CURLOPT_URL, url);
    curl_easy_setopt(r->easy, CURLOPT_POSTFIELDS, r->body);
}

static int opened, configured, closed;

static curl_socket_t open_socket(void *data, curlsocktype purpose, struct curl_sockaddr *a)
{
    (void)purpose;
    ++*(int *)data;
    return socket(a->family, a->socktype, a->protocol);
}

static int configure_socket(void *data, curl_socket_t fd, curlsocktype purpose)
{
    (void)fd;
    (void)purpose;
    ++*(int *)data;
    return CURL_SOCKOPT_OK;
}

static int close_socket(void *data, curl_socket_t fd)
{
    ++*(int *)data;
    return close(fd);
}

static void prepare_callbacks(struct request *r)
{
    post_fields(r);
    curl_easy_setopt(r->easy, CURLOPT_FORBID_REUSE, 1L);
    curl_easy_setopt(r->easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(r->easy, CURLOPT_OPENSOCKETDATA, &opened);
    curl_easy_setopt(r->easy, CURLOPT_SOCKOPTFUNCTION, configure_socket);
    curl_easy_setopt(r->easy, CURLOPT_SOCKOPTDATA, &configured);
    curl_easy_setopt(r->easy, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
    curl_easy_setopt(r->easy, CURLOPT_CLOSESOCKETDATA, &closed);
}

static void prepare_connect_only(struct request *r)
{
    post_fields(r);
    curl_easy_setopt(r->easy, CURLOPT_CONNECT_ONLY, strcmp(r->model, "shut") == 0 ? 1L : 0L);
}

/* A signature whose region and service are told by the host's name. */
static void prepare_signed(struct request *r)
{
    post_fields(r);
    curl_easy_setopt(r->easy, CURLOPT_AWS_SIGV4, "aws:amz");
    curl_easy_setopt(r->easy, CURLOPT_USERPWD, "key:secret");
    curl_easy_setopt(r->easy, CURLOPT_HTTPHEADER, NULL);
}

/* Neither leaves what it was set for. */
static void prepare_get_off(struct request *r)
{
    post_fields(r);
    curl_easy_setopt(r->easy, CURLOPT_HTTPGET, 0L);
}

/* A HEAD that is none any more is a GET. */
static void prepare_nobody_off(struct request *r)
{
    post_fields(r);
    curl_easy_setopt(r->easy, CURLOPT_NOBODY, 1L);
    curl_easy_setopt(r->easy, CURLOPT_NOBODY, 0L);
}

/* extra: a file of HSTS entries */
static void prepare_hsts(struct request *r)
{
    post_fields(r);
    curl_easy_setopt(r->easy, CURLOPT_HSTS_CTRL, (long)CURLHSTS_ENABLE);
    curl_easy_setopt(r->easy, CURLOPT_HSTS, extra);
    curl_easy_setopt(r->easy, CURLOPT_SSL_VERIFYPEER, 0L);
}

/* What SCHEME and PROTOCOL tell after a call; they are libcurl's spelling of the URL's. */
static void mode_scheme(void)
{
    static const char *const models[] = {"fine", "shut"};
    CURL *easy = curl_easy_init();

    for (int i = 0; i < 2; i++) {
        struct request r;
        char *scheme = NULL;
        long protocol = 0;
        begin(&r, easy, models[i]);
        post_fields(&r);
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
        if (curl_easy_perform(easy) != CURLE_OK)
            die("a call failed");
        curl_easy_getinfo(easy, CURLINFO_SCHEME, &scheme);
        curl_easy_getinfo(easy, CURLINFO_PROTOCOL, &protocol);
        printf("%s %s %ld\n", models[i], scheme, protocol);
        free(r.body);
    }
    curl_easy_cleanup(easy);
}

/* Paused in its body until the time-out; extra "resumed": and at once let go again. */
static int pause_in_body(void *data, curl_off_t total, curl_off_t now, curl_off_t up,
                         curl_off_t sent)
{
    struct request *r = data;

    (void)total;
    (void)up;
    (void)sent;
    if (now > 0 && !r->sent++) {
        curl_easy_pause(r->easy, CURLPAUSE_RECV);
        if (strcmp(extra, "resumed") == 0)
            curl_easy_pause(r->easy, CURLPAUSE_CONT);
    }
    return 0;
}

static void mode_paused(void)
{
    struct request r;

    begin(&r, curl_easy_init(), "fine");
    post_fields(&r);
    curl_easy_setopt(r.easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(r.easy, CURLOPT_XFERINFOFUNCTION, pause_in_body);
    curl_easy_setopt(r.easy, CURLOPT_XFERINFODATA, &r);
    curl_easy_setopt(r.easy, CURLOPT_TIMEOUT_MS, 400L);
    perform(&r);
    if (!r.sent)
        die("never paused");
    curl_easy_cleanup(r.easy);
}

static void three_with_callbacks(prepare_t prepare)
{
    three(prepare);
    printf("callbacks %d %d %d -\n", opened, configured, closed);
}

const struct mode option_modes[] = {
    {"failonerror", three, prepare_failonerror, NULL},
    {"nobody", three, prepare_nobody, NULL},
    {"bound", three, prepare_bound, NULL},
    {"curlu", three, prepare_curlu, NULL},
    {"callbacks", three_with_callbacks, prepare_callbacks, NULL},
    {"connect-only", three, prepare_connect_only, NULL},
    {"no-writedata", three, prepare_no_writedata, NULL},
    {"signed", three, prepare_signed, NULL},
    {"hsts", three, prepare_hsts, NULL},
    {"get-off", three, prepare_get_off, NULL},
    {"nobody-off", three, prepare_nobody_off, NULL},
    {"scheme", NULL, NULL, mode_scheme},
    {"paused", NULL, NULL, mode_paused},
    {.name = NULL},
};
