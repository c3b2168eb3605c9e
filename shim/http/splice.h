/*
 * splice.h - puts another model into a JSON body: where the old one stands, and how the new one is
 * written. Nothing else of a body changes. Pure.
 */
#ifndef BREAKER_HTTP_SPLICE_H
#define BREAKER_HTTP_SPLICE_H

#include "http/model_scan.h"

/* Where the value of the top-level member `name` that decides (model_scan.h) stands in a whole JSON
 * body, its quotes included. False: it is not there, or the body is no JSON object. Costs one scan.
 * Where the last byte of a body is not there yet it says the same of what is, once the value is
 * whole. */
bool splice_find(struct span body, struct span name, struct span *value);

/* `text` as a JSON string, quotes included: '"', '\' and control characters escaped, other bytes
 * as they are. At most SPLICE_JSON_MAX(text.len) bytes; returns how many. */
#define SPLICE_JSON_MAX(len) (6 * (len) + 2)
size_t splice_json(struct span text, char *buf);

/* `text` as one segment of a path: everything but unreserved characters (RFC 3986 2.3) and ':' is
 * percent-encoded; '/' too, unless `slashes` (models of Replicate and Hugging Face have one). At
 * most 3 * text.len bytes; returns how many. */
size_t splice_path(struct span text, bool slashes, char *buf);

#endif
