/* client_rewind.c - bodies that libcurl sends more than once, or drops: redirects, Digest. */
#include "client.h"

static void follow(struct request *r)
{
    curl_easy_setopt(r->easy, CURLOPT_FOLLOWLOCATION, 1L);
}

static void prepare_file_redirect(struct request *r)
{
    post_file(r);
    follow(r);
}

static void prepare_file_digest(struct request *r)
{
    post_file(r);
    curl_easy_setopt(r->easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_DIGEST);
    curl_easy_setopt(r->easy, CURLOPT_USERPWD, "user:word");
}

static curlioerr restart(CURL *easy, int command, void *data)
{
    struct request *r = data;

    (void)easy;
    if (command != CURLIOCMD_RESTARTREAD)
        return CURLIOE_UNKNOWNCMD;
    r->sent = 0;
    return CURLIOE_OK;
}

void restart_body(struct request *r)
{
    curl_easy_setopt(r->easy, CURLOPT_IOCTLFUNCTION, restart);
    curl_easy_setopt(r->easy, CURLOPT_IOCTLDATA, r);
}

static void prepare_ioctl_redirect(struct request *r)
{
    post_read(r, 0);
    follow(r);
    restart_body(r);
}

static int seek_to(void *data, curl_off_t offset, int origin)
{
    struct request *r = data;

    if (origin != SEEK_SET)
        return CURL_SEEKFUNC_FAIL;
    r->sent = (size_t)offset;
    return CURL_SEEKFUNC_OK;
}

void seek_in_body(struct request *r)
{
    curl_easy_setopt(r->easy, CURLOPT_SEEKFUNCTION, seek_to);
    curl_easy_setopt(r->easy, CURLOPT_SEEKDATA, r);
}

static void prepare_seek_redirect(struct request *r)
{
    post_read(r, 0);
    follow(r);
    seek_in_body(r);
}

static size_t read_whole(char *buffer, size_t size, size_t count, void *data)
{
    struct request *r = data;
    size_t left = strlen(r->body + r->sent), n = size * count < left ? size * count : left;

    memcpy(buffer, r->body + r->sent, n);
    r->sent += n;
    return n;
}

/* So long that no kernel takes all of it, its model last: a redirect can come in its middle. */
static void make_long(struct request *r)
{
    enum { LONG = 12000000 };
    static char expect[] = "Expect:";
    static struct curl_slist no_expect = {.data = expect};
    char *body = malloc(LONG + 100);

    if (!body)
        die("memory");
    int at = sprintf(body, "{\"q\":\"");
    memset(body + at, 'x', LONG);
    sprintf(body + at + LONG, "\",\"model\":\"%s\"}", r->model);
    free(r->body);
    r->body = body;
    curl_easy_setopt(r->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(body));
    curl_easy_setopt(r->easy, CURLOPT_READFUNCTION, read_whole);
    curl_easy_setopt(r->easy, CURLOPT_UPLOAD_BUFFERSIZE, 1000000L);
    curl_easy_setopt(r->easy, CURLOPT_HTTPHEADER, &no_expect);
}

static void prepare_long_seek(struct request *r)
{
    prepare_seek_redirect(r);
    make_long(r);
}

static void prepare_long_ioctl(struct request *r)
{
    prepare_ioctl_redirect(r);
    make_long(r);
}

/* libcurl drops a copied body when it learns of a greater size: what is sent is what is read. */
static void prepare_copy_outgrown(struct request *r)
{
    char *other = body_of(is_shut(r) ? "fine" : "shut");

    curl_easy_setopt(r->easy, CURLOPT_POSTFIELDSIZE, -1L);
    curl_easy_setopt(r->easy, CURLOPT_COPYPOSTFIELDS, other);
    free(other);
    post_read(r, 0);
}

/* A size that is no greater changes nothing. */
static void prepare_copy_told_again(struct request *r)
{
    curl_easy_setopt(r->easy, CURLOPT_POSTFIELDSIZE, (long)strlen(r->body));
    curl_easy_setopt(r->easy, CURLOPT_COPYPOSTFIELDS, r->body);
    curl_easy_setopt(r->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(r->body));
}

const struct mode rewind_modes[] = {
    {"file-redirect", three, prepare_file_redirect, NULL},
    {"file-digest", three, prepare_file_digest, NULL},
    {"ioctl-redirect", three, prepare_ioctl_redirect, NULL},
    {"seek-redirect", three, prepare_seek_redirect, NULL},
    {"long-seek", three, prepare_long_seek, NULL},
    {"long-ioctl", three, prepare_long_ioctl, NULL},
    {"copy-outgrown", three, prepare_copy_outgrown, NULL},
    {"copy-told-again", three, prepare_copy_told_again, NULL},
    {.name = NULL},
};
