/* The floating-point environment around a loop.
 *
 * Speculation inside vector loops raises flags that no element asked for, and
 * a caller may have left another rounding mode, FTZ or DAZ switched on.
 * So a loop runs in the default environment and then sets the flags that its
 * results demand:
 *
 *     const struct tf_fp saved = tf_fp_begin();
 *     unsigned flags = ...;                        (TF_DIVIDE | TF_OVER | ...)
 *     tf_fp_end(saved, flags);
 */
#ifndef TF32DTYPE_RUNTIME_FP_ENVIRONMENT_H
#define TF32DTYPE_RUNTIME_FP_ENVIRONMENT_H

#include "runtime/fp_flags.h"

#if defined(__SSE2__)
#include <xmmintrin.h>

/* MXCSR alone: nothing in a loop touches the x87 unit but `long double`, whose
 * casts save and restore its flags themselves. By default all exceptions are masked. */
typedef unsigned tf_fp_word;
enum { TF_FP_DEFAULT = 0x1F80, TF_FP_DOWNWARD = 0x2000, TF_FP_FLAGS = 0x3F };
enum { TF_FP_FLUSH = 0x8000 };
enum { TF_FP_INVALID = 0x01, TF_FP_DIVIDE = 0x04, TF_FP_OVER = 0x08, TF_FP_UNDER = 0x10 };

static inline tf_fp_word tf_fp_read(void) { return _mm_getcsr(); }
static inline void tf_fp_write(tf_fp_word word) { _mm_setcsr(word); }

#elif defined(__aarch64__)
#include <stdint.h>

/* FPCR, which is 0 by default, above FPSR, whose bits are all flags. */
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

/* FPCR is read before it is written, which waits for all that runs. */
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

/* All exceptions masked, to nearest, no FTZ or DAZ. Flags are left to the loops, of which
 * those that read them clear them: to write the register costs more than all else here. */
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

/* Between those two: rounds downward, or to nearest again. */
static inline void tf_fp_round_downward(int downward)
{
    const tf_fp_word flags = tf_fp_read() & TF_FP_FLAGS;
    tf_fp_write(flags | TF_FP_DEFAULT | (downward ? TF_FP_DOWNWARD : 0));
}

/* Between those two: has results that are subnormal after their rounding become zeros of
 * their sign, or not again; where an instruction set finds them so. Only for loops that
 * flush results themselves: some CPUs take 100 times as long for a subnormal product. */
static inline void tf_fp_flush_results(int flush)
{
#if defined(__SSE2__)
    tf_fp_write((tf_fp_read() & TF_FP_FLAGS) | TF_FP_DEFAULT | (flush ? TF_FP_FLUSH : 0));
#else
    (void)flush; /* AArch64 finds them before they are rounded */
#endif
}

/* The same after operations that raised nothing but what nobody asks for (inexact,
 * denormal): where there is nothing to change, the register is not written. */
static inline void tf_fp_end_quietly(struct tf_fp saved, unsigned flags)
{
    const tf_fp_word raised = tf_fp_bits(flags);
    if ((saved.word & ~(tf_fp_word)TF_FP_FLAGS) != TF_FP_DEFAULT ||
        (raised & ~saved.word)) {
        tf_fp_write(saved.word | raised);
    }
}

/* What had been raised before, which a loop need not find again: NumPy calls one for
 * each row of a broadcast operand. */
static inline unsigned tf_fp_raised(struct tf_fp saved)
{
    return (saved.word & TF_FP_INVALID ? TF_INVALID : 0) |
           (saved.word & TF_FP_DIVIDE ? TF_DIVIDE : 0) |
           (saved.word & TF_FP_OVER ? TF_OVER : 0) |
           (saved.word & TF_FP_UNDER ? TF_UNDER : 0);
}

/* Takes back what an earlier loop raised. */
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
