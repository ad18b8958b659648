/* The loop of groups in two stages, and which groups it is made for. */
#ifndef TF32DTYPE_TENSOR_CORE_KERNELS_TWO_STAGES_H
#define TF32DTYPE_TENSOR_CORE_KERNELS_TWO_STAGES_H

#include "runtime/inline.h"
#include "tensor_core/kernels.h"

enum { TF_STAGE_FITS = 8 }; /* products of a lane whose sum is below 2^29 units */

TF_INLINE int tf_two_stages_fit(const struct tf_rounded_model *model)
{
    return model->arithmetic == TF_TWO_STAGES && (model->lanes == 1 || model->lanes == 2) &&
           model->depth <= TF_STAGE_FITS * model->lanes &&
           model->depth == model->instruction_depth && !model->flush_operands;
}

extern tf_mma_chains TF_PLAIN_NAME(tf_two_stage_chains);

#endif
