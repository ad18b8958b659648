/* Scales of blocks as float32 numbers, as products take them: those of a tile's lines side
 * by side. */
#include "blocks/block_formats.h"
#include "cuda/common/common.h"

/* out[matrix][block][level][line], `pitch` lines to a level, of which those beyond `lines`
 * are 0. Level 0 has S; level 1, where there is a residual, RN32(S R).
 *
 * Codes lie in bytes, `levels` a block; strides are in bytes from matrix to matrix and from
 * line to line. */
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
