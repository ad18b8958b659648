/* Masks of the bits of float32, bfloat16 and float16. Freestanding: only macros, without
 * any #include. */
#ifndef TF32DTYPE_RUNTIME_BIT_MASKS_H
#define TF32DTYPE_RUNTIME_BIT_MASKS_H

/* float32:  s eeeeeeee fffffffffffffffffffffff
 *
 * The magnitude is all bits except the sign. A magnitude above that of Inf is NaN.
 * TF_QUIET_NAN_BITS is the canonical NaN. */
#define TF_SIGN_BIT 0x80000000u
#define TF_MAGNITUDE_BITS 0x7FFFFFFFu
#define TF_FRACTION_BITS 0x007FFFFFu
#define TF_INF_BITS 0x7F800000u
#define TF_NEGATIVE_INF_BITS (TF_SIGN_BIT | TF_INF_BITS)
#define TF_QUIET_NAN_BITS 0x7FC00000u

/* bfloat16: s eeeeeeee fffffff, which is float32's upper half */
#define TF_UPPER_HALF 0xFFFF0000u
#define TF_BF16_SIGN_BIT 0x8000
#define TF_BF16_MAGNITUDE_BITS 0x7FFF
#define TF_BF16_INF_BITS 0x7F80
#define TF_BF16_QUIET_NAN_BITS 0x7FC0

/* float16:  s eeeee ffffffffff */
#define TF_F16_MAGNITUDE_BITS 0x7FFF
#define TF_F16_INF_BITS 0x7C00

#endif
