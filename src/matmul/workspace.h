/* The cache blocking of products, and a thread's scratch memory of these sizes. */
#ifndef TF32DTYPE_MATMUL_WORKSPACE_H
#define TF32DTYPE_MATMUL_WORKSPACE_H

#include <stddef.h>
#include <string.h>

#include "matmul/kernels.h"
#include "matmul/operand_split.h"
#include "runtime/sizes.h"
#include "runtime/stops.h"
#include "runtime/thread_pool.h"

/* Cache blocking, as in BLIS. MR x NR of C are in registers. KC words x NR of B are meant
 * for L1: at most 64 KiB, which L1 does not hold, and 32 KiB in the tall kernel. MC rows of
 * A are in L2: 347 KiB for TF_PACKED_WORDS words each. NC columns of B are in L3: 2 MiB.
 * Split operands have KC words of up to three components each: 536 KiB of A and 3 MiB of
 * B. */
enum {
    /* Rows of A that are packed at a time, and rows of a tile of C. MC, a tile and half a
     * tile are whole micro-tiles of 6 and of 14 rows. */
    TF_MC = 4 * 42,
    TF_TILE_M = 7 * TF_MC,
    TF_NC = TF_CHUNK,
    /* The distance of rows of sums, no power of two: such rows would share cache sets. */
    TF_LDC = TF_NC + 16,
    TF_COMPACT = 256, /* columns up to which rows of sums adjoin and are stored together */
    TF_NR_MAX = 64,   /* largest NR, columns of a panel of B */
    TF_GAP = 16,      /* words between rows of A of 256 words or more, for the cache sets */
    TF_GEMV_K = 16 * TF_KC, /* largest k at a time of GEMV along k */
    TF_GEMV_N = 4096,       /* columns of a tile of GEMV, whose sums are for L1 */
    /* Distances of components in packed A, in packed B and, below, in `lines`. */
    TF_PACKED_A = TF_MC * (TF_KC + TF_GAP),
    TF_PACKED_B = TF_KC * TF_NC,
    TF_MC_FILLED = 176, /* MC, rounded up to whole vectors */
    TF_PACKED_WORDS = 2 * TF_KC, /* words that are packed at a time from an unsplit line */
    TF_OPERAND_PART = TF_KC * TF_MC_FILLED,
};

/* Lines along k for which a tensor core multiplies an Inf or a NaN. A bit stands for a k,
 * and a word for 64 k of a line. `some` and `nan` are whether a line has any, and a NaN. */
struct tf_special_lines {
    uint64_t infinite[TF_KC / 64][TF_NC], zero[TF_KC / 64][TF_NC];
    uint64_t negative[TF_KC / 64][TF_NC];
    uint8_t some[TF_NC], nan[TF_NC];
};

/* A thread's scratch memory: about 12.7 MB, of which small products touch little. Arrays
 * from which vectors are loaded begin with cache lines. */
struct tf_workspace {
    float sums[TF_TILE_M * TF_LDC];
    float b[TF_PARTS * TF_PACKED_B];
    float a[TF_PARTS * TF_PACKED_A];
    float lines[TF_PARTS * TF_OPERAND_PART]; /* before they are transposed to a or b */
    float part[TF_MC * TF_NR_MAX]; /* sums of components, before they are added to `sums` */
    float singles[TF_PARTS][TF_CHUNK];
    uint16_t bf16[2][TF_PARTS][TF_CHUNK];
    uint32_t a_exponents[TF_PARTS * TF_PACKED_A]; /* for tensor cores */
    uint32_t b_exponents[TF_PARTS * TF_PACKED_B / 2];
    size_t ld;        /* distance of rows of sums */
    int has_specials; /* numbers that were split have an Inf or NaN */
    uint8_t in_row[TF_TILE_M], in_column[TF_NC]; /* marks of Inf and NaN: specials.h */
    /* For tensor cores: Inf and NaN in rows of A and in columns of B, and the results of
     * sums that they determine. */
    struct tf_special_lines specials[2];
    uint8_t outcomes[TF_TILE_M * TF_NC];
    int has_outcomes;
    struct tf_watch *watch; /* of the call */
    int asks;               /* this thread made the call */
};

/* Returns a thread's scratch memory, for one of its tasks. */
static inline struct tf_workspace *tf_workspace_of(struct tf_worker *worker)
{
    struct tf_workspace *work = worker->scratch;
    work->watch = worker->watch;
    work->asks = worker->asks;
    return work;
}

/* Returns whether the call is to stop. If so, the contents of the workspace do not
 * count. */
static inline int tf_stops(struct tf_workspace *work)
{
    return tf_is_stopped(work->watch, work->asks);
}

_Static_assert((int)TF_KC <= (int)TF_CHUNK && (int)TF_NR_MAX <= (int)TF_MC_FILLED &&
                   (int)TF_MC <= (int)TF_MC_FILLED && TF_MC_FILLED % 16 == 0,
               "lines fit");
_Static_assert((int)TF_PACKED_WORDS <= (int)TF_PARTS * TF_KC, "one part takes all room");
_Static_assert(TF_TILE_M / 2 % 42 == 0, "two sets of sums");

#define TF_STARTS_CACHE_LINE(member) (offsetof(struct tf_workspace, member) % 64 == 0)
_Static_assert(TF_STARTS_CACHE_LINE(b) && TF_STARTS_CACHE_LINE(a) &&
                   TF_STARTS_CACHE_LINE(lines) && TF_STARTS_CACHE_LINE(singles) &&
                   TF_STARTS_CACHE_LINE(bf16) && TF_STARTS_CACHE_LINE(a_exponents) &&
                   TF_STARTS_CACHE_LINE(b_exponents),
               "no vector crosses cache lines");

/* Returns the number of columns, rounded up to whole panels. */
static inline size_t tf_filled(size_t columns, struct tf_kernel kernel)
{
    return tf_round_up((ptrdiff_t)columns, (ptrdiff_t)kernel.columns);
}

/* Adds n sums to others, or copies them if not `adds`. */
static inline void tf_add_row(const float *from, float *to, size_t n, int adds)
{
    if (adds) {
        tf_isa->matmul->add(from, to, n);
    } else {
        memcpy(to, from, n * sizeof *to);
    }
}

/* Returns the second set of sums, for split operands and promoted accumulators. */
static inline float *tf_more_sums(struct tf_workspace *work)
{
    return work->sums + TF_TILE_M / 2 * TF_LDC;
}

#endif
