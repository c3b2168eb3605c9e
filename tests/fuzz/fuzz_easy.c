/* libFuzzer: what an application does with easy handles of a fake libcurl behind our hooks, while
 * its hosts are healthy, refused, refused late, unreachable, or have fallbacks. Beside each handle
 * stands a twin that no hook has seen: whenever the application can look, libcurl holds of both the
 * same options; its callbacks get its own data; to a foreign fallback goes none of its credentials.
 *
 * The input: bytes, taken as they are needed: first libcurl's version, then operations (operate()),
 * those inside of callbacks among them. */
#include "fake_easy.h"

#include "config/config.h"
#include "curl_hooks.h"
#include "real_library.h"
#include "shim.h"
#include "table/slot.h"
#include "table/table.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define SECRET "canary"

enum { HANDLES = 3, FILES = 3, OPERATIONS_MAX = 200 };

__thread bool
    library_entered; /* real_library.c's, which looks for loaded libraries: here is none */

struct pair {
    struct fake *handle, *twin;
};

static struct span input;
static unsigned operations;
static struct pair pairs[HANDLES], *performing;
static FILE *files[FILES];    /* the application's data of all kinds */
static void *read_data_begun; /* libcurl takes it over when a transfer begins */
static bool at_another_port;  /* than those of which the table knows */

static unsigned take(void)
{
    unsigned byte = input.len > 0 ? (unsigned char)input.ptr[0] : 0;

    input = span_skip(input, 1);
    return byte;
}

/* --- the world -------------------------------------------------------------------------------- */

static uint64_t boot = UINT64_C(1000) * CLOCK_NS_PER_S;
static struct table table;
static char directory[] = "/tmp/breaker-fuzz-XXXXXX", path[64];

static uint64_t fake_boot(void)
{
    return boot;
}

static int64_t fake_wall(void)
{
    return 0;
}

static const char ini[] =
    "[breaker]\njitter = 0\n"
    "[target open.test]\n[target open.test:80]\n"
    "[target pass.test]\nwhen_exhausted = pass\n"
    "[target back.test]\nfallback = foreign\n"
    "[target chain.test]\nfallback = down, foreign\n"
    "[target down.test]\nfallback = foreign\n"
    "[target late.test]\nfallback = model\n"
    "[target addr.test]\nfallback_address = other.test:443\n"
    "[fallback foreign]\nbase = https://foreign.test/v1\nauth = Authorization: Bearer own\n"
    "model = *:other\n"
    "[fallback model]\nbase = https://late.test/v1\nmodel = *:other\n"
    "[fallback down]\nbase = https://gone.test/v1\n";

static void remove_directory(void)
{
    unlink(path);
    rmdir(directory);
}

static void set_up(void)
{
    static const struct clock_ops clock = {fake_boot, fake_boot, fake_wall};
    char config[64];
    int file = memfd_create("breaker.ini", 0);

    MUST(mkdtemp(directory));
    atexit(remove_directory);
    snprintf(path, sizeof path, "%s/table", directory);
    MUST(file >= 0 && fchmod(file, 0600) == 0);
    MUST(write(file, ini, sizeof ini - 1) == (ssize_t)sizeof ini - 1);
    snprintf(config, sizeof config, "/proc/self/fd/%d", file);
    clearenv();
    setenv("HOME", directory, 1);
    setenv("BREAKER_TABLE", path, 1);
    setenv("BREAKER_CONFIG", config, 1);
    shim_set_clock(&clock);
    shim_capture_environment();
    MUST(table_open(&table, path, true) == TABLE_OK);
    for (int i = 0; i < FILES; i++)
        MUST((files[i] = fopen("/dev/null", "r+")));
    MUST((stdin = fopen("/dev/null", "r")) && (stdout = fopen("/dev/null", "w")));
}

/* Nothing is left of what another input did. */
static void force_breakers(void)
{
    static const char *const refused[] = {"open.test",        "open.test:80",    "pass.test",
                                          "pass.test:80",     "back.test",       "back.test:80",
                                          "addr.test",        "chain.test",      "late.test/bad",
                                          "late.test:80/bad", "foreign.test/bad"};

    for (int i = 0; i < TABLE_CAPACITY; i++)
        if (table.slots[i].identity != 0)
            memset((void *)&table.slots[i].word, 0, TABLE_SLOT_SIZE - offsetof(struct slot, word));
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct span key = span_str(refused[i]);
        struct slot *s = table_claim(&table, table_identity(&table, key), key, true);
        MUST(s);
        s->word = breaker_force_open(0);
    }
}

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

/* --- the application's callbacks -----------------------------------------------------------------
 */

static void operate_inside(void);

static void check_data(const void *data, enum shadow_index index)
{
    MUST(data == performing->twin->set.value[index]);
}

static size_t application_write(char *bytes, size_t size, size_t count, void *data)
{
    check_data(data, SHADOW_WRITEDATA);
    MUST(memchr(bytes, '\0', size * count) == NULL);
    operate_inside();
    return take() % 16 == 15 ? 0 : size * count;
}

static size_t application_header(char *bytes, size_t size, size_t count, void *data)
{
    check_data(data, SHADOW_HEADERDATA);
    MUST(size * count > 0 && bytes[size * count - 1] == '\n');
    operate_inside();
    return size * count;
}

/* A body in two pieces; its model is refused late where the host is late.test. */
static size_t body_at;
static size_t application_read(char *buffer, size_t size, size_t count, void *data)
{
    static const char body[] = "{\"messages\":[{\"content\":\"x\"}],\"model\":\"bad\"}";
    size_t left = sizeof body - 1 - body_at, len = left < 30 ? left : 30;

    MUST(data == read_data_begun || data == performing->twin->set.value[SHADOW_READDATA]);
    if (len > size * count)
        len = size * count;
    memcpy(buffer, body + body_at, len);
    body_at += len;
    if (take() % 32 == 31)
        return CURL_READFUNC_ABORT;
    operate_inside();
    return len;
}

static int application_seek(void *data, curl_off_t offset, int origin)
{
    (void)data;
    MUST(offset >= 0 && origin == SEEK_SET);
    body_at = (size_t)offset;
    return take() % 8 == 7 ? CURL_SEEKFUNC_FAIL : CURL_SEEKFUNC_OK;
}

static curl_socket_t application_open(void *data, curlsocktype purpose,
                                      struct curl_sockaddr *address)
{
    (void)purpose;
    (void)address;
    check_data(data, SHADOW_OPENSOCKETDATA);
    return take() % 8 == 7 ? CURL_SOCKET_BAD : open("/dev/null", O_RDWR | O_CLOEXEC);
}

static int application_close(void *data, curl_socket_t fd)
{
    (void)data;
    return close(fd);
}

static int application_sockopt(void *data, curl_socket_t fd, curlsocktype purpose)
{
    (void)fd;
    (void)purpose;
    check_data(data, SHADOW_SOCKOPTDATA);
    return take() % 8 == 7 ? CURL_SOCKOPT_ERROR : CURL_SOCKOPT_OK;
}

/* --- options ---------------------------------------------------------------------------------- */

static struct curl_slist second = {.data = (char[]){"X-Other: 1"}};
static struct curl_slist first = {.data = (char[]){"Authorization: Bearer " SECRET},
                                  .next = &second};
static struct curl_slist plain = {.data = (char[]){"Content-Type: application/json"}};
static char errors[2][CURL_ERROR_SIZE];
static struct curl_blob blob = {.data = (char[]){SECRET}, .len = 6, .flags = CURL_BLOB_COPY};

static void *function_for(CURLoption option)
{
    static const curl_write_callback write_it = application_write, header = application_header;
    static const curl_read_callback read_it = application_read;
    static const curl_seek_callback seek = application_seek;
    static const curl_opensocket_callback opens = application_open;
    static const curl_closesocket_callback closes = application_close;
    static const curl_sockopt_callback sockopt = application_sockopt;

    switch ((int)option) {
    case CURLOPT_WRITEFUNCTION:
        return (void *)write_it;
    case CURLOPT_HEADERFUNCTION:
        return (void *)header;
    case CURLOPT_READFUNCTION:
        return (void *)read_it;
    case CURLOPT_SEEKFUNCTION:
        return (void *)seek;
    case CURLOPT_OPENSOCKETFUNCTION:
        return (void *)opens;
    case CURLOPT_CLOSESOCKETFUNCTION:
        return (void *)closes;
    case CURLOPT_SOCKOPTFUNCTION:
        return (void *)sockopt;
    default:
        return NULL;
    }
}

static void *pointer_for(CURLoption option, unsigned which)
{
    static const char *const fields[] = {"{\"model\":\"gpt\"}", "{\"model\":\"bad\",\"n\":1}", "x",
                                         NULL};
    static struct curl_slist *const lists[] = {&first, &plain, &second, NULL};

    switch ((int)option) {
    case CURLOPT_WRITEDATA:
    case CURLOPT_HEADERDATA:
    case CURLOPT_READDATA:
    case CURLOPT_SEEKDATA:
    case CURLOPT_OPENSOCKETDATA:
    case CURLOPT_CLOSESOCKETDATA:
    case CURLOPT_SOCKOPTDATA:
    case CURLOPT_IOCTLDATA:
        return files[which % FILES];
    case CURLOPT_POSTFIELDS:
    case CURLOPT_COPYPOSTFIELDS:
        return (void *)(uintptr_t)fields[which % 4];
    case CURLOPT_HTTPHEADER:
    case CURLOPT_CONNECT_TO:
    case CURLOPT_RESOLVE:
        return lists[which % 4];
    case CURLOPT_ERRORBUFFER:
        return which % 3 == 2 ? NULL : errors[which % 3];
    case CURLOPT_SSLCERT_BLOB:
    case CURLOPT_SSLKEY_BLOB:
        return which % 2 ? &blob : NULL;
    default: /* none is the default of READFUNCTION, which only reset sets: libcurl's fread() */
        return which % 2 || option == CURLOPT_READFUNCTION ? function_for(option) : NULL;
    }
}

static void *string_for(CURLoption option, unsigned which)
{
    static const char *const urls[] = {"https://ok.test/v1/chat/completions",
                                       "https://open.test/v1/chat/completions",
                                       "http://open.test/v1/chat/completions",
                                       "https://pass.test/v1/chat/completions",
                                       "https://back.test/v1/chat/completions",
                                       "http://back.test/v1/chat/completions",
                                       "https://chain.test/v1/chat/completions",
                                       "https://down.test/v1/chat/completions",
                                       "https://late.test/v1/chat/completions",
                                       "http://late.test/v1/chat/completions",
                                       "https://addr.test/v1/chat/completions",
                                       "https://open.test/other?key=" SECRET,
                                       "https://u:" SECRET "@back.test/v1/chat/completions",
                                       "nonsense",
                                       NULL};
    static const char *const texts[] = {SECRET, "https", "http,https", "all",
                                        "a:b",  "",      "POST",       NULL};

    return option == CURLOPT_URL ? (void *)(uintptr_t)urls[which % (sizeof urls / sizeof *urls)]
                                 : (void *)(uintptr_t)texts[which % 8];
}

static void *number_for(CURLoption option, unsigned which)
{
    /* One that says more than there is in POSTFIELDS would be the application's own fault. */
    static const long of_fields[] = {-1, -1, 0, 1}, of_file[] = {-1, 0, 3, 43};

    if (option == CURLOPT_POSTFIELDSIZE_LARGE)
        return (void *)of_fields[which % 4];
    if (option == CURLOPT_INFILESIZE_LARGE)
        return (void *)of_file[which % 4];
    if (option == CURLOPT_PROTOCOLS)
        return (void *)(uintptr_t)(which % 2 ? CURLPROTO_HTTPS : CURLPROTO_HTTP | CURLPROTO_HTTPS);
    return (void *)(long)(which % 5);
}

static void *value_for(CURLoption option, enum option_kind kind, unsigned which)
{
    return kind == KIND_LONG     ? number_for(option, which)
           : kind == KIND_STRING ? string_for(option, which)
                                 : pointer_for(option, which);
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
