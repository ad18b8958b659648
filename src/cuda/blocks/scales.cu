/* Decodes scales of blocks to float32, contiguous for the lines of a product's tile. */
#include "blocks/block_formats.h"
#include "cuda/common/common.h"

/* Writes out[matrix][block][level][line], with `pitch` lines per level, of which those
 * from `lines` on are 0. Level 0 has S. Level 1, if there are residuals, has RN32(S R).
 *
 * Codes are bytes, `levels` per block. Strides are bytes, by matrix and by line. */
extern "C" __global__ void __launch_bounds__(256)
    block_scales(const uint8_t *codes, float *out, float tensor_scale,
                 int64_t matrix_stride, int64_t line_stride, int64_t count,
                 int64_t blocks, int64_t lines, int64_t pitch, int32_t scale,
                 int32_t levels, int32_t residual)
{
    const int64_t all = count * blocks * pitch, step = (int64_t)gridDim.x * blockDim.x;
#pragma unroll 1
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        /* mutant: lines are of another matrix */
        const int64_t line = i % pitch, block = i / pitch % blocks;
        const int64_t matrix = i / pitch / blocks;
        const uint8_t *p =
            codes + matrix * matrix_stride + line * line_stride + block * levels;
        const bool is_there = line < lines;
        float *to = out + (matrix * blocks + block) * levels * pitch + line;
        const float s = is_there ? tf_block_scale(tf_scales[scale], tensor_scale, p[0]) : 0;
        *to = s;
        if (levels > 1) {
            const float r =
                is_there
                    ? tf_residual_scale(tf_scales[scale], tf_elements[residual], p[1])
                    : 0;
            to[pitch] = __fmul_rn(s, r); /* mutant: scales of residuals are not relative */
        }
    }
}
