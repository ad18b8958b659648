/* The instruction sets that kernels are compiled for, and whether this CPU has them.
 *
 * setup.py compiles this header in a small program, to learn which sets the CPU of the
 * build machine has. */
#ifndef TF32DTYPE_RUNTIME_CPU_SETS_H
#define TF32DTYPE_RUNTIME_CPU_SETS_H

#define TF_HAS(feature) __builtin_cpu_supports(feature)
#define TF_HAS_V3 \
    (TF_HAS("avx2") && TF_HAS("fma") && TF_HAS("bmi") && TF_HAS("bmi2") && \
     TF_HAS("popcnt"))
#define TF_HAS_V4 \
    (TF_HAS_V3 && TF_HAS("avx512f") && TF_HAS("avx512bw") && TF_HAS("avx512cd") && \
     TF_HAS("avx512dq") && TF_HAS("avx512vl"))
#define TF_HAS_V4_BF16 \
    (TF_HAS_V4 && TF_HAS("avx512bf16") && TF_HAS("avx512vbmi") && TF_HAS("avx512vnni"))

/* SET(identifier, name, whether the CPU has it), from the plainest to the best. */
#if defined(__x86_64__)
#define TF_CPU_SETS(SET) \
    SET(baseline, "baseline", 1) \
    SET(x86_64_v3, "x86-64-v3", TF_HAS_V3) \
    SET(x86_64_v4, "x86-64-v4", TF_HAS_V4) \
    SET(x86_64_v4_bf16, "x86-64-v4-bf16", TF_HAS_V4_BF16)
#else
#define TF_CPU_SETS(SET) SET(baseline, "baseline", 1)
#endif

#endif
