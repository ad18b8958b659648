#include "tensor_scale.h"

static double power_of_two(int exponent) /* a normal double */
{
    const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

static int exponent_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (int)(bits >> 52 & 0x7FF) - 1023;
}

static const double tiny = 0x1p-149; /* the smallest float32 */

float tensor_scale_of(int format, float most, float greatest)
{
    const struct tf_scale s = tf_scales[format];
    if (greatest == 0 || s.kind == TF_SCALE_POWERS) {
        return 1;
    }
    if (s.kind == TF_SCALE_E4M3) {
        const float quotient = greatest / (448 * most);
        return quotient > (float)tiny ? quotient : (float)tiny;
    }
    /* Find the smallest power of two with which the largest value has a scale in the binade
     * below the top one. The computation is exact in double. */
    const int m = s.mantissa_bits;
    const double top = (double)((1 << (m + 1)) - 1) * power_of_two((1 << (8 - m)) - 3);
    const double limit = (double)most * top, a = (double)greatest;
    int exponent = exponent_of(a) - exponent_of(limit);
    while (a > limit * power_of_two(exponent)) {
        exponent++;
    }
    while (a <= limit * power_of_two(exponent - 1)) {
        exponent--;
    }
    exponent = exponent < -149 ? -149 : exponent > 127 ? 127 : exponent;
    return (float)power_of_two(exponent);
}

struct tensor_scale finest_tensor_scale(float most, float greatest, float least)
{
    static const int finest[] = {tf_scale_ue3m5, tf_scale_ue4m4, tf_scale_ue5m3};
    for (int i = 0; i < 3; i++) {
        const float scale = tensor_scale_of(finest[i], most, greatest);
        const double normal = (double)most * (double)scale *
                              power_of_two(tf_scales[finest[i]].mantissa_bits);
        if (greatest == 0 || (double)least >= normal || (double)scale == tiny) {
            const struct tensor_scale found = {finest[i], scale};
            return found;
        }
    }
    const struct tensor_scale powers = {tf_scale_float8_e8m0fnu, 1};
    return powers;
}
