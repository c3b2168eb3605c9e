/* fallback_plan_fixture.h - a call that asks for a way to a fallback, and the plan that it gets. */
#ifndef BREAKER_TESTS_FALLBACK_PLAN_FIXTURE_H
#define BREAKER_TESTS_FALLBACK_PLAN_FIXTURE_H

#include "route/fallback.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A call to `url`, and what is asked of it; the rest may be changed before it is planned. */
struct question {
    const char *url, *model;
    struct policy policy;
    struct config_fallback fallback;
    char base[300];
    struct route_key key;
    struct fallback_call call;
    struct fallback_plan plan;
};

static struct question question;

static inline void ask(const char *url, const char *model, const char *base, const char *models)
{
    struct url parsed;

    question = (struct question){.url = url, .model = model};
    question.policy = (struct policy){.base = "", .allow_fallbacks = true};
    snprintf(question.base, sizeof question.base, "%s", base);
    assert_true(url_parse(span_str(question.base), &parsed));
    question.fallback = (struct config_fallback){
        .name = "f",
        .base = question.base,
        .scheme = parsed.scheme,
        .host = parsed.host,
        .port = parsed.port,
        .path = parsed.path,
        .models = models,
    };
}

static inline enum fallback_misfit plan(void)
{
    struct fallback_call *call = &question.call;

    assert_true(url_parse(span_str(question.url), &call->url));
    assert_true(route_key_of(SPAN_LIT("POST"), call->url.host, call->url.port, call->url.path,
                             &question.key));
    call->key = &question.key;
    call->policy = &question.policy;
    call->model = span_str(question.model);
    memset(&question.plan, 0xa5, sizeof question.plan);
    return fallback_plan(call, &question.fallback, &question.plan);
}

static inline void assert_misfit(enum fallback_misfit expected)
{
    enum fallback_misfit misfit = plan();

    if (misfit != expected)
        fail_msg("%s to %s: %s", question.url, question.base, fallback_misfit_text(misfit));
}

static inline void assert_url(const char *expected)
{
    assert_misfit(FALLBACK_FITS);
    assert_string_equal(question.plan.url, expected);
    assert_int_equal(question.plan.url_len, strlen(expected));
    assert_ptr_equal(question.plan.fallback, &question.fallback);
}

static inline void assert_plan_model(const char *expected, bool replaced, bool in_path)
{
    assert_true(span_eq(span_of(question.plan.model, question.plan.model_len), span_str(expected)));
    assert_int_equal(question.plan.replaces_model, replaced);
    assert_int_equal(question.plan.model_in_path, in_path);
}

#endif
