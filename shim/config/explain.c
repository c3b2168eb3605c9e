/*
 * explain.c - the configuration told to people: values with their origin, options with their text.
 */
#include "config/settings.h"

#include <stdio.h>

const struct config_option_info *config_option_info(enum config_option option)
{
    static const struct config_option_info info[] = {
#define GLOBAL                                             true
#define TARGET                                             false
#define OPTION(key, type, fallback, min, max, scope, text) {#key, #type, fallback, text, scope},
#include "config/options.def"
#undef OPTION
    };

    return (unsigned)option < OPTION_COUNT ? &info[option] : NULL;
}

void config_file_of(const struct config *config, const struct layer *layer,
                    enum config_option option, char *buf, size_t size)
{
    char key[64];
    size_t len = strlen(options[option].key);

    if (layer == &config->set) {
        snprintf(buf, size, "BREAKER_SET");
    } else if (layer == &config->environment) {
        for (size_t i = 0; i <= len; i++) {
            char c = options[option].key[i];
            key[i] = c >= 'a' && c <= 'z' ? (char)(c - 0x20) : c;
        }
        snprintf(buf, size, "BREAKER_%s", key);
    } else {
        snprintf(buf, size, "%s", config->file);
    }
}

static void origin_of(const struct config *config, const struct layer *layer,
                      enum config_option option, char *buf, size_t size)
{
    char file[sizeof config->file];

    if (!layer) {
        snprintf(buf, size, "default");
        return;
    }
    config_file_of(config, layer, option, file, sizeof file);
    if (layer->setting[option]->line)
        snprintf(buf, size, "%s:%u", file, layer->setting[option]->line);
    else
        snprintf(buf, size, "%s", file);
}

bool config_explain(const struct config *config, enum config_option option, struct span host,
                    struct span model, struct config_value *out)
{
    if ((unsigned)option >= OPTION_COUNT)
        return false;
    const struct layer *layer = config_layer(config, option, host, model);
    snprintf(out->text, sizeof out->text, "%s",
             layer ? layer->setting[option]->value.text : options[option].fallback);
    origin_of(config, layer, option, out->origin, sizeof out->origin);
    return true;
}

bool config_target(const struct config *config, unsigned index, struct config_target_info *out)
{
    if (index >= config->target_count)
        return false;
    const struct target *target = config->targets[index];
    *out = (struct config_target_info){target->name, target->pattern, target->line};
    return true;
}
