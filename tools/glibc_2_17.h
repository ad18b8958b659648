/* Link with versions of functions that glibc 2.17 already has. Headers of a newer glibc
 * declare newer versions of these functions, whose results are the same. tools/wheels
 * includes this header before every C file of a wheel. */
#ifndef TF32DTYPE_TOOLS_GLIBC_2_17_H
#define TF32DTYPE_TOOLS_GLIBC_2_17_H

#if defined(__x86_64__)
#define FIRST "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define FIRST "GLIBC_2.17"
#endif

/* The second version, of glibc 2.29, does not call a program's own matherr(). */
#if defined(FIRST)
__asm__(".symver exp, exp@" FIRST);
__asm__(".symver exp2, exp2@" FIRST);
__asm__(".symver log, log@" FIRST);
__asm__(".symver log2, log2@" FIRST);
__asm__(".symver pow, pow@" FIRST);
#undef FIRST
#endif

#endif
