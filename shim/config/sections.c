/*
 * sections.c - what the file's sections may hold: [breaker] and [target NAME]; [fallback NAME] is
 * in fallbacks.c.
 */
#include "config/load.h"
#include "http/url.h"

#include <stdio.h>

static bool has_blank(struct span text)
{
    return span_has_control(text) || (text.len > 0 && memchr(text.ptr, ' ', text.len));
}

/* Could what stands behind the last colon be the port of a key, or of a longer one that a glob
 * covers? A colon in brackets begins no port; nor may one in an address that a glob cuts. */
static bool port_can_match(struct span host)
{
    struct span port = url_port_part(host);

    if (port.len == 0 || (strchr("[*?", host.ptr[0]) && strchr("*?", host.ptr[host.len - 1])))
        return true;
    port = span_skip(port, 1);
    uint32_t value = 0;
    bool literal = true;
    for (size_t i = 0; i < port.len && i < 6; i++) {
        bool digit = port.ptr[i] >= '0' && port.ptr[i] <= '9';
        if (!digit && port.ptr[i] != '*' && port.ptr[i] != '?')
            return false;
        literal &= digit;
        value = value * 10 + (uint32_t)(port.ptr[i] - '0');
    }
    return port.len > 0 && (!literal || (port.ptr[0] != '0' && value <= 65535));
}

/* What a pattern that no key can ever match should have been; NULL: some key can. */
static const char *never_matches(struct span text)
{
    if (text.len && memmem(text.ptr, text.len, "://", 3))
        return "HOST[:PORT][/MODEL] without a scheme";
    if (!port_can_match(span_until(text, '/')))
        return "a port from 1 to 65535 behind the host's colon";
    return NULL;
}

/* HOST-GLOB[/MODEL-GLOB], the host as key H has it. False: no pattern; the target is as it was. */
static bool set_pattern(struct target *target, struct span text)
{
    struct span host = span_until(text, '/');
    struct span model = span_skip(text, host.len);

    if (text.len >= CONFIG_PATTERN_MAX || model.len == 1 || has_blank(text) || never_matches(text))
        return false;
    struct span port = url_port_part(host);
    struct span name = span_of(host.ptr, host.len - port.len);
    if (span_eq(port, SPAN_LIT(":443")))
        port.len = 0;
    if (name.len > 1 && name.ptr[name.len - 1] == '.')
        name.len--;
    if (name.len == 0)
        return false;
    target->host_len = name.len + port.len;
    for (size_t i = 0; i < name.len; i++)
        target->pattern[i] = span_lower(name.ptr[i]);
    memcpy(target->pattern + name.len, port.ptr, port.len);
    memcpy(target->pattern + target->host_len, model.ptr, model.len);
    target->pattern[target->host_len + model.len] = '\0';
    return true;
}

static struct target *find_target(const struct config *config, struct span name)
{
    for (unsigned i = 0; i < config->target_count; i++)
        if (span_eq(span_str(config->targets[i]->name), name))
            return config->targets[i];
    return NULL;
}

static struct target *add_target(struct load *load, struct span name)
{
    struct config *config = load->config;

    if (config->target_count == config->target_room) {
        unsigned room = config->target_room ? config->target_room * 2 : 8;
        struct target **more = arena_alloc(&config->memory, room * sizeof(*more));
        if (!more)
            return NULL;
        if (config->target_count > 0)
            memcpy(more, config->targets, config->target_count * sizeof(*more));
        config->targets = more;
        config->target_room = room;
    }
    struct target *target = arena_alloc(&config->memory, sizeof *target);
    if (!target)
        return NULL;
    memcpy(target->name, name.ptr, name.len);
    target->line = load->reader.line;
    target->order = config->target_count;
    config->targets[config->target_count++] = target;
    return target;
}

static void begin_target(struct load *load, struct span key, struct span name)
{
    if (name.len == 0) {
        load_problem_here(load, key, "[target NAME]", "no name");
    } else if (find_target(load->config, name)) {
        load_problem_here(load, key, "each target once", "it again");
    } else if (load->config->target_count == CONFIG_TARGETS_MAX) {
        load_problem_here(load, key, "at most 256 targets", "one more");
    } else if (!(load->target = add_target(load, name))) {
        load_no_memory(load, load->config->file, load->reader.line, key);
    } else {
        load->layer = &load->target->layer;
        set_pattern(load->target, name); /* none: sections_check, unless match = gives one */
    }
}

void sections_begin(struct load *load, struct span name)
{
    char shown[CONFIG_NAME_MAX + 3];

    load->layer = NULL;
    load->target = NULL;
    load->fallback = NULL;
    load->in_section = true;
    if (!name.ptr)
        return;
    snprintf(shown, sizeof shown, "[%.*s]", (int)name.len, name.ptr);
    if (span_eq(name, SPAN_LIT("breaker"))) {
        if (load->breaker_seen)
            load_problem_here(load, span_str(shown), "each section once", "it again");
        load->breaker_seen = true;
        load->layer = &load->config->breaker;
    } else if (span_eq(name, SPAN_LIT("target")) || span_starts(name, SPAN_LIT("target "))) {
        begin_target(load, span_str(shown), span_trim(span_skip(name, sizeof "target" - 1)));
    } else if (span_eq(name, SPAN_LIT("fallback")) || span_starts(name, SPAN_LIT("fallback "))) {
        fallbacks_begin(load, span_str(shown), span_trim(span_skip(name, sizeof "fallback" - 1)));
    } else {
        load_problem_here(load, span_str(shown), "[breaker], [target NAME] or [fallback NAME]",
                          "an unknown section");
    }
}

static void set_match(struct load *load, struct span key, struct span text)
{
    struct target *target = load->target;
    const char *never = never_matches(text);
    char found[120];

    snprintf(found, sizeof found, "\"%.*s\"", (int)(text.len < 100 ? text.len : 100), text.ptr);
    if (target->pattern_given)
        load_problem_here(load, key, "each key once", "it again");
    else if (!set_pattern(target, text))
        load_problem_here(load, key, never ? never : "HOST[:PORT][/MODEL], with * and ? for any",
                          found);
    target->pattern_given = true;
}

void sections_set(struct load *load, struct span key, struct span text)
{
    if (!load->in_section) {
        load_problem_here(load, key, "[breaker] or [target NAME] above the first key", "none");
        sections_begin(load, SPAN_NONE); /* told once */
    } else if (load->fallback) {
        fallbacks_set(load, key, text);
    } else if (!load->layer) {
        return; /* its section was told */
    } else if (key.len == 0) {
        load_problem_here(load, SPAN_LIT("line"), "key = value", "no key");
    } else if (load->target && span_eq(key, SPAN_LIT("match"))) {
        set_match(load, key, text);
    } else {
        load_value(load, load->layer, load->config->file, load->reader.line, key, text);
    }
}

/* Which breakers a call has is known before its model is. */
static void check_scope(struct load *load, const struct target *target)
{
    char found[CONFIG_PATTERN_MAX + 10];

    if (!layer_has(&target->layer, OPTION_scope) || !target_model(target).ptr)
        return;
    snprintf(found, sizeof found, "one for %s", target->pattern);
    load_problem(load, load->config->file, target->layer.setting[OPTION_scope]->line,
                 SPAN_LIT("scope"), "it in [breaker] or a target without a model", found);
}

/* It is asked at connect, before a model is known, and is to be another place than the host. What
 * is dropped of a host stands for itself, as a broken one does (load.c); of a model it was none. */
static void check_address(struct load *load, struct target *target)
{
    char found[CONFIG_PATTERN_MAX + 10];
    struct layer *layer = &target->layer;
    struct span key = SPAN_LIT("fallback_address");

    if (!layer_has(layer, OPTION_fallback_address))
        return;
    struct setting *setting = layer->setting[OPTION_fallback_address];
    if (target_model(target).ptr) {
        snprintf(found, sizeof found, "one for %s", target->pattern);
        load_skip(load, load->config->file, setting->line, key,
                  "it in [breaker] or a target without a model", found);
        load_unset(load, layer, key);
        return;
    }
    struct span address = span_str(setting->value.text);
    if (span_ends(address, SPAN_LIT(":443")))
        address.len -= 4;
    if (address.len == 0 || !span_eq(address, config_literal_host(target)))
        return;
    snprintf(found, sizeof found, "\"%.200s\"", setting->value.text);
    load_skip(load, load->config->file, setting->line, key,
              "another HOST:PORT than the target's own", found);
    setting->value.text[0] = '\0';
}

void sections_check(struct load *load)
{
    char shown[CONFIG_NAME_MAX + 10], found[CONFIG_NAME_MAX + 3];

    for (unsigned i = 0; i < load->config->target_count; i++) {
        struct target *target = load->config->targets[i];
        check_scope(load, target);
        check_address(load, target);
        if (target->pattern[0] || target->pattern_given)
            continue;
        snprintf(shown, sizeof shown, "[target %s]", target->name);
        const char *never = never_matches(span_str(target->name));
        snprintf(found, sizeof found, "\"%s\"", target->name);
        load_problem(load, load->config->file, target->line, span_str(shown),
                     never ? never
                           : "HOST[:PORT][/MODEL] as the target's name, or match = with one",
                     never ? found : "neither");
    }
}
