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
 * casts save and restore its flags themselves. */
struct tf_fp {
    unsigned mxcsr;
};

static inline struct tf_fp tf_fp_begin(void)
{
    /* All exceptions masked, to nearest, no FTZ or DAZ. Bits 0..5 are flags, which a loop
     * that reads them clears; to write the register costs more than all else here. */
    enum { FLAGS = 0x3F, DEFAULT = 0x1F80 };
    const struct tf_fp saved = {_mm_getcsr()};
    if ((saved.mxcsr & ~(unsigned)FLAGS) != DEFAULT) {
        _mm_setcsr(DEFAULT);
    }
    return saved;
}

/* MXCSR bits 0..4: invalid, denormal, divide, overflow, underflow. */
static inline unsigned tf_fp_bits(unsigned flags)
{
    return (flags & TF_INVALID ? 0x01u : 0) | (flags & TF_DIVIDE ? 0x04u : 0) |
           (flags & TF_OVER ? 0x08u : 0) | (flags & TF_UNDER ? 0x10u : 0);
}

static inline void tf_fp_end(struct tf_fp saved, unsigned flags)
{
    _mm_setcsr(saved.mxcsr | tf_fp_bits(flags));
}

/* The same after operations that raised nothing but what nobody asks for (inexact,
 * denormal): where there is nothing to change, the register is not written. */
static inline void tf_fp_end_quietly(struct tf_fp saved, unsigned flags)
{
    enum { FLAGS = 0x3F, DEFAULT = 0x1F80 };
    const unsigned raised = tf_fp_bits(flags);
    if ((saved.mxcsr & ~(unsigned)FLAGS) != DEFAULT || (raised & ~saved.mxcsr)) {
        _mm_setcsr(saved.mxcsr | raised);
    }
}

/* What had been raised before, which a loop need not find again: NumPy calls one for
 * each row of a broadcast operand. */
static inline unsigned tf_fp_raised(struct tf_fp saved)
{
    const unsigned raised = saved.mxcsr;
    return (raised & 0x01u ? TF_INVALID : 0) | (raised & 0x04u ? TF_DIVIDE : 0) |
           (raised & 0x08u ? TF_OVER : 0) | (raised & 0x10u ? TF_UNDER : 0);
}

/* Takes back what an earlier loop raised. */
static inline void tf_fp_forget(struct tf_fp *saved, unsigned flags)
{
    saved->mxcsr &= ~(flags & TF_OVER ? 0x08u : 0);
}

#else
#include <fenv.h>

struct tf_fp {
    fenv_t environment;
};

static inline struct tf_fp tf_fp_begin(void)
{
    struct tf_fp saved;
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

static inline void tf_fp_end_quietly(struct tf_fp saved, unsigned flags)
{
    tf_fp_end(saved, flags);
}

/* Returns 0: what was raised before is not known here. */
static inline unsigned tf_fp_raised(struct tf_fp saved)
{
    (void)saved;
    return 0;
}

/* Takes back what an earlier loop raised. */
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
