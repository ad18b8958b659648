/* The loop for groups in two stages, and the groups that it can compute. */
#ifndef TF32DTYPE_TENSOR_CORE_KERNELS_TWO_STAGES_H
#define TF32DTYPE_TENSOR_CORE_KERNELS_TWO_STAGES_H

#include "runtime/inline.h"
#include "tensor_core/kernels.h"

enum { TF_STAGE_FITS = 8 }; /* most products of a lane: their sum is below 2^29 units */

/* Returns whether operands are float8_e4m3fnuz or float8_e5m2fnuz, by the exponent of their
 * smallest normal number. These have at most 4 significant bits. */
TF_INLINE int tf_is_fnuz(int32_t least) { return least == -7 || least == -15; }

TF_INLINE int tf_two_stages_fit(const struct tf_rounded_model *model)
{
    const int narrow = tf_is_fnuz(model->least_a) && tf_is_fnuz(model->least_b);
    return model->arithmetic == TF_TWO_STAGES &&
           (model->lanes == 1 || (model->lanes == 2 && narrow)) &&
           model->depth <= TF_STAGE_FITS * model->lanes &&
           model->depth == model->instruction_depth && !model->flush_operands;
}

extern tf_mma_chains TF_PLAIN_NAME(tf_two_stage_chains);

#endif
