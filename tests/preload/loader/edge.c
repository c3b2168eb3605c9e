/*
 * edge.c - the corners of a process: calls before every preload's constructor, in a child of vfork,
 * and the pseudo-handles. Without a MODE it is built as a library (EARLY), with a constructor.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int refused_connect(void)
{
    struct sockaddr_in nowhere = {.sin_family = AF_INET};

    return connect(-1, (struct sockaddr *)&nowhere, sizeof nowhere) == -1 ? errno : 0;
}

#ifdef EARLY

void *curl_easy_init(void) __attribute__((weak));

char early_story[128];

/* The constructors of libraries that a program needs run before those of preloads. */
static __attribute__((constructor)) void before_everybody(void)
{
    int error = refused_connect();
    void *self = dlopen(NULL, RTLD_LAZY | RTLD_DEEPBIND);
    void *found = dlsym(RTLD_DEFAULT, "getpid");
    void *handle = curl_easy_init ? curl_easy_init() : NULL;

    snprintf(early_story, sizeof early_story, "%d %d %d %d", error == EBADF, self != NULL,
             found == (void *)getpid, handle == NULL);
}

#else

static const char *home_of(const void *address)
{
    Dl_info info;

    if (!address || !dladdr(address, &info))
        return "nowhere";
    const char *slash = strrchr(info.dli_fname, '/');
    return slash ? slash + 1 : info.dli_fname;
}

static int in_vfork_child(void)
{
    pid_t child = vfork();

    if (child == 0)
        _exit(refused_connect() == EBADF ? 7 : 1);
    int status = 0;
    waitpid(child, &status, 0);
    printf("%d %d\n", WEXITSTATUS(status), refused_connect() == EBADF);
    return 0;
}

static int count(const char *name)
{
    int *counter = dlsym(RTLD_DEFAULT, name);

    return counter ? *counter : -1;
}

static int with_neighbour(void)
{
    refused_connect();
    dlopen(NULL, RTLD_LAZY);
    void *next = dlsym(RTLD_NEXT, "puts");
    printf("%d %d %d %s\n", count("neighbour_connects"), count("neighbour_opens"),
           count("neighbour_lookups") > 0, home_of(next));
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    if (strcmp(what, "vfork") == 0)
        return in_vfork_child();
    if (strcmp(what, "neighbour") == 0)
        return with_neighbour();
    if (strcmp(what, "next") == 0) { /* what a program's RTLD_NEXT and RTLD_DEFAULT are */
        printf("%s %s\n", home_of(dlsym(RTLD_NEXT, "connect")),
               home_of(dlsym(RTLD_DEFAULT, "connect")));
        return 0;
    }
    if (strcmp(what, "early") == 0) {
        puts(dlsym(RTLD_DEFAULT, "early_story"));
        return 0;
    }
    return 2;
}

#endif
