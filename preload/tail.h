/*
 * tail.h - tail jumps in C: the real function sees our caller's return address, not ours.
 *
 * dlopen and dlsym look at it (RUNPATH, RTLD_NEXT), and a plain call there hangs or crashes chains
 * of preloads (FIELD-NOTES 1.4, 1.5). clang promises the jump; gcc makes it at O2, whatever the
 * build's own level, in functions free of instrumentation. scripts/check-tail-jumps reads the
 * disassembly.
 */
#ifndef BREAKER_PRELOAD_TAIL_H
#define BREAKER_PRELOAD_TAIL_H

#if defined(__clang__)
#define TAIL_CODE      __attribute__((no_sanitize("address", "undefined", "thread")))
#define TAIL_RETURN(x) __attribute__((musttail)) return x
#else
#define TAIL_CODE                                                                                  \
    __attribute__((optimize("O2", "optimize-sibling-calls"),                                       \
                   no_sanitize("address", "undefined", "thread"), no_stack_protector,              \
                   no_profile_instrument_function))
#define TAIL_RETURN(x) return x
#endif

#define TAIL_FUNCTION TAIL_CODE __attribute__((visibility("default")))

#endif
