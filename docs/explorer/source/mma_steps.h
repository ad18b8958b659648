/* Writes the steps of a dot product on a tensor core, which the models record, as JSON: the
 * objects Group and Addition of arithmetic_types.js. */
#ifndef EXPLORER_MMA_STEPS_H
#define EXPLORER_MMA_STEPS_H

#include "tensor_core/scaled_mma_model.h"
#include "write_value.h"

/* Properties of a chain that the rows of a trace do not contain. */
struct chain {
    int half;      /* accumulators are float16, and sums are rounded to nearest, not toward
                      zero */
    int emulated;  /* groups without k are steps */
    int32_t group; /* the number of k in a term */
    /* Writes a string for each scale that is NaN; returns whether there are any. Or
     * NULL. */
    int (*write_nans)(const int32_t *ks, int32_t count);
};

/* Convert between codes of an accumulator (float16 if `half`, otherwise float32) and the
 * float32 bits of the models. */
int accumulator_format(int half);
uint64_t accumulator_code(int half, uint32_t bits);
uint32_t accumulator_bits(int half, uint64_t code);

/* The record of a chain of up to INPUT_LIST_ROOM k. */
extern struct tf_mma_trace trace;

/* Writes the steps of a chain, and empties the trace. */
void write_trace(const struct chain *chain);

#endif
