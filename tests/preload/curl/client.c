/*
 * client.c - a program on libcurl that knows nothing of the breaker: one way of using libcurl per
 * mode, by topic in client_*.c.
 *
 *   client MODE URL [EXTRA]
 *   client version
 *
 * Each transfer asks for a model ("fine" or "shut") and prints one line:
 *   MODEL CODE STATUS BODY_BYTES EFFECTIVE_URL
 * CLIENT_HEADERS in the environment: header lines, one a line, for each request.
 * Exit status 0; an assertion of the mode itself that fails is told on stderr, exit 1.
 */
#include "client.h"

const char *url, *extra = "";

void die(const char *what)
{
    fprintf(stderr, "client: %s\n", what);
    exit(1);
}

char *body_of(const char *model)
{
    char *text = NULL;

    if (asprintf(&text,
                 "{\"messages\":[{\"content\":\"\\\"model\\\":\\\"x\\\"\"}],\"model\":\"%s\"}",
                 model) < 0)
        die("memory");
    return text;
}

size_t count_bytes(char *data, size_t size, size_t count, void *sum)
{
    (void)data;
    *(size_t *)sum += size * count;
    return size * count;
}

int is_shut(const struct request *r)
{
    return strcmp(r->model, "shut") == 0;
}

static struct curl_slist *headers;

static void read_headers(void)
{
    char *text = getenv("CLIENT_HEADERS"), *rest = NULL;

    for (char *line = text ? strtok_r(strdup(text), "\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\n", &rest))
        headers = curl_slist_append(headers, line);
}

void begin(struct request *r, CURL *easy, const char *model)
{
    *r = (struct request){.easy = easy, .model = model, .body = body_of(model)};
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, count_bytes);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &r->received);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT, 20L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    if (headers)
        curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
}

static pthread_mutex_t printing = PTHREAD_MUTEX_INITIALIZER;

void finish(struct request *r, CURLcode code)
{
    long status = 0;
    char *effective = NULL;

    curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(r->easy, CURLINFO_EFFECTIVE_URL, &effective);
    pthread_mutex_lock(&printing);
    printf("\n%s %d %ld %zu %s\n", r->model, code, status, r->received,
           effective ? effective : "-");
    fflush(stdout);
    pthread_mutex_unlock(&printing);
    if (r->file)
        fclose(r->file);
    if (r->mime)
        curl_mime_free(r->mime);
    free(r->body);
}

void perform(struct request *r)
{
    finish(r, curl_easy_perform(r->easy));
}

void three(prepare_t prepare)
{
    static const char *const models[] = {"fine", "shut", "fine"};
    CURL *easy = curl_easy_init();

    for (int i = 0; i < 3; i++) {
        struct request r;
        begin(&r, easy, models[i]);
        prepare(&r);
        perform(&r);
    }
    curl_easy_cleanup(easy);
}

static const struct mode *find(const char *name)
{
    static const struct mode *const lists[] = {
        body_modes,  option_modes,   connection_modes, rewind_modes, life_modes,
        multi_modes, messages_modes, socket_modes,     pulled_modes,
    };

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (const struct mode *mode = lists[i]; mode->name; mode++)
            if (strcmp(mode->name, name) == 0)
                return mode;
    die("no such mode");
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "version") == 0)
        return puts(curl_version()) < 0;
    if (argc < 3)
        die("usage: client MODE URL [EXTRA]");
    url = argv[2];
    if (argc > 3)
        extra = argv[3];
    curl_global_init(CURL_GLOBAL_DEFAULT);
    read_headers();
    const struct mode *mode = find(argv[1]);
    if (mode->whole)
        mode->whole();
    else
        mode->run(mode->prepare);
    return 0;
}
