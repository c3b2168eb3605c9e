/*
 * curl_slow.c - how long a transfer's first byte took, and how long its body was silent, where the
 * policy of its call asks for it (shim_times_first_byte, shim_times_silence).
 *
 * The first is told by libcurl's own times. Each counts from the beginning of a request and is
 * added up over those of a transfer (followed redirects, answered 401s): all of them were waited
 * for. The first byte of a 1xx is the answer's to them. Silence is told by our write callback.
 *
 * What the application holds up is not the provider's doing. That it left libcurl alone meanwhile
 * (a multi) cannot be told from a wait.
 */
#include "curl_call.h"

#include "base/clock.h"

#define INFO_POSTTRANSFER_TIME ((CURLINFO)(CURLINFO_OFF_T + 67)) /* since 8.10.0 */

static uint64_t sent_whole_us(const struct easy *easy)
{
    return easy->real->version >= 0x080a00 ? curl_facts_offset(easy, INFO_POSTTRANSFER_TIME) : 0;
}

/* The connection was up and, where libcurl tells, the request had left. 0: there is none. */
static uint64_t could_go_us(const struct easy *easy)
{
    uint64_t up = curl_facts_offset(easy, CURLINFO_PRETRANSFER_TIME_T), sent = sent_whole_us(easy);

    return sent > up ? sent : up;
}

/* From what libcurl tells as `point_us` to the end. */
static uint64_t since(const struct easy *easy, uint64_t total_ns, uint64_t point_us)
{
    uint64_t behind = curl_facts_behind_queue(easy, total_ns),
             before = (point_us + curl_facts_offset(easy, CURLINFO_REDIRECT_TIME_T)) * 1000;

    return behind > before ? behind - before : 0;
}

/* -1: not known. */
static curl_off_t body_size(const struct easy *easy)
{
    enum body_source source = curl_options_body(&easy->options);

    return source == BODY_FIELDS ? (curl_off_t)curl_options_fields(&easy->options).len
           : source == BODY_READ ? curl_options_body_size(&easy->options)
           : source == BODY_NONE ? 0
                                 : -1;
}

/* Is some of it still here, or may it be? No answer is due then. Before libcurl told, a fallback's
 * is not known at all, and taken to be small. */
static bool is_uploading(const struct easy *easy)
{
    if (easy->real->version >= 0x080a00)
        return sent_whole_us(easy) == 0;
    if (easy->active != &easy->call)
        return false;
    curl_off_t size = body_size(easy);
    return size < 0 || curl_facts_offset(easy, CURLINFO_SIZE_UPLOAD_T) < (uint64_t)size;
}

/* Of an answer whose first byte is there. */
static uint64_t first_byte_took(const struct easy *easy)
{
    uint64_t gone = could_go_us(easy),
             began = curl_facts_offset(easy, CURLINFO_STARTTRANSFER_TIME_T);

    return gone > 0 && began > gone ? (began - gone) * 1000 : 0;
}

static uint64_t first_byte_of(const struct easy *easy, uint16_t status, uint64_t total_ns)
{
    if (easy->held || !shim_times_first_byte(easy->active))
        return 0;
    if (status != 0)
        return first_byte_took(easy);
    long last = curl_facts_long(easy, CURLINFO_RESPONSE_CODE);
    if (last >= 200) /* of an answer that was not the last: the next one is not told apart */
        return 0;
    if (last == 0 && curl_facts_offset(easy, CURLINFO_STARTTRANSFER_TIME_T) > 0)
        return first_byte_took(easy);
    return could_go_us(easy) > 0 && !is_uploading(easy) ? since(easy, total_ns, could_go_us(easy))
                                                        : 0;
}

uint64_t curl_slow_first_byte(const struct easy *easy)
{
    return first_byte_of(easy, 200, 0);
}

void curl_slow_hear(struct easy *easy)
{
    if (easy->listens)
        easy->heard_ns = clock_system.mono_ns();
}

/* Up to the first byte of the body its head was the last that came. */
static uint64_t silence_of(const struct easy *easy, uint64_t total_ns)
{
    if (!easy->sees_body || !shim_times_silence(easy->active))
        return 0;
    if (easy->headed)
        return easy->listens ? clock_system.mono_ns() - easy->heard_ns : 0;
    return easy->held
               ? 0
               : since(easy, total_ns, curl_facts_offset(easy, CURLINFO_STARTTRANSFER_TIME_T));
}

void curl_slow_tell(const struct easy *easy, struct call_end *end, uint64_t total_ns)
{
    end->first_byte_ns = first_byte_of(easy, end->status, total_ns);
    if (end->phase == PHASE_BODY)
        end->silent_ns = silence_of(easy, total_ns);
}
