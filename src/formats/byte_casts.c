/* Tables of casts between kinds of one byte. A table is made when enough items of its
 * pair of kinds have been cast. */
#include "formats/byte_casts.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { ENOUGH = 4096 /* items whose casts take as long as one table */ };

static _Atomic(struct tf_pair_line *) tables[TF_KIND_COUNT][TF_KIND_COUNT];
static atomic_long seen[TF_KIND_COUNT][TF_KIND_COUNT];

static struct tf_pair_line *make_table(int from, int to, tf_cast_bytes *cast)
{
    struct tf_pair_line *table = malloc(sizeof *table);
    if (!table) {
        return NULL;
    }
    table->all_flags = 0;
    for (int i = 0; i < 256; i++) {
        const uint8_t item = (uint8_t)i;
        table->flags[i] = (uint8_t)cast(from, to, &item, &table->results[i], 1);
        table->all_flags |= table->flags[i];
    }
    return table;
}

/* Threads that race may make the same table twice; the later copy is freed. */
const struct tf_pair_line *tf_byte_cast(int from, int to, ptrdiff_t n,
                                        tf_cast_bytes *cast)
{
    struct tf_pair_line *table = atomic_load(&tables[from][to]);
    if (table || atomic_fetch_add(&seen[from][to], (long)n) + n < ENOUGH) {
        return table;
    }
    struct tf_pair_line *made = make_table(from, to, cast);
    if (made && !atomic_compare_exchange_strong(&tables[from][to], &table, made)) {
        free(made);
        return table;
    }
    return made;
}
