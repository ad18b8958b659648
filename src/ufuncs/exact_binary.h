/* The hard cases of binary functions: results rounded to odd at 53 bits.
 *
 * A libm result that lies close to a rounding boundary of a narrow format does
 * not say on which side the exact result is. These functions do: they return
 * the exact result where a double holds it, else that one of the two doubles
 * around it whose last bit is odd. Rounding such a double to a format of at
 * most 51 bits is rounding the exact result (Boldo and Melquiond, "Emulation
 * of a FMA and correctly rounded sums: proved algorithms using rounding to
 * odd", IEEE Trans. Computers 57(4), 2008). Magnitudes beyond the largest
 * double come back as that one (its last bit is odd), those below the least
 * subnormal as that; neither becomes infinite or zero.
 *
 * Arguments: finite, with at most 11 significant bits and 2^-136 <= |x| < 2^128,
 * or zero where not excluded below: every finite value of every format.
 *
 * The work is done in integers alone: no rounding mode matters, no
 * floating-point flag is read or raised. A call takes a few microseconds.
 */
#ifndef TF32DTYPE_WIDE_H
#define TF32DTYPE_WIDE_H

/* x**y for x, y other than zero; y an integer where x is negative. */
double tf_odd_power(double x, double y);

/* sqrt(x**2 + y**2). */
double tf_odd_hypot(double x, double y);

/* The angle of the point (x, y), signed zeros as in C's atan2. */
double tf_odd_arctan2(double y, double x);

/* log(exp(x) + exp(y)) and log2(2**x + 2**y). */
double tf_odd_logaddexp(double x, double y);
double tf_odd_logaddexp2(double x, double y);

#endif
