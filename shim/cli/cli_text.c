#include "cli/cli.h"

#include "base/log.h"

#include <stdarg.h>
#include <stdlib.h>

/* The code point at the start of `s` and its length in *len; -1 for what is not UTF-8 (overlong
 * forms and surrogates included), *len 1. */
static int32_t decode(const unsigned char *s, size_t left, size_t *len)
{
    static const int32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    size_t need = s[0] < 0x80         ? 1
                  : (s[0] >> 5) == 6  ? 2
                  : (s[0] >> 4) == 14 ? 3
                  : (s[0] >> 3) == 30 ? 4
                                      : 0;
    *len = 1;
    if (need == 0 || need > left)
        return -1;
    int32_t point = need == 1 ? s[0] : s[0] & (0x7f >> need);
    for (size_t i = 1; i < need; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return -1;
        point = point << 6 | (s[i] & 0x3f);
    }
    if (point < least[need] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
        return -1;
    *len = need;
    return point;
}

/* Could it move the cursor, change the terminal, or reorder what stands beside it? */
static bool acts_on_terminal(int32_t point)
{
    return point < 0x20 || (point >= 0x7f && point < 0xa0) || point == 0x61c ||
           (point >= 0x200b && point <= 0x200f) || (point >= 0x2028 && point <= 0x202e) ||
           (point >= 0x2060 && point <= 0x206f) || point == 0xfeff;
}

size_t cli_text_safe(struct span text, char *buf, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)text.ptr;
    size_t used = 0, len;

    for (size_t i = 0; i < text.len; i += len) {
        bool plain = !acts_on_terminal(decode(bytes + i, text.len - i, &len));
        if (used + (plain ? len : 4 * len) >= size)
            break;
        if (plain)
            used = (size_t)((char *)mempcpy(buf + used, bytes + i, len) - buf);
        else
            for (size_t j = 0; j < len; j++)
                used += (size_t)sprintf(buf + used, "\\x%02x", bytes[i + j]);
    }
    buf[used] = '\0';
    return used;
}

size_t cli_text_width(const char *text)
{
    size_t width = 0;

    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

const char *cli_text_duration(uint64_t ms, char *buf, size_t size)
{
    if (ms < 1000)
        snprintf(buf, size, "%ums", (unsigned)ms);
    else if (ms < 100 * 1000)
        snprintf(buf, size, "%u.%us", (unsigned)(ms / 1000), (unsigned)(ms / 100 % 10));
    else if (ms < UINT64_C(100) * 60 * 1000)
        snprintf(buf, size, "%um", (unsigned)(ms / 60000));
    else if (ms < UINT64_C(48) * 3600 * 1000)
        snprintf(buf, size, "%uh", (unsigned)(ms / 3600000));
    else
        snprintf(buf, size, "%llud", (unsigned long long)(ms / 86400000));
    return buf;
}

void cli_text_json(FILE *out, struct span text)
{
    /* No byte becomes more than six: a backslash, u and four digits. */
    size_t size = text.len * 6 + 1;
    char *escaped = malloc(size);

    putc('"', out);
    if (escaped)
        fwrite(escaped, 1, log_json_escape(text, escaped, size), out);
    putc('"', out);
    free(escaped);
}

void cli_text_json_member(const char *name, struct span text)
{
    printf("\"%s\":", name);
    if (text.ptr)
        cli_text_json(stdout, text);
    else
        fputs("null", stdout);
}

void cli_text_json_setting(const char *key, const struct config_value *value)
{
    printf("\"%s\":{", key);
    cli_text_json_member("value", span_str(value->text));
    putchar(',');
    cli_text_json_member("origin", span_str(value->origin));
    putchar('}');
}

void cli_text_complain(const char *format, ...)
{
    char text[PATH_MAX + 512], safe[2 * PATH_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cli_text_safe(span_str(text), safe, sizeof safe);
    fflush(stdout); /* so that the two streams read in order where they meet */
    fprintf(stderr, "breaker: %s\n", safe);
}

void cli_text_problem(const struct config_problem *problem, void *data)
{
    const char *prefix = data ? data : "";
    char file[4 * sizeof problem->file], key[300], text[1400], line[16] = "";

    cli_text_safe(span_str(problem->file), file, sizeof file);
    cli_text_safe(span_str(problem->key), key, sizeof key);
    cli_text_safe(span_str(problem->text), text, sizeof text);
    if (problem->line)
        snprintf(line, sizeof line, ":%u", problem->line);
    fprintf(stderr, "%s%s%s: %s%s%s\n", prefix, file, line, key, *key ? ": " : "", text);
}

void cli_text_problem_or_warning(const struct config_problem *problem, void *data)
{
    char warning[] = "breaker: warning: ";

    cli_text_problem(problem, problem->skipped || problem->warning ? warning : data);
}

void cli_text_setting(const char *indent, const char *key, const struct config_value *value)
{
    char text[sizeof value->text], origin[4 * sizeof value->origin];

    cli_text_safe(span_str(value->text), text, sizeof text);
    cli_text_safe(span_str(value->origin), origin, sizeof origin);
    printf("%s%-18s = %-32s # %s\n", indent, key, text, origin);
}

const char *cli_text_cover(enum route_cover cover)
{
    static const char *const texts[] = {
        [ROUTE_MATCH_ALL] = "match = all",
        [ROUTE_LISTED] = "a target is for the host",
        [ROUTE_LLM_SHAPE] = "a POST to the path of an LLM call",
        [ROUTE_KNOWN_HOST] = "a known provider",
        [ROUTE_NOT_LISTED] = "no target is for the host, and match = listed",
        [ROUTE_NO_LLM_CALL] = ("no known provider, no target is for the host, and no POST to the "
                               "path of an LLM call"),
    };

    return texts[cover];
}
