/*
 * stream.c - what an application receives, by each way that libcurl has to give it.
 *
 *   stream MODE URL
 *
 * Prints what came, and what became of the call.
 */
#include "program.h"

#include <curl/curl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *url;

struct text {
    char bytes[100000];
    size_t len;
};
static struct text first, second;
static CURL *copy;
static unsigned calls;

static CURL *new_handle(void)
{
    CURL *easy = curl_easy_init();

    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT, 15L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, 13L); /* else 7.88 cannot duplicate it */
    curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, "{\"model\":\"m\"}");
    return easy;
}

static size_t keep(char *bytes, size_t size, size_t count, void *user)
{
    struct text *text = user;

    memcpy(text->bytes + text->len, bytes, size * count);
    text->len += size * count;
    return size * count;
}

static void tell(const struct text *text)
{
    printf("%zu [%.*s]\n", text->len, (int)text->len, text->bytes);
}

static void perform(CURL *easy)
{
    printf("result %d\n", curl_easy_perform(easy));
    fflush(stdout);
}

static void end(CURL *easy)
{
    tell(&first);
    tell(&second);
    curl_easy_cleanup(easy);
}

static CURL *keeping_handle(curl_write_callback write)
{
    CURL *easy = new_handle();

    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, write);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &first);
    return easy;
}

/* --- ways to be given it --------------------------------------------------------------------- */

static void plain(void)
{
    CURL *easy = keeping_handle(keep);

    perform(easy);
    end(easy);
}

static void by_default(void)
{
    CURL *easy = new_handle();

    perform(easy);
    perform(easy);
    end(easy);
}

static void to_file(void)
{
    CURL *easy = new_handle();
    FILE *file = tmpfile();

    curl_easy_setopt(easy, CURLOPT_WRITEDATA, file);
    perform(easy);
    perform(easy);
    rewind(file);
    first.len = fread(first.bytes, 1, sizeof first.bytes, file);
    end(easy);
}

static void with_heads(void)
{
    CURL *easy = keeping_handle(keep);

    curl_easy_setopt(easy, CURLOPT_HEADER, 1L);
    perform(easy);
    end(easy);
}

static void heads_beside(void)
{
    CURL *easy = keeping_handle(keep);

    curl_easy_setopt(easy, CURLOPT_HEADERDATA, &second);
    perform(easy);
    end(easy);
}

/* --- callbacks that do things ---------------------------------------------------------------- */

static CURL *under_way;

static size_t change_all(char *bytes, size_t size, size_t count, void *user)
{
    curl_easy_setopt(under_way, CURLOPT_WRITEDATA, &second);
    curl_easy_setopt(under_way, CURLOPT_WRITEFUNCTION, keep);
    return keep(bytes, size, count, user);
}

/* What is set inside is for what comes then, and for the next call. */
static void changed(void)
{
    CURL *easy = under_way = keeping_handle(change_all);

    perform(easy);
    size_t whole = first.len + second.len;
    printf("%zu\n", whole);
    first.len = second.len = 0;
    perform(easy);
    end(easy);
}

static size_t add_heads(char *bytes, size_t size, size_t count, void *user)
{
    curl_easy_setopt(under_way, CURLOPT_HEADERDATA, &second);
    return keep(bytes, size, count, user);
}

/* Trailers come by the callback then, with data of the application. */
static void heads_late(void)
{
    CURL *easy = under_way = keeping_handle(add_heads);

    perform(easy);
    end(easy);
}

static size_t duplicate(char *bytes, size_t size, size_t count, void *user)
{
    if (!copy)
        copy = curl_easy_duphandle(under_way);
    return keep(bytes, size, count, user);
}

static void duplicated(void)
{
    CURL *easy = under_way = keeping_handle(duplicate);

    perform(easy);
    curl_easy_setopt(copy, CURLOPT_WRITEDATA, &second);
    curl_easy_cleanup(easy);
    perform(copy);
    end(copy);
}

static size_t take_less(char *bytes, size_t size, size_t count, void *user)
{
    keep(bytes, size, count, user);
    return size * count - 1;
}

static size_t take_nothing(char *bytes, size_t size, size_t count, void *user)
{
    keep(bytes, size, count, user);
    return 0;
}

static void refused(void)
{
    CURL *easy = keeping_handle(take_less);

    perform(easy);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_nothing);
    perform(easy);
    curl_easy_cleanup(easy);
}

static size_t alter(char *bytes, size_t size, size_t count, void *user)
{
    size_t taken = keep(bytes, size, count, user);

    memset(bytes, 'x', size * count);
    return taken;
}

static void altered(void)
{
    CURL *easy = keeping_handle(alter);

    perform(easy);
    end(easy);
}

/* --- pauses ---------------------------------------------------------------------------------- */

static size_t every_other(char *bytes, size_t size, size_t count, void *user)
{
    return ++calls % 2 ? CURL_WRITEFUNC_PAUSE : keep(bytes, size, count, user);
}

static void run_paused(CURL *easy, bool to_the_end)
{
    CURLM *multi = curl_multi_init();
    unsigned seen = 0;
    int running = 1, queued;

    curl_multi_add_handle(multi, easy);
    while (running) {
        curl_multi_perform(multi, &running);
        if (calls != seen) {
            seen = calls;
            if (!to_the_end)
                break;
            curl_easy_pause(easy, CURLPAUSE_CONT);
        } else if (running) {
            curl_multi_poll(multi, NULL, 0, 20, NULL);
        }
    }
    CURLMsg *message = curl_multi_info_read(multi, &queued);
    printf("done %d\n", message ? (int)message->data.result : -1);
    curl_multi_remove_handle(multi, easy);
    end(easy);
    curl_multi_cleanup(multi);
}

static void paused(void)
{
    run_paused(keeping_handle(every_other), true);
}

/* Removed before anything was taken. */
static void untaken(void)
{
    run_paused(keeping_handle(every_other), false);
}

int main(int argc, char **argv)
{
    static const struct mode modes[] = {
        {"plain", plain},
        {"default", by_default},
        {"file", to_file},
        {"with-heads", with_heads},
        {"heads-beside", heads_beside},
        {"heads-late", heads_late},
        {"changed", changed},
        {"duplicated", duplicated},
        {"refused", refused},
        {"altered", altered},
        {"paused", paused},
        {"untaken", untaken},
    };

    if (argc != 3)
        return 2;
    url = argv[2];
    return RUN_MODE(modes, argv[1]);
}
