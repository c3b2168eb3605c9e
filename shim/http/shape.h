/*
 * shape.h - is a request an LLM call, whose dialect does it speak, and where is the model?
 *
 * Source of the rules: FIELD-NOTES 4 (paths) and 6 (error shapes). Pure.
 */
#ifndef BREAKER_HTTP_SHAPE_H
#define BREAKER_HTTP_SHAPE_H

#include "base/span.h"

/* The dialect decides the shape of a synthetic answer. */
enum api {
    API_OPENAI, /* and everything that speaks like it: the default */
    API_ANTHROPIC,
    API_GEMINI, /* and Vertex */
    API_BEDROCK,
    API_OLLAMA, /* native /api/ only; its /v1/ is OPENAI */
    API_COHERE,
    API_MISTRAL,
};

enum model_place {
    MODEL_NONE,            /* no LLM shape: obeys and feeds the host's breaker only */
    MODEL_IN_PATH,         /* `model` holds it, percent-encoded as it stood */
    MODEL_IN_BODY,         /* top-level JSON member or multipart form field "model" */
    MODEL_IN_BODY_VERSION, /* Replicate /v1/predictions: member "version" */
};

struct shape {
    enum api api;
    enum model_place place;
    struct span model; /* MODEL_IN_PATH only */
};

/* By method, host and path (query excluded). Only POST has a shape; PUT counts as POST (curl -T).
 * The host settles the dialect where paths are shared (Mistral's and Cohere's /v1/…). */
struct shape shape_of(struct span method, struct span host, struct span path);

/* Is this host (lower case, no port) one of the shipped LLM providers? Globs as in
 * *.openai.azure.com. */
bool shape_known_host(struct span host);

#endif
