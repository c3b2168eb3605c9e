/*
 * client.c - a program on libcurl that knows nothing of the breaker: one way of using libcurl per
 * mode.
 *
 *   client MODE URL
 *
 * Each transfer asks for a model ("fine" or "shut") and prints one line:
 *   MODEL CODE STATUS BODY_BYTES EFFECTIVE_URL
 * Exit status 0; an assertion of the mode itself that fails is told on stderr, exit 1.
 */
#include <curl/curl.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *url;

static void die(const char *what)
{
    fprintf(stderr, "client: %s\n", what);
    exit(1);
}

static char *body_of(const char *model)
{
    char *text = NULL;

    if (asprintf(&text,
                 "{\"messages\":[{\"content\":\"\\\"model\\\":\\\"x\\\"\"}],\"model\":\"%s\"}",
                 model) < 0)
        die("memory");
    return text;
}

static size_t count_bytes(char *data, size_t size, size_t count, void *sum)
{
    (void)data;
    *(size_t *)sum += size * count;
    return size * count;
}

struct request {
    CURL *easy;
    const char *model;
    char *body;
    size_t sent, received;
    FILE *file;
    curl_mime *mime;
};

static size_t read_body(char *buffer, size_t size, size_t count, void *data)
{
    struct request *r = data;
    size_t left = strlen(r->body) - r->sent, n = size * count < left ? size * count : left;

    if (n > 7)
        n = 7; /* the model's name falls across calls */
    memcpy(buffer, r->body + r->sent, n);
    r->sent += n;
    return n;
}

static void begin(struct request *r, CURL *easy, const char *model)
{
    *r = (struct request){.easy = easy, .model = model, .body = body_of(model)};
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, count_bytes);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &r->received);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT, 20L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
}

static void post_fields(struct request *r)
{
    curl_easy_setopt(r->easy, CURLOPT_POSTFIELDS, r->body);
}

static void post_read(struct request *r, int chunked)
{
    curl_easy_setopt(r->easy, CURLOPT_POST, 1L);
    curl_easy_setopt(r->easy, CURLOPT_READFUNCTION, read_body);
    curl_easy_setopt(r->easy, CURLOPT_READDATA, r);
    curl_easy_setopt(r->easy, CURLOPT_POSTFIELDSIZE_LARGE,
                     chunked ? (curl_off_t)-1 : (curl_off_t)strlen(r->body));
}

static void post_file(struct request *r)
{
    r->file = tmpfile();
    if (!r->file || fputs(r->body, r->file) < 0 || fseek(r->file, 0, SEEK_SET) != 0)
        die("tmpfile");
    curl_easy_setopt(r->easy, CURLOPT_POST, 1L);
    curl_easy_setopt(r->easy, CURLOPT_READDATA, r->file);
    curl_easy_setopt(r->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(r->body));
}

static pthread_mutex_t printing = PTHREAD_MUTEX_INITIALIZER;

static void finish(struct request *r, CURLcode code)
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

static void perform(struct request *r)
{
    finish(r, curl_easy_perform(r->easy));
}

/* fine, shut, fine on one handle and one connection pool. */
static void three(void (*prepare)(struct request *))
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

static void prepare_copy(struct request *r)
{
    curl_easy_setopt(r->easy, CURLOPT_POSTFIELDSIZE, (long)strlen(r->body));
    curl_easy_setopt(r->easy, CURLOPT_COPYPOSTFIELDS, r->body);
    memset(r->body, 'x', strlen(r->body)); /* libcurl has its own */
}

static void prepare_read(struct request *r)
{
    post_read(r, 0);
}

static void prepare_chunked(struct request *r)
{
    post_read(r, 1);
}

static void prepare_failonerror(struct request *r)
{
    post_fields(r);
    curl_easy_setopt(r->easy, CURLOPT_FAILONERROR, 1L);
}

static void prepare_nobody(struct request *r)
{
    post_fields(r);
    curl_easy_setopt(r->easy, CURLOPT_NOBODY, 1L);
    curl_easy_setopt(r->easy, CURLOPT_CUSTOMREQUEST, "POST");
}

static void prepare_bound(struct request *r)
{
    post_fields(r);
    curl_easy_setopt(r->easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(r->easy, CURLOPT_INTERFACE, "lo");
    curl_easy_setopt(r->easy, CURLOPT_IPRESOLVE, (long)CURL_IPRESOLVE_V4);
    curl_easy_setopt(r->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_0);
    curl_easy_setopt(r->easy, CURLOPT_TCP_FASTOPEN, 0L);
    curl_easy_setopt(r->easy, CURLOPT_KEEP_SENDING_ON_ERROR, 1L);
    curl_easy_setopt(r->easy, CURLOPT_RANGE, "0-");
}

static void prepare_curlu(struct request *r)
{
    static CURLU *parts;

    if (!parts)
        parts = curl_url();
    curl_url_set(parts, CURLUPART_URL, url, 0);
    post_fields(r);
    curl_easy_setopt(r->easy, CURLOPT_URL, NULL);
    curl_easy_setopt(r->easy, CURLOPT_CURLU, parts);
}

static void prepare_no_writedata(struct request *r)
{
    post_fields(r);
    curl_easy_reset(r->easy);
    curl_easy_setopt(r->easy, CURLOPT_URL, url);
    curl_easy_setopt(r->easy, CURLOPT_POSTFIELDS, r->body);
}

static int opened, configured, closed;

static curl_socket_t open_socket(void *data, curlsocktype purpose, struct curl_sockaddr *a)
{
    (void)purpose;
    ++*(int *)data;
    return socket(a->family, a->socktype, a->protocol);
}

static int configure_socket(void *data, curl_socket_t fd, curlsocktype purpose)
{
    (void)fd;
    (void)purpose;
    ++*(int *)data;
    return CURL_SOCKOPT_OK;
}

static int close_socket(void *data, curl_socket_t fd)
{
    ++*(int *)data;
    return close(fd);
}

static void prepare_callbacks(struct request *r)
{
    post_fields(r);
    curl_easy_setopt(r->easy, CURLOPT_FORBID_REUSE, 1L);
    curl_easy_setopt(r->easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(r->easy, CURLOPT_OPENSOCKETDATA, &opened);
    curl_easy_setopt(r->easy, CURLOPT_SOCKOPTFUNCTION, configure_socket);
    curl_easy_setopt(r->easy, CURLOPT_SOCKOPTDATA, &configured);
    curl_easy_setopt(r->easy, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
    curl_easy_setopt(r->easy, CURLOPT_CLOSESOCKETDATA, &closed);
}

static void prepare_connect_only(struct request *r)
{
    post_fields(r);
    curl_easy_setopt(r->easy, CURLOPT_CONNECT_ONLY, strcmp(r->model, "shut") == 0 ? 1L : 0L);
}

static void prepare_mime(struct request *r)
{
    curl_mime *mime = r->mime = curl_mime_init(r->easy);
    curl_mimepart *part = curl_mime_addpart(mime);

    curl_mime_name(part, "file");
    curl_mime_data(part, "\r\n--x\r\nname=\"model\"\r\n\r\nnot this", CURL_ZERO_TERMINATED);
    curl_mime_filename(part, "a.wav");
    part = curl_mime_addpart(mime);
    curl_mime_data(part, r->model, CURL_ZERO_TERMINATED);
    curl_mime_name(part, "model");
    curl_easy_setopt(r->easy, CURLOPT_MIMEPOST, mime);
}

static void prepare_form(struct request *r)
{
    struct curl_httppost *form = NULL, *last = NULL;

    curl_formadd(&form, &last, CURLFORM_COPYNAME, "file", CURLFORM_BUFFER, "a.wav",
                 CURLFORM_BUFFERPTR, "sound", CURLFORM_BUFFERLENGTH, 5L, CURLFORM_END);
    curl_formadd(&form, &last, CURLFORM_COPYNAME, "model", CURLFORM_COPYCONTENTS, r->model,
                 CURLFORM_END);
    curl_easy_setopt(r->easy, CURLOPT_HTTPPOST, form);
}

/* A signature whose region and service are told by the host's name. */
static void prepare_signed(struct request *r)
{
    post_fields(r);
    curl_easy_setopt(r->easy, CURLOPT_AWS_SIGV4, "aws:amz");
    curl_easy_setopt(r->easy, CURLOPT_USERPWD, "key:secret");
    curl_easy_setopt(r->easy, CURLOPT_HTTPHEADER, NULL);
}

static void prepare_h2(struct request *r)
{
    post_fields(r);
    curl_easy_setopt(r->easy, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(r->easy, CURLOPT_PIPEWAIT, 1L);
}

static void prepare_h2_read(struct request *r)
{
    prepare_h2(r);
    curl_easy_setopt(r->easy, CURLOPT_POSTFIELDS, NULL);
    post_read(r, 0);
}

/* --- whole modes --------------------------------------------------------------------------------
 */

static void mode_duplicate(void)
{
    CURL *easy = curl_easy_init();
    struct request r;

    begin(&r, easy, "shut");
    post_fields(&r);
    CURL *copy = curl_easy_duphandle(easy);
    curl_easy_cleanup(easy);
    r.easy = copy;
    perform(&r);
    begin(&r, copy, "fine");
    post_fields(&r);
    perform(&r);
    curl_easy_reset(copy);
    begin(&r, copy, "shut");
    post_fields(&r);
    perform(&r);
    curl_easy_cleanup(copy);
}

static void *run_thread(void *unused)
{
    (void)unused;
    for (int i = 0; i < 4; i++)
        three(post_fields);
    return NULL;
}

static void mode_threads(void)
{
    pthread_t threads[32];

    for (int i = 0; i < 32; i++)
        if (pthread_create(&threads[i], NULL, run_thread, NULL) != 0)
            die("pthread_create");
    for (int i = 0; i < 32; i++)
        pthread_join(threads[i], NULL);
}

static void mode_fork(void)
{
    CURL *easy = curl_easy_init();
    struct request r;
    int status;

    begin(&r, easy, "fine");
    post_fields(&r);
    perform(&r);
    pid_t pid = fork();
    if (pid == 0) {
        CURL *own = curl_easy_init();
        begin(&r, own, "shut");
        post_fields(&r);
        perform(&r);
        curl_easy_cleanup(own);
        _exit(0);
    }
    if (waitpid(pid, &status, 0) != pid || status != 0)
        die("the child failed");
    begin(&r, easy, "shut");
    post_fields(&r);
    perform(&r);
    curl_easy_cleanup(easy);
}

/* A callback that performs another handle, sets options and duplicates its own. */
static struct request nested;
static CURL *nested_copy;

static size_t write_nested(char *data, size_t size, size_t count, void *outer)
{
    struct request *r = outer;
    (void)data;

    if (!nested.easy) {
        begin(&nested, curl_easy_init(), "shut");
        post_fields(&nested);
        perform(&nested);
        curl_easy_cleanup(nested.easy);
        curl_easy_setopt(r->easy, CURLOPT_PRIVATE, "seen");
        curl_easy_setopt(r->easy, CURLOPT_PROXY, "");
        nested_copy = curl_easy_duphandle(r->easy);
    }
    r->received += size * count;
    return size * count;
}

static void nest(const char *model)
{
    CURL *easy = curl_easy_init();
    struct request r, again;
    char *private = NULL;

    memset(&nested, 0, sizeof nested);
    begin(&r, easy, model);
    post_fields(&r);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, write_nested);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &r);
    perform(&r);
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &private);
    if (!private || strcmp(private, "seen") != 0)
        die("PRIVATE set in a callback was lost");
    begin(&again, nested_copy, "fine"); /* the copy made in a callback is the application's own */
    post_fields(&again);
    perform(&again);
    begin(&again, easy, "fine");
    post_fields(&again);
    perform(&again);
    curl_easy_cleanup(nested_copy);
    curl_easy_cleanup(easy);
}

static void mode_nested(void)
{
    nest("fine");
    nest("shut");
}

static int reap(CURLM *multi)
{
    int queued, done = 0;
    CURLMsg *message;

    while ((message = curl_multi_info_read(multi, &queued))) {
        struct request *r;
        CURL *easy = message->easy_handle;
        CURLcode code = message->data.result;
        curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&r);
        curl_multi_remove_handle(multi, easy);
        finish(r, code);
        done++;
    }
    return done;
}

static void drive(CURLM *multi, int transfers)
{
    int running = 1;

    while (transfers > 0) {
        if (curl_multi_perform(multi, &running) != CURLM_OK)
            die("curl_multi_perform");
        transfers -= reap(multi);
        if (transfers > 0 && running == 0)
            die("running is 0 before all are done");
        curl_multi_poll(multi, NULL, 0, 200, NULL);
    }
}

#define MANY 6

static void add_many(CURLM *multi, struct request *requests, void (*prepare)(struct request *))
{
    for (int i = 0; i < MANY; i++) {
        begin(&requests[i], curl_easy_init(), i % 2 ? "shut" : "fine");
        prepare(&requests[i]);
        curl_easy_setopt(requests[i].easy, CURLOPT_PRIVATE, &requests[i]);
        if (curl_multi_add_handle(multi, requests[i].easy) != CURLM_OK)
            die("curl_multi_add_handle");
    }
}

static void multi_many(void (*prepare)(struct request *))
{
    struct request requests[MANY];
    CURLM *multi = curl_multi_init();

    add_many(multi, requests, prepare);
    drive(multi, MANY);
    for (int i = 0; i < MANY; i++)
        curl_easy_cleanup(requests[i].easy);
    curl_multi_cleanup(multi);
}

/* Taken out of one multi before anything ran and put into another; cleaned up unread in a third. */
static void mode_moved(void)
{
    CURLM *first = curl_multi_init(), *second = curl_multi_init(), *third = curl_multi_init();
    struct request r, lost;
    int running;

    begin(&r, curl_easy_init(), "shut");
    post_read(&r, 0);
    curl_easy_setopt(r.easy, CURLOPT_PRIVATE, &r);
    curl_multi_add_handle(first, r.easy);
    curl_multi_remove_handle(first, r.easy);
    curl_multi_add_handle(second, r.easy);
    drive(second, 1);
    curl_easy_cleanup(r.easy);

    begin(&lost, curl_easy_init(), "fine");
    post_fields(&lost);
    curl_multi_add_handle(third, lost.easy);
    curl_multi_perform(third, &running);
    curl_easy_cleanup(lost.easy);
    curl_multi_cleanup(third);
    curl_multi_cleanup(second);
    curl_multi_cleanup(first);
    free(lost.body);
}

/* One real call, then five times added and removed before anything ran. */
static void mode_unrun(void)
{
    CURLM *multi = curl_multi_init();
    struct request r;

    begin(&r, curl_easy_init(), "fine");
    post_fields(&r);
    curl_easy_perform(r.easy);
    for (int i = 0; i < 5; i++) {
        curl_multi_add_handle(multi, r.easy);
        curl_multi_remove_handle(multi, r.easy);
    }
    curl_easy_cleanup(r.easy);
    curl_multi_cleanup(multi);
    free(r.body);
}

/* As many PHP programs do it: performed until nothing runs, removed, and info_read never asked. */
static void mode_unread(void)
{
    struct request requests[MANY];
    CURLM *multi = curl_multi_init();
    int running = 1;

    add_many(multi, requests, post_fields);
    while (running > 0) {
        if (curl_multi_perform(multi, &running) != CURLM_OK)
            die("curl_multi_perform");
        if (running > 0)
            curl_multi_poll(multi, NULL, 0, 200, NULL);
    }
    for (int i = 0; i < MANY; i++) {
        curl_multi_remove_handle(multi, requests[i].easy);
        finish(&requests[i], CURLE_OK);
        curl_easy_cleanup(requests[i].easy);
    }
    curl_multi_cleanup(multi);
}

/* One handle is removed unread; the messages of all others still come, in their order, once. */
static void mode_partly_read(void)
{
    struct request requests[MANY];
    CURLM *multi = curl_multi_init();
    int running = 1, queued = 0, left = MANY - 1;
    CURLMsg *message;

    add_many(multi, requests, post_fields);
    while (running > 0) {
        curl_multi_perform(multi, &running);
        if (running > 0)
            curl_multi_poll(multi, NULL, 0, 200, NULL);
    }
    curl_multi_remove_handle(multi, requests[0].easy);
    while ((message = curl_multi_info_read(multi, &queued))) {
        struct request *r;
        if (message->easy_handle == requests[0].easy || queued != --left)
            die("a wrong message");
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&r);
        finish(r, message->data.result);
    }
    free(requests[0].body);
    if (left != 0)
        die("messages were lost");
    for (int i = 0; i < MANY; i++)
        curl_easy_cleanup(requests[i].easy);
    curl_multi_cleanup(multi);
}

/* A thousand refused handles in one multi, under a low limit of descriptors. */
static void mode_crowd(void)
{
    enum { CROWD = 1000 };
    static struct request requests[CROWD];
    CURLM *multi = curl_multi_init();

    for (int i = 0; i < CROWD; i++) {
        begin(&requests[i], curl_easy_init(), "shut");
        post_fields(&requests[i]);
        curl_easy_setopt(requests[i].easy, CURLOPT_PRIVATE, &requests[i]);
        curl_multi_add_handle(multi, requests[i].easy);
    }
    drive(multi, CROWD);
    for (int i = 0; i < CROWD; i++)
        curl_easy_cleanup(requests[i].easy);
    curl_multi_cleanup(multi);
}

/* A program that closed its standard descriptors: what it writes there must not meet ours. */
static size_t write_to_stdout(char *data, size_t size, size_t count, void *sum)
{
    if (write(STDOUT_FILENO, data, size * count) >= 0)
        _exit(3);
    return count_bytes(data, size, count, sum);
}

static void mode_closed(void)
{
    struct request r;

    CURL *easy = curl_easy_init();

    begin(&r, easy, "fine"); /* libcurl's own descriptors are there from now on */
    post_fields(&r);
    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
    perform(&r);
    begin(&r, easy, "shut");
    post_fields(&r);
    curl_easy_setopt(r.easy, CURLOPT_WRITEFUNCTION, write_to_stdout);
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        close(fd);
    long status = 0;
    CURLcode code = curl_easy_perform(r.easy);
    curl_easy_getinfo(r.easy, CURLINFO_RESPONSE_CODE, &status);
    _exit(code == CURLE_OK && status == 503 ? 0 : 4);
}

/* --- curl_multi_socket_action with epoll
 * ----------------------------------------------------------- */

static int epoll = -1;
static long timer_ms = -1;

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *data, void *known)
{
    struct epoll_event event = {.data.fd = fd};

    (void)easy;
    if (what == CURL_POLL_REMOVE)
        return epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL) && 0;
    event.events = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);
    if (epoll_ctl(epoll, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) != 0 &&
        epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event) != 0)
        die("epoll_ctl");
    curl_multi_assign(data, fd, &epoll);
    return 0;
}

static int on_timer(CURLM *multi, long ms, void *data)
{
    (void)multi;
    (void)data;
    timer_ms = ms;
    return 0;
}

static void socket_many(void (*prepare)(struct request *))
{
    struct request requests[MANY];
    CURLM *multi = curl_multi_init();
    int running, left = MANY;

    epoll = epoll_create1(EPOLL_CLOEXEC);
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, multi);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);
    add_many(multi, requests, prepare);
    while (left > 0) {
        struct epoll_event events[16];
        int n =
            epoll_wait(epoll, events, 16, timer_ms >= 0 && timer_ms < 2000 ? (int)timer_ms : 2000);
        if (n == 0)
            curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running);
        for (int i = 0; i < n; i++)
            curl_multi_socket_action(multi, events[i].data.fd,
                                     (events[i].events & EPOLLIN ? CURL_CSELECT_IN : 0) |
                                         (events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0),
                                     &running);
        left -= reap(multi);
    }
    for (int i = 0; i < MANY; i++)
        curl_easy_cleanup(requests[i].easy);
    curl_multi_cleanup(multi);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void (*)(struct request *));
        void (*prepare)(struct request *);
        void (*whole)(void);
    } modes[] = {
        {"fields", three, post_fields, NULL},
        {"copy", three, prepare_copy, NULL},
        {"read", three, prepare_read, NULL},
        {"chunked", three, prepare_chunked, NULL},
        {"file", three, post_file, NULL},
        {"mime", three, prepare_mime, NULL},
        {"failonerror", three, prepare_failonerror, NULL},
        {"nobody", three, prepare_nobody, NULL},
        {"bound", three, prepare_bound, NULL},
        {"curlu", three, prepare_curlu, NULL},
        {"callbacks", three, prepare_callbacks, NULL},
        {"connect-only", three, prepare_connect_only, NULL},
        {"no-writedata", three, prepare_no_writedata, NULL},
        {"multi-fields", multi_many, post_fields, NULL},
        {"multi-read", multi_many, prepare_read, NULL},
        {"multi-file", multi_many, post_file, NULL},
        {"multi-chunked", multi_many, prepare_chunked, NULL},
        {"socket-fields", socket_many, post_fields, NULL},
        {"socket-read", socket_many, prepare_read, NULL},
        {"form", three, prepare_form, NULL},
        {"signed", three, prepare_signed, NULL},
        {"multi-h2", multi_many, prepare_h2, NULL},
        {"multi-h2-read", multi_many, prepare_h2_read, NULL},
        {"unread", NULL, NULL, mode_unread},
        {"partly-read", NULL, NULL, mode_partly_read},
        {"crowd", NULL, NULL, mode_crowd},
        {"closed", NULL, NULL, mode_closed},
        {"duplicate", NULL, NULL, mode_duplicate},
        {"threads", NULL, NULL, mode_threads},
        {"fork", NULL, NULL, mode_fork},
        {"nested", NULL, NULL, mode_nested},
        {"moved", NULL, NULL, mode_moved},
        {"unrun", NULL, NULL, mode_unrun},
    };

    if (argc < 3)
        die("usage: client MODE URL");
    url = argv[2];
    curl_global_init(CURL_GLOBAL_DEFAULT);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(modes[i].name, argv[1]) != 0)
            continue;
        if (modes[i].whole)
            modes[i].whole();
        else
            modes[i].run(modes[i].prepare);
        if (modes[i].prepare == prepare_callbacks)
            printf("callbacks %d %d %d -\n", opened, configured, closed);
        return 0;
    }
    die("no such mode");
}
