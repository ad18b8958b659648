/* Binary functions of formats of a byte or less: tables of the results of all pairs. */
#ifndef TF32DTYPE_UFUNCS_PAIR_TABLES_H
#define TF32DTYPE_UFUNCS_PAIR_TABLES_H

#include <stddef.h>

#include "formats/byte_lookup.h"
#include "formats/formats.h"

/* Has a result, and in higher bits the flags that it raises, for each pair of codes. */
struct tf_pair_table;

/* Computes n results, and the flags that each of them raises. */
typedef void tf_pairs_fn(int format, int op, const uint8_t *a, const uint8_t *b,
                         uint8_t *results, uint8_t *flags, size_t n);

enum { TF_PAIR_OPERATIONS = 32 };

/* The width of formats so narrow that a lookup takes less time than any operation. */
enum { TF_FEW_BITS = 4 };

/* Returns the table of an operation, of which n more results are wanted. Returns NULL if a
 * table is not worth making, or memory is short: then compute the results. */
const struct tf_pair_table *tf_pair_table(int format, int op, ptrdiff_t n,
                                          tf_pairs_fn *compute);

/* Looks up n results, returns their flags. `serial`: some are operands of later ones. */
unsigned tf_look_up_pairs(const struct tf_pair_table *table, char *const data[3],
                          const ptrdiff_t strides[3], ptrdiff_t n, int serial);

/* Looks up x[i] = op(x[i], y): data and strides are those of tf_binary_at. */
unsigned tf_look_up_pairs_at(const struct tf_pair_table *table, char *const data[3],
                             const ptrdiff_t strides[3], ptrdiff_t size, ptrdiff_t n);

#endif
