#include "call.h"

static void find_side(const struct call *call, struct call_side *side, struct span key)
{
    if (side->named_in != call->table) { /* not the last call's key again */
        side->identity = table_identity(call->table, key);
        side->named_in = call->table;
    }
    side->slot = table_find(call->table, side->identity);
}

/* M's of a call that H refuses, too: it may be parked. */
static void find_sides(struct call *call, bool with_model)
{
    find_side(call, &call->host, call_host_key(call));
    if (with_model)
        find_side(call, &call->model, call_model_key(call));
}

/* The look before anything is written. A key without a slot is one that never failed. */
static struct breaker_admission peek_side(const struct call_side *side, uint32_t now)
{
    return side->slot ? slot_peek(side->slot, now, &side->policy.breaker)
                      : breaker_admit(0, now, &side->policy.breaker);
}

/* With another place to go to, a refusal is one: whether the call passes is asked last
 * (shim_exhausted). */
static bool refuses(const struct call *call, const struct call_side *side,
                    const struct breaker_admission *admission)
{
    bool goes_on = call->detour || (call->reroutes && !call->exhausted && call_has_chain(call));

    return goes_on ? route_turns_away(&side->policy, admission)
                   : route_refuses(&side->policy, admission);
}

/* What would have been, had it not been for mode = observe. */
static void observe(const struct call *call, const struct call_side *side, bool parked,
                    uint64_t now)
{
    slot_count_refused(side->slot, call_stat_shard());
    call_log_observed(call, side, parked, now);
}

/* Under which a grant is taken: its lease may be the call's own. The side's policy stays as it is,
 * for the calls to come. */
static struct breaker_policy probing_policy(const struct call *call, const struct call_side *side)
{
    struct breaker_policy policy = side->policy.breaker;

    if (side->policy.lease_of_call && policy.lease_ticks < call->timeout_ticks)
        policy.lease_ticks = call->timeout_ticks;
    return policy;
}

/* Makes good what was peeked: only a grant writes, and may be lost to another process. */
static struct breaker_admission take_side(const struct call *call, struct call_side *side,
                                          struct breaker_admission peeked, uint64_t now)
{
    enum breaker_change change = BREAKER_NO_CHANGE;

    if (peeked.verdict == BREAKER_GRANT) {
        struct breaker_policy policy = probing_policy(call, side);
        peeked = slot_admit(side->slot, breaker_tick(now), &policy, &change);
        call_log_change(call, side, &(struct call_change){.change = change});
    }
    side->ticket = peeked.ticket;
    side->admitted = !refuses(call, side, &peeked);
    if (side->policy.mode == MODE_OBSERVE && peeked.verdict == BREAKER_REFUSE)
        observe(call, side, false, now);
    return peeked;
}

static uint32_t wait_of(const struct call_side *side, const struct breaker_admission *admission,
                        enum breaker_state state, uint64_t now)
{
    uint32_t wait_ms = route_wait_ms(&side->policy, admission, state);

    return wait_ms > 0
               ? wait_ms
               : ROUTE_SOON_MS + call_random(now, side->identity) % (ROUTE_SOON_SPREAD_MS + 1);
}

/* What a cool-down says to whom it keeps waiting. */
static const struct breaker_admission kept = {.verdict = BREAKER_REFUSE};

static uint32_t parked_ms(struct call *call, const struct call_side *side, uint64_t now)
{
    if (side == call_parking_side(call) && slot_cooldown_may_be(side->slot, breaker_tick(now)))
        call_knows_credential(call);
    return (uint32_t)(breaker_tick_ns(call_parked(call, side, now)) / CLOCK_NS_PER_MS);
}

/* How long the call is kept waiting at its keys: the later of both. */
static uint32_t kept_ms(struct call *call, uint64_t now)
{
    const struct call_side *sides[] = {&call->host, call_knows_model(call) ? &call->model : NULL};
    uint32_t longest = 0;

    for (unsigned i = 0; i < 2; i++) {
        uint32_t ms =
            sides[i] && refuses(call, sides[i], &kept) ? parked_ms(call, sides[i], now) : 0;
        longest = ms > longest ? ms : longest;
    }
    return longest;
}

static enum shim_verdict refuse(struct call *call, struct call_side *side,
                                const struct breaker_admission *admission, uint64_t now)
{
    enum breaker_state state = call_shown(side, now).state;
    uint32_t parked = kept_ms(call, now);

    call->refusal.model = side == &call->model;
    /* Another process may have closed it since: the caller is told what it was refused for. */
    call->refusal.state = state == BREAKER_SHOW_CLOSED || state == BREAKER_SHOW_DEGRADED
                              ? BREAKER_SHOW_HALF_OPEN
                              : state;
    call->refusal.wait_ms = wait_of(side, admission, call->refusal.state, now);
    if (parked > call->refusal.wait_ms) /* open and parked: the later of both */
        call->refusal.wait_ms = parked;
    call->refusal.parked = false;
    call->refusal.now_ns = now;
    call->refusal.obeyed = false;
    if (!call->exhausted)
        call->refusal.why_not = NULL;
    call->state = CALL_REFUSED;
    return SHIM_REFUSED;
}

/* The look at a key's cool-downs, of a call that its breakers would let go and before it takes a
 * grant of them. True: it is refused. */
static bool is_kept_waiting(struct call *call, struct call_side *side, uint64_t now)
{
    if (parked_ms(call, side, now) == 0)
        return false;
    if (!refuses(call, side, &kept)) {
        if (side->policy.mode == MODE_OBSERVE &&
            peek_side(side, breaker_tick(now)).verdict != BREAKER_REFUSE) /* told of by that */
            observe(call, side, true, now);
        return false;
    }
    refuse(call, side, &kept, now);
    call->refusal.parked = true;
    call->refusal.state = call_shown(side, now).state;
    call->refusal.with_all = call_parked_with_all(side, now);
    call->refusal.wait_ms = kept_ms(call, now);
    return true;
}

void shim_obeyed(struct shim_call *shim_call)
{
    struct call *call = call_of(shim_call);

    if (call->state != CALL_REFUSED || call->refusal.obeyed)
        return;
    call->refusal.obeyed = true;
    slot_count_refused(call_refuser(call)->slot, call_stat_shard());
    call_log_refusal(call, call->refusal.now_ns, false);
}

static bool model_is_off(const struct call *call)
{
    return call_knows_model(call) && call->model.policy.mode == MODE_OFF;
}

/* The healthy case in one look: a closed breaker (or a key that never failed) admits, and nothing
 * is written but the ticket, in its place: a struct handed through several calls costs more in
 * copies than all the rest. */
static bool admit_closed(struct call_side *side, uint32_t now)
{
    uint64_t word = slot_word(side->slot);

    if (!breaker_is_closed(word))
        return false;
    struct breaker_ticket ticket = breaker_ticket_closed(word, now);
    side->ticket.admitted = ticket.admitted;
    side->ticket.generation = ticket.generation;
    side->ticket.lease = ticket.lease;
    side->ticket.probe = side->ticket.on_trial = false;
    side->ticket.counted = true;
    return true;
}

static bool admit_healthy(struct call *call, bool with_model, uint32_t now)
{
    if (!admit_closed(&call->host, now) || (with_model && !admit_closed(&call->model, now)))
        return false;
    if (slot_cooldown_may_be(call->host.slot, now) ||
        (with_model && slot_cooldown_may_be(call->model.slot, now)))
        return false;
    call->model.admitted = with_model;
    call->host.admitted = true;
    call->state = CALL_ADMITTED;
    return true;
}

/* Out of line: what the healthy case runs lies together. The sides are found. */
static __attribute__((noinline)) enum shim_verdict admit_unhealthy(struct call *call,
                                                                   bool with_model, uint64_t now)
{
    uint32_t tick = breaker_tick(now);
    struct breaker_admission host = peek_side(&call->host, tick), model = {0};

    if (refuses(call, &call->host, &host))
        return refuse(call, &call->host, &host, now);
    if (with_model)
        model = peek_side(&call->model, tick);
    if (with_model && refuses(call, &call->model, &model))
        return refuse(call, &call->model, &model, now);
    if (is_kept_waiting(call, &call->host, now) ||
        (with_model && is_kept_waiting(call, &call->model, now)))
        return SHIM_REFUSED;
    host = take_side(call, &call->host, host, now);
    if (refuses(call, &call->host, &host))
        return refuse(call, &call->host, &host, now);
    if (with_model) {
        model = take_side(call, &call->model, model, now);
        if (refuses(call, &call->model, &model)) {
            call_return_side(&call->host, now);
            return refuse(call, &call->model, &model, now);
        }
    }
    call->state = CALL_ADMITTED;
    return SHIM_ADMITTED;
}

/* Reads both; if either refuses, writes nothing. Else takes H, then M; a lost M hands H back. */
static enum shim_verdict admit_sides(struct call *call, bool with_model, uint64_t now)
{
    find_sides(call, with_model);
    return admit_healthy(call, with_model, breaker_tick(now))
               ? SHIM_ADMITTED
               : admit_unhealthy(call, with_model, now);
}

/* False: nothing is to be admitted, the call passes uncounted. */
static bool begin_admission(struct call *call)
{
    if (call->state != CALL_OPEN)
        return false;
    call->host.admitted = call->model.admitted = false;
    call->body.stream.state = STREAM_BLIND;
    call->limited = call->excusable = false;
    call->table = process_table(call->config, call->admitted_ns);
    if (!call->table || model_is_off(call)) {
        call->state = CALL_IDLE;
        return false;
    }
    call->epoch = process_epoch();
    call->suspended_ns = process_suspended_known();
    return true;
}

enum shim_verdict shim_admit(struct shim_call *shim_call)
{
    struct call *call = call_of(shim_call);

    return begin_admission(call) ? admit_sides(call, call_knows_model(call), call->admitted_ns)
                                 : SHIM_ADMITTED;
}

enum shim_verdict shim_exhausted(struct shim_call *shim_call)
{
    struct call *call = call_of(shim_call);

    if (call->state != CALL_REFUSED)
        return SHIM_ADMITTED;
    const struct breaker_admission refused = {.verdict = BREAKER_REFUSE};
    if (route_refuses(&call_refuser(call)->policy, &refused))
        return SHIM_REFUSED;
    call_log_refusal(call, call->refusal.now_ns, true);
    call->exhausted = true;
    call->state = CALL_OPEN;
    return shim_admit(shim_call);
}

bool shim_is_probe(const struct shim_call *shim_call)
{
    const struct call *call = call_of_const(shim_call);

    return call->state == CALL_ADMITTED && ((call->host.admitted && call->host.ticket.probe) ||
                                            (call->model.admitted && call->model.ticket.probe));
}

/* Can the grant that `connect` holds be this call's? */
static bool can_take_over(const struct call *call, const struct call *connect)
{
    return connect->host.admitted && connect->epoch == call->epoch && connect->table == call->table;
}

enum shim_verdict shim_admit_connected(struct shim_call *shim_call, struct shim_call *shim_connect)
{
    struct call *call = call_of(shim_call), *connect = call_of(shim_connect);

    if (connect->state != CALL_ADMITTED || !span_eq(call_host_key(connect), call_host_key(call)))
        return shim_admit(shim_call);
    if (!shim_is_probe(shim_connect)) {
        shim_drop(shim_connect); /* H is looked at as it is now, and hears of this call */
        return shim_admit(shim_call);
    }
    if (!begin_admission(call)) {
        shim_drop(shim_connect);
        return SHIM_ADMITTED;
    }
    if (!can_take_over(call, connect)) {
        shim_drop(shim_connect);
        return admit_sides(call, call_knows_model(call), call->admitted_ns);
    }
    call->host.slot = connect->host.slot;
    call->host.identity = connect->host.identity;
    call->host.ticket = connect->host.ticket;
    call->host.admitted = true;
    connect->host.admitted = false;
    connect->state = CALL_IDLE;
    call->state = CALL_ADMITTED;
    if (call->host_alone && is_kept_waiting(call, &call->host, call->admitted_ns)) {
        call_return_side(&call->host, call->admitted_ns);
        return SHIM_REFUSED;
    }
    return call_knows_model(call) ? shim_admit_model(shim_call) : SHIM_ADMITTED;
}

bool shim_model_pending(const struct shim_call *shim_call)
{
    const struct call *call = call_of_const(shim_call);

    return call->state == CALL_ADMITTED && call->place != MODEL_NONE && !call->model.admitted;
}

/* M's side was found, and there is something to it. Out of line. */
static __attribute__((noinline)) enum shim_verdict admit_unhealthy_model(struct call *call,
                                                                         uint64_t now)
{
    struct breaker_admission peeked = peek_side(&call->model, breaker_tick(now));

    if (!refuses(call, &call->model, &peeked)) {
        if (is_kept_waiting(call, &call->model, now)) {
            call_return_side(&call->host, now);
            return SHIM_REFUSED;
        }
        peeked = take_side(call, &call->model, peeked, now);
    }
    if (!refuses(call, &call->model, &peeked))
        return SHIM_ADMITTED;
    call_return_side(&call->host, now);
    return refuse(call, &call->model, &peeked, now);
}

enum shim_verdict shim_admit_model(struct shim_call *shim_call)
{
    struct call *call = call_of(shim_call);
    uint64_t now;

    if (!shim_model_pending(shim_call) || !call->model_decided || call->epoch != process_epoch())
        return SHIM_ADMITTED;
    if (model_is_off(call)) {
        shim_drop(shim_call);
        return SHIM_ADMITTED;
    }
    now = process_clock->boot_ns();
    find_side(call, &call->model, call_model_key(call));
    if (admit_closed(&call->model, breaker_tick(now)) &&
        !slot_cooldown_may_be(call->model.slot, breaker_tick(now))) {
        call->model.admitted = true;
        return SHIM_ADMITTED;
    }
    return admit_unhealthy_model(call, now);
}
