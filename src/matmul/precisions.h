/* The ways to compute float32 products, by their names. */
#ifndef TF32DTYPE_MATMUL_PRECISIONS_H
#define TF32DTYPE_MATMUL_PRECISIONS_H

/* docs/how_to/precision.md, "The precisions". */
struct tf_precision_row {
    const char *preset, *name; /* the long name (JAX's), the short one */
    int format;       /* what operands are rounded to: a format, TF_FLOAT16, TF_FLOAT32 */
    int parts;        /* how many of its numbers stand for an operand's */
    int split_orders; /* how many orders of magnitude of products are summed */
};

/* The last has no names. */
extern const struct tf_precision_row tf_precisions[];

/* Returns the row of a name, long or short, in any case; NULL if there is none. */
const struct tf_precision_row *tf_find_precision(const char *name);

#endif
