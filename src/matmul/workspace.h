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

/* Cache blocking, as in BLIS: MR x NR of C in registers; KC words x NR of B, 64 KiB at
 * most and 32 KiB of a tall kernel, in the first cache; MC rows of A, TF_PACKED_WORDS
 * each, 347 KiB, in the second; and NC columns of B, TF_PACKED_WORDS each, 2 MiB, in the
 * third. Split operands have KC words of up to three parts each: 536 KiB of A and 3 MiB
 * of B. */
enum {
    /* Rows of A packed at a time, for the second cache, and of C: whole micro-tiles of
     * 6 and of 14 rows, in half a tile too. */
    TF_MC = 4 * 42,
    TF_TILE_M = 7 * TF_MC,
    TF_NC = TF_CHUNK,
    /* Rows of sums lie apart by no power of two, which would share cache sets. */
    TF_LDC = TF_NC + 16,
    TF_COMPACT = 256, /* columns up to which they adjoin, to be stored together */
    TF_NR_MAX = 64,   /* panel of B */
    TF_GAP = 16,      /* words between long rows of A: not all in the same cache sets */
    TF_GEMV_K = 16 * TF_KC, /* k at a time of a single row */
    TF_GEMV_N = 4096,               /* and columns: sums for the first cache */
    /* From a part of an MC panel, of columns, or of lines on their way, to the next. */
    TF_PACKED_A = TF_MC * (TF_KC + TF_GAP),
    TF_PACKED_B = TF_KC * TF_NC,
    TF_MC_FILLED = 176, /* MC, filled up to whole vectors */
    TF_PACKED_WORDS = 2 * TF_KC, /* packed at a time from an unsplit line */
    TF_OPERAND_PART = TF_KC * TF_MC_FILLED,
};

/* Lines along k of which a tensor core multiplies an Inf or a NaN: bits of 64 k each, line
 * after line; and whether a line has some, and a NaN. */
struct tf_special_lines {
    uint64_t infinite[TF_KC / 64][TF_NC], zero[TF_KC / 64][TF_NC];
    uint64_t negative[TF_KC / 64][TF_NC];
    uint8_t some[TF_NC], nan[TF_NC];
};

/* A thread's scratch memory: about 11 MB, of which small products touch little. Arrays
 * that vectors are loaded from begin with cache lines. */
struct tf_workspace {
    float sums[TF_TILE_M * TF_LDC];
    float b[TF_PARTS * TF_PACKED_B];
    float a[TF_PARTS * TF_PACKED_A];
    float lines[TF_PARTS * TF_OPERAND_PART]; /* on their way to a or b */
    float part[TF_MC * TF_NR_MAX]; /* sums of parts, before they are added */
    float singles[TF_PARTS][TF_CHUNK];
    uint16_t bf16[2][TF_PARTS][TF_CHUNK];
    uint32_t a_exponents[TF_PARTS * TF_PACKED_A]; /* for tensor cores */
    uint32_t b_exponents[TF_PARTS * TF_PACKED_B / 2];
    size_t ld;        /* from row to row of sums */
    int has_specials; /* among numbers that were split */
    uint8_t in_row[TF_TILE_M], in_column[TF_NC]; /* what is not finite */
    /* Rows of A and columns of B; and the results that these force on sums, if any. */
    struct tf_special_lines specials[2];
    uint8_t outcomes[TF_TILE_M * TF_NC];
    int has_outcomes;
    struct tf_watch *watch; /* of the call */
    int asks;               /* this thread made it */
};

/* A thread's scratch memory, for one of its tasks. */
static inline struct tf_workspace *tf_workspace_of(struct tf_worker *worker)
{
    struct tf_workspace *work = worker->scratch;
    work->watch = worker->watch;
    work->asks = worker->asks;
    return work;
}

/* Whether the call is to stop, and what is in the workspace does not count. */
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

/* Returns the columns of all panels, whole ones. */
static inline size_t tf_filled(size_t columns, struct tf_kernel kernel)
{
    return tf_round_up((ptrdiff_t)columns, (ptrdiff_t)kernel.columns);
}

static inline void tf_add_row(const float *from, float *to, size_t n, int adds)
{
    if (adds) {
        tf_isa->matmul->add(from, to, n);
    } else {
        memcpy(to, from, n * sizeof *to);
    }
}

/* Where tiles of parts have a second set of sums. */
static inline float *tf_more_sums(struct tf_workspace *work)
{
    return work->sums + TF_TILE_M / 2 * TF_LDC;
}

#endif
