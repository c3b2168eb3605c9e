#include "easymap.h"

#include "curl_call.h"

#include <pthread.h>
#include <stdlib.h>

/* uthash ends the program when it runs out of memory, unless it is told to carry on. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* What the hash holds. */
struct node {
    struct easymap_node is;
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

void easymap_prepare(void)
{
    pthread_once(&atfork_once, register_atfork);
}

static unsigned shard_of(const void *key)
{
    return (unsigned)(((uintptr_t)key >> 4 ^ (uintptr_t)key >> 12) % SHARDS);
}

static struct node *find_in(unsigned shard, const void *key)
{
    struct node *node = NULL;

    HASH_FIND_PTR(shards[shard].nodes, &key, node);
    return node;
}

atomic_uint easymap_changes = 1;
__thread struct easymap_memory easymap_memory[EASYMAP_REMEMBERED]
    __attribute__((tls_model("initial-exec")));

const struct easymap_node *easymap_search(const void *key, struct easymap_memory *memory,
                                          unsigned changes)
{
    unsigned shard = shard_of(key);

    pthread_mutex_lock(&shards[shard].lock);
    const struct node *found = find_in(shard, key);
    memory->node = found ? found->is : (struct easymap_node){.key = key};
    pthread_mutex_unlock(&shards[shard].lock);
    memory->changes = changes;
    return memory->node.what ? &memory->node : NULL;
}

static void tell_change(void)
{
    atomic_fetch_add_explicit(&easymap_changes, 1, memory_order_release);
}

/* An older node of the same address belongs to a handle that was freed past us: replaced. */
static bool add(const void *key, enum easymap_kind kind, real_t real, void *what)
{
    unsigned shard = shard_of(key);
    struct node *node = calloc(1, sizeof *node);

    easymap_prepare();
    if (!node)
        return false;
    node->is = (struct easymap_node){.key = key, .kind = kind, .real = real, .what = what};
    pthread_mutex_lock(&shards[shard].lock);
    struct node *old = find_in(shard, key);
    if (old)
        HASH_DEL(shards[shard].nodes, old);
    HASH_ADD_PTR(shards[shard].nodes, is.key, node);
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

    pthread_mutex_lock(&shards[shard].lock);
    struct node *node = find_in(shard, key);
    if (node && node->is.what != what)
        node = NULL;
    if (node)
        HASH_DEL(shards[shard].nodes, node);
    pthread_mutex_unlock(&shards[shard].lock);
    tell_change();
    free(node);
}

struct easy *easymap_add_easy(CURL *handle, real_t real)
{
    struct easy *easy = calloc(1, sizeof *easy);

    if (!easy)
        return NULL;
    easy->handle = handle;
    easy->real = real;
    easy->active = &easy->call;
    shim_credential_later(&easy->call, curl_credential_tell, easy);
    if (!add(handle, EASYMAP_EASY, real, easy)) {
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
    if (!add(handle, EASYMAP_MULTI, real, multi)) {
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
    if (!add(key, EASYMAP_MIME, easy->real, node)) {
        free(node);
        return NULL;
    }
    node->next = easy->mimes;
    easy->mimes = node;
    return node;
}

void easymap_drop_calls(void)
{
    for (unsigned i = 0; i < SHARDS; i++)
        for (const struct node *node = shards[i].nodes; node; node = node->hh.next)
            if (node->is.kind == EASYMAP_EASY)
                shim_drop(((struct easy *)node->is.what)->active);
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
    free(easy->url);
    free(easy);
}

void easymap_remove_multi(struct multi *multi)
{
    drop(multi->handle, multi);
    free(multi);
}
