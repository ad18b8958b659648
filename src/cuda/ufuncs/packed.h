/* Reads elements of a kind for reductions: one by one, or where it is faster, a few per
 * word. */
#ifndef TF32DTYPE_CUDA_UFUNCS_PACKED_H
#define TF32DTYPE_CUDA_UFUNCS_PACKED_H

#include "cuda/ufuncs/partials.h"
#include "cuda/common/vectors.h"

/* N neighbors in memory, packed into words. */
template <class T, int N> struct tf_packed {
    enum {
        BYTES = N * (int)sizeof(T),
        WORDS = BYTES < 4 ? 1 : BYTES / 4,
        EACH = sizeof(T) < 4 ? 4 / (int)sizeof(T) : 1,
        BITS = 8 * (int)sizeof(T)
    };
    uint32_t words[WORDS];

    __forceinline__ T item(int i) const
    {
        return (T)(words[i / EACH] >> i % EACH * BITS);
    }
    /* Loads aligned items. */
    __forceinline__ void load(const T *x)
    {
        const auto all = tf_vector_at<true, uint32_t, WORDS>((const uint32_t *)x);
#pragma unroll
        for (int w = 0; w < WORDS; w++) {
            words[w] = all.of[w];
        }
    }
};

/* Returns whether a kind's items fill one or two bytes, have signs, and have magnitudes
 * in the order of integers, with NaN last. */
constexpr bool tf_is_ordered(int kind)
{
    switch (kind) {
#define ROW(name, itemsize, width, shift, exponent, mantissa, is_signed, bias, specials, \
            ...)                                                                         \
    case tf_##name##_index:                                                              \
        return is_signed && itemsize <= 2 && width == 8 * itemsize &&                    \
               (specials == TF_IEEE || specials == TF_FN);
        TF_FORMATS(ROW)
#undef ROW
    default: return false;
    }
}

template <class Op, int kind> struct tf_reading {
    typedef tf_word<kind> word;
    typedef typename Op::template part<kind> part;

    static part part_of(word item, int which, int elements)
    {
        const uint32_t bits = tf_single<kind, true>(item);
        return Op::template part_of<kind>(bits, which, elements);
    }
    /* PACKED: `add` reads four vectors at once, or returns false if it cannot. TOGETHER:
     * it may add all places to one result, in any order. */
    enum { PACKED = 0, TOGETHER = 0 };
    template <int R, int N>
    static bool add(typename Op::value (&)[R], const tf_packed<word, N> (&)[4])
    {
        return false;
    }
    /* Returns a result in the form of partials.h. */
    static typename Op::value finished(typename Op::value x) { return x; }
};

/* Reads codes of a byte as float32 numbers that are too small by a power of two, since the
 * exponent field moves to float32's. Sums of four are exact, for some kinds also sums of
 * 64, of four vectors. float64 then holds the sums of all elements that memory can have. */
template <int kind> struct tf_reading<sums, kind> {
    typedef tf_word<kind> word;
    typedef sums::part<kind> part;
    enum {
        PACKED = tf_is_ordered(kind) && tf_sums_are_exact(kind, 2),
        TOGETHER = tf_sums_are_exact(kind, 6)
    };

    static part part_of(word item, int which, int elements)
    {
        return sums::part_of<kind>(tf_single<kind, true>(item), which, elements);
    }
    template <int R, int N>
    static bool add(double (&results)[R], const tf_packed<word, N> (&rows)[4])
    {
        if constexpr (!PACKED) {
            return false;
        } else {
            const struct tf_format f = tf_row_of<kind>();
            const uint32_t first_special =
                f.specials == TF_FN ? tf_magnitude_mask(f) : tf_infinity_magnitude(f);
            uint32_t special = 0;
#pragma unroll
            for (int w = 0; w < N / 4; w++) {
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    const uint32_t magnitudes = rows[k].words[w] & 0x7F7F7F7Fu;
                    special |= magnitudes + (0x80 - first_special) * 0x01010101u;
                }
            }
            if (special & 0x80808080u) {
                return false;
            }
            const float scale = tf_float_of((uint32_t)(254 - f.bias) << 23);
            float all[4] = {-0.0f, -0.0f, -0.0f, -0.0f};
#pragma unroll
            for (int i = 0; i < N; i++) {
                float x[4];
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    const uint32_t top = rows[k].words[i / 4] << (24 - i % 4 * 8);
                    const uint32_t spread = (uint32_t)((int32_t)top >> (8 - f.exponent_bits));
                    x[k] = tf_float_of(spread & (UINT32_C(1) << 31 |
                                                 UINT32_C(0x7F) << (23 - f.mantissa_bits)));
                }
                const float sum = (x[0] + x[1]) + (x[2] + x[3]);
                if (R == N) {
                    results[i % R] += (double)(sum * scale);
                } else {
                    all[i % 4] += sum;
                }
            }
            if (R < N) {
                const float sum = (all[0] + all[1]) + (all[2] + all[3]);
                results[0] += (double)(sum * scale);
            }
            return true;
        }
    }
    static double finished(double x) { return x; }
};

/* Keeps results of ordered items as ranks in the order of all items, in the high bits of
 * int32; the bits below are arbitrary. Instructions on pairs of 16 bits find the ends. */
template <bool most, int kind> struct tf_reading<ends<most>, kind> {
    typedef tf_word<kind> word;
    typedef typename ends<most>::value part;
    enum {
        PACKED = tf_is_ordered(kind),
        TOGETHER = 1,
        SHIFT = 32 - 8 * (int)sizeof(word)
    };

    static part part_of(word item, int which, int elements)
    {
        const uint32_t bits = tf_single<kind, true>(item);
        const part whole = ends<most>::template part_of<kind>(bits, which, elements);
        if (!PACKED || whole.low > whole.high) {
            return whole;
        }
        return ends<most>::of_order(tf_total_order((uint32_t)item << SHIFT));
    }
    /* Returns x with one 16-bit half of `low` and `high`, which are ends of pairs. */
    static part halves(part x, uint32_t low, uint32_t high, int half)
    {
        const int up = half ? 0 : 16;
        return ends<most>::both(x, {(int32_t)(low << up), (int32_t)(high << up)});
    }
    template <int R, int N>
    static bool add(part (&results)[R], const tf_packed<word, N> (&rows)[4])
    {
        if constexpr (!PACKED) {
            return false;
        } else {
            constexpr int each = 4 / (int)sizeof(word), bits = 32 / each;
            constexpr uint32_t ones = each == 4 ? 0x01010101u : 0x00010001u;
            uint32_t lowest_pair = 0x7FFF7FFFu, highest_pair = 0x80008000u;
#pragma unroll
            for (int w = 0; w < N / each; w++) {
                uint32_t order[4];
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    const uint32_t x = rows[k].words[w];
                    const uint32_t negative = x >> (bits - 1) & ones;
                    order[k] = x ^ ((negative << (bits - 1)) - negative);
                }
                /* The ends of bytes: of the lower byte of each half, then of the higher
                 * one. */
#pragma unroll
                for (int byte = 0; byte < each / 2; byte++) {
                    const int left = each == 4 && byte == 0 ? 8 : 0;
                    uint32_t low = order[0] << left, high = low;
#pragma unroll
                    for (int k = 1; k < 4; k++) {
                        low = __vmins2(low, order[k] << left);
                        high = __vmaxs2(high, order[k] << left);
                    }
                    lowest_pair = __vmins2(lowest_pair, low);
                    highest_pair = __vmaxs2(highest_pair, high);
#pragma unroll
                    for (int half = 0; R == N && half < 2; half++) {
                        part &result = results[(w * each + half * each / 2 + byte) % R];
                        result = halves(result, low, high, half);
                    }
                }
            }
#pragma unroll
            for (int half = 0; R < N && half < 2; half++) {
                results[0] = halves(results[0], lowest_pair, highest_pair, half);
            }
            return true;
        }
    }
    static part finished(part x)
    {
        return PACKED ? part{number_order(x.low), number_order(x.high)} : x;
    }
    static int32_t number_order(int32_t order)
    {
        const word item = (word)((uint32_t)tf_total_order((uint32_t)order) >> SHIFT);
        return tf_total_order(tf_single<kind, true>(item));
    }
};

#endif
