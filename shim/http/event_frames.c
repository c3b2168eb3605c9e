#include "http/event_frames.h"

enum step {
    STEP_PRELUDE,
    STEP_NAME_LEN,
    STEP_NAME,
    STEP_TYPE,
    STEP_VALUE_LEN,
    STEP_VALUE,
    STEP_PAYLOAD,
};

enum field {
    FIELD_OTHER,
    FIELD_MESSAGE_TYPE,
    FIELD_EVENT_TYPE,
    FIELD_EXCEPTION_TYPE,
    FIELD_ERROR_CODE,
};

#define FRAME_OVERHEAD 16u /* prelude and CRC */

static uint32_t big_endian(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void garbled(struct event_frames *frames)
{
    frames->state = EVENT_FRAMES_GARBLED;
}

static bool text_is(const struct event_frames *frames, struct span text)
{
    return kept_word_is(&frames->text, text);
}

static enum field field_named(const struct event_frames *frames)
{
    return text_is(frames, SPAN_LIT(":message-type"))     ? FIELD_MESSAGE_TYPE
           : text_is(frames, SPAN_LIT(":event-type"))     ? FIELD_EVENT_TYPE
           : text_is(frames, SPAN_LIT(":exception-type")) ? FIELD_EXCEPTION_TYPE
           : text_is(frames, SPAN_LIT(":error-code"))     ? FIELD_ERROR_CODE
                                                          : FIELD_OTHER;
}

static void read_kind(struct event_frames *frames)
{
    frames->kinds |= (uint8_t)(1u << error_word_kind(kept_word_span(&frames->text)));
}

/* All headers of the frame were there. */
static void end_headers(struct event_frames *frames)
{
    if (frames->error) {
        frames->state = EVENT_FRAMES_ERROR;
        frames->kind = (uint8_t)error_word_of_kinds(frames->kinds);
    } else if (frames->stop) {
        frames->state = EVENT_FRAMES_STOPPED;
    }
    frames->step = STEP_PAYLOAD;
}

static void next_header(struct event_frames *frames)
{
    frames->step = STEP_NAME_LEN;
    if (frames->headers_left == 0)
        end_headers(frames);
}

/* A header's value, a string, was there. */
static void end_value(struct event_frames *frames)
{
    switch ((enum field)frames->field) {
    case FIELD_MESSAGE_TYPE:
        frames->error |=
            text_is(frames, SPAN_LIT("exception")) || text_is(frames, SPAN_LIT("error"));
        break;
    case FIELD_EVENT_TYPE:
        frames->stop |= text_is(frames, SPAN_LIT("messageStop"));
        break;
    case FIELD_EXCEPTION_TYPE:
        frames->error = true;
        read_kind(frames);
        break;
    case FIELD_ERROR_CODE:
        read_kind(frames);
        break;
    case FIELD_OTHER:
        break;
    }
    next_header(frames);
}

static void prelude_byte(struct event_frames *frames, unsigned char c)
{
    frames->prelude[frames->at++] = c;
    if (frames->at < sizeof frames->prelude)
        return;
    uint32_t total = big_endian(frames->prelude), headers = big_endian(frames->prelude + 4);
    frames->at = 0;
    if (total < FRAME_OVERHEAD || total > EVENT_FRAME_MAX || headers > total - FRAME_OVERHEAD) {
        garbled(frames);
        return;
    }
    frames->headers_left = headers;
    frames->frame_left = total - (FRAME_OVERHEAD - 4) - headers;
    frames->kinds = 0;
    next_header(frames);
}

/* Something of this length begins, which must be inside the headers. */
static void expect(struct event_frames *frames, unsigned len, enum step step)
{
    frames->left = (uint16_t)len;
    frames->text.len = 0;
    frames->step = (uint8_t)step;
    if (len > frames->headers_left)
        garbled(frames);
}

static void type_byte(struct event_frames *frames, unsigned char type)
{
    static const uint8_t sizes[] = {0, 0, 1, 2, 4, 8, 0, 0, 8, 16};

    if (type >= sizeof sizes) {
        garbled(frames);
        return;
    }
    if (type != 7) /* only strings are read */
        frames->field = FIELD_OTHER;
    if (type == 6 || type == 7)
        frames->step = STEP_VALUE_LEN;
    else if (sizes[type] > 0)
        expect(frames, sizes[type], STEP_VALUE);
    else
        next_header(frames);
}

static void value_len_byte(struct event_frames *frames, unsigned char c)
{
    frames->prelude[frames->at++] = c;
    if (frames->at < 2)
        return;
    frames->at = 0;
    expect(frames, (unsigned)frames->prelude[0] << 8 | frames->prelude[1], STEP_VALUE);
    if (frames->left == 0)
        end_value(frames);
}

/* A run of a name or of a value. Returns its length. */
static size_t text_bytes(struct event_frames *frames, struct span bytes)
{
    size_t len = bytes.len < frames->left ? bytes.len : frames->left;

    frames->left = (uint16_t)(frames->left - len);
    frames->headers_left -= (uint32_t)len;
    kept_word_add(&frames->text, span_of(bytes.ptr, len));
    if (frames->left > 0)
        return len;
    if (frames->step == STEP_NAME) {
        frames->field = (uint8_t)field_named(frames);
        frames->step = STEP_TYPE;
    } else {
        end_value(frames);
    }
    return len;
}

/* A byte of a header that is no text. */
static void header_byte(struct event_frames *frames, unsigned char c)
{
    if (frames->headers_left == 0) { /* in the middle of a header */
        garbled(frames);
        return;
    }
    frames->headers_left--;
    if (frames->step == STEP_NAME_LEN && c > 0)
        expect(frames, c, STEP_NAME);
    else if (frames->step == STEP_NAME_LEN)
        garbled(frames);
    else if (frames->step == STEP_TYPE)
        type_byte(frames, c);
    else
        value_len_byte(frames, c);
}

static size_t payload_bytes(struct event_frames *frames, struct span bytes)
{
    size_t len = bytes.len < frames->frame_left ? bytes.len : frames->frame_left;

    frames->frame_left -= (uint32_t)len;
    if (frames->frame_left == 0)
        frames->step = STEP_PRELUDE;
    return len;
}

/* Takes at least one byte; returns how many. */
static size_t advance(struct event_frames *frames, struct span bytes)
{
    unsigned char c = (unsigned char)bytes.ptr[0];

    switch ((enum step)frames->step) {
    case STEP_PRELUDE:
        prelude_byte(frames, c);
        break;
    case STEP_NAME_LEN:
    case STEP_TYPE:
    case STEP_VALUE_LEN:
        header_byte(frames, c);
        break;
    case STEP_NAME:
    case STEP_VALUE:
        return text_bytes(frames, bytes);
    case STEP_PAYLOAD:
        return payload_bytes(frames, bytes);
    }
    return 1;
}

enum event_frames_state event_frames_feed(struct event_frames *frames, struct span bytes)
{
    while (bytes.len > 0 && frames->state == EVENT_FRAMES_RUNNING)
        bytes = span_skip(bytes, advance(frames, bytes));
    return (enum event_frames_state)frames->state;
}
