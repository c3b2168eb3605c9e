/*
 * loader_client.c - what programs do with the loader. Prints what came of it; never crashes where
 * the library under it does no harm.
 *
 *   ffi LIBRARY...        dlopen + dlsym of each; handles of all at once
 *   extension OBJECT...   dlopen of each, twice through all
 *   unload OBJECT         an extension that made calls goes away when it is closed
 *   threads OBJECT        the first call from eight threads at once
 *   open FILE MODE        dlopen, then which who() the object calls
 *   errors LIBRARY        what dlerror() and errno say afterwards
 *   missing               entries where no libcurl is
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MANY 8

struct functions {
    void *(*init)(void);
    int (*setopt)(void *, int, ...);
    int (*perform)(void *);
    void (*cleanup)(void *);
    const char *(*version)(void);
};

static void *open_or_exit(const char *file, int mode)
{
    void *object = dlopen(file, mode);

    if (!object) {
        printf("dlopen: %s\n", dlerror());
        exit(1);
    }
    return object;
}

static void *function(void *object, const char *name)
{
    dlerror();
    void *found = dlsym(object, name);
    const char *error = dlerror();

    if (!found || error)
        printf("dlsym %s: %p, dlerror: %s\n", name, found, error ? error : "(none)");
    return found;
}

static const char *home_of(const void *address)
{
    Dl_info info;

    if (!dladdr(address, &info))
        return "nowhere";
    const char *slash = strrchr(info.dli_fname, '/');
    return slash ? slash + 1 : info.dli_fname;
}

static int ffi(int count, char **libraries)
{
    struct functions f[MANY];
    void *handle[MANY];

    for (int i = 0; i < count; i++) {
        void *object = open_or_exit(libraries[i], RTLD_NOW | RTLD_LOCAL);
        f[i] = (struct functions){
            function(object, "curl_easy_init"), function(object, "curl_easy_setopt"),
            function(object, "curl_easy_perform"), function(object, "curl_easy_cleanup"),
            function(object, "curl_version")};
    }
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < count; i++)
            handle[i] = f[i].init();
        for (int i = 0; i < count; i++) {
            if (!handle[i] || *(const char **)handle[i] != f[i].version())
                printf("foreign ");
            else
                printf("own ");
            int set = f[i].setopt(handle[i], 1, (void *)0);
            printf("%d %d %s\n", set, f[i].perform(handle[i]), home_of((void *)f[i].perform));
        }
        for (int i = 0; i < count; i++)
            f[i].cleanup(handle[i]);
    }
    return 0;
}

static int extension(int count, char **files)
{
    void *object[MANY];

    for (int i = 0; i < count; i++)
        object[i] = open_or_exit(files[i], RTLD_NOW | RTLD_LOCAL);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < count; i++) {
            int (*run)(void) = (int (*)(void))function(object[i], "extension_run");
            const char *(*library)(void) =
                (const char *(*)(void))function(object[i], "extension_library");
            printf("%s %d\n", library(), run());
        }
    return 0;
}

static int unload(const char *file)
{
    void *object = open_or_exit(file, RTLD_NOW | RTLD_LOCAL);
    int (*run)(void) = (int (*)(void))function(object, "extension_run");

    printf("%d\n", run());
    dlclose(object);
    printf("%s\n", dlopen(file, RTLD_LAZY | RTLD_NOLOAD) ? "stays" : "gone");
    return 0;
}

static pthread_barrier_t together;

static void *run_once(void *run)
{
    pthread_barrier_wait(&together);
    return (void *)(long)((int (*)(void))run)();
}

static int threads(const char *file)
{
    void *object = open_or_exit(file, RTLD_NOW | RTLD_LOCAL), *run, *result;
    pthread_t thread[MANY];

    run = function(object, "extension_run");
    pthread_barrier_init(&together, NULL, MANY);
    for (int i = 0; i < MANY; i++)
        pthread_create(&thread[i], NULL, run_once, run);
    for (int i = 0; i < MANY; i++) {
        pthread_join(thread[i], &result);
        printf("%ld", (long)result);
    }
    puts("");
    return 0;
}

/* The one that an object finds unless it is bound deeply. */
const char *who(void)
{
    return "program's";
}

static int open_file(const char *file, const char *mode)
{
    errno = ELOOP;
    void *object = dlopen(file, RTLD_NOW | (strcmp(mode, "deep") == 0 ? RTLD_DEEPBIND : 0));
    int saved = errno;

    if (!object) {
        printf("%s %d\n", dlerror(), saved);
        return 1;
    }
    const char *(*ask)(void) = (const char *(*)(void))function(object, "ask");
    printf("%s %d\n", ask(), saved);
    return 0;
}

static int errors(const char *library)
{
    void *object = open_or_exit(library, RTLD_NOW | RTLD_LOCAL);

    function(object, "curl_easy_init");    /* prints when an error is left behind */
    function(object, "curl_slist_append"); /* one that is not hooked */
    errno = ELOOP;
    void *(*init)(void) = (void *(*)(void))dlsym(object, "curl_easy_init");
    printf("%d", errno == ELOOP);
    init();
    printf(" %s", dlerror() ? "left behind" : "none");
    void *nothing = dlsym(object, "curl_no_such_function");
    const char *error = dlerror();
    printf(" %d %d", nothing == NULL, error && strstr(error, "curl_no_such_function") != NULL);
    nothing = dlsym(object, "no_such_function");
    error = dlerror();
    printf(" %d %d\n", nothing == NULL, error && strstr(error, "no_such_function") != NULL);
    return 0;
}

static int missing(void)
{
    void *(*init)(void) = (void *(*)(void))dlsym(RTLD_DEFAULT, "curl_easy_init");
    int (*perform)(void *) = (int (*)(void *))dlsym(RTLD_DEFAULT, "curl_easy_perform");
    int (*setopt)(void *, int, ...) =
        (int (*)(void *, int, ...))dlsym(RTLD_DEFAULT, "curl_easy_setopt");
    int (*add)(void *, void *) =
        (int (*)(void *, void *))dlsym(RTLD_DEFAULT, "curl_multi_add_handle");
    void (*cleanup)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "curl_easy_cleanup");
    int handle = 0;

    if (!init) {
        puts("none");
        return 0;
    }
    printf("%p %d %d %d\n", init(), perform(&handle), setopt(&handle, 1, (void *)0),
           add(&handle, &handle));
    cleanup(&handle);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    if (strcmp(what, "ffi") == 0 && argc - 2 <= MANY)
        return ffi(argc - 2, argv + 2);
    if (strcmp(what, "extension") == 0 && argc - 2 <= MANY)
        return extension(argc - 2, argv + 2);
    if (strcmp(what, "unload") == 0)
        return unload(argv[2]);
    if (strcmp(what, "threads") == 0)
        return threads(argv[2]);
    if (strcmp(what, "open") == 0)
        return open_file(argv[2], argv[3]);
    if (strcmp(what, "errors") == 0)
        return errors(argv[2]);
    if (strcmp(what, "missing") == 0)
        return missing();
    return 2;
}
