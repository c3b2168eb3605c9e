/*
 * fake_curl.c - a libcurl that does nothing but tell whose handles it is given. Built several times
 * with another TAG, soname and version node each.
 *
 * As the real one, it calls its own public functions through the PLT inside perform, where every
 * preload can take them.
 */
#include <stddef.h>
#include <stdlib.h>

#define OWN     0
#define FOREIGN 43
#define LOST    44

struct handle {
    const char *tag;
    int options;
};

static const char own_tag[] = TAG;

static int check(const struct handle *handle)
{
    return handle && handle->tag == own_tag ? OWN : FOREIGN;
}

/* Uses libc, so that the object has a table of versions, as every real one has. */
const char *curl_version(void)
{
    return getenv("FAKE_CURL_LIES") ? NULL : own_tag;
}

static struct handle handles[64], many;
static int used;

struct handle *curl_easy_init(void)
{
    int index = __atomic_fetch_add(&used, 1, __ATOMIC_RELAXED);
    struct handle *handle = &handles[index % 64];

    handle->tag = own_tag;
    return handle;
}

int curl_easy_setopt(struct handle *handle, int option, ...)
{
    (void)option;
    if (check(handle) == OWN)
        handle->options++;
    return check(handle);
}

int curl_easy_getinfo(struct handle *handle, int info, ...)
{
    (void)info;
    return check(handle);
}

int curl_multi_add_handle(struct handle *multi, struct handle *handle)
{
    return check(multi) == OWN ? check(handle) : FOREIGN;
}

int curl_multi_remove_handle(struct handle *multi, struct handle *handle)
{
    return check(multi) == OWN ? check(handle) : FOREIGN;
}

/* Also with a handle that no hook has seen. */
int curl_easy_perform(struct handle *handle)
{
    struct handle inner = {.tag = own_tag};
    int before = inner.options;

    many.tag = own_tag;
    if (check(handle) != OWN)
        return FOREIGN;
    if (curl_easy_setopt(&inner, 1, (void *)0) != OWN || inner.options != before + 1)
        return LOST;
    if (curl_multi_add_handle(&many, handle) != OWN)
        return LOST;
    return curl_multi_remove_handle(&many, handle) == OWN ? OWN : LOST;
}

/* Not hooked by anybody. */
void *curl_slist_append(void *list, const char *text)
{
    (void)text;
    return list;
}

void curl_easy_cleanup(struct handle *handle)
{
    (void)handle;
}
