/* client_messages.c - programs that read the messages of a multi in ways of their own. */
#include "client.h"

/* As many PHP programs do it: performed until nothing runs, removed, and info_read never asked. */
static void mode_unread(void)
{
    struct request requests[MANY];
    CURLM *multi = curl_multi_init();
    int running = 1;

    add_many(multi, requests, post_fields);
    while (running > 0) {
        if (curl_multi_perform(multi, &running) != CURLM_OK)
            die("curl_multi_perform");
        if (running > 0)
            curl_multi_poll(multi, NULL, 0, 200, NULL);
    }
    for (int i = 0; i < MANY; i++) {
        curl_multi_remove_handle(multi, requests[i].easy);
        finish(&requests[i], CURLE_OK);
        curl_easy_cleanup(requests[i].easy);
    }
    curl_multi_cleanup(multi);
}

/* One handle is removed unread; the messages of all others still come, in their order, once. */
static void mode_partly_read(void)
{
    struct request requests[MANY];
    CURLM *multi = curl_multi_init();
    int running = 1, queued = 0, left = MANY - 1;
    CURLMsg *message;

    add_many(multi, requests, post_fields);
    while (running > 0) {
        curl_multi_perform(multi, &running);
        if (running > 0)
            curl_multi_poll(multi, NULL, 0, 200, NULL);
    }
    curl_multi_remove_handle(multi, requests[0].easy);
    while ((message = curl_multi_info_read(multi, &queued))) {
        struct request *r;
        if (message->easy_handle == requests[0].easy || queued != --left)
            die("a wrong message");
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&r);
        finish(r, message->data.result);
    }
    free(requests[0].body);
    if (left != 0)
        die("messages were lost");
    for (int i = 0; i < MANY; i++)
        curl_easy_cleanup(requests[i].easy);
    curl_multi_cleanup(multi);
}

/* --- messages read inside of perform, as 8.17's notify callback does: here from a lock callback of
 * a share, in which libcurl lets itself be called as well ------------------------------------- */

static struct {
    CURLM *multi;
    struct request *request[2 * MANY];
    CURLcode code[2 * MANY];
    int count;
    int armed; /* a body that is refused was read */
    int reading;
} inside;

static void read_messages(void)
{
    CURLMsg *message;
    int queued;

    inside.reading = 1;
    while ((message = curl_multi_info_read(inside.multi, &queued))) {
        if (inside.count == 2 * MANY)
            die("too many messages");
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE,
                          (char **)&inside.request[inside.count]);
        inside.code[inside.count++] = message->data.result;
    }
    inside.reading = 0;
}

static void on_lock(CURL *easy, curl_lock_data data, curl_lock_access access, void *user)
{
    (void)easy;
    (void)access;
    (void)user;
    if (inside.armed && !inside.reading && data == CURL_LOCK_DATA_COOKIE)
        read_messages();
}

static void on_unlock(CURL *easy, curl_lock_data data, void *user)
{
    (void)easy;
    (void)data;
    (void)user;
}

static size_t read_and_arm(char *buffer, size_t size, size_t count, void *data)
{
    struct request *r = data;
    size_t left = strlen(r->body + r->sent), n = size * count < left ? size * count : left;

    inside.armed |= is_shut(r);
    memcpy(buffer, r->body + r->sent, n);
    r->sent += n;
    return n;
}

static CURLSH *share;

/* The cookies are locked whenever a request is written. */
static void prepare_inside(struct request *r)
{
    post_read(r, 0);
    curl_easy_setopt(r->easy, CURLOPT_READFUNCTION, read_and_arm);
    curl_easy_setopt(r->easy, CURLOPT_SHARE, share);
    curl_easy_setopt(r->easy, CURLOPT_COOKIEFILE, "");
}

/* Two are done; one is taken out unread, so that the other's message is known and not yet given. */
static void leave_one_unread(struct request *two)
{
    int running = 1;

    for (int i = 0; i < 2; i++) {
        begin(&two[i], curl_easy_init(), "fine");
        post_fields(&two[i]);
        curl_easy_setopt(two[i].easy, CURLOPT_PRIVATE, &two[i]);
        curl_multi_add_handle(inside.multi, two[i].easy);
    }
    while (running > 0) {
        curl_multi_perform(inside.multi, &running);
        if (running > 0)
            curl_multi_poll(inside.multi, NULL, 0, 200, NULL);
    }
    curl_multi_remove_handle(inside.multi, two[1].easy);
    finish(&two[1], CURLE_OK);
}

static void read_inside(int before)
{
    struct request requests[MANY], two[2];
    int running = 1;

    share = curl_share_init();
    curl_share_setopt(share, CURLSHOPT_LOCKFUNC, on_lock);
    curl_share_setopt(share, CURLSHOPT_UNLOCKFUNC, on_unlock);
    curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_COOKIE);
    inside.multi = curl_multi_init();
    if (before)
        leave_one_unread(two);
    add_many(inside.multi, requests, prepare_inside);
    while (running > 0) {
        if (curl_multi_perform(inside.multi, &running) != CURLM_OK)
            die("curl_multi_perform");
        if (running > 0)
            curl_multi_poll(inside.multi, NULL, 0, 200, NULL);
    }
    read_messages();
    for (int i = 0; i < inside.count; i++)
        finish(inside.request[i], inside.code[i]);
    for (int i = 0; i < MANY; i++)
        curl_easy_cleanup(requests[i].easy);
    for (int i = 0; before && i < 2; i++)
        curl_easy_cleanup(two[i].easy);
    curl_multi_cleanup(inside.multi);
    curl_share_cleanup(share);
}

static void mode_read_inside(void)
{
    read_inside(0);
}

static void mode_read_inside_unread(void)
{
    read_inside(1);
}

/* 8.17's notify callback. The headers here may be older than the library. */
CURLMcode curl_multi_notify_enable(CURLM *multi, unsigned int what) __attribute__((weak));
#define NOTIFYFUNCTION ((CURLMoption)(CURLOPTTYPE_FUNCTIONPOINT + 18))
#define INFO_READ      0

static void on_notify(CURLM *multi, unsigned int what, CURL *easy, void *user)
{
    (void)multi;
    (void)easy;
    (void)user;
    if (what == INFO_READ)
        read_messages();
}

static void mode_notify(void)
{
    struct request requests[MANY];
    int running = 1;

    if (!curl_multi_notify_enable)
        die("this libcurl has no notify callback");
    inside.multi = curl_multi_init();
    curl_multi_setopt(inside.multi, NOTIFYFUNCTION, on_notify);
    curl_multi_notify_enable(inside.multi, INFO_READ);
    add_many(inside.multi, requests, prepare_read);
    while (running > 0) {
        if (curl_multi_perform(inside.multi, &running) != CURLM_OK)
            die("curl_multi_perform");
        if (running > 0)
            curl_multi_poll(inside.multi, NULL, 0, 200, NULL);
    }
    for (int i = 0; i < inside.count; i++) /* all were told of inside */
        finish(inside.request[i], inside.code[i]);
    for (int i = 0; i < MANY; i++)
        curl_easy_cleanup(requests[i].easy);
    curl_multi_cleanup(inside.multi);
}

/* The multi goes while a refused handle is in it: the handle is the application's own again. */
static void mode_cleaned_under(void)
{
    CURLM *multi = curl_multi_init();
    struct request r;
    char *told = NULL;
    int running = 1;

    begin(&r, curl_easy_init(), "shut");
    post_fields(&r);
    curl_multi_add_handle(multi, r.easy);
    while (running > 0) {
        curl_multi_perform(multi, &running);
        if (running > 0)
            curl_multi_poll(multi, NULL, 0, 200, NULL);
    }
    curl_multi_cleanup(multi);
    curl_easy_setopt(r.easy, CURLOPT_URL, "http://other.test/");
    curl_easy_getinfo(r.easy, CURLINFO_EFFECTIVE_URL, &told);
    if (!told || strcmp(told, "http://other.test/") != 0)
        die("the URL that was set is not told");
    finish(&r, CURLE_OK);
    begin(&r, r.easy, "fine");
    post_fields(&r);
    perform(&r);
    curl_easy_cleanup(r.easy);
}

const struct mode messages_modes[] = {
    {"unread", NULL, NULL, mode_unread},
    {"partly-read", NULL, NULL, mode_partly_read},
    {"read-inside", NULL, NULL, mode_read_inside},
    {"read-inside-unread", NULL, NULL, mode_read_inside_unread},
    {"notify", NULL, NULL, mode_notify},
    {"cleaned-under", NULL, NULL, mode_cleaned_under},
    {.name = NULL},
};
