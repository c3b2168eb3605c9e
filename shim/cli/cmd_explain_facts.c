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

/* --- the request ------------------------------------------------------------------------------ */

static bool key_with(struct explanation *out, struct span method)
{
    out->method = method;
    return route_key_of(method, out->url.host, out->url.port, out->url.path, &out->key);
}

/* False: no call has such a URL. */
static bool read_request(const struct explain_question *question, struct explanation *out)
{
    if (!url_parse(span_str(question->url), &out->url))
        return false;
    if (question->method)
        return key_with(out, span_str(question->method));
    out->method_assumed = true;
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

    if (!read_request(question, out)) {
        cli_text_complain("expected a URL with a host, found '%s'", question->url);
        return CLI_USAGE;
    }
    out->disabled = cli_disabled();
    out->is_http = route_is_http(out->url.scheme);
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
