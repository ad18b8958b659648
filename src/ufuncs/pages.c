/* Pages of partial results: found by number, made on first use. */
#include "ufuncs/pages.h"

#include <stdlib.h>
#include <string.h>

struct tf_partials *tf_partials_new(int is_reduction)
{
    struct tf_partials *partials = calloc(1, sizeof *partials);
    if (partials) {
        partials->is_reduction = (uint8_t)is_reduction;
    }
    return partials;
}

void tf_partials_free(struct tf_partials *partials)
{
    for (ptrdiff_t i = 0; i < partials->count; i++) {
        free(partials->pages[i]);
    }
    free(partials->pages);
    free(partials);
}

static struct tf_page *new_page(size_t size, enum tf_reduction op)
{
    enum { LINE = 64, MOST_BYTES = 4 /* of an item */ };
    const size_t exponents = op == TF_PROD ? size : 0;
    char *place = calloc(1, sizeof(struct tf_page) + LINE +
                                size * (sizeof(double) + MOST_BYTES + 2) +
                                exponents * sizeof(int64_t));
    if (!place) {
        return NULL;
    }
    struct tf_page *page = (struct tf_page *)place;
    place += sizeof *page;
    place += LINE - (uintptr_t)place % LINE;
    page->values = (double *)place;
    page->exponents = (int64_t *)(page->values + size);
    page->items = (unsigned char *)(page->exponents + exponents);
    page->live = page->items + size * MOST_BYTES;
    page->overflows = page->live + size;
    page->finite = 1;
    return page;
}

struct tf_page *tf_find_page(struct tf_partials *partials, ptrdiff_t number,
                             enum tf_reduction op)
{
    if (partials->count == 0) {
        partials->first = number;
    }
    const ptrdiff_t end = partials->first + partials->count;
    if (number < partials->first || number >= end) {
        /* Double the room, on the side that lacks it. */
        const ptrdiff_t slack = partials->count;
        const ptrdiff_t first =
            number < partials->first ? number - slack : partials->first;
        const ptrdiff_t last = number >= end ? number + slack : end - 1;
        struct tf_page **pages = calloc((size_t)(last - first + 1), sizeof *pages);
        if (!pages) {
            return NULL;
        }
        if (partials->count) {
            memcpy(pages + (partials->first - first), partials->pages,
                   (size_t)partials->count * sizeof *pages);
        }
        free(partials->pages);
        partials->pages = pages;
        partials->first = first;
        partials->count = last - first + 1;
    }
    struct tf_page **place = &partials->pages[number - partials->first];
    if (!*place) {
        *place = new_page((size_t)1 << partials->page_bits, op);
    }
    return *place;
}
