/*
 * curl_options_parts.h - what the files of curl_options share. Private to them.
 */
#ifndef BREAKER_PRELOAD_CURL_OPTIONS_PARTS_H
#define BREAKER_PRELOAD_CURL_OPTIONS_PARTS_H

#include "curl_options.h"

extern const struct shadowed_option {
    CURLoption option;
    enum option_kind kind;
} curl_options_shadowed[SHADOW_COUNT];

/* POSTFIELDSIZE as told; -1: by the first NUL. */
curl_off_t curl_options_fields_size(const struct curl_options *options);

#endif
