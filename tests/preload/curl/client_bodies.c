/* client_bodies.c - the ways of giving a body. */
#include "client.h"

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

void post_fields(struct request *r)
{
    curl_easy_setopt(r->easy, CURLOPT_POSTFIELDS, r->body);
}

void post_read(struct request *r, int chunked)
{
    curl_easy_setopt(r->easy, CURLOPT_POST, 1L);
    curl_easy_setopt(r->easy, CURLOPT_READFUNCTION, read_body);
    curl_easy_setopt(r->easy, CURLOPT_READDATA, r);
    curl_easy_setopt(r->easy, CURLOPT_POSTFIELDSIZE_LARGE,
                     chunked ? (curl_off_t)-1 : (curl_off_t)strlen(r->body));
}

void post_file(struct request *r)
{
    r->file = tmpfile();
    if (!r->file || fputs(r->body, r->file) < 0 || fseek(r->file, 0, SEEK_SET) != 0)
        die("tmpfile");
    curl_easy_setopt(r->easy, CURLOPT_POST, 1L);
    curl_easy_setopt(r->easy, CURLOPT_READDATA, r->file);
    curl_easy_setopt(r->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(r->body));
}

static void prepare_copy(struct request *r)
{
    curl_easy_setopt(r->easy, CURLOPT_POSTFIELDSIZE, (long)strlen(r->body));
    curl_easy_setopt(r->easy, CURLOPT_COPYPOSTFIELDS, r->body);
    memset(r->body, 'x', strlen(r->body)); /* libcurl has its own */
}

void prepare_read(struct request *r)
{
    post_read(r, 0);
}

void prepare_chunked(struct request *r)
{
    post_read(r, 1);
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

/* The model is no text of the form's own. */
static void prepare_form_buffer(struct request *r)
{
    struct curl_httppost *form = NULL, *last = NULL;

    curl_formadd(&form, &last, CURLFORM_COPYNAME, "model", CURLFORM_BUFFER, "model.txt",
                 CURLFORM_BUFFERPTR, r->model, CURLFORM_BUFFERLENGTH, (long)strlen(r->model),
                 CURLFORM_END);
    curl_easy_setopt(r->easy, CURLOPT_HTTPPOST, form);
}

static void prepare_form_without(struct request *r)
{
    struct curl_httppost *form = NULL, *last = NULL;

    curl_formadd(&form, &last, CURLFORM_COPYNAME, "language", CURLFORM_COPYCONTENTS, "en",
                 CURLFORM_END);
    curl_easy_setopt(r->easy, CURLOPT_HTTPPOST, form);
}

/* A part that was the model, and is a form of its own now. */
static void prepare_mime_nested(struct request *r)
{
    curl_mime *mime = r->mime = curl_mime_init(r->easy), *inner = curl_mime_init(r->easy);
    curl_mimepart *part = curl_mime_addpart(mime), *leaf = curl_mime_addpart(inner);

    curl_mime_name(leaf, "leaf");
    curl_mime_data(leaf, "text", CURL_ZERO_TERMINATED);
    curl_mime_name(part, "model");
    curl_mime_data(part, r->model, CURL_ZERO_TERMINATED);
    curl_mime_subparts(part, inner);
    curl_easy_setopt(r->easy, CURLOPT_MIMEPOST, mime);
}

const struct mode body_modes[] = {
    {"form-buffer", three, prepare_form_buffer, NULL},
    {"form-without", three, prepare_form_without, NULL},
    {"mime-nested", three, prepare_mime_nested, NULL},
    {"fields", three, post_fields, NULL},
    {"copy", three, prepare_copy, NULL},
    {"read", three, prepare_read, NULL},
    {"chunked", three, prepare_chunked, NULL},
    {"file", three, post_file, NULL},
    {"mime", three, prepare_mime, NULL},
    {"form", three, prepare_form, NULL},
    {.name = NULL},
};
