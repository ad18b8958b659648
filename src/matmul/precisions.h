/* Precisions: how a product converts its float32 and float64 operands, and their names. */
#ifndef TF32DTYPE_MATMUL_PRECISIONS_H
#define TF32DTYPE_MATMUL_PRECISIONS_H

/* The scales that divide numbers before they are rounded: none, one for each matrix, or one
 * for each row of A and column of B. A scale is the largest finite magnitude of these
 * numbers divided by that of the format. */
enum tf_scaling { TF_UNSCALED, TF_SCALED_MATRIX, TF_SCALED_LINES };

/* How NumPy's float32 and float64 numbers are converted before they are multiplied. Numbers
 * of our formats and float16 are not converted. If parts > 1, operands of every dtype are
 * split into components. */
struct tf_precision {
    int format;    /* numbers are rounded to it: a format, TF_FLOAT16 or TF_FLOAT32 */
    int rounding;  /* enum tf_rounding; tf32 also has ties_to_away and toward_zero */
    int scaling;   /* enum tf_scaling */
    int parts;     /* components of a number: 1, 2 or 3 (operand_split.h) */
    int split_orders; /* if parts > 1: 2 (3 products), 3 (6 products) or 5 (9 products) */
    int saturates; /* in operands that are split, Inf counts as the largest number */
    /* Computes the tiles of C as a tensor core does (tensor_core/mma_matmul.h). If it is
     * NULL, this CPU's float32 arithmetic computes them, and the members below are 0. */
    const struct tf_tile_path *path;
    int promote;   /* k after which accumulators are added to others; 0: never */
    int continues; /* the accumulators begin with C, not with zero */
    int silent;    /* no flags are raised */
};

/* docs/reference/precision.md, "The precisions". */
struct tf_precision_row {
    const char *preset, *name; /* the long name (JAX's), the short one */
    int format;       /* operands are rounded to it: a format, TF_FLOAT16 or TF_FLOAT32 */
    int parts;        /* components of a number of an operand */
    int split_orders; /* split orders that are summed: split_schedule.h */
};

/* All precisions. The last row has no names. */
extern const struct tf_precision_row tf_precisions[];

/* Returns the row of a long or short name, in upper or lower case; NULL if there is
 * none. */
const struct tf_precision_row *tf_find_precision(const char *name);

#endif
