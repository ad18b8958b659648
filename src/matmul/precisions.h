/* How a product takes float32 numbers, and the ways to do so by their names. */
#ifndef TF32DTYPE_MATMUL_PRECISIONS_H
#define TF32DTYPE_MATMUL_PRECISIONS_H

/* Which scale divides numbers before they are rounded: their largest finite magnitude
 * over the format's, for each matrix or for each row of A and column of B. */
enum tf_scaling { TF_UNSCALED, TF_SCALED_MATRIX, TF_SCALED_LINES };

/* How NumPy's float32 and float64 numbers are converted before they are multiplied.
 * Numbers of our formats and float16 are multiplied as they are. If parts > 1, every
 * operand is split, whatever its dtype. */
struct tf_precision {
    int format;    /* what they are rounded to: a format, TF_FLOAT16 or TF_FLOAT32 */
    int rounding;  /* enum tf_rounding: tf32 also to ties_to_away and toward_zero */
    int scaling;   /* enum tf_scaling */
    int parts;     /* 1; or 2 or 3, of bfloat16 or tf32: operand_split.h */
    int split_orders; /* of 2 or 3 parts: which products, 2 (of 3), 3 (6) or 5 (9) */
    int saturates; /* Inf counts as the largest number, in a split */
    /* Computes the tiles of C instead of this CPU's float32: a tensor core
     * (tensor_core/mma_matmul.h); or NULL. The members below are 0 then. */
    const struct tf_tile_path *path;
    int promote;   /* k after which accumulators are added to others; 0: never */
    int continues; /* the accumulators begin with C, not with zero */
    int silent;    /* no flags are raised */
};

/* docs/reference/precision.md, "The precisions". */
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
