/* Kernels for products of vectors: they advance many chains of fused multiply-adds at once.
 *
 * A chain waits for each of its sums. Therefore the chains of 16 lines of memory fill a
 * vector. Four rounds of exchange turn pieces of 32 bytes of 16 lines into eight vectors
 * with a word of each line. Words are converted to numbers when they are multiplied. Two
 * groups of 16 lines take turns, because a single group would wait for its sums. The last
 * piece of a line is filled up with -0 in one operand and 0 in the other, whose product
 * changes no sum. Both operands of bytes have code 0 instead, because no sum is -0:
 * products of formats with a sign do not underflow, and float8_e8m0fnu, where code 0 is
 * 2^-127, has no negative products.
 *
 * Preconditions of bytes, bf16 and singles:
 *
 * - in->a, in->b: 32 pointers (TF_DOT_LINES) to lines of `depth` adjoining items, of any
 *   alignment. Pointers after the first `count` are valid, too: callers repeat the first.
 * - in->a == in->b: the lines times themselves.
 * - in->numbers, if not NULL: `depth` floats, then -0 up to a multiple of 64
 *   (TF_DOT_WHOLE). b is not read, but is not NULL.
 * - in->table: the table of the format, for bytes.
 * - in->used: the bits that count, for singles.
 * - depth: any. Callers pass at most 256 (TF_KC), by contract.
 * - count: 1 to 32.
 * - sums: room for 32 floats. More than `count` sums may be written.
 * - Exception flags of the processor may be cleared: callers save them (tf_fp_begin). */
#include "matmul/kernels/dot_chains.h"

/* Preconditions:
 *
 * - a, b: aligned floats, 16 for each k: those of the 16 chains (TF_DOT_CHAINS) adjoin.
 * - depth: any.
 * - sums: room for 16 floats, which do not overlap a or b. */
static void lanes(const float *restrict a, const float *restrict b, size_t depth,
                  float *restrict sums)
{
    float chains[CHAINS] = {0};
    for (size_t k = 0; k < depth; k++) {
        for (size_t i = 0; i < CHAINS; i++) {
            chains[i] = __builtin_fmaf(a[k * CHAINS + i], b[k * CHAINS + i], chains[i]);
        }
    }
    memcpy(sums, chains, sizeof chains);
}

#if HAS_CHAINS
extern tf_dot_fn TF_PLAIN_NAME(tf_dot_singles);

INSTANCE(bf16, BF16)
#if defined(__AVX2__) && !defined(__AVX512F__)
INSTANCE(any_bytes, BYTES)
INSTANCE(finite_bytes, FINITE)
#define HAS_BYTES

static void bytes(const struct tf_dot_operands *in, size_t depth, size_t count,
                  float *sums)
{
    if (in->table->as_bf16->is_possible) {
        finite_bytes(in, depth, count, sums);
    } else {
        any_bytes(in, depth, count, sums);
    }
}
#elif defined(__AVX512VBMI__)
INSTANCE(any_bytes, BYTES)
INSTANCE(halved_bytes, HALVED)
#define HAS_BYTES

static void bytes(const struct tf_dot_operands *in, size_t depth, size_t count,
                  float *sums)
{
    if (in->table->halved) {
        halved_bytes(in, depth, count, sums);
    } else {
        any_bytes(in, depth, count, sums);
    }
}
#endif

const struct tf_dot TF_NAME(tf_dot) = {
    .lanes = lanes,
#if defined(HAS_BYTES)
    .bytes = bytes,
#endif
    .bf16 = bf16,
    .singles = TF_PLAIN_NAME(tf_dot_singles),
};
const struct tf_dot TF_NAME(tf_dot_of_singles) = {
    .lanes = lanes,
    .singles = TF_PLAIN_NAME(tf_dot_singles),
};
#else
const struct tf_dot TF_NAME(tf_dot) = {.lanes = lanes};
const struct tf_dot TF_NAME(tf_dot_of_singles) = {.lanes = lanes};
#endif
