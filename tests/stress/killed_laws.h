/*
 * killed_laws.h - what has to hold of what a killed process leaves, whenever it was.
 */
#ifndef BREAKER_TESTS_KILLED_LAWS_H
#define BREAKER_TESTS_KILLED_LAWS_H

#include "killed_scenes.h"

#include "base/clock.h"

/* After so long the other process waits for the dead one. */
enum { LAWS_SECONDS = 10 };

static unsigned long laws_step; /* the instruction in front of which it was killed */

static inline void law(bool holds, const char *text)
{
    if (holds)
        return;
    fprintf(stderr, "law broken: %s (%s, killed at instruction %lu)\n", text, scene_now->name,
            laws_step);
    _exit(1);
}

static inline void law_of_alarm(int signal)
{
    (void)signal;
    law(false, "nobody waits for the dead");
}

/* --- what is there --------------------------------------------------------------------------- */

static inline void check_files(const struct left *left, const struct left *becomes)
{
    law(left->table || (scene_now->kind & SCENE_CREATES), "there is a table at every moment");
    law(!left->table || (left->size == TABLE_FILE_SIZE && left->table == (S_IFREG | 0600)),
        "a table is whole when it has its name");
    law(left->strangers == 0, "no file is made that nobody knows");
    law(left != becomes || left->temporaries == 0, "who ends well leaves no temporary file");
    law(left->temporaries <= (scene_now->kind & SCENE_NAMED ? 1 : 0),
        "no more than one temporary file is left");
}

static inline const struct table_header *header_of(const struct left *left)
{
    return (const void *)left->bytes;
}

static inline const struct slot *slots_of(const struct left *left)
{
    return (const void *)(left->bytes + TABLE_HEADER_SIZE);
}

static inline void check_cooldowns(const struct slot *s)
{
    for (unsigned i = 0; i < COOLDOWN_WORDS; i++) {
        uint32_t deadline = s->cooldown[i] & ((UINT32_C(1) << BREAKER_TIME_BITS) - 1);
        law(s->cooldown[i] == 0 || (s->parked_until != 0 &&
                                    !cooldown_is_over((uint32_t)s->parked_until, deadline - 1)),
            "where somebody is parked, admissions look");
    }
}

/* Lines 0 to 4 are made of whole words, each of them as it was or as it becomes. */
static inline void check_words(const struct slot *s, const struct slot *was,
                               const struct slot *becomes)
{
    enum { WORDS = offsetof(struct slot, key_checksum) / sizeof(uint64_t) };
    const uint64_t *here = (const void *)s, *old = (const void *)was, *new = (const void *)becomes;

    for (unsigned i = 0; i < WORDS; i++)
        law(here[i] == old[i] || here[i] == new[i], "a word is the old one or the new one");
}

static inline void check_slots(const struct left *left, const struct left *was,
                               const struct left *becomes)
{
    static const struct slot nothing;
    const struct slot *slots = slots_of(left), *old = slots_of(was), *new = slots_of(becomes);
    uint32_t used = 0;

    for (unsigned i = 0; i < TABLE_CAPACITY; i++) {
        if (slots[i].identity == 0) {
            law(memcmp((const void *)&slots[i], (const void *)&nothing, sizeof nothing) == 0,
                "what nobody claimed is all zero");
            continue;
        }
        used++;
        check_words(&slots[i], &old[i], &new[i]);
        check_cooldowns(&slots[i]);
    }
    law(header_of(left)->used == used || header_of(left)->used + 1 == used,
        "a crash leaves the count of the claimed one short at most");
}

/* --- another process ------------------------------------------------------------------------- */

static inline void check_places(const struct table *t)
{
    for (unsigned i = 0; i < TABLE_CAPACITY; i++)
        law(t->slots[i].identity == 0 || table_find(t, t->slots[i].identity) == &t->slots[i],
            "no slot is lost, and no key stands in two");
}

/* A forced breaker waits for its operator, and goes on from there. */
static inline void check_found(struct table *t)
{
    law(table_open(t, scene_place->path, scene_is_named()) == TABLE_OK && t->shared,
        "another process finds a table that it can use");
    for (unsigned i = 0; i < TABLE_CAPACITY; i++) {
        struct slot *s = &t->slots[i];
        struct breaker_view view = breaker_decode(s->word);
        if (s->identity == 0)
            continue;
        law(breaker_encode(&view) == s->word, "what is written is what is read");
        if (view.phase > BREAKER_HALF_OPEN)
            s->word = breaker_reset(s->word);
    }
}

static inline void connect_refused(void)
{
    static struct shim_call call;

    law(chat(&call, "n") == SHIM_ADMITTED, "fewer failures than the threshold refuse nobody");
    end_kind(&call, END_CONNECT, PHASE_CONNECTING, 0.1);
}

/* When every deadline is over: calls go, what they tell counts, and failures open again. */
static inline void check_usable(struct table *t)
{
    struct slot_totals before = totals_of(SCENE_M), after;
    char text[TABLE_KEY_TEXT_SIZE];

    law(call_status("m", 200) == SHIM_ADMITTED,
        "nothing is refused beyond the open time or a lease");
    struct slot *s = slot_of(SCENE_M);
    law(s && table_find(t, table_identity(t, SPAN_LIT(SCENE_M))) != NULL, "a key can be claimed");
    law(breaker_is_clean(slot_word(s)), "one good call closes");
    for (unsigned i = 0; i < 3; i++)
        law(call_status("m", 500) == SHIM_ADMITTED,
            "fewer failures than the threshold refuse nobody");
    law(call_status("m", 500) == SHIM_REFUSED, "failures in a row open at the threshold");
    law(table_key_read(s, text, sizeof text) == strlen(SCENE_M) && strcmp(text, SCENE_M) == 0,
        "a key whose claimer died is written when it fails");
    after = totals_of(SCENE_M);
    law(after.success == before.success + 1 && after.failure == before.failure + 3 &&
            after.refused == before.refused + 1,
        "each call is counted once");
    for (unsigned i = 0; i < 3; i++)
        connect_refused();
    law(call_status("n", 200) == SHIM_REFUSED, "failures in a row open at the threshold");
}

/* In a process of its own: what it finds there must not depend on what was found before. */
static inline void check_by_another(const struct place *place, const struct left *left,
                                    const struct left *was, const struct left *becomes)
{
    struct table t;

    signal(SIGALRM, law_of_alarm);
    alarm(LAWS_SECONDS);
    check_files(left, becomes);
    if (left->table)
        check_slots(left, was, becomes);
    scene_enter(place, scene_now->at + SCENE_WAIT_SECONDS, NULL);
    check_found(&t);
    check_places(&t);
    check_usable(&t);
    check_places(&t);
}

/* Do they hold? */
static inline bool laws_hold(const struct place *place, const struct left *left,
                             const struct left *was, const struct left *becomes)
{
    int status = -1;

    fflush(NULL);
    pid_t pid = fork();
    place_must(pid >= 0, "fork");
    if (pid == 0) {
        check_by_another(place, left, was, becomes);
        _exit(0);
    }
    place_must(waitpid(pid, &status, 0) == pid, "waitpid");
    if (WIFSIGNALED(status))
        fprintf(stderr, "law broken: nobody dies of what another left (%s, signal %d)\n",
                scene_now->name, WTERMSIG(status));
    return status == 0;
}

#endif
