/*
 * flow_exchange.h - the requests of a flow as calls. Private to shim_flow.c.
 */
#ifndef BREAKER_FLOW_EXCHANGE_H
#define BREAKER_FLOW_EXCHANGE_H

#include "shim_flow.h"

/* Drops all that is open, as neutral: the flow is SHIM_FLOW_LOST. */
void flow_lose(struct shim_flow *flow);

/* The one that the next byte from the peer is for; NULL: none. */
struct shim_exchange *flow_oldest(const struct shim_flow *flow);
/* The one whose request began last; NULL: it is answered. */
struct shim_exchange *flow_newest(const struct shim_flow *flow);

/* A request's head is there: opens its call. Loses the flow when there are too many. */
void flow_open(struct shim_flow *flow);
/* Payload of the request under way; `last` at its end. */
void flow_body(struct shim_flow *flow, struct span payload, bool last);
/* May it go, as far as is known? A refusal refuses the flow. */
void flow_ask(struct shim_flow *flow, struct shim_exchange *exchange);

void flow_await_response(struct shim_flow *flow);
void flow_first_byte(struct shim_flow *flow, struct shim_exchange *exchange);
/* The same of a head, which may be that of a 1xx: the last one counts. */
void flow_head_begins(struct shim_flow *flow, struct shim_exchange *exchange);
/* The final head of its response is there. */
void flow_head(struct shim_flow *flow, struct shim_exchange *exchange);
/* Its response is whole: settles, makes room. */
void flow_answered(struct shim_flow *flow, struct shim_exchange *exchange);
void flow_settle(struct shim_flow *flow, struct shim_exchange *exchange, enum call_end_kind kind,
                 enum call_phase phase);

#endif
