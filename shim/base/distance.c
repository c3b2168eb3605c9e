#include "base/distance.h"

static struct span cut(struct span text)
{
    return span_of(text.ptr, text.len < DISTANCE_MAX ? text.len : DISTANCE_MAX);
}

unsigned distance_of(struct span a, struct span b)
{
    unsigned row[DISTANCE_MAX + 1];

    a = cut(a);
    b = cut(b);
    for (unsigned j = 0; j <= b.len; j++)
        row[j] = j;
    for (unsigned i = 1; i <= a.len; i++) {
        unsigned diagonal = row[0];
        row[0] = i;
        for (unsigned j = 1; j <= b.len; j++) {
            unsigned replaced = diagonal + (a.ptr[i - 1] != b.ptr[j - 1]);
            unsigned shorter = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = replaced < shorter ? replaced : shorter;
        }
    }
    return row[b.len];
}

unsigned distance_if_near(struct span a, struct span b)
{
    size_t longer = a.len > b.len ? a.len : b.len;
    unsigned distance = distance_of(a, b);

    return 3 * (size_t)distance <= longer ? distance : DISTANCE_FAR;
}
