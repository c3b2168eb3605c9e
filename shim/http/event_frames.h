/*
 * event_frames.h - frames of application/vnd.amazon.eventstream as they pass by, and what their
 * headers say: resumable at any byte. Pure.
 *
 * A frame: total length, headers' length, CRC (4 bytes each, big endian); headers; payload; CRC. A
 * header: length of its name (1 byte), name, type (1 byte), value. CRCs are not verified: TLS or
 * TCP did, and a wrong length shows soon.
 *
 * An error (FIELD-NOTES 5) is a frame with :message-type exception or error, or with an
 * :exception-type; its kind that of :exception-type or :error-code.
 */
#ifndef BREAKER_HTTP_EVENT_FRAMES_H
#define BREAKER_HTTP_EVENT_FRAMES_H

#include "http/error_word.h"
#include "http/kept_word.h"

#include <stdint.h>

#define EVENT_FRAME_MAX (16u << 20) /* a longer one is no frame */

enum event_frames_state {
    EVENT_FRAMES_RUNNING,
    EVENT_FRAMES_STOPPED, /* messageStop */
    EVENT_FRAMES_ERROR,
    EVENT_FRAMES_GARBLED, /* no frames, or too long */
};

/* Private but for state and kind; plain bytes, copied by assignment. All-zero is ready. */
struct event_frames {
    uint8_t state;
    uint8_t kind; /* enum error_kind of an error: never ERROR_UNKNOWN */
    uint8_t step;
    uint8_t kinds; /* of this frame's words, bits */
    bool error;    /* this frame is one; its headers' end decides */
    bool stop;
    uint8_t at;            /* bytes of the prelude or of a length so far */
    uint8_t field;         /* the header whose value follows */
    uint16_t left;         /* of a name or value */
    uint32_t headers_left; /* of the frame */
    uint32_t frame_left;   /* payload and CRC */
    unsigned char prelude[12];
    struct kept_word text; /* a name or value */
};

/* Nothing is looked at any more once the state is not RUNNING. */
enum event_frames_state event_frames_feed(struct event_frames *frames, struct span bytes);

#endif
