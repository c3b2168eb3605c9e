#include "easymap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* uthash ends the program when it runs out of memory, unless it is told to carry on. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

enum node_kind { NODE_EASY, NODE_MULTI, NODE_MIME };

/* What the hash holds: a key and whose it is. */
struct node {
    const void *key;
    enum node_kind kind;
    real_t real;
    void *what;
    UT_hash_handle hh;
};

#define SHARDS 16

static struct {
    pthread_mutex_t lock; /* guards `nodes`, for the length of one look-up */
    struct node *nodes;
} shards[SHARDS] = {[0 ... SHARDS - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};

static pthread_once_t atfork_once = PTHREAD_ONCE_INIT;

static void lock_all(void)
{
    for (unsigned i = 0; i < SHARDS; i++)
        pthread_mutex_lock(&shards[i].lock);
}

static void unlock_all(void)
{
    for (unsigned i = SHARDS; i > 0; i--)
        pthread_mutex_unlock(&shards[i - 1].lock);
}

static void register_atfork(void)
{
    pthread_atfork(lock_all, unlock_all, unlock_all);
}

static unsigned shard_of(const void *key)
{
    return (unsigned)(((uintptr_t)key >> 4 ^ (uintptr_t)key >> 12) % SHARDS);
}

static bool find_in_shard(const void *key, struct node *out)
{
    unsigned shard = shard_of(key);
    struct node *node = NULL;

    pthread_mutex_lock(&shards[shard].lock);
    HASH_FIND_PTR(shards[shard].nodes, &key, node);
    if (node)
        *out = *node;
    pthread_mutex_unlock(&shards[shard].lock);
    return node != NULL;
}

/* What this thread found last, absence included: one transfer asks a dozen times for the same few
 * handles, libcurl's internal ones among them. Good as long as nothing was added or dropped by
 * anyone: `changes` counts that, raised after the change (release) and read before the look-up
 * (acquire). A handle passes between threads by the application's own synchronisation, which
 * orders the count with it. Initial-exec: we are loaded at start, and a hook must not allocate. */
#define REMEMBERED 8

static atomic_uint changes = 1;
static __thread __attribute__((tls_model("initial-exec"))) struct {
    const void *key;
    unsigned changes;
    bool found;
    struct node node;
} remembered[REMEMBERED];

static bool find(const void *key, struct node *out)
{
    unsigned now = atomic_load_explicit(&changes, memory_order_acquire);
    unsigned slot = (unsigned)(((uintptr_t)key >> 4 ^ (uintptr_t)key >> 8) % REMEMBERED);

    if (remembered[slot].key != key || remembered[slot].changes != now) {
        remembered[slot].found = find_in_shard(key, &remembered[slot].node);
        remembered[slot].key = key;
        remembered[slot].changes = now;
    }
    if (remembered[slot].found)
        *out = remembered[slot].node;
    return remembered[slot].found;
}

static void tell_change(void)
{
    atomic_fetch_add_explicit(&changes, 1, memory_order_release);
}

static void *find_kind(const void *key, enum node_kind kind)
{
    struct node node;

    return key && find(key, &node) && node.kind == kind ? node.what : NULL;
}

/* An older node of the same address belongs to a handle that was freed past us: replaced. */
static bool add(const void *key, enum node_kind kind, real_t real, void *what)
{
    unsigned shard = shard_of(key);
    struct node *node = calloc(1, sizeof *node), *old = NULL;

    pthread_once(&atfork_once, register_atfork);
    if (!node)
        return false;
    *node = (struct node){.key = key, .kind = kind, .real = real, .what = what};
    pthread_mutex_lock(&shards[shard].lock);
    HASH_FIND_PTR(shards[shard].nodes, &key, old);
    if (old)
        HASH_DEL(shards[shard].nodes, old);
    HASH_ADD_PTR(shards[shard].nodes, key, node);
    bool added = node->hh.tbl != NULL;
    pthread_mutex_unlock(&shards[shard].lock);
    tell_change();
    free(old);
    if (!added)
        free(node);
    return added;
}

/* Only what is meant: by now the address may be another handle's. */
static void drop(const void *key, const void *what)
{
    unsigned shard = shard_of(key);
    struct node *node = NULL;

    pthread_mutex_lock(&shards[shard].lock);
    HASH_FIND_PTR(shards[shard].nodes, &key, node);
    if (node && node->what != what)
        node = NULL;
    if (node)
        HASH_DEL(shards[shard].nodes, node);
    pthread_mutex_unlock(&shards[shard].lock);
    tell_change();
    free(node);
}

real_t easymap_owner(const void *handle)
{
    struct node node;

    return find(handle, &node) ? node.real : NULL;
}

struct easy *easymap_easy(CURL *handle)
{
    return find_kind(handle, NODE_EASY);
}

struct multi *easymap_multi(CURLM *handle)
{
    return find_kind(handle, NODE_MULTI);
}

struct mime_node *easymap_mime(const void *key)
{
    return find_kind(key, NODE_MIME);
}

struct easy *easymap_add_easy(CURL *handle, real_t real)
{
    struct easy *easy = calloc(1, sizeof *easy);

    if (!easy)
        return NULL;
    easy->handle = handle;
    easy->real = real;
    if (!add(handle, NODE_EASY, real, easy)) {
        free(easy);
        return NULL;
    }
    return easy;
}

struct multi *easymap_add_multi(CURLM *handle, real_t real)
{
    struct multi *multi = calloc(1, sizeof *multi);

    if (!multi)
        return NULL;
    multi->handle = handle;
    multi->real = real;
    if (!add(handle, NODE_MULTI, real, multi)) {
        free(multi);
        return NULL;
    }
    return multi;
}

struct mime_node *easymap_add_mime(const void *key, struct mime_node *root, struct easy *easy)
{
    struct mime_node *node = calloc(1, sizeof *node);

    if (!node)
        return NULL;
    node->key = key;
    node->root = root ? root : node;
    node->easy = easy;
    if (!add(key, NODE_MIME, easy->real, node)) {
        free(node);
        return NULL;
    }
    node->next = easy->mimes;
    easy->mimes = node;
    return node;
}

/* Forgets the nodes of `root`, or all of the handle when it is NULL. */
static void remove_mimes(struct easy *easy, const struct mime_node *root)
{
    struct mime_node **link = &easy->mimes;

    while (*link) {
        struct mime_node *node = *link;
        if (root && node->root != root) {
            link = &node->next;
            continue;
        }
        *link = node->next;
        drop(node->key, node);
        free(node);
    }
}

void easymap_remove_mime(const void *mime)
{
    struct mime_node *node = easymap_mime(mime);

    if (node)
        remove_mimes(node->easy, node->root);
}

void easymap_remove_easy(struct easy *easy)
{
    drop(easy->handle, easy);
    remove_mimes(easy, NULL);
    curl_options_clear(&easy->options);
    free(easy->answered_url);
    free(easy);
}

void easymap_remove_multi(struct multi *multi)
{
    drop(multi->handle, multi);
    free(multi);
}
