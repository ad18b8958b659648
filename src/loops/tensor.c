/* Chains of a tensor core's blocks: what ../tensor_core.h does, for many elements of C
 * at a time and without an integer significand.
 *
 * Products of operands are exact in float32, where a power of two brings them to the
 * unit of their block's sum: a conversion to integers that cuts toward zero is then
 * the alignment. The exponents of both operands are taken down beforehand, as 16-bit
 * numbers, two columns to a word; the exponent of a product is their sum.
 *
 * That is exact while the greatest exponent of a block is ordinary, neither so low that
 * a product that counts is no normal float32, nor beyond float32 or special. Elements
 * for which it is not so, and those whose sum does not fit 32 bits, are done again by
 * the integer function, a block at a time.
 */
#include <string.h>

#include "blocks.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

/* -- vectors ----------------------------------------------------------------------- */

#if defined(__AVX512BW__)
enum { LANES = 16 };
#elif defined(__AVX2__)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif

typedef float floats __attribute__((vector_size(4 * LANES)));
typedef int32_t ints __attribute__((vector_size(4 * LANES)));
typedef uint32_t words __attribute__((vector_size(4 * LANES)));
typedef int16_t shorts __attribute__((vector_size(4 * LANES)));
typedef uint16_t halves __attribute__((vector_size(4 * LANES)));

TF_INLINE words words_of(uint32_t x) { return (words){0} + x; }

TF_INLINE shorts shorts_of(int16_t x) { return (shorts){0} + x; }

/* Minus zero: which leaves every x as it is, and costs nothing. */
TF_INLINE floats floats_of(float x) { return x - (floats){0}; }

TF_INLINE floats load_floats(const float *p)
{
    floats x;
    memcpy(&x, p, sizeof x);
    return x;
}

TF_INLINE shorts load_shorts(const uint32_t *p)
{
    shorts x;
    memcpy(&x, p, sizeof x);
    return x;
}

TF_INLINE shorts greater_of(shorts x, shorts y)
{
#if defined(__AVX512BW__)
    return (shorts)_mm512_max_epi16((__m512i)x, (__m512i)y);
#elif defined(__AVX2__)
    return (shorts)_mm256_max_epi16((__m256i)x, (__m256i)y);
#else
    const shorts first = x > y;
    return (x & first) | (y & ~first);
#endif
}

/* Toward zero. */
TF_INLINE words integers_of(floats x)
{
#if defined(__AVX512BW__)
    return (words)_mm512_cvttps_epi32((__m512)x);
#elif defined(__AVX2__)
    return (words)_mm256_cvttps_epi32((__m256)x);
#elif defined(__SSE2__)
    return (words)_mm_cvttps_epi32((__m128)x);
#else
    return (words)__builtin_convertvector(x, ints);
#endif
}

/* Toward zero; or to odd, which a later rounding to fewer bits takes for what it was. */
TF_INLINE floats floats_toward_zero(words sum, int odd)
{
#if defined(__AVX512BW__)
    const __m512 x = _mm512_cvt_roundepi32_ps((__m512i)sum,
                                              _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    if (!odd) {
        return (floats)x;
    }
    const __m512i back = _mm512_cvttps_epi32(x);
    const __mmask16 inexact = _mm512_cmpneq_epi32_mask(back, (__m512i)sum);
    const __m512i bits = _mm512_castps_si512(x);
    return (floats)_mm512_mask_or_epi32(bits, inexact, bits, _mm512_set1_epi32(1));
#else
    /* What is more than 24 bits is cut off below. */
    const words sign = (words)((ints)sum >> 31);
    const words magnitude = (sum ^ sign) - sign;
    words below = magnitude >> 24;
    below |= below >> 1;
    below |= below >> 2;
    below |= below >> 4;
    const words rest = magnitude & below;
    const words last = below + 1; /* 1 where nothing is cut, and there is no rest */
    words kept = magnitude & ~below;
    kept |= odd ? (words)(rest != 0) & last : words_of(0);
    const floats x = __builtin_convertvector((ints)kept, floats);
    return (floats)((words)x | (sign & 0x80000000u));
#endif
}

/* To the nearest float16, ties to even. */
TF_INLINE floats to_halves(floats x)
{
#if defined(__AVX512BW__)
    return (floats)_mm512_cvtph_ps(_mm512_cvtps_ph((__m512)x, _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
    return (floats)_mm256_cvtph_ps(_mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT));
#else
    const words bits = (words)x, sign = bits & 0x80000000u, magnitude = bits ^ sign;
    /* A subnormal one: half's last place is the unit of a sum about one half. */
    const words small = (words)(((floats)magnitude + 0.5f) - 0.5f);
    const words large = (magnitude + 0xFFF + (magnitude >> 13 & 1)) & ~0x1FFFu;
    const words is_small = (words)(magnitude < 0x38800000u);
    const words beyond = (words)(large >= 0x47800000u); /* 65536 */
    const words nan = (words)(magnitude > 0x7F800000u);
    words result = (small & is_small) | (large & ~is_small);
    result = (result & ~beyond) | (0x7F800000u & beyond);
    result = (result & ~nan) | (0x7FFFE000u & nan);
    return (floats)(result | sign);
#endif
}

TF_INLINE int any(words x)
{
#if defined(__AVX512BW__)
    return _mm512_test_epi32_mask((__m512i)x, (__m512i)x) != 0;
#elif defined(__AVX2__)
    return !_mm256_testz_si256((__m256i)x, (__m256i)x);
#else
    uint32_t found = 0;
    for (int i = 0; i < LANES; i++) {
        found |= x[i];
    }
    return found != 0;
#endif
}

/* -- a block ----------------------------------------------------------------------- */

enum {
    ROWS = 3,          /* of C that are done at once */
    SIDE = 2 * LANES,  /* columns: the exponents of a vector of words */
    ACROSS = LANES == 16 ? 2 : 1, /* such in a panel */
    COLUMNS = SIDE * ACROSS,
    FITS = 16, /* products whose sum fits 32 bits, at 25 fraction bits */
    BIAS = 127,
};

/* Every loop over rows and sides is unrolled: what it fills stays in registers. */
#define UNROLLED _Pragma("GCC unroll 8")

/* What is beside the numbers: rows of A, and columns of B, that are multiplied. */
struct operands {
    const float *a, *b;
    const uint32_t *a_exponents, *b_exponents;
    size_t lda;
};

/* k of the numbers in a block: `first`, and so on, leaving out two after each two if it
 * `skips`. */
struct place {
    size_t first, count;
    size_t skips; /* 0, or all bits but the lowest */
};

TF_INLINE size_t place_of(struct place place, size_t i)
{
    return place.first + i + (i & place.skips);
}

struct sums {
    floats c[ROWS][2];
};

/* What says that a result is in doubt: any bit of a column's half of `range`, the sign
 * of `sum`. */
struct doubts {
    halves range[ROWS];
    words sum[ROWS][2];
    shorts greatest[ROWS]; /* of the products alone */
};

/* The exponents of accumulators, biased, as two columns to a word. */
TF_INLINE shorts exponents_of(floats left, floats right, int half)
{
    const words l = (words)left << 1, r = (words)right << 1;
    words exponents = l >> 24 | (r >> 8 & 0xFF0000u);
    if (half) { /* no less than float16's least one, but for zero */
        const shorts any = (shorts)exponents != 0;
        exponents =
            (words)greater_of((shorts)exponents, any & (TF_LEAST_HALF + BIAS));
    }
    return (shorts)exponents;
}

/* `next` are the accumulators `now` with the products of a block. */
TF_INLINE void add_block(const struct tf_tensor_plan *plan, struct operands x,
                         struct place place, const struct sums *now, struct sums *next,
                         struct doubts *doubts, int half)
{
    const struct tf_tensor_model *model = &plan->model;
    const uint32_t fraction = (uint32_t)model->fraction;
    const int16_t least = (int16_t)(fraction + 2); /* see the top of this file */
    const uint16_t range = (uint16_t)(2 * BIAS - 2 - least);
    const int32_t floor = model->zero_c > model->floor ? model->zero_c : model->floor;
    const shorts lowest = shorts_of(INT16_MIN);
    const shorts low =
        floor > TF_NO_EXPONENT ? shorts_of((int16_t)(floor + BIAS)) : lowest;
    floats scale[ROWS][2];
    words unit[ROWS][2], total[ROWS][2], part[ROWS][2];
    shorts greatest[ROWS];

    UNROLLED for (int r = 0; r < ROWS; r++) {
        greatest[r] = lowest;
    }
    for (size_t i = 0; i < place.count; i++) {
        const size_t k = place_of(place, i);
        const shorts b = load_shorts(x.b_exponents + k * (COLUMNS / 2));
        UNROLLED for (int r = 0; r < ROWS; r++) {
            const shorts a = (shorts)words_of(x.a_exponents[(size_t)r * x.lda + k]);
            greatest[r] = greater_of(greatest[r], a + b);
        }
    }
    UNROLLED for (int r = 0; r < ROWS; r++) {
        doubts->greatest[r] = greatest[r];
        shorts e = greater_of(greatest[r],
                              exponents_of(now->c[r][0], now->c[r][1], half));
        e = greater_of(e, low);
        doubts->range[r] = (halves)((halves)(e - least) > range);
        e = greater_of(e, shorts_of(least)); /* where all is zero the sum is, too */
        const words both = (words)e;
        const words exponents[2] = {(words)((ints)(both << 16) >> 16),
                                    (words)((ints)both >> 16)};
        UNROLLED for (int s = 0; s < 2; s++) {
            scale[r][s] = (floats)((fraction + 2 * BIAS - exponents[s]) << 23);
            unit[r][s] = (exponents[s] - fraction) << 23;
            total[r][s] = integers_of(now->c[r][s] * scale[r][s]);
            doubts->sum[r][s] = words_of(0);
        }
    }
    for (size_t begin = 0; begin < place.count; begin += FITS) {
        const size_t end = place.count - begin < FITS ? place.count : begin + FITS;
        UNROLLED for (int r = 0; r < ROWS; r++) {
            UNROLLED for (int s = 0; s < 2; s++) {
                part[r][s] = words_of(0);
            }
        }
        for (size_t i = begin; i < end; i++) {
            const size_t k = place_of(place, i);
            const floats b[2] = {load_floats(x.b + k * COLUMNS),
                                 load_floats(x.b + k * COLUMNS + LANES)};
            UNROLLED for (int r = 0; r < ROWS; r++) {
                const floats a = floats_of(x.a[(size_t)r * x.lda + k]);
                UNROLLED for (int s = 0; s < 2; s++) {
                    part[r][s] += integers_of(a * b[s] * scale[r][s]);
                }
            }
        }
        UNROLLED for (int r = 0; r < ROWS; r++) {
            UNROLLED for (int s = 0; s < 2; s++) {
                const words sum = total[r][s] + part[r][s];
                doubts->sum[r][s] |= (sum ^ total[r][s]) & (sum ^ part[r][s]);
                total[r][s] = sum;
            }
        }
    }
    UNROLLED for (int r = 0; r < ROWS; r++) {
        UNROLLED for (int s = 0; s < 2; s++) {
            const floats sum = floats_toward_zero(total[r][s], half);
            const floats result = sum * (floats)unit[r][s];
            if (half) {
                next->c[r][s] = to_halves(result) + plan->zero;
            } else {
                next->c[r][s] = (floats)((words)result & plan->mask);
            }
        }
    }
}

/* -- what is in doubt -------------------------------------------------------------- */

static uint32_t bits_of_c(const struct sums *sums, int r, int column)
{
    return tf_bits_of(sums->c[r][column / LANES][column % LANES]);
}

/* The results in doubt, by integers. An all-zero block looks as if it were too low. */
__attribute__((noinline, cold)) static void
settle(const struct tf_tensor_plan *plan, const struct operands *x, struct place place,
       const struct sums *now, int scale, struct sums *next, const struct doubts *doubts)
{
    enum { NO_PRODUCT = TF_TENSOR_ZERO / 2 };
    for (int r = 0; r < ROWS; r++) {
        uint32_t a[TF_TENSOR_DEPTH];
        int loaded = 0;
        for (int column = 0; column < SIDE; column++) {
            const int lane = column % LANES, side = column / LANES;
            const int in_range = doubts->range[r][2 * lane + side] == 0;
            const int fits = doubts->sum[r][side][lane] >> 31 == 0;
            const uint32_t c = bits_of_c(now, r, column);
            if (in_range && fits) {
                continue;
            }
            const int empty = doubts->greatest[r][2 * lane + side] < NO_PRODUCT;
            if (empty && c << 1 == 0) {
                next->c[r][side][lane] = 0;
                continue;
            }
            for (size_t i = 0; !loaded && i < place.count; i++) {
                a[i] = tf_bits_of(x->a[(size_t)r * x->lda + place_of(place, i)]);
            }
            loaded = 1;
            uint32_t b[TF_TENSOR_DEPTH];
            for (size_t i = 0; i < place.count; i++) {
                b[i] = tf_bits_of(x->b[place_of(place, i) * COLUMNS + (size_t)column]);
            }
            const uint32_t d = tf_tensor_block(&plan->model, a, 1, b, 1,
                                               (int32_t)place.count, c, scale);
            next->c[r][side][lane] = tf_float_of(d);
        }
    }
}

/* `given` times 2^scale are the accumulators; `sums` may have been rounded. */
TF_INLINE void add_block_exactly(const struct tf_tensor_plan *plan, struct operands x,
                                 struct place place, struct sums *sums,
                                 const struct sums *given, int scale, int half)
{
    struct sums next;
    struct doubts doubts;
    add_block(plan, x, place, sums, &next, &doubts, half);
    words doubt = words_of(0);
    UNROLLED for (int r = 0; r < ROWS; r++) {
        doubt |= (words)doubts.range[r];
        doubt |= (doubts.sum[r][0] | doubts.sum[r][1]) & 0x80000000u;
    }
    if (__builtin_expect(any(doubt), 0)) {
        settle(plan, &x, place, given, scale, &next, &doubts);
    }
    *sums = next;
}

/* -- chains ------------------------------------------------------------------------ */

/* Where an addition made a NaN it is the model's. */
TF_INLINE floats canonical(floats x)
{
    const words nan = (words)(x != x);
    return (floats)(((words)x & ~nan) | (0x7FFFFFFFu & nan));
}

/* The blocks of a stretch of k, from `sums` on. */
TF_INLINE void add_stretch(const struct tf_tensor_plan *plan, struct operands x,
                           size_t first, size_t depth, struct sums *sums,
                           const struct sums *given, int scale, int half)
{
    const size_t block = (size_t)plan->model.depth;
    if (plan->model.emulated) { /* tf_tensor_chain says how */
        const size_t whole = depth / 4 * 2, rest = depth % 4;
        const size_t more[2] = {rest < 2 ? rest : 2, rest > 2 ? 1 : 0};
        for (size_t part = 0; part < 2; part++) {
            const struct place place = {first + 2 * part, whole + more[part],
                                        ~(size_t)1};
            add_block_exactly(plan, x, place, sums, sums, 0, half);
        }
        return;
    }
    for (size_t k = 0; k < depth; k += block) {
        const size_t count = depth - k < block ? depth - k : block;
        const struct place place = {first + k, count, 0};
        add_block_exactly(plan, x, place, sums, k ? sums : given, k ? 0 : scale, half);
    }
}

TF_INLINE void chain(const struct tf_tensor_plan *plan, struct operands x, size_t depth,
                     float *c, size_t ldc, int half)
{
    const size_t stretch = plan->stretch ? plan->stretch : depth;
    struct sums total, sums, given;
    UNROLLED for (int r = 0; r < ROWS; r++) {
        UNROLLED for (int s = 0; s < 2; s++) {
            total.c[r][s] = load_floats(c + (size_t)r * ldc + s * LANES);
        }
    }
    for (size_t k = 0; k < depth; k += stretch) {
        const size_t here = depth - k < stretch ? depth - k : stretch;
        if (plan->stretch) {
            memset(&sums, 0, sizeof sums);
        } else {
            sums = total;
        }
        for (size_t t = 0; t < plan->count; t++) {
            const struct tf_term *term = &plan->terms[t];
            const struct operands y = {x.a + term->a, x.b + term->b,
                                       x.a_exponents + term->a,
                                       x.b_exponents + term->b / 2, x.lda};
            const int scales = term->scale != 1;
            if (scales) {
                given = sums;
                UNROLLED for (int r = 0; r < ROWS; r++) {
                    UNROLLED for (int s = 0; s < 2; s++) {
                        sums.c[r][s] *= term->scale;
                    }
                }
            }
            const int inside = scales && plan->scales_inside;
            add_stretch(plan, y, k, here, &sums, inside ? &given : &sums,
                        inside ? plan->scales_inside : 0, half);
        }
        UNROLLED for (int r = 0; r < ROWS; r++) {
            UNROLLED for (int s = 0; s < 2; s++) {
                floats sum = sums.c[r][s];
                if (plan->stretch) {
                    sum = canonical(total.c[r][s] + sum);
                    sum = half ? to_halves(sum) : sum;
                }
                total.c[r][s] = sum;
            }
        }
    }
    UNROLLED for (int r = 0; r < ROWS; r++) {
        UNROLLED for (int s = 0; s < 2; s++) {
            float *place = c + (size_t)r * ldc + s * LANES;
            memcpy(place, &total.c[r][s], sizeof total.c[r][s]);
        }
    }
}

static void chain_singles(const struct tf_tensor_plan *plan, struct operands x,
                          size_t depth, float *c, size_t ldc)
{
    chain(plan, x, depth, c, ldc, 0);
}

static void chain_halves(const struct tf_tensor_plan *plan, struct operands x,
                         size_t depth, float *c, size_t ldc)
{
    chain(plan, x, depth, c, ldc, 1);
}

static void chains(const struct tf_tensor_plan *plan, const float *a,
                   const uint32_t *a_exponents, size_t lda, const float *b,
                   const uint32_t *b_exponents, size_t depth, size_t rows, float *c,
                   size_t ldc)
{
    for (size_t i = 0; i < rows; i += ROWS) {
        for (size_t j = 0; j < COLUMNS; j += SIDE) {
            const struct operands x = {a + i * lda, b + j, a_exponents + i * lda,
                                       b_exponents + j / 2, lda};
            (plan->model.half ? chain_halves : chain_singles)(plan, x, depth,
                                                              c + i * ldc + j, ldc);
        }
    }
}

/* -- exponents --------------------------------------------------------------------- */

enum { SPECIAL = 16000 };

/* Sums of two tell whether there is a special number, or a zero that has no exponent:
 * neither is near an ordinary sum. */
TF_INLINE int32_t exponent_of(float x, struct tf_tensor_exponents exponents)
{
    const uint32_t bits = tf_bits_of(x);
    const int32_t field = (int32_t)(bits >> 23 & 0xFF);
    const int32_t e = field - BIAS > exponents.least ? field - BIAS : exponents.least;
    return bits << 1 == 0 ? exponents.of_zero : field == 255 ? SPECIAL : e;
}

static void exponents_of_rows(const float *in, size_t n,
                              struct tf_tensor_exponents exponents, uint32_t *out)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t e = (uint32_t)(exponent_of(in[i], exponents) + BIAS) & 0xFFFF;
        out[i] = e << 16 | e;
    }
}

static void exponents_of_columns(const float *in, size_t n,
                                 struct tf_tensor_exponents exponents, uint32_t *out)
{
    for (size_t i = 0; i < n; i += SIDE) {
        for (size_t lane = 0; lane < LANES; lane++) {
            const int32_t left = exponent_of(in[i + lane], exponents);
            const int32_t right = exponent_of(in[i + LANES + lane], exponents);
            out[i / 2 + lane] = (uint32_t)right << 16 | ((uint32_t)left & 0xFFFF);
        }
    }
}

const struct tf_tensor TF_NAME(tf_tensor) = {
    .columns = COLUMNS,
    .chains = chains,
    .exponents_of_rows = exponents_of_rows,
    .exponents_of_columns = exponents_of_columns,
};
