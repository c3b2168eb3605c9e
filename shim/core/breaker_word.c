#include "core/breaker_word.h"

struct breaker_view breaker_decode(uint64_t word)
{
    return breaker_word_decode(word);
}

uint64_t breaker_encode(const struct breaker_view *view)
{
    return breaker_word_encode(view);
}
