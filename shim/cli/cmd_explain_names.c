/*
 * cmd_explain_names.c - the words of both outputs. Those of the JSON are documented: they stay.
 */
#include "cli/cmd_explain.h"

const char *explain_action_name(enum explain_action action)
{
    static const char *const names[] = {
        [EXPLAIN_GOES] = "goes",           [EXPLAIN_PROBES] = "probe",
        [EXPLAIN_UNCOUNTED] = "uncounted", [EXPLAIN_REFUSED] = "refused",
        [EXPLAIN_REROUTED] = "rerouted",   [EXPLAIN_UNFIT] = "unfit",
    };

    return names[action];
}

const char *explain_reason_name(enum explain_reason reason)
{
    static const char *const names[] = {
        [EXPLAIN_CLOSED] = "closed",
        [EXPLAIN_DEGRADED] = "degraded",
        [EXPLAIN_FORCED_CLOSED] = "forced_closed",
        [EXPLAIN_PASS] = "when_exhausted",
        [EXPLAIN_OBSERVED] = "observed",
        [EXPLAIN_DUE] = "probe_due",
        [EXPLAIN_PLACE_FREE] = "probe_free",
        [EXPLAIN_OPEN] = "open",
        [EXPLAIN_FORCED_OPEN] = "forced_open",
        [EXPLAIN_PROBE_UNDER_WAY] = "probe_under_way",
        [EXPLAIN_COOLING] = "cooling_down",
        [EXPLAIN_DISABLED] = "disabled",
        [EXPLAIN_SCHEME] = "scheme",
        [EXPLAIN_NOT_LISTED] = "not_listed",
        [EXPLAIN_NO_LLM_CALL] = "no_llm_call",
        [EXPLAIN_MODE_OFF] = "mode_off",
        [EXPLAIN_TABLE_REFUSED] = "table_refused",
        [EXPLAIN_MISFIT] = "", /* explain_stop_reason() has the word */
    };

    return names[reason];
}

const char *explain_stop_reason(const struct explain_stop *stop)
{
    static const char *const misfits[] = {
        [FALLBACK_FITS] = "",
        [FALLBACK_UNKNOWN] = "unknown",
        [FALLBACK_ITSELF] = "itself",
        [FALLBACK_NO_LLM_CALL] = "no_llm_call",
        [FALLBACK_HELD] = "held",
        [FALLBACK_BASE] = "base",
        [FALLBACK_CLEAR_TEXT] = "clear_text",
        [FALLBACK_MODEL] = "model_not_listed",
        [FALLBACK_MODEL_UNKNOWN] = "model_unknown",
        [FALLBACK_VARIABLE] = "variable",
        [FALLBACK_TOO_LONG] = "too_long",
    };

    return stop->reason == EXPLAIN_MISFIT ? misfits[stop->misfit]
                                          : explain_reason_name(stop->reason);
}

const char *explain_kind_name(enum explain_kind kind)
{
    static const char *const names[] = {
        [EXPLAIN_TARGET] = "target",
        [EXPLAIN_ADDRESS] = "address",
        [EXPLAIN_FALLBACK] = "fallback",
    };

    return names[kind];
}

const char *explain_cover_name(enum route_cover cover)
{
    static const char *const names[] = {
        [ROUTE_MATCH_ALL] = "match_all",   [ROUTE_LISTED] = "listed",
        [ROUTE_LLM_SHAPE] = "llm_shape",   [ROUTE_KNOWN_HOST] = "known_host",
        [ROUTE_NOT_LISTED] = "not_listed", [ROUTE_NO_LLM_CALL] = "no_llm_call",
    };

    return names[cover];
}

const char *explain_place_name(enum explain_place place)
{
    static const char *const names[] = {
        [EXPLAIN_NONE] = "none",
        [EXPLAIN_PATH] = "path",
        [EXPLAIN_MEMBER] = "member",
        [EXPLAIN_FIELD] = "form_field",
    };

    return names[place];
}

const char *explain_dialect_name(enum api api)
{
    static const char *const names[] = {
        [API_OPENAI] = "openai",   [API_ANTHROPIC] = "anthropic", [API_GEMINI] = "gemini",
        [API_BEDROCK] = "bedrock", [API_OLLAMA] = "ollama",       [API_COHERE] = "cohere",
        [API_MISTRAL] = "mistral",
    };

    return names[api];
}
