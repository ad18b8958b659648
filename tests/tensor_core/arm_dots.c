/* Multiplies rows of bfloat16 numbers by Arm's own instructions.
 *
 *      arm_dots bfdot|bfmmla|bfdot_ebf K < in > out
 *
 * Each input row has K numbers of a, K of b and a float32 c. Each output row is one
 * float32. K is a multiple of 2, or of 4 for bfmmla. bfdot_ebf is BFDOT with
 * FPCR.EBF = 1. Without FEAT_EBF16, the program ends with code 3. */
#include <arm_neon.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 256, NO_EBF16 = 3 };

/* Sets FPCR.EBF, and returns whether it is set. It stays 0 without FEAT_EBF16. */
static int extend(void)
{
    const uint64_t ebf = (uint64_t)1 << 13;
    uint64_t got;
    __asm__ volatile("msr fpcr, %1; mrs %0, fpcr" : "=r"(got) : "r"(ebf));
    return got == ebf;
}

static float dot(const bfloat16_t *a, const bfloat16_t *b, int k, float c)
{
    float32x4_t sums = vdupq_n_f32(c);
    for (int i = 0; i < k; i += 2) { /* the same in all four lanes */
        float pair;
        memcpy(&pair, a + i, sizeof pair);
        const bfloat16x8_t x = vreinterpretq_bf16_f32(vdupq_n_f32(pair));
        memcpy(&pair, b + i, sizeof pair);
        sums = vbfdotq_f32(sums, x, vreinterpretq_bf16_f32(vdupq_n_f32(pair)));
    }
    return vgetq_lane_f32(sums, 3);
}

static float matrix(const bfloat16_t *a, const bfloat16_t *b, int k, float c)
{
    float32x4_t sums = vdupq_n_f32(c);
    for (int i = 0; i < k; i += 4) { /* the same in both rows and columns */
        const bfloat16x8_t x = vcombine_bf16(vld1_bf16(a + i), vld1_bf16(a + i));
        const bfloat16x8_t y = vcombine_bf16(vld1_bf16(b + i), vld1_bf16(b + i));
        sums = vbfmmlaq_f32(sums, x, y);
    }
    return vgetq_lane_f32(sums, 3);
}

int main(int count, char **words)
{
    bfloat16_t a[LONGEST], b[LONGEST];
    float c;
    const int k = count == 3 ? atoi(words[2]) : 0;
    if (k < 1 || k > LONGEST) {
        return 2;
    }
    if (strcmp(words[1], "bfdot_ebf") == 0 && !extend()) {
        return NO_EBF16;
    }
    const size_t n = (size_t)k;
    while (fread(a, sizeof *a, n, stdin) == n && fread(b, sizeof *b, n, stdin) == n &&
           fread(&c, sizeof c, 1, stdin) == 1) {
        c = strcmp(words[1], "bfmmla") == 0 ? matrix(a, b, k, c) : dot(a, b, k, c);
        fwrite(&c, sizeof c, 1, stdout);
    }
    return 0;
}
