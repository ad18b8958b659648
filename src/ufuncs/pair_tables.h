/* Binary functions of formats of a byte or less: tables of the results of all pairs. */
#ifndef TF32DTYPE_UFUNCS_PAIR_TABLES_H
#define TF32DTYPE_UFUNCS_PAIR_TABLES_H

#include <stddef.h>

#include "formats/byte_lookup.h"
#include "formats/formats.h"

/* A result, and above it what that raises, for each pair of codes. */
struct tf_pair_table;

/* Computes n results, and what each of them raises. */
typedef void tf_pairs_fn(int format, int op, const uint8_t *a, const uint8_t *b,
                         uint8_t *results, uint8_t *flags, size_t n);

enum { TF_PAIR_OPERATIONS = 32 };

/* Of formats so narrow a look-up takes less than any operation. */
enum { TF_FEW_BITS = 4 };

/* The table of an operation, of which n more results are wanted; NULL if none is worth
 * making, or there is no memory for it: then they have to be computed. */
const struct tf_pair_table *tf_pair_table(int format, int op, ptrdiff_t n,
                                          tf_pairs_fn *compute);

/* Looks up n results. `serial`: some are operands of those after them. */
unsigned tf_look_up_pairs(const struct tf_pair_table *table, char *const data[3],
                          const ptrdiff_t strides[3], ptrdiff_t n, int serial);

/* The same of x[i] = op(x[i], y): data and strides are those of tf_binary_at. */
unsigned tf_look_up_pairs_at(const struct tf_pair_table *table, char *const data[3],
                             const ptrdiff_t strides[3], ptrdiff_t size, ptrdiff_t n);

#endif
