/*
 * extension.c - an extension of some language, linked to a libcurl: its handles must come from that
 * one. extension_run() gives 0 when they do.
 */
#include <stddef.h>

const char *curl_version(void);
void *curl_easy_init(void);
int curl_easy_setopt(void *handle, int option, ...);
int curl_easy_perform(void *handle);
void curl_easy_cleanup(void *handle);

const char *extension_library(void)
{
    return curl_version();
}

int extension_run(void)
{
    void *handle = curl_easy_init();

    if (!handle)
        return 1;
    if (*(const char **)handle != curl_version())
        return 2;
    if (curl_easy_setopt(handle, 1, (void *)0) != 0)
        return 3;
    int result = curl_easy_perform(handle);
    curl_easy_cleanup(handle);
    return result;
}
