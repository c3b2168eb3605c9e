/*
 * client_connection.c - options that would lead an answer of ours astray, or end it in an error.
 * Set once per handle: what the calls around a refused one do tells whether they were put back.
 */
#include "client.h"

#include <netinet/in.h>
#include <sys/socket.h>

/* fine, shut, fine; prepared before the first of them only. */
static void three_set_once(prepare_t prepare)
{
    static const char *const models[] = {"fine", "shut", "fine"};
    CURL *easy = curl_easy_init();

    for (int i = 0; i < 3; i++) {
        struct request r;
        begin(&r, easy, models[i]);
        post_fields(&r);
        if (i == 0)
            prepare(&r);
        perform(&r);
    }
    curl_easy_cleanup(easy);
}

static void set_range(struct request *r)
{
    curl_easy_setopt(r->easy, CURLOPT_RANGE, "5-9");
}

static void set_timecondition(struct request *r)
{
    curl_easy_setopt(r->easy, CURLOPT_TIMECONDITION, (long)CURL_TIMECOND_IFMODSINCE);
    curl_easy_setopt(r->easy, CURLOPT_TIMEVALUE, 2000000000L);
}

static void set_haproxy(struct request *r)
{
    curl_easy_setopt(r->easy, CURLOPT_HAPROXYPROTOCOL, 1L);
    curl_easy_setopt(r->easy, CURLOPT_FORBID_REUSE, 1L);
}

static void set_interface(struct request *r)
{
    curl_easy_setopt(r->easy, CURLOPT_INTERFACE, "127.0.0.1");
}

static void set_ipv6_only(struct request *r)
{
    curl_easy_setopt(r->easy, CURLOPT_IPRESOLVE, (long)CURL_IPRESOLVE_V6);
}

/* A local port that somebody else has. */
static void set_taken_port(struct request *r)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (bind(fd, (struct sockaddr *)&address, length) != 0 || listen(fd, 1) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) != 0)
        die("no port to take");
    curl_easy_setopt(r->easy, CURLOPT_LOCALPORT, (long)ntohs(address.sin_port));
}

/* It lets nobody be asked but the server of the URL. */
static int judge_peer(void *port, char *peer, char *own, int peer_port, int own_port)
{
    (void)peer;
    (void)own;
    (void)own_port;
    return peer_port == *(int *)port ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

static void set_prereq(struct request *r)
{
    static int port;

    port = atoi(strrchr(url, ':') + 1);
    curl_easy_setopt(r->easy, CURLOPT_PREREQFUNCTION, judge_peer);
    curl_easy_setopt(r->easy, CURLOPT_PREREQDATA, &port);
}

static int refuse_complaints(CURL *easy, curl_infotype type, char *data, size_t size, void *user)
{
    (void)easy;
    (void)user;
    if (type == CURLINFO_TEXT && (memmem(data, size, "Could not set", strlen("Could not set")) ||
                                  memmem(data, size, "Failed to", strlen("Failed to"))))
        die("libcurl was told to set what cannot be set");
    return 0;
}

static void set_verbose(struct request *r)
{
    curl_easy_setopt(r->easy, CURLOPT_VERBOSE, 1L);
    curl_easy_setopt(r->easy, CURLOPT_DEBUGFUNCTION, refuse_complaints);
}

static void set_fastopen(struct request *r)
{
    curl_easy_setopt(r->easy, CURLOPT_TCP_FASTOPEN, 1L);
    curl_easy_setopt(r->easy, CURLOPT_FORBID_REUSE, 1L);
    set_verbose(r);
}

/* Of a body in memory there is nothing to resume: without us it fails. */
static void prepare_resume(struct request *r)
{
    post_fields(r);
    curl_easy_setopt(r->easy, CURLOPT_RESUME_FROM_LARGE, (curl_off_t)(is_shut(r) ? 10 : 0));
}

/* --- with a body of which a part is left when the answer comes ---------------------------------
 */

static void prepare_keep_sending(struct request *r)
{
    post_read(r, 0);
    curl_easy_setopt(r->easy, CURLOPT_KEEP_SENDING_ON_ERROR, 1L);
    curl_easy_setopt(r->easy, CURLOPT_TIMEOUT, 3L);
}

static void prepare_keep_sending_large(struct request *r)
{
    enum { LARGE = 3000000 };
    static char body[LARGE + 100];
    int at = sprintf(body, "{\"model\":\"%s\",\"q\":\"", r->model);

    memset(body + at, 'x', LARGE);
    strcpy(body + at + LARGE, "\"}");
    curl_easy_setopt(r->easy, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(r->easy, CURLOPT_KEEP_SENDING_ON_ERROR, 1L);
    curl_easy_setopt(r->easy, CURLOPT_TIMEOUT, 3L);
}

/* --- one field of libcurl under two options: the last one rules ------------------------------ */

static void set_abstract(struct request *r)
{
    curl_easy_setopt(r->easy, CURLOPT_ABSTRACT_UNIX_SOCKET, extra);
}

static void set_path_after_abstract(struct request *r)
{
    curl_easy_setopt(r->easy, CURLOPT_ABSTRACT_UNIX_SOCKET, "nobody is here");
    curl_easy_setopt(r->easy, CURLOPT_UNIX_SOCKET_PATH, extra);
}

static void set_abstract_after_path(struct request *r)
{
    curl_easy_setopt(r->easy, CURLOPT_UNIX_SOCKET_PATH, "/nonexistent/socket");
    curl_easy_setopt(r->easy, CURLOPT_ABSTRACT_UNIX_SOCKET, extra);
}

static void set_path_and_clear(struct request *r)
{
    curl_easy_setopt(r->easy, CURLOPT_UNIX_SOCKET_PATH, "/nonexistent/socket");
    curl_easy_setopt(r->easy, CURLOPT_ABSTRACT_UNIX_SOCKET, NULL);
}

static void set_abstract_and_clear(struct request *r)
{
    curl_easy_setopt(r->easy, CURLOPT_ABSTRACT_UNIX_SOCKET, "nobody is here");
    curl_easy_setopt(r->easy, CURLOPT_UNIX_SOCKET_PATH, NULL);
}

/* No address holds it: libcurl fails before it opens a socket. */
static const char *too_long(void)
{
    static char name[300];

    memset(name, 'x', sizeof name - 1);
    return name;
}

static void set_path_too_long(struct request *r)
{
    curl_easy_setopt(r->easy, CURLOPT_UNIX_SOCKET_PATH, too_long());
}

static void set_abstract_too_long(struct request *r)
{
    curl_easy_setopt(r->easy, CURLOPT_ABSTRACT_UNIX_SOCKET, too_long());
}

/* A refused https call, then one of http, which the protocols forbid. */
static void forbid_http(prepare_t set)
{
    CURL *easy = curl_easy_init();
    char plain[300];
    struct request r;

    begin(&r, easy, "shut");
    post_fields(&r);
    set(&r);
    perform(&r);
    begin(&r, easy, "fine");
    post_fields(&r);
    snprintf(plain, sizeof plain, "http%s", url + strlen("https"));
    curl_easy_setopt(easy, CURLOPT_URL, plain);
    perform(&r);
    curl_easy_cleanup(easy);
}

static void set_protocols(struct request *r)
{
    curl_easy_setopt(r->easy, CURLOPT_PROTOCOLS, (long)CURLPROTO_HTTPS);
}

static void set_protocols_after_names(struct request *r)
{
    curl_easy_setopt(r->easy, CURLOPT_PROTOCOLS_STR, "http,https");
    set_protocols(r);
}

static void set_names_after_protocols(struct request *r)
{
    curl_easy_setopt(r->easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    curl_easy_setopt(r->easy, CURLOPT_PROTOCOLS_STR, "https");
}

const struct mode connection_modes[] = {
    {"range", three_set_once, set_range, NULL},
    {"timecondition", three_set_once, set_timecondition, NULL},
    {"haproxy", three_set_once, set_haproxy, NULL},
    {"fastopen", three_set_once, set_fastopen, NULL},
    {"interface", three_set_once, set_interface, NULL},
    {"ipv6-only", three_set_once, set_ipv6_only, NULL},
    {"taken-port", three_set_once, set_taken_port, NULL},
    {"prereq", three_set_once, set_prereq, NULL},
    {"verbose", three_set_once, set_verbose, NULL},
    {"resume", three, prepare_resume, NULL},
    {"keep-sending", three, prepare_keep_sending, NULL},
    {"keep-sending-large", three, prepare_keep_sending_large, NULL},
    {"abstract", three_set_once, set_abstract, NULL},
    {"path-too-long", three_set_once, set_path_too_long, NULL},
    {"abstract-too-long", three_set_once, set_abstract_too_long, NULL},
    {"path-after-abstract", three_set_once, set_path_after_abstract, NULL},
    {"abstract-after-path", three_set_once, set_abstract_after_path, NULL},
    {"path-and-clear", three_set_once, set_path_and_clear, NULL},
    {"abstract-and-clear", three_set_once, set_abstract_and_clear, NULL},
    {"protocols", forbid_http, set_protocols, NULL},
    {"protocols-after-names", forbid_http, set_protocols_after_names, NULL},
    {"names-after-protocols", forbid_http, set_names_after_protocols, NULL},
    {.name = NULL},
};
