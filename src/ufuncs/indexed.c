/* Gathers distinct items in a batch, applies the operation to all, and writes them back. A
 * batch ends before an item that may already be in it: a table, in which items share
 * entries, has the last batch with an item of each entry. */
#include "ufuncs/indexed.h"

#include <string.h>

#include "ufuncs/binary.h"
#include "ufuncs/few.h"
#include "formats/formats.h"
#include "runtime/indices.h"

enum { BATCH = 64, PLACES = 4096, FEW_PLACES = 256 };

void tf_binary_at(int format, enum tf_binary_op op, char *const data[3],
                  const ptrdiff_t strides[3], ptrdiff_t size, ptrdiff_t n)
{
    const size_t itemsize = tf_format_rows[format]->itemsize;
    const size_t places = n < FEW_PLACES ? FEW_PLACES : PLACES;
    size_t last_batch[PLACES];
    _Alignas(uint32_t) char items[BATCH * sizeof(uint32_t)];
    char *from[BATCH];
    const char *index = data[1];
    char *operand = data[2];
    memset(last_batch, 0, places * sizeof *last_batch);
    for (size_t batch = 1; n > 0; batch++) {
        size_t count = 0;
        char *const rest[3] = {data[0], (char *)index, operand};
        const ptrdiff_t done = tf_few_at(format, op, rest, strides, size, n);
        index += done * strides[1];
        operand += done * strides[2];
        n -= done;
        for (; count < BATCH && (ptrdiff_t)count < n; count++) {
            const ptrdiff_t i = tf_index_at(index, strides[1], size, (ptrdiff_t)count);
            size_t *place = &last_batch[(size_t)i & (places - 1)];
            if (*place == batch) {
                break;
            }
            *place = batch;
            from[count] = data[0] + i * strides[0];
            memcpy(items + count * itemsize, from[count], itemsize);
        }
        char *const operands[3] = {items, operand, items};
        const ptrdiff_t steps[3] = {(ptrdiff_t)itemsize, strides[2],
                                    (ptrdiff_t)itemsize};
        tf_binary(format, op, operands, steps, (ptrdiff_t)count);
        for (size_t i = 0; i < count; i++) {
            memcpy(from[i], items + i * itemsize, itemsize);
        }
        index += (ptrdiff_t)count * strides[1];
        operand += (ptrdiff_t)count * strides[2];
        n -= (ptrdiff_t)count;
    }
}
