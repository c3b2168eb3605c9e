/* libFuzzer: what an application does with easy handles of a fake libcurl behind our hooks, while
 * its hosts are healthy, refused, refused late, unreachable, or have fallbacks. Beside each handle
 * stands a twin that no hook has seen: whenever the application can look, libcurl holds of both the
 * same options; its callbacks get its own data; to a foreign fallback goes none of its credentials.
 *
 * The input: bytes, taken as they are needed: first libcurl's version, then operations (operate()),
 * those inside of callbacks among them. */
#include "easy_application.h"

#include "curl_hooks.h"
#include "real_library.h"

enum { HANDLES = 3, OPERATIONS_MAX = 200 };

__thread bool
    library_entered; /* real_library.c's, which looks for loaded libraries: here is none */

static unsigned operations;
static struct pair pairs[HANDLES];
static bool at_another_port; /* than those of which the table knows */

/* --- what the network sees -------------------------------------------------------------------- */

static const char *host_of_application(void)
{
    const char *url = performing->twin->set.value[SHADOW_URL],
               *begin = url ? strstr(url, "://") : NULL;

    return begin ? begin + 3 : "";
}

static bool is_default(const struct fake_set *set, enum shadow_index index)
{
    static struct fake_set plain;

    fake_defaults(&plain);
    return set->value[index] == plain.value[index];
}

/* At a fallback of another host: nothing of who the application is. */
static void check_foreign(const struct fake_set *set)
{
    static const enum shadow_index told[] = {
        SHADOW_USERNAME,       SHADOW_PASSWORD,        SHADOW_XOAUTH2_BEARER,
        SHADOW_AWS_SIGV4,      SHADOW_NETRC,           SHADOW_COOKIE,
        SHADOW_SSLCERT,        SHADOW_SSLKEY,          SHADOW_KEYPASSWD,
        SHADOW_SSLCERT_BLOB,   SHADOW_SSLKEY_BLOB,     SHADOW_SSL_VERIFYPEER,
        SHADOW_SSL_VERIFYHOST, SHADOW_CONNECT_TO,      SHADOW_PORT,
        SHADOW_CURLU,          SHADOW_PINNEDPUBLICKEY, SHADOW_UNIX_SOCKET_PATH};

    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        MUST(is_default(set, told[i]));
    for (const struct curl_slist *line = set->value[SHADOW_HTTPHEADER]; line; line = line->next)
        MUST(!strstr(line->data, SECRET));
}

static struct fake_network network(struct fake *fake, const char *host)
{
    static const struct fake_network answers[] = {
        {200, "application/json", "{\"choices\":[]}"},
        {500, "application/json", "{\"error\":{\"message\":\"no\"}}"},
        {429, "application/json", "{}"},
        {200, "text/event-stream", "data: {}\n\ndata: {\"error\":{\"type\":\"x\"}}\n\n"},
        {0, NULL, NULL},
    };
    const char *own = host_of_application();
    bool at_home = strncmp(own, host, strlen(host)) == 0;

    /* Whom its breaker refuses, nobody reaches. */
    MUST(strcmp(host, "open.test") != 0 || at_another_port);
    if (strcmp(host, "foreign.test") == 0 && !at_home)
        check_foreign(&fake->set);
    if (strcmp(host, "down.test") == 0 || strcmp(host, "gone.test") == 0)
        return answers[4];
    return answers[take() % 5];
}

/* --- operations ---------------------------------------------------------------------------------
 */

static struct curl_real real;

/* No CURLU: libcurl 7.88 keeps its text. No MIMEPOST and HTTPPOST of an application's. */
static void set_option(struct pair *pair)
{
    static const struct {
        CURLoption option;
        enum option_kind kind;
    } others[] = {
        {CURLOPT_HTTPGET, KIND_LONG},
        {CURLOPT_NOBODY, KIND_LONG},
        {CURLOPT_POST, KIND_LONG},
        {CURLOPT_UPLOAD, KIND_LONG},
        {CURLOPT_COPYPOSTFIELDS, KIND_POINTER},
        {CURLOPT_USERPWD, KIND_STRING},
        {CURLOPT_TIMEOUT, KIND_LONG},
        {CURLOPT_URL, KIND_STRING},
    };
    unsigned index = take() % (SHADOW_COUNT + sizeof others / sizeof *others), which = take();
    bool kept = index < SHADOW_COUNT;
    CURLoption option = kept ? fake_options[index].option : others[index - SHADOW_COUNT].option;
    enum option_kind kind = kept ? fake_options[index].kind : others[index - SHADOW_COUNT].kind;
    void *value = value_for(option, kind, which);

    if (option == CURLOPT_CURLU)
        return;
    CURLcode result = fake_setopt(pair->twin, option, value);
    /* What libcurl does not see now it cannot refuse. */
    if (result == CURLE_OK || pair != performing)
        MUST(hook_easy_setopt(&real, (CURL *)pair->handle, option, value) == result);
}

static void check_alike(const struct fake *handle, const struct fake *twin)
{
    const char *option = fake_difference(&handle->set, &twin->set);

    if (option)
        fprintf(stderr, "libcurl holds another %s than the application set\n", option);
    MUST(!option);
}

static struct pair make_pair(void)
{
    struct pair pair = {.twin = calloc(1, sizeof *pair.twin)};

    MUST(pair.twin);
    pair.handle = hook_easy_init(&real);
    fake_defaults(&pair.twin->set);
    return pair;
}

static struct pair duplicate(const struct pair *pair)
{
    struct pair copy = {.handle = hook_easy_duphandle(&real, pair->handle),
                        .twin = calloc(1, sizeof *copy.twin)};

    MUST(copy.handle && copy.twin);
    fake_copy(&copy.twin->set, &pair->twin->set);
    check_alike(copy.handle, copy.twin);
    return copy;
}

static void free_pair(struct pair *pair)
{
    hook_easy_cleanup(&real, pair->handle);
    fake_clear(&pair->twin->set);
    free(pair->twin);
}

static void perform(struct pair *pair)
{
    const char *url = NULL;

    performing = pair;
    body_at = 0;
    at_another_port = fake_number(&pair->twin->set, SHADOW_PORT) != 0;
    read_data_begun = pair->twin->set.value[SHADOW_READDATA];
    hook_easy_perform(&real, pair->handle);
    performing = NULL;
    if (hook_easy_getinfo(&real, pair->handle, CURLINFO_EFFECTIVE_URL, &url) == CURLE_OK && url)
        MUST(strlen(url) < 200 && !strstr(url, "127.255.255.254"));
}

static void operate_inside(void)
{
    struct pair copy;

    if (operations >= OPERATIONS_MAX)
        return;
    operations++;
    switch (take() % 8) {
    case 0:
    case 1:
        set_option(performing);
        break;
    case 2:
        copy = duplicate(performing);
        free_pair(&copy);
        break;
    default:
        break;
    }
}

static void operate(void)
{
    struct pair *pair = &pairs[take() % HANDLES];
    struct pair copy;

    switch (take() % 16) {
    case 0:
    case 1:
    case 2:
        perform(pair);
        break;
    case 3:
        copy = duplicate(pair);
        pair = &pairs[take() % HANDLES];
        free_pair(pair);
        *pair = copy;
        break;
    case 4:
        hook_easy_reset(&real, pair->handle);
        fake_clear(&pair->twin->set);
        break;
    case 5:
        free_pair(pair);
        *pair = make_pair();
        break;
    case 6:
        boot += take() * UINT64_C(500000000);
        break;
    default:
        set_option(pair);
        break;
    }
    check_alike(pair->handle, pair->twin);
}

/* --- the fake libcurl's doors
 * --------------------------------------------------------------------- */

static CURL *real_init(void)
{
    struct fake *fake = calloc(1, sizeof *fake);

    MUST(fake);
    fake_defaults(&fake->set);
    return fake;
}

static CURL *real_duphandle(CURL *handle)
{
    struct fake *copy = calloc(1, sizeof *copy);

    MUST(copy);
    fake_copy(&copy->set, &((struct fake *)handle)->set);
    return copy;
}

static void real_reset(CURL *handle)
{
    fake_clear(&((struct fake *)handle)->set);
}

static void real_cleanup(CURL *handle)
{
    struct fake *fake = handle;

    fake_clear(&fake->set);
    free(fake->effective_url);
    free(fake);
}

static CURLcode real_perform(CURL *handle)
{
    return fake_perform(handle);
}

static CURLcode real_setopt(CURL *handle, CURLoption option, ...)
{
    va_list list;

    va_start(list, option);
    void *value = va_arg(list, void *);
    va_end(list);
    return fake_setopt(handle, option, value);
}

static CURLcode real_getinfo(CURL *handle, CURLINFO info, ...)
{
    va_list list;

    va_start(list, info);
    void *value = va_arg(list, void *);
    va_end(list);
    return fake_getinfo(handle, info, value);
}

static const char *real_strerror(CURLcode code)
{
    return code == CURLE_OK ? "none" : "an error";
}

static void real_free_list(struct curl_slist *list)
{
    MUST(!list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const unsigned versions[] = {0x075000, 0x075801, 0x080e01};

    if (!table.slots)
        set_up();
    force_breakers();
    fake_network = network;
    input = span_of((const char *)data, size);
    fake_version = versions[take() % 3];
    real = (struct curl_real){
        .easy_init = real_init,
        .easy_duphandle = real_duphandle,
        .easy_reset = real_reset,
        .easy_cleanup = real_cleanup,
        .easy_perform = real_perform,
        .easy_setopt = real_setopt,
        .easy_getinfo = real_getinfo,
        .easy_strerror = real_strerror,
        .slist_free_all = real_free_list,
        .version = fake_version,
    };
    for (int i = 0; i < HANDLES; i++)
        pairs[i] = make_pair();
    for (operations = 0; input.len > 0 && operations < OPERATIONS_MAX; operations++)
        operate();
    for (int i = 0; i < HANDLES; i++)
        free_pair(&pairs[i]);
    int spare = dup(0); /* answers keep a few sockets, and no more */
    MUST(spare >= 0 && spare < 64 && close(spare) == 0);
    return 0;
}
