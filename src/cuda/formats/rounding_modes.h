/* Rounding of float32 bits in any mode but the stochastic one: tf_encode of codec.h,
 * without its 64-bit shifts. */
#ifndef TF32DTYPE_CUDA_FORMATS_ROUNDING_MODES_H
#define TF32DTYPE_CUDA_FORMATS_ROUNDING_MODES_H

#include "formats/fast_codec.h"

/* A magnitude truncated to a code, and the rest in units of 2^-32 of the code's last
 * place. The code is `code` + `kept` (e8m0: `code`). Far below the smallest code,
 * `fraction` only shows that the rest is neither 0 nor a half. */
struct tf_cut_code {
    uint32_t code, kept, fraction;
};

TF_INLINE struct tf_cut_code tf_cut_power(uint32_t magnitude)
{
    const uint32_t least = UINT32_C(1) << 22; /* 2^-127, subnormal in float32 */
    struct tf_cut_code cut = {magnitude >> 23, 1, magnitude << 9};
    if (magnitude < 2 * least) {
        cut.fraction = magnitude < least ? 0 : (magnitude - least) << 10;
    }
    return cut;
}

TF_INLINE struct tf_cut_code tf_cut_number(struct tf_format f, uint32_t magnitude)
{
    const int field = (int)(magnitude >> 23), normal = field != 0;
    const uint32_t mantissa = magnitude & TF_FRACTION_BITS;
    const uint32_t significand = mantissa | (uint32_t)normal << 23;
    /* The exponent, counted from that of the format's smallest normal number. */
    const int above = (normal ? field : 1) - (128 - f.bias);
    const int needed = tf_cut(f) - (above < 0 ? above : 0);
    const int shift = needed < 31 ? needed : 31;
    const struct tf_cut_code cut = {
        (uint32_t)(above > 0 ? above : 0) << f.mantissa_bits,
        significand >> shift,
        significand << (32 - shift),
    };
    return cut;
}

/* The effects of a rounding and an overflow mode, so that elements need no branches: [0]
 * for positive numbers, [1] for negative ones. */
struct tf_manner {
    uint32_t above[2];    /* larger fractions round up */
    uint32_t beyond[2];   /* the code of finite numbers above the range */
    uint32_t infinity[2]; /* the code of infinity */
    uint32_t ties;        /* whether a fraction equal to `above` rounds up: bit 0 if the
                           * code is even, bit 1 if it is odd */
    uint32_t keeps_odd;   /* 1: odd codes are never rounded up */
};

TF_INLINE struct tf_manner tf_manner_of(struct tf_format f, enum tf_rounding rounding,
                                        enum tf_overflow overflow)
{
    const int to_nearest = rounding == TF_TIES_TO_EVEN || rounding == TF_TIES_TO_AWAY;
    struct tf_manner manner;
    for (int negative = 0; negative < 2; negative++) {
        const int outward = rounding == TF_TO_ODD ||
                            rounding == (negative ? TF_TOWARD_NEGATIVE
                                                  : TF_TOWARD_POSITIVE);
        const uint32_t maximum =
            tf_maximum_magnitude(f) | (negative ? tf_sign_mask(f) : 0);
        const uint32_t overflown = tf_encode_overflow(f, negative);
        const int saturates = overflow == TF_OVERFLOW_SATURATE;
        manner.above[negative] = to_nearest ? UINT32_C(1) << 31
                                 : outward  ? 0
                                            : UINT32_MAX;
        manner.infinity[negative] = saturates ? maximum : overflown;
        manner.beyond[negative] =
            saturates || tf_stops_at_maximum(rounding, negative) ? maximum : overflown;
    }
    manner.ties = rounding == TF_TIES_TO_EVEN ? 2 : rounding == TF_TIES_TO_AWAY ? 3 : 0;
    manner.keeps_odd = rounding == TF_TO_ODD;
    return manner;
}

TF_INLINE uint32_t tf_code_by(struct tf_format f, uint32_t bits,
                              const struct tf_manner &manner)
{
    const uint32_t infinity = TF_INF_BITS;
    const uint32_t magnitude = bits & TF_MAGNITUDE_BITS;
    const int negative = (int)(bits >> 31), power = f.specials == TF_EXPONENT_ONLY;
    const uint32_t sign = negative ? tf_sign_mask(f) : 0;

    const struct tf_cut_code cut =
        power ? tf_cut_power(magnitude) : tf_cut_number(f, magnitude);
    const uint32_t above = manner.above[negative], odd = cut.kept & 1;
    const uint32_t tie = cut.fraction == above ? manner.ties >> odd & 1 : 0;
    const uint32_t up =
        ((uint32_t)(cut.fraction > above) | tie) & ~(manner.keeps_odd & odd);
    uint32_t code = cut.code + (power ? 0 : cut.kept) + up;
    const int inside = code <= tf_maximum_magnitude(f);
    code |= f.specials == TF_FNUZ && code == 0 ? 0 : sign;
    code = inside ? code : manner.beyond[negative];
    code = magnitude < infinity ? code : manner.infinity[negative];
    if (power && (negative || magnitude == 0)) {
        code = tf_nan_code(f);
    }
    const uint32_t nan = f.specials == TF_FNUZ ? tf_nan_code(f) : tf_code_of_nan(f, bits);
    return magnitude > infinity ? nan : code;
}

#endif
