/* client_multi.c - the multi interface, driven by curl_multi_perform. */
#include "client.h"

#include <fcntl.h>

int reap(CURLM *multi)
{
    int queued, done = 0;
    CURLMsg *message;

    while ((message = curl_multi_info_read(multi, &queued))) {
        struct request *r;
        CURL *easy = message->easy_handle;
        CURLcode code = message->data.result;
        curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&r);
        curl_multi_remove_handle(multi, easy);
        finish(r, code);
        done++;
    }
    return done;
}

void drive(CURLM *multi, int transfers)
{
    int running = 1;

    while (transfers > 0) {
        if (curl_multi_perform(multi, &running) != CURLM_OK)
            die("curl_multi_perform");
        transfers -= reap(multi);
        if (transfers > 0 && running == 0)
            die("running is 0 before all are done");
        curl_multi_poll(multi, NULL, 0, 200, NULL);
    }
}

void add_many(CURLM *multi, struct request *requests, prepare_t prepare)
{
    for (int i = 0; i < MANY; i++) {
        begin(&requests[i], curl_easy_init(), i % 2 ? "shut" : "fine");
        prepare(&requests[i]);
        curl_easy_setopt(requests[i].easy, CURLOPT_PRIVATE, &requests[i]);
        if (curl_multi_add_handle(multi, requests[i].easy) != CURLM_OK)
            die("curl_multi_add_handle");
    }
}

void multi_many(prepare_t prepare)
{
    struct request requests[MANY];
    CURLM *multi = curl_multi_init();

    add_many(multi, requests, prepare);
    drive(multi, MANY);
    for (int i = 0; i < MANY; i++)
        curl_easy_cleanup(requests[i].easy);
    curl_multi_cleanup(multi);
}

static void prepare_h2(struct request *r)
{
    post_fields(r);
    curl_easy_setopt(r->easy, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(r->easy, CURLOPT_PIPEWAIT, 1L);
}

static void prepare_h2_read(struct request *r)
{
    prepare_h2(r);
    curl_easy_setopt(r->easy, CURLOPT_POSTFIELDS, NULL);
    post_read(r, 0);
}

/* Taken out of one multi before anything ran and put into another; cleaned up unread in a third. */
static void mode_moved(void)
{
    CURLM *first = curl_multi_init(), *second = curl_multi_init(), *third = curl_multi_init();
    struct request r, lost;
    int running;

    begin(&r, curl_easy_init(), "shut");
    post_read(&r, 0);
    curl_easy_setopt(r.easy, CURLOPT_PRIVATE, &r);
    curl_multi_add_handle(first, r.easy);
    curl_multi_remove_handle(first, r.easy);
    curl_multi_add_handle(second, r.easy);
    drive(second, 1);
    curl_easy_cleanup(r.easy);

    begin(&lost, curl_easy_init(), "fine");
    post_fields(&lost);
    curl_multi_add_handle(third, lost.easy);
    curl_multi_perform(third, &running);
    curl_easy_cleanup(lost.easy);
    curl_multi_cleanup(third);
    curl_multi_cleanup(second);
    curl_multi_cleanup(first);
    free(lost.body);
}

/* One real call, then five times added and removed before anything ran. */
static void mode_unrun(void)
{
    CURLM *multi = curl_multi_init();
    struct request r;

    begin(&r, curl_easy_init(), "fine");
    post_fields(&r);
    curl_easy_perform(r.easy);
    for (int i = 0; i < 5; i++) {
        curl_multi_add_handle(multi, r.easy);
        curl_multi_remove_handle(multi, r.easy);
    }
    curl_easy_cleanup(r.easy);
    curl_multi_cleanup(multi);
    free(r.body);
}

/* A thousand refused handles in one multi, under a low limit of descriptors. */
static void mode_crowd(void)
{
    enum { CROWD = 1000 };
    static struct request requests[CROWD];
    CURLM *multi = curl_multi_init();

    for (int i = 0; i < CROWD; i++) {
        begin(&requests[i], curl_easy_init(), "shut");
        post_fields(&requests[i]);
        curl_easy_setopt(requests[i].easy, CURLOPT_PRIVATE, &requests[i]);
        curl_multi_add_handle(multi, requests[i].easy);
    }
    drive(multi, CROWD);
    for (int i = 0; i < CROWD; i++)
        curl_easy_cleanup(requests[i].easy);
    curl_multi_cleanup(multi);
}

static size_t pause_once(char *data, size_t size, size_t count, void *sum)
{
    size_t *seen = sum;

    (void)data;
    (void)size;
    (void)count;
    ++*seen;
    return CURL_WRITEFUNC_PAUSE;
}

static int open_descriptors(void)
{
    int open = 0;

    for (int fd = 0; fd < 256; fd++)
        open += fcntl(fd, F_GETFD) >= 0;
    return open;
}

/* Paused where its body begins, and cleaned up so, without being removed. */
static void mode_paused_away(void)
{
    int at_first = open_descriptors(), running;
    CURLM *multi = curl_multi_init();

    for (int i = 0; i < 3; i++) {
        struct request r;
        begin(&r, curl_easy_init(), "shut");
        post_fields(&r);
        curl_easy_setopt(r.easy, CURLOPT_WRITEFUNCTION, pause_once);
        curl_multi_add_handle(multi, r.easy);
        for (int turn = 0; turn < 1000 && r.received == 0; turn++) {
            curl_multi_perform(multi, &running);
            curl_multi_poll(multi, NULL, 0, 10, NULL);
        }
        if (r.received == 0 || running != 1)
            die("never paused");
        curl_easy_cleanup(r.easy);
        free(r.body);
    }
    curl_multi_cleanup(multi);
    if (open_descriptors() != at_first)
        die("descriptors are left");
}

const struct mode multi_modes[] = {
    {"paused-away", NULL, NULL, mode_paused_away},
    {"multi-fields", multi_many, post_fields, NULL},
    {"multi-read", multi_many, prepare_read, NULL},
    {"multi-file", multi_many, post_file, NULL},
    {"multi-chunked", multi_many, prepare_chunked, NULL},
    {"multi-h2", multi_many, prepare_h2, NULL},
    {"multi-h2-read", multi_many, prepare_h2_read, NULL},
    {"crowd", NULL, NULL, mode_crowd},
    {"moved", NULL, NULL, mode_moved},
    {"unrun", NULL, NULL, mode_unrun},
    {.name = NULL},
};
