/* The floating-point environment around a loop.
 *
 * Speculation inside vector loops raises flags that no element asked for, and a caller may
 * have set another rounding mode, FTZ or DAZ. A loop therefore runs in the default
 * environment, and afterwards sets the flags that its results require:
 *
 *     const struct tf_fp saved = tf_fp_begin();
 *     unsigned flags = ...;                        (TF_DIVIDE | TF_OVER | ...)
 *     tf_fp_end(saved, flags); */
#ifndef TF32DTYPE_RUNTIME_FP_ENVIRONMENT_H
#define TF32DTYPE_RUNTIME_FP_ENVIRONMENT_H

#include "runtime/fp_flags.h"

#if defined(__SSE2__)
#include <xmmintrin.h>

/* The environment is MXCSR. In loops, only casts of `long double` use the x87 unit, and
 * they save and restore its flags themselves. By default all exceptions are masked. */
typedef unsigned tf_fp_word;
enum { TF_FP_DEFAULT = 0x1F80, TF_FP_DOWNWARD = 0x2000, TF_FP_FLAGS = 0x3F };
enum { TF_FP_FLUSH = 0x8000 };
enum { TF_FP_INVALID = 0x01, TF_FP_DIVIDE = 0x04, TF_FP_OVER = 0x08, TF_FP_UNDER = 0x10 };

static inline tf_fp_word tf_fp_read(void) { return _mm_getcsr(); }
static inline void tf_fp_write(tf_fp_word word) { _mm_setcsr(word); }

#elif defined(__aarch64__)
#include <stdint.h>

/* FPCR, which is 0 by default, in the upper half. FPSR, only flags, in the lower half. */
typedef uint64_t tf_fp_word;
static const tf_fp_word TF_FP_DEFAULT = 0, TF_FP_FLAGS = UINT32_MAX;
static const tf_fp_word TF_FP_DOWNWARD = UINT64_C(1) << (32 + 23);
enum { TF_FP_INVALID = 1, TF_FP_DIVIDE = 2, TF_FP_OVER = 4, TF_FP_UNDER = 8 };

static inline tf_fp_word tf_fp_control(void)
{
    tf_fp_word control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control)::"memory");
    return control;
}

static inline tf_fp_word tf_fp_read(void)
{
    tf_fp_word status;
    __asm__ volatile("mrs %0, fpsr" : "=r"(status)::"memory");
    return tf_fp_control() << 32 | (status & UINT32_MAX);
}

/* Reads FPCR before it writes it, as a write waits for all instructions in flight. */
static inline void tf_fp_write(tf_fp_word word)
{
    const tf_fp_word control = word >> 32, status = word & UINT32_MAX;
    if (tf_fp_control() != control) {
        __asm__ volatile("msr fpcr, %0" ::"r"(control) : "memory");
    }
    __asm__ volatile("msr fpsr, %0" ::"r"(status) : "memory");
}
#endif

#if defined(__SSE2__) || defined(__aarch64__)
struct tf_fp {
    tf_fp_word word;
};

/* Masks all exceptions, rounds to nearest, switches FTZ and DAZ off. Loops that read flags
 * clear them first, not this function: to write the register costs more than all else. */
static inline struct tf_fp tf_fp_begin(void)
{
    const struct tf_fp saved = {tf_fp_read()};
    if ((saved.word & ~(tf_fp_word)TF_FP_FLAGS) != TF_FP_DEFAULT) {
        tf_fp_write(TF_FP_DEFAULT);
    }
    return saved;
}

static inline tf_fp_word tf_fp_bits(unsigned flags)
{
    return (flags & TF_INVALID ? TF_FP_INVALID : 0u) |
           (flags & TF_DIVIDE ? TF_FP_DIVIDE : 0u) |
           (flags & TF_OVER ? TF_FP_OVER : 0u) | (flags & TF_UNDER ? TF_FP_UNDER : 0u);
}

static inline void tf_fp_end(struct tf_fp saved, unsigned flags)
{
    tf_fp_write(saved.word | tf_fp_bits(flags));
}

/* Between tf_fp_begin and tf_fp_end: rounds downward, or to nearest again. */
static inline void tf_fp_round_downward(int downward)
{
    const tf_fp_word flags = tf_fp_read() & TF_FP_FLAGS;
    tf_fp_write(flags | TF_FP_DEFAULT | (downward ? TF_FP_DOWNWARD : 0));
}

/* Between tf_fp_begin and tf_fp_end: if `flush`, CPUs that detect subnormals after rounding
 * replace subnormal results by zeros of their sign. Only for loops that flush results
 * themselves: some CPUs take 100 times as long for a subnormal product. */
static inline void tf_fp_flush_results(int flush)
{
#if defined(__SSE2__)
    tf_fp_write((tf_fp_read() & TF_FP_FLAGS) | TF_FP_DEFAULT | (flush ? TF_FP_FLUSH : 0));
#else
    (void)flush; /* AArch64 detects subnormals before rounding */
#endif
}

/* As tf_fp_end, after operations that raised only flags that NumPy does not report
 * (inexact, denormal). Does not write the register if it needs no other change. */
static inline void tf_fp_end_quietly(struct tf_fp saved, unsigned flags)
{
    const tf_fp_word raised = tf_fp_bits(flags);
    if ((saved.word & ~(tf_fp_word)TF_FP_FLAGS) != TF_FP_DEFAULT ||
        (raised & ~saved.word)) {
        tf_fp_write(saved.word | raised);
    }
}

/* Returns the flags raised before the loop, which it need not find again: NumPy calls a
 * loop once for each row of a broadcast operand. */
static inline unsigned tf_fp_raised(struct tf_fp saved)
{
    return (saved.word & TF_FP_INVALID ? TF_INVALID : 0) |
           (saved.word & TF_FP_DIVIDE ? TF_DIVIDE : 0) |
           (saved.word & TF_FP_OVER ? TF_OVER : 0) |
           (saved.word & TF_FP_UNDER ? TF_UNDER : 0);
}

/* Clears overflow in the saved flags if `flags` has it: an earlier loop raised it. */
static inline void tf_fp_forget(struct tf_fp *saved, unsigned flags)
{
    saved->word &= ~(flags & TF_OVER ? (tf_fp_word)TF_FP_OVER : 0u);
}

#else
#include <fenv.h>

struct tf_fp {
    fenv_t environment;
    int raised;
};

static inline struct tf_fp tf_fp_begin(void)
{
    struct tf_fp saved;
    saved.raised = fetestexcept(FE_ALL_EXCEPT);
    fegetenv(&saved.environment);
    fesetenv(FE_DFL_ENV);
    return saved;
}

static inline void tf_fp_end(struct tf_fp saved, unsigned flags)
{
    fesetenv(&saved.environment);
    const int raised = (flags & TF_INVALID ? FE_INVALID : 0) |
                       (flags & TF_DIVIDE ? FE_DIVBYZERO : 0) |
                       (flags & TF_OVER ? FE_OVERFLOW : 0) |
                       (flags & TF_UNDER ? FE_UNDERFLOW : 0);
    if (raised) {
        feraiseexcept(raised);
    }
}

static inline void tf_fp_round_downward(int downward)
{
    fesetround(downward ? FE_DOWNWARD : FE_TONEAREST);
}

static inline void tf_fp_flush_results(int flush) { (void)flush; }

static inline void tf_fp_end_quietly(struct tf_fp saved, unsigned flags)
{
    tf_fp_end(saved, flags);
}

static inline unsigned tf_fp_raised(struct tf_fp saved)
{
    return (saved.raised & FE_INVALID ? TF_INVALID : 0) |
           (saved.raised & FE_DIVBYZERO ? TF_DIVIDE : 0) |
           (saved.raised & FE_OVERFLOW ? TF_OVER : 0) |
           (saved.raised & FE_UNDERFLOW ? TF_UNDER : 0);
}

static inline void tf_fp_forget(struct tf_fp *saved, unsigned flags)
{
    if (flags & TF_OVER) {
        fesetenv(&saved->environment);
        feclearexcept(FE_OVERFLOW);
        fegetenv(&saved->environment);
        fesetenv(FE_DFL_ENV);
    }
}
#endif

#endif
