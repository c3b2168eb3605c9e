#include "core/cooldown.h"
#include "core/breaker_rules.h"

static uint64_t credential_of(uint64_t word)
{
    return word >> BREAKER_TIME_BITS;
}

static uint32_t deadline_of(uint64_t word)
{
    return (uint32_t)word & BREAKER_TIME_MASK;
}

/* 0: the word is free. */
static uint32_t left_of(uint64_t word, uint32_t now)
{
    if (credential_of(word) == 0 || !breaker_is_pending(deadline_of(word), now))
        return 0;
    return breaker_ticks_until(deadline_of(word), now);
}

uint64_t cooldown_credential(uint64_t hash)
{
    uint64_t credential = hash >> BREAKER_TIME_BITS;

    if (credential == COOLDOWN_ALL)
        return COOLDOWN_ALL - 1;
    return credential > 0 ? credential : 1;
}

static uint32_t length_of(uint32_t ticks)
{
    if (ticks < 1)
        return 1;
    return ticks > BREAKER_HORIZON_TICKS ? BREAKER_HORIZON_TICKS : ticks;
}

struct cooldown_place cooldown_set(const uint64_t words[COOLDOWN_WORDS], uint64_t credential,
                                   uint32_t ticks, uint32_t now)
{
    unsigned place = 0;

    now &= BREAKER_TIME_MASK;
    ticks = length_of(ticks);
    for (unsigned i = 0; i < COOLDOWN_WORDS; i++) {
        uint32_t left = left_of(words[i], now);
        if (credential_of(words[i]) == credential) {
            if (left >= ticks)
                return (struct cooldown_place){i, words[i]};
            place = i;
            break;
        }
        if (left < left_of(words[place], now))
            place = i;
    }
    return (struct cooldown_place){place, credential << BREAKER_TIME_BITS |
                                              ((now + ticks) & BREAKER_TIME_MASK)};
}

uint32_t cooldown_left(const uint64_t words[COOLDOWN_WORDS], uint64_t credential, uint32_t now)
{
    uint32_t longest = 0;

    now &= BREAKER_TIME_MASK;
    for (unsigned i = 0; i < COOLDOWN_WORDS; i++) {
        uint64_t of = credential_of(words[i]);
        uint32_t left = of == credential || of == COOLDOWN_ALL ? left_of(words[i], now) : 0;
        if (left > longest)
            longest = left;
    }
    return longest;
}

unsigned cooldown_count(const uint64_t words[COOLDOWN_WORDS], uint32_t now, uint32_t *longest)
{
    unsigned count = 0;

    now &= BREAKER_TIME_MASK;
    *longest = 0;
    for (unsigned i = 0; i < COOLDOWN_WORDS; i++) {
        uint32_t left = left_of(words[i], now);
        count += left > 0;
        if (left > *longest)
            *longest = left;
    }
    return count;
}

bool cooldown_is_over(uint32_t end, uint32_t now)
{
    return end == 0 || !breaker_is_pending(end & BREAKER_TIME_MASK, now & BREAKER_TIME_MASK);
}

uint32_t cooldown_end(uint32_t end, uint32_t ticks, uint32_t now)
{
    uint32_t deadline = (now + length_of(ticks)) & BREAKER_TIME_MASK;

    if (!cooldown_is_over(end, now) && breaker_ticks_until(end, now) >= length_of(ticks))
        return end;
    return deadline > 0 ? deadline : 1;
}
