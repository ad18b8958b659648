/* Checks of preconditions, during compilation and at run time. Freestanding.
 *
 * TF_ASSERT checks a precondition of a function, but only in the sanitizers' build
 * (tools/sanitize): a false condition ends the program. Other builds omit the check. */
#ifndef TF32DTYPE_RUNTIME_ASSERTS_H
#define TF32DTYPE_RUNTIME_ASSERTS_H

#if defined(__cplusplus)
#define TF_STATIC_ASSERT static_assert
#else
#define TF_STATIC_ASSERT _Static_assert
#endif

/* The offset of a member in bytes. NVRTC of CUDA 13.0 has no __builtin_offsetof. */
#if defined(__CUDACC_RTC__)
#define TF_OFFSETOF(type, member) __INTADDR__(&((type *)0)->member)
#else
#define TF_OFFSETOF(type, member) __builtin_offsetof(type, member)
#endif

#if defined(TF_CHECKED)
_Noreturn void tf_assert_failed(const char *file, int line, const char *function,
                                const char *condition);
#define TF_ASSERT(condition)                                                   \
    ((condition) ? (void)0                                                     \
                 : tf_assert_failed(__FILE__, __LINE__, __func__, #condition))
#else
#define TF_ASSERT(condition) ((void)0)
#endif

#endif
