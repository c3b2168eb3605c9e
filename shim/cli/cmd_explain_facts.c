/*
 * cmd_explain_facts.c - what a call is, by the library's own rules: URL, method, coverage, model.
 */
#include "cli/cmd_explain.h"

#include "http/credential.h"

#include <errno.h>
#include <fcntl.h>
#include <strings.h>
#include <unistd.h>

#define PIECE_SIZE (64 * 1024)

void explain_remark(struct explanation *out, const char *text)
{
    if (out->remark_count < EXPLAIN_REMARKS_MAX)
        out->remarks[out->remark_count++] = text;
}

/* --- the URL ---------------------------------------------------------------------------------- */

uint16_t explain_usual_port(struct span scheme)
{
    static const struct {
        struct span scheme;
        uint16_t port;
    } usual[] = {
        {SPAN_LIT("http"), 80},    {SPAN_LIT("https"), 443}, {SPAN_LIT("ws"), 80},
        {SPAN_LIT("wss"), 443},    {SPAN_LIT("ftp"), 21},    {SPAN_LIT("ftps"), 990},
        {SPAN_LIT("sftp"), 22},    {SPAN_LIT("scp"), 22},    {SPAN_LIT("gopher"), 70},
        {SPAN_LIT("gophers"), 70}, {SPAN_LIT("dict"), 2628}, {SPAN_LIT("telnet"), 23},
        {SPAN_LIT("smtp"), 25},    {SPAN_LIT("smtps"), 465}, {SPAN_LIT("imap"), 143},
        {SPAN_LIT("imaps"), 993},  {SPAN_LIT("pop3"), 110},  {SPAN_LIT("pop3s"), 995},
        {SPAN_LIT("ldap"), 389},   {SPAN_LIT("ldaps"), 636}, {SPAN_LIT("mqtt"), 1883},
        {SPAN_LIT("rtsp"), 554},   {SPAN_LIT("rtmp"), 1935},
    };

    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (span_ieq(scheme, usual[i].scheme))
            return usual[i].port;
    return 0;
}

/* Of a URL that was parsed from a string; "host:" has none. */
static bool has_port(const struct url *url)
{
    const char *end = url->host.ptr + url->host.len;

    return end[0] == ':' && end[1] >= '0' && end[1] <= '9';
}

/* CLI_OK, or the exit code after a complaint. */
static int read_url(const struct explain_question *question, struct explanation *out)
{
    struct url *url = &out->url;

    if (!url_parse(span_str(question->url), url)) {
        cli_text_complain("expected a URL with a host, found '%s'", question->url);
        return CLI_USAGE;
    }
    out->is_http = route_is_http(url->scheme);
    if (has_port(url) || (url->port = explain_usual_port(url->scheme)) != 0)
        return CLI_OK;
    cli_text_complain("expected a port, as in %.*s://%.*s:PORT: that of %.*s is not known here",
                      (int)url->scheme.len, url->scheme.ptr, (int)url->host.len, url->host.ptr,
                      (int)url->scheme.len, url->scheme.ptr);
    return CLI_USAGE;
}

/* --- the request ------------------------------------------------------------------------------ */

static bool key_with(struct explanation *out, struct span method)
{
    out->method = method;
    return route_key_of(method, out->url.host, out->url.port, out->url.path, &out->key);
}

/* False: no call has such a URL. */
static bool read_request(const struct explain_question *question, struct explanation *out)
{
    if (question->method)
        return key_with(out, span_str(question->method));
    out->method_assumed = true;
    if (!out->is_http)
        return key_with(out, SPAN_LIT("GET")); /* as a WebSocket begins */
    if (!key_with(out, SPAN_LIT("POST")))
        return false;
    return out->key.shape.place != MODEL_NONE || question->model || question->body ||
           key_with(out, SPAN_LIT("GET"));
}

static bool has_dot_segment(struct span path)
{
    for (size_t i = 0; i + 1 < path.len; i++) {
        if (path.ptr[i] != '/' || path.ptr[i + 1] != '.')
            continue;
        struct span rest = span_skip(path, i + 2);
        if (rest.len > 0 && rest.ptr[0] == '.')
            rest = span_skip(rest, 1);
        if (rest.len == 0 || rest.ptr[0] == '/')
            return true;
    }
    return false;
}

/* By host alone, as for a connect, whose path nobody knows yet. */
static bool is_judged_at_connect(const struct config *config, const struct explanation *out)
{
    struct route_key key;

    return route_key_of(SPAN_NONE, out->url.host, out->url.port, SPAN_LIT(""), &key) &&
           route_is_covered(route_cover(config, &key));
}

/* --- the model -------------------------------------------------------------------------------- */

static void decide_model(struct explanation *out, struct span model)
{
    struct span counted = route_model(model);

    memcpy(out->model, counted.ptr, counted.len);
    out->model[counted.len] = '\0';
    out->model_known = true;
    if (strcmp(out->model, "-") == 0 && !out->host_alone)
        explain_remark(
            out, model.ptr ? "the model cannot be a key (empty, longer than 255 bytes, or with "
                             "control characters): such calls are counted under -"
                           : "no model can be read from the body: such calls are counted under -");
}

/* Fills `buf` as far as the file goes; -1: errno tells. */
static ssize_t read_piece(int fd, char *buf, size_t size)
{
    size_t used = 0;

    while (used < size) {
        ssize_t got = read(fd, buf + used, size - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        used += (size_t)got;
    }
    return (ssize_t)used;
}

/* False: errno tells. A body is a form if it begins as one (model_scan.h). */
static bool scan_body(int fd, struct explanation *out)
{
    static char piece[PIECE_SIZE];
    struct model_scan scan;
    bool first = true;
    ssize_t got;

    model_scan_init(&scan, route_model_member(out->key.shape.place));
    while (model_scan_state(&scan) == MODEL_SCAN_MORE) {
        if ((got = read_piece(fd, piece, sizeof piece)) < 0)
            return false;
        if (first && span_starts(span_of(piece, (size_t)got), SPAN_LIT("--")))
            out->place = EXPLAIN_FIELD;
        first = false;
        model_scan_feed(&scan, span_of(piece, (size_t)got));
        if ((size_t)got < sizeof piece)
            model_scan_end(&scan);
    }
    decide_model(out, model_scan_value(&scan));
    return true;
}

/* Opened in any case: a name that is wrong is told. */
static int read_body(const char *name, struct explanation *out)
{
    bool is_stdin = strcmp(name, "-") == 0;
    bool wanted = out->place == EXPLAIN_MEMBER;
    int fd = is_stdin ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    bool done = fd >= 0 && (!wanted || scan_body(fd, out));

    if (!done)
        cli_text_complain("--body: %s: %s", name, strerror(errno));
    if (fd >= 0 && !is_stdin)
        close(fd);
    return done ? CLI_OK : CLI_WRONG;
}

static int find_model(const struct explain_question *question, struct explanation *out)
{
    const struct shape *shape = &out->key.shape;
    bool shown = question->model || question->body;
    char decoded[MODEL_MAX];

    if (shape->place == MODEL_NONE || shape->place == MODEL_IN_PATH) {
        out->place = shape->place == MODEL_NONE ? EXPLAIN_NONE : EXPLAIN_PATH;
        out->model_known = true;
        if (out->place == EXPLAIN_PATH)
            decide_model(out, route_model_in_path(shape, decoded));
        if (shown)
            explain_remark(out,
                           out->place == EXPLAIN_PATH
                               ? "the path names the model: the body is not looked at"
                               : "no POST to the path of an LLM call: the body is not looked at");
    } else {
        out->place = EXPLAIN_MEMBER;
        if (question->model)
            decide_model(out, span_str(question->model));
    }
    return question->body ? read_body(question->body, out) : CLI_OK;
}

/* --- whose quota? ----------------------------------------------------------------------------- */

/* The URL is all of the request that is known. */
static void read_credential(const struct explain_question *question, struct explanation *out)
{
    struct explain_stop *own = &out->chain[0];
    struct span key;

    if (!credential_in_query(out->url.query, &key))
        key = url_userinfo(span_str(question->url), &out->url);
    own->credential_known = out->key.shape.place != MODEL_NONE && key.len > 0;
    if (own->credential_known)
        own->credential = credential_hash(0, key);
}

/* --- both ------------------------------------------------------------------------------------- */

int explain_facts(const struct cli_context *context, const struct explain_question *question,
                  struct explanation *out)
{
    struct policy policy;

    int code = read_url(question, out);
    if (code != CLI_OK)
        return code;
    if (!read_request(question, out)) {
        size_t port_len =
            out->url.port == 443 ? 0 : (size_t)snprintf(NULL, 0, ":%u", out->url.port);
        if (!cli_key_complain_long_host(out->url.host.len + port_len))
            cli_text_complain("expected a URL with a host, found '%s'", question->url);
        return CLI_USAGE;
    }
    out->disabled = cli_disabled();
    out->known_host = shape_known_host(span_of(out->key.text, out->key.name_len));
    out->cover = route_cover(context->config, &out->key);
    out->at_connect = is_judged_at_connect(context->config, out);
    config_policy(context->config, span_of(out->key.text, out->key.len), SPAN_NONE, &policy);
    out->host_alone = route_host_alone(&policy, out->key.shape.place);
    if (span_ieq(out->url.scheme, SPAN_LIT("http")) && strncasecmp(question->url, "http:", 5) != 0)
        explain_remark(out, "no scheme is given: http is meant, as libcurl takes it");
    if (has_dot_segment(out->url.path))
        explain_remark(out,
                       "the path is taken as it stands: libcurl takes its dot segments out first");
    read_credential(question, out);
    return find_model(question, out);
}
