#include "base/log.h"

#include "base/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Length of the valid UTF-8 sequence at `text`, 0 when there is none. */
static size_t utf8_length(struct span text)
{
    unsigned char lead = (unsigned char)text.ptr[0];
    size_t len = lead < 0x80 ? 1 : lead >= 0xc2 && lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    unsigned low = 0x80, high = 0xbf;

    if (lead >= 0x80 && (lead < 0xc2 || lead > 0xf4))
        return 0;
    if (len > text.len)
        return 0;
    if (lead == 0xe0)
        low = 0xa0; /* overlong */
    else if (lead == 0xed)
        high = 0x9f; /* surrogates */
    else if (lead == 0xf0)
        low = 0x90;
    else if (lead == 0xf4)
        high = 0x8f; /* beyond U+10FFFF */
    for (size_t i = 1; i < len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c < low || c > high)
            return 0;
        low = 0x80;
        high = 0xbf;
    }
    return len;
}

/* One character escaped into `out`; returns its length, *used bytes of the text consumed. */
static size_t escape_one(struct span text, char out[8], size_t *used)
{
    unsigned char c = (unsigned char)text.ptr[0];
    size_t len = utf8_length(text);

    *used = len ? len : 1;
    if (len == 0)
        return (size_t)snprintf(out, 8, "\\ufffd");
    if (c == '"' || c == '\\') {
        out[0] = '\\';
        out[1] = (char)c;
        return 2;
    }
    if (c < 0x20 || c == 0x7f)
        return (size_t)snprintf(out, 8, "\\u%04x", c);
    memcpy(out, text.ptr, len);
    return len;
}

size_t log_json_escape(struct span text, char *buf, size_t size)
{
    size_t at = 0, used;
    char one[8];

    while (text.len > 0) {
        size_t len = escape_one(text, one, &used);
        if (at + len > size)
            break; /* never half a character */
        memcpy(buf + at, one, len);
        at += len;
        text = span_skip(text, used);
    }
    return at;
}

/* Room in a line for each value; together with names, time and pid less than LOG_LINE_MAX, so the
 * later members of a line of that size are never lost. */
enum { SHORT_MAX = 64, CAUSE_MAX = 128, PROGRAM_MAX = 128, KEY_MAX = 512, DETAIL_MAX = 768 };

_Static_assert(3 * SHORT_MAX + CAUSE_MAX + PROGRAM_MAX + KEY_MAX + DETAIL_MAX + 256 <= LOG_LINE_MAX,
               "a line keeps all its members");

/* A line being written; room for the closing "}\n" is always kept. */
struct line {
    char *buf;
    size_t size;
    size_t at;
};

static void put_raw(struct line *line, struct span text)
{
    if (line->at + text.len + 2 > line->size)
        return;
    memcpy(line->buf + line->at, text.ptr, text.len);
    line->at += text.len;
}

/* ,"name":"value" with the value cut so that the line stays whole; nothing for an absent value. */
static void put_member(struct line *line, const char *name, struct span value, size_t max)
{
    char head[32];
    int len = snprintf(head, sizeof head, ",\"%s\":\"", name);

    if (!value.ptr || line->at + (size_t)len + 3 > line->size)
        return;
    put_raw(line, span_of(head, (size_t)len));
    size_t room = line->size - line->at - 3;
    line->at += log_json_escape(value, line->buf + line->at, room < max ? room : max);
    put_raw(line, SPAN_LIT("\""));
}

static void put_number(struct line *line, const char *name, unsigned long long value)
{
    char text[48];
    int len = snprintf(text, sizeof text, ",\"%s\":%llu", name, value);

    put_raw(line, span_of(text, (size_t)len));
}

/* The civil date by arithmetic: gmtime_r reads the time zone's file and takes a lock that a fork
 * may leave held. Years are counted from March 1st of year 0 in eras of 400 years, so that the leap
 * day is the last of its year. */
static void put_time(struct line *line, int64_t wall_ms)
{
    if (wall_ms < 0)
        wall_ms = 0;
    uint64_t seconds = (uint64_t)wall_ms / 1000;
    uint64_t days = seconds / 86400 + 719468; /* since 0000-03-01 */
    uint64_t era = days / 146097, day_of_era = days % 146097;
    uint64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    uint64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    uint64_t month_from_march = (5 * day_of_year + 2) / 153;
    unsigned day = (unsigned)(day_of_year - (153 * month_from_march + 2) / 5 + 1);
    unsigned month =
        (unsigned)(month_from_march < 10 ? month_from_march + 3 : month_from_march - 9);
    unsigned long long year = year_of_era + era * 400 + (month <= 2);
    unsigned second_of_day = (unsigned)(seconds % 86400);
    char text[64];
    int len = snprintf(text, sizeof text, "{\"time\":\"%04llu-%02u-%02uT%02u:%02u:%02u.%03uZ\"",
                       year, month, day, second_of_day / 3600, second_of_day / 60 % 60,
                       second_of_day % 60, (unsigned)(wall_ms % 1000));

    put_raw(line, span_of(text, (size_t)len));
}

size_t log_render(const struct log_event *event, int64_t wall_ms, int pid, const char *program,
                  char *buf, size_t size)
{
    struct line line = {buf, size, 0};

    if (size < 64)
        return 0; /* not even the time */
    put_time(&line, wall_ms);
    put_member(&line, "event", span_str(event->event), SHORT_MAX);
    put_member(&line, "key", event->key, KEY_MAX);
    put_member(&line, "from", span_str(event->from), SHORT_MAX);
    put_member(&line, "to", span_str(event->to), SHORT_MAX);
    put_member(&line, "cause", span_str(event->cause), CAUSE_MAX);
    put_member(&line, "detail", span_str(event->detail), DETAIL_MAX);
    if (event->refused_total)
        put_number(&line, "refused_total", event->refused_total);
    put_number(&line, "pid", (unsigned)pid);
    put_member(&line, "program", span_str(program), PROGRAM_MAX);
    buf[line.at++] = '}';
    buf[line.at++] = '\n';
    return line.at;
}

/* Another process may append between our look at the size and our write, and past RLIMIT_FSIZE the
 * kernel then sends SIGXFSZ to this thread: blocked for the write, and taken away again if it was
 * ours. A signal that was pending before stays. */
static void write_unkilled(int fd, const char *bytes, size_t len)
{
    const struct timespec no_wait = {0, 0};
    sigset_t excess, before, pending;

    sigemptyset(&excess);
    sigaddset(&excess, SIGXFSZ);
    sigpending(&pending);
    if (pthread_sigmask(SIG_BLOCK, &excess, &before) != 0)
        return;
    if (write(fd, bytes, len) < 0 && errno == EFBIG && sigismember(&pending, SIGXFSZ) == 0)
        sigtimedwait(&excess, NULL, &no_wait);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void append(int fd, const char *bytes, size_t len)
{
    struct rlimit limit;
    struct stat st;

    if (kernel_fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return;
    /* Made just now under a umask that takes our own bits: the next writer could not open it. */
    if (st.st_size == 0 && st.st_uid == kernel_euid() && (st.st_mode & 0600) != 0600)
        fchmod(fd, (st.st_mode & 0777) | 0600);
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0)
        return;
    if (limit.rlim_cur == RLIM_INFINITY) {
        ssize_t written = write(fd, bytes, len);
        (void)written; /* a full disk is no trouble of the application's */
    } else if ((rlim_t)st.st_size + len <= limit.rlim_cur) {
        write_unkilled(fd, bytes, len);
    }
}

void log_write(const char *path, const struct log_event *event, int64_t wall_ms)
{
    int saved = errno, cancel = PTHREAD_CANCEL_ENABLE;
    char line[LOG_LINE_MAX];
    struct stat st;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* half of a call's end is none */
    size_t len = log_render(event, wall_ms, (int)syscall(SYS_getpid), program_invocation_short_name,
                            line, sizeof line);

    /* Opening is an event of its own for a FIFO's reader or a device; the descriptor is judged
     * again, since the path may change in between. */
    if (*path == '/' && (kernel_stat(path, &st) != 0 || S_ISREG(st.st_mode))) {
        int fd = open(
            path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
            0600);
        if (fd >= 0) {
            append(fd, line, len);
            close(fd);
        }
    }
    pthread_setcancelstate(cancel, NULL);
    errno = saved;
}
