/* Steps of a product on a tensor core as JSON: the objects Group and Addition of
 * arithmetic_types.js. The models record them. */
#ifndef EXPLORER_MMA_STEPS_H
#define EXPLORER_MMA_STEPS_H

#include "tensor_core/scaled_mma_model.h"
#include "write_value.h"

/* What the rows of a trace do not tell. */
struct chain {
    int half;      /* accumulators are float16, and sums are rounded to nearest, not toward
                      zero */
    int emulated;  /* groups without k are steps */
    int32_t group; /* k of a term */
    /* Writes which scales are NaN, each a text; returns whether there are any. May be 0. */
    int (*write_nans)(const int32_t *ks, int32_t count);
};

/* Codes of an accumulator, float32 or float16, as the models have it. */
int accumulator_format(int half);
uint64_t accumulator_code(int half, uint32_t bits);
uint32_t accumulator_bits(int half, uint64_t code);

/* Where a chain of up to INPUT_LIST_ROOM k is recorded. */
extern struct tf_mma_trace trace;

/* Write the steps of a chain, and empty the trace. */
void write_trace(const struct chain *chain);

#endif
