/* Operands of products on their way to packed words: kernels/micro_kernel.c says what
 * those are. */
#ifndef TF32DTYPE_MATMUL_PACK_H
#define TF32DTYPE_MATMUL_PACK_H

#include <stddef.h>

#include "formats/number_kinds.h"
#include "matmul/kernels.h"
#include "matmul/operand_split.h"
#include "runtime/stops.h"
#include "runtime/thread_pool.h"

/* Cache blocking, as in BLIS: MR x NR of C in registers; KC words x NR of B, 64 KiB at
 * most and 32 KiB of a tall kernel, in the first cache; MC rows of A, TF_PACKED_WORDS
 * each, 347 KiB, in the second; and NC columns of B, TF_PACKED_WORDS each, 2 MiB, in the
 * third. Of split operands KC words of up to three parts each: 536 KiB of A and 3 MiB of
 * B. */
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
    TF_PACKED_WORDS = 2 * TF_KC, /* of a line, packed at a time of what is not split */
    TF_OPERAND_PART = TF_KC * TF_MC_FILLED,
};

/* Lines along k of which a tensor core multiplies an Inf or a NaN: bits of 64 k each, line
 * after line; and whether a line has some, and a NaN. */
struct tf_special_lines {
    uint64_t infinite[TF_KC / 64][TF_NC], zero[TF_KC / 64][TF_NC];
    uint64_t negative[TF_KC / 64][TF_NC];
    uint8_t some[TF_NC], nan[TF_NC];
};

/* What a thread works in: about 11 MB, of which small products touch little. What
 * vectors are loaded from begins with cache lines. */
struct tf_workspace {
    float sums[TF_TILE_M * TF_LDC];
    float b[TF_PARTS * TF_PACKED_B];
    float a[TF_PARTS * TF_PACKED_A];
    float lines[TF_PARTS * TF_OPERAND_PART]; /* on their way to a or b */
    float part[TF_MC * TF_NR_MAX]; /* sums of parts, before they are added */
    float singles[TF_PARTS][TF_CHUNK];
    uint16_t bf16[2][TF_PARTS][TF_CHUNK];
    uint32_t a_exponents[TF_PARTS * TF_PACKED_A]; /* of what tensor cores multiply */
    uint32_t b_exponents[TF_PARTS * TF_PACKED_B / 2];
    size_t ld;        /* from row to row of sums */
    int has_specials; /* among numbers that were split */
    uint8_t in_row[TF_TILE_M], in_column[TF_NC]; /* what is not finite */
    /* Of rows of A and of columns of B; and what becomes of sums, if there is some. */
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

/* A matrix seen as lines, each with numbers along k: rows of A, columns of B. */
struct tf_operand {
    const char *data;
    ptrdiff_t stride;    /* from line to line */
    ptrdiff_t along;     /* from k to k */
    int kind;            /* of the numbers stored */
    int format;          /* what they are rounded to if it is another kind */
    int rounding;        /* how, if that is tf32 */
    int parts;           /* that each number is split into; 1 if it is not */
    int p;               /* significant bits of a part */
    const float *scales; /* of each line: numbers are divided by it; or NULL */
};

static inline struct tf_operand tf_operand_from(struct tf_operand x, ptrdiff_t line,
                                            ptrdiff_t k)
{
    x.data += line * x.stride + k * x.along;
    x.scales = x.scales ? x.scales + line : NULL;
    return x;
}

/* Whether numbers of a line lie closer together than those of a k. */
int tf_runs_along(struct tf_operand x);

/* Packed words of so many k, each as an enum tf_packing says. */
size_t tf_packed_words(size_t depth, int packing);

/* From row to row of A. */
static inline size_t tf_lda_of(size_t words)
{
    return words < TF_KC ? words : words + TF_GAP;
}

/* Numbers of a kind as float32: a format's exactly, float64 rounded to nearest. Where
 * they lie in memory, or in the buffer. */
const float *tf_load_floats(int kind, const char *data, ptrdiff_t stride, size_t n,
                            float *buffer);

/* The same of whole lines of up to TF_CHUNK numbers, one after the other in `out`. */
void tf_load_lines(struct tf_operand x, size_t k, size_t count, float *out);

/* Numbers of a line as bfloat16, in every part, `distance` apart: in `out`, or one part
 * where it lies in memory. `scales` are one for all numbers (step 0) or one for each
 * (1). What magnitudes they have is noted if `range` is not NULL. */
const uint16_t *tf_load_bf16(struct tf_operand x, ptrdiff_t stride, size_t n,
                               ptrdiff_t step, uint16_t *out, size_t distance,
                               struct tf_magnitude_range *range);

/* `count` lines of x that run along k, `ld` words apart; parts `distance` apart. */
void tf_pack_along(struct tf_workspace *work, struct tf_operand x, size_t count,
                   size_t depth, int pairs, float *out, size_t ld, size_t distance,
                   struct tf_magnitude_range *range);

/* A whole line as float32, as it is multiplied: part after part, `distance` apart.
 * Whether there is an Inf or NaN among numbers that are split. */
int tf_load_line(struct tf_operand x, size_t n, float *out, size_t distance);

/* Numbers of lines, as they are stored: all of `line` (step 0), or one of each line
 * from it on (1). */
typedef void tf_visit_fn(const float *numbers, size_t n, size_t line, size_t step,
                         void *context);

/* All numbers of `count` lines, in the order of memory, unless the call is stopped. */
void tf_visit_lines(struct tf_operand x, size_t count, ptrdiff_t k, tf_visit_fn *visit,
                    void *context, struct tf_watch *watch, int asks);

/* An MC panel of A, line after line, `lda` words apart, filled up to a multiple of
 * `whole` lines with zeros; and B in panels of `width`: in each, the words of one k side by
 * side. Returns the number of words of a line. */
void tf_pack_a(struct tf_workspace *work, struct tf_operand a, size_t rows, size_t whole,
               size_t depth, int packing, size_t lda, struct tf_magnitude_range *range);
size_t tf_pack_b(struct tf_workspace *work, struct tf_operand b, size_t columns,
                 size_t depth, int packing, size_t width,
                 struct tf_magnitude_range *range);

/* Bytes that will be read soon, but by no order that a processor foresees: lines far
 * apart are pages apart. */
enum { TF_AHEAD = 16 };

static inline void tf_prefetch(const char *data, size_t size)
{
    for (size_t i = 0; i < size; i += 64) {
        __builtin_prefetch(data + i);
    }
}

#endif
