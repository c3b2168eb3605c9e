#include "core/breaker.h"
#include "core/breaker_rules.h"

struct breaker_effective breaker_effective(uint64_t word, uint32_t now,
                                           const struct breaker_policy *policy)
{
    struct breaker_view view = breaker_decode(word);
    struct breaker_effective shown = {
        .state = BREAKER_SHOW_CLOSED, .streak = view.streak, .generation = view.generation};

    now &= BREAKER_TIME_MASK;
    switch (view.phase) {
    case BREAKER_CLOSED:
        if (breaker_shows_degraded(view.streak, policy))
            shown.state = BREAKER_SHOW_DEGRADED;
        break;
    case BREAKER_OPEN:
    case BREAKER_HALF_OPEN:
        shown.state = view.phase == BREAKER_OPEN ? BREAKER_SHOW_OPEN : BREAKER_SHOW_HALF_OPEN;
        if (breaker_is_pending(view.time, now))
            shown.wait_ticks = breaker_ticks_until(view.time, now);
        break;
    case BREAKER_FORCED_OPEN:
        shown.state = BREAKER_SHOW_FORCED_OPEN;
        break;
    case BREAKER_FORCED_CLOSED:
        shown.state = BREAKER_SHOW_FORCED_CLOSED;
        break;
    }
    return shown;
}

const char *breaker_state_name(enum breaker_state state)
{
    static const char *const names[] = {
        [BREAKER_SHOW_CLOSED] = "closed",
        [BREAKER_SHOW_DEGRADED] = "degraded",
        [BREAKER_SHOW_OPEN] = "open",
        [BREAKER_SHOW_HALF_OPEN] = "half_open",
        [BREAKER_SHOW_FORCED_OPEN] = "forced_open",
        [BREAKER_SHOW_FORCED_CLOSED] = "forced_closed",
    };

    return (unsigned)state < sizeof names / sizeof *names ? names[state] : "closed";
}
