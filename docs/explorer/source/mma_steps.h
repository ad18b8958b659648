/* Steps of a product on a tensor core as JSON: the objects Group and Addition of
 * arithmetic_types.js. */
#ifndef EXPLORER_MMA_STEPS_H
#define EXPLORER_MMA_STEPS_H

#include "tensor_core/scaled_mma_model.h"
#include "write_value.h"

enum { MOST_TERMS = TF_DEEPEST + 1 };

/* A product, the sum of some, or the accumulator: significand * 2^unit. */
struct term {
    int32_t count; /* of k; 0: the accumulator */
    const int32_t *ks;
    int negative;
    uint64_t significand;
    int32_t unit;
    int32_t exponent; /* that it is aligned by; TF_NO_EXPONENT or below: it is zero */
};

/* What rounds a sum. */
struct sum_rounding {
    int half;    /* the result is float16 */
    int nearest; /* ties to even; else toward zero */
    int kept;    /* fraction bits */
};

/* What is aligned in one sum; `result` and accumulators are codes. */
struct group {
    const int32_t *ks;
    int32_t count; /* of k */
    uint64_t accumulator, result;
    int32_t floor, fraction;
    struct sum_rounding rounding;
    int32_t term_count;
    struct term terms[MOST_TERMS];
};

/* Codes of an accumulator, float32 or float16, as the models have it. */
int accumulator_format(int half);
uint64_t accumulator_code(int half, uint32_t bits);
uint32_t accumulator_bits(int half, uint64_t code);

/* The term of the accumulator, whose exponent if it is zero is given. */
struct term accumulator_term(int half, uint32_t bits, int32_t zero_exponent);

/* A group of finite numbers. */
void write_group(const struct group *group);

/* One with Inf or NaN: begins it up to its list of reasons, each a text; ends it. */
void begin_special_group(const struct group *group);
void end_special_group(const struct group *group);

void write_addition(int half, const int32_t *ks, int32_t count, uint32_t sum,
                    uint64_t accumulator, int promotes, uint64_t result);

#endif
