#include "table/slot.h"

_Static_assert(COOLDOWN_WORDS == sizeof((struct slot *)0)->cooldown / sizeof(uint64_t),
               "as laid out");

static void read_words(const struct slot *s, uint64_t words[COOLDOWN_WORDS])
{
    for (unsigned i = 0; i < COOLDOWN_WORDS; i++)
        words[i] = atomic_load_explicit(&s->cooldown[i], memory_order_relaxed);
}

static bool swap(_Atomic uint64_t *field, uint64_t found, uint64_t next)
{
    return found == next || atomic_compare_exchange_strong_explicit(
                                field, &found, next, memory_order_relaxed, memory_order_relaxed);
}

void slot_cooldown_set(struct slot *s, uint64_t credential, uint32_t ticks, uint32_t now)
{
    uint64_t words[COOLDOWN_WORDS], end;
    struct cooldown_place place;

    if (!s)
        return;
    do
        end = atomic_load_explicit(&s->parked_until, memory_order_relaxed);
    while (!swap(&s->parked_until, end, cooldown_end((uint32_t)end, ticks, now)));
    do {
        read_words(s, words);
        place = cooldown_set(words, credential, ticks, now);
    } while (!swap(&s->cooldown[place.word], words[place.word], place.next));
}

/* parked_until stays: with it gone, a word that is set just now would not be looked at. */
void slot_cooldown_clear(struct slot *s)
{
    for (unsigned i = 0; s && i < COOLDOWN_WORDS; i++)
        atomic_store_explicit(&s->cooldown[i], 0, memory_order_relaxed);
}

unsigned slot_cooldown_count(const struct slot *s, uint32_t now, uint32_t *longest)
{
    uint64_t words[COOLDOWN_WORDS] = {0};

    if (s)
        read_words(s, words);
    return cooldown_count(words, now, longest);
}

uint32_t slot_cooldown_left(const struct slot *s, uint64_t credential, uint32_t now)
{
    uint64_t words[COOLDOWN_WORDS];

    if (!slot_cooldown_may_be(s, now))
        return 0;
    read_words(s, words);
    return cooldown_left(words, credential, now);
}
