/* Computes alpha times sums plus beta C, in C's own type. */
#include "programs/blas/blas_update.h"

#include <math.h>
#include <stdlib.h>

#include "programs/blas/blas_matrix.h"
#include "runtime/fp_environment.h"
#include "runtime/inline.h"
#include "runtime/sizes.h"

int tf_blas_sum_kind(const struct tf_blas_product *product)
{
    const int is_double = product->type == 'z' ||
                          (product->products && (product->type == 'd' || product->wider));
    return is_double ? TF_FLOAT64 : TF_FLOAT32;
}

size_t tf_blas_sum_size(const struct tf_blas_product *product)
{
    const size_t part =
        tf_blas_sum_kind(product) == TF_FLOAT64 ? sizeof(double) : sizeof(float);
    return tf_blas_is_complex(product->type) ? 2 * part : part;
}

int tf_blas_by_columns(const struct tf_blas_product *product)
{
    if (product->m == 1 || product->n == 1) {
        return product->n == 1;
    }
    return tf_distance(product->c_strides[0]) < tf_distance(product->c_strides[1]);
}

/* Returns x, rounded to float32 if the type is `single`. Values are float64 in this file.
 * Rounding each sum or product of float32 values to float64 and then to float32 gives the
 * same bits as rounding it once to float32. */
TF_INLINE double rounded(int single, double x) { return single ? (float)x : x; }

/* Returns x y + z, rounded once. */
TF_INLINE double fused(int single, double x, double y, double z)
{
    if (x == 1) {
        return rounded(single, y + z);
    }
    return single ? fmaf((float)x, (float)y, (float)z) : fma(x, y, z);
}

TF_INLINE double read_number(const char *place, int single)
{
    return single ? *(const float *)place : *(const double *)place;
}

struct number {
    double real, imaginary;
};

TF_INLINE struct number times(int single, const double x[2], struct number y)
{
    const struct number by_real = {rounded(single, x[0] * y.real),
                                   rounded(single, x[0] * y.imaginary)};
    if (x[1] == 0) {
        return by_real;
    }
    return (struct number){
        rounded(single, by_real.real - rounded(single, x[1] * y.imaginary)),
        rounded(single, by_real.imaginary + rounded(single, x[1] * y.real))};
}

TF_INLINE struct number plus(int single, struct number x, struct number y)
{
    return (struct number){rounded(single, x.real + y.real),
                           rounded(single, x.imaginary + y.imaginary)};
}

/* The factors of an update, and which sums it has. */
struct update {
    double alpha[2], second[2], beta[2]; /* `second` is the alpha of the second product */
    int has_sums, has_more, hermitian;
    int wide_sums; /* float64 sums */
};

/* -- flags ------------------------------------------------------------------------- */

/* Whether there is Inf or NaN among the operands of a result. */
struct specials {
    int nan, infinite;
};

static void look_at(struct specials *found, double x)
{
    found->nan |= isnan(x);
    found->infinite |= isinf(x);
}

static void look_at_all(struct specials *found, const double factor[2], struct number x)
{
    look_at(found, factor[0]);
    look_at(found, factor[1]);
    look_at(found, x.real);
    look_at(found, x.imaginary);
}

static unsigned flags_of(const struct update *u, struct number sum, struct number more,
                         struct number old, struct number result)
{
    const struct number none = {0, 0};
    struct specials found = {0, 0};
    look_at_all(&found, u->alpha, u->has_sums ? sum : none);
    look_at_all(&found, u->second, u->has_more ? more : none);
    look_at_all(&found, u->beta, old);
    const int nan = isnan(result.real) || isnan(result.imaginary);
    const int infinite = isinf(result.real) || isinf(result.imaginary);
    return (nan && !found.nan ? TF_INVALID : 0) |
           (infinite && !found.infinite && !found.nan ? TF_OVER : 0);
}

/* -- elements ---------------------------------------------------------------------- */

/* Writes a component. A float32 NaN keeps the bits of a sum that is NaN, as some devices
 * have a NaN of their own. */
TF_INLINE void write_number(char *place, int single, double x, double sum)
{
    if (isnan(x)) {
        x = single && isnan(sum) ? sum : (double)NAN;
    }
    if (single) {
        *(float *)place = (float)x;
    } else {
        *(double *)place = x;
    }
}

TF_INLINE struct number read_sum(const char *place, int single, int complex, int wide)
{
    const int size = single ? sizeof(float) : sizeof(double);
    return complex ? (struct number){read_number(place, single),
                                     read_number(place + size, single)}
                   : (struct number){read_number(place, !wide), 0};
}

TF_INLINE void update_element(const struct update *u, int single, int complex, int wide,
                              const char *sum_place, const char *more_place, char *place,
                              int is_real, unsigned *flags)
{
    const int size = single ? sizeof(float) : sizeof(double);
    struct number sum = {0, 0}, more = {0, 0}, old = {0, 0}, result = {0, 0};
    if (u->has_sums) {
        sum = read_sum(sum_place, single, complex, wide);
        result = times(single, u->alpha, sum);
    }
    if (u->has_more) {
        more = read_sum(more_place, single, complex, wide);
        result = plus(single, result, times(single, u->second, more));
    }
    if (u->beta[0] != 0 || u->beta[1] != 0) {
        old.real = read_number(place, single);
        old.imaginary = complex && !is_real ? read_number(place + size, single) : 0;
        if (!u->has_sums) {
            result = times(single, u->beta, old);
        } else if (complex) {
            result = plus(single, result, times(single, u->beta, old));
        } else {
            result.real = fused(single, u->beta[0], old.real, result.real);
        }
    }
    if (is_real || !complex) {
        result.imaginary = 0; /* Inf times no imaginary part is NaN */
    }
    if (!isfinite(result.real) || !isfinite(result.imaginary)) {
        *flags |= flags_of(u, sum, more, old, result);
    }
    write_number(place, single, result.real, sum.real);
    if (complex) {
        write_number(place + size, single, result.imaginary, sum.imaginary);
    }
}

/* Updates n elements of a row or a column, of which element `diagonal` is real if C is
 * Hermitian. Returns the floating-point flags to raise. */
TF_INLINE unsigned update_line(const struct update *u, int single, int complex, int wide,
                               const char *sums, const char *more, char *c,
                               ptrdiff_t stride, ptrdiff_t n, ptrdiff_t diagonal)
{
    const ptrdiff_t size = complex ? 2 * (single ? 4 : 8) : wide ? 8 : 4;
    unsigned flags = 0;
    for (ptrdiff_t j = 0; j < n; j++) {
        update_element(u, single, complex, wide, u->has_sums ? sums + j * size : NULL,
                       u->has_more ? more + j * size : NULL, c + j * stride,
                       u->hermitian && j == diagonal, &flags);
    }
    return flags;
}

static unsigned update_line_of(char type, const struct update *u, const char *sums,
                               const char *more, char *c, ptrdiff_t stride, ptrdiff_t n,
                               ptrdiff_t diagonal)
{
    switch (type) {
    case 's':
        return update_line(u, 1, 0, 0, sums, more, c, stride, n, diagonal);
    case 'd':
        return u->wide_sums ? update_line(u, 0, 0, 1, sums, more, c, stride, n, diagonal)
                            : update_line(u, 0, 0, 0, sums, more, c, stride, n, diagonal);
    case 'c':
        return update_line(u, 1, 1, 0, sums, more, c, stride, n, diagonal);
    default:
        return update_line(u, 0, 1, 0, sums, more, c, stride, n, diagonal);
    }
}

void tf_blas_update(const struct tf_blas_product *product, const char *sums,
                    const char *more, int silent)
{
    const double *alpha = product->alpha, *beta = product->beta;
    const struct update u = {
        .alpha = {alpha[0], alpha[1]},
        .second = {alpha[0], product->hermitian ? -alpha[1] : alpha[1]},
        .beta = {beta[0], beta[1]},
        .has_sums = sums != NULL,
        .has_more = more != NULL,
        .hermitian = product->hermitian,
        .wide_sums = tf_blas_sum_kind(product) == TF_FLOAT64,
    };
    const int across = tf_blas_by_columns(product);
    const ptrdiff_t size = (ptrdiff_t)tf_blas_sum_size(product);
    const ptrdiff_t lines = across ? product->n : product->m;
    const ptrdiff_t length = across ? product->m : product->n;
    const ptrdiff_t step = product->c_strides[across];
    const ptrdiff_t stride = product->c_strides[!across];
    const int from_diagonal = product->triangle == (across ? 'L' : 'U');
    const int to_diagonal = product->triangle == (across ? 'U' : 'L');
    const struct tf_fp saved = tf_fp_begin();
    unsigned flags = 0;
    for (ptrdiff_t i = 0; i < lines; i++) {
        const ptrdiff_t first = from_diagonal ? i : 0;
        const ptrdiff_t end = to_diagonal ? i + 1 : length;
        const ptrdiff_t place = (i * length + first) * size;
        const ptrdiff_t diagonal = product->triangle ? i - first : -1;
        flags |= update_line_of(product->type, &u, sums ? sums + place : NULL,
                                more ? more + place : NULL,
                                product->c + i * step + first * stride, stride,
                                end - first, diagonal);
    }
    tf_fp_end(saved, silent ? 0 : flags);
}
