/*
 * cli_sorted.c - problems in the order of the lines, whenever they were seen.
 */
#include "cli/cli.h"

#include <stdlib.h>

struct cli_finding {
    struct config_problem problem;
    size_t number, first; /* in the order of coming; of the first finding of its file */
};

/* Without memory it is told at once: out of its place, but not lost. */
void cli_sorted_keep(const struct config_problem *problem, void *data)
{
    struct cli_sorted *sorted = data;

    if (sorted->count == sorted->room) {
        size_t room = sorted->room ? 2 * sorted->room : 16;
        void *list = reallocarray(sorted->list, room, sizeof *sorted->list);
        if (!list) {
            sorted->report(problem, sorted->data);
            return;
        }
        sorted->list = list;
        sorted->room = room;
    }
    struct cli_finding *finding = &sorted->list[sorted->count];
    *finding = (struct cli_finding){.problem = *problem, .number = sorted->count++};
}

static int compare(size_t a, size_t b)
{
    return (a > b) - (a < b);
}

static int by_file(const void *left, const void *right)
{
    const struct cli_finding *a = left, *b = right;
    int order = strcmp(a->problem.file, b->problem.file);

    return order ? order : compare(a->number, b->number);
}

static int by_first_and_line(const void *left, const void *right)
{
    const struct cli_finding *a = left, *b = right;
    int order = compare(a->first, b->first);

    if (order == 0)
        order = compare(a->problem.line, b->problem.line);
    return order ? order : compare(a->number, b->number);
}

void cli_sorted_tell(struct cli_sorted *sorted)
{
    struct cli_finding *list = sorted->list;

    if (sorted->count > 0)
        qsort(list, sorted->count, sizeof *list, by_file);
    for (size_t i = 0; i < sorted->count; i++)
        list[i].first = i > 0 && strcmp(list[i - 1].problem.file, list[i].problem.file) == 0
                            ? list[i - 1].first
                            : list[i].number;
    if (sorted->count > 0)
        qsort(list, sorted->count, sizeof *list, by_first_and_line);
    for (size_t i = 0; i < sorted->count; i++)
        sorted->report(&list[i].problem, sorted->data);
    free(list);
    sorted->list = NULL;
    sorted->count = sorted->room = 0;
}
