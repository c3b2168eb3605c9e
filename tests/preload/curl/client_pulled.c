/* client_pulled.c - bodies that libcurl pulls, from callbacks that do not just give them. */
#include "client.h"

/* --- beginning in the middle ----------------------------------------------------------------- */

static const char before[] = "12345"; /* not sent: RESUME_FROM */

static void skip_beginning(struct request *r)
{
    char *whole = NULL;

    if (asprintf(&whole, "%s%s", before, r->body) < 0)
        die("memory");
    free(r->body);
    r->body = whole;
}

static void prepare_resumed(struct request *r)
{
    skip_beginning(r);
    post_read(r, 0);
    curl_easy_setopt(r->easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(r->easy, CURLOPT_CUSTOMREQUEST, "POST");
    curl_easy_setopt(r->easy, CURLOPT_RESUME_FROM, (long)strlen(before));
    curl_easy_setopt(r->easy, CURLOPT_INFILESIZE, (long)strlen(r->body));
}

static void prepare_resumed_seek(struct request *r)
{
    prepare_resumed(r);
    seek_in_body(r);
}

static void prepare_resumed_ioctl(struct request *r)
{
    prepare_resumed(r);
    restart_body(r);
}

/* An answer that is an error does not end the body. */
static void prepare_kept_up(struct request *r)
{
    post_read(r, 0);
    curl_easy_setopt(r->easy, CURLOPT_KEEP_SENDING_ON_ERROR, 1L);
}

/* --- callbacks that give no bytes ------------------------------------------------------------- */

static size_t read_abort(char *buffer, size_t size, size_t count, void *data)
{
    struct request *r = data;

    (void)size;
    (void)count;
    if (r->sent++ > 0)
        return CURL_READFUNC_ABORT;
    *buffer = '{';
    return 1;
}

static void prepare_abort(struct request *r)
{
    post_read(r, 0);
    curl_easy_setopt(r->easy, CURLOPT_READFUNCTION, read_abort);
}

/* It has its body in two pieces, and nothing for a while before each. */
static size_t read_with_pauses(char *buffer, size_t size, size_t count, void *data)
{
    struct request *r = data;
    size_t len = strlen(r->body), half = len / 2;

    (void)size;
    (void)count;
    if (!r->ready)
        return CURL_READFUNC_PAUSE;
    r->ready = 0;
    size_t n = r->sent == 0 ? half : len - r->sent;
    memcpy(buffer, r->body + r->sent, n);
    r->sent += n;
    return n;
}

static int let_go(void *data, curl_off_t total, curl_off_t now, curl_off_t up, curl_off_t sent)
{
    struct request *r = data;

    (void)total;
    (void)now;
    (void)up;
    (void)sent;
    if (!r->ready) {
        r->ready = 1;
        curl_easy_pause(r->easy, CURLPAUSE_CONT);
    }
    return 0;
}

static void prepare_pauses(struct request *r)
{
    post_read(r, 0);
    curl_easy_setopt(r->easy, CURLOPT_READFUNCTION, read_with_pauses);
    curl_easy_setopt(r->easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(r->easy, CURLOPT_XFERINFOFUNCTION, let_go);
    curl_easy_setopt(r->easy, CURLOPT_XFERINFODATA, r);
}

const struct mode pulled_modes[] = {
    {"resumed-seek", three, prepare_resumed_seek, NULL},
    {"resumed-ioctl", three, prepare_resumed_ioctl, NULL},
    {"kept-up", three, prepare_kept_up, NULL},
    {"multi-kept-up", multi_many, prepare_kept_up, NULL},
    {"aborted", three, prepare_abort, NULL},
    {"pauses", three, prepare_pauses, NULL},
    {"multi-pauses", multi_many, prepare_pauses, NULL},
    {.name = NULL},
};
