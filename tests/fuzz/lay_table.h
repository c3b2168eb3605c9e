/* A table file of fuzz_table's as anybody may have written it: laid by records of the input. */
#ifndef BREAKER_TESTS_FUZZ_LAY_TABLE_H
#define BREAKER_TESTS_FUZZ_LAY_TABLE_H

#include "cut.h"

#include "base/hash.h"
#include "table/slot.h"
#include "table/table.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct span keys[] = {
    SPAN_LIT("api.openai.com"), SPAN_LIT("api.openai.com/gpt-4o"), SPAN_LIT("localhost:8080/-"),
    SPAN_LIT("a.example/0123456789012345678901234567890123456789012345678901234567890123456789"
             "012345678901234567890123456789012345678901234567890123456789012345678901234567890"
             "1234567890123456789012345678901234567890123456789"), /* longer than a slot holds */
};
enum { KEYS = sizeof keys / sizeof *keys };

static char directory[] = "/tmp/breaker-fuzz-XXXXXX", path[64];
static unsigned char *image; /* the file, mapped */
static unsigned char before[TABLE_FILE_SIZE];

static inline unsigned take(struct span *input)
{
    unsigned byte = input->len > 0 ? (unsigned char)input->ptr[0] : 0;

    *input = span_skip(*input, 1);
    return byte;
}

static inline struct span take_some(struct span *input, size_t len)
{
    struct span some = span_of(input->ptr, len < input->len ? len : input->len);

    *input = span_skip(*input, len);
    return some;
}

static inline void remove_directory(void)
{
    unlink(path);
    rmdir(directory);
}

static inline void set_up(void)
{
    MUST(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/table", directory);
    atexit(remove_directory);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    MUST(fd >= 0 && fchmod(fd, 0600) == 0 && posix_fallocate(fd, 0, TABLE_FILE_SIZE) == 0);
    image = mmap(NULL, TABLE_FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    MUST(image != MAP_FAILED && close(fd) == 0);
    clearenv();
    setenv("HOME", directory, 1);
    setenv("BREAKER_TABLE", path, 1);
    setenv("BREAKER_FAILURE_RATE", "0.5", 1);
}

static inline void write_header(void)
{
    const struct table_header header = {.magic = TABLE_MAGIC,
                                        .layout = TABLE_LAYOUT,
                                        .capacity = TABLE_CAPACITY,
                                        .fingerprint = table_fingerprint(),
                                        .hash_seed = 42};

    memset(image, 0, TABLE_FILE_SIZE);
    memcpy(image, &header, sizeof header);
}

static inline bool is_header_good(void)
{
    struct table_header header;

    memcpy(&header, image, sizeof header);
    return header.magic == TABLE_MAGIC && header.layout == TABLE_LAYOUT &&
           header.capacity == TABLE_CAPACITY && header.fingerprint == table_fingerprint();
}

static inline uint64_t identity_of(unsigned key)
{
    struct table_header header;
    struct table alike;

    memcpy(&header, image, sizeof header);
    alike = (struct table){.seed = header.hash_seed};
    return table_identity(&alike, keys[key]);
}

/* Where a walk stands (layout.h, TABLE_PROBES). */
static inline unsigned index_of(uint64_t identity, unsigned step)
{
    return (unsigned)((identity + step * (identity >> 32 | 1)) % TABLE_CAPACITY);
}

static inline unsigned char *slot_bytes(unsigned index)
{
    return image + TABLE_HEADER_SIZE + (size_t)index * TABLE_SLOT_SIZE;
}

static inline void lay_bytes(unsigned char *to, size_t room, struct span bytes)
{
    if (bytes.len > 0)
        memcpy(to, bytes.ptr, bytes.len < room ? bytes.len : room);
}

/* A printable key that checks out, as somebody may have written it who knows how. */
static inline void lay_key_text(struct slot *s, uint64_t identity, struct span text)
{
    uint32_t sum = (uint32_t)hash64(text.ptr, text.len, identity);

    s->identity = identity;
    s->key_len = (uint16_t)text.len;
    s->key_checksum = sum ? sum : 1;
    lay_bytes((unsigned char *)s->key_text, sizeof s->key_text, text);
}

/* One record. 0: a key, the step of its walk, where in that slot, how much, and the bytes; the slot
 * is the key's own. 1: the bytes are its text. 2: a slot by its number.
 * 3: in the header. 4: all slots but every n-th are somebody's. 5: the walk of a key is somebody's.
 * 6: all bytes of a slot. */
static inline void lay(unsigned kind, struct span *input)
{
    unsigned which = take(input), key = which % KEYS, step = which / KEYS % TABLE_PROBES;
    unsigned index =
        kind == 2 ? (which * 4 + take(input)) % TABLE_CAPACITY : index_of(identity_of(key), step);
    uint64_t identity = kind == 0 ? identity_of(key) : (which + 1) * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = take(input) * 2 % TABLE_SLOT_SIZE;
    struct span bytes = take_some(input, take(input) % 64);

    if (kind == 3) {
        lay_bytes(image + at % sizeof(struct table_header), 64, bytes);
    } else if (kind == 4) {
        for (unsigned i = 0; i < TABLE_CAPACITY; i++)
            if (which == 0 || i % (which + 1) != 0)
                memset(slot_bytes(i), (int)(at / 2 + i % 7 + 1), sizeof identity);
    } else if (kind == 5) {
        for (unsigned i = 0; i < TABLE_PROBES; i++)
            memcpy(slot_bytes(index_of(identity_of(key), i)), &identity, sizeof identity);
    } else if (kind == 6) {
        memset(slot_bytes(index), (int)(at / 2), TABLE_SLOT_SIZE);
    } else if (kind == 1) {
        lay_key_text((struct slot *)slot_bytes(index), which & 128 ? identity : identity_of(key),
                     bytes);
    } else {
        if (kind == 0)
            memcpy(slot_bytes(index), &identity, sizeof identity);
        lay_bytes(slot_bytes(index) + at, TABLE_SLOT_SIZE - at, bytes);
    }
}

static inline void lay_table(struct span *input)
{
    write_header();
    while (input->len > 0) {
        unsigned kind = take(input) % 8;
        if (kind == 7)
            break;
        lay(kind, input);
    }
}

/* Of the whole file but one slot (SIZE_MAX: none) and the header's counters. */
static inline void check_untouched(size_t but)
{
    const size_t counters = offsetof(struct table_header, table_full);
    size_t first = but == SIZE_MAX ? TABLE_FILE_SIZE : TABLE_HEADER_SIZE + but * TABLE_SLOT_SIZE;
    size_t behind = but == SIZE_MAX ? TABLE_FILE_SIZE : first + TABLE_SLOT_SIZE;

    MUST(memcmp(before, image, counters) == 0);
    MUST(memcmp(before + TABLE_HEADER_SIZE, image + TABLE_HEADER_SIZE, first - TABLE_HEADER_SIZE) ==
         0);
    MUST(memcmp(before + behind, image + behind, TABLE_FILE_SIZE - behind) == 0);
}

#endif
