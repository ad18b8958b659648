/* Results that a NaN or Inf operand determines and that raise nothing. Their rounding is
 * that of the exact results. */
#ifndef TF32DTYPE_UFUNCS_SPECIAL_RESULTS_H
#define TF32DTYPE_UFUNCS_SPECIAL_RESULTS_H

#include <math.h>

#include "runtime/inline.h"
#include "ufuncs/kernels.h"

/* Writes such a result to *result and returns 1, else returns 0. For the operations of
 * kernels/plain/near.c except power, for which the operands 1 and 0 are special, too. */
TF_INLINE int tf_special_result(enum tf_binary_op op, float x, float y, double *result)
{
    const int nan = isnan(x) || isnan(y);
    switch (op) {
    case TF_HYPOT:
        *result = isinf(x) || isinf(y) ? INFINITY : nan ? NAN : *result;
        return isinf(x) || isinf(y) || nan;
    case TF_LOGADDEXP:
    case TF_LOGADDEXP2:
        *result = nan                    ? NAN
                  : isinf(x) || isinf(y) ? fmaxf(x, y) + 0.0f /* no -0 */
                                         : *result;
        return nan || isinf(x) || isinf(y);
    case TF_ARCTAN2:
        if (!nan && (isinf(x) || isinf(y))) { /* the point (y, x) */
            const double quarter = 0x1.921fb54442d18p-1; /* pi/4 */
            const int quarters = !isinf(y) ? 2
                                 : y > 0   ? (isinf(x) ? 1 : 0)
                                           : (isinf(x) ? 3 : 4);
            *result = copysign(quarters * quarter, x);
            return 1;
        }
        *result = nan ? NAN : *result;
        return nan;
    case TF_REMAINDER:
    case TF_FMOD: *result = nan ? NAN : *result; return nan;
    default: return 0;
    }
}

#endif
