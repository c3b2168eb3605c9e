/*
 * curl_detour_request.c - what of a request changes on its way to a fallback: the model in its
 * body, the lines of its head, and everything that speaks of who the application is.
 */
#include "curl_detour.h"

#include <stdlib.h>
#include <string.h>

/* --- the body ------------------------------------------------------------------------------- */

/* False: no memory. */
static bool keep_fields(struct easy *easy, struct span *fields)
{
    struct detour *detour = easy->detour;

    *fields = curl_options_fields(&easy->options);
    if (!easy->options.copied_fields)
        return true;
    if (!(detour->fields = malloc(fields->len + 1)))
        return false;
    memcpy(detour->fields, fields->ptr, fields->len);
    fields->ptr = detour->fields;
    return true;
}

void curl_detour_show_body(struct easy *easy)
{
    struct detour *detour = easy->detour;
    struct shim_detour *way = &detour->way;
    struct span fields;

    switch (curl_options_body(&easy->options)) {
    case BODY_READ:
        /* Only for a fallback that needs it, and where it can begin anew if none takes it. */
        if (shim_detour_wants_model(way) && curl_read_can_rewind(easy) && curl_replay_pull(easy))
            shim_detour_body(way, span_of(detour->pulled, detour->pulled_len));
        break;
    case BODY_FIELDS:
        if (keep_fields(easy, &fields))
            shim_detour_body(way, fields);
        break;
    case BODY_MIME:
    case BODY_FORM:
        shim_detour_model(way, curl_mime_model(easy));
        break;
    case BODY_NONE:
        shim_detour_body(way, SPAN_LIT(""));
        break;
    }
}

static const char *splice(struct detour *detour)
{
    detour->body_len = shim_detour_body_len(&detour->way);
    if (detour->body_len == 0)
        return "the model in its body cannot be replaced";
    detour->body = malloc(detour->body_len);
    if (!detour->body)
        return "no memory";
    shim_detour_write_body(&detour->way, detour->body);
    detour->replay = span_of(detour->body, detour->body_len);
    return NULL;
}

/* The application's callback from its beginning, or, where that was read, what it gave. */
static const char *plan_pulled(struct easy *easy)
{
    struct detour *detour = easy->detour;
    static const char once[] = "its body cannot be read twice";

    if (!detour->pulled && detour->way.model.ptr &&
        (!curl_read_can_rewind(easy) || !curl_replay_pull(easy)))
        return once;
    if (detour->pulled)
        shim_detour_body(&detour->way, span_of(detour->pulled, detour->pulled_len));
    if (detour->way.model.ptr)
        return splice(detour);
    if (detour->pulled)
        detour->replay = span_of(detour->pulled, detour->pulled_len);
    else if (easy->body_shown > 0 && !curl_read_rewind(easy))
        return once;
    return NULL;
}

static const char *plan_body(struct easy *easy)
{
    struct detour *detour = easy->detour;

    switch (curl_options_body(&easy->options)) {
    case BODY_READ:
        return plan_pulled(easy);
    case BODY_FIELDS:
        return detour->way.model.ptr ? splice(detour) : NULL;
    case BODY_MIME:
        detour->part = detour->way.model.ptr ? curl_mime_model_part(easy) : NULL;
        return detour->way.model.ptr && !detour->part ? "the model in its form cannot be replaced"
                                                      : NULL;
    case BODY_FORM:
        return detour->way.model.ptr ? "the model in its form cannot be replaced" : NULL;
    case BODY_NONE:
        break;
    }
    return NULL;
}

static void override_body(struct easy *easy)
{
    struct detour *detour = easy->detour;

    if (detour->part) {
        easy->real->mime_data(detour->part, detour->way.model.ptr, detour->way.model.len);
    } else if (detour->replay.ptr && curl_options_body(&easy->options) == BODY_FIELDS) {
        curl_call_override(easy, SHADOW_POSTFIELDS, detour->body);
        curl_call_override_number(easy, SHADOW_POSTFIELDSIZE_LARGE, (long)detour->body_len);
    } else if (detour->replay.ptr) {
        curl_replay_install(easy);
    }
}

void curl_detour_put_part_back(struct easy *easy)
{
    struct detour *detour = easy->detour;
    const struct mime_node *part = detour->part ? easymap_mime(detour->part) : NULL;

    if (part && part->is_model) /* else it is freed already */
        easy->real->mime_data(detour->part, part->data, CURL_ZERO_TERMINATED);
    detour->part = NULL;
}

/* --- the head ------------------------------------------------------------------------------- */

static void free_list(struct curl_slist **list)
{
    while (*list) {
        struct curl_slist *first = *list;
        *list = first->next;
        explicit_bzero(first->data, strlen(first->data)); /* a key, perhaps */
        free(first->data);
        free(first);
    }
}

static bool append(struct curl_slist ***end, const char *line)
{
    struct curl_slist *node = calloc(1, sizeof *node);

    if (node)
        node->data = strdup(line);
    if (!node || !node->data) {
        free(node);
        return false;
    }
    **end = node;
    *end = &node->next;
    return true;
}

static struct span name_of(const char *line)
{
    return span_trim(span_of(line, strcspn(line, ":;")));
}

static bool has_name(const struct curl_slist *list, struct span name)
{
    for (; list; list = list->next)
        if (span_ieq(name_of(list->data), name))
            return true;
    return false;
}

/* Does the application's line go along? Not where the fallback's own says another thing, and not
 * where it tells of what has changed. */
static bool goes_along(const struct easy *easy, const char *line)
{
    const struct detour *detour = easy->detour;
    struct span name = name_of(line);

    return !shim_detour_withholds(&detour->way, span_str(line)) &&
           !has_name(detour->headers, name) &&
           !(detour->way.foreign && span_ieq(name, SPAN_LIT("host"))) &&
           !(detour->way.model.ptr && span_ieq(name, SPAN_LIT("content-length")));
}

/* The fallback's lines behind those of the application that go along. */
static const char *plan_headers(struct easy *easy)
{
    struct detour *detour = easy->detour;
    const struct curl_slist *theirs = easy->options.value[SHADOW_HTTPHEADER].pointer;
    struct curl_slist *kept = NULL, **end = &detour->headers;
    const char *line, *why_not;
    bool good = true;

    for (unsigned i = 0; (line = shim_detour_header(&detour->way, i, &why_not)); i++)
        good &= append(&end, line);
    if (why_not)
        return why_not;
    detour->told_length = detour->way.model.ptr && has_name(theirs, SPAN_LIT("content-length"));
    for (end = &kept; theirs; theirs = theirs->next)
        if (theirs->data && goes_along(easy, theirs->data))
            good &= append(&end, theirs->data);
    *end = detour->headers;
    detour->headers = kept;
    return good ? NULL : "no memory";
}

/* --- who the application is ----------------------------------------------------------------- */

static bool is_address(struct span host)
{
    size_t len = 0;

    while (len < host.len && memchr("0123456789.", host.ptr[len], 11))
        len++;
    return host.len > 0 && (host.ptr[0] == '[' || len == host.len);
}

/* The last two labels of a name; of an address all of it. */
static struct span domain_of(struct span host)
{
    unsigned dots = 0;
    size_t at = host.len;

    if (is_address(host))
        return host;
    while (at > 0 && (host.ptr[at - 1] != '.' || ++dots < 2))
        at--;
    return span_skip(host, at);
}

/* libcurl's jar knows no ports and no schemes, and cookies may be for a whole domain: it would send
 * the target's to such a fallback, and the fallback's to the target. */
static bool cookies_would_cross(const struct easy *easy)
{
    const struct detour *detour = easy->detour;
    struct shim_request from, to;
    struct curl_slist *cookies = NULL;

    if ((!easy->options.has_cookie_jar && !easy->options.may_share_cookies) ||
        !shim_request_of_url(span_str(detour->url), &from) ||
        !shim_request_of_url(span_str(detour->way.url), &to) ||
        !span_ieq(domain_of(from.host), domain_of(to.host)))
        return false;
    if (easy->options.has_cookie_jar)
        return true;
    easy->real->easy_getinfo(easy->handle, CURLINFO_COOKIELIST, &cookies);
    bool shared = cookies != NULL;
    easy->real->slist_free_all(cookies);
    return shared;
}

static bool has_user(const char *url)
{
    const char *authority = strstr(url, "://");

    return authority && memchr(authority + 3, '@', strcspn(authority + 3, "/?#"));
}

/* An entry for every name at a port. */
static bool resolves_all(const struct easy *easy)
{
    const struct curl_slist *entry = easy->options.value[SHADOW_RESOLVE].pointer;

    for (; entry; entry = entry->next)
        if (strncmp(entry->data + (*entry->data == '+'), "*:", 2) == 0)
            return true;
    return false;
}

static const char *plan_identity(const struct easy *easy)
{
    const struct shim_detour *way = &easy->detour->way;

    if (!way->foreign)
        return way->url && has_user(easy->detour->url) ? "its user stands in its URL" : NULL;
    if (cookies_would_cross(easy))
        return "the cookies of its handle would go along";
    if (easy->options.value[SHADOW_SSL_CTX_FUNCTION].pointer && curl_url_is_https(way->url))
        return "its TLS is set up by the application's own callback";
    if (resolves_all(easy))
        return "the application resolves all names to one address";
    return NULL;
}

/* All ways but those that need no password, for who is logged in: libcurl remembers which one the
 * target took, and forgets it when that is none to choose from any more. Signatures of AWS are a
 * way of their own, which their option set. */
static void override_auth(struct easy *easy)
{
    const struct shadow_value *value = easy->options.value;
    unsigned long ways = CURLAUTH_ANY & ~(CURLAUTH_NEGOTIATE | CURLAUTH_NTLM | CURLAUTH_NTLM_WB);

    if (value[SHADOW_HTTPAUTH].set || value[SHADOW_AWS_SIGV4].set)
        curl_call_override(easy, SHADOW_HTTPAUTH, (void *)(uintptr_t)ways);
    curl_options_guard(&easy->options, SHADOW_HTTPAUTH);
}

/* Nothing of it goes along, whenever it is set, and the fallback is who its certificate says. */
static void override_identity(struct easy *easy)
{
    const char *referer = easy->options.value[SHADOW_REFERER].string;
    static const enum shadow_index credentials[] = {
        SHADOW_USERNAME,
        SHADOW_PASSWORD,
        SHADOW_XOAUTH2_BEARER,
        SHADOW_AWS_SIGV4,
        SHADOW_NETRC,
        SHADOW_COOKIE,
        SHADOW_UNRESTRICTED_AUTH,
        SHADOW_SSLCERT,
        SHADOW_SSLKEY,
        SHADOW_KEYPASSWD,
        SHADOW_SSLCERT_BLOB,
        SHADOW_SSLKEY_BLOB,
        SHADOW_TLSAUTH_USERNAME,
        SHADOW_TLSAUTH_PASSWORD,
        SHADOW_HAPROXYPROTOCOL,
        SHADOW_TRAILERFUNCTION,
        SHADOW_PINNEDPUBLICKEY, /* the target's */
        SHADOW_SSL_VERIFYPEER,
        SHADOW_SSL_VERIFYHOST,
    };
    static const enum shadow_index planned[] = {SHADOW_REFERER, SHADOW_SSL_CTX_FUNCTION,
                                                SHADOW_RESOLVE};

    curl_call_neutralise(easy, credentials, sizeof credentials / sizeof *credentials);
    override_auth(easy);
    if (referer && strchr(referer, '?'))
        curl_options_neutralise(&easy->options, easy->real, easy->handle, SHADOW_REFERER);
    for (size_t i = 0; i < sizeof planned / sizeof *planned; i++)
        curl_options_guard(&easy->options, planned[i]);
}

/* --- all of it ------------------------------------------------------------------------------ */

const char *curl_detour_plan_request(struct easy *easy)
{
    const char *why_not = plan_identity(easy);

    if (!why_not)
        why_not = plan_headers(easy);
    return why_not ? why_not : plan_body(easy);
}

void curl_detour_override_request(struct easy *easy)
{
    struct detour *detour = easy->detour;

    if (detour->headers || easy->options.value[SHADOW_HTTPHEADER].pointer)
        curl_call_override(easy, SHADOW_HTTPHEADER, detour->headers);
    curl_options_guard(&easy->options, SHADOW_HTTPHEADER);
    if (detour->way.foreign)
        override_identity(easy);
    override_body(easy);
}

void curl_detour_drop_request(struct easy *easy)
{
    struct detour *detour = easy->detour;

    free_list(&detour->headers);
    free_list(&detour->connect_to);
    free(detour->body);
    detour->body = NULL;
    detour->body_len = detour->replayed = 0;
    detour->replay = SPAN_NONE;
}
