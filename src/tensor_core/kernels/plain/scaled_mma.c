/* Chains of block-scaled instructions: compute as tensor_core/scaled_mma_model.h does, but
 * many elements of C at a time.
 *
 * The sum of an instruction is an integer in units of its last bit, and float64 holds it
 * exactly. With groups of 16, terms are below 2^11 times the largest exponent's power of
 * two, and the unit is 35 bits below that power. With groups of 1, the sum is below 2^7
 * times that power, and the unit 25 bits below it.
 *
 *      group 1    products are exact in float32. A power of two scales them to the unit, and
 *                 a conversion to integers that truncates toward zero is the alignment
 *      group 16   the sums of products fit 16 bits, and are aligned in float64
 *
 * The integer function computes an instruction again if an operand is special, or if the
 * result is not an ordinary number.
 */
#include "runtime/asserts.h"
#include "runtime/kernels/simd.h"
#include "tensor_core/elements.h"
#include "tensor_core/kernels.h"

enum {
    ROWS = 3,         /* rows of C computed at once */
    SIDE = 2 * LANES, /* columns: the 16-bit numbers of a vector */
    GROUP = 16,
    FITS = 16, /* products below 4 whose sum fits 32 bits, at 25 fraction bits */
    GROUPS = TF_DEEPEST / GROUP,
    LOWEST = -300, /* below the exponents of all terms */
};

/* Loops over all columns. If it were unrolled, it would not become full-width vectors. */
#define EACH_LANE _Pragma("GCC unroll 1") for (int lane = 0; lane < SIDE; lane++)

/* A set of rows, a panel, and the k where an instruction begins. */
struct operands {
    const struct tf_scaled_model *model;
    const struct tf_scaled_lines_packed *a, *b;
    size_t row;   /* the first row */
    size_t first; /* the first k */
    size_t count; /* k of the instruction that exist: the rest is zero */
};

/* The largest exponents of a row of C, and the sums of terms in units of their last bit. */
struct sums {
    int32_t greatest[SIDE];
    double total[SIDE];
};

/* Returns 2^exponent, for exponents from -1022 to 1023. */
TF_INLINE double power_of_two(int32_t exponent)
{
    const uint64_t bits = (uint64_t)(1023 + exponent) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

TF_INLINE int32_t greater(int32_t x, int32_t y) { return x > y ? x : y; }

/* Writes the exponents of accumulators, raised to the floor if they are below it. */
TF_INLINE void begin(const struct tf_scaled_model *model, const float *c,
                     int32_t greatest[SIDE])
{
    const int32_t floor = greater(model->floor, LOWEST);
    const int32_t zero = greater(model->zero_c, LOWEST);
    EACH_LANE {
        const uint32_t bits = tf_bits_of(c[lane]);
        const int32_t field = (int32_t)(bits >> 23 & 0xFF);
        const int32_t e = bits << 1 ? greater(field, 1) - 127 : zero;
        greatest[lane] = greater(e, floor);
    }
}

/* -- group 1 ----------------------------------------------------------------------- */

TF_INLINE void find_greatest(const uint32_t *a, const int16_t *b, size_t depth,
                             int16_t greatest[ROWS][SIDE])
{
    shorts found[ROWS];
    UNROLLED for (int r = 0; r < ROWS; r++) {
        found[r] = shorts_of(INT16_MIN);
    }
    _Pragma("GCC unroll 4") for (size_t k = 0; k < depth; k++) {
        const shorts y = load_shorts(b + k * SIDE);
        UNROLLED for (int r = 0; r < ROWS; r++) {
            found[r] = greater_of(found[r], (shorts)words_of(a[r * TF_SCALED_K + k]) + y);
        }
    }
    UNROLLED for (int r = 0; r < ROWS; r++) {
        memcpy(greatest[r], &found[r], sizeof found[r]);
    }
}

/* Adds FITS products, truncated to their unit. */
TF_INLINE void add_products(const float *a, const float *b, float scale[ROWS][SIDE],
                            int32_t sums[ROWS][SIDE])
{
    floats unit[ROWS][2];
    words total[ROWS][2];
    UNROLLED for (int r = 0; r < ROWS; r++) {
        UNROLLED for (int s = 0; s < 2; s++) {
            unit[r][s] = load_floats(scale[r] + s * LANES);
            total[r][s] = words_of(0);
        }
    }
    for (size_t k = 0; k < FITS; k++) {
        const floats y[2] = {load_floats(b + k * SIDE),
                             load_floats(b + k * SIDE + LANES)};
        UNROLLED for (int r = 0; r < ROWS; r++) {
            const floats x = floats_of(a[r * TF_SCALED_K + k]);
            UNROLLED for (int s = 0; s < 2; s++) {
                total[r][s] += integers_of(x * y[s] * unit[r][s]);
            }
        }
    }
    UNROLLED for (int r = 0; r < ROWS; r++) {
        UNROLLED for (int s = 0; s < 2; s++) {
            memcpy(sums[r] + s * LANES, &total[r][s], sizeof total[r][s]);
        }
    }
}

TF_INLINE void sum_products(struct operands x, struct sums sums[ROWS])
{
    /* Limits for float32: below LEAST products are zero, above MOST below the unit. */
    enum { DEPTH = 32, LEAST = -98, MOST = 125 };
    const size_t block = x.first / DEPTH;
    const size_t k = x.row * TF_SCALED_K + x.first;
    const float *a = x.a->singles + k, *b = x.b->singles + x.first * SIDE;
    const int32_t *scales = x.b->exponents + block * SIDE;
    int16_t greatest[ROWS][SIDE];
    float unit[ROWS][SIDE];
    int32_t total[DEPTH / FITS][ROWS][SIDE];

    find_greatest(x.a->twice + k, x.b->integers + x.first * SIDE, DEPTH, greatest);
    for (int r = 0; r < ROWS; r++) {
        const int32_t own =
            x.a->exponents[(x.row + (size_t)r) * TF_SCALED_TERMS + block];
        EACH_LANE {
            const int32_t scale = own + scales[lane];
            const int32_t e = greater(sums[r].greatest[lane], greatest[r][lane] + scale);
            int32_t here = greater(e - scale, LEAST);
            here = here < MOST ? here : MOST;
            sums[r].greatest[lane] = e;
            unit[r][lane] =
                tf_float_of((uint32_t)(x.model->fraction - here + 127) << 23);
        }
    }
    for (size_t part = 0; part < DEPTH / FITS; part++) {
        add_products(a + part * FITS, b + part * FITS * SIDE, unit, total[part]);
    }
    for (int r = 0; r < ROWS; r++) {
        EACH_LANE {
            sums[r].total[lane] = (double)total[0][r][lane] + (double)total[1][r][lane];
        }
    }
}

/* -- group 16 ---------------------------------------------------------------------- */

/* Computes four times the sums of 16 products. */
TF_INLINE void add_group(const uint32_t *a, const int16_t *b, int16_t sums[ROWS][SIDE])
{
    shorts total[ROWS];
    UNROLLED for (int r = 0; r < ROWS; r++) {
        total[r] = shorts_of(0);
    }
    _Pragma("GCC unroll 4") for (size_t k = 0; k < GROUP; k++) {
        const shorts y = load_shorts(b + k * SIDE);
        UNROLLED for (int r = 0; r < ROWS; r++) {
            total[r] += (shorts)words_of(a[r * TF_SCALED_K + k]) * y;
        }
    }
    UNROLLED for (int r = 0; r < ROWS; r++) {
        memcpy(sums[r], &total[r], sizeof total[r]);
    }
}

TF_INLINE void sum_groups(struct operands x, struct sums sums[ROWS])
{
    int16_t products[GROUPS][ROWS][SIDE];
    const size_t from = x.first / GROUP;
    for (size_t g = 0; g < GROUPS; g++) {
        const size_t k = x.first + g * GROUP;
        add_group(x.a->twice + x.row * TF_SCALED_K + k, x.b->integers + k * SIDE,
                  products[g]);
    }
    for (size_t r = 0; r < ROWS; r++) {
        const size_t own = (x.row + r) * TF_SCALED_TERMS + from;
        double unit[SIDE];
        for (size_t g = 0; g < GROUPS; g++) {
            const int32_t exponent = x.a->exponents[own + g];
            const int32_t nonzero = x.a->nonzero[own + g];
            const int32_t *exponents = x.b->exponents + (from + g) * SIDE;
            const int32_t *others = x.b->nonzero + (from + g) * SIDE;
            EACH_LANE {
                const int32_t e = exponent + exponents[lane];
                const int32_t counts = nonzero & others[lane] ? e : TF_MMA_ZERO;
                sums[r].greatest[lane] = greater(sums[r].greatest[lane], counts);
            }
        }
        EACH_LANE {
            unit[lane] = power_of_two(x.model->fraction - sums[r].greatest[lane]);
            sums[r].total[lane] = 0;
        }
        for (size_t g = 0; g < GROUPS; g++) {
            const double factor = x.a->factors[own + g];
            const double *factors = x.b->factors + (from + g) * SIDE;
            EACH_LANE {
                const double scale = factor * factors[lane] * unit[lane];
                sums[r].total[lane] += __builtin_trunc(products[g][r][lane] * scale);
            }
        }
    }
}

/* -- an instruction ---------------------------------------------------------------- */

/* Adds the accumulators to the sums and rounds them to `next`. Sets `doubt`, and returns
 * nonzero, for special operands, accumulators of Inf or NaN, and sums below 2^-126. */
TF_INLINE uint32_t finish(int32_t fraction, const struct sums *sums, const float *c,
                          uint32_t special, const uint8_t *specials, float *next,
                          uint32_t doubt[SIDE])
{
    const uint64_t kept = ~((UINT64_C(1) << 29) - 1); /* 24 bits, toward zero */
    const double nan = (double)tf_float_of(TF_MAGNITUDE_BITS);
    uint32_t all = 0;
    EACH_LANE {
        const int32_t e = sums->greatest[lane];
        const double own = __builtin_trunc((double)c[lane] * power_of_two(fraction - e));
        const double sum = (sums->total[lane] + own) * power_of_two(e - fraction);
        uint64_t bits;
        double cut;
        memcpy(&bits, &sum, sizeof bits);
        bits &= kept;
        memcpy(&cut, &bits, sizeof cut);
        const int tiny = (sum < 0x1p-126) & (sum > -0x1p-126) & (sum != 0);
        next[lane] = (float)(tiny ? nan : cut);
    }
    EACH_LANE {
        const uint32_t given = tf_bits_of(c[lane]) & TF_MAGNITUDE_BITS;
        const uint32_t result = tf_bits_of(next[lane]) & TF_MAGNITUDE_BITS;
        doubt[lane] = special | specials[lane] | (given >= TF_INF_BITS) |
                      (result > TF_INF_BITS);
        all |= doubt[lane];
    }
    return all;
}

/* Computes the doubtful elements of a row by integers. */
__attribute__((noinline)) static void
redo_with_integers(const struct operands *x, size_t row, const float *c,
                   const uint32_t doubt[SIDE], float *next)
{
    const struct tf_scaled_model *model = x->model;
    const size_t depth = (size_t)model->depth;
    const size_t size = (size_t)model->block, block = x->first / size;
    const struct tf_scaled_lines_packed *sides[2] = {x->a, x->b};
    uint32_t elements[2][TF_DEEPEST];
    uint8_t scales[2][TF_SCALED_TERMS];
    for (size_t lane = 0; lane < SIDE; lane++) {
        if (!doubt[lane]) {
            continue;
        }
        const size_t lines[2] = {row, lane};
        for (int side = 0; side < 2; side++) {
            const struct tf_scaled_lines_packed *from = sides[side];
            for (size_t k = 0; k < depth; k++) {
                const size_t at = tf_scaled_place(from->width, lines[side], x->first + k,
                                                  TF_SCALED_K);
                const int16_t integer =
                    from->twice ? (int16_t)from->twice[at] : from->integers[at];
                elements[side][k] = tf_bits_of(model->group == 1 ? from->singles[at]
                                                                 : integer * 0.5f);
            }
            for (size_t i = 0; i < depth / size; i++) {
                scales[side][i] = from->codes[tf_scaled_place(
                    from->width, lines[side], block + i, TF_SCALED_TERMS)];
            }
        }
        next[lane] = tf_scaled_element(model, elements[0], scales[0], elements[1],
                                       scales[1], x->count, c[lane]);
    }
}

TF_INLINE void instruction(struct operands x, size_t depth, size_t group,
                           float c[ROWS][SIDE])
{
    const size_t at = x.first / depth;
    const uint8_t *specials = x.b->special + at * SIDE;
    struct sums sums[ROWS];
    for (int r = 0; r < ROWS; r++) {
        begin(x.model, c[r], sums[r].greatest);
    }
    if (group == 1) {
        sum_products(x, sums);
    } else {
        sum_groups(x, sums);
    }
    for (size_t r = 0; r < ROWS; r++) {
        const uint32_t special = x.a->special[(x.row + r) * TF_SCALED_TERMS + at] |
                                 (x.model->zero_terms != TF_IF_CANCELLED);
        float next[SIDE];
        uint32_t doubt[SIDE];
        if (__builtin_expect(finish(x.model->fraction, &sums[r], c[r], special,
                                    specials, next, doubt), 0)) {
            redo_with_integers(&x, x.row + r, c[r], doubt, next);
        }
        memcpy(c[r], next, sizeof next);
    }
}

static void chains(const struct tf_scaled_model *model,
                   const struct tf_scaled_lines_packed *a, size_t rows,
                   const struct tf_scaled_lines_packed *b, size_t columns, size_t k,
                   float *c, size_t ldc)
{
    TF_ASSERT(k <= TF_SCALED_K && columns <= SIDE && a->width == 1 && b->width == SIDE);
    const size_t depth = (size_t)model->depth;
    for (size_t i = 0; i < rows; i += ROWS) {
        const size_t here = rows - i < ROWS ? rows - i : ROWS;
        float sums[ROWS][SIDE] = {{0}};
        for (size_t r = 0; r < here; r++) {
            memcpy(sums[r], c + (i + r) * ldc, columns * sizeof *c);
        }
        for (size_t first = 0; first < k; first += depth) {
            const size_t rest = k - first;
            const size_t count = rest < depth ? rest : depth;
            const struct operands x = {model, a, b, i, first, count};
            if (model->group == 1) { /* constants turn the loops into vectors */
                instruction(x, 32, 1, sums);
            } else {
                instruction(x, 64, GROUP, sums);
            }
        }
        for (size_t r = 0; r < here; r++) {
            memcpy(c + (i + r) * ldc, sums[r], columns * sizeof *c);
        }
    }
}

/* -- promotion --------------------------------------------------------------------- */

static void promote(const float *block, float scale, const float *scales, float *sums,
                    size_t n)
{
    const float nan = tf_float_of(tf_mma_nan(0));
    for (size_t i = 0; i < n; i++) {
        const float sum = __builtin_fmaf(scale * scales[i], block[i], sums[i]);
        sums[i] = sum == sum ? sum : nan;
    }
}

const struct tf_scaled_mma_kernels TF_PLAIN_NAME(tf_scaled_mma_kernels) = {
    .rows = ROWS,
    .columns = SIDE,
    .chains = chains,
    .promote = promote,
};
