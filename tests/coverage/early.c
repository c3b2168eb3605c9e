/*
 * early.c - of the coverage build alone: what libbreaker.so ran before its counters were put into
 * their file.
 *
 * Programs call hooks before any constructor of ours. Until clang's runtime maps the file it counts
 * where the loader put the counters, and forgets that. It maps it again in its own constructor, to
 * the same effect.
 */
#include <stdint.h>

extern uint64_t __start___llvm_prf_cnts[] __attribute__((visibility("hidden")));
extern uint64_t __stop___llvm_prf_cnts[] __attribute__((visibility("hidden")));
extern intptr_t __llvm_profile_counter_bias __attribute__((visibility("hidden")));
void __llvm_profile_initialize(void);
void move_counters(void);

__attribute__((constructor(101), no_profile_instrument_function)) void move_counters(void)
{
    __llvm_profile_initialize();
    intptr_t bias = __llvm_profile_counter_bias;
    if (bias == 0)
        return;
    for (uint64_t *early = __start___llvm_prf_cnts; early < __stop___llvm_prf_cnts; early++)
        *(uint64_t *)((char *)early + bias) += *early;
}
