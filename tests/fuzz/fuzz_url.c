/* libFuzzer: a URL taken apart. Its parts lie inside it; libcurl, asked for its own spelling of it,
 * means the same place; and the keys made of it are what they are made of themselves.
 *
 * The input: the URL. */
#include "cut.h"

#include "cli/cli.h"
#include "http/url.h"
#include "route/route.h"

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

static bool lies_in(struct span part, struct span text)
{
    return part.ptr >= text.ptr && part.ptr + part.len <= text.ptr + text.len;
}

static void check_parts(struct span text, const struct url *url)
{
    struct span user = url_userinfo(text, url);

    MUST(lies_in(url->host, text) && url->host.len > 0 && url->port > 0);
    MUST(lies_in(url->scheme, text) || span_eq(url->scheme, SPAN_LIT("http")));
    MUST(url->path.len == 0 || (lies_in(url->path, text) && url->path.ptr[0] == '/'));
    MUST(!memchr(url->path.ptr, '?', url->path.len) && !memchr(url->path.ptr, '#', url->path.len));
    MUST(!url->query.ptr || (lies_in(url->query, text) && url->query.ptr[-1] == '?'));
    MUST(!user.ptr || (lies_in(user, text) && user.ptr[user.len] == '@'));
}

/* The same key again out of what was made of it: as people type it, and as a URL. */
static void check_host_key(const struct route_key *key, struct span host, uint16_t port)
{
    char again[CLI_KEY_SIZE], url_text[ROUTE_HOST_MAX + 16], exact[ROUTE_HOST_MAX];
    struct span text = span_of(key->text, key->len), tail = url_port_part(text);
    struct url url;

    for (size_t i = 0; i < key->len; i++) {
        unsigned char c = (unsigned char)key->text[i];
        MUST(c > 0x20 && c != 0x7f && c != '/' && c == (unsigned char)span_lower((char)c));
    }
    MUST(key->len <= sizeof key->text && key->name_len + tail.len == key->len);
    MUST((port == 443) == (tail.len == 0));
    MUST(cli_key_normalise(text, again, sizeof again) && span_eq(text, span_str(again)));
    int len = snprintf(url_text, sizeof url_text, "https://%.*s/", (int)key->len, key->text);
    MUST(url_parse(span_of(url_text, (size_t)len), &url) && url.port == port);
    MUST(url_host_key(url.host, url.port, again, sizeof again) == key->len);
    MUST(memcmp(again, key->text, key->len) == 0);
    /* It fits, with a last dot, or not at all. */
    size_t room = key->len + 1 < sizeof exact ? key->len + 1 : sizeof exact;
    MUST(url_host_key(host, port, exact, room) == key->len);
    MUST(url_host_key(host, port, exact, key->len - 1) == 0);
}

static void check_model_key(const struct route_key *key)
{
    char decoded[MODEL_MAX], text[CLI_KEY_SIZE], again[CLI_KEY_SIZE];
    struct span host, model;

    if (key->shape.place != MODEL_IN_PATH)
        return;
    model = route_model(route_model_in_path(&key->shape, decoded));
    MUST(model.len > 0 && model.len <= MODEL_MAX && !span_has_control(model));
    int len = snprintf(text, sizeof text, "%.*s/", (int)key->len, key->text);
    memcpy(text + len, model.ptr, model.len);
    struct span whole = span_of(text, (size_t)len + model.len);
    MUST(cli_key_normalise(whole, again, sizeof again) && span_eq(whole, span_str(again)));
    cli_key_split(whole, &host, &model);
    MUST(host.len == key->len && model.len == whole.len - key->len - 1);
}

static void check_keys(const struct url *url)
{
    static const struct span methods[] = {SPAN_LIT("POST"), SPAN_LIT("GET")};
    struct route_key key;

    for (size_t i = 0; i < 2; i++) {
        if (!route_key_of(methods[i], url->host, url->port, url->path, &key))
            return;
        MUST(i == 0 || key.shape.place == MODEL_NONE);
        MUST(key.shape.place != MODEL_IN_PATH || lies_in(key.shape.model, url->path));
        check_host_key(&key, url->host, url->port);
        check_model_key(&key);
    }
}

enum { SCHEME, SPELLED, HOST, PORT, PATH, QUERY, PARTS };

/* What libcurl itself makes of it, and spells, is what the library reads (preload/curl_url.c). */
static void check_spelled(char *const part[PARTS])
{
    struct url url;
    char ours[ROUTE_HOST_MAX], theirs[ROUTE_HOST_MAX];

    MUST(url_parse(span_str(part[SPELLED]), &url));
    MUST(url.port == (uint16_t)atoi(part[PORT]));
    MUST(url.path.len == 0 ? strcmp(part[PATH], "/") == 0
                           : span_eq(url.path, span_str(part[PATH])));
    MUST(span_eq(url.query, span_str(part[QUERY])));
    size_t len = url_host_key(url.host, url.port, ours, sizeof ours);
    MUST(len == url_host_key(span_str(part[HOST]), url.port, theirs, sizeof theirs));
    MUST(memcmp(ours, theirs, len) == 0);
    check_parts(span_str(part[SPELLED]), &url);
    check_keys(&url);
}

static void check_libcurl(const char *text)
{
    static const CURLUPart parts[PARTS] = {CURLUPART_SCHEME, CURLUPART_URL,  CURLUPART_HOST,
                                           CURLUPART_PORT,   CURLUPART_PATH, CURLUPART_QUERY};
    const unsigned flags = CURLU_GUESS_SCHEME | CURLU_NON_SUPPORT_SCHEME;
    char *part[PARTS] = {NULL};
    bool whole = true;
    CURLU *object = curl_url();

    MUST(object);
    if (curl_url_set(object, CURLUPART_URL, text, flags) == CURLUE_OK) {
        for (int i = 0; i < PARTS; i++) {
            curl_url_get(object, parts[i], &part[i], i == PORT ? CURLU_DEFAULT_PORT : 0);
            whole &= i == QUERY || part[i];
        }
        if (whole && *part[HOST] && atoi(part[PORT]) > 0 && /* nothing listens at 0 */
            route_is_http(span_str(part[SCHEME])))
            check_spelled(part);
        for (int i = 0; i < PARTS; i++)
            curl_free(part[i]);
    }
    curl_url_cleanup(object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct url url, untouched;
    char *copy = malloc(size), *string = malloc(size + 1);

    MUST(copy && string);
    if (size > 0)
        memcpy(copy, data, size);
    memset(&url, 0xa5, sizeof url);
    untouched = url;
    if (url_parse(span_of(copy, size), &url)) {
        check_parts(span_of(copy, size), &url);
        check_keys(&url);
    } else {
        MUST(memcmp(&url, &untouched, sizeof url) == 0);
    }
    memcpy(string, copy, size);
    string[size] = '\0';
    check_libcurl(string);
    free(copy);
    free(string);
    return 0;
}
